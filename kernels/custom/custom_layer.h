// Operations that a user adds to the engine, or replaces in it, by an OpenCL kernel and an XML
// description (CONFIG_FILE; engine/ir/custom_layers.h reads it). Plain data, and the one OpDef that
// all of them share.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/op.h"

namespace clinfer {

// The order of a tensor's dimensions in memory, the innermost last: batch, feature (channel), y, x.
enum class CustomFormat { bfyx, byxf, yxfb, fyxb, any };

// Returns for each dimension in memory, from the outermost, its place in B, F, Y, X. The format
// must not be `any`.
const std::array<size_t, 4>& memory_order(CustomFormat format);
std::string name_of(CustomFormat format);  // "BFYX"

// A <CustomLayer> as the file describes it, checked as far as possible without a model.
struct CustomLayer {
  // A macro, whose value is the layer's attribute or else the default.
  struct Define {
    std::string where;      // "file:line", for messages
    std::string name;       // may hold the value as well ("NUM 3")
    std::string attribute;  // "": none
    std::optional<std::string> otherwise;
    std::string type;  // "int", "float", "int[]", "float[]", or "" for unchanged text
  };
  struct Tensor {
    std::string where;
    size_t argument = 0;  // index of the kernel's argument
    bool is_output = false;
    size_t port = 0;
    CustomFormat format = CustomFormat::bfyx;
  };
  // An input that is constant, identified by the name of its layer.
  struct Data {
    std::string where, name;
    size_t argument = 0;
  };
  struct Source {
    std::string file, text;
  };

  std::string type;   // of the layers that it computes, as in the model's file
  std::string where;  // "file:line"
  std::string entry;  // name of the kernel
  std::vector<Source> sources;
  std::vector<Define> defines;
  std::vector<Tensor> tensors;
  std::vector<Data> data;
  std::string options;  // compiler options
  std::string where_sizes;
  std::vector<std::string> global{"B*F*Y*X"};  // expressions, at most 3
  std::vector<std::string> local;              // as many as `global`, or none: the engine chooses
  // The input whose B, F, Y and X expressions refer to; else output 0.
  std::optional<size_t> sizes_of_input;
};

// The use of a custom layer by a layer of a model.
struct CustomUse {
  // A tensor as the model's file states it.
  struct Stated {
    std::optional<Shape> shape;  // -1: an open dimension; empty: the file states no shape
    std::optional<ElementType> type;
  };
  std::shared_ptr<const CustomLayer> layer;
  std::string type;                 // as in the model's file
  const OpDef* built_in = nullptr;  // the engine's own operation of that type, or null
  std::vector<Stated> inputs, outputs;
  // Set by the pass place_custom_layers: inputs and outputs then have four dimensions in the order
  // of these formats (none is `any`).
  std::vector<CustomFormat> input_formats, output_formats;
  std::vector<size_t> data_ports;  // inputs for CustomLayer::data
  bool placed() const { return !output_formats.empty(); }
};

// Returns types and shapes of the outputs. If the inputs are as the file states them, so are the
// outputs. For other inputs, the built-in operation infers the outputs; without one, an output that
// is stated with the shape or the batch of an input keeps following it. An output without stated
// dimensions gets the shape of input 0. Throws Error{unsupported}.
std::vector<ValueInfo> custom_outputs(const CustomUse& use, const ShapeContext& context);

// Evaluates an expression of integers, B, F, Y, X, + - * / % and parentheses. Throws
// Error{bad_argument}, which tells what is wrong and where in the text.
int64_t evaluate_size(const std::string& expression, const std::array<int64_t, 4>& bfyx);
// Throws the same error for a text that is no expression, whatever the dimensions are.
void check_size(const std::string& expression);

// Returns the definition of all such nodes. Its one family rejects layers that the description does
// not fit, with the file and the line.
const OpDef& custom_op();

}  // namespace clinfer
