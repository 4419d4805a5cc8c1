// Files that are no model which this engine reads, by their first bytes.
#pragma once

#include <string>

namespace clinfer {

// Says of a file what it is and what to do about it, where its content is of another format than its name
// says: "a TensorFlow Lite model: convert it to ONNX ...". "" for what the readers may try, and for
// files that cannot be read.
std::string foreign_kind(const std::string& path, bool named_onnx);

}  // namespace clinfer
