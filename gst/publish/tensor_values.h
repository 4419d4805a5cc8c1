// Writes the values of tensors as JSON.
#pragma once

#include <string>

#include "gst/base/json.h"
#include "gst/meta/views.h"

namespace clinfer {

// Writes an array of numbers. `type`: the engine's name of the element type; `data` may be null.
void write_values(JsonWriter& json, const std::string& type, const Bytes& data);

}  // namespace clinfer
