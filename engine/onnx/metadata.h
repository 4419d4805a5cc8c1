// Facts about pictures and labels in a model's metadata_props.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/onnx/model_proto.h"

namespace clinfer {

// All properties, below "metadata_props/"; and what Ultralytics' exporter writes as the keys that
// its OpenVINO exporter writes for the same model, below "model_info/".
std::map<std::string, std::string> onnx_info(const onnx::ModelProto& model);
// Returns whether they hold the dictionary of a text recogniser, as PP-OCR's do.
bool has_dictionary(const std::map<std::string, std::string>& info);
// Height and width of the pictures that the model was exported for, where they say so.
std::optional<std::pair<int64_t, int64_t>> picture_size(
    const std::map<std::string, std::string>& info);

}  // namespace clinfer
