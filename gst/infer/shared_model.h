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
#include "gst/infer/batcher.h"
#include "gst/infer/network.h"

namespace clinfer {

using ModelBatcher = Batcher<InferRequest, std::vector<Tensor>>;

struct SharedModel {
  // Why surfaces of `format` are not read where they lie; "" where they are. Those of NV12 were
  // tested when the model was compiled, others are at the first call. Any thread.
  std::string surface_problem_of(PixelFormat format);

  std::shared_ptr<const SurfaceDisplay> display;  // for which it was compiled, if any
  std::string surface_problem;                    // of NV12
  std::shared_ptr<CompiledModel> compiled;
  std::map<MemoryHandle, std::unique_ptr<MemoryImporter>> importers;
  Settings compiled_for;
  bool counts_layers = false;  // PERF_COUNT, by whichever property
  // Computes until the model that was asked for is compiled: the first tier, or one device of several.
  bool is_interim = false;
  // An inference failed on the device, which may be lost: an element that starts again compiles
  // anew.
  std::atomic<bool> failed{false};
  std::unique_ptr<ModelBatcher> batcher;  // gives the outputs of one image each

 private:
  std::mutex testing_;
  std::optional<std::string> deep_problem_;  // of P010; nothing: not tested
};

// A listener to the loading of a model. The thread that loads it calls the functions.
class LoadWatch {
 public:
  // Several times a second. False: the model is not wanted any more.
  virtual bool goes_on(const CompileProgress& progress) = 0;
  // `shared` computes until the model is compiled: the first tier, or one device of several.
  virtual void take_interim(std::shared_ptr<SharedModel> shared) = 0;

 protected:
  ~LoadWatch() = default;
};

// Compiles for `network`, on the display of surfaces unless that is null, and makes the requests;
// tests the display first. Throws Error, also where the outputs of a batch
// cannot be told apart by image.
std::shared_ptr<SharedModel> compile_shared(const Network& network, const Settings& settings,
                                            std::shared_ptr<const SurfaceDisplay> display,
                                            LoadWatch& watch);

// The model of settings.model_instance_id. The first caller compiles it; others wait for it.
// Without an id, a model for this caller alone. Throws Error, also where the id stands for a model
// with other settings, unless `replace`: the id stands for the new model then, and elements that
// use the old one keep it. The message names the setting. `watch` is asked while waiting too.
// Elements whose frames come on different displays do not share: no batch has pictures of two
// OpenCL contexts.
std::shared_ptr<SharedModel> find_or_compile(const Network& network, const Settings& settings,
                                             std::shared_ptr<const SurfaceDisplay> display,
                                             bool replace, LoadWatch& watch);

// How the outputs of image `image` are taken out of those of a batch: a slice of the first
// dimension, or for DetectionOutput the rows with that image's number.
class BatchSplit {
 public:
  // Throws Error{unsupported} naming an output that is neither.
  BatchSplit(const CompiledModel& compiled, size_t image_input, size_t batch);
  // `value` is of the whole batch or of its first images.
  Tensor image_of(size_t output, const Tensor& value, size_t image) const;

 private:
  enum class Kind { whole, slice, rows };
  struct Output {
    Kind kind;
    Shape shape;  // of one image
  };
  std::vector<Output> outputs_;
};

}  // namespace clinfer
