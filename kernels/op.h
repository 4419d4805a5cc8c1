// What an operation is to the rest of the engine: attributes as read, shapes, a plain reference,
// and its kernels.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/tensor.h"

namespace clinfer {

class Expansion;      // expand.h
struct KernelFamily;  // kernel.h
struct Body;          // below

// Attributes of a layer, kept as the text the IR holds. Getters parse; a malformed or missing one
// (without a default) throws Error{bad_model} that names the attribute.
class Attributes {
 public:
  void set(const std::string& name, std::string value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  const std::map<std::string, std::string>& all() const { return values_; }

  int64_t get_int(const std::string& name, std::optional<int64_t> otherwise = {}) const;
  double get_float(const std::string& name, std::optional<double> otherwise = {}) const;
  bool get_bool(const std::string& name,
                std::optional<bool> otherwise = {}) const;  // true/false/1/0/yes/no
  std::string get_string(const std::string& name, std::optional<std::string> otherwise = {}) const;
  std::vector<int64_t> get_ints(const std::string& name,
                                std::optional<std::vector<int64_t>> otherwise = {}) const;
  std::vector<double> get_floats(const std::string& name,
                                 std::optional<std::vector<double>> otherwise = {}) const;

 private:
  const std::string* find(const std::string& name, bool has_default) const;
  std::map<std::string, std::string> values_;
};

// One step of the chain that a kernel applies to each output element in its registers before it
// stores it. unary:  v = f(v; alpha, beta), f by name from scalar_functions.h ("relu", "clamp",
// "sigmoid", ...) binary: v = g(v, other) by name ("add", "multiply", "prelu", ...); `other` is
// input number `operand` of the OpDesc,
//         broadcast to the output's shape as numpy does; swapped: v = g(other, v). An operand of
//         bytes (u8, quantised) counts as alpha * byte + beta. padded: the operand may have fewer
//         channels (dimension 1) than the output; it is 0 behind them.
// "keep":  writes v to output 1, of the shape of output 0, and goes on with it. Once.
// "fork":  in front of keep: what lies between is for output 1 alone, behind keep v is as it was.
struct PostOp {
  std::string function;
  float alpha = 0, beta = 0;
  int operand = -1;  // -1: unary
  bool swapped = false;
  bool padded = false;
  bool is_unary() const { return operand < 0; }
};

// One operation to be computed. inputs/outputs carry memory layouts; constants[i] is the value of
// input i where it is constant, else an empty Tensor. Inputs number own_inputs and up belong to the
// tail.
struct OpDesc {
  std::string name;  // the layer's name, for messages
  std::string type;  // the layer's type as the current IR spells it ("ReLU", "Convolution")
  int opset = 1;     // version of the operation
  Attributes attributes;
  std::vector<TensorDesc> inputs;
  std::vector<Tensor> constants;  // as many as inputs
  std::vector<TensorDesc> outputs;
  std::vector<PostOp> tail;
  size_t own_inputs = 0;
  std::vector<std::shared_ptr<const Body>> bodies =
      {};  // of TensorIterator, Loop (one), If (then, else)
};

// What infer_shapes sees of an input, and says of an output.
struct ValueInfo {
  ElementType type = ElementType::f32;
  Shape shape;
  Tensor value = {};  // of an input: its constant value, or empty
};

struct ShapeContext {
  const std::string& type;
  int opset;
  const Attributes& attributes;
  std::span<const ValueInfo> inputs;
  size_t output_count;  // as the IR states it
  std::span<const std::shared_ptr<const Body>> bodies = {};
};

// A network inside an operation, and how it is tied to the operation's inputs and outputs.
// Immutable, so that copies of a graph share it; engine/graph has the one that holds a Graph.
struct Body {
  // A parameter or result of the body and an input or output of the operation. `sliced`: iteration
  // i sees (writes) the part of `part` elements at start + i * stride along `axis`; with a negative
  // stride parts come from the end.
  struct Port {
    size_t outer = 0, inner = 0;
    bool sliced = false;
    int64_t axis = 0, start = 0, end = -1, stride = 1, part = 1;
  };
  struct BackEdge {
    size_t result = 0, parameter = 0;  // the next iteration's parameter is this one's result
  };
  std::vector<Port> inputs, outputs;
  std::vector<BackEdge> back_edges;
  std::optional<size_t> counter;    // parameter that is the number of the iteration
  std::optional<size_t> condition;  // result that says whether to go on

  virtual ~Body() = default;
  virtual size_t node_count() const = 0;
  virtual size_t parameter_count() const = 0;
  virtual const ValueInfo& parameter(size_t i) const = 0;  // as the file states it
  virtual bool is_constant(size_t result) const = 0;       // no parameter leads to it
  // Types and shapes of the results; with values where these are constant.
  virtual std::vector<ValueInfo> infer_shapes(std::span<const ValueInfo> parameters) const = 0;
  virtual std::vector<Tensor> evaluate(std::span<const Tensor> parameters) const = 0;
};

// How an operation's outputs relate to memory, for the layout pass.
enum class LayoutRule {
  image,      // rank-3/4/5 tensors channels-last (activations; constants are packed by the
              // family), others row-major
  follow,     // takes any strides; outputs are laid out like the largest non-constant input of the
              // same rank
  row_major,  // takes and gives dense row-major
  any_to_rows,  // takes any strides, gives dense row-major
};

// Whether an operation of this rule gives tensors of this shape with their channels last. What only
// follows others is an image if its rank is 4 or 5, of rank 3 it rather is a sequence.
inline bool has_channels_last(LayoutRule rule, const Shape& shape) {
  const bool image = shape.size() == 4 || shape.size() == 5;
  return rule == LayoutRule::image ? image || shape.size() == 3
                                   : rule == LayoutRule::follow && image;
}

struct TailSteps {
  std::vector<PostOp> steps;
  std::vector<Tensor> constants;
};

struct OpDef {
  std::string type;         // as the current IR spells it
  std::vector<int> opsets;  // versions understood: N where the layer says version="opsetN"
  // Element types and shapes of the outputs. Throws Error{bad_model} when inputs or attributes are
  // impossible and Error{unsupported} when the shape would depend on values that are not constant.
  std::vector<ValueInfo> (*infer_shapes)(const ShapeContext&) = nullptr;
  // Plain C++: test oracle, constant folder, host fall-back. Tensors are row-major; outputs are
  // allocated to the inferred shapes. Ignores layouts and tail. Floats arrive as f32, integers as
  // in the IR.
  void (*evaluate)(const OpDesc&, std::span<const Tensor> inputs,
                   std::span<Tensor> outputs) = nullptr;
  std::vector<const KernelFamily*> families = {};  // best first
  LayoutRule layout = LayoutRule::row_major;
  // Operations that only rename elements: outputs as views of input 0, given its layout; nullopt
  // where that is impossible for this layout (then input 0 is made row-major and asked again, after
  // which it must succeed). Null: not a view.
  std::optional<std::vector<TensorDesc>> (*view)(const OpDesc&) = nullptr;
  // Element functions: the operation as steps applied to its input `main`, for fusing it into the
  // producer of that input. Operands of the steps number the OpDesc's inputs, from
  // desc.inputs.size() on `constants`. No steps: cannot be expressed so. Null: not an element
  // function.
  TailSteps (*as_tail)(const OpDesc&, int main) = nullptr;
  // Set for operations that are run as a combination of others, always or in some cases (expand.h).
  void (*expand)(Expansion&) = nullptr;
  // Set for operations that run on the host, by design or where all families refuse; says why.
  std::string host_reason = {};
  // How many rows (or columns) there are depends on values: infer_shapes states the most, and
  // evaluate() replaces its outputs by tensors of the shape that came out. A kernel fills up the
  // rows behind them with -1, which no row of theirs starts with.
  bool upper_bounds = false;
  // Boxes and scores: floats that the application or a constant gives, and those that come out,
  // stay f32 (passes/set_precision.cpp).
  bool stays_wide = false;
  // Kernels read floats of one storage type and write the other as well.
  bool converts = false;
};

// All operations: built from the words in kernels/meson.build. Throws nothing; nullptr when
// unknown.
const OpDef* find_op(const std::string& type, int opset);
const std::vector<OpDef>& op_registry();
// Text of a source below kernels/ by its file name ("convolution.cl", "common/types.cl"); throws
// std::out_of_range.
std::string_view kernel_source(std::string_view file);
const std::vector<std::string_view>&
common_sources();  // names, in the order in which they are to be included

}  // namespace clinfer
