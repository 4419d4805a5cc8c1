// Streams, programs and counters of a network while it runs on a device.
#include "engine/runtime/network/device_network.h"

#include <algorithm>

#include "engine/ocl/host_memory.h"

namespace clinfer {

void DeviceStream::take_turn(bool as_graph) {
  if (as_graph == graph_ran) return;
  if (as_graph)
    queue.finish();
  else
    cuda->main.finish();
  graph_ran = as_graph;
}

std::shared_ptr<ocl::HostMemory> DeviceNetwork::make_host_memory(const cl::CommandQueue& queue,
                                                                 size_t bytes) const {
  if (cuda == nullptr) return std::make_shared<ocl::HostMemory>(*context, queue, bytes);
  return std::make_shared<ocl::HostMemory>(*context, cuda->pinned_memory(bytes), bytes);
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
  const auto after = [&](ocl::ArgumentPlace place) {
    place.offset += argument.offset;
    return place;
  };
  switch (argument.kind) {
    case Argument::Kind::input:
      return after(place_of(node->inputs[argument.index]));
    case Argument::Kind::output:
      return after(place_of({node, static_cast<int>(argument.index)}));
    case Argument::Kind::packed:
      return {static_cast<int>(Memory::weights),
              static_cast<int64_t>(packed_offsets[step][argument.index])};
    default:
      return after({static_cast<int>(plan.workspace),
                    static_cast<int64_t>((plan.workspace == Memory::stream ? plan.stream_bytes
                                                                           : plan.request_bytes) -
                                         plan.workspace_bytes)});
  }
}

const PersistentSteps* SizedPlan::persistent_at(size_t step) const {
  const auto found = std::ranges::lower_bound(persistent, step, {}, &PersistentSteps::first);
  return found != persistent.end() && found->first == step ? &*found : nullptr;
}

size_t SizedPlan::kernel_count() const {
  size_t count = plan.kernel_count();
  for (const PersistentSteps& steps : persistent)
    for (size_t s = steps.first; s < steps.end; ++s) count -= plan.steps[s].kernels.launches.size();
  return count + persistent.size();
}

const SizedPlan& DeviceNetwork::plan_for(size_t images) const {
  const auto found = images == 0 ? partial.end() : partial.lower_bound(images);
  return found == partial.end() ? whole : found->second;
}

size_t DeviceNetwork::request_bytes() const {
  size_t most = whole.plan.request_bytes;
  for (const auto& [images, sized] : partial) most = std::max(most, sized.plan.request_bytes);
  return most;
}

// Gives each stream cores of its own on a CPU: streams that share all cores would move every
// activation between the caches.
void DeviceNetwork::make_streams(unsigned count) {
  streams_.clear();
  std::vector<cl::Device> parts;
  if (!exclusive) parts = ocl::parts(*context, count);
  size_t stream_bytes = whole.plan.stream_bytes;
  for (const auto& [images, sized] : partial)
    stream_bytes = std::max(stream_bytes, sized.plan.stream_bytes);
  const bool takes_batches =
      std::any_of(network_inputs.begin(), network_inputs.end(),
                  [](const Port& input) { return input.shape.size() == 4 && input.shape[0] > 1; });
  for (unsigned i = 0; i < count; ++i) {
    auto stream = std::make_unique<DeviceStream>();
    stream->queue =
        exclusive ? exclusive->queue
                  : ocl::create_queue(*context, parts.empty() ? context->device.device : parts[i],
                                      hints, options.perf_count);
    if (!exclusive && wants_frame_memory() && takes_batches)
      for (cl::CommandQueue* const queue : {&stream->copies, &stream->results})
        *queue = ocl::create_queue(*context, context->device.device, hints, options.perf_count);
    stream->memory = make_memory(*this, std::max<size_t>(stream_bytes, 4));
    if (cuda != nullptr) {
      stream->cuda.reset(new GraphStreams{cuda::Stream(cuda), nullptr, nullptr});
      if (takes_batches)
        for (auto* const beside : {&stream->cuda->writes, &stream->cuda->reads})
          *beside = std::make_unique<cuda::Stream>(cuda);
    }
    size_t words = 0;
    for (const PersistentSteps& steps : whole.persistent)
      words = std::max(words, steps.kernel.counter_words(persistent_groups(count)));
    if (std::vector<cl_uint> zeros(words); words > 0)
      stream->counters = cl::Buffer(context->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                    words * sizeof(cl_uint), zeros.data());
    streams_.push_back(std::move(stream));
  }
}

unsigned DeviceNetwork::persistent_groups(unsigned streams) const {
  return ocl::shares_work(traits) ? std::max(context->device.info.compute_units / streams, 1u) : 1;
}

cl::Kernel DeviceNetwork::extra_kernel(const KernelSpec& spec) const {
  const ocl::Instantiation instantiation = ocl::instantiate(spec);
  const std::lock_guard lock(mutex_);
  auto& programs = extra_[instantiation.kernel_name];
  if (!programs)
    programs = ocl::Programs::build(*context, {&instantiation, 1},
                                    {cache.get(), 1, options.sources_dumps_dir, {}});
  return programs->kernel(instantiation.kernel_name);
}

std::shared_ptr<const cuda::Kernel> DeviceNetwork::extra_graph_kernel(
    const KernelSpec& spec) const {
  extra_kernel(spec);
  const std::string name = ocl::instantiate(spec).kernel_name;
  const std::lock_guard lock(mutex_);
  try {
    return graph_kernels->make(name, extra_.at(name)->binary(name));
  } catch (const cuda::Failure& failure) {
    if (!std::exchange(told_of_frames_, true))
      problems.add("inferences of some frames are launched one by one, by OpenCL: " +
                   std::string(failure.what()));
    return nullptr;
  }
}

TuningPoint DeviceNetwork::preprocess_point(size_t input, PictureKind kind) const {
  const auto found = preprocess_points.find({input, kind});
  return found != preprocess_points.end() ? found->second : default_preprocess_point();
}

TuningPoint DeviceNetwork::default_preprocess_point() const {
  return kPreprocessFamily.heuristic({}, traits);
}

void DeviceNetwork::add_times(const std::vector<std::vector<double>>& launch_ns,
                              const std::vector<double>& host_ns,
                              const std::vector<unsigned>& host_threads,
                              const Overhead& overhead) const {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < launch_ns.size(); ++i) {
    for (size_t l = 0; l < launch_ns[i].size(); ++l) launch_ns_[i][l] += launch_ns[i][l];
    host_ns_[i] += host_ns[i];
    host_threads_[i] = std::max(host_threads_[i], host_threads[i]);
  }
  overhead_.upload_ns += overhead.upload_ns;
  overhead_.preprocess_ns += overhead.preprocess_ns;
  overhead_.download_ns += overhead.download_ns;
  overhead_.convert_ns += overhead.convert_ns;
  overhead_.total_ns += overhead.total_ns;
  ++inferences_;
}

void DeviceNetwork::clear_times() {
  const std::lock_guard lock(mutex_);
  launch_ns_.clear();
  for (const Step& step : whole.plan.steps) launch_ns_.emplace_back(step.kernels.launches.size());
  host_ns_.assign(whole.plan.steps.size(), 0);
  host_threads_.assign(whole.plan.steps.size(), 1);
  overhead_ = {};
  inferences_ = 0;
}

}  // namespace clinfer
