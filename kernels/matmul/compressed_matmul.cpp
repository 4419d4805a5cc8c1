// CompressedMatMul: shapes, reference implementation, and the kernel family.
#include "kernels/matmul/compressed_matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/arguments.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/item_kernel.h"
#include "kernels/storage.h"
#include "kernels/tail.h"

namespace clinfer {

namespace {

struct CompressedArgs {
#include "kernels/matmul/compressed_matmul_args.cl"
};

// Holds the sizes of a product. Its rows have up to three dimensions.
struct CompressedProduct {
  int bits = 4;
  int64_t n = 0, k = 0, scales = 1;  // columns, products of a sum, scales of a column
  Shape leading;                     // the data's dimensions but the last
  int64_t in_a_word() const { return 32 / bits; }
  int64_t rows() const { return count(leading); }
  int64_t words() const { return k / in_a_word(); }
  // Returns the words of a run: the most that share a scale and hold no more than 128 weights.
  int64_t run_words() const {
    const int64_t a_scale = words() / scales;
    int64_t run = std::min<int64_t>(a_scale, 128 / in_a_word());
    while (a_scale % run != 0) --run;
    return run;
  }
};

CompressedProduct sizes_of(const Attributes& attributes, const Shape& x, const Shape& codes,
                           const Shape& scales) {
  CompressedProduct p;
  p.bits = static_cast<int>(attributes.get_int("bits"));
  p.leading.assign(x.begin(), x.end() - 1);
  p.k = x.back(), p.n = codes[0], p.scales = scales[1];
  return p;
}

CompressedProduct sizes_of(const OpDesc& desc) {
  return sizes_of(desc.attributes, desc.inputs[0].shape, desc.inputs[1].shape,
                  desc.inputs[2].shape);
}

std::vector<ValueInfo> infer_compressed(const ShapeContext& context) {
  check_inputs(context, 4, 4);
  const auto shape = [&](size_t i) -> const Shape& { return context.inputs[i].shape; };
  const int64_t bits = context.attributes.get_int("bits");
  if (bits != 2 && bits != 4 && bits != 8) fail_model("bits is none of 2, 4, 8");
  if (shape(0).empty()) fail_model("the data have no dimension");
  for (const size_t i : {1, 2, 3}) check_rank(shape(i), 2, 2, "the weights");
  if (context.inputs[1].type != ElementType::u8 || !is_float(context.inputs[0].type))
    fail_model("takes floats, and weights as bytes");
  const CompressedProduct p = sizes_of(context.attributes, shape(0), shape(1), shape(2));
  if (p.k < 1 || p.scales < 1 || p.k % p.scales != 0 || shape(1)[1] * 8 != p.k * bits ||
      shape(2) != Shape{p.n, p.scales} || shape(3) != shape(2))
    fail_model("weights of " + to_string(shape(1)) + ", scales of " + to_string(shape(2)) +
               " and zeros of " + to_string(shape(3)) + " do not fit the data " +
               to_string(shape(0)));
  Shape out = p.leading;
  out.push_back(p.n);
  checked_count(out);
  return {{context.inputs[0].type, out}};
}

// Decompresses a column at a time. Sums in double.
void evaluate_compressed(const OpDesc& desc, std::span<const Tensor> inputs,
                         std::span<Tensor> outputs) {
  const CompressedProduct p =
      sizes_of(desc.attributes, inputs[0].shape(), inputs[1].shape(), inputs[2].shape());
  const std::vector<float> x = inputs[0].to_floats();
  const CompressedWeights weights(inputs[1], inputs[2], inputs[3], p.bits);
  std::vector<float> out(static_cast<size_t>(outputs[0].elements()));
  const int64_t rows = p.rows();
  const auto multiply = [&](int64_t from, int64_t to) {
    std::vector<float> column(static_cast<size_t>(p.k));
    for (int64_t n = from; n < to; ++n) {
      weights.write(n, 0, p.k, column.data());
      for (int64_t m = 0; m < rows; ++m) {
        double sum = 0;
        for (int64_t k = 0; k < p.k; ++k) sum += double{x[m * p.k + k]} * double{column[k]};
        out[m * p.n + n] = static_cast<float>(sum);
      }
    }
  };
  if (p.n > 0)
    WorkLimit::for_ranges(p.n, static_cast<double>(rows + 1) * static_cast<double>(p.k), multiply);
  outputs[0] = Tensor::of<float>(outputs[0].type(), outputs[0].shape(), out);
}

// ---- kernel ------------------------------------------------------------------------------------

// The dimensions of the output that the kernel's n, h, m and columns index.
TailAxes axes_of(const CompressedProduct& p) {
  const int rank = static_cast<int>(p.leading.size());
  const auto axis = [&](int from_last) { return rank >= from_last ? rank - from_last : -1; };
  return {axis(3), axis(2), axis(1), rank};
}

// Returns whether a GPU multiplies faster by floats than by compressed weights. It does from a few
// rows on, because the kernels for floats use matrix instructions. On an H200 4 bits take 0.85 of the
// time of f16 for one row, 0.91 for 4 and 3.5 times as long for 16; bytes take 1.4 times as long for
// one row. GPUs without matrix instructions were not measured.
bool faster_by_floats(const CompressedProduct& p, const DeviceTraits& traits) {
  if (traits.is_cpu) return false;
  return traits.matrix == MatrixUnit::none ? p.rows() > 16 : p.rows() > 4 || p.bits > 4;
}

std::string reject_compressed(const OpDesc& desc, const DeviceTraits& traits) {
  for (const size_t i : {1, 2, 3})
    if (desc.constants[i].empty()) return "the weights are not constant";
  if (!desc.constants[0].empty()) return "both inputs are constant";
  if (std::string why = reject_storage(desc, 1); !why.empty()) return why;
  const CompressedProduct p = sizes_of(desc);
  if (p.leading.size() > 3) return "more than two batch dimensions";
  if (p.k % p.in_a_word() != 0 || p.words() % p.scales != 0)
    return "weights of one scale do not fill words of 32 bits";
  if (p.words() > kMaxIndex / 64) return "the weights have too many rows";
  if (faster_by_floats(p, traits)) return "the GPU multiplies faster by floats";
  if (desc.outputs[0].strides.back() != 1 && p.n > 1)
    return "a row of the output is not adjacent in memory";
  return reject_tail(desc, 16, axes_of(p));
}

std::vector<TuningPoint> compressed_space(const OpDesc& desc, const DeviceTraits& traits) {
  const int64_t rows = sizes_of(desc).rows();
  std::vector<TuningPoint> space;
  const auto add = [&](int tile_m, int vectors, int vector, int lanes, int slices) {
    space.push_back({{{"TILE_M", tile_m},
                      {"VECTORS", vectors},
                      {"VECTOR", vector},
                      {"LANES", lanes},
                      {"SLICES", slices}}});
  };
  if (traits.is_cpu) {
    const int native = traits.vector_width >= 16 ? 16 : 8;
    for (const int vector : {native, 24 - native})
      for (const auto& [tile_m, vectors] : {std::pair{1, 4},
                                            {1, 2},
                                            {2, 4},
                                            {2, 2},
                                            {4, 4},
                                            {4, 2},
                                            {4, 1},
                                            {6, 1},
                                            {8, 2},
                                            {8, 1}})
        if (tile_m < rows + 4) add(tile_m, vectors, vector, 1, 1);
    return space;
  }
  for (const int lanes : {32, 16})
    for (const int slices : {8, 4, 16})
      for (const int vector : {1, 2, 4})
        for (const int tile_m : {1, 2, 4, 8})
          if (static_cast<size_t>(lanes * slices) <= traits.max_work_group &&
              static_cast<size_t>(lanes * slices * vector * tile_m) * sizeof(float) <=
                  traits.local_memory &&
              (tile_m == 1 || tile_m < 2 * rows))
            add(tile_m, 1, vector, lanes, slices);
  if (space.empty()) add(1, 1, 1, 8, 1);
  return space;
}

TuningPoint compressed_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const CompressedProduct p = sizes_of(desc);
  const auto cost = [&](const TuningPoint& t) {
    const int tile_m = t["TILE_M"], vector = t["VECTOR"], columns = t["VECTORS"] * vector;
    const double tiles = static_cast<double>(ceil_div(p.rows(), tile_m)),
                 blocks = static_cast<double>(ceil_div(p.n, columns * t["LANES"]));
    if (traits.is_cpu) {
      // Estimates the cycles for a row of weights: decompressing its vectors, most of which overlaps
      // with the products, and multiplying each vector by a number of each row. A vector has two
      // sums, one of them in the inner loop only.
      const double width = std::max(1.0, vector / static_cast<double>(traits.vector_width)),
                   sums = tile_m * t["VECTORS"] * width, waits = sums < 4 ? 4 / sums : 1;
      const int kept = traits.vector_width >= 16 ? 14 : 8;  // sums that registers hold
      const double spills = sums > 2 * kept ? 2 : sums > kept ? 1.2 : 1;
      return blocks * tiles * (1.5 * t["VECTORS"] * width + 0.25 * tile_m + sums * waits) * spills;
    }
    const double groups = blocks * tiles;
    const double idle = std::max(1.0, 2.0 * traits.compute_units / groups);
    const double narrow = vector * t["LANES"] >= 32 ? 1.0 : 1.2;
    return std::sqrt(idle) * narrow * tiles * (4 + 1.5 * tile_m) * blocks * columns *
           (t["LANES"] * t["SLICES"] == 256 ? 1.0 : 1.05);
  };
  return cheapest(compressed_space(desc, traits), cost);
}

// Packs the words of `codes` as [block][word][columns of a block].
std::vector<std::byte> packed_words(const Tensor& codes, const CompressedProduct& p,
                                    int64_t block) {
  const int64_t blocks = ceil_div(p.n, block);
  std::vector<std::byte> bytes(static_cast<size_t>(blocks * block * p.words()) * sizeof(uint32_t));
  auto* words = reinterpret_cast<uint32_t*>(bytes.data());
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t i = 0; i < p.words(); ++i)
      std::memcpy(words + (n / block * p.words() + i) * block + n % block,
                  codes.data<uint8_t>() + (n * p.words() + i) * 4, 4);
  return bytes;
}

// Packs a number for each scale as [block][scale][columns of a block].
std::vector<std::byte> packed_by_scale(const std::vector<float>& from, const CompressedProduct& p,
                                       int64_t block, ElementType type) {
  std::vector<float> to(static_cast<size_t>(ceil_div(p.n, block) * block * p.scales), 0.f);
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t g = 0; g < p.scales; ++g)
      to[(n / block * p.scales + g) * block + n % block] = from[n * p.scales + g];
  return to_bytes(to, type);
}

// Returns whether f16 holds the numbers exactly.
bool fit_halves(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float v) { return half_to_float(float_to_half(v)) == v; });
}

KernelPlan compressed_plan(const OpDesc& desc, const DeviceTraits& traits,
                           const TuningPoint& point) {
  const CompressedProduct p = sizes_of(desc);
  const ElementType type = desc.inputs[0].type;
  const int tile_m = point["TILE_M"], vectors = point["VECTORS"], vector = point["VECTOR"],
            lanes = point["LANES"], slices = point["SLICES"];
  const int64_t block = int64_t{lanes} * vectors * vector, blocks = ceil_div(p.n, block);
  // The kernel subtracts zeros together with 2^bits.
  const auto power = static_cast<float>(1 << p.bits);
  const Tensor codes = desc.constants[1];
  const std::vector<float> scales = desc.constants[2].to_floats();
  std::vector<float> zeros = desc.constants[3].to_floats();
  for (float& zero : zeros) zero += power;
  const bool has_zeros =
      std::any_of(zeros.begin(), zeros.end(), [&](float zero) { return zero != 1.5f * power; });
  const ElementType scale_type =
      fit_halves(scales) && fit_halves(zeros) ? ElementType::f16 : ElementType::f32;

  CompressedArgs args{};
  const size_t rank = p.leading.size();
  const auto stride = [&](const TensorDesc& of, size_t from_last) {
    return rank >= from_last ? to_int(of.strides[rank - from_last]) : 0;
  };
  const TensorDesc &in = desc.inputs[0], &out = desc.outputs[0];
  args.n = to_int(p.n), args.k = to_int(p.k), args.m = to_int(p.rows());
  args.rows = rank >= 1 ? to_int(p.leading[rank - 1]) : 1;
  args.slices_h = rank >= 2 ? to_int(p.leading[rank - 2]) : 1;
  args.a_n = stride(in, 3), args.a_h = stride(in, 2), args.a_m = stride(in, 1);
  args.o_n = stride(out, 3), args.o_h = stride(out, 2), args.o_m = stride(out, 1);
  args.a_k = to_int(in.strides.back());
  args.run_words = to_int(p.run_words());
  args.runs = to_int(p.words() / p.run_words());
  args.runs_a_scale = to_int(args.runs / p.scales);
  args.tiles = to_int(ceil_div(p.rows(), tile_m));
  args.tiles_per_item =
      traits.is_cpu
          ? to_int(tiles_per_item(args.tiles, blocks,
                                  2.0 * static_cast<double>(p.k * tile_m * block), traits))
          : 1;

  KernelPlan plan;
  plan.packed = {
      [codes, p, block] { return packed_words(codes, p, block); },
      [scales, p, block, scale_type] { return packed_by_scale(scales, p, block, scale_type); }};
  if (has_zeros)
    plan.packed.push_back(
        [zeros, p, block, scale_type] { return packed_by_scale(zeros, p, block, scale_type); });
  KernelSpec spec;
  spec.source = "compressed_matmul.cl";
  spec.defines = {{"T", storage_name(type)},
                  {"SCALE_T", storage_name(scale_type)},
                  {"BITS", std::to_string(p.bits)},
                  {"ZEROS", has_zeros ? "1" : "0"},
                  {"ADJACENT", args.a_k == 1 ? "1" : "0"},
                  {"TILE_M", std::to_string(tile_m)},
                  {"VECTORS", std::to_string(vectors)},
                  {"VECTOR", std::to_string(vector)},
                  {"LANES", std::to_string(lanes)},
                  {"SLICES", std::to_string(slices)}};
  const size_t size = size_of(type);
  spec.arguments = {Argument::input(0, size), Argument::packed(0, 4),
                    Argument::packed(1, size_of(scale_type))};
  if (has_zeros) spec.arguments.push_back(Argument::packed(2, size_of(scale_type)));
  spec.arguments.push_back(Argument::output(0, size));
  spec.arguments.push_back(Argument::value(args));
  add_tail(desc, vector, axes_of(p), spec, plan);
  spec.local = {static_cast<size_t>(lanes), static_cast<size_t>(slices), 1};
  if (slices > 1) spec.shared = sizeof(float) * static_cast<size_t>(slices * tile_m * block);
  spec.global = {static_cast<size_t>(blocks * lanes), static_cast<size_t>(slices),
                 static_cast<size_t>(ceil_div(args.tiles, args.tiles_per_item))};
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kCompressed{"fc_compressed",
                               1,
                               reject_compressed,
                               compressed_space,
                               compressed_heuristic,
                               compressed_plan,
                               nullptr,
                               "each run of weights with one scale has a sum"};

}  // namespace

Tensor packed_codes(const Tensor& codes, int bits) {
  const int64_t n = codes.shape()[0], in_a_byte = 8 / bits, bytes = codes.shape()[1] / in_a_byte;
  Tensor packed = Tensor::allocate(ElementType::u8, {n, bytes});
  const auto* from = codes.data<uint8_t>();
  auto* to = packed.mutable_data<uint8_t>();
  for (int64_t i = 0; i < n * bytes; ++i)
    for (int64_t j = 0; j < in_a_byte; ++j)
      to[i] = static_cast<uint8_t>(to[i] | *from++ << (j * bits));
  return packed;
}

std::vector<OpDef> compressed_matmul_ops() {
  OpDef op;
  op.type = "CompressedMatMul";
  op.opsets = {1};
  op.infer_shapes = infer_compressed;
  op.evaluate = evaluate_compressed;
  op.families = {&kCompressed};
  op.layout = LayoutRule::any_to_rows;
  return {std::move(op)};
}

}  // namespace clinfer
