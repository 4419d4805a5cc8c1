// Finds text as DB does (PP-OCR and similar networks): the network gives a probability of text for
// each pixel. Regions above a level become the smallest rotated rectangles around them, which are
// enlarged to the size of the text, since the network is trained on shrunk regions. M. Liao and
// others, "Real-time Scene Text Detection with Differentiable Binarization", 2020.
#include <algorithm>
#include <cmath>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/pictures/maps.h"
#include "engine/heads/points/points.h"

namespace clinfer {
namespace {

constexpr float kLevel = 0.3f;   // least probability of a pixel of text
constexpr float kGrowth = 1.5f;  // multiplied by area over perimeter
// The least side of a region in cells: PP-OCR drops regions with fewer than 3 between the centres
// of their outer cells.
constexpr float kLeastSide = 4;
constexpr size_t kMostRegions = 1000;

struct Spot {
  float x, y;
};

// Returns a positive value if b lies clockwise of a, seen from o, with y downwards.
float cross(const Spot& o, const Spot& a, const Spot& b) {
  return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

// Returns the convex hull, by the monotone chain algorithm.
std::vector<Spot> hull(std::vector<Spot> spots) {
  std::sort(spots.begin(), spots.end(),
            [](const Spot& a, const Spot& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  if (spots.size() < 3) return spots;
  std::vector<Spot> chain(2 * spots.size());
  size_t n = 0;
  const auto add = [&](const Spot& spot, size_t least) {
    while (n >= least + 2 && cross(chain[n - 2], chain[n - 1], spot) <= 0) --n;
    chain[n++] = spot;
  };
  for (const Spot& spot : spots) add(spot, 0);
  const size_t lower = n - 1;
  for (size_t i = spots.size() - 1; i-- > 0;) add(spots[i], lower);
  chain.resize(n - 1);
  return chain;
}

// Finds the rectangle of least area around the hull, which has a side along one of its edges.
OrientedBox smallest_rectangle(const std::vector<Spot>& corners) {
  OrientedBox best;
  float least = INFINITY;
  for (size_t i = 0; i < corners.size(); ++i) {
    const Spot &a = corners[i], &b = corners[(i + 1) % corners.size()];
    const float length = std::hypot(b.x - a.x, b.y - a.y);
    if (!(length > 0)) continue;
    const float c = (b.x - a.x) / length, s = (b.y - a.y) / length;
    float left = INFINITY, right = -INFINITY, top = INFINITY, bottom = -INFINITY;
    for (const Spot& spot : corners) {
      const float along = spot.x * c + spot.y * s, across = spot.y * c - spot.x * s;
      left = std::min(left, along);
      right = std::max(right, along);
      top = std::min(top, across);
      bottom = std::max(bottom, across);
    }
    const float area = (right - left) * (bottom - top);
    if (!(area < least)) continue;
    least = area;
    const float x = (left + right) / 2, y = (top + bottom) / 2;
    best = {x * c - y * s, x * s + y * c, right - left, bottom - top, std::atan2(s, c)};
  }
  return best;
}

// Makes the width lie along the text: in the direction closest to horizontal, unless the text is
// clearly vertical.
void turn_to_reading(OrientedBox& box) {
  constexpr float kQuarter = 1.57079632679f;
  while (box.rotation > kQuarter / 2) box.rotation -= kQuarter, std::swap(box.width, box.height);
  while (box.rotation <= -kQuarter / 2) box.rotation += kQuarter, std::swap(box.width, box.height);
}

// Cells of text that touch each other, with the sum of their probabilities.
struct Region {
  std::vector<Spot> edge;  // corners at the ends of its rows
  double sum = 0;
  size_t cells = 0;
};

std::vector<Region> regions_of(const Floats& values, size_t rows, size_t columns) {
  std::vector<Region> regions;
  std::vector<uint8_t> open(rows * columns);
  for (size_t i = 0; i < open.size(); ++i) open[i] = values[i] > kLevel;
  std::vector<size_t> ahead;
  for (size_t start = 0; start < open.size() && regions.size() < kMostRegions; ++start) {
    if (!open[start]) continue;
    Region& region = regions.emplace_back();
    open[start] = 0;
    ahead = {start};
    while (!ahead.empty()) {
      const size_t at = ahead.back(), row = at / columns, column = at % columns;
      ahead.pop_back();
      region.sum += values[at];
      ++region.cells;
      size_t neighbours = 0;
      for (size_t r = row > 0 ? row - 1 : 0; r <= std::min(row + 1, rows - 1); ++r)
        for (size_t c = column > 0 ? column - 1 : 0; c <= std::min(column + 1, columns - 1); ++c) {
          const size_t next = r * columns + c;
          neighbours += values[next] > kLevel;
          if (!open[next]) continue;
          open[next] = 0;
          ahead.push_back(next);
        }
      if (neighbours == 9) continue;  // an inner cell
      const float x = static_cast<float>(column), y = static_cast<float>(row);
      region.edge.insert(region.edge.end(), {{x, y}, {x + 1, y}, {x, y + 1}, {x + 1, y + 1}});
    }
  }
  return regions;
}

void decode_text(const ModelFacts& facts, const MapLayout& layout, std::span<const Tensor> outputs,
                 const DecodeSettings& settings, Results& results) {
  const Floats values(output_of(outputs, layout.index, layout.elements()));
  Candidates candidates(settings);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < -0.01f || values[i] > 1.01f) candidates.expect_probability(values[i]);
  const float x_step = static_cast<float>(facts.width) / static_cast<float>(layout.columns),
              y_step = static_cast<float>(facts.height) / static_cast<float>(layout.rows);
  std::vector<OrientedBox> boxes;
  for (Region& region : regions_of(values, layout.rows, layout.columns)) {
    OrientedBox box = smallest_rectangle(hull(std::move(region.edge)));
    if (!(std::min(box.width, box.height) >= kLeastSide)) continue;
    const float grown = box.width * box.height * kGrowth / (2 * (box.width + box.height));
    box.width = (box.width + 2 * grown) * x_step;
    box.height = (box.height + 2 * grown) * y_step;
    box.x_center *= x_step;
    box.y_center *= y_step;
    turn_to_reading(box);
    const Hull around = hull_of(box);
    candidates.add(around.x_min, around.y_min, around.x_max, around.y_max,
                   static_cast<float>(region.sum / static_cast<double>(region.cells)), 0,
                   boxes.size());
    boxes.push_back(box);
  }
  finish(settings, Suppression::none, candidates, results,
         [&](const Candidate& candidate, Detection& detection) {
           detection.label = facts.labels.empty() ? "text" : facts.labels[0];
           detection.oriented_box = boxes[candidate.row];
         });
}

}  // namespace

Match match_text_detection(const ModelFacts& facts) {
  std::optional<MapLayout> layout;
  for (size_t i = 0; i < facts.outputs.size() && !layout; ++i)
    if (const auto map = map_layout(facts, i); map && map->channels == 1 &&
                                               is_float_output(facts.outputs[i]) &&
                                               map->rows <= static_cast<size_t>(facts.height))
      layout = map;
  if (!layout) return {Fit::no, "needs a probability of text for each pixel ([1,1,h,w])", {}};
  const OutputFacts& output = facts.outputs[layout->index];
  const std::string type = lower(info(facts, "model_type"));
  const bool named = type.find("text_det") != std::string::npos || type == "db" ||
                     is_called(facts, output, {"ocr", "ppocr", "text", "dbnet", "db", "det"}) ||
                     is_called(facts, output, {"ch_pp", "en_pp", "craft"});
  Match match;
  match.fit = named && facts.outputs.size() == 1                    ? Fit::certain
              : output.op == "Sigmoid" && facts.outputs.size() == 1 ? Fit::possible
                                                                    : Fit::against;
  match.reason = "a probability of text for each of " + std::to_string(layout->columns) + "x" +
                 std::to_string(layout->rows) + " pixels";
  if (match.fit == Fit::against) match.doubt = "which nothing says";
  match.decode = [facts, layout = *layout](std::span<const Tensor> outputs,
                                           const DecodeSettings& settings, Results& results) {
    decode_text(facts, layout, outputs, settings, results);
  };
  const bool paddle = from_paddle(facts, output) || type.find("text_det") != std::string::npos ||
                      is_called(facts, output, {"ppocr", "ch_pp", "en_pp"});
  match.picture = picture_of(paddle ? Family::text_detection : Family::text_regions);
  return match;
}

}  // namespace clinfer
