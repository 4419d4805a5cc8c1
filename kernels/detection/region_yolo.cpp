// RegionYolo: the activations of YOLO v2 and v3 heads. ReorgYolo: YOLO v2's pass-through layer. As
// in Darknet, it reads its input as if it had stride^2 times fewer channels on a finer grid, so it
// needs row-major memory.
#include <algorithm>
#include <cmath>

#include "kernels/arguments.h"
#include "kernels/movement/strided_copy.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"

namespace clinfer {

namespace {

// ---- RegionYolo --------------------------------------------------------------------------------

struct Region {
  int64_t regions, coords, classes;
  bool softmax;
  size_t axis, end_axis;  // with softmax, the dimensions that are joined into one
  int64_t entries() const { return coords + 1 + classes; }
};

Region read_region(const Attributes& a, const Shape& in) {
  check_rank(in, 4, 4, "the input");
  Region r{};
  r.coords = a.get_int("coords");
  r.classes = a.get_int("classes");
  r.softmax = a.get_bool("do_softmax", true);
  const auto masks = static_cast<int64_t>(a.get_ints("mask", std::vector<int64_t>()).size());
  r.regions = r.softmax ? a.get_int("num") : masks;
  if (r.coords < 2 || r.classes < 0 || r.regions < 1 || r.coords > in[1] || r.classes > in[1] ||
      checked_product(r.regions, r.entries()) != in[1])
    fail_model("channels of " + to_string(in) + " are not " + std::to_string(r.regions) +
               " regions of " + std::to_string(r.coords) + " coordinates, a score and " +
               std::to_string(r.classes) + " classes");
  r.axis = checked_axis(a.get_int("axis", 1), in.size(), "axis");
  r.end_axis = checked_axis(a.get_int("end_axis", 3), in.size(), "end_axis");
  if (r.axis > r.end_axis) fail_model("axis is greater than end_axis");
  return r;
}

std::vector<ValueInfo> infer_region(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  const ValueInfo& in = context.inputs[0];
  const Region r = read_region(context.attributes, in.shape);
  Shape out = in.shape;
  if (r.softmax) {
    for (size_t d = r.axis + 1; d <= r.end_axis; ++d)
      out[r.axis] = checked_product(out[r.axis], in.shape[d]);
    out.erase(out.begin() + static_cast<int64_t>(r.axis) + 1,
              out.begin() + static_cast<int64_t>(r.end_axis) + 1);
  }
  return {{in.type, out}};
}

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

void evaluate_region(const OpDesc& desc, std::span<const Tensor> inputs,
                     std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const Region r = read_region(desc.attributes, shape);
  const int64_t plane = shape[2] * shape[3];
  for (int64_t region = 0; region < shape[0] * r.regions; ++region) {
    const float* in = inputs[0].data<float>() + region * r.entries() * plane;
    float* out = outputs[0].mutable_data<float>() + region * r.entries() * plane;
    for (int64_t e = 0; e < r.entries(); ++e) {
      const bool is_class = e > r.coords;
      const bool activated = e < 2 || e == r.coords || (is_class && !r.softmax);
      for (int64_t i = 0; i < plane; ++i)
        out[e * plane + i] = activated ? sigmoid(in[e * plane + i]) : in[e * plane + i];
    }
    if (!r.softmax || r.classes == 0) continue;
    for (int64_t i = 0; i < plane; ++i) {
      float* scores = out + (r.coords + 1) * plane + i;
      float largest = scores[0], sum = 0;
      for (int64_t c = 1; c < r.classes; ++c) largest = std::max(largest, scores[c * plane]);
      for (int64_t c = 0; c < r.classes; ++c)
        sum += scores[c * plane] = std::exp(scores[c * plane] - largest);
      for (int64_t c = 0; c < r.classes; ++c) scores[c * plane] /= sum;
    }
  }
}

// Returns the strides of the output along the input's dimensions, some of which are joined.
std::array<int64_t, 4> region_steps(const Region& r, const Shape& in, const TensorDesc& out) {
  std::array<int64_t, 4> steps{};
  for (size_t d = 0; d < 4; ++d) {
    if (!r.softmax || d < r.axis) {
      steps[d] = out.strides[d];
    } else if (d > r.end_axis) {
      steps[d] = out.strides[d - (r.end_axis - r.axis)];
    } else {
      steps[d] = out.strides[r.axis];
      for (size_t k = d + 1; k <= r.end_axis; ++k) steps[d] *= in[k];
    }
  }
  return steps;
}

std::string reject_region(const OpDesc& desc, const DeviceTraits&) {
  if (!desc.tail.empty()) return "takes no tail";
  for (const TensorDesc* t : {&desc.inputs[0], &desc.outputs[0]})
    if (t->type != ElementType::f32 && t->type != ElementType::f16) return "takes f32 and f16 only";
  return desc.outputs[0].elements() == 0 ? "the output is empty" : "";
}

std::vector<TuningPoint> group_space(const OpDesc&, const DeviceTraits& traits) {
  std::vector<TuningPoint> points;
  for (int group : {16, 64, 128})
    if (static_cast<size_t>(group) <= traits.max_work_group) points.push_back({{{"GROUP", group}}});
  return points;
}

TuningPoint group_heuristic(const OpDesc&, const DeviceTraits& traits) {
  return {{{"GROUP", traits.is_cpu ? 16 : 64}}};
}

struct Args {
#include "kernels/detection/region_yolo_args.cl"
};

KernelPlan plan_region(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  const Region r = read_region(desc.attributes, in.shape);
  const std::array<int64_t, 4> steps = region_steps(r, in.shape, out);
  const auto group = static_cast<size_t>(point["GROUP"]);
  KernelSpec spec;
  spec.source = "region_yolo.cl";
  spec.defines = {{"T_IN", storage_name(in.type)},
                  {"T_OUT", storage_name(out.type)},
                  {"SOFTMAX", r.softmax ? "1" : "0"},
                  {"GROUP", std::to_string(group)}};
  const int64_t cells = in.shape[0] * r.regions * in.shape[2] * in.shape[3];
  spec.global[0] = (static_cast<size_t>(cells) + group - 1) / group * group;
  spec.local[0] = group;
  spec.arguments = {Argument::input(0, size_of(in.type)), Argument::output(0, size_of(out.type)),
                    Argument::value(Args{.cells = to_int(cells),
                                         .regions = to_int(r.regions),
                                         .height = to_int(in.shape[2]),
                                         .width = to_int(in.shape[3]),
                                         .coords = to_int(r.coords),
                                         .classes = to_int(r.classes),
                                         .in_n = to_int(in.strides[0]),
                                         .in_c = to_int(in.strides[1]),
                                         .in_h = to_int(in.strides[2]),
                                         .in_w = to_int(in.strides[3]),
                                         .out_n = to_int(steps[0]),
                                         .out_c = to_int(steps[1]),
                                         .out_h = to_int(steps[2]),
                                         .out_w = to_int(steps[3])})};
  return {{spec}, {}, 0};
}

const KernelFamily kRegion{"region_yolo",   1,          reject_region, group_space,
                           group_heuristic, plan_region};

// ---- ReorgYolo ---------------------------------------------------------------------------------

int64_t reorg_stride(const Attributes& attributes, const Shape& in) {
  check_rank(in, 4, 4, "the input");
  const std::vector<int64_t> values = attributes.get_ints("stride");
  if (values.empty() || values[0] < 1 || values[0] > 1 << 14) fail_model("stride must be positive");
  const int64_t s = values[0];
  if (in[1] % (s * s) != 0 || in[2] % s != 0 || in[3] % s != 0)
    fail_model("stride " + std::to_string(s) + " does not divide " + to_string(in));
  return s;
}

std::vector<ValueInfo> infer_reorg(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  const ValueInfo& in = context.inputs[0];
  const int64_t s = reorg_stride(context.attributes, in.shape);
  const Shape out{in.shape[0], checked_product(in.shape[1], s * s), in.shape[2] / s,
                  in.shape[3] / s};
  checked_count(out);
  return {{in.type, out}};
}

StridedCopy describe_reorg(const OpDesc& desc) {
  const Shape& in = desc.inputs[0].shape;
  const int64_t s = reorg_stride(desc.attributes, in), c = in[1] / (s * s), h = in[2], w = in[3];
  StridedCopy copy;
  copy.dims = {{in[0], in[1] * h * w, in[1] * h * w},
               {s, w * s, s * c * h * w},
               {s, 1, c * h * w},
               {c, h * s * w * s, h * w},
               {h, s * w * s, w},
               {w, s, 1}};
  return copy;
}

void evaluate_reorg(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  OpDesc rows = desc;
  rows.inputs[0].shape = inputs[0].shape();
  copy_on_host(describe_reorg(rows), inputs[0], outputs[0]);
}

std::string reject_reorg(const OpDesc& desc, const DeviceTraits&) {
  if (!desc.inputs[0].is_row_major() || !desc.outputs[0].is_row_major())
    return "needs row-major memory";
  return reject_copy(desc, describe_reorg(desc));
}

const KernelFamily kReorg{
    "reorg_yolo",
    1,
    reject_reorg,
    copy_space,
    copy_heuristic,
    [](const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
      return plan_copy(desc, describe_reorg(desc), traits, point);
    }};

}  // namespace

std::vector<OpDef> region_yolo_ops() {
  return {{.type = "RegionYolo",
           .opsets = opset_range(1),
           .infer_shapes = infer_region,
           .evaluate = evaluate_region,
           .families = {&kRegion},
           .layout = LayoutRule::image},
          {.type = "ReorgYolo",
           .opsets = opset_range(2),
           .infer_shapes = infer_reorg,
           .evaluate = evaluate_reorg,
           .families = {&kReorg},
           .layout = LayoutRule::row_major}};
}

}  // namespace clinfer
