// Reads OpenVINO IR v10 and v11 into a Graph. The file is untrusted: every reference, size and
// offset is checked, and nothing is repaired.
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
  // With shapes, inferred and checked against those that the IR states.
  std::unique_ptr<Graph> graph;
  std::map<std::string, std::string> rt_info;  // values of leaves, keys joined by '/'
  int version = 0;                             // 10 or 11
  std::vector<std::string>
      notes;  // what the reader chose where the file leaves it open, one line each
};

// Reads `<stem>.bin` beside the xml, constant by constant. In the graph f16 and f64 tensors become
// f32 (constants are converted), u1 and u4 become u8, i4 becomes i8, nf4 becomes f32. Unsupported
// layers are collected and named in one Error{unsupported}. Open dimensions of a Parameter are set
// from `wanted`; an open batch is otherwise set to 1, with a note. A Parameter keeps what its layer
// states as attributes: "element_type" and, if the file has it, "layout" ("[N,C,H,W]"). Layers of a
// type in `custom` are the user's, even if the engine knows the type. Throws Error{not_found,
// bad_model, unsupported}: `file: layer "x" (Type, opset1, id 7): what is wrong`.
IrModel read_ir(const std::string& xml_path, const InputShapes& wanted = {},
                const CustomLayers* custom = nullptr);
// Returns `<stem>.bin`.
std::string weights_path(const std::string& xml_path);
// Reads a model from memory (fuzzing, tests); copies `weights`.
IrModel read_ir(std::string_view xml, std::span<const std::byte> weights, const std::string& where,
                const InputShapes& wanted = {}, const CustomLayers* custom = nullptr);

}  // namespace clinfer
