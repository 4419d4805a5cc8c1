// Compares a device's results with the host's, and with those of inferences with errors like the
// device's.
#include "gst/infer/model/explained_errors.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace clinfer {
namespace {

// Number of inferences with errors like the device's, of which the one that differs most tells what
// the precision explains. The first ones may all be near the host's result by chance, above all where an
// output has few elements. If errors are normal, one of three times the usual size is 8 times as large as
// all of sixteen others less than once in 10^8 times.
constexpr unsigned kRough = 3, kRoughInDoubt = 16;
// A difference that is so many times as large as what is allowed is reported after the first inferences.
constexpr double kNoDoubt = 10;
// A device may differ by so many times as much, since its errors depend on each other.
constexpr double kTypicalTimes = 8, kLargestTimes = 16;
// Further tolerance, as a share of the typical and the largest value: errors of a device's
// exponential functions and the like, whatever the precision.
constexpr double kTypicalFloor = 1e-5, kLargestFloor = 1e-4;
// Differences that are always allowed: of confidences, and of the elements of maps.
constexpr double kConfidenceFloor = 0.05, kCellsFloor = 0.02;

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

ExplainedErrors::ExplainedErrors(std::vector<Output> outputs, bool is_exact)
    : outputs_(std::move(outputs)), is_exact_(is_exact), explained_(outputs_.size()) {}

void ExplainedErrors::learn(const ComputedPicture& rough, const ComputedPicture& host,
                            double threshold) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorDifference d =
        outputs_[i].is_selected ? difference_of(sorted(rough.outputs[i]), sorted(host.outputs[i]))
                                : difference_of(rough.outputs[i], host.outputs[i]);
    Explained& known = explained_[i];
    known.typical = std::max(known.typical, share(d.typical, d.typical_value));
    known.largest = std::max(known.largest, share(d.largest, d.largest_value));
  }
  const Agreement agreed = agreement(rough.results, host.results, threshold);
  ExplainedResults& known = explained_results_;
  known.alone = std::max(known.alone, agreed.only_a + agreed.only_b);
  known.answers = std::max(known.answers, agreed.answers - agreed.same_answers);
  known.cells = std::max(known.cells, cells_that_differ(agreed));
  known.confidence = std::max(known.confidence, agreed.confidence.most);
  is_known_ = true;
}

// Compares decoded results, which decide where no output can be compared element by element.
bool ExplainedErrors::compare_results(const Agreement& agreed, ResultDifference& found) const {
  const ExplainedResults& known = explained_results_;
  // An object less or more in four, and an answer, may be on the edge of being suppressed.
  const size_t spare = is_exact_ ? 0 : agreed.objects() / 4;
  const auto say = [&](std::string what) {
    found.what = std::move(what);
    return true;
  };
  if (agreed.only_a + agreed.only_b > 2 * known.alone + spare)
    return say(std::to_string(agreed.only_b) + " objects are missing, and " +
               std::to_string(agreed.only_a) + " are there that the host does not find");
  if (agreed.confidence.most > kTypicalTimes * known.confidence + kConfidenceFloor)
    return say("a confidence differs by " + with_percent(agreed.confidence.most) +
               ", of which the precision explains " + with_percent(known.confidence));
  if (agreed.answers - agreed.same_answers > known.answers + (is_exact_ ? 0 : agreed.answers / 4))
    return say(std::to_string(agreed.answers - agreed.same_answers) + " of " +
               std::to_string(agreed.answers) + " answers differ");
  const double cells = cells_that_differ(agreed);
  if (cells > kTypicalTimes * known.cells + kCellsFloor)
    return say(with_percent(cells) + " of a map differ, of which the precision explains " +
               with_percent(known.cells));
  return false;
}

double ExplainedErrors::compare_with_known(const ComputedPicture& device,
                                           const ComputedPicture& host, double threshold,
                                           ResultDifference& found) const {
  found = {};
  double most = 0;
  bool any_selected = false;
  for (size_t i = 0; i < host.outputs.size(); ++i) {
    const std::string& name = outputs_[i].name;
    const TensorDifference d = difference_of(device.outputs[i], host.outputs[i]);
    if (d.not_finite != 0) {
      found.differs = true;
      found.output = name;
      found.difference = INFINITY;
      found.explained = explained_[i].typical;
      found.what = std::to_string(d.not_finite) + " elements of output " + name +
                   " are infinite or NaN, and are not on the host";
      return INFINITY;
    }
    // Selected outputs differ by whole rows; their objects decide, below.
    if (outputs_[i].is_selected) {
      any_selected = true;
      continue;
    }
    const Explained& known = explained_[i];
    const double typical = share(d.typical, d.typical_value),
                 largest = share(d.largest, d.largest_value);
    const double beyond = std::max(typical / (kTypicalTimes * known.typical + kTypicalFloor),
                                   largest / (kLargestTimes * known.largest + kLargestFloor));
    if (beyond <= 1 || beyond <= most) continue;
    most = beyond;
    found.differs = true;
    found.output = name;
    found.difference = typical;
    found.explained = known.typical;
    found.what = "output " + name + " differs by " + with_percent(typical) +
                 " of its typical value, of which the precision explains " +
                 with_percent(known.typical) + "; at most by " + with_percent(largest) +
                 " of its largest value, of which it explains " + with_percent(known.largest);
  }
  const Agreement agreed = agreement(device.results, host.results, threshold);
  found.lost = agreed.only_b;
  found.added = agreed.only_a;
  if (any_selected && !found.differs) {
    found.differs = compare_results(agreed, found);
    return found.differs ? 1 : 0;
  }
  return most;
}

ResultDifference ExplainedErrors::compare(const ComputedPicture& device,
                                          const ComputedPicture& host, double threshold,
                                          const Roughly& roughly) {
  ResultDifference found;
  double times = 0;
  const auto compare_again = [&] { times = compare_with_known(device, host, threshold, found); };
  unsigned seed = 0;
  const auto learn_to = [&](unsigned end) {
    while (seed < end) learn(roughly(seed++), host, threshold);
    compare_again();
  };
  if (is_known_) compare_again();
  if (!is_known_ || found.differs) learn_to(kRough);
  while (found.differs && times < kNoDoubt && seed < kRoughInDoubt) learn_to(seed + 1);
  return found;
}

}  // namespace clinfer
