// Compares ways to feed and read a model by successive halving.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>

#include "engine/tools/commands/doctor/doctor.h"
#include "engine/tools/commands/doctor/evidence.h"
#include "engine/tools/output/progress.h"
#include "engine/tools/output/text.h"

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostHeads = 4;
constexpr double kZoom = 0.85;  // share of each side that the zoomed copy shows
// Least confidence of objects that count, as a share of the threshold.
constexpr float kLeast = 0.3f;
constexpr double kLeastLead = 0.02;  // least lead that decides, as a share of the evidence
constexpr double kChance = 2;        // in standard errors
constexpr double kFewFrames =
    8;  // divided by the number of frames: more standard errors for few frames
// Factors for contradicting a fact that is stated or comes from the model's family, and one that
// was only assumed.
struct Factors {
  double known, assumed;
};
// A known fact is overruled only if the elements find almost nothing: pictures in too large a range
// make many networks more confident than they should be.
constexpr Factors kOfObjects = {0.3, 0.97};
// Classes, vectors and maps of whole pictures change little with the way of feeding, even for
// pictures of another kind than the network was trained for (a classifier of faces).
constexpr Factors kOfPictures = {0.3, 0.6};

struct Range {
  const char* name;
  std::vector<float> mean, scale;  // in RGB order
};
const Range kRanges[] = {
    {"0..255", {0}, {1}},
    {"0..1", {0}, {255}},
    {"-1..1", {127.5f}, {127.5f}},
    {"ImageNet's mean and deviation", {123.675f, 116.28f, 103.53f}, {58.395f, 57.12f, 57.375f}},
    {"less ImageNet's mean", {123, 117, 104}, {1}},
};

struct Placing {
  ResizeMode resize;
  bool centered;
};
constexpr Placing kPlacings[] = {{ResizeMode::stretch, true},
                                 {ResizeMode::letterbox, true},
                                 {ResizeMode::letterbox, false},
                                 {ResizeMode::crop, true}};

std::vector<float> in_order(std::vector<float> values, ColorOrder order) {
  if (values.size() == 3 && order == ColorOrder::bgr) std::swap(values[0], values[2]);
  if (values.size() == 3 && order == ColorOrder::gray)
    values = {(values[0] + values[1] + values[2]) / 3};
  return values;
}

// Returns whether two ranges give about the same input, as 127.5 and 128 do.
bool is_close(const FrameTransform& a, const FrameTransform& b) {
  const auto near = [](const std::vector<float>& x, const std::vector<float>& y, double allowed) {
    for (size_t c = 0; c < 3; ++c) {
      const double left = x[std::min(c, x.size() - 1)], right = y[std::min(c, y.size() - 1)];
      if (std::abs(left - right) > allowed + 0.02 * std::abs(right)) return false;
    }
    return true;
  };
  return near(a.mean, b.mean, 1) && near(a.scale, b.scale, 0.001);
}

bool is_same(const Placing& placing, const FrameTransform& transform) {
  return placing.resize == transform.resize &&
         (placing.resize != ResizeMode::letterbox || placing.centered == transform.centered);
}

// Returns what settled a fact of the network; "" if it was assumed.
std::string source_of(const Network& network, const std::string& what) {
  for (const Fact& fact : network.origins)
    if (fact.what == what)
      return fact.source == "assumed" || fact.source == "not stated" ? "" : fact.source;
  return {};
}

bool finds_objects(const Network& network) {
  return std::any_of(heads().begin(), heads().end(), [&](const Head& head) {
    return head.name == network.head.name && head.kind == HeadKind::objects;
  });
}

// Returns all ways, that of the elements first.
std::vector<Way> ways_of(const Network& network, size_t heads) {
  const FrameTransform& own = network.transform;
  const Factors factors = finds_objects(network) ? kOfObjects : kOfPictures;
  const auto factor = [&](const char* fact) {
    return source_of(network, fact).empty() ? factors.assumed : factors.known;
  };
  std::vector<ColorOrder> colours = {own.color};
  const bool by_graph = source_of(network, "color-format") == "the graph";
  if (own.color != ColorOrder::gray && !by_graph)
    colours.push_back(own.color == ColorOrder::rgb ? ColorOrder::bgr : ColorOrder::rgb);
  const std::string mean_by = source_of(network, "mean");
  const bool fixed_range = mean_by == "in the graph" || mean_by == "the input's type";
  std::vector<Way> ways;
  for (size_t head = 0; head < heads; ++head)
    for (const ColorOrder colour : colours) {
      // Tries the elements' range in this order of colours first, then the others.
      std::vector<Range> ranges = {{"as stated", own.mean, own.scale}};
      if (colour != own.color)
        for (std::vector<float>* values : {&ranges[0].mean, &ranges[0].scale})
          if (values->size() == 3) std::swap((*values)[0], (*values)[2]);
      for (const Range& range : kRanges) {
        FrameTransform other;
        other.mean = in_order(range.mean, colour);
        other.scale = in_order(range.scale, colour);
        FrameTransform first;
        first.mean = ranges[0].mean;
        first.scale = ranges[0].scale;
        if (is_close(first, other))
          ranges[0].name = range.name;
        else if (!fixed_range)
          ranges.push_back({range.name, other.mean, other.scale});
      }
      for (size_t r = 0; r < ranges.size(); ++r)
        for (size_t p = 0; p < 1 + std::size(kPlacings); ++p) {
          if (p > 0 && is_same(kPlacings[p - 1], own)) continue;
          Way way;
          way.transform = own;
          way.transform.color = colour;
          way.transform.mean = ranges[r].mean;
          way.transform.scale = ranges[r].scale;
          way.range = ranges[r].name;
          way.head = head;
          if (p > 0) {
            way.transform.resize = kPlacings[p - 1].resize;
            way.transform.centered = kPlacings[p - 1].centered;
            if (own.resize != ResizeMode::letterbox) way.transform.pad_value = {114};
          }
          if (head > 0) way.prior *= factors.known;
          if (colour != own.color) way.prior *= factor("color-format");
          if (r > 0) way.prior *= std::min(factor("mean"), factor("scale"));
          if (p > 0) way.prior *= factor("resize-mode");
          ways.push_back(way);
        }
    }
  return ways;
}

class Trial {
 public:
  Trial(const VideoModel& model, const ModelOptions& options) : model_(model) {
    networks_.push_back(model.network());
    for (const HeadFit& fit : model.network().head.considered) {
      if (fit.fit < Fit::possible || fit.name == model.network().head.name ||
          networks_.size() == kMostHeads)
        continue;
      ModelOptions other = options;
      other.post_process = fit.name;
      networks_.push_back(describe_network(model.network().model, other));
    }
    // Makes a grey picture.
    grey_.assign(64 * 64 * 3 / 2, 128);
    empty_.format = PixelFormat::i420;
    empty_.width = empty_.height = 64;
    empty_.planes = {grey_.data(), grey_.data() + 64 * 64, grey_.data() + 64 * 64 * 5 / 4};
    empty_.strides = {64, 32, 32};
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  size_t heads() const { return networks_.size(); }
  const std::string& head(size_t i) const { return networks_[i].head.name; }
  size_t inferences() const { return inferences_; }

  // Adds the evidence of a frame to ways that feed alike and differ in their heads.
  void look(const VideoFrame& frame, const std::vector<Way*>& alike) {
    const FrameTransform& transform = alike[0]->transform;
    Frame mirrored = frame.frame, zoomed = frame.frame;
    mirrored.orientation.mirror_x = true;
    const auto margin = [](int size) { return static_cast<int>(size * (1 - kZoom) / 2) / 2 * 2; };
    zoomed.region = {margin(zoomed.width), margin(zoomed.height),
                     zoomed.width - 2 * margin(zoomed.width),
                     zoomed.height - 2 * margin(zoomed.height)};
    const auto results = [&](const Frame& picture) {
      Placement placement;
      const std::vector<Tensor> outputs = model_.infer(picture, transform, placement);
      ++inferences_;
      std::vector<PictureResults> of_ways;
      for (const Way* way : alike) {
        const Network& network = networks_[way->head];
        DecodeSettings settings = network.model_defaults;
        settings.threshold *= kLeast;
        Results decoded;
        run_head(network.head, network.facts, outputs, settings, false, decoded);
        of_ways.push_back(place(decoded, placement, picture.width, picture.height));
      }
      return of_ways;
    };
    auto original = results(frame.frame), left = results(mirrored), part = results(zoomed);
    const auto empty = results(empty_);
    for (size_t i = 0; i < alike.size(); ++i)
      alike[i]->evidence.push_back(evidence(
          {std::move(original[i]), std::move(left[i]), std::move(part[i]), kZoom}, empty[i]));
  }

 private:
  const VideoModel& model_;
  std::vector<Network> networks_;
  std::vector<uint8_t> grey_;
  Frame empty_;
  size_t inferences_ = 0;
};

bool feed_alike(const Way& a, const Way& b) {
  const FrameTransform &x = a.transform, &y = b.transform;
  return x.resize == y.resize && x.centered == y.centered && x.color == y.color &&
         x.mean == y.mean && x.scale == y.scale;
}

// Groups ways that feed alike.
std::vector<std::vector<Way*>> groups_of(std::vector<Way>& ways, size_t count) {
  std::vector<std::vector<Way*>> groups;
  for (size_t i = 0; i < count; ++i) {
    auto known = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return feed_alike(*group[0], ways[i]); });
    if (known == groups.end()) known = groups.insert(known, std::vector<Way*>());
    known->push_back(&ways[i]);
  }
  return groups;
}

// Orders frames so that any number of first ones is spread over the video.
std::vector<size_t> spread(size_t count) {
  std::vector<size_t> order, rest(count);
  std::iota(rest.begin(), rest.end(), size_t{0});
  for (size_t step = 1; order.size() < count; step *= 2)
    for (size_t i = 0; i < step; ++i) {
      const size_t at = (2 * i + 1) * count / (2 * step);
      if (at < count && rest[at] == at) {
        order.push_back(at);
        rest[at] = count;
      }
    }
  return order;
}

// Returns whether a is better than b by more than chance; `weighted`: including the factors of
// both.
bool is_better(const Way& a, const Way& b, bool weighted) {
  const auto values = [&](const Way& way) {
    std::vector<double> evidence = way.evidence;
    if (weighted)
      for (double& value : evidence) value *= way.prior;
    return evidence;
  };
  const Paired difference = paired(values(a), values(b));
  const auto frames = static_cast<double>(std::min(a.evidence.size(), b.evidence.size()));
  return difference.mean > kLeastLead * (weighted ? a.weight() : a.mean()) &&
         difference.mean > (kChance + kFewFrames / frames) * difference.error;
}

}  // namespace

double Way::mean() const {
  return evidence.empty() ? 0
                          : std::accumulate(evidence.begin(), evidence.end(), 0.0) /
                                static_cast<double>(evidence.size());
}

Diagnosis diagnose(const VideoModel& model, const ModelOptions& options,
                   const std::vector<VideoFrame>& frames, double seconds) {
  Trial trial(model, options);
  Diagnosis result;
  for (size_t i = 0; i < trial.heads(); ++i) result.heads.push_back(trial.head(i));
  result.ways = ways_of(model.network(), trial.heads());
  const Way own = result.ways[0];
  const auto is_own = [&](const Way& way) { return way.head == 0 && feed_alike(way, own); };
  const std::vector<size_t> order = spread(frames.size());
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  size_t seen = 0;
  size_t left = result.ways.size();
  ProgressLine progress;
  // Spends a third of the time on all ways, a third on the better ones, a third on the best.
  for (const double share : {1.0 / 3, 2.0 / 3, 1.0}) {
    const size_t least = seen + 1;
    while (seen < order.size() && (seen < least || elapsed() < share * seconds)) {
      // Limits a round, which would otherwise take all frames if inferences are short.
      if (share < 0.9 && seen >= order.size() * (share < 0.5 ? 1 : 2) / 4 && seen >= least) break;
      for (const auto& group : groups_of(result.ways, left)) {
        end_if_interrupted("nothing is decided");
        trial.look(frames[order[seen]], group);
        progress("trying " + std::to_string(left) + " ways: inference", trial.inferences(), 0);
      }
      ++seen;
    }
    // Keeps ways of equal weight in order, so that the elements' way is first.
    std::stable_sort(result.ways.begin(), result.ways.begin() + static_cast<std::ptrdiff_t>(left),
                     [](const Way& a, const Way& b) { return a.weight() > b.weight(); });
    left = std::min<size_t>(left, share < 0.5 ? 14 : 7);
    // Compares the elements' own way to the end.
    const auto mine = std::find_if(result.ways.begin(), result.ways.end(), is_own);
    if (mine - result.ways.begin() >= static_cast<std::ptrdiff_t>(left))
      std::rotate(result.ways.begin() + static_cast<std::ptrdiff_t>(left) - 1, mine, mine + 1);
  }
  // Keeps the elements' way first unless another one is better by more than chance.
  const auto mine = std::find_if(result.ways.begin(), result.ways.end(), is_own);
  if (mine != result.ways.begin() && !is_better(result.ways[0], *mine, true))
    std::rotate(result.ways.begin(), mine, mine + 1);
  result.own = static_cast<size_t>(std::find_if(result.ways.begin(), result.ways.end(), is_own) -
                                   result.ways.begin());
  result.inferences = trial.inferences();
  const Way& best = result.ways[0];
  for (size_t i = 1; i < result.ways.size(); ++i) {
    const Way& way = result.ways[i];
    if (way.evidence.size() < best.evidence.size()) break;
    if (!is_better(best, way, false)) result.rivals.push_back(i);
  }
  result.decided = result.rivals.empty() && best.mean() > 0;
  return result;
}

std::vector<std::string> properties_of(const Way& way, const Diagnosis& diagnosis) {
  const auto numbers = [](const std::vector<float>& values) {
    std::string text;
    for (const float value : values) text += (text.empty() ? "" : ",") + format("%g", value);
    return text;
  };
  std::vector<std::string> words;
  if (way.transform.color != ColorOrder::gray)
    words.push_back(way.transform.color == ColorOrder::rgb ? "color-format=rgb"
                                                           : "color-format=bgr");
  words.push_back("mean=" + numbers(way.transform.mean));
  words.push_back("scale=" + numbers(way.transform.scale));
  words.push_back(way.transform.resize == ResizeMode::stretch     ? "resize-mode=stretch"
                  : way.transform.resize == ResizeMode::letterbox ? "resize-mode=letterbox"
                                                                  : "resize-mode=crop");
  if (way.head > 0) words.push_back("post-process=" + diagnosis.heads[way.head]);
  return words;
}

std::string text_of(const Way& way, const Diagnosis& diagnosis) {
  const FrameTransform& transform = way.transform;
  std::string text = transform.color == ColorOrder::gray  ? "grey"
                     : transform.color == ColorOrder::rgb ? "RGB"
                                                          : "BGR";
  text += ", " + way.range + ", ";
  text += transform.resize == ResizeMode::stretch ? "stretched"
          : transform.resize == ResizeMode::crop  ? "the middle cut out"
          : transform.centered                    ? "letterboxed"
                                                  : "letterboxed at the top left";
  return text + ", read as " + diagnosis.heads[way.head];
}

}  // namespace clinfer
