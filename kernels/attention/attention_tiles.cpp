// Computes attention by tiles in local memory, on any device (attention_tiles.cl).
#include <algorithm>
#include <cmath>

#include "kernels/attention/attention.h"
#include "kernels/described_point.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// The most tiles of 16 sums in a work-item: more do not stay in Intel's registers.
constexpr int64_t kMostTiles = 3;

struct Point {
  int rows, block, scores_m, scores_n;
  static constexpr std::array<Parameter<Point>, 4> parameters() {
    return {{{"ROWS", &Point::rows},
             {"BLOCK", &Point::block},
             {"SCORES_M", &Point::scores_m},
             {"SCORES_N", &Point::scores_n}}};
  }

  int items() const { return rows / scores_m * (block / scores_n); }
  int64_t tiles(const AttentionProblem& p) const {
    return ceil_div(rows / 4 * ceil_div(p.value_size, 4), items());
  }
  size_t shared(const AttentionProblem& p) const {
    const int64_t depth = ceil_div(p.size, 4) * 4, channels = ceil_div(p.value_size, 4) * 4;
    return sizeof(float) * static_cast<size_t>(depth * (rows + 4) +
                                               std::max(depth * (block + 4), block * channels) +
                                               block * (rows + 4) + 2 * rows);
  }
};

std::vector<Point> points_of(const AttentionProblem& p, const DeviceTraits& traits) {
  std::vector<Point> points;
  for (const int rows : {32, 64, 16, 8, 4})
    for (const int block : {32, 16, 8})
      for (const auto& [m, n] : {std::pair{4, 4}, {4, 2}, {2, 2}, {2, 1}, {1, 1}}) {
        const Point point{rows, block, m, n};
        if (point.items() < 32 && rows > 4) continue;
        if (static_cast<size_t>(point.items()) > traits.max_work_group ||
            point.items() % (rows / 4) != 0 || point.items() < rows ||
            point.shared(p) > traits.local_memory || point.tiles(p) > kMostTiles)
          continue;
        points.push_back(point);
      }
  return points;
}

std::string reject(const OpDesc& desc, const DeviceTraits& traits) {
  if (std::string why = reject_attention(desc); !why.empty()) return why;
  if (points_of(attention_problem(desc), traits).empty())
    return "the device has too little local memory";
  return "";
}

std::vector<TuningPoint> space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> points;
  for (const Point& point : points_of(attention_problem(desc), traits))
    points.push_back(to_tuning(point));
  return points;
}

TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const AttentionProblem p = attention_problem(desc);
  std::vector<double> costs;
  const std::vector<Point> points = points_of(p, traits);
  for (const Point& t : points) {
    const auto groups = static_cast<double>(p.heads() * ceil_div(p.queries, t.rows));
    const auto blocks = static_cast<double>(ceil_div(p.keys, t.block));
    // Counts instructions of a work-item in a block: sums of scores and of results with what they
    // read, copies, exponentials, barriers.
    const double scores = static_cast<double>(p.size) * (t.scores_m * t.scores_n + 3);
    const double results = t.block * (20.0 * static_cast<double>(t.tiles(p)) + 5);
    const double copies = 4.0 * t.block * static_cast<double>(p.size + p.value_size) / t.items();
    const double each = scores + results + copies + 10.0 * t.scores_m * t.scores_n + t.block + 60;
    const double wanted = 512.0 * traits.compute_units, items = groups * t.items();
    costs.push_back(groups * blocks * each * t.items() * (items < wanted ? wanted / items : 1.0));
  }
  std::vector<TuningPoint> tunings;
  for (const Point& point : points) tunings.push_back(to_tuning(point));
  return cheapest(tunings, costs);
}

KernelPlan plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const AttentionProblem p = attention_problem(desc);
  const auto own = from_tuning<Point>(point);
  KernelPlan result;
  KernelSpec spec = attention_launch("attention_tiles.cl", desc, p, own.rows,
                                     {static_cast<size_t>(own.items()), 1, 1}, 0, result);
  add_defines(spec, own);
  spec.defines.emplace_back("ITEMS", std::to_string(own.items()));
  spec.defines.emplace_back("TILES", std::to_string(own.tiles(p)));
  spec.shared = own.shared(p);
  result.launches.push_back(std::move(spec));
  return result;
}

const KernelFamily kFamily{"attention_tiles", 1,    reject,  space,
                           heuristic,         plan, nullptr, kSumsOfBlocks};

}  // namespace

const KernelFamily& attention_tiles_family() { return kFamily; }

}  // namespace clinfer
