// Compiles a model for a device.
#include "engine/compile/model_compiler.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "engine/compile/graph_launch.h"
#include "engine/compile/persistent_steps.h"
#include "engine/graph/states.h"
#include "engine/host/model.h"
#include "engine/measure/pipeline.h"
#include "engine/measure/stream_count.h"
#include "engine/measure/tuning.h"
#include "engine/passes/passes.h"
#include "engine/plan/work.h"
#include "engine/runtime/model.h"
#include "engine/runtime/requests/infer_request.h"
#include "kernels/base/log.h"
#include "kernels/base/system/files.h"

namespace clinfer {

namespace {

// The compiler warns of an inference that takes longer.
constexpr double kAbsurdSeconds = 10;
// GFLOP/s by which such times are estimated: a CPU of a few cores or a GPU in it, and any other GPU.
constexpr double kSlowDevice = 100, kFastDevice = 5000;

const std::string kNoGraphs = "kernels are launched one by one, by OpenCL: ";

// Writes MODEL_03_pass.dot; the model's name allows several models in one folder.
void write_dump(const Model& model, const std::string& directory, size_t index,
                const std::string& name, const std::string& dot) {
  make_folders(directory);
  char number[8];
  std::snprintf(number, sizeof number, "%02zu", index);
  replace_file(
      directory + "/" + drawing_name(model, directory) + "_" + number + "_" + name + ".dot",
      std::array{std::string_view(dot)});
}

}  // namespace

std::shared_ptr<DeviceModel> compile_for_device(std::shared_ptr<const Model> model,
                                                const Config& config, const Progress& progress,
                                                const TuningObserver& observer,
                                                const Offer& offer) {
  FirstTierMaker first_tier(model, config, offer);
  auto compiled = compile_model(model, config, progress, observer, {.first_tier = &first_tier});
  compiled->take_plans(
      plans_for(model, config,
                [config = config_of_plans(config)](const auto& other, const Progress& goes_on) {
                  return compile_model(other, config, goes_on);
                }));
  return compiled;
}

std::shared_ptr<DeviceModel> compile_model(std::shared_ptr<const Model> model, const Config& config,
                                           const Progress& progress, const TuningObserver& observer,
                                           const InternalOptions& options) {
  try {
    try {
      return ModelCompiler(model, config, options).compile(progress, observer);
    } catch (const cuda::Failure& failure) {
      ModelCompiler anew(std::move(model), config, options);
      anew.launch_by_queue(failure);
      return anew.compile(progress, observer);
    }
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "compiling the model");
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, "not enough memory to compile the model");
  }
}

std::vector<ProblemRecord> find_records(std::shared_ptr<const Model> model, const Config& config) {
  try {
    return ModelCompiler(std::move(model), config, {}).find_records();
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "looking records up");
  }
}

ModelCompiler::ModelCompiler(std::shared_ptr<const Model> model, const Config& config,
                             const InternalOptions& options)
    : model_(std::move(model)),
      config_(config),
      options_(options),
      network_(std::make_shared<DeviceNetwork>()) {
  network_->name = title_of(*model_);
  network_->options = {
      config.perf_count,     config.half_outputs,    config.throttle == QueueHint::low,
      config.device_timeout, config.max_num_threads, config.sources_dumps_dir};
}

std::shared_ptr<DeviceModel> ModelCompiler::compile(const Progress& progress,
                                                    const TuningObserver& observer) {
  const auto start = std::chrono::steady_clock::now();
  if (config_.streams > Config::kMostStreams)
    throw Error{ErrorCode::bad_argument,
                std::to_string(config_.streams) +
                    " streams (THROUGHPUT_STREAMS): a device takes up to " +
                    std::to_string(Config::kMostStreams)};
  open_device();
  open_cache();
  // Shared by all programs built here.
  const auto compilers = ocl::CompilerPool::of(*network_->context);
  if (config_.batch == kAutoBatch) {
    const auto measured = find_pipeline(*model_, config_, network_->context->device.info, 0);
    config_.batch = measured ? measured->batch : 0;
  }
  Tuning tuning = plan_kernels();
  if (std::string warning = tuning.warning(); !warning.empty())
    report_.warnings.push_back(std::move(warning));
  add_up_work();
  warn_of_host_loops();
  if (network_->cuda != nullptr) {
    const std::string why =
        !network_->states.empty() ? "the model keeps states" : reject_graph(network_->whole);
    if (!why.empty()) leave_graphs(why);
    if (!why.empty() && config_.launch == Config::Launch::graph)
      report_.warnings.push_back(kNoGraphs + why);
  }
  // The first tier would disturb measurements, so it is not used then.
  if (!tuning.measures() && !config_.perf_count) first_tier_ = options_.first_tier;
  HostWeights weights = build_tuned(tuning, progress, observer);
  report_.tuning = tuning.finish(network_->plan());
  if (!config_.graph_dumps_dir.empty())
    write_dump(*model_, config_.graph_dumps_dir, passes().size(), "kernels",
               to_dot(network_->plan()));
  for (const LayerTuning& layer : report_.tuning.layers)
    if (layer.source == LayerTuning::Source::untuned && !layer.failed.empty())
      report_.warnings.push_back(layer.layer + " stays untuned: " + layer.failed.front());
  if (config_.partial_batches && !config_.perf_count) add_partial_batches(weights, progress);
  weights = {};
  if (std::string why = compilers->take_problem(); !why.empty()) report_.warnings.push_back(why);
  network_->options.driver_compiles =
      compilers->has_problem() || ocl::is_rusticl(network_->context->device);
  if (network_->cuda != nullptr) {
    check_plans(*network_);
    const auto begin = std::chrono::steady_clock::now();
    // Results are compared as they lie there, without making floats of halves.
    const bool half_outputs = std::exchange(network_->options.half_outputs, true);
    check_graphs(network_, [&](InferRequest& request) { wait_for(request, progress); });
    network_->options.half_outputs = half_outputs;
    log(LogArea::plan, LogLevel::info, [&] {
      const std::chrono::duration<double, std::milli> taken =
          std::chrono::steady_clock::now() - begin;
      return "graphs compute what single launches do, as inferences of " +
             std::to_string(taken.count()) + " ms show";
    });
  } else {
    warm_up(progress);
  }
  if (!cores_share_launches()) {
    // The driver runs the work-groups of a launch one after the other, so a persistent kernel would
    // use a single core.
    network_->traits.grid_barrier = GridBarrier::none;
    build_single_launches(progress);
    warm_up(progress);
  }
  if (first_tier_) build_preprocess_of_first_tier();
  if (config_.streams == 0 && !options_.one_stream) {
    std::shared_ptr<void> pause;
    if (first_tier_)
      pause = first_tier_->pause([&] { return !progress || progress("measuring streams", 0, 1); });
    choose_streams(network_, progress);
  }
  first_tier_ = nullptr;
  if (network_->cache) warn_once(network_->cache->problem());
  network_->clear_times();
  *network_->finished = 0;
  report_.load_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return std::make_shared<DeviceModel>(model_, network_, std::move(report_));
}

std::vector<ProblemRecord> ModelCompiler::find_records() {
  open_device();
  return plan_kernels().records(network_->plan());
}

// Makes the plan with the kernels that tuning files and shipped records name.
Tuning ModelCompiler::plan_kernels() {
  std::unique_ptr<Graph> graph = make_graph();
  use_measured_pipeline();
  use_single_launches(batch_of(*graph));
  network_->traits.alone = config_.streams == 1;
  Tuning tuning(config_, *network_->context, network_->traits);
  network_->whole.plan = make_plan(std::move(graph), network_->traits, tuning.chooser());
  choose_preprocess(tuning);
  describe_states();
  return tuning;
}

// Notes where the states lie, and their initial values as the device stores them.
void ModelCompiler::describe_states() {
  const Graph& graph = *network_->plan().graph;
  const std::map<std::string, Tensor>& initial = model_->graph().initial_states;
  network_->states.clear();
  for (const StatePlaces& place : states_of(graph)) {
    NetworkState& state = network_->states.emplace_back();
    state.port = model_->states().at(network_->states.size() - 1);
    state.parameter = place.parameter;
    state.result = place.result;
    state.is_new = place.is_new;
    const TensorDesc& desc = graph.parameters[place.parameter]->outputs[0].desc;
    state.initial.resize(static_cast<size_t>(desc.span()) * size_of(desc.type));
    if (const auto found = initial.find(place.name);
        found != initial.end() && !state.initial.empty())
      scatter_to(found->second, desc, state.initial.data());
  }
}

// Builds the network with the best kernels, and measures them if the tuning mode asks for that.
HostWeights ModelCompiler::build_tuned(Tuning& tuning, const Progress& progress,
                                       const TuningObserver& observer) {
  // Measuring and exposing layers both need a launch for each step.
  const bool persistent =
      network_->traits.grid_barrier != GridBarrier::none && !options_.expose_layers;
  HostWeights weights = build_for_device(progress, persistent && !tuning.measures());
  // A CPU has a cache for what it spills, and functions of persistent kernels have no kernels of
  // their own to ask about.
  const auto has_answers = [this] {
    return !network_->traits.is_cpu && network_->whole.persistent.empty();
  };
  const auto spilled = [this](size_t step) { return spilled_bytes(network_->whole, step); };
  while (has_answers() && tuning.avoid_spills(network_->plan(), spilled)) {
    choose_kernels(network_->whole.plan, network_->traits, tuning.chooser());
    weights = build_for_device(progress, persistent && !tuning.measures());
  }
  if (!tuning.measures()) return weights;
  const bool changed = tuning.measure(network_, observer);
  choose_preprocess(tuning);
  if (!changed && !persistent) return weights;
  const auto untuned = changed ? make_untuned(progress) : nullptr;
  do {
    choose_kernels(network_->whole.plan, network_->traits, tuning.chooser());
    weights = build_for_device(progress, persistent);
  } while (untuned && !tuning.is_not_slower(network_, untuned->shared_network(), observer) &&
           tuning.revert_least_gains(network_->plan()));
  return weights;
}

void ModelCompiler::warn_of_host_loops() {
  for (const Step& step : network_->plan().steps)
    if (step.on_host && (step.node->is("TensorIterator") || step.node->is("Loop")))
      report_.warnings.push_back(
          label(*step.node) + " runs on the host, in one thread: " +
          step.node->attributes.get_string(kOnHost, "the device has no kernel"));
}

// Writes a warning that concerns the whole process only once, not for each model.
void ModelCompiler::warn_once(const std::string& warning) {
  static std::mutex mutex;
  static auto& said = *new std::set<std::string>;  // never destroyed
  const std::lock_guard lock(mutex);
  if (!warning.empty() && said.insert(warning).second) report_.warnings.push_back(warning);
}

void ModelCompiler::open_device() {
  const ocl::Devices& devices = ocl::devices(config_.cache_dir.value_or("").c_str());
  const ocl::DisplayMatch match = options_.context
                                      ? ocl::DisplayMatch{&options_.context->device, nullptr, ""}
                                      : ocl::match_display(config_.device, config_.va_display);
  const ocl::Device& device = *match.device;
  network_->hints =
      ocl::applicable_hints({config_.priority, config_.throttle}, device.info.name,
                            device.device.getInfo<CL_DEVICE_EXTENSIONS>(), report_.warnings);
  if (options_.queue() != nullptr) {
    network_->hints = {};  // the application chose them when it made its queue
    network_->exclusive = std::make_shared<const ocl::ExclusiveQueue>(
        ocl::ExclusiveQueue{options_.context, options_.queue, network_->hints});
    if (config_.streams > 1)
      report_.warnings.push_back("the application's queue is one stream instead of " +
                                 std::to_string(config_.streams));
    config_.streams = 1;
  } else if (config_.exclusive) {
    network_->exclusive = ocl::ExclusiveQueue::of(match, network_->hints);
    network_->hints = network_->exclusive->hints;
    if (config_.streams > 1)
      report_.warnings.push_back(
          "exclusive requests run one after the other: 1 stream instead of " +
          std::to_string(config_.streams));
    config_.streams = 1;
  }
  const std::string no_graphs = why_no_graphs();
  std::optional<CudaOpening> opening;
  if (no_graphs.empty() && config_.launch != Config::Launch::queue && !device.info.is_cpu &&
      !device.info.is_integrated)
    opening.emplace(device);
  network_->context = options_.context      ? options_.context
                      : network_->exclusive ? network_->exclusive->context
                                            : ocl::create_context(match);
  if (!options_.context) warn_once(ocl::note_of_stand_in(config_.device, device.info));
  if (network_->context->traits.vendor == Vendor::pocl) warn_once(devices.pocl_note);
  if (config_.ordered_sums) network_->context = ocl::with_ordered_sums(*network_->context);
  network_->traits = network_->context->traits;
  log(LogArea::device, LogLevel::info, [&] {
    return config_.device + " is " + device.info.id + ", " + device.info.name + " (" +
           device.info.platform + ", driver " + device.info.driver + ")";
  });
  if (config_.persistent == Config::Persistent::yes && !config_.perf_count) {
    if (network_->traits.is_cpu)
      network_->traits.grid_barrier = GridBarrier::single;
    else
      report_.warnings.push_back("PERSISTENT_KERNEL=YES is for CPUs: " + device.info.name +
                                 " gets a launch for each kernel");
  }
  network_->external = std::make_unique<const ocl::MemorySharing>(network_->context->device);
  open_graphs(std::move(opening), no_graphs);
}

// Returns why inferences do not run as graphs whatever the device is; "" if they may. Measurements,
// observers of single steps and shared queues need OpenCL's launches.
std::string ModelCompiler::why_no_graphs() const {
  return config_.perf_count                        ? "layers are timed"
         : options_.expose_layers                  ? "layers are compared"
         : options_.context || network_->exclusive ? "the queue is shared"
                                                   : "";
}

// Uses CUDA's memory from the beginning if inferences run as graphs. `why` says why they do not, or
// is "".
void ModelCompiler::open_graphs(std::optional<CudaOpening> opening, std::string why) {
  if (config_.launch == Config::Launch::queue || network_->shares_host_memory()) return;
  bool ought_to_work = false;
  if (opening) try {
      network_->cuda = opening->finish();
      report_.launch = "graph";
      return;
    } catch (const cuda::Failure& failure) {
      why = failure.what();
      ought_to_work = graphs_ought_to_work(failure);
      if (ought_to_work) warn_once(kNoGraphs + why);
    }
  // Other vendors' devices never have graphs, so nothing is reported for them.
  if (config_.launch == Config::Launch::graph || ought_to_work ||
      network_->traits.vendor == Vendor::nvidia)
    leave_graphs(why);
}

void ModelCompiler::leave_graphs(const std::string& why) {
  network_->cuda.reset();
  network_->graph_kernels.reset();
  report_.launch = "queue (" + why + ")";
}

void ModelCompiler::launch_by_queue(const cuda::Failure& failure) {
  report_.launch = std::string("queue (") + failure.what() + ")";
  if (graphs_ought_to_work(failure)) report_.warnings.push_back(kNoGraphs + failure.what());
  config_.launch = Config::Launch::queue;
}

// Returns whether a failure is worth a warning. It is not if a driver or a kernel supports no
// graphs, unless the user asked for them.
bool ModelCompiler::graphs_ought_to_work(const cuda::Failure& failure) const {
  return config_.launch == Config::Launch::graph || failure.code() != ErrorCode::unsupported;
}

void ModelCompiler::open_cache() {
  const std::string directory =
      config_.cache_dir ? *config_.cache_dir : ocl::ProgramCache::default_directory();
  const uint64_t most = config_.cache_size ? uint64_t{config_.cache_size} << 20 : UINT64_MAX;
  if (!directory.empty()) {
    network_->cache = std::make_unique<ocl::ProgramCache>(directory, most);
    if (GraphCache::takes(*model_, config_)) graphs_.emplace(model_, *network_->cache, most);
  }
  if (directory.empty() && !config_.cache_dir)
    warn_once(
        "compiled programs are not kept, because neither XDG_CACHE_HOME nor HOME names a folder; "
        "name one (cache-dir, CACHE_DIR)");
}

// Makes the graph that kernels will compute, and sets inputs and outputs.
std::unique_ptr<Graph> ModelCompiler::make_graph() {
  const Graph& model = model_->graph();
  if (options_.expose_layers && has_states(model))
    throw Error(ErrorCode::unsupported,
                "layers of a model that keeps states from one inference to the next are not "
                "compared one by one");
  const bool half = half_activations(config_, model,
                                     network_->traits.fp16 && network_->context->device.info.fp16);
  const bool bf16 = config_.precision == Precision::bf16 && network_->traits.bf16 != Bf16::none;
  report_.precision = half ? Precision::f16 : bf16 ? Precision::bf16 : Precision::f32;
  if (config_.precision == Precision::bf16 && !bf16)
    report_.warnings.push_back(
        "f32, because the device has no instructions for bf16 that kernels here use "
        "(AVX512_BF16, by PoCL)");
  if (config_.precision == Precision::f16 && !half)
    report_.warnings.push_back(
        std::any_of(model.nodes().begin(), model.nodes().end(),
                    [](const auto& node) { return is_custom(*node); })
            ? "f32, because the device has no f16 arithmetic for the model's custom layers"
            : "the model adds up products of integers, which f16 cannot hold: f32");
  PassedGraph passed = pass_graph(config_.batch, options_.expose_layers, config_.graph_dumps_dir);
  network_->network_inputs = network_->inputs = std::move(passed.inputs);
  if (config_.nv12_two_inputs) {
    network_->picture = find_picture(network_->network_inputs);
    network_->inputs = with_planes(network_->network_inputs, *network_->picture);
  }
  network_->outputs = std::move(passed.outputs);
  return std::move(passed.graph);
}

// Returns the graph of this batch (0: the model's own) after all passes, from the cache if it is
// there.
PassedGraph ModelCompiler::pass_graph(int64_t batch, bool expose_layers,
                                      const std::string& dumps_dir) const {
  PassContext context{network_->traits,
                      report_.precision == Precision::f16 ? ElementType::f16 : ElementType::f32};
  context.unroll_loops = config_.unroll_loops;
  context.expose_layers = expose_layers;
  context.half_outputs = config_.half_outputs;
  context.bf16_products = report_.precision == Precision::bf16;
  context.integers = config_.quantized_in_integers;
  // Drawing and comparing layers need the passes to run.
  const bool cached = graphs_ && !expose_layers && dumps_dir.empty();
  if (cached)
    if (auto known = graphs_->load(context, batch)) return std::move(*known);
  PassedGraph passed{model_->graph().clone(), {}, {}};
  if (batch) set_batch(*passed.graph, batch);
  passed.inputs = input_ports(*passed.graph);
  passed.outputs = output_ports(*passed.graph);
  passed.graph->note_layers();
  run_passes(*passed.graph, context, "",
             [&](size_t index, const std::string& name, const Graph& graph) {
               if (!dumps_dir.empty()) write_dump(*model_, dumps_dir, index, name, to_dot(graph));
             });
  if (expose_layers) passed.outputs = output_ports(*passed.graph);
  if (cached) graphs_->store(context, batch, passed);
  return passed;
}

// Sets the number of streams, if it is on AUTO, to the best one that `clinfer tune --pipeline`
// found for this batch.
void ModelCompiler::use_measured_pipeline() {
  if (config_.streams != 0) return;
  const unsigned batch = network_->inputs.empty() || network_->inputs[0].shape.empty()
                             ? 1
                             : static_cast<unsigned>(network_->inputs[0].shape[0]);
  if (const auto measured =
          find_pipeline(*model_, config_, network_->context->device.info, batch)) {
    config_.streams = measured->streams;
    report_.optimal_requests = measured->requests;
  }
}

// Lets each stream compute its steps in one launch: PoCL takes 2 to 5 microseconds for each launch
// on one core, and several times that on several cores. If streams are on AUTO and there are few
// cores, each core gets a stream. A larger batch is split into plans for parts of it, whose steps
// are launched one by one.
void ModelCompiler::use_single_launches(int64_t batch) {
  constexpr unsigned kMostStreams = 4;
  constexpr unsigned kMostCores = 8;  // limit of cores for a stream; more were not measured
  const DeviceTraits& traits = network_->traits;
  const unsigned cores = network_->context->device.info.compute_units;
  if (config_.persistent != Config::Persistent::automatic || config_.perf_count) return;
  if (!traits.is_cpu || traits.vendor != Vendor::pocl || cores < 2 || batch > 1) return;
  if (network_->exclusive || options_.expose_layers) return;
  if (config_.streams == 0 && !options_.one_stream && cores <= kMostStreams)
    config_.streams = cores;
  const unsigned streams = options_.one_stream ? std::max(config_.streams, 1u) : config_.streams;
  if (streams > 0 && cores <= kMostCores * streams)
    network_->traits.grid_barrier = GridBarrier::single;
}

// Finds the layer with the most work, and warns if one inference takes absurdly long.
void ModelCompiler::add_up_work() {
  double all = 0, most = 0;
  for (const Step& step : network_->whole.plan.steps) {
    const double work = step.on_host ? 0 : multiply_adds(step.desc);
    all += work;
    if (work <= most) continue;
    most = work;
    char number[32];
    std::snprintf(number, sizeof number, "%.2g", work);
    network_->largest_layer = label(*step.node) + ", " + number + " multiply-adds";
  }
  const DeviceInfo& device = network_->context->device.info;
  const double rate = device.is_cpu || device.is_integrated ? kSlowDevice : kFastDevice;
  const double seconds = 2 * all / (rate * 1e9);
  if (seconds < kAbsurdSeconds) return;
  char text[128];
  std::snprintf(text, sizeof text,
                "one inference is %.2g multiply-adds, %.0f s for a device of %.0f GFLOP/s", all,
                seconds, rate);
  report_.warnings.push_back(text + ("; its largest layer is " + network_->largest_layer));
}

// Runs one inference, so that the first frame does not wait for what drivers compile or allocate at
// the first launch.
void ModelCompiler::warm_up(const Progress& progress) {
  DeviceRequest warm(network_, network_->stream(0));
  warm.start(0);
  wait_for(warm, progress);
}

// Waits for an inference that was started, and asks periodically whether it is still wanted.
void ModelCompiler::wait_for(InferRequest& request, const Progress& progress) const {
  constexpr auto kAskAgain = std::chrono::milliseconds(50);
  while (!request.wait(kAskAgain))
    if (progress && !progress("running the first inference", 0, 1))
      throw Error(ErrorCode::cancelled, "the first inference was cancelled");
}

// Builds the kernel for frames that the first tier has taken so far, so that the device's first
// frame of that kind does not wait for a compiler.
void ModelCompiler::build_preprocess_of_first_tier() {
  const auto first = first_tier_->made();
  const auto seen = first ? first->last_frame() : std::nullopt;
  if (!seen) return;
  DeviceRequest request(network_, network_->stream(0));
  request.set_frame(seen->input, seen->frame, seen->transform, 0, nullptr);
}

// Compiles the model with its untuned kernels for comparison. Returns nullptr and warns if the
// device has no room for both.
std::shared_ptr<DeviceModel> ModelCompiler::make_untuned(const Progress& progress) {
  Config config = config_;
  config.tuning_mode = TuningMode::disabled;
  config.tuning_db = config.partial_batches = false;
  config.graph_dumps_dir = config.sources_dumps_dir = "";
  config.dump_kernels = false;
  try {
    return compile_model(model_, config, progress, {}, {.one_stream = true});
  } catch (const std::exception& problem) {
    const auto* error = dynamic_cast<const Error*>(&problem);
    if (error && error->code() == ErrorCode::cancelled) throw;
    report_.warnings.push_back(
        std::string("the tuned network was not compared with the untuned one as a whole: ") +
        problem.what());
    return nullptr;
  }
}

// Returns how many bytes of registers the kernels of a step spill, as drivers with
// cl_intel_required_subgroup_size say; others refuse the query.
uint64_t ModelCompiler::spilled_bytes(const SizedPlan& sized, size_t step) const {
  constexpr cl_kernel_work_group_info kSpilled = 0x4109;  // CL_KERNEL_SPILL_MEM_SIZE_INTEL
  uint64_t bytes = 0;
  for (const std::string& name : sized.kernel_names[step]) {
    cl_ulong spilled = 0;
    if (clGetKernelWorkGroupInfo(sized.programs->kernel(name)(), network_->context->device.device(),
                                 kSpilled, sizeof spilled, &spilled, nullptr) == CL_SUCCESS)
      bytes += spilled;
  }
  return bytes;
}

// Creates weights, programs and streams of the whole plan. Without `persistent`, each step has
// launches of its own.
HostWeights ModelCompiler::build_for_device(const Progress& progress, bool persistent) {
  HostWeights weights;
  collect_weights(network_->whole, weights, config_.max_num_threads);
  network_->weights = upload(*network_, weights);
  network_->whole.persistent.clear();
  if (persistent)
    network_->whole.persistent =
        make_persistent_steps(network_->whole, *network_->context, network_->traits,
                              network_->persistent_groups(std::max(config_.streams, 1u)));
  try {
    build(network_->whole, progress);
  } catch (const Error& error) {
    // Some compilers accept all kernels one by one, but fail for a program of all of them.
    if (network_->whole.persistent.empty() || error.code() != ErrorCode::device_failed) throw;
    build_single_launches(progress);
    report_.warnings.push_back(std::string("no persistent kernel: ") + error.what());
  }
  for (const Step& step : network_->plan().steps)
    log(LogArea::plan, LogLevel::debug, [&] {
      return label(*step.node) + ": " +
             (step.on_host ? std::string("on the host")
                           : step.family->name + ", " +
                                 std::to_string(step.kernels.launches.size()) + " launches");
    });
  network_->make_streams(std::max(config_.streams, 1u));
  network_->clear_times();
  return weights;
}

// Builds single launches in place of persistent kernels; weights stay unchanged.
void ModelCompiler::build_single_launches(const Progress& progress) {
  network_->whole.persistent.clear();
  build(network_->whole, progress);
}

// Returns whether several work-groups share the work of a persistent kernel. Call it after the
// first inference, which shows whether the device answers at all.
bool ModelCompiler::cores_share_launches() const {
  const SizedPlan& whole = network_->whole;
  const unsigned groups = network_->persistent_groups();
  if (config_.persistent != Config::Persistent::automatic || whole.persistent.empty() ||
      groups < 2 || !ocl::shares_work(network_->traits))
    return true;
  const PersistentSteps& steps = whole.persistent.front();
  cl::Kernel kernel = whole.programs->kernel(steps.kernel.program.kernel_name);
  const DeviceStream& stream = network_->stream(0);
  bind_persistent(kernel,
                  {stream.memory.buffer, network_->weights.buffer, network_->weights.buffer},
                  steps.list, stream.counters);
  return groups_meet(stream.queue, kernel, stream.counters, groups);
}

namespace {

// Returns the first part of a launch that is cut, and a part with an offset.
std::vector<ocl::TrialLaunch> parts_to_try(const KernelSpec& spec, const Cut& cut) {
  std::vector<ocl::TrialLaunch> parts;
  for (const size_t first : {size_t{0}, size_t{1}}) {
    const Part part = part_of(spec, cut, first, 1);
    parts.push_back({part.global, spec.local, spec.arguments, part.offset});
  }
  return parts;
}

}  // namespace

// Checks the arguments and sizes of users' kernels, because drivers report errors only at each
// launch, and only by a number.
void ModelCompiler::check_own_kernels(const SizedPlan& sized) const {
  for (size_t s = 0; s < sized.plan.steps.size(); ++s)
    for (size_t l = 0; l < sized.plan.steps[s].kernels.launches.size(); ++l) {
      const KernelSpec& spec = sized.plan.steps[s].kernels.launches[l];
      if (!spec.own) continue;
      const auto refuse = [&](const std::string& what) {
        throw Error(ErrorCode::bad_argument, spec.own->where + ": " + what);
      };
      const cl::Kernel kernel = sized.programs->kernel(sized.kernel_names[s][l]);
      const auto arguments = kernel.getInfo<CL_KERNEL_NUM_ARGS>();
      if (arguments != spec.arguments.size())
        refuse("the kernel " + spec.own->entry + " takes " + std::to_string(arguments) +
               " arguments, <Buffers> lists " + std::to_string(spec.arguments.size()));
      const cl::Device& device = network_->context->device.device;
      const auto stated = kernel.getWorkGroupInfo<CL_KERNEL_COMPILE_WORK_GROUP_SIZE>(device);
      const auto text = [](const auto& sizes) {
        return std::to_string(sizes[0]) + "," + std::to_string(sizes[1]) + "," +
               std::to_string(sizes[2]);
      };
      if (stated[0] != 0 && !std::equal(spec.local.begin(), spec.local.end(), stated.begin()))
        refuse("the kernel " + spec.own->entry + " is compiled for work-groups of " + text(stated) +
               ", and gets " + text(spec.local) + "; state <WorkSizes local>");
      const auto most = kernel.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(device);
      if (spec.local[0] * spec.local[1] * spec.local[2] > most)
        refuse("work-groups of " + text(spec.local) + " are too large for the kernel " +
               spec.own->entry + ", which takes " + std::to_string(most) + " work-items here");
    }
}

void ModelCompiler::build(SizedPlan& sized, const Progress& progress) {
  ocl::Instantiations known;
  std::vector<ocl::Instantiation> wanted;
  std::unordered_map<std::string, size_t> places;  // in `wanted`, by the kernel's name
  sized.kernel_names.clear();
  size_t own = 0;  // next step with launches of its own
  for (size_t s = 0; s < sized.plan.steps.size(); ++s) {
    if (const PersistentSteps* steps = sized.persistent_at(s)) {
      wanted.push_back(steps->kernel.program);
      own = steps->end;
    }
    std::vector<std::string> names;
    const Step& step = sized.plan.steps[s];
    for (size_t l = 0; l < step.kernels.launches.size(); ++l) {
      const KernelSpec& launch = step.kernels.launches[l];
      const ocl::Instantiation& kernel = known.of(launch);
      names.push_back(kernel.kernel_name);
      if (s < own) continue;
      const auto [place, is_new] = places.try_emplace(kernel.kernel_name, wanted.size());
      if (is_new) wanted.emplace_back(kernel).launches.clear();
      const Cut cut = step.cut(l);
      ocl::add_launches(
          wanted[place->second].launches,
          cut ? parts_to_try(launch, cut)
              : std::vector{ocl::TrialLaunch{launch.global, launch.local, launch.arguments}});
    }
    sized.kernel_names.push_back(std::move(names));
  }
  ocl::BuildOptions options{network_->cache.get(),          config_.max_num_threads,
                            config_.sources_dumps_dir,      progress,
                            network_->whole.programs.get(), {},
                            config_.dump_kernels ? "." : ""};
  if (network_->cuda != nullptr) {
    const ocl::Instantiation sums = program_of_sums();
    if (&sized == &network_->whole) wanted.push_back(sums);
    if (network_->graph_kernels == nullptr)
      network_->graph_kernels = std::make_shared<GraphKernels>(
          network_->cuda, network_->context->device.info, network_->cache.get());
    // CUDA compiles a kernel at once, while others are still built.
    options.built = [kernels = network_->graph_kernels, opencl_only = sums.kernel_name](
                        const std::string& name, const cl::Program& program) {
      if (name != opencl_only) kernels->make(name, ocl::Programs::binary(program));
    };
  }
  ocl::Programs::Building building(*network_->context, wanted, options);
  if (first_tier_ && building.has_to_compile()) first_tier_->begin();
  sized.programs = building.finish();
  check_own_kernels(sized);
}

void ModelCompiler::choose_preprocess(Tuning& tuning) {
  const bool surfaces = config_.va_display.handle != nullptr &&
                        network_->context->sharing_problem.empty() &&
                        network_->context->device.device.getInfo<CL_DEVICE_IMAGE_SUPPORT>();
  const std::vector<Node*>& parameters = network_->plan().graph->parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    for (const PictureKind kind : {PictureKind::yuv, PictureKind::rgb, PictureKind::surface}) {
      if (kind == PictureKind::surface && !surfaces) continue;
      if (const auto op = preprocess_op(kind, parameters[i]->outputs[0].desc))
        network_->preprocess_points[{i, kind}] = tuning.choose_preprocess(*op);
    }
}

}  // namespace clinfer
