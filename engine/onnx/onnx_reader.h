// Converts ONNX to Graph. The file is untrusted: every name, size and reference is checked, nothing
// is repaired.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/graph/graph.h"
#include "engine/ir/custom_layers.h"

namespace clinfer {

struct OnnxModel {
  std::unique_ptr<Graph> graph;  // shapes inferred
  // metadata_props with keys that the heads know ("model_info/labels" -> "person bicycle"), and
  // with the file's own keys behind "metadata_props/".
  std::map<std::string, std::string> rt_info;
  std::vector<std::string> notes;  // one line for each choice where the file leaves something open
  std::vector<std::string> files;  // further files with weights
};

// Reads the model and, from its folder, its external data. Floats of all types are f32 in the
// graph. Open dimensions of inputs get what `wanted` says; else the batch becomes 1 and a picture
// the size that the model's metadata say (Ultralytics' imgsz), and a note says so; others are
// refused. Stated dimensions stay. Nodes of a type that `custom` has are the user's. Operations
// that are not supported are collected and named in one Error{unsupported}. Throws Error{not_found,
// bad_model, unsupported}: `file: node "x" (Conv, opset 13): what is wrong`.
OnnxModel read_onnx(const std::string& path, const InputShapes& wanted = {},
                    const CustomLayers* custom = nullptr);
// Reads a model from memory as above, for fuzzing and tests. Refuses external data.
OnnxModel read_onnx(std::span<const std::byte> bytes, const std::string& where,
                    const InputShapes& wanted = {}, const CustomLayers* custom = nullptr);

}  // namespace clinfer
