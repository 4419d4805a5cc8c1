// Computes samples on the host, and looks for the layer where the device computes something else.
#include "gst/infer/model/model_check.h"

#include <utility>

#include "gst/infer/model/shared_model.h"

namespace clinfer {
namespace {

constexpr auto kAhead = std::chrono::milliseconds(100);
constexpr auto kLookAgain = std::chrono::milliseconds(100);

constexpr unsigned kSearches = 3;  // samples on which the layer is looked for

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
ComputedPicture ModelCheck::decoded(const VerifySample& sample, std::vector<Tensor> outputs) const {
  const Network& network = sample.session->network;
  DecodeSettings settings = sample.decode;
  settings.threshold = std::max(settings.threshold - static_cast<float>(kNear), 0.f);
  Results results;
  run_head(network.head, network.facts, outputs, settings, false, results);
  return {std::move(outputs),
          place(results, placement_, sample.visible.width, sample.visible.height)};
}

VerifyFinding ModelCheck::check(const VerifySample& sample, const std::stop_token& stop) {
  const Reference::GoesOn goes_on = [&] { pace_.wait(stop); };
  std::unique_lock turn(turn_, std::defer_lock);
  while (!turn.try_lock_for(kLookAgain))
    if (stop.stop_requested())
      throw Error{ErrorCode::cancelled, "the results are not verified any more"};
  pace_.begin();
  const Network& network = sample.session->network;
  const Precision precision = sample.session->shared->compiled->precision();
  if (reference_ == nullptr) {
    reference_ = Reference::make(network.model, config_, goes_on);
    std::vector<ExplainedErrors::Output> outputs;
    for (size_t i = 0; i < reference_->network().outputs().size(); ++i)
      outputs.push_back({reference_->network().outputs()[i].name, reference_->is_selected(i)});
    explained_.emplace(std::move(outputs), precision == Precision::f32);
  }
  const auto set_frame = [&](InferRequest& request) {
    for (const auto& [input, value] : network.constants)
      request.set_input(input, repeated(value, reference_->network().inputs()[input].shape));
    placement_ = give_frames(request, network, sample.frames, sample.visible, sample.region.rect,
                             sample.region.turn, sample.region.angle, 0);
  };
  set_frame(reference_->request());
  const ComputedPicture host = decoded(sample, image_of(sample, reference_->compute(goes_on)));
  VerifyFinding finding;
  static_cast<ResultDifference&>(finding) = explained_->compare(
      decoded(sample, sample.outputs), host, sample.decode.threshold, [&](unsigned seed) {
        return decoded(sample,
                       image_of(sample, reference_->compute_roughly(precision, seed, goes_on)));
      });
  finding.timestamp = sample.timestamp;
  if (searches_ != 0) {
    --searches_;
    finding.layer = reference_->find_layer(set_frame, goes_on);
    if (!finding.layer->layer.empty()) searches_ = 0;
  }
  if (finding.differs && !std::exchange(found_layer_, true)) searches_ = kSearches;
  return finding;
}

}  // namespace clinfer
