// Pad: constant, edge, reflect and symmetric. From opset 12 on, pads may be negative, which crops.
#include <algorithm>
#include <limits>

#include "kernels/arguments.h"
#include "kernels/kernel.h"
#include "kernels/movement/strided_copy.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr size_t kMostLoops = 5;
constexpr int64_t kMaxPad = int64_t{1} << 30;

// The values of `mode` in pad.cl.
enum class Mode { constant = 0, edge = 1, reflect = 2, symmetric = 3 };

Mode mode_of(const Attributes& attributes) {
  const std::string mode = attributes.get_string("pad_mode");
  if (mode == "constant") return Mode::constant;
  if (mode == "edge") return Mode::edge;
  if (mode == "reflect") return Mode::reflect;
  if (mode == "symmetric") return Mode::symmetric;
  fail_model("unknown pad_mode \"" + mode + "\"");
}

void check_pads(const std::vector<int64_t>& pads, const Shape& data, int opset, const char* what) {
  if (pads.size() != data.size())
    fail_model(std::string(what) + " has " + std::to_string(pads.size()) + " numbers for " +
               std::to_string(data.size()) + " dimensions");
  for (int64_t pad : pads)
    if (pad > kMaxPad || pad < (opset < 12 ? 0 : -kMaxPad))
      fail_model(std::string(what) + " is out of range: " + std::to_string(pad));
}

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 3, 4);
  const ValueInfo& data = context.inputs[0];
  const Mode mode = mode_of(context.attributes);
  const std::vector<int64_t> begin = constant_ints(context, 1, "pads_begin"),
                             end = constant_ints(context, 2, "pads_end");
  check_pads(begin, data.shape, context.opset, "pads_begin");
  check_pads(end, data.shape, context.opset, "pads_end");
  if (has_input(context, 3) && count(context.inputs[3].shape) != 1)
    fail_model("the pad value is not one number");
  Shape out;
  for (size_t d = 0; d < data.shape.size(); ++d) {
    const int64_t size = data.shape[d];
    out.push_back(size + begin[d] + end[d]);
    if (out[d] < 0) fail_model("pads cut more from " + to_string(data.shape) + " than it has");
    const int64_t most = std::max(begin[d], end[d]);
    if (mode != Mode::constant && out[d] > 0 && size == 0)
      fail_model("there is nothing to repeat in " + to_string(data.shape));
    if (mode == Mode::reflect && most > 0 && most >= size)
      fail_model("a reflection of " + std::to_string(most) + " needs more than " +
                 std::to_string(size) + " elements");
    if (mode == Mode::symmetric && most > size)
      fail_model("a reflection of " + std::to_string(most) + " needs as many elements, not " +
                 std::to_string(size));
  }
  return {{data.type, std::move(out), {}}};
}

// Returns the input position for output position `at`, or -1 if there is none, as pad.cl does.
int64_t source(Mode mode, int64_t at, int64_t begin, int64_t size) {
  const int64_t i = at - begin;
  switch (mode) {
    case Mode::constant:
      return i >= 0 && i < size ? i : -1;
    case Mode::edge:
      return std::clamp<int64_t>(i, 0, size - 1);
    case Mode::reflect:
      return i < 0 ? -i : i < size ? i : 2 * (size - 1) - i;
    case Mode::symmetric:
      break;
  }
  return i < 0 ? -1 - i : i < size ? i : 2 * size - 1 - i;
}

// Returns the value of the pads, in the type of the tensor; zero by default.
Tensor fill_of(ElementType type, std::span<const Tensor> values) {
  return values.size() > 3 && !values[3].empty() ? values[3].convert(type)
                                                 : Tensor::allocate(type, {});
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Mode mode = mode_of(desc.attributes);
  const Shape &in = inputs[0].shape(), &out = outputs[0].shape(), strides = row_major_strides(in);
  if (outputs[0].elements() == 0) return;
  const std::vector<int64_t> begin = inputs[1].to_ints();
  const Tensor fill = fill_of(outputs[0].type(), inputs);
  with_size(outputs[0].type(), [&](auto zero) {
    using Value = decltype(zero);
    const Value* from = inputs[0].data<Value>();
    Value* to = outputs[0].mutable_data<Value>();
    Shape index(out.size(), 0);
    do {
      int64_t at = 0;
      bool inside = true;
      for (size_t d = 0; d < out.size(); ++d) {
        const int64_t i = source(mode, index[d], begin[d], in[d]);
        inside = inside && i >= 0;
        at += i * strides[d];
      }
      *to++ = inside ? from[at] : *fill.data<Value>();
    } while (next_index(index, out));
  });
}

struct Loop {
  int64_t size = 1, in_size = 1, begin = 0, in = 0, out = 0;
  bool padded() const { return begin != 0 || size != in_size; }
};

// Returns the loops, ordered from the innermost in the output's memory. Contiguous loops without
// pads are merged.
std::vector<Loop> loops_of(const OpDesc& desc) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  const std::vector<int64_t> begin = desc.constants[1].to_ints();
  std::vector<Loop> loops;
  for (size_t d = 0; d < in.shape.size(); ++d) {
    const Loop loop{out.shape[d], in.shape[d], begin[d], in.strides[d], out.strides[d]};
    if (loop.size != 1 || loop.padded()) loops.push_back(loop);
  }
  std::stable_sort(loops.begin(), loops.end(),
                   [](const Loop& a, const Loop& b) { return a.out < b.out; });
  std::vector<Loop> kept;
  for (const Loop& loop : loops) {
    if (!kept.empty() && !loop.padded() && !kept.back().padded() &&
        loop.in == kept.back().in * kept.back().size &&
        loop.out == kept.back().out * kept.back().size) {
      kept.back().size *= loop.size;
      kept.back().in_size = kept.back().size;
    } else {
      kept.push_back(loop);
    }
  }
  return kept;
}

std::string reject(const OpDesc& desc, const DeviceTraits&) {
  if (!desc.tail.empty()) return "moves elements without computing, takes no tail";
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  if (in.type != out.type) return "input and output differ in type";
  if (out.elements() == 0) return "the output is empty";
  if (std::max(in.span(), out.span()) > std::numeric_limits<int32_t>::max())
    return "a tensor has more than 2^31 elements";
  if (desc.constants[1].empty()) return "the pads are not constant";
  if (desc.own_inputs > 3 && desc.constants[3].empty()) return "the pad value is not constant";
  if (in.elements() == 0) return "the input is empty";
  if (loops_of(desc).size() > kMostLoops)
    return "needs more than " + std::to_string(kMostLoops) + " loops";
  return "";
}

std::vector<TuningPoint> space(const OpDesc& desc, const DeviceTraits& traits) {
  const std::vector<Loop> loops = loops_of(desc);
  const bool dense = !loops.empty() && !loops[0].padded() && loops[0].in == 1 && loops[0].out == 1;
  std::vector<TuningPoint> points;
  for (int vector : {16, 8, 4, 2, 1})
    for (int run : {1, 4, 16, 64})
      if ((vector == 1 || (dense && vector <= loops[0].size)) && (traits.is_cpu || vector <= 4))
        points.push_back({{{"VECTOR", vector}, {"RUN", run}}});
  return points;
}

// Chooses the widest vectors. On a CPU, chooses as many positions per work-item as leave some
// work-items for each core.
TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const std::vector<Loop> loops = loops_of(desc);
  const int64_t positions = loops.empty() ? 1 : desc.outputs[0].elements() / loops[0].size;
  const std::vector<TuningPoint> points = space(desc, traits);
  TuningPoint best = points[0];
  if (traits.is_cpu)
    for (const TuningPoint& point : points)
      if (point["VECTOR"] == best["VECTOR"] &&
          positions / point["RUN"] >= 64 * traits.compute_units)
        best = point;
  return best;
}

struct Args {
#include "kernels/movement/pad_args.cl"
};

// Returns whether all vectors of the first loop, which is dense, are aligned to their size.
bool aligned(const OpDesc& desc, const std::vector<Loop>& loops, int vector) {
  return desc.inputs[0].offset % vector == 0 && desc.outputs[0].offset % vector == 0 &&
         loops[0].size % vector == 0 &&
         std::all_of(loops.begin() + 1, loops.end(), [vector](const Loop& loop) {
           return loop.in % vector == 0 && loop.out % vector == 0;
         });
}

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  std::vector<Loop> loops = loops_of(desc);
  loops.resize(kMostLoops);
  const int64_t run = point["RUN"], runs = ceil_div(loops[1].size, run);
  const int vector = point["VECTOR"];
  const bool dense = loops[0].in == 1 && loops[0].out == 1;
  const int64_t vectors = traits.is_cpu ? 1 : ceil_div(loops[0].size, int64_t{vector});
  int64_t items = vectors * runs;
  for (size_t i = 2; i < kMostLoops; ++i) items *= loops[i].size;
  const size_t group = run_group(traits);
  const ElementType type = desc.outputs[0].type;
  uint64_t fill = 0;
  std::memcpy(&fill, fill_of(type, std::span(desc.constants).first(desc.own_inputs)).raw(),
              size_of(type));

  Args args{};
  set_each(args.size, loops, &Loop::size);
  set_each(args.in_size, loops, &Loop::in_size);
  set_each(args.begin, loops, &Loop::begin);
  set_each(args.in, loops, &Loop::in);
  set_each(args.out, loops, &Loop::out);
  args.vectors = to_int(vectors), args.runs = to_int(runs), args.items = to_int(items),
  args.run = to_int(run);
  args.fill_low = static_cast<int32_t>(fill & 0xffffffffu);
  args.fill_high = static_cast<int32_t>(fill >> 32);
  args.mode = static_cast<int>(mode_of(desc.attributes));
  KernelSpec spec;
  spec.source = "pad.cl";
  spec.defines = {{"E", moved_type(type)},
                  {"INNER", loops[0].padded() ? "1" : "0"},
                  {"VECTOR", std::to_string(vector)},
                  {"ACROSS", traits.is_cpu ? "0" : "1"},
                  {"ALIGNED", dense && aligned(desc, loops, vector) ? "1" : "0"},
                  {"GROUP", std::to_string(group)}};
  spec.arguments = {Argument::input(0, size_of(type)), Argument::output(0, size_of(type)),
                    Argument::value(args)};
  spec.local = {group, 1, 1};
  spec.global = {static_cast<size_t>(ceil_div(items, static_cast<int64_t>(group))) * group, 1, 1};
  return {{std::move(spec)}, {}, 0};
}

const KernelFamily kPad{"pad", 1, reject, space, heuristic, plan};

}  // namespace

std::vector<OpDef> pad_ops() {
  OpDef pad;
  pad.type = "Pad";
  pad.opsets = opset_range(1);
  pad.infer_shapes = infer_shapes;
  pad.evaluate = evaluate;
  pad.families = {&kPad};
  pad.layout = LayoutRule::follow;
  return {std::move(pad)};
}

}  // namespace clinfer
