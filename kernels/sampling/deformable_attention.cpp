// Deformable attention, the engine's own operation: the sum of samples of several maps, each times a
// weight. Inputs, for each of L maps: maps [batch, groups, height, width, channels], then L grids [batch,
// groups, queries, points, 2] of coordinates as GridSample takes them, then the weights [batch, groups,
// queries, points of all maps]. Output: [batch, queries, groups, channels]. Attributes: those of GridSample.
#include <algorithm>

#include "kernels/arguments.h"
#include "kernels/item_kernel.h"
#include "kernels/sampling/grid_sample.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"

namespace clinfer {

namespace {

constexpr size_t kMostLevels = 5;

size_t levels_of(size_t inputs) { return (inputs - 1) / 2; }

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  const size_t inputs = context.inputs.size();
  if (inputs < 3 || inputs % 2 == 0)
    fail_model("it has " + std::to_string(inputs) + " inputs, no map and grid a level");
  const size_t levels = levels_of(inputs);
  const Shape &first = context.inputs[0].shape, &weights = context.inputs.back().shape;
  check_rank(weights, 4, 4, "the weights");
  int64_t points = 0;
  for (size_t l = 0; l < levels; ++l) {
    const Shape &map = context.inputs[l].shape, &grid = context.inputs[levels + l].shape;
    check_rank(map, 5, 5, "a map");
    check_rank(grid, 5, 5, "a grid");
    if (map[0] != first[0] || map[1] != first[1] || map[4] != first[4] || map[2] < 1 ||
        map[3] < 1 || grid[0] != map[0] || grid[1] != map[1] || grid[2] != weights[2] ||
        grid[4] != 2)
      fail_model("the grid " + to_string(grid) + " does not fit the map " + to_string(map));
    points += grid[3];
  }
  if (weights[0] != first[0] || weights[1] != first[1] || weights[3] != points)
    fail_model("the weights " + to_string(weights) + " do not fit the points");
  for (const ValueInfo& input : context.inputs)
    if (!is_float(input.type)) fail_model("its inputs must be floats");
  sampling_of(context.attributes);
  const Shape out{first[0], weights[2], first[1], first[4]};
  checked_count(out);
  return {{context.inputs[0].type, out, {}}};
}

// Sums in double.
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Sampling s = sampling_of(desc.attributes);
  const auto taps = static_cast<size_t>(s.taps());
  const size_t levels = levels_of(inputs.size());
  const Shape& out = outputs[0].shape();
  const int64_t queries = out[1], groups = out[2], channels = out[3];
  std::vector<double> sums(static_cast<size_t>(count(out)));
  const std::vector<float> weights = inputs.back().to_floats();
  const int64_t all_points = inputs.back().shape()[3];
  int64_t first_point = 0;
  for (size_t l = 0; l < levels; ++l) {
    const Shape& map = inputs[l].shape();
    const int64_t points = inputs[levels + l].shape()[3];
    const std::vector<float> values = inputs[l].to_floats(), grid = inputs[levels + l].to_floats();
    for (int64_t r = 0; r < out[0] * groups * queries; ++r) {
      const int64_t image = r / queries, n = image / groups, g = image % groups, q = r % queries;
      double* const sum = sums.data() + ((n * queries + q) * groups + g) * channels;
      for (int64_t p = 0; p < points; ++p) {
        const float* const place = grid.data() + 2 * (r * points + p);
        const double weight = weights[r * all_points + first_point + p];
        const Taps x = taps_of(place[0], map[3], s), y = taps_of(place[1], map[2], s);
        for (size_t i = 0; i < taps; ++i)
          for (size_t k = 0; k < taps; ++k) {
            if (y.at[i] < 0 || x.at[k] < 0) continue;
            const float* const from =
                values.data() + ((image * map[2] + y.at[i]) * map[3] + x.at[k]) * channels;
            for (int64_t c = 0; c < channels; ++c)
              sum[c] += weight * y.share[i] * x.share[k] * from[c];
          }
      }
    }
    first_point += points;
  }
  outputs[0] =
      Tensor::of<float>(outputs[0].type(), out, std::vector<float>(sums.begin(), sums.end()));
}

// ---- kernel ------------------------------------------------------------------------------------

std::string reject(const OpDesc& desc, const DeviceTraits&) {
  if (!desc.tail.empty()) return "takes no tail";
  const size_t levels = levels_of(desc.inputs.size());
  if (levels > kMostLevels) return "more than " + std::to_string(kMostLevels) + " maps";
  if (std::string why = reject_storage(desc, desc.inputs.size()); !why.empty()) return why;
  for (const Tensor& constant : desc.constants)
    if (!constant.empty()) return "an input is constant";
  const auto adjacent = [](const TensorDesc& t) {
    return t.strides.back() == 1 || t.shape.back() == 1;
  };
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    const TensorDesc& input = desc.inputs[i];
    if (i < levels ? input.type != desc.inputs[0].type
                   : input.type != ElementType::f32 && input.type != ElementType::f16)
      return "maps, grids or weights are of other types";
    if (i > levels && i < 2 * levels && input.type != desc.inputs[levels].type)
      return "the grids differ in type";
    if (i < levels && !adjacent(input)) return "the channels of a map are not adjacent in memory";
  }
  if (!adjacent(desc.outputs[0])) return "the channels of the output are not adjacent in memory";
  return "";
}

TuningPoint point_of(int vector, int vectors, int local) {
  return {{{"VECTOR", vector}, {"VECTORS", vectors}, {"LOCAL", local}}};
}

// On a CPU a work-item computes many channels, for which it finds the pixels once.
std::vector<TuningPoint> space(const OpDesc& desc, const DeviceTraits& traits) {
  const int64_t channels = desc.outputs[0].shape[3];
  std::vector<TuningPoint> points;
  for (const int vector : {16, 8, 4, 1}) {
    if (channels % vector != 0 || vector > (traits.is_cpu ? 16 : 8)) continue;
    for (const int vectors : {4, 2, 1}) {
      if (channels % (vector * vectors) != 0 || (vectors > 1 && (!traits.is_cpu || vector == 1)))
        continue;
      if (traits.is_cpu) {
        points.push_back(point_of(vector, vectors, 1));
        continue;
      }
      for (const TuningPoint& item : item_space(desc, traits))
        points.push_back(point_of(vector, vectors, item["LOCAL"]));
    }
  }
  return points;
}

TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const std::vector<TuningPoint> points = space(desc, traits);
  const auto wide = static_cast<int>(std::max(4u, traits.vector_width));
  const auto cost = [&](const TuningPoint& t) {
    if (!traits.is_cpu) return std::abs(t["VECTOR"] - 4.0);
    // Prefers native vectors, and all channels in one item.
    const double excess = t["VECTOR"] > wide ? 1.5 : 1;
    return (1.0 + 8.0 / t["VECTORS"]) / t["VECTOR"] * excess;
  };
  return cheapest(points, cost);
}

template <size_t MAPS>
struct Args {
#include "kernels/sampling/deformable_attention_args.cl"
};

template <size_t MAPS>
Argument arguments_of(const OpDesc& desc, const TuningPoint& point, int64_t run) {
  Args<MAPS> a{};
  for (size_t l = 0; l < MAPS; ++l) {
    const TensorDesc &map = desc.inputs[l], &grid = desc.inputs[MAPS + l];
    a.map_n[l] = to_int(map.strides[0]), a.map_g[l] = to_int(map.strides[1]);
    a.map_h[l] = to_int(map.strides[2]), a.map_w[l] = to_int(map.strides[3]);
    a.height[l] = to_int(map.shape[2]), a.width[l] = to_int(map.shape[3]);
    a.grid_n[l] = to_int(grid.strides[0]), a.grid_g[l] = to_int(grid.strides[1]);
    a.grid_q[l] = to_int(grid.strides[2]), a.grid_p[l] = to_int(grid.strides[3]);
    a.grid_xy[l] = to_int(grid.strides[4]), a.points[l] = to_int(grid.shape[3]);
  }
  const TensorDesc &weights = desc.inputs.back(), &out = desc.outputs[0];
  a.weight_n = to_int(weights.strides[0]), a.weight_g = to_int(weights.strides[1]);
  a.weight_q = to_int(weights.strides[2]), a.weight_p = to_int(weights.strides[3]);
  a.out_n = to_int(out.strides[0]), a.out_q = to_int(out.strides[1]);
  a.out_g = to_int(out.strides[2]);
  a.queries = to_int(out.shape[1]), a.groups = to_int(out.shape[2]);
  a.blocks = to_int(out.shape[3] / (point["VECTOR"] * point["VECTORS"]));
  a.items = to_int(out.shape[0] * out.shape[1] * out.shape[2] * a.blocks), a.run = to_int(run);
  return Argument::value(a);
}

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const size_t levels = levels_of(desc.inputs.size());
  const int64_t channels = point["VECTOR"] * point["VECTORS"];
  const int64_t items = desc.outputs[0].elements() / channels;
  const Sampling s = sampling_of(desc.attributes);
  const auto flops = static_cast<double>(desc.inputs.back().shape[3] * s.taps() * s.taps()) *
                     (2 * static_cast<double>(channels) + 100);
  const int64_t run = traits.is_cpu ? tiles_per_item(items, 1, flops, traits) : 1;
  KernelSpec spec;
  spec.source = "deformable_attention.cl";
  spec.defines = {{"T", storage_name(desc.inputs[0].type)},
                  {"GRID", storage_name(desc.inputs[levels].type)},
                  {"WEIGHT", storage_name(desc.inputs.back().type)},
                  {"MAPS", std::to_string(levels)},
                  {"VECTOR", std::to_string(point["VECTOR"])},
                  {"VECTORS", std::to_string(point["VECTORS"])}};
  for (auto& define : s.defines()) spec.defines.push_back(std::move(define));
  for (size_t i = 0; i < desc.inputs.size(); ++i)
    spec.arguments.push_back(Argument::input(i, size_of(desc.inputs[i].type)));
  spec.arguments.push_back(Argument::output(0, size_of(desc.outputs[0].type)));
  spec.arguments.push_back(with_count<1, 2, 3, 4, kMostLevels>(
      levels, [&](auto count) { return arguments_of<count>(desc, point, run); }));
  set_items(spec, ceil_div(items, run), point);
  KernelPlan result;
  result.launches.push_back(std::move(spec));
  return result;
}

const KernelFamily kFamily{"deformable_attention", 1, reject, space, heuristic, plan};

}  // namespace

std::vector<OpDef> deformable_attention_ops() {
  return {{.type = "DeformableAttention",
           .opsets = {1},
           .infer_shapes = infer_shapes,
           .evaluate = evaluate,
           .families = {&kFamily},
           .layout = LayoutRule::any_to_rows}};
}

}  // namespace clinfer
