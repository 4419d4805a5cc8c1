// Generates the OpenCL C of a tail, and applies a tail in plain C++.
#include "kernels/tail.h"

#include <algorithm>
#include <cstdio>

#include "kernels/scalar_functions.h"
#include "kernels/storage.h"

namespace clinfer {

namespace {

constexpr int64_t kChannelPadding = 16;  // the widest vector that a kernel loads

// Size and stride of an operand along logical dimension `dim` of the output, aligned as in numpy;
// the stride is 0 if the operand is broadcast.
struct Dim {
  int64_t size = 1, stride = 0;
};

Dim dim_of(const TensorDesc& operand, size_t out_rank, int dim) {
  const int at = dim - static_cast<int>(out_rank - operand.shape.size());
  if (dim < 0 || at < 0) return {};
  return {operand.shape[at], operand.shape[at] == 1 ? 0 : operand.strides[at]};
}

// Returns the dimensions in the order of the kernels' strides: n, h, w, c.
std::array<int, 4> walked(const TailAxes& axes) { return {axes.n, axes.h, axes.w, axes.c}; }

// A constant operand packed as f32 in the memory order n, h, w, c, with channels padded to whole
// vectors.
struct PackedConstant {
  std::array<int, 4> strides{};
  std::vector<std::byte> bytes;
};

PackedConstant pack_constant(const Tensor& value, size_t out_rank, const TailAxes& axes) {
  TensorDesc desc = TensorDesc::row_major(value.type(), value.shape());
  std::array<Dim, 4> dims;
  for (size_t i = 0; i < 4; ++i) dims[i] = dim_of(desc, out_rank, walked(axes)[i]);
  const std::vector<float> values = value.to_floats();
  const int64_t channels =
      dims[3].size == 1 ? 1
                        : (dims[3].size + kChannelPadding - 1) / kChannelPadding * kChannelPadding;
  PackedConstant packed;
  int64_t stride = channels;
  packed.strides[3] = dims[3].size == 1 ? 0 : 1;
  for (size_t i : {2, 1, 0}) {
    packed.strides[i] = dims[i].size == 1 ? 0 : static_cast<int>(stride);
    stride *= dims[i].size;
  }
  std::vector<float> out(static_cast<size_t>(stride), 0.f);
  size_t at = 0;
  for (int64_t n = 0; n < dims[0].size; ++n)
    for (int64_t h = 0; h < dims[1].size; ++h)
      for (int64_t w = 0; w < dims[2].size; ++w, at += channels)
        for (int64_t c = 0; c < dims[3].size; ++c)
          out[at + c] = values[n * dims[0].stride + h * dims[1].stride + w * dims[2].stride +
                               c * dims[3].stride];
  packed.bytes.resize(out.size() * sizeof(float));
  std::memcpy(packed.bytes.data(), out.data(), packed.bytes.size());
  return packed;
}

// Returns the strides of a tensor in the kernels' order.
std::array<int, 4> walked_strides(const TensorDesc& tensor, size_t out_rank, const TailAxes& axes) {
  std::array<int, 4> strides{};
  for (size_t i = 0; i < 4; ++i)
    strides[i] = static_cast<int>(dim_of(tensor, out_rank, walked(axes)[i]).stride);
  return strides;
}

// Returns whether vectors at c are aligned to their size, so that each is one access on GPUs as
// well. The memory itself has a larger alignment. `offset`: of the tensor; 0 for constants.
bool aligned(const OpDesc& desc, int64_t offset, int vector, const TailAxes& axes,
             const std::array<int, 4>& strides) {
  return axes.c >= 0 && desc.outputs[0].shape[axes.c] % vector == 0 && offset % vector == 0 &&
         std::all_of(strides.begin(), strides.begin() + 3,
                     [&](int stride) { return stride % vector == 0; });
}

std::string operand_name(size_t i) { return "tail" + std::to_string(i); }

// Returns the index of position n, h, w, c in a tensor with run-time strides.
std::string address_text(const std::string& name) {
  const std::string by = name + "_strides";
  return "AT(" + name + ") + n * " + by + ".s0 + h * " + by + ".s1 + w * " + by + ".s2 + c * " +
         by + ".s3";
}

std::string reject_kept(const OpDesc& desc, int vector, const TailAxes& axes) {
  if (desc.outputs.size() != 2) return "keeps a value beside other outputs";
  const TensorDesc& kept = desc.outputs[1];
  if (!is_float(kept.type) || kept.shape != desc.outputs[0].shape)
    return "what is kept is not as large as the output, or no float";
  const auto order = walked(axes);
  for (size_t d = 0; d < kept.shape.size(); ++d)
    if (kept.shape[d] != 1 &&
        std::find(order.begin(), order.end(), static_cast<int>(d)) == order.end())
      return "what is kept varies along dimension " + std::to_string(d);
  const Dim channel = dim_of(kept, kept.shape.size(), axes.c);
  if (vector > 1 && channel.size != 1 && channel.stride != 1)
    return "the channels of what is kept are not adjacent in memory";
  return "";
}

}  // namespace

int64_t count_operands(const OpDesc& desc) {
  return std::count_if(desc.tail.begin(), desc.tail.end(),
                       [](const PostOp& op) { return !op.is_unary(); });
}

int64_t count_activations(const OpDesc& desc) {
  return std::count_if(desc.tail.begin(), desc.tail.end(), [&](const PostOp& op) {
    return !op.is_unary() && desc.constants[static_cast<size_t>(op.operand)].empty();
  });
}

std::string reject_tail(const OpDesc& desc, int vector, const TailAxes& axes) {
  const size_t rank = desc.outputs[0].shape.size();
  for (const PostOp& op : desc.tail) {
    if (op.function == "fork") continue;
    if (op.function == "keep") {
      if (std::string why = reject_kept(desc, vector, axes); !why.empty()) return why;
      continue;
    }
    if (op.is_unary()) {
      if (!find_unary(op.function)) return "no element function " + op.function;
      continue;
    }
    if (!find_binary(op.function)) return "no element function " + op.function;
    const TensorDesc& operand = desc.inputs[op.operand];
    if (operand.shape.size() > rank) return "a tail operand has more dimensions than the output";
    if (!is_float(operand.type) && !is_quantized(operand.type))
      return "a tail operand is neither of a float type nor quantised";
    for (size_t d = 0; d < rank; ++d) {
      const Dim dim = dim_of(operand, rank, static_cast<int>(d));
      const bool padded = op.padded && d == 1 && dim.size < desc.outputs[0].shape[d];
      if (dim.size != 1 && dim.size != desc.outputs[0].shape[d] && !padded)
        return "a tail operand would widen the output";
      const auto order = walked(axes);
      if (dim.size != 1 &&
          std::find(order.begin(), order.end(), static_cast<int>(d)) == order.end())
        return "a tail operand varies along dimension " + std::to_string(d);
    }
    const Dim channel = dim_of(operand, rank, axes.c);
    if (desc.constants[op.operand].empty() && vector > 1 && channel.size != 1 &&
        channel.stride != 1)
      return "a tail operand's channels are not adjacent in memory";
  }
  return "";
}

bool operands_aligned(const OpDesc& desc, int vector, const TailAxes& axes) {
  return std::all_of(desc.tail.begin(), desc.tail.end(), [&](const PostOp& op) {
    if (op.is_unary() || !desc.constants[op.operand].empty()) return true;
    const TensorDesc& operand = desc.inputs[op.operand];
    return aligned(desc, operand.offset, vector, axes,
                   walked_strides(operand, desc.outputs[0].shape.size(), axes));
  });
}

std::string step_text(const PostOp& op, const std::string& type) {
  if (op.is_unary())
    return "  x = " + with_parameters(find_unary(op.function)->opencl, op.alpha, op.beta) + ";\n";
  const std::string swap = "  const " + type + " other = x;\n  x = y;\n  y = other;\n";
  return (op.swapped ? swap : "") + "  x = " + std::string(find_binary(op.function)->opencl) +
         ";\n";
}

namespace {

// Writes the function for a tail, step by step, and the arguments that it needs.
class TailWriter {
 public:
  TailWriter(const OpDesc& desc, int vector, const TailAxes& axes, KernelPlan& plan)
      : desc_(desc), vector_(vector), axes_(axes), plan_(plan) {}

  void add(const PostOp& op) {
    if (op.function == "fork") {
      forked_ = true;
      body_ += "  const " + float_v_ + " trunk = x;\n";
    } else if (op.function == "keep") {
      keep();
    } else if (op.is_unary()) {
      body_ += step_text(op, float_v_);
    } else {
      const std::string name = operand_name(operands_++);
      const Tensor& constant = desc_.constants[op.operand];
      body_ += "  {\n    " + float_v_ + " y;\n";
      if (!constant.empty() && constant.elements() == 1) {
        pass("float", name, constant.to_floats()[0]);
        body_ += "    y = (" + float_v_ + ")(" + name + ");\n";
      } else {
        load_operand(op, name);
      }
      body_ += step_text(op, float_v_) + "  }\n";
    }
  }

  Tail finish() {
    tail_.prologue = "#define TAIL_PARAMS " + params_ + "\n#define TAIL_ARGS " + args_ + "\n";
    if (stores_) tail_.prologue += "#define TAIL_STORES 1\n";
    if (desc_.tail.empty()) {
      tail_.prologue += "#define TAIL(v, n, h, w, c, left) (v)\n";
    } else {
      tail_.prologue +=
          "#define TAIL(v, n, h, w, c, left) FN(tail)(v, n, h, w, c, left TAIL_ARGS)\n";
      tail_.prologue += "static " + float_v_ + " FN(tail)(" + float_v_ +
                        " x, int n, int h, int w, int c, int left TAIL_PARAMS) {\n" + body_ +
                        "  return x;\n}\n";
    }
    if (!ahead_.empty())
      tail_.ahead =
          "#define TAIL_AHEAD(n, h, w, c, count) FN(tail_ahead)(n, h, w, c, count TAIL_ARGS)\n"
          "static void FN(tail_ahead)(int n, int h, int w, int c, int count TAIL_PARAMS) {\n" +
          ahead_ + "}\n";
    return std::move(tail_);
  }

 private:
  template <typename T>
  void pass(const std::string& type, const std::string& what, const T& value) {
    tail_.arguments.push_back(Argument::value(value));
    params_ += ", const " + type + " " + what;
    args_ += ", " + what;
  }
  void pass_tensor(const char* direction, const std::string& type, const std::string& name,
                   const Argument& argument) {
    tail_.arguments.push_back(argument);
    params_ += std::string(", ") + direction + "(" + type + ", " + name + ")";
    args_ += ", " + name + "_base, " + name + "_offset";
  }

  // Stores x in the second output.
  void keep() {
    const TensorDesc& kept = desc_.outputs[1];
    const std::string type = kept.type == ElementType::f16 ? "half" : "float";
    const std::array<int, 4> strides = walked_strides(kept, kept.shape.size(), axes_);
    pass_tensor("OUT", type, "kept", Argument::output(1, size_of(kept.type)));
    pass("int4", "kept_strides", strides);
    stores_ = true;
    body_ += "  {\n    __global " + type + "* p = " + address_text("kept") + ";\n    ";
    if (aligned(desc_, kept.offset, vector_, axes_, strides))
      body_ += "if (left >= " + v_ + ") {\n      STOREV_ALIGNED(" + type + ", " + v_ +
               ", x, p);\n    } else ";
    body_ += "{\n      STORE_FIRST(" + type + ", " + v_ + ", x, p, left)\n    }\n  }\n";
    if (forked_) body_ += "  x = trunk;\n";
  }

  // Loads a vector of an operand into y.
  void load_operand(const PostOp& op, const std::string& name) {
    const Tensor& constant = desc_.constants[op.operand];
    const TensorDesc& operand = desc_.inputs[op.operand];
    const size_t rank = desc_.outputs[0].shape.size();
    std::array<int, 4> strides{};
    std::string type = "float";
    if (!constant.empty()) {
      PackedConstant packed = pack_constant(constant, rank, axes_);
      strides = packed.strides;
      pass_tensor("IN", type, name, Argument::packed(plan_.packed.size(), sizeof(float)));
      plan_.packed.push_back([bytes = std::move(packed.bytes)] { return bytes; });
    } else {
      type = storage_name(operand.type);
      strides = walked_strides(operand, rank, axes_);
      pass_tensor("IN", type, name, Argument::input(op.operand, size_of(operand.type)));
    }
    std::string at = "AT(" + name + ") + c";  // Operands by channel need no strides.
    if (constant.empty() || strides != std::array<int, 4>{0, 0, 0, 1}) {
      pass("int4", name + "_strides", strides);
      at = address_text(name);
    }
    if (constant.empty() && !op.padded)
      ahead_ += "  for (int i = 0; i < count; i += 128 / sizeof(" + type +
                "))\n    asm volatile(\"prefetch.global.L2 [%0];\" ::\"l\"(" + at + " + i));\n";
    const bool quantized = constant.empty() && is_quantized(operand.type);
    if (quantized) pass("float2", name + "_scale", std::array<float, 2>{op.alpha, op.beta});
    std::string scaled = quantized ? " * " + name + "_scale.s0" : "";
    if (quantized && op.beta != 0) scaled += " + " + name + "_scale.s1";
    const int64_t offset = constant.empty() ? operand.offset : 0;
    const std::string loadv =
        aligned(desc_, offset, vector_, axes_, strides) ? "LOADV_ALIGNED(" : "LOADV(";
    const auto load = [&](const std::string& width, const char* from) {
      return loadv + type + ", " + width + ", " + from + ")" + scaled;
    };
    body_ += "    __global const " + type + "* p = " + at + ";\n";
    std::string left = "left";
    if (op.padded) {
      pass("int", name + "_channels", static_cast<int>(dim_of(operand, rank, axes_.c).size));
      left = "here";
      body_ += "    const int here = min(left, " + name + "_channels - c);\n";
    }
    // With vectors, channel strides are 0 or 1; the value is known here, so the kernel need not
    // test it.
    if (vector_ == 1 || strides[3] == 0) {
      body_ += "    y = (" + float_v_ + ")(" + (op.padded ? "here < 1 ? 0.0f : " : "") +
               load("1", "p") + ");\n";
    } else if (!constant.empty()) {
      body_ += "    y = " + load(v_, "p") + ";\n";
    } else {
      body_ += "    if (" + left + " >= " + v_ + ") {\n      y = " + load(v_, "p") +
               ";\n    } else {\n" + "      float part[" + v_ + "];\n      for (int i = 0; i < " +
               v_ + "; ++i) part[i] = i < " + left + " ? " + load("1", "p + i") +
               " : 0.0f;\n      y = LOADV_PRIVATE(" + v_ + ", part);\n    }\n";
    }
  }

  const OpDesc& desc_;
  const int vector_;
  const TailAxes& axes_;
  KernelPlan& plan_;
  const std::string v_ = std::to_string(vector_), float_v_ = vector_ == 1 ? "float" : "float" + v_;
  Tail tail_;
  std::string params_, args_, body_, ahead_;
  size_t operands_ = 0;
  bool forked_ = false, stores_ = false;
};

}  // namespace

Tail make_tail(const OpDesc& desc, int vector, const TailAxes& axes, KernelPlan& plan) {
  TailWriter writer(desc, vector, axes, plan);
  for (const PostOp& op : desc.tail) writer.add(op);
  return writer.finish();
}

void add_tail(const OpDesc& desc, int vector, const TailAxes& axes, KernelSpec& spec,
              KernelPlan& plan) {
  const Tail tail = make_tail(desc, vector, axes, plan);
  spec.prologue += tail.prologue;
  spec.arguments.insert(spec.arguments.end(), tail.arguments.begin(), tail.arguments.end());
}

bool quantizes(const std::vector<PostOp>& tail) {
  return !tail.empty() &&
         (tail.back().function == "to_byte" || tail.back().function == "store_f8e4m3");
}

bool keeps(const std::vector<PostOp>& tail) {
  return std::any_of(tail.begin(), tail.end(),
                     [](const PostOp& op) { return op.function == "keep"; });
}

void apply_tail(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  if (desc.tail.empty()) return;
  Tensor& output = outputs[0];
  float* values = output.mutable_data<float>();
  const Shape& shape = output.shape();
  const size_t rank = shape.size();
  std::vector<float> trunk;
  for (const PostOp& op : desc.tail) {
    if (op.function == "fork") {
      trunk.assign(values, values + output.elements());
      continue;
    }
    if (op.function == "keep") {
      outputs[1] = output.convert(ElementType::f32);
      std::copy(trunk.begin(), trunk.end(), values);
      continue;
    }
    if (op.is_unary()) {
      const UnaryFunction* f = find_unary(op.function);
      for (int64_t i = 0; i < output.elements(); ++i)
        values[i] = f->apply(values[i], op.alpha, op.beta);
      continue;
    }
    const BinaryFunction* f = find_binary(op.function);
    std::vector<float> other = inputs[op.operand].to_floats();
    if (is_quantized(inputs[op.operand].type()))
      for (float& y : other) y = op.alpha * y + op.beta;
    const TensorDesc operand =
        TensorDesc::row_major(inputs[op.operand].type(), inputs[op.operand].shape());
    Shape index(rank, 0);
    for (int64_t i = 0; i < output.elements(); ++i) {
      int64_t at = 0;
      bool inside = true;
      for (size_t d = 0; d < rank; ++d) {
        const Dim dim = dim_of(operand, rank, static_cast<int>(d));
        at += index[d] * dim.stride;
        inside &= dim.size == 1 || index[d] < dim.size;
      }
      const float y = inside ? other[at] : 0;
      values[i] = op.swapped ? f->apply(y, values[i]) : f->apply(values[i], y);
      for (size_t d = rank; d-- > 0;) {
        if (++index[d] < shape[d]) break;
        index[d] = 0;
      }
    }
  }
  if (quantizes(desc.tail)) output = output.convert(desc.outputs[0].type);
}

}  // namespace clinfer
