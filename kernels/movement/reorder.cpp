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
  // On a GPU, a work-item that reads along a long dense input relies on the cache to hold whole
  // lines.
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

// Makes the launch, without its work sizes.
KernelSpec tiles_launch(const OpDesc& desc, const Tiles& tiles, int64_t tile_a, int64_t tile_b) {
  const ElementType from = desc.inputs[0].type, to = desc.outputs[0].type;
  KernelSpec spec;
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
                  {"DIMS", std::to_string(kOuterLoops)}};
  std::vector<CopyDim> outer = tiles.outer;
  std::reverse(outer.begin(), outer.end());  // the kernel numbers loops from the innermost
  outer.resize(kOuterLoops);
  Args<kOuterLoops> args{};
  args.tile_a = to_int(tile_a), args.tile_b = to_int(tile_b);
  args.size_a = to_int(tiles.a.size), args.from_a = to_int(tiles.a.from);
  args.size_b = to_int(tiles.b.size), args.to_b = to_int(tiles.b.to);
  set_loops(args, outer);
  spec.arguments = {Argument::input(0, size_of(from)), Argument::output(0, size_of(to)),
                    Argument::value(args)};
  return spec;
}

size_t tile_count(const Tiles& tiles, int64_t tile_a, int64_t tile_b) {
  int64_t count = ceil_div(tiles.a.size, tile_a) * ceil_div(tiles.b.size, tile_b);
  for (const CopyDim& d : tiles.outer) count *= d.size;
  return static_cast<size_t>(count);
}

KernelPlan plan_tiles(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const Tiles tiles = tiles_of(desc);
  const size_t group = run_group(traits),
               items = tile_count(tiles, point["TILE_A"], point["TILE_B"]);
  KernelSpec spec = tiles_launch(desc, tiles, point["TILE_A"], point["TILE_B"]);
  spec.source = "reorder.cl";
  spec.defines.emplace_back("GROUP", std::to_string(group));
  spec.global[0] = (items + group - 1) / group * group;
  spec.local[0] = group;
  KernelPlan plan;
  plan.launches.push_back(std::move(spec));
  return plan;
}

// The size of tiles in local memory (reorder_local.cl).
constexpr int64_t kTile = 32;
// The shortest dimensions for which tiles are used; those of shorter ones would be mostly empty.
constexpr int64_t kShort = 16;

std::string reject_local(const OpDesc& desc, const DeviceTraits& traits) {
  if (traits.is_cpu) return "a CPU's caches need no help of local memory";
  if (std::string why = reject_tiles(desc, traits); !why.empty()) return why;
  const Tiles tiles = tiles_of(desc);
  if (tiles.a.size < kShort || tiles.b.size < kShort)
    return "a dense dimension has fewer than " + std::to_string(kShort) + " elements";
  return size_of(desc.inputs[0].type) > 4 ? "the elements are larger than 4 bytes" : "";
}

std::vector<TuningPoint> local_space(const OpDesc&, const DeviceTraits& traits) {
  std::vector<TuningPoint> points;
  for (const int rows : {8, 4, 16, 2})
    if (static_cast<size_t>(kTile * rows) <= traits.max_work_group)
      points.push_back({{{"ROWS", rows}}});
  return points;
}

TuningPoint local_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  return local_space(desc, traits).front();
}

KernelPlan plan_local(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const Tiles tiles = tiles_of(desc);
  const ElementType from = desc.inputs[0].type;
  KernelSpec spec = tiles_launch(desc, tiles, kTile, kTile);
  spec.source = "reorder_local.cl";
  const bool converts = from != desc.outputs[0].type;
  const std::string held = !converts                  ? moved_type(from)
                           : from == ElementType::f16 ? "float"
                                                      : value_type(from);
  spec.defines.emplace_back("HELD", held);
  spec.defines.emplace_back("TILE", std::to_string(kTile));
  spec.defines.emplace_back("ROWS", std::to_string(point["ROWS"]));
  spec.shared = static_cast<size_t>(kTile * (kTile + 1)) *
                (from == ElementType::f16 && converts ? sizeof(float) : size_of(from));
  spec.local = {static_cast<size_t>(kTile), static_cast<size_t>(point["ROWS"]), 1};
  spec.global = {tile_count(tiles, kTile, kTile) * spec.local[0], spec.local[1], 1};
  KernelPlan plan;
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kLocal{"reorder_local", 1,         reject_local, local_space,
                          local_heuristic, plan_local};

const KernelFamily kTiles{"reorder_tiles", 1,         reject_tiles, tiles_space,
                          tiles_heuristic, plan_tiles};

}  // namespace

std::vector<OpDef> reorder_ops() {
  OpDef def;
  def.type = "Reorder";
  def.opsets = {1};
  def.infer_shapes = infer_reorder;
  def.evaluate = evaluate_reorder;
  def.families = {&kLocal, &kTiles, &kRuns};
  def.layout = LayoutRule::follow;
  return {def};
}

}  // namespace clinfer
