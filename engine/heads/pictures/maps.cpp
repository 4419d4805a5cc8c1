// Reads maps of the whole picture: classes of pixels, saliency and mattes, depth, anomalies. All
// four look alike if a pixel has one number; names decide then, or else the reading is a guess,
// with a warning.
#include "engine/heads/pictures/maps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"

namespace clinfer {
namespace {

constexpr size_t kMostClasses = 4096;
constexpr size_t kDescriptor = 32;  // fewest numbers of a pixel that describe it

bool covers(const ModelFacts& facts, int64_t rows, int64_t columns) {
  if (rows < 2 || columns < 2 || rows > 4 * int64_t{facts.height} ||
      columns > 4 * int64_t{facts.width})
    return false;
  // Tolerates one cell more or less, due to rounding of strides.
  return std::llabs(rows * facts.width - columns * facts.height) <=
         std::max(facts.width, facts.height);
}

PictureMap empty_map(const ModelFacts& facts, const MapLayout& layout, MapKind kind) {
  PictureMap map;
  map.name = facts.outputs[layout.index].name;
  map.kind = kind;
  map.columns = static_cast<int>(layout.columns);
  map.rows = static_cast<int>(layout.rows);
  map.x_max = static_cast<float>(facts.width);
  map.y_max = static_cast<float>(facts.height);
  return map;
}

// Finds the class with the largest value at each cell, or one number behind the last class if that
// value is below `least`. NaN is never the largest.
void largest_channels(const Floats& values, const MapLayout& layout, float least,
                      std::vector<uint16_t>& to) {
  const auto nothing = static_cast<uint16_t>(layout.channels);
  to.assign(layout.cells(), 0);
  if (layout.channels_last) {
    std::vector<float> buffer;
    for (size_t cell = 0; cell < layout.cells(); ++cell) {
      const float* v = values.run(cell * layout.channels, layout.channels, buffer);
      size_t best = 0;
      for (size_t c = 1; c < layout.channels; ++c)
        if (v[c] > v[best] || std::isnan(v[best])) best = c;
      to[cell] = v[best] < least ? nothing : static_cast<uint16_t>(best);
    }
    return;
  }
  std::vector<float> buffer, most(layout.cells(), -INFINITY);
  for (size_t c = 0; c < layout.channels; ++c) {
    const float* v = values.run(c * layout.cells(), layout.cells(), buffer);
    for (size_t cell = 0; cell < layout.cells(); ++cell)
      if (v[cell] > most[cell]) {
        most[cell] = v[cell];
        to[cell] = static_cast<uint16_t>(c);
      }
  }
  for (size_t cell = 0; cell < layout.cells(); ++cell)
    if (most[cell] < least) to[cell] = nothing;
}

// Copies class numbers. Returns false if one of them is none.
bool class_numbers(const Tensor& tensor, std::vector<uint16_t>& to) {
  Floats values(tensor);
  const float* v = values.data();
  to.resize(values.size());
  for (size_t i = 0; i < to.size(); ++i) {
    if (!(v[i] >= 0 && v[i] < 65536) || v[i] != std::floor(v[i])) return false;
    to[i] = static_cast<uint16_t>(v[i]);
  }
  return true;
}

// Returns the finest map with this number of channels among the outputs; the first of equally fine
// ones.
template <typename Takes>
std::optional<MapLayout> finest_map(const ModelFacts& facts, Takes takes) {
  std::optional<MapLayout> best;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto layout = map_layout(facts, i);
    if (layout && takes(*layout, facts.outputs[i]) && (!best || layout->cells() > best->cells()))
      best = layout;
  }
  return best;
}

// Returns the two outputs of TwinLiteNet, whose maps of two classes end with a PReLU, as no other
// network's do.
std::optional<std::pair<MapLayout, MapLayout>> roads_and_lanes(const ModelFacts& facts) {
  if (facts.outputs.size() != 2) return std::nullopt;
  std::array<MapLayout, 2> maps;
  for (size_t i = 0; i < 2; ++i) {
    const auto layout = map_layout(facts, i);
    if (!layout || layout->channels != 2 || facts.outputs[i].op != "PReLU") return std::nullopt;
    maps[i] = *layout;
  }
  return std::pair{maps[0], maps[1]};
}

bool is_model_type(const ModelFacts& facts, std::initializer_list<const char*> words) {
  const std::string text = lower(info(facts, "model_type")) + " " + lower(info(facts, "task"));
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

// Returns whether a map has one float in each cell.
bool is_plain(const MapLayout& layout, const OutputFacts& output) {
  return layout.channels == 1 && is_float_output(output);
}

// Returns whether every other output is a map as well, of as many classes (an auxiliary head) or of
// one number; feature maps of several channels belong to other heads.
bool others_agree(const ModelFacts& facts, const MapLayout& layout) {
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto other = map_layout(facts, i);
    if (!other || (other->channels != layout.channels && other->channels != 1)) return false;
  }
  return true;
}

struct PlainKind {
  MapKind kind;
  std::initializer_list<const char*> words;
};

// Returns the kind of a map of one float in each cell, by its names; nullopt if they do not tell.
std::optional<MapKind> named_kind(const ModelFacts& facts, const OutputFacts& output) {
  static const PlainKind kKinds[] = {
      {MapKind::depth,
       {"depth", "disp", "disparity", "midas", "dpt", "monodepth", "tcmonodepth", "zoedepth"}},
      {MapKind::anomaly, {"anomaly", "patchcore", "padim", "efficientad", "stfpm", "fastflow"}},
      {MapKind::saliency,
       {"saliency", "matte", "matting", "alpha", "pha", "alphas", "modnet", "rvm", "rembg", "isnet",
        "birefnet", "unet", "portrait", "foreground", "selfie", "segment"}}};
  for (const PlainKind& kind : kKinds)
    if (is_called(facts, output, kind.words)) return kind.kind;
  for (const char* word : {"u2net", "u2netp", "u2-net"})
    if (is_called(facts, output, {word})) return MapKind::saliency;
  if (is_model_type(facts, {"depth"})) return MapKind::depth;
  if (is_model_type(facts, {"anomaly"})) return MapKind::anomaly;
  if (is_model_type(facts, {"saliency", "matting"})) return MapKind::saliency;
  return {};
}

void decode_plain(const ModelFacts& facts, const MapLayout& layout, MapKind kind, bool squash,
                  std::span<const Tensor> outputs, Results& results) {
  Floats values(output_of(outputs, layout.index, layout.elements()));
  PictureMap map = empty_map(facts, layout, kind);
  const float* v = values.data();
  map.values.assign(v, v + values.size());
  size_t odd = 0;
  for (float& value : map.values) {
    if (squash) value = sigmoid(value);
    const bool shares = kind != MapKind::depth;
    odd += !std::isfinite(value) || (shares && (value < -0.01f || value > 1.01f));
    if (!std::isfinite(value)) value = 0;
  }
  // A few wrong pixels are noise; many mean another head.
  if (odd * 10 > map.values.size())
    results.contradiction = std::to_string(odd) + " of " + std::to_string(map.values.size()) +
                            " values of a map are not from 0 to 1";
  results.maps.push_back(std::move(map));
}

// Returns whether names suggest text detection, whose probability maps look like saliency.
bool is_called_text(const ModelFacts& facts, const OutputFacts& output) {
  return is_called(facts, output, {"ocr", "ppocr", "text", "dbnet", "db", "det"});
}

// Returns whether a map is of MediaPipe's networks for selfies and video calls: by its name, or by
// their sizes and TensorFlow's order of axes.
bool is_selfie_network(const ModelFacts& facts, const OutputFacts& output) {
  const bool landscape =
      (facts.width == 256 && facts.height == 144) || (facts.width == 160 && facts.height == 96);
  return is_called(facts, output, {"selfie"}) || (facts.channels_last && landscape);
}

Match match_plain(const ModelFacts& facts, MapKind kind, const char* what) {
  const auto layout = finest_map(facts, [&](const MapLayout& map, const OutputFacts& output) {
    return is_plain(map, output) && map.rows <= static_cast<size_t>(facts.height);
  });
  if (!layout)
    return {Fit::no, "needs an output with one number for each pixel ([1,1,h,w], [1,h,w])", {}};
  const OutputFacts& output = facts.outputs[layout->index];
  const auto named = named_kind(facts, output);
  Match match;
  match.reason = std::string(what) + ", " + std::to_string(layout->columns) + "x" +
                 std::to_string(layout->rows);
  const bool sigmoid_op = output.op == "Sigmoid" || output.op == "Clamp";
  const bool one_kind_of_output =
      std::all_of(facts.outputs.begin(), facts.outputs.end(),
                  [&](const OutputFacts& other) { return is_float_output(other); });
  // Beside descriptors of many numbers a pixel, a map tells how good points are there.
  bool descriptors = false;
  for (size_t i = 0; i < facts.outputs.size(); ++i)
    if (const auto other = map_layout(facts, i); other && other->channels >= kDescriptor)
      descriptors = true;
  if (named == kind)
    match.fit = Fit::certain;
  else if (named || is_called_text(facts, output) || !one_kind_of_output || descriptors)
    match.fit = Fit::against;
  else if (kind == MapKind::saliency)
    match.fit = sigmoid_op ? Fit::possible : Fit::against;
  else
    match.fit = kind == MapKind::depth && !sigmoid_op && facts.outputs.size() == 1 ? Fit::possible
                                                                                   : Fit::against;
  if (match.fit == Fit::against)
    match.doubt = named         ? "of another kind by its name"
                  : descriptors ? "beside many numbers for each pixel"
                                : "which nothing says";
  const bool squash = kind != MapKind::depth && !sigmoid_op && output.op.find("Convolution") == 0;
  match.decode = [facts, layout = *layout, kind, squash](std::span<const Tensor> outputs,
                                                         const DecodeSettings&, Results& results) {
    decode_plain(facts, layout, kind, squash, outputs, results);
  };
  match.picture = picture_of(kind == MapKind::depth             ? Family::depth
                             : is_selfie_network(facts, output) ? Family::selfie
                                                                : Family::saliency);
  return match;
}

}  // namespace

std::optional<MapLayout> map_layout(const ModelFacts& facts, size_t output) {
  const Shape shape = squeeze_front(facts.outputs[output].shape);
  MapLayout layout;
  layout.index = output;
  if (shape.size() == 2 && covers(facts, shape[0], shape[1])) {
    layout.rows = static_cast<size_t>(shape[0]);
    layout.columns = static_cast<size_t>(shape[1]);
    return layout;
  }
  if (shape.size() != 3 || std::any_of(shape.begin(), shape.end(), [](auto d) { return d < 1; }))
    return {};
  const bool first = covers(facts, shape[1], shape[2]), last = covers(facts, shape[0], shape[1]);
  if (!first && !last) return {};
  layout.channels_last = last && (!first || shape[2] < shape[0]);
  layout.channels = static_cast<size_t>(layout.channels_last ? shape[2] : shape[0]);
  layout.rows = static_cast<size_t>(layout.channels_last ? shape[0] : shape[1]);
  layout.columns = static_cast<size_t>(layout.channels_last ? shape[1] : shape[2]);
  return layout;
}

bool is_called(const ModelFacts& facts, const OutputFacts& output,
               std::initializer_list<const char*> words) {
  OutputFacts file;
  file.name = facts.name;
  return has_word(output, words) || has_word(file, words);
}

Match match_segmentation(const ModelFacts& facts) {
  if (const auto maps = roads_and_lanes(facts)) {
    Match match;
    match.fit = Fit::certain;
    match.reason = "TwinLiteNet's maps of the road and of its lanes";
    match.decode = [facts, maps = *maps](std::span<const Tensor> outputs, const DecodeSettings&,
                                         Results& results) {
      const auto add = [&](const MapLayout& layout, const char* what) {
        const Floats values(output_of(outputs, layout.index, layout.elements()));
        PictureMap map = empty_map(facts, layout, MapKind::classes);
        map.labels = {"background", what};
        largest_channels(values, layout, -INFINITY, map.classes);
        results.maps.push_back(std::move(map));
      };
      add(maps.first, "drivable area");
      add(maps.second, "lane line");
    };
    match.picture = picture_of(Family::twinlitenet);
    return match;
  }
  const auto numbers = finest_map(facts, [](const MapLayout& layout, const OutputFacts& output) {
    return layout.channels == 1 && !is_float(output.type) && output.type != ElementType::boolean;
  });
  const auto scores = finest_map(facts, [](const MapLayout& layout, const OutputFacts& output) {
    return layout.channels >= 2 && layout.channels <= kMostClasses && is_float_output(output);
  });
  const bool stated = is_model_type(facts, {"segmentation"}) && !is_model_type(facts, {"instance"});
  // Considers an ArgMax that was converted back to floats.
  const auto floats = stated ? finest_map(facts, is_plain) : std::nullopt;
  const auto layout = scores ? scores : numbers ? numbers : floats;
  if (!layout)
    return {Fit::no,
            "needs scores for each pixel ([1,C,h,w], [1,h,w,C]) or class numbers ([1,h,w])",
            {}};
  const OutputFacts& output = facts.outputs[layout->index];
  Match match;
  match.classes = scores ? layout->channels : 0;
  match.reason =
      (scores ? std::to_string(layout->channels) + " classes" : std::string("class numbers")) +
      " for each of " + std::to_string(layout->columns) + "x" + std::to_string(layout->rows) +
      " cells";
  const bool whole = layout->rows * 2 > static_cast<size_t>(facts.height);
  // Outputs that were just enlarged are not pictures.
  const bool picture = scores && (layout->channels == 3 || layout->channels == 1) &&
                       layout->rows >= static_cast<size_t>(facts.height) &&
                       attribute_of(output, "enlarged", 0) == 0;
  // A gray picture may get its two planes of colours.
  const bool colours = scores && facts.channels == 1 && layout->channels == 2 &&
                       (output.op == "Sigmoid" || output.op == "Tanh");
  const bool labelled = scores && facts.own_labels && facts.labels.size() == layout->channels;
  // A file's name describes all outputs together: of "yolov5-seg" only one is a map.
  const bool named = has_word(output, {"seg", "segm", "segmentation", "parsing"}) ||
                     (is_called(facts, output, {"seg", "segm", "segmentation", "parsing"}) &&
                      others_agree(facts, *layout));
  if (stated || labelled || named)
    match.fit = Fit::certain;
  else if (!others_agree(facts, *layout) || (output.op == "Concat" && layout->channels > 2) ||
           is_called(facts, output, {"flow", "feature", "features", "embedding", "embeddings"}))
    match.fit = Fit::against;
  else if (picture)
    match.fit = Fit::against;
  else if (numbers && !scores)
    match.fit = Fit::likely;
  else if (colours)
    match.fit = Fit::possible;
  else
    match.fit = whole || is_softmax(output) ? Fit::likely : Fit::possible;
  if (match.fit == Fit::against)
    match.reason += picture ? "; three numbers for each pixel are a picture, too, of which "
                              "clinferfilter makes video"
                            : "; names or other outputs speak of something else";
  // A sigmoid squashes each class by itself, so that there may be none at a cell; otherwise one
  // class is right.
  const bool alone = scores && output.op == "Sigmoid";
  if (alone) match.reason += ", each by itself";
  match.decode = [facts, layout = *layout, by_score = scores.has_value(), alone](
                     std::span<const Tensor> outputs, const DecodeSettings&, Results& results) {
    const Tensor& tensor = output_of(outputs, layout.index, layout.elements());
    PictureMap map = empty_map(facts, layout, MapKind::classes);
    map.labels = facts.labels;
    if (alone) {
      map.labels.resize(layout.channels);
      map.labels.emplace_back("background");
    }
    if (by_score)
      largest_channels(Floats(tensor), layout, alone ? 0.5f : -INFINITY, map.classes);
    else if (!class_numbers(tensor, map.classes))
      results.contradiction = "values of a map of class numbers are no whole numbers from 0";
    results.maps.push_back(std::move(map));
  };
  match.picture =
      picture_of(is_called(facts, output, {"sinet"}) && layout->channels == 2 ? Family::sinet
                 : facts.channels_last ? Family::tensorflow_segmentation
                                       : Family::segmentation);
  return match;
}

Match match_saliency(const ModelFacts& facts) {
  return match_plain(facts, MapKind::saliency, "a share of foreground for each pixel");
}

Match match_depth(const ModelFacts& facts) {
  return match_plain(facts, MapKind::depth, "a depth for each pixel");
}

namespace {

// anomalib's verdict on the whole picture, from its release 1 on: a score that is normalised so
// that 0.5 is the boundary, and the side of it on which the picture is.
struct PictureVerdict {
  std::optional<size_t> score, label;  // indices of outputs
  std::string attribute;
  std::vector<std::string> names;  // of the two sides

  void add(std::span<const Tensor> outputs, Results& results) const {
    const Floats scores(output_of(outputs, *score, 1));
    const float value = scores[0];
    if (!(value >= -0.01f && value <= 1.01f)) {
      results.contradiction = "the score of the picture is not from 0 to 1";
      return;
    }
    const bool odd = label ? output_of(outputs, *label, 1).to_floats()[0] != 0 : value > 0.5f;
    const float share = std::clamp(value, 0.0f, 1.0f);
    results.classifications.push_back(
        {attribute, odd ? 1 : 0, names[odd ? 1 : 0], odd ? share : 1 - share});
  }
};

std::optional<PictureVerdict> find_verdict(const ModelFacts& facts) {
  PictureVerdict verdict;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    if (count(output.shape) != 1) continue;
    if (is_float_output(output) && name_has(output, {"score"}))
      verdict.score = i;
    else if (name_has(output, {"label"}))
      verdict.label = i;
  }
  if (!verdict.score) return std::nullopt;
  verdict.attribute = facts.outputs[*verdict.score].name;
  verdict.names =
      facts.labels.size() == 2 ? facts.labels : std::vector<std::string>{"normal", "anomaly"};
  return verdict;
}

}  // namespace

Match match_anomaly(const ModelFacts& facts) {
  Match match = match_plain(facts, MapKind::anomaly, "an anomaly score for each pixel");
  const auto verdict = find_verdict(facts);
  if (match.fit < Fit::certain || !verdict) return match;
  match.reason += ", and one of the picture";
  match.decode = [map = std::move(match.decode), verdict = *verdict](
                     std::span<const Tensor> outputs, const DecodeSettings& settings,
                     Results& results) {
    map(outputs, settings, results);
    if (results.contradiction.empty()) verdict.add(outputs, results);
  };
  match.picture = picture_of(Family::anomalib);
  return match;
}

}  // namespace clinfer
