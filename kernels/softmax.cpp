// SoftMax (opset 1: axis from 0; opset 8: any) and LogSoftmax: exp(x - max) / sum along one dimension.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernel.h"
#include "kernels/shape_util.h"
#include "kernels/strided_copy.h"

namespace clinfer {

namespace {

constexpr int64_t kLongRow = 32;  // from here on a row has vectors of its own
constexpr size_t kLoops = 4;

bool is_logarithm(const std::string& type) { return type == "LogSoftmax"; }

size_t axis_of(const Attributes& attributes, const std::string& type, size_t rank) {
  return checked_axis(attributes.get_int("axis", is_logarithm(type) ? -1 : 1), rank, "axis");
}

std::vector<ValueInfo> infer_softmax(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  const ValueInfo& x = context.inputs[0];
  if (!is_float(x.type)) fail_model("takes floats, not " + std::string(name_of(x.type)));
  axis_of(context.attributes, context.type, x.shape.size());
  return {{x.type, x.shape}};
}

void evaluate_softmax(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const size_t axis = axis_of(desc.attributes, desc.type, shape.size());
  const int64_t length = shape[axis];
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const float* in = inputs[0].data<float>();
  float* out = outputs[0].mutable_data<float>();
  if (outputs[0].elements() == 0) return;
  for (int64_t row = 0; row < outputs[0].elements() / length; ++row) {
    const int64_t base = row / inner * inner * length + row % inner;
    float most = -std::numeric_limits<float>::infinity();
    double sum = 0;
    for (int64_t c = 0; c < length; ++c) most = std::max(most, in[base + c * inner]);
    for (int64_t c = 0; c < length; ++c) sum += std::exp(in[base + c * inner] - most);
    for (int64_t c = 0; c < length; ++c) {
      const float x = in[base + c * inner] - most;
      out[base + c * inner] = static_cast<float>(is_logarithm(desc.type) ? x - std::log(sum) : std::exp(x) / sum);
    }
  }
}

struct Rows {
  int64_t length = 1, from_step = 1, to_step = 1, count = 1;
  std::vector<CopyDim> loops;  // over the rows, innermost last
};

Rows rows_of(const OpDesc& desc) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  const size_t axis = axis_of(desc.attributes, desc.type, in.shape.size());
  Rows rows{in.shape[axis], in.strides[axis], out.strides[axis], 1, {}};
  for (size_t d = 0; d < in.shape.size(); ++d)
    if (d != axis) {
      rows.loops.push_back({in.shape[d], in.strides[d], out.strides[d], {}});
      rows.count *= in.shape[d];
    }
  rows.loops = merged(std::move(rows.loops));
  return rows;
}

std::string reject_softmax(const OpDesc& desc, const DeviceTraits&) {
  if (!desc.tail.empty()) return "takes no tail";
  for (const TensorDesc* tensor : {&desc.inputs[0], &desc.outputs[0]}) {
    if (tensor->type != ElementType::f32 && tensor->type != ElementType::f16)
      return "computes on f32 and f16, not " + std::string(name_of(tensor->type));
    if (tensor->span() > std::numeric_limits<int32_t>::max()) return "a tensor spans more than an int can count";
  }
  if (desc.outputs[0].elements() == 0) return "the output is empty";
  if (rows_of(desc).loops.size() > kLoops) return "needs more than " + std::to_string(kLoops) + " loops";
  return "";
}

std::string reject_long_rows(const OpDesc& desc, const DeviceTraits& traits) {
  const std::string why = reject_softmax(desc, traits);
  if (!why.empty()) return why;
  const Rows rows = rows_of(desc);
  if (rows.from_step != 1 || rows.to_step != 1) return "rows are not dense";
  if (rows.length < kLongRow) return "rows have fewer than " + std::to_string(kLongRow) + " elements";
  return "";
}

KernelPlan plan_softmax(const OpDesc& desc, bool lanes, int vector, int group) {
  const Rows rows = rows_of(desc);
  const auto type = [](const TensorDesc& tensor) { return tensor.type == ElementType::f16 ? "half" : "float"; };
  KernelPlan plan;
  KernelSpec& spec = plan.launches.emplace_back();
  spec.source = "softmax.cl";
  spec.defines = {{"LANES", lanes ? "1" : "0"}, {"V", std::to_string(vector)}, {"GROUP", std::to_string(group)},
                  {"IN_T", type(desc.inputs[0])}, {"OUT_T", type(desc.outputs[0])},
                  {"LOGARITHM", is_logarithm(desc.type) ? "1" : "0"}, {"DIMS", std::to_string(kLoops)}};
  std::vector<CopyDim> loops = rows.loops;
  std::reverse(loops.begin(), loops.end());  // the kernel counts the innermost first
  loops.resize(kLoops);
  if (lanes) {
    const int64_t blocks = rows.count / loops[0].size * ((loops[0].size + vector - 1) / vector);
    spec.global[0] = static_cast<size_t>((blocks + group - 1) / group * group);
  } else {
    spec.global[0] = static_cast<size_t>(rows.count) * static_cast<size_t>(group);
  }
  spec.local[0] = static_cast<size_t>(group);
  std::vector<int64_t> values{rows.length, rows.from_step, rows.to_step};
  for (const CopyDim& d : loops) values.push_back(d.size);
  for (const CopyDim& d : loops) values.push_back(d.from);
  for (const CopyDim& d : loops) values.push_back(d.to);
  spec.arguments = {Argument::input(0, size_of(desc.inputs[0].type)), Argument::output(0, size_of(desc.outputs[0].type)),
                    int_struct(values)};
  return plan;
}

bool is_wide(const DeviceTraits& traits) { return traits.is_cpu || traits.vector_width > 1; }

const KernelFamily kLongRows{
    "softmax_row", 1, reject_long_rows,
    [](const OpDesc&, const DeviceTraits& traits) {
      std::vector<TuningPoint> points;
      for (int vector : {1, 4, 16})
        for (int group : {1, 64, 256})
          if (static_cast<size_t>(group) <= traits.max_work_group) points.push_back({{{"V", vector}, {"GROUP", group}}});
      return points;
    },
    [](const OpDesc&, const DeviceTraits& traits) -> TuningPoint {
      if (is_wide(traits)) return {{{"V", 16}, {"GROUP", 1}}};
      return {{{"V", 1}, {"GROUP", traits.max_work_group >= 256 ? 256 : traits.max_work_group >= 64 ? 64 : 1}}};
    },
    [](const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
      return plan_softmax(desc, false, point["V"], point["GROUP"]);
    }};

const KernelFamily kLanes{
    "softmax_lanes", 1, reject_softmax,
    [](const OpDesc&, const DeviceTraits&) {
      std::vector<TuningPoint> points;
      for (int vector : {1, 4, 8, 16}) points.push_back({{{"V", vector}}});
      return points;
    },
    [](const OpDesc& desc, const DeviceTraits& traits) -> TuningPoint {
      const Rows rows = rows_of(desc);
      const bool few = rows.loops.empty() || rows.loops.back().size < 4;
      return {{{"V", is_wide(traits) && !few ? 8 : 1}}};
    },
    [](const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
      return plan_softmax(desc, true, point["V"], traits.is_cpu ? 8 : static_cast<int>(std::min<size_t>(64, traits.max_work_group)));
    }};

}  // namespace

std::vector<OpDef> softmax_ops() {
  std::vector<OpDef> ops;
  for (const auto& [type, first] : {std::pair{"SoftMax", 1}, std::pair{"LogSoftmax", 5}}) {
    OpDef def;
    def.type = type;
    def.opsets = opset_range(first);
    def.infer_shapes = infer_softmax;
    def.evaluate = evaluate_softmax;
    def.families = {&kLongRows, &kLanes};
    def.layout = LayoutRule::follow;
    ops.push_back(std::move(def));
  }
  return ops;
}

}  // namespace clinfer
