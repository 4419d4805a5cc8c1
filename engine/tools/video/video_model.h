// A compiled model that gets frames of videos by the elements' own preprocessing.
#pragma once

#include <memory>
#include <vector>

#include "engine/heads/network.h"
#include "engine/heads/results/picture_results.h"

namespace clinfer {

// To be used by one thread at a time.
class VideoModel {
 public:
  // Prints to standard error what the model leaves open. Throws Error as describe_network() and
  // compile() do, and Error{unsupported} for networks of clips.
  VideoModel(const ModelOptions& options, Config config);

  const Network& network() const { return network_; }
  CompiledModel& compiled() const { return *compiled_; }
  size_t file_bytes() const;  // total size of the model's files

  // Returns the outputs for a frame that is fed in this way. `placement` gets its position in the
  // input.
  std::vector<Tensor> infer(const Frame& frame, const FrameTransform& transform,
                            Placement& placement) const;
  // Returns what the elements give with all properties at their defaults, except for the threshold.
  PictureResults results(const Frame& frame, float threshold) const;

 private:
  Network network_;
  std::shared_ptr<CompiledModel> compiled_;
  std::unique_ptr<InferRequest> request_;
};

}  // namespace clinfer
