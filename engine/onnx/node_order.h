// Sorts nodes so that each comes after those that produce its inputs. Files of some converters
// (float16) have another order.
#pragma once

#include <google/protobuf/repeated_field.h>
#include <onnx.pb.h>

#include <vector>

namespace clinfer {

// Returns the nodes in an order in which they can be read; this is the file's order if that one is
// valid. Nodes that need each other in a circle stay in the file's order. The time is proportional
// to the number of nodes and names, including those of bodies.
std::vector<const onnx::NodeProto*> in_order(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

}  // namespace clinfer
