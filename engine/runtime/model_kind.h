// Recognises files that this engine cannot read as models.
#pragma once

#include <string>

namespace clinfer {

// If a file's content is in another format than its name tells, returns what it is and what to do:
// "a TensorFlow Lite model: convert it to ONNX ...". Returns "" for files that the readers may try,
// and for those that cannot be read.
std::string foreign_kind(const std::string& path, bool named_onnx);

}  // namespace clinfer
