// Implements CompiledModel::compile() and begin(), for one device or a list of devices.
#include <algorithm>
#include <mutex>

#include "engine/compile/compile_all.h"
#include "engine/compile/device_choice.h"
#include "engine/compile/first_tier.h"
#include "engine/compile/hetero.h"
#include "engine/compile/model_compiler.h"
#include "engine/devices/batch_model.h"
#include "engine/devices/multi_model.h"
#include "engine/graph/states.h"
#include "engine/measure/pipeline.h"
#include "engine/ocl/device.h"
#include "engine/ocl/pocl_cache.h"
#include "kernels/base/default_floats.h"
#include "kernels/base/system/leaving.h"
#include "kernels/base/system/task.h"

namespace clinfer {

namespace {

using ChoiceKind = DeviceChoice::Kind;

// Refuses tuning for a list: measuring needs a device for itself, and one process at a time may
// write the file.
void refuse_tuning(const Config& config) {
  const TuningMode mode = config.tuning_mode_in_force();
  if (mode == TuningMode::create || mode == TuningMode::retune || mode == TuningMode::update)
    throw Error(ErrorCode::bad_argument,
                "device=" + config.device +
                    ": a tuning file is written for one device at a time: tune each with device= "
                    "its name; here use TUNING_USE_EXISTING (use-existing)");
}

bool was_cancelled(const CompiledFor& result) {
  try {
    if (result.error) std::rethrow_exception(result.error);
  } catch (const Error& error) {
    return error.code() == ErrorCode::cancelled;
  } catch (...) {
    // The compilation failed.
  }
  return false;
}

// Makes all devices compute batches of the same size, the one that the first device's records name.
void settle_batch(const Model& model, Config& config, const std::string& first_device) {
  if (config.batch != kAutoBatch) return;
  const auto measured = find_pipeline(model, config, ocl::select_device(first_device).info, 0);
  config.batch = measured ? measured->batch : 0;
}

std::shared_ptr<CompiledModel> compile_list(const std::shared_ptr<const Model>& model,
                                            Config config, DeviceChoice choice,
                                            const Progress& progress, const Offer& offer) {
  refuse_tuning(config);
  settle_batch(*model, config, choice.devices[0]);
  CompileAll all{model, {}, choice.kind == ChoiceKind::automatic, progress, offer};
  for (const std::string& device : choice.devices) {
    all.configs.push_back(config_for(config, device));
    // Gives the display to the first device only; the others read mapped frames.
    if (choice.kind == ChoiceKind::multi || device != choice.devices[0])
      all.configs.back().va_display = {};
  }
  std::vector<CompiledFor> results = all.run();
  for (const CompiledFor& result : results)
    if (!result.model && !was_cancelled(result))
      choice.warnings.push_back(result.device + " is not used: " + message_of(result.error));
  std::erase_if(results, [](const CompiledFor& result) { return !result.model; });
  if (choice.kind == ChoiceKind::automatic || results.size() == 1) {
    for (std::string& warning : choice.warnings) results[0].model->add_problem(std::move(warning));
    return results[0].model;
  }
  std::vector<std::shared_ptr<CompiledModel>> models;
  for (CompiledFor& result : results) models.push_back(std::move(result.model));
  return std::make_shared<MultiModel>(model, config.device, std::move(models), config,
                                      std::move(choice.warnings));
}

std::shared_ptr<CompiledModel> compile_batch(const std::shared_ptr<const Model>& model,
                                             const Config& config, DeviceChoice choice,
                                             const Progress& progress) {
  refuse_tuning(config);
  if (config.nv12_two_inputs || (config.batch > 1))
    throw Error(ErrorCode::bad_argument, "device=" + config.device +
                                             ": requests have one image each, without "
                                             "GPU_NV12_TWO_INPUTS and another batch");
  Config whole = config_for(config, choice.devices[0]);
  whole.batch = choice.images;
  whole.partial_batches = true;
  whole.shape_plans = 0;
  whole.va_display = {};
  auto compiled = compile_for_device(model, whole, progress, {}, {});
  return std::make_shared<BatchModel>(model, config.device, std::move(compiled), choice.images,
                                      config, std::move(choice.warnings));
}

std::shared_ptr<CompiledModel> compile_with(const std::shared_ptr<const Model>& model,
                                            const Config& stated, const Progress& stated_progress,
                                            const TuningObserver& observer,
                                            const Offer& offer) try {
  const ExitWaits exit_waits;
  const Progress progress = [&stated_progress](const auto&... now) {
    return !is_leaving() && (!stated_progress || stated_progress(now...));
  };
  const Config config = with_fallback(stated);
  // Passes the cache's folder, because the first call decides where drivers keep what they compile.
  const ocl::Devices& all = ocl::devices(config.cache_dir.value_or("").c_str());
  // PoCL is installed, but cannot write its cache.
  if (all.usable.empty() && !all.pocl_note.empty() && config.has_first_tier())
    return compile_for_host(model, config,
                            "the host computes without OpenCL, much slower: " + all.pocl_note);
  DeviceChoice choice = choose_devices(config.device);
  const bool keeps_states = has_states(model->graph());
  if (keeps_states && choice.kind != ChoiceKind::one && choice.kind != ChoiceKind::automatic)
    throw Error(ErrorCode::unsupported,
                "device=" + config.device +
                    ": the model keeps states from one inference to the next, which lie on one "
                    "device: name that one");
  if (choice.kind != ChoiceKind::hetero)
    for (const Config::DeviceSetting& setting : config.device_settings)
      if (setting.key == "CONFIG_FILE")
        throw Error(ErrorCode::bad_argument,
                    setting.device +
                        ".CONFIG_FILE: kernels for one device of several are for "
                        "device=HETERO; CONFIG_FILE alone is for all devices");
  // A model that computes meanwhile would begin the states anew where another one follows it.
  const Offer offered = keeps_states ? Offer() : offer;
  for (std::string& idle : idle_settings(config, choice.devices))
    choice.warnings.push_back(std::move(idle));
  if (choice.kind == ChoiceKind::hetero) {
    Config settled = config;
    refuse_tuning(settled);
    settle_batch(*model, settled, choice.devices[0]);
    return compile_hetero(model, settled, std::move(choice), progress, offer);
  }
  if (choice.kind == ChoiceKind::batch)
    return compile_batch(model, config, std::move(choice), progress);
  if (choice.kind != ChoiceKind::one)
    return compile_list(model, config, std::move(choice), progress, offered);
  try {
    auto compiled =
        compile_for_device(model, config_for(config, config.device), progress, observer, offered);
    for (std::string& warning : choice.warnings) compiled->add_problem(std::move(warning));
    return compiled;
  } catch (const ocl::PoclCacheFull& error) {  // the folder had room when PoCL listed its devices
    if (!config.has_first_tier()) throw;
    return compile_for_host(
        model, config,
        std::string("the host computes without OpenCL, much slower: ") + error.what());
  }
} catch (const std::bad_alloc&) {
  throw Error(ErrorCode::out_of_memory, "not enough memory to compile the model");
}

class Compilation final : public CompileTask {
 public:
  Compilation(std::shared_ptr<const Model> model, const Config& config)
      : task_([this, model = std::move(model), config](Making& task) {
          return compile_with(
              model, config,
              [this, &task](const std::string& what, size_t step, size_t of) {
                note([&](CompileProgress& now) { now = {what, step, of, std::nullopt}; });
                return !task.is_cancelled();
              },
              [this, &task](const TuningStatus& status) {
                note([&](CompileProgress& now) { now.tuning = status; });
                return !task.is_cancelled();
              },
              [&task](std::shared_ptr<CompiledModel> first) { task.offer(std::move(first)); });
        }) {}

  std::shared_ptr<CompiledModel> newest() const override { return task_.newest(); }
  bool is_over() const override { return task_.is_over(); }
  void wait_for_change(const std::shared_ptr<CompiledModel>& known,
                       std::optional<std::chrono::milliseconds> timeout) const override {
    task_.wait_for_change(known, timeout);
  }
  std::shared_ptr<CompiledModel> wait() const override { return task_.wait(); }
  CompileProgress progress() const override {
    const std::lock_guard lock(mutex_);
    return progress_;
  }
  void cancel() override { task_.cancel(); }

 private:
  using Making = Task<std::shared_ptr<CompiledModel>>;

  template <typename Change>
  void note(const Change& change) {
    const std::lock_guard lock(mutex_);
    change(progress_);
  }

  mutable std::mutex mutex_;  // guards the members below
  CompileProgress progress_;
  // Declared last, because its destructor must end the thread before the other members go.
  Making task_;
};

}  // namespace

std::shared_ptr<CompiledModel> CompiledModel::compile(std::shared_ptr<const Model> model,
                                                      const Config& config,
                                                      const Progress& progress,
                                                      const TuningObserver& observer) {
  const DefaultFloats floats;
  return compile_with(model, config, progress, observer, {});
}

std::unique_ptr<CompileTask> CompiledModel::begin(std::shared_ptr<const Model> model,
                                                  const Config& config) {
  const DefaultFloats floats;
  return std::make_unique<Compilation>(std::move(model), config);
}

}  // namespace clinfer
