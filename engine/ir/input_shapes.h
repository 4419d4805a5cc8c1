// Determines the shapes of a model's inputs: those that the file states, with open dimensions
// filled in, or those that the user wants instead.
#pragma once

#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/graph/graph.h"

namespace clinfer {

// An input as a file states it; open dimensions are -1.
struct StatedInput {
  std::string name;
  std::vector<std::string> tensor_names;
  std::string layout;  // "[N,C,H,W]", or "" if the file states none
  Shape shape;
};

// Attribute of a Parameter whose width was open and was set to that of a line of text
// (text_among()).
inline constexpr const char* kOpenWidth = "open_width";

// Attribute of a Parameter whose shape the file leaves open: that shape, "-1,3,-1,-1".
inline constexpr const char* kOpenShape = "open_shape";
// Sets this attribute, unless no dimension of `stated` is open.
void note_open_shape(Node& parameter, const Shape& stated);

// Finds the input that `key` means: by its number, else by the name of its layer, else by a
// tensor's name. `inputs`: StatedInputs or Ports.
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

// Returns the graph's Parameters in their order; "layout" is an attribute of theirs.
std::vector<StatedInput> stated_inputs(const Graph& graph);

// Fills in open dimensions: from `wanted`, else 1 for the batch; adds a line to `notes` for each
// choice made here. Dimensions that the file states stay. Throws Error{unsupported}, with how to
// set it, for another open dimension, and Error{bad_argument} if `wanted` names no input or has
// another rank.
std::vector<Shape> fill_open(std::span<const StatedInput> inputs, const InputShapes& wanted,
                             std::vector<std::string>& notes);

// Returns the input, if any, that fill_open() gives the width of a line of text.
std::optional<size_t> text_among(std::span<const StatedInput> inputs, const InputShapes& wanted);

// Returns `shapes`, which have no open dimensions, with the wanted shapes in place of the file's.
// Throws Error{bad_argument} as above, and for a size if no input takes a picture.
std::vector<Shape> with_wanted(std::span<const StatedInput> inputs, std::vector<Shape> shapes,
                               const InputShapes& wanted);

}  // namespace clinfer
