// "Reorder", the engine's own operation: copies a tensor to other strides or another element type.
#include <algorithm>
#include <cstdlib>

#include "kernels/arguments.h"
#include "kernels/kernel.h"
#include "kernels/movement/strided_copy.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infer_reorder(const ShapeContext& context) {
  check_inputs(context, 1, 1);
  return {{context.inputs[0].type, context.inputs[0].shape}};
}

void evaluate_reorder(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  copy_all(inputs[0].convert(outputs[0].type()), outputs[0]);
}

StridedCopy copy_of(const OpDesc& desc) {
  StridedCopy copy;
  for (size_t d = 0; d < desc.outputs[0].shape.size(); ++d)
    copy.dims.push_back(
        {desc.outputs[0].shape[d], desc.inputs[0].strides[d], desc.outputs[0].strides[d], {}});
  return copy;
}

const KernelFamily kRuns = copy_family<copy_of>("reorder_runs");

// The loops of a copy between different orders: `a` is dense in the output, `b` in the input.
struct Tiles {
  CopyDim a, b;
  std::vector<CopyDim> outer;
  bool found = false;
};

Tiles tiles_of(const OpDesc& desc) {
  Tiles tiles;
  std::vector<CopyDim> dims = merged(copy_of(desc).dims);
  const auto take = [&](auto&& fits, CopyDim& to) {
    const auto at = std::find_if(dims.begin(), dims.end(), fits);
    if (at == dims.end()) return false;
    to = *at;
    dims.erase(at);
    return true;
  };
  tiles.found = take([](const CopyDim& d) { return d.to == 1 && d.from != 1; }, tiles.a) &&
                take([](const CopyDim& d) { return d.from == 1; }, tiles.b);
  tiles.outer = std::move(dims);
  return tiles;
}

constexpr size_t kOuterLoops = 3;

std::string reject_tiles(const OpDesc& desc, const DeviceTraits&) {
  const std::string why = reject_copy(desc, copy_of(desc));
  if (!why.empty()) return why;
  const Tiles tiles = tiles_of(desc);
  if (!tiles.found) return "input and output are dense along the same dimension";
  if (tiles.outer.size() > kOuterLoops)
    return "needs more than " + std::to_string(kOuterLoops) + " outer loops";
  return "";
}

std::vector<TuningPoint> tiles_space(const OpDesc&, const DeviceTraits&) {
  std::vector<TuningPoint> points;
  for (int a : {1, 4, 16, 64})
    for (int b : {1, 4, 16, 64}) points.push_back({{{"TILE_A", a}, {"TILE_B", b}}});
  return points;
}

TuningPoint tiles_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const Tiles tiles = tiles_of(desc);
  // A work-item that reads along a long dense input relies on the cache to hold whole lines.
  if (!traits.is_cpu) {
    if (tiles.b.size >= 64) return {{{"TILE_A", 1}, {"TILE_B", 64}}};
    return {{{"TILE_A", 4}, {"TILE_B", 1}}};
  }
  if (tiles.a.size <= 4) return {{{"TILE_A", 4}, {"TILE_B", 64}}};
  return {{{"TILE_A", tiles.b.size <= 4 ? 64 : 16}, {"TILE_B", tiles.b.size <= 4 ? 4 : 16}}};
}

template <size_t DIMS>
struct Args {
#include "kernels/movement/reorder_args.cl"
};

KernelPlan plan_tiles(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const Tiles tiles = tiles_of(desc);
  const ElementType from = desc.inputs[0].type, to = desc.outputs[0].type;
  const size_t group = run_group(traits);
  KernelPlan plan;
  KernelSpec& spec = plan.launches.emplace_back();
  spec.source = "reorder.cl";
  std::string load = "*(p)", store = "*(p) = (v)", from_type = moved_type(from),
              to_type = moved_type(to);
  if (from != to) {
    from_type = value_type(from);
    to_type = value_type(to);
    if (from == ElementType::f16) load = "vload_half(0, p)";
    if (to == ElementType::f16)
      store = "vstore_half_rte(convert_float(v), 0, p)";
    else
      store =
          "*(p) = convert_" + to_type + (is_float(from) && !is_float(to) ? "_sat_rtz" : "") + "(v)";
  }
  spec.defines = {{"FROM", from_type},
                  {"TO", to_type},
                  {"LOAD_ONE(p)", load},
                  {"STORE_ONE(v, p)", store},
                  {"DIMS", std::to_string(kOuterLoops)},
                  {"GROUP", std::to_string(group)}};
  const auto covered = [](int64_t size, int tile) {
    return static_cast<size_t>((size + tile - 1) / tile);
  };
  size_t items = covered(tiles.a.size, point["TILE_A"]) * covered(tiles.b.size, point["TILE_B"]);
  std::vector<CopyDim> outer = tiles.outer;
  for (const CopyDim& d : outer) items *= static_cast<size_t>(d.size);
  std::reverse(outer.begin(), outer.end());  // the kernel numbers loops from the innermost
  outer.resize(kOuterLoops);
  Args<kOuterLoops> args{};
  args.tile_a = point["TILE_A"], args.tile_b = point["TILE_B"];
  args.size_a = to_int(tiles.a.size), args.from_a = to_int(tiles.a.from);
  args.size_b = to_int(tiles.b.size), args.to_b = to_int(tiles.b.to);
  set_loops(args, outer);
  spec.global[0] = (items + group - 1) / group * group;
  spec.local[0] = group;
  spec.arguments = {Argument::input(0, size_of(from)), Argument::output(0, size_of(to)),
                    Argument::value(args)};
  return plan;
}

const KernelFamily kTiles{"reorder_tiles", 1,         reject_tiles, tiles_space,
                          tiles_heuristic, plan_tiles};

}  // namespace

std::vector<OpDef> reorder_ops() {
  OpDef def;
  def.type = "Reorder";
  def.opsets = {1};
  def.infer_shapes = infer_reorder;
  def.evaluate = evaluate_reorder;
  def.families = {&kTiles, &kRuns};
  def.layout = LayoutRule::follow;
  return {def};
}

}  // namespace clinfer
