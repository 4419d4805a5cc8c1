// The order in which nodes can be read: each after those that give its inputs. Files of some
// converters (float16) list them otherwise.
#pragma once

#include <google/protobuf/repeated_field.h>
#include <onnx.pb.h>

#include <vector>

namespace clinfer {

// Stays the file's order where that is one already. Nodes that need each other in a circle come in
// the file's order. Takes time in proportion to the nodes and names, bodies included.
std::vector<const onnx::NodeProto*> in_order(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

}  // namespace clinfer
