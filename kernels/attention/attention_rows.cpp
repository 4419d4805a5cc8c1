// Computes attention by vectors along the queries, on CPUs (attention_rows.cl).
#include <algorithm>
#include <cmath>

#include "kernels/attention/attention.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kMostPrivate = 320 << 10;  // bytes of a work-item's private memory

int64_t private_bytes(const AttentionProblem& p, int64_t rows, int64_t block) {
  return 4 * ((rows + block) * (p.size + p.value_size + 16) + rows * block);
}

std::string reject(const OpDesc& desc, const DeviceTraits& traits) {
  if (!traits.is_cpu) return "the device is no CPU";
  return reject_attention(desc);
}

TuningPoint point_of(int vector, int tile_m, int tile_n, int rows, int block) {
  return {{{"VECTOR", vector},
           {"TILE_M", tile_m},
           {"TILE_N", tile_n},
           {"ROWS", rows},
           {"BLOCK", block}}};
}

std::vector<TuningPoint> space(const OpDesc& desc, const DeviceTraits& traits) {
  const AttentionProblem p = attention_problem(desc);
  std::vector<TuningPoint> points;
  for (const int vector : {16, 8, 4}) {
    if (vector > 4 && vector > 2 * static_cast<int>(traits.vector_width)) continue;
    for (const auto& [tile_m, tile_n] : {std::pair{8, 2}, {4, 2}, {8, 1}})
      for (const int rows : {64, 32, 16, 8})
        for (const int block : {64, 32}) {
          const int columns = vector * tile_n;
          if (rows % columns != 0) continue;
          if (rows > columns && rows / 2 >= p.queries) continue;  // half of the rows would be empty
          if (block > 32 && (p.keys <= 32 || private_bytes(p, rows, block) > kMostPrivate))
            continue;
          points.push_back(point_of(vector, tile_m, tile_n, rows, block));
        }
  }
  return points;
}

// Returns the number of queries of a work-item, such that all work-items have the same number.
int64_t rows_of(const AttentionProblem& p, const TuningPoint& point) {
  const int64_t rows = point["ROWS"], columns = point["VECTOR"] * point["TILE_N"];
  const int64_t blocks = ceil_div(p.queries, rows);
  return ceil_div(ceil_div(p.queries, blocks), columns) * columns;
}

TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const AttentionProblem p = attention_problem(desc);
  const double width = std::max(1u, traits.vector_width);
  const auto cost = [&](const TuningPoint& t) {
    const int64_t columns = t["VECTOR"] * t["TILE_N"], tile_m = t["TILE_M"];
    const int64_t rows = rows_of(p, t), blocks = ceil_div(p.queries, rows);
    const auto keys = static_cast<double>(p.keys);
    const auto channels = static_cast<double>(ceil_div(p.value_size, tile_m) * tile_m + p.size);
    // Counts native vectors of queries, and instructions for a multiply-add of one of them. The
    // kernel reads a number for each vector, and a vector for each row; registers hold the sums.
    const double vectors = static_cast<double>(ceil_div(p.queries, columns) * columns) / width;
    const double registers = width >= 16 ? 32 : 16;
    const double sums = static_cast<double>(tile_m * columns) / width;
    const double each = 1 + 1.0 / static_cast<double>(tile_m) +
                        width / static_cast<double>(columns) + (sums + 3 > registers ? 2.0 : 0.0) +
                        (sums < 8 ? 8 / sums - 1 : 0.0);
    const double softmax = 24 + static_cast<double>(p.size + p.value_size) / t["BLOCK"];
    const double copies = static_cast<double>(blocks) * keys * channels / width * 4;
    const double turns = static_cast<double>(p.queries) * channels * 3;
    const double work = vectors * keys * (channels * each + softmax) + copies + turns;
    // Adds the time for which cores wait for the last work-item.
    const double items = static_cast<double>(p.heads() * blocks), units = traits.compute_units;
    const double rounds = std::ceil(items / std::max(1.0, units)) * units / items;
    return work * (1 + 0.5 * (rounds - 1));
  };
  return cheapest(space(desc, traits), cost);
}

KernelPlan plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const AttentionProblem p = attention_problem(desc);
  KernelPlan result;
  const int64_t rows = rows_of(p, point);
  KernelSpec spec = attention_launch("attention_rows.cl", desc, p, rows, {1, 1, 1}, rows, result);
  for (const char* name : {"VECTOR", "TILE_M", "TILE_N", "BLOCK"})
    spec.defines.emplace_back(name, std::to_string(point[name]));
  spec.defines.emplace_back("ROWS", std::to_string(rows));
  result.launches.push_back(std::move(spec));
  return result;
}

const KernelFamily kFamily{"attention_rows", 1,    reject,  space,
                           heuristic,        plan, nullptr, kSumsOfBlocks};

}  // namespace

const KernelFamily& attention_rows_family() { return kFamily; }

}  // namespace clinfer
