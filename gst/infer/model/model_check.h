// Compares what a device computed with what the host computes, for all users of a compiled model.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/verify.h"
#include "gst/infer/model/explained_errors.h"
#include "gst/infer/model/pace.h"
#include "gst/infer/model/verify_sample.h"

namespace clinfer {

// The result of one sample.
struct VerifyFinding : ResultDifference {
  GstClockTime timestamp = GST_CLOCK_TIME_NONE;
  // The first layer that differs, if an earlier sample did. Its name is empty if none does.
  std::optional<LayerDifference> layer;
};

// The host's network is made when it is first needed. Thread-safe; computes one sample at a time.
class ModelCheck {
 public:
  // `config`: with which the model was compiled. `pace`: the share of a core.
  ModelCheck(Config config, double pace);

  // Compares a sample. Throws Error{unsupported} if the host cannot compute the network,
  // Error{cancelled} once `stop` is requested.
  VerifyFinding check(const VerifySample& sample, const std::stop_token& stop);

 private:
  std::vector<Tensor> image_of(const VerifySample& sample,
                               const std::vector<Tensor>& outputs) const;
  ComputedPicture decoded(const VerifySample& sample, std::vector<Tensor> outputs) const;

  const Config config_;
  std::timed_mutex turn_;  // guards the members below
  Pace pace_;
  std::unique_ptr<Reference> reference_;
  std::optional<ExplainedErrors> explained_;
  Placement placement_;       // of the sample in the network's input
  unsigned searches_ = 0;     // samples on which the layer is still to be looked for
  bool found_layer_ = false;  // the layer was found, or looked for often enough
};

}  // namespace clinfer
