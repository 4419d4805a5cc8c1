// Parses an .onnx file into the messages of ONNX's schema. The file is untrusted, so its messages
// are counted before they are created: an empty message takes two bytes in the file and a hundred
// in memory.
#pragma once

#include <onnx.pb.h>

#include <memory>

#include "engine/ir/model_file.h"

namespace clinfer {

// Throws Error{bad_model} if the file is damaged or no ONNX model, and Error{unsupported} if it has
// more messages than an honest model. Does not check the graph's contents.
std::shared_ptr<const onnx::ModelProto> parse_onnx(const ByteSource& file);

}  // namespace clinfer
