// Reads YOLO heads that are feature maps with anchors: RegionYolo outputs (v2, v3), and raw
// convolutions of v3, v4 and v5, with the five points of a face in YOLO5Face
// (deepcam-cn/yolov5-face).
#include <algorithm>
#include <charconv>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"

namespace clinfer {

Match match_yolov5_rows(const ModelFacts& facts);  // defined in yolo.cpp

namespace {

enum class Version { v2, v3, v5 };

Family family_of(Version version) {
  return version == Version::v2   ? Family::yolov2
         : version == Version::v5 ? Family::yolov5
                                  : Family::darknet;
}

struct AnchorLevel {
  size_t output = 0;
  size_t rows = 0, columns = 0, anchors = 0, classes = 0;
  size_t points = 0;  // of a face; their x and y come between the objectness and the classes
  // Steps to attribute k of anchor a at cell (y, x).
  size_t anchor_step = 0, attribute_step = 0, y_step = 0, x_step = 0;
  std::vector<float> sizes;  // width and height of each anchor, in pixels, or in cells for v2
  bool activated = false;    // the graph squashed everything except the sizes
  bool softmax = false;      // classes are logits for a softmax

  size_t attributes() const { return 5 + 2 * points + classes; }
  size_t elements() const { return rows * columns * anchors * attributes(); }
};

std::vector<float> parse_floats(const std::string& text) {
  std::vector<float> values;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(',', at), text.size());
    size_t from = at;
    while (from < end && text[from] == ' ') ++from;
    float value = 0;
    if (std::from_chars(text.data() + from, text.data() + end, value).ec != std::errc()) return {};
    values.push_back(value);
    at = end + 1;
  }
  return values;
}

bool parse_bool(const std::map<std::string, std::string>& attributes, const char* key,
                bool otherwise) {
  const auto found = attributes.find(key);
  if (found == attributes.end()) return otherwise;
  const std::string value = lower(found->second);
  return value == "true" || value == "1" || value == "yes";
}

// Finds rows and columns of a grid of `cells` cells that has the input's aspect ratio.
bool grid_of(const ModelFacts& facts, int64_t cells, size_t& rows, size_t& columns) {
  for (int stride : {8, 16, 32, 64}) {
    const int64_t c = facts.width / stride, r = facts.height / stride;
    if (c * r == cells) {
      rows = static_cast<size_t>(r);
      columns = static_cast<size_t>(c);
      return true;
    }
  }
  return false;
}

// Returns whether the graph squashed its values: raw maps have negative ones everywhere, since
// objects are rare. The step from an attribute to the next tells an element's attribute in each
// layout that raw_levels finds.
bool is_activated(const std::vector<AnchorLevel>& levels, std::span<const Tensor> outputs) {
  for (const AnchorLevel& level : levels) {
    const Floats values(output_of(outputs, level.output, level.elements()));
    for (size_t i = 0; i < level.elements(); ++i) {
      // A graph that squashes the rest leaves the points.
      const size_t attribute = i / level.attribute_step % level.attributes();
      if (attribute >= 5 && attribute < 5 + 2 * level.points) continue;
      if (values[i] < 0 || values[i] > 1) return false;
    }
  }
  return true;
}

// `squashed`: first if the graph squashed everything.
void decode_levels(const ModelFacts& facts, Version version, const std::vector<AnchorLevel>& levels,
                   const Decided& squashed, std::span<const Tensor> outputs,
                   const DecodeSettings& settings, Results& results) {
  const bool activated =
      (squashed.get() == Decided::open
           ? squashed.settle(is_activated(levels, outputs) ? Decided::first : Decided::second,
                             Decided::second)
           : squashed.get()) == Decided::first;
  Candidates candidates(settings);
  std::vector<std::vector<Point>> points;  // of the candidates, where they have any
  for (const AnchorLevel& level : levels) {
    const size_t attributes = level.attributes(), classes_at = 5 + 2 * level.points;
    const Floats values(output_of(outputs, level.output, level.elements()));
    const float x_step = static_cast<float>(facts.width) / static_cast<float>(level.columns);
    const float y_step = static_cast<float>(facts.height) / static_cast<float>(level.rows);
    auto squash = [&](float v) { return level.activated || activated ? v : sigmoid(v); };
    for (size_t a = 0; a < level.anchors; ++a) {
      for (size_t y = 0; y < level.rows; ++y) {
        for (size_t x = 0; x < level.columns; ++x) {
          const size_t cell = a * level.anchor_step + y * level.y_step + x * level.x_step;
          auto at = [&](size_t k) { return values[cell + k * level.attribute_step]; };
          const float object = squash(at(4));
          if (!(object >= settings.threshold)) continue;
          size_t best = classes_at;
          for (size_t k = best + 1; k < attributes; ++k)
            if (at(k) > at(best)) best = k;
          float of_class = level.softmax ? 0 : squash(at(best));
          if (level.softmax) {
            float sum = 0;
            for (size_t k = classes_at; k < attributes; ++k) sum += std::exp(at(k) - at(best));
            of_class = 1 / sum;
          }
          const float score = object * of_class;
          float offset_x = squash(at(0)), offset_y = squash(at(1)), width = 0, height = 0;
          if (version == Version::v5) {
            offset_x = 2 * offset_x - 0.5f;
            offset_y = 2 * offset_y - 0.5f;
            const float w = 2 * squash(at(2)), h = 2 * squash(at(3));
            width = w * w * level.sizes[2 * a];
            height = h * h * level.sizes[2 * a + 1];
          } else {
            width = std::exp(at(2)) * level.sizes[2 * a];
            height = std::exp(at(3)) * level.sizes[2 * a + 1];
          }
          if (version == Version::v2) {
            width *= x_step;
            height *= y_step;
          }
          const float center_x = (static_cast<float>(x) + offset_x) * x_step;
          const float center_y = (static_cast<float>(y) + offset_y) * y_step;
          candidates.expect_probability(score);
          const size_t row = level.points == 0 ? cell : points.size();
          candidates.add_centered(center_x, center_y, width, height, score,
                                  static_cast<double>(best - classes_at), row);
          if (level.points == 0) continue;
          std::vector<Point> found;
          for (size_t k = 0; k < level.points; ++k)
            found.push_back(
                {at(5 + 2 * k) * level.sizes[2 * a] + static_cast<float>(x) * x_step,
                 at(6 + 2 * k) * level.sizes[2 * a + 1] + static_cast<float>(y) * y_step});
          points.push_back(std::move(found));
        }
      }
    }
  }
  finish(settings, suppression_of(facts, family_of(version)), candidates, results,
         [&](const Candidate& kept, Detection& detection) {
           if (points.empty()) return;
           detection.skeleton = Skeleton::face5;
           detection.landmarks = std::move(points[kept.row]);
         });
}

// Finds levels in RegionYolo operations, which state their anchors.
std::optional<std::vector<AnchorLevel>> region_levels(const ModelFacts& facts, Version& version) {
  std::vector<AnchorLevel> levels;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    if (output.op != "RegionYolo") return std::nullopt;
    const int64_t classes = attribute_of(output, "classes", 0);
    const int64_t coords = attribute_of(output, "coords", 4);
    const bool softmax = parse_bool(output.attributes, "do_softmax", true);
    const std::vector<float> all = output.attributes.count("anchors")
                                       ? parse_floats(output.attributes.at("anchors"))
                                       : std::vector<float>();
    std::vector<float> mask = output.attributes.count("mask")
                                  ? parse_floats(output.attributes.at("mask"))
                                  : std::vector<float>();
    AnchorLevel level;
    level.output = i;
    level.anchors =
        softmax ? static_cast<size_t>(std::clamp<int64_t>(attribute_of(output, "num", 0), 0, 64))
                : mask.size();
    if (classes < 1 || classes > 100000 || coords != 4 || level.anchors == 0) return std::nullopt;
    level.classes = static_cast<size_t>(classes);
    const int64_t per_cell = static_cast<int64_t>(level.anchors) * (5 + classes);
    const int64_t elements = count(output.shape);
    if (elements < per_cell || elements % per_cell != 0) return std::nullopt;
    if (output.shape.size() == 4) {
      level.rows = static_cast<size_t>(output.shape[2]);
      level.columns = static_cast<size_t>(output.shape[3]);
    } else if (!grid_of(facts, elements / per_cell, level.rows, level.columns)) {
      return std::nullopt;
    }
    const size_t plane = level.rows * level.columns;
    if (plane * level.anchors * (5 + level.classes) != static_cast<size_t>(elements))
      return std::nullopt;
    level.anchor_step = plane * (5 + level.classes);
    level.attribute_step = plane;
    level.y_step = level.columns;
    level.x_step = 1;
    level.activated = true;
    for (size_t a = 0; a < level.anchors; ++a) {
      const size_t from = softmax ? a : static_cast<size_t>(std::max(mask[a], 0.0f));
      if (2 * from + 1 >= all.size()) return std::nullopt;
      level.sizes.push_back(all[2 * from]);
      level.sizes.push_back(all[2 * from + 1]);
    }
    version = softmax ? Version::v2 : Version::v3;
    levels.push_back(std::move(level));
  }
  if (levels.empty()) return std::nullopt;
  return levels;
}

// Finds levels in raw maps [1,3*(5+C),h,w], [1,h,w,3*(5+C)] or [1,3,h,w,5+C]; the smallest anchors
// first, three in each level.
std::optional<std::vector<AnchorLevel>> raw_levels(const ModelFacts& facts,
                                                   const std::vector<float>& anchors) {
  std::vector<AnchorLevel> levels;
  const size_t count_of_levels = anchors.size() / 6;
  if (facts.outputs.size() != count_of_levels) return std::nullopt;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    const Shape& s = output.shape;
    if (!is_float_output(output) || s.empty() || s[0] != 1) return std::nullopt;
    AnchorLevel level;
    level.output = i;
    level.anchors = 3;
    int64_t rows = 0, columns = 0, attributes = 0;
    auto is_grid = [&](int64_t r, int64_t c) {
      return r > 0 && c > 0 && facts.height / r == facts.width / c && facts.height / r >= 8 &&
             facts.height / r <= 64;
    };
    if (s.size() == 5 && s[1] == 3 && is_grid(s[2], s[3])) {
      rows = s[2], columns = s[3], attributes = s[4];
      level.anchor_step = static_cast<size_t>(rows * columns * attributes);
      level.attribute_step = 1;
      level.y_step = static_cast<size_t>(columns * attributes);
      level.x_step = static_cast<size_t>(attributes);
    } else if (s.size() == 4 && s[1] % 3 == 0 && is_grid(s[2], s[3])) {
      rows = s[2], columns = s[3], attributes = s[1] / 3;
      level.anchor_step = static_cast<size_t>(rows * columns * attributes);
      level.attribute_step = static_cast<size_t>(rows * columns);
      level.y_step = static_cast<size_t>(columns);
      level.x_step = 1;
    } else if (s.size() == 4 && s[3] % 3 == 0 && is_grid(s[1], s[2])) {
      rows = s[1], columns = s[2], attributes = s[3] / 3;
      level.anchor_step = static_cast<size_t>(attributes);
      level.attribute_step = 1;
      level.y_step = static_cast<size_t>(columns * 3 * attributes);
      level.x_step = static_cast<size_t>(3 * attributes);
    }
    if (attributes < 6) return std::nullopt;
    level.rows = static_cast<size_t>(rows);
    level.columns = static_cast<size_t>(columns);
    level.classes = static_cast<size_t>(attributes - 5);
    if (!levels.empty() && levels[0].classes != level.classes) return std::nullopt;
    levels.push_back(std::move(level));
  }
  std::vector<size_t> order(levels.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return levels[a].rows * levels[a].columns > levels[b].rows * levels[b].columns;
  });
  for (size_t rank = 0; rank < order.size(); ++rank)
    levels[order[rank]].sizes.assign(anchors.begin() + static_cast<std::ptrdiff_t>(6 * rank),
                                     anchors.begin() + static_cast<std::ptrdiff_t>(6 * rank + 6));
  return levels;
}

// The anchors with which the networks were published, in pixels of the input.
const std::vector<float> kV3 = {10, 13, 16,  30,  33, 23,  30,  61,  62,
                                45, 59, 119, 116, 90, 156, 198, 373, 326};
const std::vector<float> kV4 = {12, 16, 19,  36,  40,  28,  36,  75,  76,
                                55, 72, 146, 142, 110, 192, 243, 459, 401};
const std::vector<float> kFaces = {4,  5,  8,   10,  13,  16,  23,  29,  43,
                                   55, 73, 105, 146, 217, 231, 300, 335, 433};
const std::vector<float> kTiny = {23, 27, 37, 58, 81, 82, 81, 82, 135, 169, 344, 319};
// YOLOv2's anchors in cells: those trained on COCO, and those of the tiny network trained on VOC.
const std::vector<float> kV2Coco = {0.57273f, 0.677385f, 1.87446f, 2.06253f, 3.33843f,
                                    5.47434f, 7.88282f,  3.52778f, 9.77052f, 9.16828f};
const std::vector<float> kV2Voc = {1.08f,  1.19f, 3.42f, 4.41f,  6.63f,
                                   11.38f, 9.42f, 5.11f, 16.62f, 10.52f};

// Takes anchors of model_info, or else the published ones of the version for this number of
// outputs.
Match match_raw(const ModelFacts& facts, Version version, const std::vector<float>& published) {
  std::vector<float> anchors = parse_floats(info(facts, "anchors"));
  const bool own = !anchors.empty() && anchors.size() == 6 * facts.outputs.size();
  if (!own) anchors = facts.outputs.size() == 2 && version == Version::v3 ? kTiny : published;
  auto levels = raw_levels(facts, anchors);
  if (!levels) return {Fit::no, "needs two or three maps [1,3*(5+classes),h,w]", {}};
  const bool faces =
      version == Version::v5 && levels->front().classes == 11 && facts.labels.size() <= 1;
  if (faces) {
    if (!own && levels->size() == 3) levels = raw_levels(facts, kFaces);
    for (AnchorLevel& level : *levels) {
      level.points = 5;
      level.classes = 1;
    }
  }
  Match match;
  // Only v5 has sizes that a graph can squash together with the rest.
  match.decode = [facts, version, levels = *levels,
                  squashed = version == Version::v5 ? Decided() : Decided(Decided::second)](
                     std::span<const Tensor> outputs, const DecodeSettings& settings,
                     Results& results) {
    decode_levels(facts, version, levels, squashed, outputs, settings, results);
  };
  match.fit = Fit::possible;
  match.reason = std::to_string(levels->size()) +
                 (own ? " maps with model_info's anchors" : " maps with published anchors");
  match.classes = levels->front().classes;
  match.picture = picture_of(family_of(version));
  if (!own)
    match.assumptions.push_back(
        "nothing says which anchors the network was trained with; those published are used");
  if (faces) {
    match.reason += ": a face and its five points";
    match.class_names = {"face"};
    if (!file_says(facts, "face"))
      match.assumptions.push_back(
          "maps of 16 numbers for each anchor are read as a face and its five points "
          "(YOLO5Face); labels of 11 classes would have them read as classes");
  }
  return match;
}

// Returns whether the coarsest map comes first, as in Darknet's v3.
bool coarse_first(const ModelFacts& facts) {
  return facts.outputs.size() >= 2 &&
         count(facts.outputs.front().shape) < count(facts.outputs.back().shape);
}

// Reads one map [1,5*(5+C),h,w] at stride 32: v2 without its RegionYolo.
Match match_v2_map(const ModelFacts& facts) {
  if (facts.outputs.size() != 1) return {};
  const Shape& s = facts.outputs[0].shape;
  if (s.size() != 4 || s[0] != 1 || s[1] % 5 != 0 || s[1] < 30 || s[2] * 32 != facts.height ||
      s[3] * 32 != facts.width || !is_float_output(facts.outputs[0]))
    return {};
  AnchorLevel level;
  level.rows = static_cast<size_t>(s[2]);
  level.columns = static_cast<size_t>(s[3]);
  level.anchors = 5;
  level.classes = static_cast<size_t>(s[1] / 5 - 5);
  level.attribute_step = level.rows * level.columns;
  level.anchor_step = level.attribute_step * (5 + level.classes);
  level.y_step = level.columns;
  level.x_step = 1;
  level.sizes = level.classes == 20 ? kV2Voc : kV2Coco;
  level.softmax = true;
  Match match;
  match.decode = [facts, level](std::span<const Tensor> outputs, const DecodeSettings& settings,
                                Results& results) {
    decode_levels(facts, Version::v2, {level}, Decided(Decided::second), outputs, settings,
                  results);
  };
  match.fit = level.classes == 20 || level.classes == 80 ? Fit::likely : Fit::possible;
  match.reason = "a map of five boxes a cell";
  match.classes = level.classes;
  match.picture = picture_of(family_of(Version::v2));
  match.assumptions.push_back(
      "nothing says which anchors the network was trained with; those published are used");
  return match;
}

}  // namespace

Match match_yolov3(const ModelFacts& facts) {
  Version version = Version::v3;
  if (const auto levels = region_levels(facts, version)) {
    Match match;
    match.decode = [facts, version, levels = *levels](std::span<const Tensor> outputs,
                                                      const DecodeSettings& settings,
                                                      Results& results) {
      decode_levels(facts, version, levels, Decided(Decided::second), outputs, settings, results);
    };
    match.fit = Fit::certain;
    match.reason = std::to_string(levels->size()) + " RegionYolo outputs";
    match.classes = levels->front().classes;
    return match;
  }
  if (Match v2 = match_v2_map(facts); v2.fit != Fit::no) return v2;
  Match match = match_raw(facts, Version::v3, kV3);
  if (match.fit == Fit::possible &&
      (coarse_first(facts) || file_says(facts, "yolov3") || file_says(facts, "yolo-v3")))
    match.fit = Fit::likely;
  return match;
}

Match match_yolov4(const ModelFacts& facts) {
  Match match = match_raw(facts, Version::v3, kV4);
  if (match.fit == Fit::possible && (file_says(facts, "yolov4") || file_says(facts, "yolo-v4")))
    match.fit = Fit::certain;
  return match;
}

Match match_yolov5(const ModelFacts& facts) {
  Match rows = match_yolov5_rows(facts);
  if (rows.fit != Fit::no) return rows;
  // v5's heads differ from v3's in the activation, not in the anchors; v7 has v4's anchors. Exports
  // of both have rank 5.
  const bool v7 = file_says(facts, "yolov7");
  Match raw = match_raw(facts, Version::v5, v7 ? kV4 : kV3);
  if (raw.fit == Fit::possible &&
      (facts.outputs[0].shape.size() == 5 || v7 || file_says(facts, "yolov5")))
    raw.fit = Fit::certain;
  return raw.fit == Fit::no ? rows : raw;
}

}  // namespace clinfer
