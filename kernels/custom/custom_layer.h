// Operations that a user adds to the engine, or takes the place of, by an OpenCL kernel and an XML
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

// One <CustomLayer>, as the file describes it and checked as far as that can be without a model.
struct CustomLayer {
  // A macro: the value of the layer's attribute, else the default.
  struct Define {
    std::string where;      // "file:line", for messages
    std::string name;       // may hold the value as well ("NUM 3")
    std::string attribute;  // "": none
    std::optional<std::string> otherwise;
    std::string type;  // "int", "float", "int[]", "float[]" or "": as the text is
  };
  struct Tensor {
    std::string where;
    size_t argument = 0;  // place among the kernel's arguments
    bool is_output = false;
    size_t port = 0;
    CustomFormat format = CustomFormat::bfyx;
  };
  // An input that is constant, by the name of its layer.
  struct Data {
    std::string where, name;
    size_t argument = 0;
  };
  struct Source {
    std::string file, text;
  };

  std::string type;   // of the layers that it computes, as the model's file spells it
  std::string where;  // "file:line"
  std::string entry;  // name of the kernel
  std::vector<Source> sources;
  std::vector<Define> defines;
  std::vector<Tensor> tensors;
  std::vector<Data> data;
  std::string options;  // of the compiler
  std::string where_sizes;
  std::vector<std::string> global{"B*F*Y*X"};  // expressions, at most 3
  std::vector<std::string> local;              // as many, or none: the engine's choice
  std::optional<size_t> sizes_of_input;        // whose B, F, Y and X; else output 0
};

// A layer of a model that a custom layer computes.
struct CustomUse {
  // A tensor as the model's file states it.
  struct Stated {
    std::optional<Shape> shape;  // -1: an open dimension; none: the file states no dimensions
    std::optional<ElementType> type;
  };
  std::shared_ptr<const CustomLayer> layer;
  std::string type;                 // as the model's file has it
  const OpDef* built_in = nullptr;  // the engine's own operation of that type, or null
  std::vector<Stated> inputs, outputs;
  // True after the pass place_custom_layers: inputs and outputs then have four dimensions in the
  // order of these formats (not `any`).
  std::vector<CustomFormat> input_formats, output_formats;
  std::vector<size_t> data_ports;  // inputs that CustomLayer::data stand for
  bool placed() const { return !output_formats.empty(); }
};

// Types and shapes of the outputs: those that the file states for the inputs that it states. For
// others the built-in operation says it; else an output of the shape of an input follows that, and
// one of its batch follows that. Without stated dimensions, the shape of input 0. Throws
// Error{unsupported}.
std::vector<ValueInfo> custom_outputs(const CustomUse& use, const ShapeContext& context);

// The value of an expression of integers, B, F, Y, X, + - * / % and parentheses. Throws
// Error{bad_argument} that says what is wrong and where in the text.
int64_t evaluate_size(const std::string& expression, const std::array<int64_t, 4>& bfyx);
// Throws the same for a text that is no expression, whatever the dimensions are.
void check_size(const std::string& expression);

// The definition of all such nodes. Its one family rejects what the description does not fit, with
// the file and the line.
const OpDef& custom_op();

}  // namespace clinfer
