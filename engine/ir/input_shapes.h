// The shapes that a model's inputs get: what its file states, with open dimensions filled in and
// with what the user asks for instead.
#pragma once

#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/graph/graph.h"

namespace clinfer {

// An input as a file states it; -1 where a dimension is open.
struct StatedInput {
  std::string name;
  std::vector<std::string> tensor_names;
  std::string layout;  // "[N,C,H,W]", or "" where the file has none
  Shape shape;
};

// Attribute of a Parameter: its width was open, and is that of a line of text (text_among).
inline constexpr const char* kOpenWidth = "open_width";

// The input that `key` means: by its number, else by the name of its layer, else by a tensor's name.
// `inputs`: StatedInputs or Ports.
template <typename Inputs>
std::optional<size_t> find_input(const Inputs& inputs, const std::string& key) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error == std::errc() && end == key.data() + key.size() && index < inputs.size()) return index;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == key) return i;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const std::string& name : inputs[i].tensor_names)
      if (name == key) return i;
  return {};
}

// The graph's Parameters, in their order; "layout" is an attribute of theirs.
std::vector<StatedInput> stated_inputs(const Graph& graph);

// Fills in open dimensions: from `wanted`, else 1 for the batch; what is chosen here adds a line to
// `notes`.
// Dimensions that the file states stay. Throws Error{unsupported} for another dimension that is
// open, and says how to set it; Error{bad_argument} where `wanted` names no input or has another
// rank.
std::vector<Shape> fill_open(std::span<const StatedInput> inputs, const InputShapes& wanted,
                             std::vector<std::string>& notes);

// The input, if any, that fill_open() gives the width of a line of text.
std::optional<size_t> text_among(std::span<const StatedInput> inputs, const InputShapes& wanted);

// `shapes`, which have no open dimensions, with what is wanted in place of what the file states.
// Throws Error{bad_argument} as above, also for a size where no input takes a picture.
std::vector<Shape> with_wanted(std::span<const StatedInput> inputs, std::vector<Shape> shapes,
                               const InputShapes& wanted);

}  // namespace clinfer
