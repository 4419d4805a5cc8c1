// Decides whether a device's results differ by more than its precision explains.
#include "gst/infer/model/model_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "gst/infer/model/shared_model.h"

namespace clinfer {
namespace {

constexpr auto kAhead = std::chrono::milliseconds(100);
constexpr auto kLookAgain = std::chrono::milliseconds(100);

// Number of inferences with errors like the device's, of which the one that differs most tells what
// the precision explains.
constexpr unsigned kRough = 3;
// A device may differ by so many times as much, since its errors depend on each other.
constexpr double kTypicalTimes = 8, kLargestTimes = 16;
// Further tolerance, as a share of the typical and the largest value: errors of a device's
// exponential functions and the like, whatever the precision.
constexpr double kTypicalFloor = 1e-5, kLargestFloor = 1e-4;
// Differences that are always allowed: of confidences, and of the elements of maps.
constexpr double kConfidenceFloor = 0.05, kCellsFloor = 0.02;

constexpr unsigned kSearches = 3;  // samples on which the layer is looked for

double share(double part, double whole) {
  if (part == 0) return 0;
  return whole > 0 ? part / whole : INFINITY;
}

double cells_that_differ(const Agreement& agreed) {
  return share(static_cast<double>(agreed.cells - agreed.same_cells),
               static_cast<double>(agreed.cells));
}

std::string with_percent(double of_one) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * of_one);
  return text;
}

// Sorts the elements, for an output whose order small errors change.
Tensor sorted(const Tensor& value) {
  std::vector<float> elements = value.to_floats();
  std::erase_if(elements, [](float element) { return std::isnan(element); });
  std::sort(elements.begin(), elements.end());
  return Tensor::of(ElementType::f32, {static_cast<int64_t>(elements.size())}, elements);
}

}  // namespace

ModelCheck::ModelCheck(Config config, double pace)
    : config_(std::move(config)), pace_(pace, kAhead) {}

std::vector<Tensor> ModelCheck::image_of(const VerifySample& sample,
                                         const std::vector<Tensor>& outputs) const {
  const CompiledModel& host = reference_->network();
  const size_t input = sample.session->network.image_input;
  const BatchSplit split(host, input, static_cast<size_t>(host.inputs()[input].shape[0]));
  std::vector<Tensor> image;
  for (size_t i = 0; i < outputs.size(); ++i) image.push_back(split.image_of(i, outputs[i], 0));
  return image;
}

// Decodes with a lower threshold, for objects that are just below it in one of two results.
ModelCheck::Computed ModelCheck::decoded(const VerifySample& sample,
                                         std::vector<Tensor> outputs) const {
  const Network& network = sample.session->network;
  DecodeSettings settings = sample.decode;
  settings.threshold = std::max(settings.threshold - static_cast<float>(kNear), 0.f);
  Results results;
  run_head(network.head, network.facts, outputs, settings, false, results);
  return {std::move(outputs),
          place(results, placement_, sample.visible.width, sample.visible.height)};
}

void ModelCheck::explain(const VerifySample& sample, const Computed& host,
                         const Reference::GoesOn& goes_on) {
  const Precision precision = sample.session->shared->compiled->precision();
  for (unsigned seed = 0; seed < kRough; ++seed) {
    const Computed rough =
        decoded(sample, image_of(sample, reference_->compute_roughly(precision, seed, goes_on)));
    for (size_t i = 0; i < host.outputs.size(); ++i) {
      const bool is_selected = reference_->is_selected(i);
      const TensorDifference d =
          is_selected ? difference_of(sorted(rough.outputs[i]), sorted(host.outputs[i]))
                      : difference_of(rough.outputs[i], host.outputs[i]);
      Explained& known = explained_[i];
      known.typical = std::max(known.typical, share(d.typical, d.typical_value));
      known.largest = std::max(known.largest, share(d.largest, d.largest_value));
      known.is_known = true;
    }
    const Agreement agreed = agreement(rough.results, host.results, sample.decode.threshold);
    ExplainedResults& known = explained_results_;
    known.alone = std::max(known.alone, agreed.only_a + agreed.only_b);
    known.answers = std::max(known.answers, agreed.answers - agreed.same_answers);
    known.cells = std::max(known.cells, cells_that_differ(agreed));
    known.confidence = std::max(known.confidence, agreed.confidence.most);
  }
}

// Compares decoded results, which decide where no output can be compared element by element.
bool ModelCheck::compare_results(const VerifySample& sample, const Agreement& agreed,
                                 VerifyFinding& finding) const {
  const ExplainedResults& known = explained_results_;
  const bool exact = sample.session->shared->compiled->precision() == Precision::f32;
  // An object less or more in four, and an answer, may be on the edge of being suppressed.
  const size_t spare = exact ? 0 : agreed.objects() / 4;
  const auto say = [&](std::string what) {
    finding.what = std::move(what);
    return true;
  };
  if (agreed.only_a + agreed.only_b > 2 * known.alone + spare)
    return say(std::to_string(agreed.only_b) + " objects are missing, and " +
               std::to_string(agreed.only_a) + " are there that the host does not find");
  if (agreed.confidence.most > kTypicalTimes * known.confidence + kConfidenceFloor)
    return say("a confidence differs by " + with_percent(agreed.confidence.most) +
               ", of which the precision explains " + with_percent(known.confidence));
  if (agreed.answers - agreed.same_answers > known.answers + (exact ? 0 : agreed.answers / 4))
    return say(std::to_string(agreed.answers - agreed.same_answers) + " of " +
               std::to_string(agreed.answers) + " answers differ");
  const double cells = cells_that_differ(agreed);
  if (cells > kTypicalTimes * known.cells + kCellsFloor)
    return say(with_percent(cells) + " of a map differ, of which the precision explains " +
               with_percent(known.cells));
  return false;
}

void ModelCheck::compare(const VerifySample& sample, const Computed& device, const Computed& host,
                         VerifyFinding& finding) const {
  const CompiledModel& network = reference_->network();
  finding.differs = false;
  double most = 0;
  bool any_selected = false;
  for (size_t i = 0; i < host.outputs.size(); ++i) {
    const bool is_selected = reference_->is_selected(i);
    any_selected = any_selected || is_selected;
    const std::string& name = network.outputs()[i].name;
    const TensorDifference d =
        is_selected ? difference_of(sorted(device.outputs[i]), sorted(host.outputs[i]))
                    : difference_of(device.outputs[i], host.outputs[i]);
    if (const size_t lost = difference_of(device.outputs[i], host.outputs[i]).not_finite) {
      finding.differs = true;
      finding.output = name;
      finding.difference = INFINITY;
      finding.explained = explained_[i].typical;
      finding.what = std::to_string(lost) + " elements of output " + name +
                     " are infinite or NaN, and are not on the host";
      return;
    }
    // Selected outputs differ by whole rows; their objects decide, below.
    if (is_selected) continue;
    const Explained& known = explained_[i];
    const double typical = share(d.typical, d.typical_value),
                 largest = share(d.largest, d.largest_value);
    const double beyond = std::max(typical / (kTypicalTimes * known.typical + kTypicalFloor),
                                   largest / (kLargestTimes * known.largest + kLargestFloor));
    if (beyond <= 1 || beyond <= most) continue;
    most = beyond;
    finding.differs = true;
    finding.output = name;
    finding.difference = typical;
    finding.explained = known.typical;
    finding.what = "output " + name + " differs by " + with_percent(typical) +
                   " of its typical value, of which the precision explains " +
                   with_percent(known.typical) + "; at most by " + with_percent(largest) +
                   " of its largest value, of which it explains " + with_percent(known.largest);
  }
  const Agreement agreed = agreement(device.results, host.results, sample.decode.threshold);
  finding.lost = agreed.only_b;
  finding.added = agreed.only_a;
  if (any_selected && !finding.differs) finding.differs = compare_results(sample, agreed, finding);
}

VerifyFinding ModelCheck::check(const VerifySample& sample, const std::stop_token& stop) {
  const Reference::GoesOn goes_on = [&] { pace_.wait(stop); };
  std::unique_lock turn(turn_, std::defer_lock);
  while (!turn.try_lock_for(kLookAgain))
    if (stop.stop_requested())
      throw Error{ErrorCode::cancelled, "the results are not verified any more"};
  pace_.begin();
  const Network& network = sample.session->network;
  if (reference_ == nullptr) {
    reference_ = Reference::make(network.model, config_, goes_on);
    explained_.resize(reference_->network().outputs().size());
  }
  const auto set_frame = [&](InferRequest& request) {
    for (const auto& [input, value] : network.constants)
      request.set_input(input, repeated(value, reference_->network().inputs()[input].shape));
    placement_ = give_frames(request, network, sample.frames, sample.visible, sample.region.rect,
                             sample.region.turn, sample.region.angle, 0);
  };
  set_frame(reference_->request());
  const Computed host = decoded(sample, image_of(sample, reference_->compute(goes_on)));
  const Computed device = decoded(sample, sample.outputs);
  VerifyFinding finding;
  finding.timestamp = sample.timestamp;
  // Finds out what the precision explains for this picture only if what is known is not enough.
  const bool is_known = std::all_of(explained_.begin(), explained_.end(),
                                    [](const Explained& output) { return output.is_known; });
  if (is_known) compare(sample, device, host, finding);
  if (!is_known || finding.differs) {
    explain(sample, host, goes_on);
    finding.what.clear();
    compare(sample, device, host, finding);
  }
  if (searches_ != 0) {
    --searches_;
    finding.layer = reference_->find_layer(set_frame, goes_on);
    if (!finding.layer->layer.empty()) searches_ = 0;
  }
  if (finding.differs && !std::exchange(found_layer_, true)) searches_ = kSearches;
  return finding;
}

}  // namespace clinfer
