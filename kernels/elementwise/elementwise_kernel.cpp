// The kernel family of the element functions: merges loops, chooses vectors, and generates the
// function's OpenCL C.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>

#include "kernels/arguments.h"
#include "kernels/convolution/tiles/convolution_tile.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/kernel.h"
#include "kernels/registers.h"
#include "kernels/scalar_functions.h"
#include "kernels/storage.h"
#include "kernels/tail.h"

namespace clinfer {

namespace {

constexpr size_t kMostDims = 8, kMostOperands = 16;

struct Operand {
  TensorDesc view;   // broadcast to the output's shape
  Tensor constant;   // empty for other operands
  size_t input = 0;  // index of the OpDesc's input
  // The scale of a quantised operand of the tail, whose bytes represent scale[0] * byte + scale[1].
  std::optional<std::array<float, 2>> scale{};
};

// One loop over the output, and the steps of each operand, in elements.
struct Loop {
  int64_t size = 1, out = 0;
  std::vector<int64_t> in;
};

// The kernel's loops and operands, from which the text is generated.
struct Program {
  ElementFunction function;
  std::vector<Operand> operands;  // of the function, then of the tail in the order of use
  std::vector<Loop> loops;        // outermost first, merged
  bool floats = false;            // computes in float, else in int
  bool vectors = false;           // true if the innermost loop can be computed in vectors
};

TensorDesc numpy_aligned(const TensorDesc& operand, const Shape& out) {
  TensorDesc aligned{operand.type, out, Shape(out.size(), 0), operand.offset};
  for (size_t d = 0; d < operand.shape.size(); ++d)
    if (operand.shape[d] != 1)
      aligned.strides[out.size() - operand.shape.size() + d] = operand.strides[d];
  return aligned;
}

// Returns a constant as it is uploaded: dense, in the order of the output's memory, without
// broadcast dimensions.
Tensor packed_constant(const Operand& operand, const std::vector<size_t>& order, Shape& strides) {
  Shape shape, from, out_strides(operand.view.shape.size(), 0);
  for (size_t d : order) {
    if (operand.view.strides[d] == 0) continue;
    shape.push_back(operand.view.shape[d]);
    from.push_back(operand.view.strides[d]);
  }
  const Shape dense = row_major_strides(shape);
  size_t at = 0;
  for (size_t d : order)
    if (operand.view.strides[d] != 0) out_strides[d] = dense[at++];
  strides = out_strides;
  return gather_from({operand.constant.type(), shape, from, 0}, operand.constant.raw(),
                     operand.constant.type());
}

// Makes wider vectors for tensors with few channels (BGR pictures), whose vectors would be mostly
// empty. If the tensors are dense rows of pixels, several pixels count as one with many channels,
// and constants per channel are repeated.
void widen_channels(Program& program) {
  if (program.loops.size() < 2) return;
  Loop &inner = program.loops.back(), &outer = program.loops[program.loops.size() - 2];
  const int64_t channels = inner.size;
  int64_t pixels = 16;
  while (pixels > 1 && outer.size % pixels) pixels /= 2;
  if (channels >= 8 || pixels == 1 || inner.out != 1 || outer.out != channels) return;
  const auto repeats = [&](size_t k) {
    if (program.operands[k].constant.empty() ||
        program.operands[k].constant.elements() != channels || inner.in[k] == 0)
      return false;
    return std::all_of(program.loops.begin(), program.loops.end() - 1,
                       [&](const Loop& loop) { return loop.in[k] == 0; });
  };
  for (size_t k = 0; k < program.operands.size(); ++k) {
    const bool dense = inner.in[k] == 1 && outer.in[k] == channels;
    const bool one = inner.in[k] == 0 && outer.in[k] == 0;
    if (!dense && !one && !repeats(k)) return;
  }
  for (size_t k = 0; k < program.operands.size(); ++k) {
    if (repeats(k)) {
      Tensor& constant = program.operands[k].constant;
      const TensorDesc repeated{constant.type(), {pixels, channels}, {0, inner.in[k]}, 0};
      constant = gather_from(repeated, constant.raw(), constant.type());
      inner.in[k] = 1;
    } else {
      outer.in[k] *= pixels;
    }
  }
  outer.size /= pixels;
  outer.out *= pixels;
  inner.size *= pixels;
}

// Returns the name of the type of stored elements; "" for types with which no kernel computes.
std::string element_type(ElementType type) {
  return type == ElementType::f8e4m3 ? storage_name(type) : value_type(type);
}

// Returns whether the output holds quantised values (not booleans), which are floats before they
// are stored.
bool makes_quantized(const OpDesc& desc) { return desc.type == "Quantize" || quantizes(desc.tail); }

Program make_program(const OpDesc& desc) {
  Program program;
  program.function = element_function(desc, desc.constants);
  const TensorDesc& out = desc.outputs[0];
  program.floats = is_float(out.type);
  const auto add = [&](size_t input, bool own) {
    Operand operand;
    operand.input = input;
    operand.constant = desc.constants[input];
    OpDesc as_seen = desc;
    if (!operand.constant.empty())
      as_seen.inputs[input] =
          TensorDesc::row_major(operand.constant.type(), operand.constant.shape());
    operand.view =
        own ? aligned_operand(as_seen, input) : numpy_aligned(as_seen.inputs[input], out.shape);
    program.floats |= is_float(operand.view.type);
    program.operands.push_back(std::move(operand));
  };
  for (size_t i = 0; i < program.function.operands; ++i) add(i, true);
  for (const PostOp& op : desc.tail)
    if (!op.is_unary()) {
      add(static_cast<size_t>(op.operand), false);
      Operand& operand = program.operands.back();
      if (is_quantized(operand.view.type)) operand.scale = {op.alpha, op.beta};
    }

  // Orders the loops as in the output's memory, without dimensions of size 1.
  std::vector<size_t> order;
  for (size_t d = 0; d < out.shape.size(); ++d)
    if (out.shape[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::abs(out.strides[a]) > std::abs(out.strides[b]);
  });
  for (Operand& operand : program.operands)
    if (!operand.constant.empty()) {
      Shape strides;
      operand.constant = packed_constant(operand, order, strides);
      operand.view.strides = strides;
      operand.view.offset = 0;
    }
  for (size_t d : order) {
    Loop loop{out.shape[d], out.strides[d], {}};
    for (const Operand& operand : program.operands) loop.in.push_back(operand.view.strides[d]);
    if (!program.loops.empty()) {
      Loop& outer = program.loops.back();
      bool run = outer.out == loop.out * loop.size;
      for (size_t k = 0; k < loop.in.size(); ++k) run &= outer.in[k] == loop.in[k] * loop.size;
      if (run) {
        loop.size *= outer.size;
        outer = std::move(loop);
        continue;
      }
    }
    program.loops.push_back(std::move(loop));
  }
  if (program.loops.empty())
    program.loops.push_back({1, 1, std::vector<int64_t>(program.operands.size(), 0)});

  widen_channels(program);
  const Loop& inner = program.loops.back();
  program.vectors =
      (is_float(out.type) || makes_quantized(desc)) && inner.out == 1 && inner.size >= 4;
  for (size_t k = 0; k < program.operands.size(); ++k) {
    const Operand& operand = program.operands[k];
    program.vectors &= is_float(operand.view.type) || operand.scale || desc.type == "Dequantize";
    program.vectors &= inner.in[k] == 0 || inner.in[k] == 1;
  }
  return program;
}

// Returns whether all vectors of the innermost loop are aligned to their size. CPUs load others as
// fast.
bool aligned(const Program& program, const OpDesc& desc, const DeviceTraits& traits, int vector) {
  if (traits.is_cpu || desc.outputs[0].offset % vector != 0) return false;
  const auto fits = [&](const auto& step) {
    return std::all_of(program.loops.begin(), program.loops.end() - 1,
                       [&](const Loop& loop) { return step(loop) % vector == 0; });
  };
  for (size_t k = 0; k < program.operands.size(); ++k)
    if (program.loops.back().in[k] != 0 && (program.operands[k].view.offset % vector != 0 ||
                                            !fits([k](const Loop& loop) { return loop.in[k]; })))
      return false;
  return fits([](const Loop& loop) { return loop.out; });
}

std::string reject_elementwise(const OpDesc& desc, const DeviceTraits&) {
  const TensorDesc& out = desc.outputs[0];
  if (out.elements() == 0) return "the output is empty";
  if (element_type(out.type).empty()) return "does not write " + std::string(name_of(out.type));
  if (!desc.tail.empty() && !is_float(out.type) && !quantizes(desc.tail))
    return "takes a tail on floats only";
  size_t operands = 0;
  for (const PostOp& op : desc.tail) {
    if (op.is_unary() ? !find_unary(op.function) : !find_binary(op.function))
      return "no element function " + op.function;
    if (op.is_unary()) continue;
    const Shape& shape = desc.inputs[op.operand].shape;
    if (shape.size() > out.shape.size())
      return "a tail operand has more dimensions than the output";
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != 1 && shape[d] != out.shape[out.shape.size() - shape.size() + d])
        return "a tail operand would widen the output";
    ++operands;
  }
  try {
    const Program program = make_program(desc);
    const std::string& name = program.function.name;
    if (operands + program.function.operands > kMostOperands)
      return "more than " + std::to_string(kMostOperands) + " operands";
    if (program.loops.size() > kMostDims)
      return "needs more than " + std::to_string(kMostDims) + " loops";
    if (!program.floats && !find_integer(name) && !find_unary(name) && name != "select")
      return name + " of integers";
    if (program.floats && (name.starts_with("logical_") || name.ends_with("_divide")))
      return name + " of floats";
    if (out.span() > std::numeric_limits<int32_t>::max())
      return "the output spans more than an int can count";
    for (const Operand& operand : program.operands) {
      if (operand.constant.empty() && element_type(operand.view.type).empty())
        return "does not read " + std::string(name_of(operand.view.type));
      if (desc.inputs[operand.input].span() > std::numeric_limits<int32_t>::max())
        return "an input spans more than an int can count";
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TuningPoint point_of(int vector, int run) { return {{{"V", vector}, {"RUN", run}}}; }

// Returns the points. RUN is the number of elements that one work-item computes: part of the
// innermost loop, or several rows if that loop is short.
std::vector<TuningPoint> elementwise_space(const OpDesc& desc, const DeviceTraits& traits) {
  const Program program = make_program(desc);
  std::vector<TuningPoint> points;
  if (!program.vectors) {
    for (int run : {1, 16, 256}) points.push_back(point_of(1, run));
    return points;
  }
  const auto operands = static_cast<int64_t>(program.operands.size());
  for (int vector : {4, 8, 16}) {
    // Counts the result and the operands, each of which has a place.
    if (vector > 4 && !fits_registers_of_items(traits, 4 * vector * (operands + 1), operands))
      continue;
    for (int run : {1, 8, 64}) points.push_back(point_of(vector, vector * run));
  }
  // Appends this point last, so that records of the others keep their meaning.
  if (std::find(points.begin(), points.end(), point_of(8, 8)) != points.end())
    points.push_back(point_of(8, 16));
  return points;
}

TuningPoint elementwise_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const bool wide = traits.is_cpu || traits.vector_width > 1;
  const Program program = make_program(desc);
  if (!program.vectors) return point_of(1, wide ? 256 : 1);
  if (!wide) {
    // Chooses few work-items with much to load each, but enough for the device.
    const int64_t elements = desc.outputs[0].elements();
    if (traits.sub_groups == 0 && aligned(program, desc, traits, 8))
      for (const int run : {16, 8})
        if (elements / run >= int64_t{1024} * traits.compute_units) return point_of(8, run);
    return point_of(4, 4);
  }
  std::vector<TuningPoint> points{point_of(8, 8 * 64), point_of(4, 4 * 64)};
  if (traits.vector_width >= 16) points.insert(points.begin(), point_of(16, 16 * 64));
  // Prefers vectors without a remainder, which is computed element by element.
  const int64_t size = program.loops.back().size;
  return cheapest(points, [size](const TuningPoint& point) {
    return static_cast<double>(size / point["V"] + size % point["V"]);
  });
}

// Returns whether integers are computed by a float function, whose result is rounded.
bool is_rounded(const Program& program) {
  const std::string& name = program.function.name;
  return !program.floats && name != "clamp" && !find_integer(name) && find_unary(name);
}

// Returns the function as an expression of x, y, and z0.. for the other operands, which are floats
// (of any width) or ints.
std::string base_expression(const Program& program) {
  const ElementFunction& f = program.function;
  if (f.name == "identity") return "x";
  if (f.name == "select") return "x != 0 ? y : z0";
  if (!program.floats) {
    if (f.name == "clamp")
      return with_parameters(
          "x < ALPHA ? convert_int_sat(ALPHA) : x > BETA ? convert_int_sat(BETA) : x", f.alpha,
          f.beta);
    if (const IntegerFunction* exact = find_integer(f.name)) return std::string(exact->opencl);
    return "convert_int_sat_rte(FN(of_float)(convert_float(x)))";
  }
  if (is_comparison(f.name))
    return "x " + std::string(comparison_sign(f.name)) + " y ? 1.0f : 0.0f";
  if (f.name == "to_boolean") return "x != 0.0f ? 1.0f : 0.0f";
  if (f.name == "fake_quantize") {
    const std::string last = exact_text(f.alpha - 1);
    if (f.beta > 0) {
      const std::string lowest = with_parameters("rint(y / BETA)", 0, f.beta);
      return "at_most(at_least(rint(x / " + exact_text(f.beta) + "), " + lowest + "), " + lowest +
             " + " + last + ") * ((z2 - z1) / " + last + ")";
    }
    return "select(select(rint((x - y) / (z0 - y) * " + last + ") / " + last +
           " * (z2 - z1) + z1, z2, x > fmax(y, z0)), z1, x <= fmin(y, z0))";
  }
  if (f.name == "quantize")
    return with_parameters("round_even(fmin(fmax(x * y + z0, ALPHA), BETA)) - ALPHA", f.alpha,
                           f.beta);
  if (f.name == "scale_and_shift") return "x * y + z0";
  if (f.operands == 1) return with_parameters(find_unary(f.name)->opencl, f.alpha, f.beta);
  return std::string(find_binary(f.name)->opencl);
}

std::string operand_name(size_t i) { return "in" + std::to_string(i); }

// Returns FN(single) or FN(wide), which applies the function to its operands, then the tail.
std::string function_text(const char* name, const std::string& type, const Program& program,
                          const std::vector<PostOp>& tail) {
  std::string text = type + " FN(" + name + ")(";
  for (size_t i = 0; i < program.operands.size(); ++i)
    text += (i ? ", " : "") + type + " " + operand_name(i);
  text += ") {\n  " + type + " x = in0;\n";
  const size_t own = program.function.operands;
  if (own > 1) text += "  { const " + type + " y = in1;\n";
  for (size_t i = 2; i < own; ++i)
    text += "  const " + type + " z" + std::to_string(i - 2) + " = " + operand_name(i) + ";\n";
  text += "  x = " + base_expression(program) + ";\n";
  if (own > 1) text += "  }\n";
  size_t next = own;
  for (const PostOp& op : tail) {
    const bool unary = op.is_unary();
    if (!unary) text += "  { " + type + " y = " + operand_name(next++) + ";\n";
    text += step_text(op, type);
    if (!unary) text += "  }\n";
  }
  return text + "  return x;\n}\n";
}

std::string load_text(const std::string& stored, bool floats, const std::string& at) {
  if (stored == "half") return "vload_half(0, " + at + ")";
  if (stored == "e4m3") return "LOAD_e4m3_1(" + at + ")";
  const std::string value = "*(" + at + ")";
  return floats ? "convert_float(" + value + ")" : "convert_int(" + value + ")";
}

// Lets integers wrap around, except for results of float functions.
std::string store_text(const OpDesc& desc, const Program& program) {
  const std::string stored = element_type(desc.outputs[0].type);
  if (stored == "half") return "vstore_half_rte(v, 0, p)";
  if (stored == "float") return "*(p) = (v)";
  if (stored == "e4m3") return "STORE_e4m3_1(v, p)";
  const char* how = program.floats ? "_sat_rtz" : is_rounded(program) ? "_sat" : "";
  return "*(p) = convert_" + stored + how + "(v)";
}

template <size_t DIMS, size_t N>
struct Args {
#include "kernels/elementwise/elementwise_args.cl"
};

template <size_t DIMS, size_t N>
Argument walk_arguments(const std::vector<Loop>& loops, int64_t run, int64_t rows) {
  Args<DIMS, N> args{};
  set_each(args.size, loops, &Loop::size);
  set_each(args.out, loops, &Loop::out);
  for (size_t k = 0; k < N; ++k)
    set_each(args.in[k], loops, [k](const Loop& loop) { return loop.in[k]; });
  args.run = to_int(run), args.rows = to_int(rows);
  return Argument::value(args);
}

KernelPlan plan_elementwise(const OpDesc& desc, const DeviceTraits& traits,
                            const TuningPoint& point) {
  Program program = make_program(desc);
  const int vector = point["V"];
  const int64_t run = point["RUN"];
  const size_t n = program.operands.size(), group = traits.is_cpu ? 16 : 64;
  const size_t dims = program.loops.size() <= 2   ? 2
                      : program.loops.size() <= 4 ? 4
                                                  : kMostDims;  // limits the number of programs
  const std::string compute = program.floats ? "float" : "int";

  KernelPlan plan;
  KernelSpec& spec = plan.launches.emplace_back();
  spec.source = "elementwise.cl";
  spec.defines = {{"V", std::to_string(vector)},
                  {"DIMS", std::to_string(dims)},
                  {"N", std::to_string(n)},
                  {"OUT_T", element_type(desc.outputs[0].type)},
                  {"STORE_ONE(v, p)", store_text(desc, program)},
                  {"GROUP", std::to_string(group)}};
  define_access(spec, vector > 1 && aligned(program, desc, traits, vector));
  std::reverse(program.loops.begin(),
               program.loops.end());  // the kernel numbers loops from the innermost
  program.loops.resize(dims, {1, 0, std::vector<int64_t>(n, 0)});
  const int64_t rows = std::clamp<int64_t>(run / program.loops[0].size, 1, program.loops[1].size);
  int64_t items = 1;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t size = program.loops[d].size, step = d == 0 ? run : d == 1 ? rows : 1;
    items *= (size + step - 1) / step;
  }
  spec.global[0] = (static_cast<size_t>(items) + group - 1) / group * group;
  spec.local[0] = group;

  spec.arguments = {
      Argument::output(0, size_of(desc.outputs[0].type)),
      with_count<2, 4, kMostDims>(dims, [&](auto dim_count) {
        return with_count<1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, kMostOperands>(
            n, [&](auto operand_count) {
              return walk_arguments<dim_count, operand_count>(program.loops, run, rows);
            });
      })};

  std::string operands, single, wide;
  for (size_t k = 0; k < n; ++k) {
    Operand& operand = program.operands[k];
    std::string stored = element_type(operand.view.type);
    if (operand.constant.empty()) {
      spec.arguments.push_back(Argument::input(operand.input, size_of(operand.view.type)));
    } else {
      stored = compute;
      spec.arguments.push_back(Argument::packed(plan.packed.size(), 4));
      plan.packed.push_back([value = operand.constant, floats = program.floats] {
        const Tensor converted = value.convert(floats ? ElementType::f32 : ElementType::i32);
        const auto* bytes = static_cast<const std::byte*>(converted.raw());
        return std::vector<std::byte>(bytes, bytes + converted.bytes());
      });
    }
    const std::string name = operand_name(k), number = std::to_string(k);
    operands += ", IN(" + stored + ", " + name + ")";
    std::string scaled;
    if (operand.scale) {
      operands += ", const float2 " + name + "_scale";
      spec.arguments.push_back(Argument::value(*operand.scale));
      scaled = " * " + name + "_scale.s0 + " + name + "_scale.s1";
    }
    const std::string base = "AT(" + name + ") + from[" + number + "]";
    const std::string comma = k ? ", " : "";
    single += comma +
              load_text(stored, program.floats, base + " + (i) * walk.in[" + number + "][0]") +
              scaled;
    if (vector > 1) {
      const std::string type = "FLOATV(" + std::to_string(vector) + ")";
      wide +=
          comma +
          (program.loops[0].in[k] == 0 ? "(" + type + ")(LOADV(" + stored + ", 1, " + base + "))"
                                       : "LOAD(" + stored + ", V, " + base + " + (i))") +
          scaled;
    }
  }
  std::string& text = spec.prologue;
  text = "#define OPERANDS " + operands + "\n#define SINGLE(i) FN(single)(" + single + ")\n";
  if (!program.floats) text += kIntegerHelpers;
  if (is_rounded(program))
    text += "float FN(of_float)(float x) { return " +
            with_parameters(find_unary(program.function.name)->opencl, program.function.alpha,
                            program.function.beta) +
            "; }\n";
  text += function_text("single", compute, program, desc.tail);
  if (vector > 1) {
    text += "#define WIDE(i) FN(wide)(" + wide + ")\n";
    text += function_text("wide", "float" + std::to_string(vector), program, desc.tail);
  }
  return plan;
}

}  // namespace

const KernelFamily kElementwiseFamily{"elementwise",         1,
                                      reject_elementwise,    elementwise_space,
                                      elementwise_heuristic, plan_elementwise};

}  // namespace clinfer
