// Runs a chosen head, and notes whether it can still be trusted.
#include <cmath>

#include "engine/heads/base/heads.h"

namespace clinfer {

void run_head(const HeadChoice& head, const ModelFacts& facts, std::span<const Tensor> outputs,
              const DecodeSettings& settings, bool attach_tensors, Results& results) {
  Results decoded;
  DecodeSettings own = settings;
  own.step = head.step;
  head.decode(outputs, own, decoded);
  const bool contradicted = !decoded.contradiction.empty();
  if (contradicted) {
    std::string why = std::move(decoded.contradiction);
    decoded = {};
    decoded.contradiction = std::move(why);
  }
  for (Detection& detection : decoded.detections) {
    const auto at = static_cast<size_t>(detection.label_id - head.first_label);
    if (detection.label.empty() && at < facts.labels.size()) detection.label = facts.labels[at];
  }
  const bool has_all = head.name == "none";
  if ((contradicted || head.attach_tensors || attach_tensors) && !has_all) {
    decoded.tensors.clear();
    match_tensors(facts).decode(outputs, settings, decoded);
  }
  results = std::move(decoded);
}

std::string unnamed_class(const HeadChoice& head, const ModelFacts& facts, const Results& results) {
  if (facts.labels.empty()) return {};
  const int last = head.first_label + static_cast<int>(facts.labels.size()) - 1;
  for (const Detection& detection : results.detections)
    if (detection.label.empty() && detection.label_id > last)
      return "the network found class " + std::to_string(detection.label_id) +
             ", which has no name: the last of the labels is that of class " +
             std::to_string(last) + "; set labels or labels-file to those of the model";
  return {};
}

namespace {

// Compares integers, which compilers vectorise: outputs of maps have millions of elements.
size_t count_nan(const Tensor& tensor) {
  const auto elements = static_cast<size_t>(tensor.elements());
  size_t count = 0;
  if (tensor.type() == ElementType::f32) {
    const auto* bits = tensor.data<uint32_t>();
    for (size_t i = 0; i < elements; ++i) count += (bits[i] & 0x7fffffffu) > 0x7f800000u;
  } else if (tensor.type() == ElementType::f16) {
    const auto* bits = tensor.data<uint16_t>();
    for (size_t i = 0; i < elements; ++i) count += (bits[i] & 0x7fffu) > 0x7c00u;
  } else if (is_float(tensor.type())) {
    for (const float value : tensor.to_floats()) count += std::isnan(value);
  }
  return count;
}

}  // namespace

std::string not_numbers(const ModelFacts& facts, std::span<const Tensor> outputs) {
  for (size_t i = 0; i < outputs.size() && i < facts.outputs.size(); ++i)
    if (const size_t count = count_nan(outputs[i]); count != 0)
      return std::to_string(count) + " of the " + std::to_string(outputs[i].elements()) +
             " values of the output " + facts.outputs[i].name +
             " are NaN, as of a number that is too large; they count as no object and no answer; "
             "set "
             "config=INFERENCE_PRECISION=f32, and compare mean and scale with what the model wants";
  return {};
}

bool HeadTrust::note(bool contradicted) {
  constexpr uint64_t kTrial = 10;
  if (contradicted)
    ++contradictions_;
  else
    agreed_ = true;
  return ++inferences_ >= kTrial && !agreed_.load() && !dropped_.exchange(true);
}

}  // namespace clinfer
