// Compilation for a device.
#include "engine/runtime/compiled_model.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <set>

#include "engine/measure/pipeline.h"
#include "engine/measure/tuning.h"
#include "engine/passes/passes.h"
#include "engine/plan/work.h"
#include "engine/runtime/infer_request.h"
#include "kernels/base/files.h"
#include "kernels/base/hash.h"
#include "kernels/base/threads.h"
#include "tuning/op_key.h"

namespace clinfer {

namespace {

constexpr size_t kWeightAlignment = 256;
// AUTO tries these numbers of streams, each for this long at load, and takes more only where that
// brings so much.
constexpr unsigned kTriedStreams[] = {1, 2, 4};
constexpr auto kTrial = std::chrono::milliseconds(60);
constexpr double kWorthMoreStreams = 1.03;
// A persistent kernel holds compute units that launches of other streams could have: it has to save
// so much of all time, and this many work-groups. A launch that takes so many microseconds longer
// in it may still be a part: it would cut one kernel into two.
constexpr double kWorthHolding = 0.07;
constexpr unsigned kFewestGroups = 16;
constexpr double kInterruption = 2.2;

// A device of 100 GFLOP/s, a CPU of a few cores, takes ten seconds for so many multiply-adds.
constexpr double kAbsurdWork = 5e11;

size_t aligned(size_t bytes) {
  return (bytes + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
}

// MODEL_03_pass.dot: several models may be drawn into one folder.
void write_dump(const std::string& directory, size_t index, const std::string& name,
                const Graph& graph) {
  make_folders(directory);
  char number[8];
  std::snprintf(number, sizeof number, "%02zu", index);
  const std::string dot = to_dot(graph);
  std::string model = printable(graph.name);
  std::replace(model.begin(), model.end(), '/', '_');
  replace_file(directory + "/" + model + "_" + number + "_" + name + ".dot",
               std::array{std::string_view(dot)});
}

}  // namespace

std::shared_ptr<CompiledModel> CompiledModel::compile(std::shared_ptr<const Model> model,
                                                      const Config& config,
                                                      const Progress& progress,
                                                      const TuningObserver& observer) {
  try {
    return std::make_shared<DeviceModel>(std::move(model), config, progress, observer);
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "compiling the model");
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, "not enough memory to compile the model");
  }
}

DeviceModel::DeviceModel(std::shared_ptr<const Model> model, const Config& config,
                         const Progress& progress, const TuningObserver& observer,
                         const InternalOptions& special)
    : model_(std::move(model)), config_(config) {
  const auto start = std::chrono::steady_clock::now();
  open_device();
  const auto compilers = ocl::CompilerPool::of(*context_);  // one for all that is built here
  if (config_.batch == kAutoBatch) {
    const auto measured = find_pipeline(*model_, config_, context_->device.info, 0);
    config_.batch = measured ? measured->batch : 0;
  }
  std::unique_ptr<Graph> graph = make_graph(special.expose_layers);
  use_measured_pipeline();
  traits_.alone = config_.streams == 1;
  Tuning tuning(config_, *context_, traits_);
  const KernelChooser choose = [&](const OpDesc& desc,
                                   std::span<const KernelFamily* const> families) {
    return tuning.choose(desc, families);
  };
  whole_.plan = make_plan(std::move(graph), traits_, choose);
  add_up_work();
  choose_preprocess(tuning);
  // Measuring and exposing layers both need each step launched by itself.
  const bool persistent = traits_.grid_barrier != GridBarrier::none && !special.expose_layers;
  const auto* by_turns_with = dynamic_cast<const DeviceModel*>(config_.by_turns_with.get());
  HostWeights weights = build_for_device(progress, persistent && !tuning.measures(), by_turns_with);
  if (tuning.measures()) {
    std::vector<bool> parts(whole_.plan.steps.size());
    if (persistent) parts = find_parts(by_turns_with);
    const bool changed = tuning.measure(*this, parts, cache_.get(), observer);
    share_.reset();
    choose_preprocess(tuning);
    if (changed || persistent) {
      const auto untuned = changed ? make_untuned(progress) : nullptr;
      do {
        choose_kernels(whole_.plan, traits_, choose);
        weights = build_for_device(progress, persistent, untuned ? untuned.get() : by_turns_with);
      } while (untuned && !tuning.is_not_slower(*this, *untuned, observer) &&
               tuning.revert_least_gains(whole_.plan));
    }
  }
  tuning_ = tuning.finish(whole_.plan);
  if (config_.partial_batches && !config_.perf_count) add_partial_batches(weights, progress);
  weights = {};
  if (std::string why = compilers->take_problem(); !why.empty()) warnings_.push_back(why);
  warm_up(progress, compilers->has_problem());
  if (config_.streams == 0 && !special.one_stream) choose_streams(progress);
  if (cache_) warn_once(cache_->problem());
  std::fill(device_ns_.begin(), device_ns_.end(), 0);
  std::fill(host_ns_.begin(), host_ns_.end(), 0);
  inferences_ = 0;
  load_ms_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Says warnings that concern the whole process once, not again for the next model.
void DeviceModel::warn_once(const std::string& warning) {
  static std::mutex mutex;
  static auto& said = *new std::set<std::string>;  // never destroyed
  const std::lock_guard lock(mutex);
  if (!warning.empty() && said.insert(warning).second) warnings_.push_back(warning);
}

void DeviceModel::open_device() {
  const ocl::Devices& devices = ocl::devices(config_.cache_dir.value_or("").c_str());
  const ocl::DisplayMatch match = ocl::match_display(config_.device, config_.va_display);
  const ocl::Device& device = *match.device;
  hints_ = ocl::applicable_hints({config_.priority, config_.throttle}, device.info.name,
                                 device.device.getInfo<CL_DEVICE_EXTENSIONS>(), warnings_);
  if (config_.exclusive) {
    exclusive_ = ocl::ExclusiveQueue::of(match, hints_);
    hints_ = exclusive_->hints;
    if (config_.streams > 1)
      warnings_.push_back("exclusive requests run one after the other: 1 stream instead of " +
                          std::to_string(config_.streams));
    config_.streams = 1;
  }
  context_ = exclusive_ ? exclusive_->context : ocl::create_context(match);
  if (context_->traits.vendor == Vendor::pocl) warn_once(devices.pocl_note);
  traits_ = context_->traits;
  if (config_.persistent == Config::Persistent::no || config_.perf_count)
    traits_.grid_barrier = GridBarrier::none;
  else if (config_.persistent == Config::Persistent::yes &&
           traits_.grid_barrier == GridBarrier::none)
    traits_.grid_barrier = GridBarrier::single;
  dmabufs_ = std::make_unique<const ocl::DmabufSharing>(context_->device);
}

// Makes the graph that kernels will compute; sets the inputs and outputs.
std::unique_ptr<Graph> DeviceModel::make_graph(bool expose_layers) {
  auto graph = dynamic_cast<const ReadModel&>(*model_).graph().clone();
  const bool half = half_activations(config_, *graph, traits_.fp16 && context_->device.info.fp16);
  precision_ = half ? Precision::f16 : Precision::f32;
  if (config_.precision == Precision::f16 && !half)
    warnings_.push_back("the model adds up products of integers, which f16 cannot hold: f32");
  if (config_.batch) set_batch(*graph, config_.batch);
  network_inputs_ = inputs_ = input_ports(*graph);
  if (config_.nv12_two_inputs) {
    picture_ = find_picture(network_inputs_);
    inputs_ = with_planes(network_inputs_, *picture_);
  }
  outputs_ = output_ports(*graph);
  optimise(*graph, expose_layers, config_.graph_dumps_dir);
  if (expose_layers) outputs_ = output_ports(*graph);
  return graph;
}

void DeviceModel::optimise(Graph& graph, bool expose_layers, const std::string& dumps_dir) const {
  PassContext passes{traits_, precision_ == Precision::f16 ? ElementType::f16 : ElementType::f32};
  passes.unroll_loops = config_.unroll_loops;
  passes.expose_layers = expose_layers;
  passes.half_outputs = config_.half_outputs;
  passes.integers = config_.quantized_in_integers;
  run_passes(graph, passes, "", [&](size_t index, const std::string& name, const Graph& g) {
    if (!dumps_dir.empty()) write_dump(dumps_dir, index, name, g);
  });
}

// Streams on AUTO: what `clinfer tune --pipeline` found best for this batch.
void DeviceModel::use_measured_pipeline() {
  if (config_.streams != 0) return;
  const unsigned batch =
      inputs_.empty() || inputs_[0].shape.empty() ? 1 : static_cast<unsigned>(inputs_[0].shape[0]);
  if (const auto measured = find_pipeline(*model_, config_, context_->device.info, batch)) {
    config_.streams = measured->streams;
    optimal_requests_ = measured->requests;
  }
}

// Finds the layer that computes most, and warns where one inference is absurdly much work.
void DeviceModel::add_up_work() {
  double all = 0, most = 0;
  for (const Step& step : whole_.plan.steps) {
    const double work = step.on_host ? 0 : multiply_adds(step.desc);
    all += work;
    if (work <= most) continue;
    most = work;
    char number[32];
    std::snprintf(number, sizeof number, "%.2g", work);
    largest_layer_ = label(*step.node) + ", " + number + " multiply-adds";
  }
  if (all < kAbsurdWork) return;
  char text[128];
  std::snprintf(text, sizeof text,
                "one inference is %.2g multiply-adds, %.0f s for a device of 100 GFLOP/s", all,
                2 * all / 1e11);
  warnings_.push_back(text + ("; its largest layer is " + largest_layer_));
}

// One inference, so that what drivers compile or allocate at the first launch does not delay the
// first frame. It has all the time where kernels are compiled in this process, then perhaps by it.
void DeviceModel::warm_up(const Progress& progress, bool driver_compiles) {
  constexpr auto kAskAgain = std::chrono::milliseconds(50);
  const auto timeout = config_.device_timeout;
  if (driver_compiles) config_.device_timeout = {};
  DeviceRequest warm(*this, *streams_[0]);
  warm.start(0);
  while (!warm.wait(kAskAgain))
    if (progress && !progress("running the first inference", 0, 1))
      throw Error(ErrorCode::cancelled, "the first inference was cancelled");
  config_.device_timeout = timeout;
}

// The model with its untuned kernels, to compare with. nullptr, and a warning, if the device has no
// room for both.
std::unique_ptr<DeviceModel> DeviceModel::make_untuned(const Progress& progress) {
  Config config = config_;
  config.tuning_mode = TuningMode::disabled;
  config.tuning_db = config.partial_batches = false;
  config.graph_dumps_dir = config.sources_dumps_dir = "";
  try {
    return std::make_unique<DeviceModel>(model_, config, progress, TuningObserver{},
                                         InternalOptions{.one_stream = true});
  } catch (const std::exception& problem) {
    const auto* error = dynamic_cast<const Error*>(&problem);
    if (error && error->code() == ErrorCode::cancelled) throw;
    warnings_.push_back(
        std::string("the tuned network was not compared with the untuned one as a whole: ") +
        problem.what());
    return nullptr;
  }
}

DeviceModel::HostWeights DeviceModel::build_for_device(const Progress& progress, bool persistent,
                                                       const DeviceModel* by_turns_with) {
  HostWeights weights;
  const std::string directory =
      config_.cache_dir ? *config_.cache_dir : ocl::ProgramCache::default_directory();
  if (!directory.empty()) cache_ = std::make_unique<ocl::ProgramCache>(directory);
  if (directory.empty() && !config_.cache_dir)
    warn_once(
        "compiled programs are not kept, because neither XDG_CACHE_HOME nor HOME names a folder; "
        "name one (cache-dir, CACHE_DIR)");
  collect_weights(whole_, weights);
  upload(weights);
  whole_.persistent.clear();
  share_.reset();
  if (persistent) make_persistent_steps(by_turns_with);
  try {
    build(whole_, progress);
  } catch (const Error& error) {
    // A compiler that takes the kernels one by one does not have to take all of them in one.
    if (whole_.persistent.empty() || error.code() != ErrorCode::device_failed) throw;
    whole_.persistent.clear();
    share_.reset();
    build(whole_, progress);
    warnings_.push_back(std::string("no persistent kernel: ") + error.what());
  }
  make_streams(std::max(config_.streams, 1u));
  device_ns_.assign(whole_.plan.steps.size(), 0);
  host_ns_.assign(whole_.plan.steps.size(), 0);
  return weights;
}

void DeviceModel::build(SizedPlan& sized, const Progress& progress) {
  std::vector<ocl::Instantiation> wanted;
  sized.kernel_names.clear();
  size_t own = 0;  // the next step with launches of its own
  for (size_t s = 0; s < sized.plan.steps.size(); ++s) {
    if (const PersistentSteps* steps = sized.persistent_at(s)) {
      wanted.push_back(steps->kernel.program);
      own = steps->end;
    }
    std::vector<std::string> names;
    for (const KernelSpec& launch : sized.plan.steps[s].kernels.launches) {
      ocl::Instantiation instantiation = ocl::instantiate(launch);
      names.push_back(instantiation.kernel_name);
      if (s >= own) wanted.push_back(std::move(instantiation));
    }
    sized.kernel_names.push_back(std::move(names));
  }
  sized.programs =
      ocl::Programs::build(*context_, wanted,
                           {cache_.get(), config_.max_num_threads, config_.sources_dumps_dir,
                            progress, &sized == &whole_ ? nullptr : whole_.programs.get()});
}

size_t DeviceModel::HostWeights::add(const std::string& name, std::span<const std::byte> piece) {
  auto& [offset, size] = places[name];
  if (size != piece.size() || std::memcmp(bytes.data() + offset, piece.data(), size) != 0) {
    offset = aligned(bytes.size());
    size = piece.size();
    bytes.resize(offset + size);
    if (size) std::memcpy(bytes.data() + offset, piece.data(), size);
  }
  return offset;
}

// Constants that kernels read as they are, and the packed ones of each step.
void DeviceModel::collect_weights(SizedPlan& sized, HostWeights& weights) const {
  std::vector<Step>& steps = sized.plan.steps;
  std::vector<std::vector<std::vector<std::byte>>> packed(steps.size());
  parallel_for(steps.size(), config_.max_num_threads, [&](size_t s) {
    for (const auto& make : steps[s].kernels.packed) packed[s].push_back(make());
  });
  for (Region& region : sized.plan.regions) {
    if (region.memory != Memory::weights) continue;
    std::vector<std::byte> bytes(region.bytes);
    scatter_to(region.root.node->constant, region.root.node->outputs[0].desc, bytes.data());
    region.offset = weights.add(region.root.node->name, bytes);
  }
  sized.packed_offsets.clear();
  for (size_t s = 0; s < steps.size(); ++s) {
    std::vector<size_t> offsets;
    for (size_t i = 0; i < packed[s].size(); ++i)
      offsets.push_back(weights.add(steps[s].node->name + "\n" + std::to_string(i), packed[s][i]));
    sized.packed_offsets.push_back(std::move(offsets));
    steps[s].kernels.packed.clear();  // they hold the unpacked weights
  }
}

void DeviceModel::upload(HostWeights& weights) {
  std::vector<std::byte>& host = weights.bytes;
  host.resize(std::max<size_t>(host.size(), 4));
  weights_ = cl::Buffer(context_->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, host.size(),
                        host.data());
}

// Half the batch, a quarter, ..., one image.
void DeviceModel::add_partial_batches(HostWeights& weights, const Progress& progress) {
  std::vector<int64_t> sizes;
  for (int64_t images = 1; images < batch_of(*whole_.plan.graph); images *= 2)
    sizes.push_back(images);
  if (sizes.empty()) return;
  std::vector<std::optional<SizedPlan>> plans(sizes.size());
  parallel_for(sizes.size(), config_.max_num_threads,
               [&](size_t i) { plans[i] = plan_partial_batch(sizes[i]); });
  const size_t known = weights.bytes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!plans[i]) continue;
    SizedPlan& sized = partial_.emplace(sizes[i], std::move(*plans[i])).first->second;
    build(sized, progress);
    collect_weights(sized, weights);
    // The device has them; what is left on the host is for steps that run there.
    std::set<const Node*> needed;
    for (const Step& step : sized.plan.steps)
      if (step.on_host)
        for (const Edge& input : step.node->inputs) needed.insert(input.node);
    for (const Node* result : sized.plan.graph->results) needed.insert(result->inputs[0].node);
    for (const auto& node : sized.plan.graph->nodes())
      if (!needed.contains(node.get())) node->constant = {};
    for (Step& step : sized.plan.steps)
      if (!step.on_host) step.desc = {};
  }
  if (weights.bytes.size() != known) upload(weights);
  make_streams(static_cast<unsigned>(streams_.size()));
}

// Nothing where an image would not lie where a whole batch has it, or not get the same bits.
std::optional<SizedPlan> DeviceModel::plan_partial_batch(int64_t images) const try {
  auto graph = dynamic_cast<const ReadModel&>(*model_).graph().clone();
  set_batch(*graph, images);
  optimise(*graph, false, "");
  // The kernels of the whole batch: they are built, and an image gets the same bits by them.
  std::map<std::string, const Step*> steps;
  for (const Step& step : whole_.plan.steps) steps[step.desc.name] = &step;
  const KernelChooser choose = [&](const OpDesc& desc,
                                   std::span<const KernelFamily* const> families) {
    const auto found = steps.find(desc.name);
    if (found == steps.end())  // moves data that a whole batch has in place
      return KernelChoice{families.front(), families.front()->heuristic(desc, traits_)};
    const Step& step = *found->second;
    if (std::count(families.begin(), families.end(), step.family)) {
      const std::vector<TuningPoint> space = step.family->space(desc, traits_);
      if (std::count(space.begin(), space.end(), step.point))
        return KernelChoice{step.family, step.point};
    }
    throw Error(ErrorCode::unsupported, desc.name + " has another kernel in a part of the batch");
  };
  SizedPlan sized;
  sized.plan = make_plan(std::move(graph), traits_, choose);
  for (size_t i = 0; i < sized.plan.graph->parameters.size(); ++i) {
    const TensorDesc& some = sized.plan.graph->parameters[i]->outputs[0].desc;
    const TensorDesc& all = whole_.plan.graph->parameters[i]->outputs[0].desc;
    bool same = some.type == all.type && some.offset == all.offset;
    for (size_t d = 0; d < some.shape.size(); ++d)
      same &= (d == 0 || some.shape[d] == all.shape[d]) &&
              (some.shape[d] == 1 || some.strides[d] == all.strides[d]);
    if (!same) return {};
  }
  plan_memory(sized.plan, &whole_.plan);
  return sized;
} catch (const Error& error) {
  if (error.code() != ErrorCode::unsupported) throw;
  return {};
}

const SizedPlan& DeviceModel::plan_for(size_t images) const {
  const auto found = images == 0 ? partial_.end() : partial_.lower_bound(images);
  return found == partial_.end() ? whole_ : found->second;
}

size_t DeviceModel::request_bytes() const {
  size_t most = whole_.plan.request_bytes;
  for (const auto& [images, partial] : partial_) most = std::max(most, partial.plan.request_bytes);
  return most;
}

// On a CPU each stream has cores of its own: streams that share all cores move every activation
// between their caches.
void DeviceModel::make_streams(unsigned count) {
  streams_.clear();
  std::vector<cl::Device> parts;
  if (!exclusive_) parts = ocl::parts(context_->device, count);
  size_t stream_bytes = whole_.plan.stream_bytes;
  for (const auto& [images, partial] : partial_)
    stream_bytes = std::max(stream_bytes, partial.plan.stream_bytes);
  for (unsigned i = 0; i < count; ++i) {
    auto stream = std::make_unique<Stream>();
    stream->queue = exclusive_ ? exclusive_->queue
                               : ocl::create_queue(
                                     *context_, parts.empty() ? context_->device.device : parts[i],
                                     hints_, config_.perf_count);
    stream->memory =
        cl::Buffer(context_->context, CL_MEM_READ_WRITE, std::max<size_t>(stream_bytes, 4));
    if (!whole_.persistent.empty())
      stream->barrier_counter =
          cl::Buffer(context_->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                     sizeof stream->barriers_passed, &stream->barriers_passed);
    streams_.push_back(std::move(stream));
  }
}

ocl::ArgumentPlace SizedPlan::place_of(const Edge& edge) const {
  const Region& region = plan.region_of(edge);
  const TensorDesc& desc = edge.node->outputs[edge.port].desc;
  return {
      static_cast<int>(region.memory),
      static_cast<int64_t>(region.offset) + desc.offset * static_cast<int64_t>(size_of(desc.type))};
}

ocl::ArgumentPlace SizedPlan::place_of(size_t step, const Argument& argument) const {
  Node* const node = plan.steps[step].node;
  switch (argument.kind) {
    case Argument::Kind::input:
      return place_of(node->inputs[argument.index]);
    case Argument::Kind::output:
      return place_of({node, static_cast<int>(argument.index)});
    case Argument::Kind::packed:
      return {static_cast<int>(Memory::weights),
              static_cast<int64_t>(packed_offsets[step][argument.index])};
    default:
      return {static_cast<int>(Memory::stream),
              static_cast<int64_t>(plan.stream_bytes - plan.workspace_bytes)};
  }
}

const PersistentSteps* SizedPlan::persistent_at(size_t step) const {
  for (const PersistentSteps& steps : persistent)
    if (steps.first == step) return &steps;
  return nullptr;
}

size_t SizedPlan::kernel_count() const {
  size_t count = plan.kernel_count();
  for (const PersistentSteps& steps : persistent)
    for (size_t s = steps.first; s < steps.end; ++s) count -= plan.steps[s].kernels.launches.size();
  return count + persistent.size();
}

// Steps in a row whose launches all can be part of a persistent kernel, as many as fit into one.
void DeviceModel::make_persistent_steps(const DeviceModel* by_turns_with) {
  const bool forced = config_.persistent == Config::Persistent::yes;
  const std::vector<Step>& plan = whole_.plan.steps;
  std::vector<ocl::LaunchTime> times(plan.size());
  std::vector<bool> fits(plan.size());
  double all_us = 0, saved_us = 0;
  for (size_t s = 0; s < plan.size(); ++s) {
    if (plan[s].on_host) continue;
    const std::vector<KernelSpec>& launches = plan[s].kernels.launches;
    bool accepted = true;
    for (const KernelSpec& launch : launches) {
      const ocl::LaunchTime time = ocl::launch_time(
          launch, multiply_adds(plan[s].desc) / static_cast<double>(launches.size()),
          context_->device.info.compute_units);
      times[s].alone += time.alone;
      times[s].as_part += time.as_part;
      accepted = accepted && ocl::reject_persistent(launch, traits_).empty();
    }
    all_us += times[s].alone;
    fits[s] = accepted && (forced || times[s].as_part < times[s].alone + kInterruption);
  }
  for (size_t first = 0; first < plan.size(); ++first) {
    std::vector<const KernelSpec*> launches;
    std::vector<size_t> step_of;
    size_t end = first;
    for (; end < plan.size() && fits[end]; ++end)
      for (const KernelSpec& launch : plan[end].kernels.launches) {
        launches.push_back(&launch);
        step_of.push_back(end);
      }
    const auto place = [&](size_t launch, const Argument& argument) {
      return whole_.place_of(step_of[launch], argument);
    };
    PersistentSteps steps{first, end, {}, {}};
    size_t count = 0;
    while (launches.size() > 1) {
      steps.kernel = ocl::make_persistent(launches, place, traits_, count);
      if (count == launches.size()) break;
      steps.end = step_of[count];  // no step in two parts
      launches.resize(static_cast<size_t>(std::find(step_of.begin(), step_of.end(), steps.end) -
                                          step_of.begin()));
    }
    if (launches.size() < 2) continue;
    steps.list = cl::Buffer(context_->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                            steps.kernel.list.size() * sizeof(int32_t), steps.kernel.list.data());
    for (size_t s = steps.first; s < steps.end; ++s) saved_us += times[s].alone - times[s].as_part;
    first = steps.end - 1;
    whole_.persistent.push_back(std::move(steps));
  }
  if (!forced && saved_us < kWorthHolding * all_us) whole_.persistent.clear();
  if (whole_.persistent.empty() || traits_.grid_barrier == GridBarrier::single) return;
  if (!take_share(by_turns_with)) whole_.persistent.clear();
}

// Which steps would be parts of persistent kernels; takes the share of the device that these need.
std::vector<bool> DeviceModel::find_parts(const DeviceModel* by_turns_with) {
  std::vector<bool> parts(whole_.plan.steps.size());
  make_persistent_steps(by_turns_with);
  for (const PersistentSteps& steps : whole_.persistent)
    std::fill(parts.begin() + static_cast<std::ptrdiff_t>(steps.first),
              parts.begin() + static_cast<std::ptrdiff_t>(steps.end), true);
  whole_.persistent.clear();
  return parts;
}

// Of the device, for persistent kernels. False: too little is left.
bool DeviceModel::take_share(const DeviceModel* other) {
  if (other && other->share_ && other->context_->device.info.id == context_->device.info.id)
    share_ = other->share_;
  else
    share_ = std::make_shared<const ocl::GroupShare>(context_->device,
                                                     context_->device.info.compute_units,
                                                     std::max(kFewestGroups, config_.streams));
  return share_->groups() > 0;
}

// Key of the best number of streams: the device and the launches of one inference.
std::string DeviceModel::stream_key() const {
  std::string launches;
  for (size_t s = 0; s < whole_.plan.steps.size(); ++s) {
    launches += whole_.plan.steps[s].node->type;
    for (size_t l = 0; l < whole_.kernel_names[s].size(); ++l) {
      launches += " " + whole_.kernel_names[s][l];
      for (const size_t items : whole_.plan.steps[s].kernels.launches[l].global)
        launches += " " + std::to_string(items);
    }
    launches += "\n";
  }
  const DeviceInfo& info = context_->device.info;
  return "throughput streams\n" + info.platform + "\n" + info.name + "\n" + info.driver + "\n" +
         std::to_string(info.compute_units) + "\n" + hex(fnv1a(launches));
}

void DeviceModel::choose_streams(const Progress& progress) {
  const std::string key = stream_key();
  unsigned best = 0;
  if (cache_)
    if (const auto stored = cache_->load(key))
      for (const unsigned streams : kTriedStreams)
        if (stored->size() == 1 && stored->front() == streams) best = streams;
  if (best == 0) {
    double most = 0;
    for (const unsigned streams : kTriedStreams) {
      if (progress &&
          !progress("measuring " + std::to_string(streams) + " streams", streams, kTriedStreams[2]))
        throw Error(ErrorCode::cancelled, "compiling was cancelled");
      make_streams(streams);
      const double rate = measure_throughput();
      if (rate < most * kWorthMoreStreams) break;  // more streams will not bring it back
      best = streams;
      most = rate;
    }
    if (cache_) cache_->store(key, {static_cast<unsigned char>(best)});
  }
  if (streams_.size() != best) make_streams(best);
}

// Inferences a second with two requests a stream, as an application that keeps them all in flight.
double DeviceModel::measure_throughput() {
  std::vector<std::unique_ptr<DeviceRequest>> requests;
  for (size_t i = 0; i < 2 * streams_.size(); ++i)
    requests.push_back(std::make_unique<DeviceRequest>(*this, *streams_[i % streams_.size()]));
  for (const auto& request : requests) request->start(0);
  for (const auto& request : requests) {  // the first round of each is not counted
    request->wait({});
    request->start(0);
  }
  size_t finished = 0;
  const auto begin = std::chrono::steady_clock::now();
  auto now = begin;
  do {
    for (const auto& request : requests) {
      request->wait({});
      request->start(0);
      ++finished;
    }
    now = std::chrono::steady_clock::now();
  } while (now - begin < kTrial);
  return static_cast<double>(finished) / std::chrono::duration<double>(now - begin).count();
}

std::unique_ptr<InferRequest> DeviceModel::create_request() {
  try {
    return std::make_unique<DeviceRequest>(shared_from_this(),
                                           *streams_[next_request_++ % streams_.size()]);
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "creating an infer request");
  }
}

cl::Kernel DeviceModel::extra_kernel(const KernelSpec& spec) {
  const ocl::Instantiation instantiation = ocl::instantiate(spec);
  const std::lock_guard lock(mutex_);
  auto& programs = extra_[instantiation.kernel_name];
  if (!programs)
    programs = ocl::Programs::build(*context_, {&instantiation, 1},
                                    {cache_.get(), 1, config_.sources_dumps_dir, {}});
  return programs->kernel(instantiation.kernel_name);
}

void DeviceModel::choose_preprocess(Tuning& tuning) {
  const bool surfaces = config_.va_display.handle != nullptr && sharing_problem().empty() &&
                        context_->device.device.getInfo<CL_DEVICE_IMAGE_SUPPORT>();
  const std::vector<Node*>& parameters = plan().graph->parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    for (const PictureKind kind : {PictureKind::yuv, PictureKind::rgb, PictureKind::surface}) {
      if (kind == PictureKind::surface && !surfaces) continue;
      if (const auto op = preprocess_op(kind, parameters[i]->outputs[0].desc))
        preprocess_points_[{i, kind}] = tuning.choose_preprocess(*op);
    }
}

TuningPoint DeviceModel::preprocess_point(size_t input, PictureKind kind) const {
  const auto found = preprocess_points_.find({input, kind});
  return found != preprocess_points_.end() ? found->second : default_preprocess_point();
}

TuningPoint DeviceModel::default_preprocess_point() const {
  return kPreprocessFamily.heuristic({}, traits_);
}

void DeviceModel::add_times(const std::vector<double>& device_ns,
                            const std::vector<double>& host_ns) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < device_ns.size(); ++i) {
    device_ns_[i] += device_ns[i];
    host_ns_[i] += host_ns[i];
  }
  ++inferences_;
}

std::vector<StepProfile> DeviceModel::profile() const {
  if (!config_.perf_count)
    throw Error(ErrorCode::bad_argument, "performance counters were not enabled (PERF_COUNT=YES)");
  const std::lock_guard lock(mutex_);
  std::vector<StepProfile> profile;
  const double n = std::max<double>(1, static_cast<double>(inferences_));
  for (size_t s = 0; s < whole_.plan.steps.size(); ++s) {
    const Step& step = whole_.plan.steps[s];
    profile.push_back({step.node->name, step.node->type,
                       step.family ? to_string(KernelChoice{step.family, step.point}) : "host",
                       device_ns_[s] / n / 1e3, host_ns_[s] / n / 1e3});
  }
  return profile;
}

}  // namespace clinfer
