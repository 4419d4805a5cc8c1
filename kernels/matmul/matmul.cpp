// MatMul: shapes, reference implementation, and the families fully connected (the tile kernel of
// convolution.cl), gemv and general.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/arguments.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/convolution/intel/convolution_subgroup.h"
#include "kernels/convolution/intel/convolution_xmx16.h"
#include "kernels/convolution/intel/convolution_xmx8.h"
#include "kernels/convolution/nvidia/convolution_mma.h"
#include "kernels/convolution/nvidia/convolution_wgmma.h"
#include "kernels/convolution/processors/convolution_amx.h"
#include "kernels/convolution/processors/convolution_bf16.h"
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/convolution/tiles/tile_family.h"
#include "kernels/expand.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr size_t kMaxRank = 6;

// An operand as [batch..., rows, columns] with the strides of a view; a vector gets the missing
// dimension.
struct Operand {
  Shape batch, batch_strides;
  int64_t rows = 1, columns = 1, row_stride = 0, column_stride = 0;
};

Operand operand(const TensorDesc& desc, bool transpose, bool is_left) {
  Operand o;
  const size_t rank = desc.shape.size();
  if (rank == 1) {  // a row on the left, a column on the right; transposing has no effect
    (is_left ? o.columns : o.rows) = desc.shape[0];
    (is_left ? o.column_stride : o.row_stride) = desc.strides[0];
    return o;
  }
  o.batch.assign(desc.shape.begin(), desc.shape.end() - 2);
  o.batch_strides.assign(desc.strides.begin(), desc.strides.end() - 2);
  o.rows = desc.shape[rank - 2], o.columns = desc.shape[rank - 1];
  o.row_stride = desc.strides[rank - 2], o.column_stride = desc.strides[rank - 1];
  if (transpose) {
    std::swap(o.rows, o.columns);
    std::swap(o.row_stride, o.column_stride);
  }
  return o;
}

// A product with all sizes resolved. Batch dimensions are those of the output, outermost first;
// strides are 0 along broadcast dimensions.
struct Product {
  Operand a, b;
  Shape batch, a_batch, b_batch;
  // False if the output lacks the dimension, because that operand is a vector.
  bool has_m = true, has_n = true;

  Shape out_shape() const {
    Shape shape = batch;
    if (has_m) shape.push_back(a.rows);
    if (has_n) shape.push_back(b.columns);
    return shape;
  }
  TailAxes axes() const {
    int last = static_cast<int>(batch.size()) + has_m + has_n - 1;
    TailAxes axes{-1, -1, -1, -1};
    if (has_n) axes.c = last--;
    if (has_m) axes.w = last--;
    if (last >= 0) axes.h = last--;
    if (last >= 0) axes.n = last--;
    return axes;
  }
};

Product resolve(const Attributes& attributes, const TensorDesc& left, const TensorDesc& right) {
  check_rank(left.shape, 1, kMaxRank, "the first input");
  check_rank(right.shape, 1, kMaxRank, "the second input");
  Product p;
  p.a = operand(left, attributes.get_bool("transpose_a", false), true);
  p.b = operand(right, attributes.get_bool("transpose_b", false), false);
  p.has_m = left.shape.size() > 1;
  p.has_n = right.shape.size() > 1;
  if (p.a.columns != p.b.rows)
    fail_model("the matrices " + to_string(left.shape) + " and " + to_string(right.shape) +
               " do not fit: " + std::to_string(p.a.columns) + " columns meet " +
               std::to_string(p.b.rows) + " rows");
  const size_t rank = std::max(p.a.batch.size(), p.b.batch.size());
  for (size_t i = 0; i < rank; ++i) {
    const auto at = [&](const Operand& o) -> std::pair<int64_t, int64_t> {
      if (i < rank - o.batch.size()) return {1, 0};
      const size_t j = i - (rank - o.batch.size());
      return {o.batch[j], o.batch[j] == 1 ? 0 : o.batch_strides[j]};
    };
    const auto [a_size, a_stride] = at(p.a);
    const auto [b_size, b_stride] = at(p.b);
    if (a_size != b_size && a_size != 1 && b_size != 1)
      fail_model("the batches of " + to_string(left.shape) + " and " + to_string(right.shape) +
                 " do not fit");
    p.batch.push_back(a_size == 1 ? b_size : a_size);
    p.a_batch.push_back(a_stride);
    p.b_batch.push_back(b_stride);
  }
  return p;
}

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const auto desc = [&](size_t i) {
    return TensorDesc::row_major(context.inputs[i].type, context.inputs[i].shape);
  };
  const Shape shape = resolve(context.attributes, desc(0), desc(1)).out_shape();
  checked_count(shape);
  const ElementType type = context.inputs[0].type;  // sums of quantised values are floats
  return {{is_quantized(type) ? ElementType::f32 : type, shape, {}}};
}

// Sums in double.
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const auto dense = [&](size_t i) {
    return TensorDesc::row_major(inputs[i].type(), inputs[i].shape());
  };
  const Product p = resolve(desc.attributes, dense(0), dense(1));
  const std::vector<float> left = data_values(desc, inputs[0]), right = inputs[1].to_floats();
  std::vector<float> out(static_cast<size_t>(outputs[0].elements()));
  const int64_t rows = p.a.rows, columns = p.b.columns;
  Shape index(p.batch.size(), 0);
  if (count(p.batch) == 0) return;
  float* to = out.data();
  do {
    const float *a = left.data(), *b = right.data();
    for (size_t i = 0; i < index.size(); ++i)
      a += index[i] * p.a_batch[i], b += index[i] * p.b_batch[i];
    // Computes rows [m0, m1) and columns [n0, n1) of one product.
    const auto multiply = [&](int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
      std::vector<double> sums(static_cast<size_t>(n1 - n0));
      for (int64_t m = m0; m < m1; ++m) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t k = 0; k < p.a.columns; ++k) {
          const double x = a[m * p.a.row_stride + k * p.a.column_stride];
          for (int64_t n = n0; n < n1; ++n)
            sums[n - n0] += x * b[k * p.b.row_stride + n * p.b.column_stride];
        }
        for (int64_t n = n0; n < n1; ++n) to[m * columns + n] = static_cast<float>(sums[n - n0]);
      }
    };
    const double all =
        static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(p.a.columns);
    if (rows > columns)
      WorkLimit::for_ranges(rows, all / static_cast<double>(rows),
                            [&](int64_t m0, int64_t m1) { multiply(m0, m1, 0, columns); });
    else if (columns > 0)
      WorkLimit::for_ranges(columns, all / static_cast<double>(columns),
                            [&](int64_t n0, int64_t n1) { multiply(0, rows, n0, n1); });
    to += rows * columns;
  } while (next_index(index, p.batch));
  outputs[0] = Tensor::of<float>(outputs[0].type(), outputs[0].shape(), out);
}

// ---- fully connected ---------------------------------------------------------------------------

// Returns the strides of the output as [batch..., m, n]; 0 for a dimension that a vector operand
// lacks.
Operand output_operand(const OpDesc& desc, const Product& p) {
  const TensorDesc& out = desc.outputs[0];
  Operand o;
  o.batch = p.batch;
  o.batch_strides.assign(out.strides.begin(),
                         out.strides.begin() + static_cast<std::ptrdiff_t>(p.batch.size()));
  o.rows = p.a.rows, o.columns = p.b.columns;
  if (p.has_m) o.row_stride = out.strides[p.batch.size()];
  if (p.has_n) o.column_stride = out.strides[p.batch.size() + p.has_m];
  return o;
}

// Returns the weights as [n][k], the order in which a 1x1 convolution reads them.
std::vector<float> weights_by_column(const Tensor& value, const Product& p) {
  const std::vector<float> from = value.to_floats();
  std::vector<float> to(from.size());
  const bool transposed = p.b.column_stride != 1 && p.b.columns > 1;  // [n][k] in the file
  if (transposed) return from;
  for (int64_t n = 0; n < p.b.columns; ++n)
    for (int64_t k = 0; k < p.b.rows; ++k) to[n * p.b.rows + k] = from[k * p.b.columns + n];
  return to;
}

// Returns the reason why the second input is not a matrix of constant weights that all rows of the
// first input share, or "".
std::string reject_shared_weights(const OpDesc& desc, const Product& p) {
  if (desc.constants[1].empty()) return "the second input is not constant";
  if (!desc.constants[0].empty()) return "both inputs are constant";
  if (count(p.b.batch) != 1) return "the weights are batched";
  if (p.batch.size() > 2) return "more than two batch dimensions";
  return "";
}

std::string reject_weights(const OpDesc& desc, const Product& p) {
  if (std::string why = reject_shared_weights(desc, p); !why.empty()) return why;
  return reject_storage(desc, 1);
}

// Treats rows as pixels: m is the innermost dimension, the batch dimensions are the others.
TileProblem tile_problem(const OpDesc& desc) {
  const Product p = resolve(desc.attributes, desc.inputs[0],
                            TensorDesc::row_major(desc.inputs[1].type, desc.inputs[1].shape));
  const Operand out = output_operand(desc, p);
  TileProblem problem;
  ConvShape& s = problem.shape;
  s.in_channels = p.a.columns;
  s.out_channels = p.b.columns;
  s.in[2] = p.a.rows;
  problem.in.c = p.a.column_stride, problem.in.w = p.a.row_stride;
  problem.out.c = out.column_stride, problem.out.w = out.row_stride;
  const size_t rank = p.batch.size();
  if (rank >= 1)
    s.in[1] = p.batch[rank - 1], problem.in.h = p.a_batch[rank - 1],
    problem.out.h = out.batch_strides[rank - 1];
  if (rank >= 2)
    s.batch = p.batch[rank - 2], problem.in.n = p.a_batch[rank - 2],
    problem.out.n = out.batch_strides[rank - 2];
  s.out = s.in;
  problem.axes = p.axes();
  problem.weights = [value = desc.constants[1], p] { return weights_by_column(value, p); };
  return problem;
}

Product resolve_constant(const OpDesc& desc) {
  return resolve(desc.attributes, desc.inputs[0],
                 TensorDesc::row_major(desc.inputs[1].type, desc.inputs[1].shape));
}

// Does what reject_weights() does, but takes integers as weights for sums of bytes.
std::string reject_weights_of_any(const OpDesc& desc) {
  const Product p = resolve_constant(desc);
  return is_quantized(desc.inputs[0].type) ? reject_shared_weights(desc, p)
                                           : reject_weights(desc, p);
}

std::string reject_fully_connected(const OpDesc& desc, const DeviceTraits& traits) {
  if (std::string why = reject_weights(desc, resolve_constant(desc)); !why.empty()) return why;
  return reject_tile(desc, tile_problem(desc), traits);
}

const KernelFamily kFullyConnected =
    tile_family<tile_problem, tile_space, tile_heuristic, tile_plan, tile_costs>(
        "fc_tile", 3, reject_fully_connected);

const KernelFamily kSubgroup =
    tile_family<tile_problem, subgroup_space, subgroup_heuristic, subgroup_plan, subgroup_costs>(
        "fc_subgroup", 2, [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
          if (std::string why = reject_weights_of_any(desc); !why.empty()) return why;
          return reject_subgroup(desc, tile_problem(desc), traits);
        });

const KernelFamily kXmx8 =
    tile_family<tile_problem, xmx8_space, xmx8_heuristic, xmx8_plan, xmx8_costs>(
        "fc_xmx8", 1,
        [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
          if (std::string why = reject_weights_of_any(desc); !why.empty()) return why;
          return reject_xmx8(desc, tile_problem(desc), traits);
        },
        kMatrixOrder);

const KernelFamily kXmx16 =
    tile_family<tile_problem, xmx16_space, xmx16_heuristic, xmx16_plan, xmx16_costs>(
        "fc_xmx16", 1,
        [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
          if (std::string why = reject_weights_of_any(desc); !why.empty()) return why;
          return reject_xmx16(desc, tile_problem(desc), traits);
        },
        kMatrixOrder);

const KernelFamily kMma = tile_family<tile_problem, mma_space, mma_heuristic, mma_plan, mma_costs>(
    "fc_mma", 1,
    [](const OpDesc& desc, const DeviceTraits& traits) {
      if (std::string why = reject_weights_of_any(desc); !why.empty()) return why;
      return reject_mma(desc, tile_problem(desc), traits);
    },
    kMatrixOrder);

const KernelFamily kWgmma =
    tile_family<tile_problem, wgmma_space, wgmma_heuristic, wgmma_plan, wgmma_costs>(
        "fc_wgmma", 1,
        [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
          if (std::string why = reject_weights_of_any(desc); !why.empty()) return why;
          return reject_wgmma(desc, tile_problem(desc), traits);
        },
        kMatrixOrder);

const KernelFamily kAmx = tile_family<tile_problem, amx_space, amx_heuristic, amx_plan, amx_costs>(
    "fc_amx", 1, [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
      if (!takes_bytes(desc)) return "the data are not bytes";
      if (std::string why = reject_shared_weights(desc, resolve_constant(desc)); !why.empty())
        return why;
      return reject_amx(desc, tile_problem(desc), traits);
    });

const KernelFamily kBf16 =
    tile_family<tile_problem, bf16_space, bf16_heuristic, bf16_plan, bf16_costs>(
        "fc_bf16", 1,
        [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
          if (std::string why = reject_weights(desc, resolve_constant(desc)); !why.empty())
            return why;
          return reject_bf16(desc, tile_problem(desc), traits);
        },
        kMatrixOrder);

const KernelFamily kInt8 =
    tile_family<tile_problem, int8_space, int8_heuristic, int8_plan, int8_costs>(
        "fc_int8", 1, [](const OpDesc& desc, const DeviceTraits& traits) -> std::string {
          if (!takes_bytes(desc)) return "the data are not bytes";
          if (std::string why = reject_shared_weights(desc, resolve_constant(desc)); !why.empty())
            return why;
          return reject_int8(desc, tile_problem(desc), traits);
        });

// ---- gemv --------------------------------------------------------------------------------------

struct GemvArgs {
#include "kernels/matmul/matmul_gemv_args.cl"
};

std::string reject_gemv(const OpDesc& desc, const DeviceTraits& traits) {
  if (traits.is_cpu) return "a CPU does as well with the tile kernel";
  const Product p = resolve_constant(desc);
  if (std::string why = reject_weights(desc, p); !why.empty()) return why;
  const TileProblem problem = tile_problem(desc);
  if (problem.shape.pixels() > 8) return "more than eight rows";
  // A row reads all weights again, while a matrix instruction reads them once for up to 16 rows.
  if (problem.shape.pixels() > 4 && reject_mma(desc, problem, traits).empty())
    return "more than four rows, which matrix instructions multiply together";
  if (problem.in.c != 1 && problem.shape.in_channels > 1)
    return "a row of the first input is not adjacent in memory";
  if (problem.out.c != 1 && problem.shape.out_channels > 1)
    return "a row of the output is not adjacent in memory";
  if (problem.shape.in_channels * (problem.shape.out_channels + 512) >
      std::numeric_limits<int32_t>::max())
    return "the weights have more than 2^31 elements";
  return reject_tail(desc, 4, problem.axes);
}

std::vector<TuningPoint> gemv_space(const OpDesc&, const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (int vector : {2, 1, 4})
    for (int lanes : {16, 8, 32, 64})
      for (int slices : {16, 8, 32, 4})
        if (static_cast<size_t>(lanes * slices) <= std::min<size_t>(traits.max_work_group, 512) &&
            static_cast<size_t>(lanes * slices * vector) * sizeof(float) <= traits.local_memory)
          space.push_back({{{"VECTOR", vector}, {"LANES", lanes}, {"SLICES", slices}}});
  if (space.empty()) space.push_back({{{"VECTOR", 1}, {"LANES", 8}, {"SLICES", 4}}});
  return space;
}

TuningPoint gemv_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const TileProblem problem = tile_problem(desc);
  // Prefers enough work-groups for the device, then wide rows of weights, then no slice without
  // work.
  const auto cost = [&](const TuningPoint& p) {
    const int64_t groups =
        ceil_div(problem.shape.out_channels, p["VECTOR"] * p["LANES"]) * problem.shape.pixels();
    const double idle = std::max(1.0, 2.0 * traits.compute_units / static_cast<double>(groups));
    const double narrow = p["VECTOR"] * p["LANES"] >= 32 ? 1.0 : 1.2;
    const double rounds =
        static_cast<double>(ceil_div(problem.shape.in_channels, p["SLICES"])) + 2 * p["SLICES"];
    return std::sqrt(idle) * narrow * rounds * (p["LANES"] * p["SLICES"] == 256 ? 1.0 : 1.05);
  };
  return cheapest(gemv_space(desc, traits), cost);
}

KernelPlan gemv_plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const TileProblem problem = tile_problem(desc);
  const ConvShape& s = problem.shape;
  const ElementType type = desc.inputs[0].type;
  const int vector = point["VECTOR"], lanes = point["LANES"], slices = point["SLICES"];
  const int64_t groups = ceil_div(s.out_channels, vector * lanes),
                columns = groups * vector * lanes;
  const GemvArgs args{.n = to_int(s.out_channels),
                      .k = to_int(s.in_channels),
                      .columns = to_int(columns),
                      .a_n = to_int(problem.in.n),
                      .a_h = to_int(problem.in.h),
                      .a_m = to_int(problem.in.w),
                      .o_n = to_int(problem.out.n),
                      .o_h = to_int(problem.out.h),
                      .o_m = to_int(problem.out.w),
                      .rows = to_int(s.in[2]),
                      .slices_h = to_int(s.in[1])};
  KernelPlan plan;
  plan.packed.push_back([weights = problem.weights, s, columns, type] {
    const std::vector<float> from = weights();
    std::vector<float> to(static_cast<size_t>(s.in_channels * columns), 0.f);
    for (int64_t n = 0; n < s.out_channels; ++n)
      for (int64_t k = 0; k < s.in_channels; ++k) to[k * columns + n] = from[n * s.in_channels + k];
    return to_bytes(to, type);
  });
  KernelSpec spec;
  spec.source = "matmul_gemv.cl";
  spec.defines = {{"T", storage_name(type)},
                  {"VECTOR", std::to_string(vector)},
                  {"LANES", std::to_string(lanes)},
                  {"SLICES", std::to_string(slices)}};
  const size_t size = size_of(type);
  spec.arguments = {Argument::input(0, size), Argument::packed(0, size), Argument::output(0, size),
                    Argument::value(args)};
  add_tail(desc, vector, problem.axes, spec, plan);
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(slices), 1};
  spec.shared = sizeof(float) * static_cast<size_t>(lanes * slices * vector);
  spec.global = {static_cast<size_t>(groups) * spec.local[0], spec.local[1],
                 static_cast<size_t>(s.pixels())};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kGemv{"fc_gemv",      1,         reject_gemv, gemv_space,
                         gemv_heuristic, gemv_plan, nullptr,     kSharedSums};

// ---- general -----------------------------------------------------------------------------------

struct GeneralArgs {
#include "kernels/matmul/matmul_args.cl"
};

// Resolves the product with the layouts that the kernel sees, in which constants are packed
// row-major.
Product resolve_packed(const OpDesc& desc) {
  const auto layout = [&](size_t i) {
    return desc.constants[i].empty()
               ? desc.inputs[i]
               : TensorDesc::row_major(desc.inputs[i].type, desc.inputs[i].shape);
  };
  return resolve(desc.attributes, layout(0), layout(1));
}

bool can_dot(const Product& p) {
  return (p.a.column_stride == 1 || p.a.columns == 1) && (p.b.row_stride == 1 || p.b.rows == 1);
}

bool columns_adjacent(const Product& p) { return p.b.column_stride == 1 && p.b.columns > 1; }

constexpr int64_t kMaxCopiedRows = 512;  // rows of 16 columns that fit the L1 cache

std::string reject_general(const OpDesc& desc, const DeviceTraits&) {
  if (std::string why = reject_storage(desc, 2); !why.empty()) return why;
  if (desc.inputs[1].type != desc.inputs[0].type) return "the inputs differ in type";
  const Product p = resolve_packed(desc);
  const Operand out = output_operand(desc, p);
  if (p.batch.size() > 4) return "more than four batch dimensions";
  if (count(p.batch) > kMaxGroups) return "more than 65535 matrices";
  if (out.column_stride != 1 && p.b.columns > 1)
    return "a row of the output is not adjacent in memory";
  return reject_tail(desc, 16, p.axes());
}

std::vector<TuningPoint> general_space(const OpDesc& desc, const DeviceTraits& traits) {
  const Product p = resolve_packed(desc);
  const bool dots = can_dot(p) && !traits.ordered_sums;  // each element of a vector has a sum
  std::vector<TuningPoint> space;
  const auto add = [&](int dot, int vector, int tile_m, int tile_n, int lanes, int rows) {
    space.push_back({{{"DOT", dot},
                      {"VECTOR", vector},
                      {"TILE_M", tile_m},
                      {"TILE_N", tile_n},
                      {"LANES", lanes},
                      {"ROWS", rows}}});
  };
  if (traits.is_cpu) {
    const bool copies = !columns_adjacent(p) && p.a.columns <= kMaxCopiedRows;
    for (int tile_m : {6, 2, 1, 12})
      for (int vector : {16, 8}) {
        // Leaves out points with more sums than registers.
        if (tile_m > 6 && vector > static_cast<int>(traits.vector_width)) continue;
        add(0, vector, tile_m, 1, 1, 1);
        if (copies) add(2, vector, tile_m, 1, 1, 1);
      }
    if (dots)
      for (int vector : {16, 8})
        for (int tile_m : {4, 1}) add(1, vector, tile_m, 4, 1, 1);
    return space;
  }
  for (int lanes : {16, 32, 8})
    for (int items : {128, 64, 256}) {
      if (static_cast<size_t>(items) > traits.max_work_group) continue;
      for (int tile_m : {4, 2, 1}) {
        for (int vector : {4, 2}) add(0, vector, tile_m, 1, lanes, items / lanes);
        if (dots) add(1, 4, tile_m, 2, lanes, items / lanes);
      }
    }
  if (space.empty()) add(0, 2, 1, 1, 1, 1);
  return space;
}

TuningPoint general_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const Product p = resolve_packed(desc);
  const bool vectors = columns_adjacent(p);
  const double wanted = traits.is_cpu ? 1.0 : 256.0 * traits.compute_units;
  const auto cost = [&](const TuningPoint& t) {
    const bool dot = t["DOT"] == 1, copies = t["DOT"] == 2;
    const int vector = t["VECTOR"], tile_m = t["TILE_M"], tile_n = dot ? t["TILE_N"] : vector;
    const double tiles = static_cast<double>(ceil_div(p.a.rows, tile_m) *
                                             ceil_div(p.b.columns, tile_n) * count(p.batch));
    const double width =
        std::max(1.0, static_cast<double>(vector) / std::max(1u, traits.vector_width));
    const double steps =
        dot ? static_cast<double>(p.a.columns) / vector + vector : static_cast<double>(p.a.columns);
    const double row_tiles = static_cast<double>(ceil_div(p.a.rows, tile_m));
    const double columns = vectors ? 1.0 : copies ? 1 + 2.0 * vector / row_tiles : 2.0 * vector;
    const double work = dot ? tile_m * tile_n + tile_m + tile_n : tile_m + columns;
    return tiles * (steps * work * width + 10) * (tiles < wanted ? wanted / tiles : 1.0) *
           (t["LANES"] * t["ROWS"] == 128 ? 1.0 : 1.02);
  };
  return cheapest(general_space(desc, traits), cost);
}

KernelPlan general_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const Product p = resolve_packed(desc);
  const Operand out = output_operand(desc, p);
  const ElementType type = desc.inputs[0].type;
  const int vector = point["VECTOR"], tile_m = point["TILE_M"], lanes = point["LANES"],
            rows = point["ROWS"];
  const bool dot = point["DOT"] == 1;
  const int tile_n = dot ? point["TILE_N"] : vector;
  // Sets batch dimensions, aligned to the right of four.
  const auto batch = [&](const Shape& values, int at, int64_t none) {
    const int i = at - (4 - static_cast<int>(p.batch.size()));
    return to_int(i < 0 ? none : values[i]);
  };
  GeneralArgs args{};
  args.m = to_int(p.a.rows), args.n = to_int(p.b.columns), args.k = to_int(p.a.columns);
  args.size1 = batch(p.batch, 1, 1), args.size2 = batch(p.batch, 2, 1),
  args.size3 = batch(p.batch, 3, 1);
  args.a0 = batch(p.a_batch, 0, 0), args.a1 = batch(p.a_batch, 1, 0),
  args.a2 = batch(p.a_batch, 2, 0), args.a3 = batch(p.a_batch, 3, 0);
  args.b0 = batch(p.b_batch, 0, 0), args.b1 = batch(p.b_batch, 1, 0),
  args.b2 = batch(p.b_batch, 2, 0), args.b3 = batch(p.b_batch, 3, 0);
  args.o0 = batch(out.batch_strides, 0, 0), args.o1 = batch(out.batch_strides, 1, 0),
  args.o2 = batch(out.batch_strides, 2, 0), args.o3 = batch(out.batch_strides, 3, 0);
  args.a_m = to_int(p.a.row_stride), args.a_k = to_int(p.a.column_stride);
  args.b_k = to_int(p.b.row_stride), args.b_n = to_int(p.b.column_stride);
  args.o_m = to_int(out.row_stride);
  args.tiles = to_int(ceil_div(p.a.rows, tile_m));
  const int64_t column_tiles = ceil_div(p.b.columns, tile_n) * count(p.batch);
  args.tiles_per_item =
      to_int(traits.is_cpu
                 ? tiles_per_item(args.tiles, column_tiles, 2.0 * args.k * tile_m * tile_n, traits)
                 : ceil_div(ceil_div(args.tiles, rows), kMaxGroups));

  KernelPlan plan;
  KernelSpec spec;
  const size_t size = size_of(type);
  for (size_t i : {0, 1}) {
    if (desc.constants[i].empty()) {
      spec.arguments.push_back(Argument::input(i, size));
    } else {
      spec.arguments.push_back(Argument::packed(plan.packed.size(), size));
      plan.packed.push_back(
          [value = desc.constants[i], type] { return to_bytes(value.to_floats(), type); });
    }
  }
  spec.arguments.push_back(Argument::output(0, size));
  spec.arguments.push_back(Argument::value(args));
  spec.source = "matmul.cl";
  spec.defines = {{"T", storage_name(type)},
                  {"VECTOR", std::to_string(vector)},
                  {"TILE_M", std::to_string(tile_m)},
                  {"TILE_N", std::to_string(dot ? tile_n : 1)},
                  {"LANES", std::to_string(lanes)},
                  {"ROWS", std::to_string(rows)},
                  {"B_VECTOR", p.b.column_stride == 1 ? "1" : "0"},
                  {"DOT", std::to_string(point["DOT"])}};
  if (point["DOT"] == 2) spec.defines.push_back({"DEPTH", std::to_string(p.a.columns)});
  add_tail(desc, dot ? 1 : vector, p.axes(), spec, plan);
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(rows), 1};
  const int64_t items = ceil_div(args.tiles, args.tiles_per_item);
  spec.global = {
      static_cast<size_t>(ceil_div(ceil_div(p.b.columns, tile_n), lanes)) * spec.local[0],
      static_cast<size_t>(ceil_div(items, rows)) * spec.local[1],
      static_cast<size_t>(count(p.batch))};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kGeneral{"matmul_general",  1,           reject_general, general_space,
                            general_heuristic, general_plan};

}  // namespace

std::vector<OpDef> matmul_ops() {
  OpDef matmul;
  matmul.type = "MatMul";
  matmul.opsets = {1};
  matmul.infer_shapes = infer_shapes;
  matmul.evaluate = evaluate;
  matmul.families = {&kGemv, &kWgmma,          &kMma, &kXmx8, &kXmx16,  &kSubgroup,
                     &kBf16, &kFullyConnected, &kAmx, &kInt8, &kGeneral};
  matmul.layout = LayoutRule::any_to_rows;
  matmul.expand = [](Expansion& x) {
    if (!is_quantized(x.info(0).type)) compute_in_floats(x, 2, true);
  };
  return {std::move(matmul)};
}

}  // namespace clinfer
