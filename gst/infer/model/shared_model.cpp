// Makes compiled models with their requests, and keeps the registry of those that elements share.
#include "gst/infer/model/shared_model.h"

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "gst/frames/cuda_memory.h"
#include "gst/infer/model/model_check.h"
#include "gst/infer/settings/properties.h"
#include "kernels/base/log.h"

namespace clinfer {
namespace {}  // namespace

Tensor repeated(const Tensor& value, const Shape& shape) {
  Tensor all = Tensor::allocate(value.type(), shape);
  if (value.bytes() == 0 || all.bytes() % value.bytes() != 0)
    throw Error{ErrorCode::unsupported, "an input of shape " + to_string(shape) +
                                            " is no batch of " + to_string(value.shape())};
  auto* to = static_cast<std::byte*>(all.raw_mutable());
  for (size_t at = 0; at < all.bytes(); at += value.bytes())
    std::memcpy(to + at, value.raw(), value.bytes());
  return all;
}

namespace {

// Returns the rows [image, label, score, box] of one image, numbered 0 and ended by -1. `shape`:
// [1,1,rows,7].
Tensor rows_of(const Tensor& value, const Shape& shape, size_t image) {
  constexpr size_t kRow = 7;
  Tensor mine = Tensor::allocate(ElementType::f32, shape);
  const size_t rows = static_cast<size_t>(value.elements()) / kRow,
               most = static_cast<size_t>(mine.elements()) / kRow;
  float* to = mine.mutable_data<float>();
  size_t kept = 0;
  for (size_t r = 0; r < rows && kept < most; ++r) {
    const float* row = value.data<float>() + r * kRow;
    if (row[0] < 0) break;
    if (row[0] != static_cast<float>(image)) continue;
    std::copy_n(row, kRow, to + kept * kRow);
    to[kept++ * kRow] = 0;
  }
  if (kept < most) to[kept * kRow] = -1;
  return mine;
}

constexpr auto kModelWait = std::chrono::milliseconds(50);

// The share of a core that checks (property verify) of all elements with one model may use.
constexpr double kShareOfCore = 0.045;

// Keeps one model for each id. An entry lives as long as an element uses or compiles its model.
class Registry {
 public:
  std::shared_ptr<SharedModel> find_or_compile(const Network& network, const Settings& settings,
                                               std::shared_ptr<const SurfaceDisplay> display,
                                               bool replace, LoadWatch& watch) {
    const std::string& id = settings.model_instance_id;
    const Key key{id, display != nullptr ? display->display.handle : nullptr};
    {
      bool has_first = false;
      std::unique_lock lock(mutex_);
      for (;;) {
        Entry& entry = entries_[key];
        if (auto model = entry.model.lock(); model != nullptr && !model->failed) {
          if (engine_difference(model->compiled_for, settings).empty()) return model;
          if (!replace) refuse(id, model->compiled_for, settings);
        }
        if (!entry.compiling) {
          entry.compiling = true;
          break;
        }
        changed_.wait_for(lock, kModelWait);
        const std::shared_ptr<SharedModel> theirs = entries_[key].first.lock();
        lock.unlock();
        if (theirs != nullptr && !has_first &&
            engine_difference(theirs->compiled_for, settings).empty()) {
          watch.take_interim(theirs);
          has_first = true;
        }
        if (!watch.goes_on({"waiting for model-instance-id " + id, 0, 1, {}}))
          throw Error{ErrorCode::cancelled, "waiting for model-instance-id " + id + " was stopped"};
        lock.lock();
      }
    }
    std::shared_ptr<SharedModel> model;
    try {
      Announcing announcing(*this, key, watch);
      model = compile_shared(network, settings, display, announcing);
    } catch (...) {
      settle(key, nullptr);
      throw;
    }
    settle(key, model);
    return model;
  }

  // Lets the id of `model`, if there is one, stand for `variant`.
  void replace(const std::shared_ptr<SharedModel>& model,
               const std::shared_ptr<SharedModel>& variant) {
    const std::lock_guard lock(mutex_);
    for (auto& [key, entry] : entries_)
      if (!entry.model.owner_before(model) && !model.owner_before(entry.model))
        entry.model = variant;
  }

 private:
  using Key = std::pair<std::string, void*>;  // id and display
  struct Entry {
    std::weak_ptr<SharedModel> model;
    bool compiling = false;
    std::weak_ptr<SharedModel> first{};  // its first tier while it is being compiled
  };
  // Also informs others who wait for the same model.
  class Announcing final : public LoadWatch {
   public:
    Announcing(Registry& registry, Key key, LoadWatch& watch)
        : registry_(registry), key_(std::move(key)), watch_(watch) {}
    bool goes_on(const CompileProgress& progress) override { return watch_.goes_on(progress); }
    void take_interim(std::shared_ptr<SharedModel> shared) override {
      {
        const std::lock_guard lock(registry_.mutex_);
        registry_.entries_[key_].first = shared;
      }
      registry_.changed_.notify_all();
      watch_.take_interim(std::move(shared));
    }

   private:
    Registry& registry_;
    const Key key_;
    LoadWatch& watch_;
  };

  [[noreturn]] static void refuse(const std::string& id, const Settings& theirs,
                                  const Settings& ours, SourcePlace place = SourcePlace::here()) {
    const std::string difference = engine_difference(theirs, ours);
    throw Error{ErrorCode::bad_argument,
                "model-instance-id=" + id + " is in use with another " + difference +
                    "; give its elements the same " + difference + ", or another id",
                place};
  }
  void settle(const Key& key, const std::shared_ptr<SharedModel>& model) {
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(entries_, [&](const auto& other) {
        return other.first != key && !other.second.compiling && other.second.model.expired();
      });
      entries_[key] = {model, false};
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Entry> entries_;
};

}  // namespace

std::string SharedModel::surface_problem_of(PixelFormat format) {
  if (!surface_problem.empty() || format != PixelFormat::p010) return surface_problem;
  const std::lock_guard lock(testing_);
  if constexpr (kHaveSurfaces)
    if (!deep_problem_) deep_problem_ = test_sharing(*display, *compiled, format);
  return deep_problem_.value_or("");
}

BatchSplit::BatchSplit(const CompiledModel& compiled, size_t image_input, size_t batch) {
  const int64_t stated = compiled.model().inputs()[image_input].shape[0];
  for (size_t i = 0; i < compiled.outputs().size(); ++i) {
    const Shape& one = compiled.model().outputs()[i].shape;  // the shape for `stated` images
    const Shape& all = compiled.outputs()[i].shape;
    const auto images = static_cast<int64_t>(batch);
    if (batch == 1) {
      outputs_.push_back({Kind::whole, all});
    } else if (compiled.model().output_op(i) == "DetectionOutput" && !all.empty() &&
               all.back() == 7) {
      outputs_.push_back({Kind::rows, {1, 1, count(all) / 7 / images, 7}});
    } else if (!one.empty() && one.size() == all.size() && all[0] * stated == one[0] * images &&
               all[0] % images == 0) {
      Shape image = all;
      image[0] /= images;
      outputs_.push_back({Kind::slice, std::move(image)});
    } else {
      throw Error{ErrorCode::unsupported,
                  compiled.model().path() + ": batch-size=" + std::to_string(batch) + ": output " +
                      compiled.outputs()[i].name + " " + to_string(all) +
                      " cannot be divided by image; use batch-size=1"};
    }
  }
}

Tensor BatchSplit::image_of(size_t output, const Tensor& value, size_t image) const {
  const auto& [kind, shape] = outputs_[output];
  if (kind == Kind::whole) return value;
  if (kind == Kind::rows)
    return rows_of(value.type() == ElementType::f32 ? value : value.convert(ElementType::f32),
                   shape, image);
  // Makes a view that keeps the tensor of the whole batch; nothing is copied.
  const auto owner = std::make_shared<const Tensor>(value);
  const auto* data = static_cast<const std::byte*>(value.raw());
  const size_t bytes = static_cast<size_t>(count(shape)) * size_of(value.type());
  return Tensor::view(value.type(), shape, data + image * bytes, owner);
}

namespace {

// Returns `compiled` with its requests.
std::shared_ptr<SharedModel> share(const Network& network, const Settings& settings,
                                   std::shared_ptr<const SurfaceDisplay> display,
                                   std::shared_ptr<CompiledModel> with, const Config& config) {
  auto shared = std::make_shared<SharedModel>();
  shared->display = std::move(display);
  shared->compiled_for = settings;
  shared->network = std::make_shared<const Network>(network);
  shared->config = config;
  shared->counts_layers = engine_config(network, settings).perf_count;
  shared->compiled = std::move(with);
  shared->check = std::make_shared<ModelCheck>(config, kShareOfCore);
  CompiledModel& compiled = *shared->compiled;
  std::vector<const MemoryKind*> kinds{&dmabuf_kind()};
  if constexpr (kHaveCudaMemory) kinds.push_back(&cuda_kind());
  for (const MemoryKind* kind : kinds)
    shared->importers[kind->handle] = std::make_unique<MemoryImporter>(shared->compiled, *kind);
  const auto batch = static_cast<size_t>(compiled.inputs()[network.image_input].shape[0]);
  BatchSplit split(compiled, network.image_input, batch);

  std::vector<std::unique_ptr<InferRequest>> requests;
  const unsigned wanted = compiled.tier() == Tier::full ? settings.nireq : 0;
  // Frames of a network that keeps states follow each other in one request.
  const unsigned count = !network.model->states().empty() ? 1
                         : wanted != 0                    ? wanted
                                       : std::max(compiled.optimal_requests(), 1u);
  for (unsigned i = 0; i < count; ++i) {
    requests.push_back(compiled.create_request());
    for (const auto& [input, value] : network.constants)
      requests.back()->set_input(input, repeated(value, compiled.inputs()[input].shape));
  }
  const size_t outputs = compiled.outputs().size();
  shared->batcher = std::make_unique<ModelBatcher>(
      std::move(requests), batch, compiled.streams(), compiled.wants_thread_per_request(),
      [split = std::move(split), outputs](InferRequest& request, size_t image) {
        std::vector<Tensor> values;
        for (size_t i = 0; i < outputs; ++i)
          values.push_back(split.image_of(i, request.output(i), image));
        return values;
      });
  return shared;
}

// Returns `compiled` for use until another model computes; null if it cannot be used, since the
// wanted model may work nevertheless.
std::shared_ptr<SharedModel> share_interim(const Network& network, const Settings& settings,
                                           const std::shared_ptr<const SurfaceDisplay>& display,
                                           const std::shared_ptr<CompiledModel>& compiled,
                                           const Config& config) try {
  // One of several devices reads mapped frames, because it may not be the display's device.
  auto shared = share(network, settings, compiled->tier() == Tier::first ? display : nullptr,
                      compiled, config);
  shared->is_interim = true;
  return shared;
} catch (const std::exception& error) {
  log(LogArea::device, LogLevel::debug,
      [&] { return network.name + " waits for its own device: " + error.what(); });
  return nullptr;
}

std::shared_ptr<SharedModel> compile_with(const Config& config, const Network& network,
                                          const Settings& settings,
                                          std::shared_ptr<const SurfaceDisplay> display,
                                          LoadWatch& watch) {
  const std::unique_ptr<CompileTask> task = CompiledModel::begin(network.model, config);
  for (std::shared_ptr<CompiledModel> interim;;) {
    std::shared_ptr<CompiledModel> newest = task->newest();
    if (task->is_over()) break;
    if (newest != nullptr && newest != interim) {
      interim = std::move(newest);
      if (auto shared = share_interim(network, settings, display, interim, config))
        watch.take_interim(std::move(shared));
    }
    if (!watch.goes_on(task->progress())) task->cancel();
    task->wait_for_change(interim, kModelWait);
  }
  const std::shared_ptr<CompiledModel> compiled = task->wait();
  std::string surface_problem = compiled->sharing_problem();
  if constexpr (kHaveSurfaces)
    if (display != nullptr && surface_problem.empty())
      surface_problem = test_sharing(*display, *compiled, PixelFormat::nv12);
  auto shared = share(network, settings, std::move(display), compiled, config);
  shared->surface_problem = std::move(surface_problem);
  return shared;
}

Registry& registry() {
  static auto& registry = *new Registry;
  return registry;
}

}  // namespace

std::shared_ptr<SharedModel> compile_shared(const Network& network, const Settings& settings,
                                            std::shared_ptr<const SurfaceDisplay> display,
                                            LoadWatch& watch) {
  Config config = engine_config(network, settings);
  config.nv12_two_inputs = false;  // frames are given as pictures
  config.partial_batches = config.half_outputs = true;
  if (display != nullptr) config.va_display = display->display;
  return compile_with(config, network, settings, std::move(display), watch);
}

std::shared_ptr<SharedModel> compile_variant(const SharedModel& model, unsigned streams,
                                             Precision precision, LoadWatch& watch) {
  Config config = model.config;
  config.streams = streams;
  if (precision != model.compiled->precision()) config.precision = precision;
  config.first_tier = false;
  // Measuring kernels would hold up the frames of the variant in use.
  if (config.tuning_mode_in_force() != TuningMode::disabled) config.tuning_mode.reset();
  auto variant = compile_with(config, *model.network, model.compiled_for, model.display, watch);
  variant->network = model.network;
  return variant;
}

void replace_shared(const std::shared_ptr<SharedModel>& model,
                    const std::shared_ptr<SharedModel>& variant) {
  registry().replace(model, variant);
}

std::shared_ptr<SharedModel> find_or_compile(const Network& network, const Settings& settings,
                                             std::shared_ptr<const SurfaceDisplay> display,
                                             bool replace, LoadWatch& watch) {
  // States belong to one stream.
  if (settings.model_instance_id.empty() || !network.model->states().empty())
    return compile_shared(network, settings, std::move(display), watch);
  return registry().find_or_compile(network, settings, std::move(display), replace, watch);
}

}  // namespace clinfer
