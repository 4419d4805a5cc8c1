// A compiled model with the requests that its users share: one element, or all of one
// model-instance-id.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gst/frames/memory_import.h"
#include "gst/frames/va_surface.h"
#include "gst/infer/model/batcher.h"
#include "gst/infer/settings/network.h"

namespace clinfer {

class ModelCheck;

using ModelBatcher = Batcher<InferRequest, std::vector<Tensor>>;

struct SharedModel {
  // Returns why surfaces of `format` are not read without a copy; "" if they are. NV12 was tested
  // when the model was compiled, other formats are tested at the first call. Thread-safe.
  std::string surface_problem_of(PixelFormat format);

  std::shared_ptr<const SurfaceDisplay> display;  // for which the model was compiled, if any
  std::string surface_problem;                    // for NV12
  std::shared_ptr<CompiledModel> compiled;
  std::map<MemoryHandle, std::unique_ptr<MemoryImporter>> importers;
  Settings compiled_for;
  // The network and the engine's configuration. All variants of a model have the same `network`
  // object.
  std::shared_ptr<const Network> network;
  Config config;
  bool counts_layers = false;  // true for PERF_COUNT, by whichever property it was set
  // True for a model that computes until the wanted one is compiled: the first tier, or one of
  // several devices.
  bool is_interim = false;
  // True if an inference failed on the device, which may be lost: an element that starts again
  // compiles again.
  std::atomic<bool> failed{false};
  // True for a variant that is only tried: an element that starts again compiles again.
  std::atomic<bool> is_on_trial{false};
  std::shared_ptr<ModelCheck> check;      // for the property verify
  std::unique_ptr<ModelBatcher> batcher;  // returns the outputs of single images

 private:
  std::mutex testing_;
  std::optional<std::string> deep_problem_;  // for P010; nothing: not tested
};

// Is informed of the loading of a model, by the thread that loads it.
class LoadWatch {
 public:
  // Called several times a second. Returns false if the model is not wanted any more.
  virtual bool goes_on(const CompileProgress& progress) = 0;
  // Gets a model that computes until the wanted one is compiled: the first tier, or one of several
  // devices.
  virtual void take_interim(std::shared_ptr<SharedModel> shared) = 0;

 protected:
  ~LoadWatch() = default;
};

// Compiles for `network`, on the display of surfaces unless that is null, and makes the requests;
// tests the display first. Throws Error, also if the outputs of a batch cannot be divided by image.
std::shared_ptr<SharedModel> compile_shared(const Network& network, const Settings& settings,
                                            std::shared_ptr<const SurfaceDisplay> display,
                                            LoadWatch& watch);

// Returns the model of settings.model_instance_id. The first caller compiles it; others wait for
// it. Without an id, and for models that keep states, compiles a model for this caller alone.
// Throws Error, also if the id stands for a model with other settings (the message names the
// setting); with `replace` the id instead stands for the new model from then on, and elements that
// use the old one keep it. Calls `watch` while waiting, too. Elements whose frames come on
// different displays do not share, because no batch can have pictures of two OpenCL contexts.
std::shared_ptr<SharedModel> find_or_compile(const Network& network, const Settings& settings,
                                             std::shared_ptr<const SurfaceDisplay> display,
                                             bool replace, LoadWatch& watch);

// Compiles another variant of `model`, which is in use. Throws as compile_shared() does.
std::shared_ptr<SharedModel> compile_variant(const SharedModel& model, unsigned streams,
                                             Precision precision, LoadWatch& watch);

// Lets the model-instance-id of `model`, if it has one, stand for `variant` from now on.
void replace_shared(const std::shared_ptr<SharedModel>& model,
                    const std::shared_ptr<SharedModel>& variant);

// Repeats `value`, an input for one image, for each image of an input of shape `shape`. Throws
// Error{unsupported} if it is no such input.
Tensor repeated(const Tensor& value, const Shape& shape);

// Divides the outputs of a batch by image: takes a slice of the first dimension, or for
// DetectionOutput the rows with the image's number.
class BatchSplit {
 public:
  // Throws Error{unsupported}, which names an output that cannot be divided.
  BatchSplit(const CompiledModel& compiled, size_t image_input, size_t batch);
  // Returns one image's part of `value`, which has the whole batch or its first images.
  Tensor image_of(size_t output, const Tensor& value, size_t image) const;

 private:
  enum class Kind { whole, slice, rows };
  struct Output {
    Kind kind;
    Shape shape;  // for one image
  };
  std::vector<Output> outputs_;
};

}  // namespace clinfer
