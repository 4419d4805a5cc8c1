// OpenVINO IR v10 and v11 to Graph. The file is untrusted: every reference, size and offset is
// checked, nothing is repaired.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/graph/graph.h"
#include "engine/ir/custom_layers.h"

namespace clinfer {

struct IrModel {
  std::unique_ptr<Graph> graph;  // shapes inferred and checked against what the IR states
  std::map<std::string, std::string> rt_info;  // leaf values, keys joined by '/'
  int version = 0;                             // 10 or 11
  std::vector<std::string>
      notes;  // one line each: what the reader chose where the file leaves it open
};

// Reads `<stem>.bin` beside the xml, constant by constant. f16 tensors become f32 in the graph
// (constants are converted); f64 likewise; u1 and u4 become u8, i4 becomes i8, nf4 f32. Unsupported
// layers are collected and named in one Error{unsupported}. Open dimensions of a Parameter get what
// `wanted` says, an open batch else becomes 1 (a note says so). A Parameter keeps what its layer
// states as attributes: "element_type" and, where the file has it, "layout" ("[N,C,H,W]"). Throws
// Error{not_found, bad_model, unsupported}: `file: layer "x" (Type, opset1, id 7): what is wrong`.
// Layers of a type that `custom` has are the user's, whether the engine knows the type or not.
IrModel read_ir(const std::string& xml_path, const InputShapes& wanted = {},
                const CustomLayers* custom = nullptr);
// `<stem>.bin`.
std::string weights_path(const std::string& xml_path);
// Reads a model from memory (fuzzing, tests); copies `weights`.
IrModel read_ir(std::string_view xml, std::span<const std::byte> weights, const std::string& where,
                const InputShapes& wanted = {}, const CustomLayers* custom = nullptr);

}  // namespace clinfer
