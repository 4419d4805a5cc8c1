// The device that a model's file asks for a layer.
#pragma once

namespace clinfer {

// Attribute of a node with the name of a device, from the layer's rt_info. Only HETERO reads it.
inline constexpr const char* kAffinity = "affinity";

}  // namespace clinfer
