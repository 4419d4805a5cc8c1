// Reads facts about pictures and labels from a model's metadata_props.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/onnx/model_proto.h"

namespace clinfer {

// Returns all properties, with "metadata_props/" in front of their keys. Ultralytics' properties
// are returned a second time, with the keys that Ultralytics' OpenVINO exporter writes below
// "model_info/".
std::map<std::string, std::string> onnx_info(const onnx::ModelProto& model);
// Returns whether the properties hold the dictionary of a text recogniser, as PP-OCR's do.
bool has_dictionary(const std::map<std::string, std::string>& info);
// Returns height and width of the pictures that the model was exported for, if the properties state
// them.
std::optional<std::pair<int64_t, int64_t>> picture_size(
    const std::map<std::string, std::string>& info);

}  // namespace clinfer
