// Computes attention by matrix instructions of warps (attention_mma.cl).
#include <algorithm>
#include <cmath>

#include "kernels/attention/attention.h"
#include "kernels/described_point.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kMostSize = 128;  // largest head whose sums stay in registers, in channels
constexpr int kChunk = 8;           // halves that are copied at once

struct Point {
  int tile_p, warps, block, stages;
  static constexpr std::array<Parameter<Point>, 4> parameters() {
    return {{{"TILE_P", &Point::tile_p},
             {"WARPS", &Point::warps},
             {"BLOCK", &Point::block},
             {"STAGES", &Point::stages}}};
  }

  int rows() const { return 16 * tile_p * warps; }
  // Counts the 32-bit registers for queries, scores and sums.
  int64_t registers(const AttentionProblem& p) const {
    return tile_p * (ceil_div(p.size, 16) * 4 + block / 2 + ceil_div(p.value_size, 16) * 8);
  }
  size_t shared(const AttentionProblem& p, bool emulated) const {
    const int64_t line = ceil_div(p.size, 16) * 16 + ceil_div(p.value_size, 16) * 16 + 16;
    return static_cast<size_t>(2 * stages * block * line) +
           (emulated ? static_cast<size_t>(warps * (32 + 8 * tile_p * block) * 4) : 0);
  }
};

std::vector<Point> points_of(const AttentionProblem& p, const DeviceTraits& traits) {
  constexpr int64_t kMostRegisters = 168;  // the compiler needs 1.4 times as many, and 16 more
  std::vector<Point> points;
  for (const int tile_p : {1, 2})
    for (const int warps : {4, 2, 1, 8})
      for (const int block : {64, 32, 128, 16})
        for (const int stages : {2, 1}) {
          const Point point{tile_p, warps, block, stages};
          if (point.registers(p) > kMostRegisters ||
              static_cast<size_t>(32 * warps) > traits.max_work_group ||
              point.shared(p, traits.matrix == MatrixUnit::emulated) > traits.local_memory)
            continue;
          // Leaves out points whose tiles would be half empty, or that have nothing to copy ahead.
          if (point.rows() > 16 && point.rows() / 2 >= p.queries) continue;
          if ((block > 16 && block / 2 >= p.keys) || (stages == 2 && block >= p.keys)) continue;
          points.push_back(point);
        }
  return points;
}

// Returns whether each matrix of the operand has rows of whole chunks.
bool in_chunks(const AttentionOperand& o, int64_t offset, int64_t columns, int64_t chunk) {
  const auto fits = [&](int64_t elements) { return elements % chunk == 0; };
  return fits(offset) && fits(columns) && fits(o.row) &&
         std::all_of(o.batch.begin(), o.batch.end(), fits);
}

std::string reject(const OpDesc& desc, const DeviceTraits& traits) {
  if (traits.matrix != MatrixUnit::ptx && traits.matrix != MatrixUnit::emulated)
    return "the device has no matrix instructions of warps";
  if (desc.inputs[0].type != ElementType::f16) return "the data are not f16";
  if (std::string why = reject_attention(desc); !why.empty()) return why;
  const AttentionProblem p = attention_problem(desc);
  if (p.size > kMostSize || p.value_size > kMostSize)
    return "heads of more than " + std::to_string(kMostSize) + " channels";
  if (!in_chunks(p.query, desc.inputs[0].offset, p.size, kChunk) ||
      !in_chunks(p.key, desc.inputs[1].offset, p.size, kChunk) ||
      !in_chunks(p.value, desc.inputs[2].offset, p.value_size, kChunk) ||
      !in_chunks(p.out, desc.outputs[0].offset, p.value_size, 2))
    return "the channels of a head are no whole chunks of 16 bytes";
  if (points_of(p, traits).empty()) return "the device has too little local memory";
  return "";
}

std::vector<TuningPoint> space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> points;
  for (const Point& point : points_of(attention_problem(desc), traits))
    points.push_back(to_tuning(point));
  return points;
}

// Estimates cycles of a compute unit with four schedulers, each of which runs its share of the
// warps.
TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const AttentionProblem p = attention_problem(desc);
  const std::vector<Point> points = points_of(p, traits);
  std::vector<double> costs;
  std::vector<TuningPoint> tunings;
  for (const Point& t : points) {
    tunings.push_back(to_tuning(t));
    const auto groups = static_cast<double>(p.heads() * ceil_div(p.queries, t.rows()));
    const auto blocks = static_cast<double>(ceil_div(p.keys, t.block));
    const auto channels = static_cast<double>(p.size + p.value_size);
    // The cycles of a warp in one block are those of products, exponentials, operands read from
    // local memory, copies, sums that are scaled, and the wait for a block.
    const double products = t.tile_p * t.block * channels / 64;
    const double exponentials = t.tile_p * t.block * 4.0;
    const double reads = t.block * channels / 128;
    const double copies = t.block * channels / (32.0 * t.warps) + 60;
    const double scaled = t.tile_p * (static_cast<double>(p.value_size) / 2 + 60);
    const double wait = t.stages == 2 ? 400 : 1200;
    // Estimate of the compiler's allocation.
    const double registers = 1.4 * static_cast<double>(t.registers(p)) + 16;
    const double at_once =
        std::max(1.0, std::min(std::floor(65536 / (registers * 32 * t.warps)),
                               std::floor(200e3 / static_cast<double>(t.shared(p, false) + 1024))));
    const double units = std::max(1u, traits.compute_units);
    // Warps of a compute unit.
    const double here = std::min(at_once, std::ceil(groups / units)) * t.warps;
    const double busy = products + exponentials + reads + copies + scaled;
    const double each = std::max(busy * std::max(here / 4, 1.0), busy + wait);
    const double rounds = std::ceil(groups / (units * at_once));
    costs.push_back(rounds * (blocks * each + 1500));
  }
  return cheapest(tunings, costs);
}

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const AttentionProblem p = attention_problem(desc);
  const auto own = from_tuning<Point>(point);
  const bool emulated = traits.matrix == MatrixUnit::emulated;
  KernelPlan result;
  KernelSpec spec = attention_launch("attention_mma.cl", desc, p, own.rows(),
                                     {32, static_cast<size_t>(own.warps), 1}, 0, result);
  add_defines(spec, own);
  spec.defines.emplace_back("MMA_PTX", emulated ? "0" : "1");
  spec.shared = own.shared(p, emulated);
  result.launches.push_back(std::move(spec));
  return result;
}

const KernelFamily kFamily{"attention_mma", 1,    reject,  space,
                           heuristic,       plan, nullptr, kSumsOfBlocks};

}  // namespace

const KernelFamily& attention_mma_family() { return kFamily; }

}  // namespace clinfer
