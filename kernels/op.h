// Describes an operation to the rest of the engine: attributes as read, inference of shapes, a
// reference implementation in plain C++, and the kernel families.
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
struct CustomUse;     // custom/custom_layer.h

// Attributes of a layer, kept as the text of the model's file. Getters parse it. They throw
// Error{bad_model}, which names the attribute, if the text is malformed, or missing without a
// default.
class Attributes {
 public:
  void set(const std::string& name, std::string value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  const std::map<std::string, std::string>& all() const { return values_; }

  int64_t get_int(const std::string& name, std::optional<int64_t> otherwise = {}) const;
  double get_float(const std::string& name, std::optional<double> otherwise = {}) const;
  // Accepts true, false, 1, 0, yes and no.
  bool get_bool(const std::string& name, std::optional<bool> otherwise = {}) const;
  std::string get_string(const std::string& name, std::optional<std::string> otherwise = {}) const;
  std::vector<int64_t> get_ints(const std::string& name,
                                std::optional<std::vector<int64_t>> otherwise = {}) const;
  std::vector<double> get_floats(const std::string& name,
                                 std::optional<std::vector<double>> otherwise = {}) const;

 private:
  const std::string* find(const std::string& name, bool has_default) const;
  std::map<std::string, std::string> values_;
};

// One step of a tail: the chain of functions that a kernel applies to each output element v in
// registers before it stores the element.
//
//   step    function                     effect
//   ------  ---------------------------  ---------------------------------------------------------
//   unary   "relu", "clamp", "sigmoid",  v = f(v; alpha, beta); f is in scalar_functions.h
//           ...
//   binary  "add", "multiply", "prelu",  v = g(v, other), or g(other, v) if `swapped`. `other` is
//           ...                          input `operand` of the OpDesc, broadcast to the output's
//                                        shape as numpy does. An operand of bytes (u8, quantised)
//                                        has the value alpha * byte + beta. If `padded`, it may
//                                        have fewer channels (dimension 1) than the output; the
//                                        missing ones are 0.
//   keep    "keep"                       stores v to output 1, which has the shape of output 0;
//                                        the next step continues with v. At most once in a tail.
//   fork    "fork"                       stands before a keep: the steps between the two apply to
//                                        output 1 only; after the keep, v is the value at the fork.
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
  // TensorIterator and Loop have one body; If has two (then, else).
  std::vector<std::shared_ptr<const Body>> bodies = {};
  std::shared_ptr<const CustomUse> custom = {};  // or null
};

// An input as infer_shapes receives it, and an output as infer_shapes returns it.
struct ValueInfo {
  ElementType type = ElementType::f32;
  Shape shape;
  Tensor value = {};  // the constant value; empty if it is not constant
};

struct ShapeContext {
  const std::string& type;
  int opset;
  const Attributes& attributes;
  std::span<const ValueInfo> inputs;
  size_t output_count;  // as the model's file states it
  std::span<const std::shared_ptr<const Body>> bodies = {};
};

// A network inside an operation, and its connections to the operation's inputs and outputs.
// Immutable, so that copies of a graph share it. engine/graph implements it with a Graph.
struct Body {
  // Connects a parameter (or result) of the body with an input (or output) of the operation.
  // `sliced`: iteration i reads (or writes) the `part` elements from start + i * stride on along
  // `axis`; a negative stride takes the parts from the end.
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
  std::optional<size_t> counter;    // parameter that receives the iteration's number
  std::optional<size_t> condition;  // result that tells whether another iteration follows

  virtual ~Body() = default;
  virtual size_t node_count() const = 0;
  virtual size_t parameter_count() const = 0;
  virtual const ValueInfo& parameter(size_t i) const = 0;  // as the file states it
  virtual bool is_constant(size_t result) const = 0;  // true if the result depends on no parameter
  // Returns types and shapes of the results, with the values of constant ones.
  virtual std::vector<ValueInfo> infer_shapes(std::span<const ValueInfo> parameters) const = 0;
  virtual std::vector<Tensor> evaluate(std::span<const Tensor> parameters) const = 0;
};

// The memory layouts that an operation accepts and produces, for the layout pass.
enum class LayoutRule {
  // Activations of rank 3 to 5 are channels-last, others row-major. The family packs constants.
  image,
  // Accepts any strides. Outputs have the layout of the largest non-constant input of their rank.
  follow,
  // Accepts and produces dense row-major tensors.
  row_major,
  // Accepts any strides, produces dense row-major tensors.
  any_to_rows,
};

// Returns true if an operation with this rule produces tensors of this shape channels-last. With
// `follow`, tensors of rank 4 and 5 count as images; a tensor of rank 3 is more likely a sequence.
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
  std::vector<int> opsets;  // supported versions: N for version="opsetN"
  // Element types and shapes of the outputs. Throws Error{bad_model} when inputs or attributes are
  // impossible and Error{unsupported} when the shape would depend on values that are not constant.
  std::vector<ValueInfo> (*infer_shapes)(const ShapeContext&) = nullptr;
  // Reference implementation in plain C++, used as test oracle, for constant folding and for steps
  // on the host. Tensors are row-major; outputs are allocated with the inferred shapes. Ignores
  // layouts and tail. Floats arrive as f32, integers in the IR's type.
  void (*evaluate)(const OpDesc&, std::span<const Tensor> inputs,
                   std::span<Tensor> outputs) = nullptr;
  std::vector<const KernelFamily*> families = {};  // best first
  LayoutRule layout = LayoutRule::row_major;
  // Set for operations that move no data: returns the outputs as views of input 0, whose layout
  // OpDesc states. Returns nullopt if this layout allows no view; the caller then makes input 0
  // row-major and calls again, which must succeed. Null: not a view.
  std::optional<std::vector<TensorDesc>> (*view)(const OpDesc&) = nullptr;
  // Set for element functions: returns the operation as steps applied to its input `main`, for
  // fusing it into the producer of that input. PostOp::operand is an index into the OpDesc's inputs
  // or, from desc.inputs.size() on, into `constants`. Returns no steps if these inputs or
  // attributes cannot be expressed as a tail. Null: not an element function.
  TailSteps (*as_tail)(const OpDesc&, int main) = nullptr;
  // Set for operations that are computed by a combination of others, always or in some cases
  // (expand.h).
  void (*expand)(Expansion&) = nullptr;
  // Reason why the operation runs on the host: by design, or because all families reject it.
  std::string host_reason = {};
  // The number of output rows (or columns) depends on values: infer_shapes states the maximum, and
  // evaluate() replaces its outputs by tensors with the actual number. A kernel writes -1 into the
  // unused rows; no valid row starts with -1.
  bool rows_depend_on_data = false;
  // True for boxes and scores: float inputs that come from the application or a constant, and float
  // outputs, stay f32 (passes/precision/set_precision.cpp).
  bool keep_f32 = false;
  // True if kernels can read floats of one storage type (f16, f32) and write those of the other.
  bool converts = false;
};

// Returns the operation of this type and version, or nullptr. The registry is built from the words
// in kernels/meson.build.
const OpDef* find_op(const std::string& type, int opset);
const std::vector<OpDef>& op_registry();
// Returns the text of a source below kernels/ by its file name ("convolution.cl",
// "common/types.cl"). Throws std::out_of_range for an unknown name.
std::string_view kernel_source(std::string_view file);
// Returns the names of the common sources, in the order in which a program must include them.
const std::vector<std::string_view>& common_sources();

}  // namespace clinfer
