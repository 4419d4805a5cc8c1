// An .onnx file as the messages of ONNX's schema. The file is untrusted: how many messages it holds
// is counted before they are made, since an empty one takes two bytes there and a hundred here.
#pragma once

#include <onnx.pb.h>

#include <memory>

#include "engine/ir/model_file.h"

namespace clinfer {

// Throws Error{bad_model} for what is no ONNX model, or a damaged one, and Error{unsupported} for
// more messages than an honest model has. Checks nothing inside of the graph.
std::shared_ptr<const onnx::ModelProto> parse_onnx(const ByteSource& file);

}  // namespace clinfer
