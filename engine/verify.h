// Computes a network again on the host, in f32, to check what a device computed of it. This header
// is for the elements, which include it besides engine.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

// How far a tensor is from another one. Differences are those of finite elements.
struct TensorDifference {
  double typical = 0, largest = 0;              // root of the mean square; maximum
  double typical_value = 0, largest_value = 0;  // the same of the other tensor's elements
  // Number of elements that are infinite or NaN in the first tensor, and finite in the second.
  size_t not_finite = 0;
};
// Returns the difference of `value` from `reference`, a tensor with as many elements.
TensorDifference difference_of(const Tensor& value, const Tensor& reference);

// The first layer at which the device computes something else than the host does from the same
// inputs.
struct LayerDifference {
  std::string layer, type;  // "" and "": none was found
  // The largest difference, and the largest value of the layer's output.
  double difference = 0, largest_value = 0;
  // True if the layers agree when they get the host's conversion of the frame, so that the device's
  // conversion differs.
  bool in_frame = false;
};

// A network on the host. To be used by one thread at a time.
class Reference {
 public:
  // Is called between parts of the work, and may sleep. Ends the work by throwing.
  using GoesOn = std::function<void()>;
  // Gives a frame to a request, as the request of the device got it.
  using SetFrame = std::function<void(InferRequest&)>;

  // Prepares the network of a model that was compiled with `config`. It computes one image if the
  // model allows that, else config.batch. Takes the host's memory for the weights in f32. Throws
  // Error{unsupported} if an inference would take longer than a minute of one core, or the host
  // lacks an operation.
  static std::unique_ptr<Reference> make(std::shared_ptr<const Model> model, const Config& config,
                                         const GoesOn& goes_on);
  virtual ~Reference() = default;

  // The network on the host, whose inputs and outputs are those of the device's, but for the batch.
  virtual const CompiledModel& network() const = 0;
  // The request whose inputs and frames compute() takes. It must not be started.
  virtual InferRequest& request() = 0;
  // Computes the outputs on the calling thread.
  virtual std::vector<Tensor> compute(const GoesOn& goes_on) = 0;
  // Computes them with errors in each layer like those of a device that computes in `precision`:
  // pseudo-random ones, which differ by `seed`.
  virtual std::vector<Tensor> compute_roughly(Precision precision, unsigned seed,
                                              const GoesOn& goes_on) = 0;
  // Returns whether an operation that selects or sorts (NonMaxSuppression, TopK and the like) is
  // before the output, so that a small error may exchange its elements.
  virtual bool is_selected(size_t output) const = 0;
  // Compiles the network for the device so that each layer's output can be read, and computes the
  // frame that compute() got last. Takes the time of a compilation, and that of the layers' plain
  // versions. Throws Error, also if `config` named several devices.
  virtual LayerDifference find_layer(const SetFrame& set_frame, const GoesOn& goes_on) = 0;
};

}  // namespace clinfer
