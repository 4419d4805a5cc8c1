// Compares what a device computed with what the host computes, for all users of a compiled model.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/heads/results/agreement.h"
#include "engine/verify.h"
#include "gst/infer/model/pace.h"
#include "gst/infer/model/verify_sample.h"

namespace clinfer {

// The result of one sample.
struct VerifyFinding {
  bool differs = false;
  GstClockTime timestamp = GST_CLOCK_TIME_NONE;
  std::string what;    // for people: what differs and by how much
  std::string output;  // name of the output that differs most beyond what precision explains
  // The difference of that output, and the most that the precision explains, as shares of its
  // typical value.
  double difference = 0, explained = 0;
  size_t lost = 0, added = 0;  // objects that the device lacks, or has in addition
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
  // The errors that the precision explains at one output, as shares of its typical and its largest
  // value.
  struct Explained {
    double typical = 0, largest = 0;
    bool is_known = false;
  };
  // The differences of decoded results that it explains.
  struct ExplainedResults {
    size_t alone = 0, answers = 0;
    double cells = 0, confidence = 0;
  };
  // One image's outputs and the results decoded of them.
  struct Computed {
    std::vector<Tensor> outputs;
    PictureResults results;
  };

  std::vector<Tensor> image_of(const VerifySample& sample,
                               const std::vector<Tensor>& outputs) const;
  Computed decoded(const VerifySample& sample, std::vector<Tensor> outputs) const;
  void compare(const VerifySample& sample, const Computed& device, const Computed& host,
               VerifyFinding& finding) const;
  bool compare_results(const VerifySample& sample, const Agreement& agreed,
                       VerifyFinding& finding) const;
  void explain(const VerifySample& sample, const Computed& host, const Reference::GoesOn& goes_on);

  const Config config_;
  std::timed_mutex turn_;  // guards the members below
  Pace pace_;
  std::unique_ptr<Reference> reference_;
  std::vector<Explained> explained_;  // by output
  ExplainedResults explained_results_;
  Placement placement_;       // of the sample in the network's input
  unsigned searches_ = 0;     // samples on which the layer is still to be looked for
  bool found_layer_ = false;  // the layer was found, or looked for often enough
};

}  // namespace clinfer
