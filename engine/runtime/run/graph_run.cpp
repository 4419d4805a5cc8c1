// Runs the segments of a plan as graphs of CUDA.
#include "engine/runtime/run/graph_run.h"

#include <deque>

#include "engine/plan/order.h"
#include "engine/runtime/network/launch.h"

namespace clinfer {

namespace {

// Holds the values of a launch's arguments in the kernel's order.
class Arguments {
 public:
  void add(const void* value, size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(value);
    values_.emplace_back(begin, begin + bytes);
    pointers_.push_back(values_.back().data());
  }
  template <typename T>
  void add(const T& value) {
    add(&value, sizeof value);
  }
  void** pointers() { return pointers_.data(); }

 private:
  std::deque<std::vector<std::byte>> values_;
  std::vector<void*> pointers_;
};

cuda::Launch launch_of(const KernelSpec& spec, const cuda::Kernel& kernel, Arguments& arguments) {
  cuda::Launch launch{&kernel};
  for (size_t d = 0; d < 3; ++d) {
    launch.groups[d] = static_cast<unsigned>(spec.global[d] / spec.local[d]);
    launch.local[d] = static_cast<unsigned>(spec.local[d]);
  }
  launch.arguments = arguments.pointers();
  return launch;
}

// Returns the ranges of device memory that a launch of a step reads and writes.
std::vector<Access> accesses_of(const SizedPlan& sized, size_t step, const KernelSpec& launch) {
  Node* const node = sized.plan.steps[step].node;
  const auto access = [&](const Edge& edge, bool writes) {
    const Region& region = sized.plan.region_of(edge);
    const auto [low, high] = edge.node->outputs[edge.port].desc.byte_range();
    return Access{static_cast<int>(region.memory), region.offset + static_cast<size_t>(low),
                  region.offset + static_cast<size_t>(high), writes};
  };
  std::vector<Access> all;
  for (const Argument& argument : launch.arguments) {
    if (argument.kind == Argument::Kind::input) {
      all.push_back(access(node->inputs[argument.index], false));
    } else if (argument.kind == Argument::Kind::output) {
      all.push_back(access({node, static_cast<int>(argument.index)}, true));
    } else if (argument.kind == Argument::Kind::workspace) {
      const ocl::ArgumentPlace place = sized.place_of(step, Argument::workspace(1));
      const auto begin = static_cast<size_t>(place.offset);
      all.push_back({place.buffer, begin, begin + sized.plan.workspace_bytes, true});
    }
  }
  return all;
}

}  // namespace

std::string reject_graph(const SizedPlan& sized) {
  for (const Step& step : sized.plan.steps) {
    if (step.on_host) continue;
    if (step.loop) return label(*step.node) + " is a loop on the device";
    if (!step.cuts.empty()) return label(*step.node) + " is launched in parts";
    for (const KernelSpec& launch : step.kernels.launches)
      if (launch.own) return label(*step.node) + " has a kernel of the user's";
  }
  return "";
}

CUdeviceptr GraphRun::address_of(const ocl::ArgumentPlace& place,
                                 const RequestMemory& memory) const {
  const DeviceMemory* const memories[] = {&stream_.memory, &memory.all, &network_.weights};
  return memories[place.buffer]->cuda->address() + static_cast<CUdeviceptr>(place.offset);
}

bool GraphRun::prepare(const SizedPlan& sized, RequestMemory& memory) {
  if (memory.graphs.contains(&sized)) return false;
  memory_ = &memory;
  std::map<size_t, RequestMemory::Segment> segments;
  const std::vector<Step>& steps = sized.plan.steps;
  for (size_t first = 0, end = 0; first < steps.size(); first = end + 1) {
    for (end = first; end < steps.size() && !steps[end].on_host;) ++end;
    if (end > first) segments[first] = {end, make_graph(sized, memory, first, end)};
  }
  memory.graphs[&sized] = std::move(segments);
  return true;
}

std::unique_ptr<cuda::Graph> GraphRun::make_graph(const SizedPlan& sized,
                                                  const RequestMemory& memory, size_t first,
                                                  size_t end) const {
  const CUdeviceptr bases[] = {stream_.memory.cuda->address(), memory.all.cuda->address(),
                               network_.weights.cuda->address()};
  std::deque<Arguments> arguments;
  std::vector<cuda::Launch> launches;
  std::vector<std::vector<Access>> accesses;
  for (size_t s = first; s < end; ++s)
    for (size_t l = 0; l < sized.kernel_names[s].size(); ++l) {
      const KernelSpec& spec = sized.plan.steps[s].kernels.launches[l];
      Arguments& values = arguments.emplace_back();
      for (const Argument& argument : spec.arguments) {
        if (argument.kind == Argument::Kind::value) {
          values.add(argument.bytes.data(), argument.bytes.size());
          continue;
        }
        const ocl::ArgumentPlace place = sized.place_of(s, argument);
        values.add(bases[place.buffer]);
        values.add(element_offset(argument, place.offset));
      }
      accesses.push_back(accesses_of(sized, s, spec));
      launches.push_back(
          launch_of(spec, network_.graph_kernels->at(sized.kernel_names[s][l]), values));
    }
  if (launches.empty()) return nullptr;
  return std::make_unique<cuda::Graph>(network_.cuda, launches, find_order(accesses));
}

void GraphRun::begin(const SizedPlan& sized, RequestMemory& memory) {
  sized_ = &sized;
  memory_ = &memory;
  writes_ = reads_ = false;
}

std::shared_ptr<ocl::HostMemory> GraphRun::make_host_memory(size_t bytes) const {
  return network_.make_host_memory(stream_.queue, bytes);
}

void GraphRun::copy_frame(DeviceFrame& input) {
  const bool beside = stream_.cuda->writes != nullptr;
  const cuda::Stream& stream = beside ? *stream_.cuda->writes : stream_.cuda->main;
  copy_parts(
      input, network_, [&](size_t bytes) { return make_host_memory(bytes); },
      [&](size_t plane, size_t at, size_t bytes, const void* from) {
        stream.write(input.planes[plane].cuda->address() + at, from, bytes);
      });
  if (!beside) return;
  if (input.copied_beside == nullptr)
    input.copied_beside = std::make_unique<cuda::Event>(network_.cuda);
  stream.record(*input.copied_beside);
}

void GraphRun::launch_frame(DeviceFrame& input) {
  const auto sizes = plane_sizes(input.frame);
  if (stream_.cuda->writes != nullptr) stream_.cuda->main.wait_for(*input.copied_beside);
  std::array<CUdeviceptr, 3> planes{};
  for (size_t p = 0; p < planes.size(); ++p)
    if (sizes[p].rows != 0) planes[p] = input.planes[p].cuda->address();
  launch_planes(input, planes, *memory_);
}

bool GraphRun::reads(const DeviceFrame& input, const OwnPlanes& planes) const {
  const auto sizes = plane_sizes(input.frame);
  for (size_t p = 0; p < sizes.size(); ++p)
    if (sizes[p].rows != 0 && planes.memories[p]->address() == 0) return false;
  return !input.graph_kernels.empty();
}

void GraphRun::launch_imported(DeviceFrame& input, const OwnPlanes& planes,
                               const RequestMemory& memory) {
  wait_for_writes();
  const auto read = std::make_shared<ImportedRead>(network_.cuda);
  std::array<CUdeviceptr, 3> addresses{};
  for (size_t p = 0; p < addresses.size(); ++p) {
    if (planes.memories[p] == nullptr) continue;
    addresses[p] = planes.memories[p]->address();
    read->memories[p] = planes.memories[p]->owner();
  }
  input.starts = {};  // the kernels have the offsets
  try {
    launch_planes(input, addresses, memory);
    stream_.cuda->main.record(read->over);
  } catch (...) {
    stream_.cuda->main.finish();  // what was launched reads the memory
    throw;
  }
  input.read = read;
  for (ocl::ExternalMemory* const used : planes.distinct())
    used->note_use(&stream_, [read] { read->wait(); });
}

void GraphRun::launch_planes(DeviceFrame& input, const std::array<CUdeviceptr, 3>& planes,
                             const RequestMemory& memory) {
  const auto sizes = plane_sizes(input.frame);
  const Edge target{network_.plan().graph->parameters[input.index], 0};
  for (size_t l = 0; l < input.plan.launches.size(); ++l) {
    const KernelSpec& spec = input.plan.launches[l];
    Arguments values;
    for (const Argument& argument : spec.arguments) {
      if (argument.kind == Argument::Kind::value) {
        values.add(argument.bytes.data(), argument.bytes.size());
      } else if (argument.kind == Argument::Kind::input) {
        const size_t p = sizes[argument.index].rows ? argument.index : 0;
        values.add(planes[p]);
        values.add(element_offset(argument, input.starts[p]));
      } else {
        const ocl::ArgumentPlace place = network_.whole.place_of(target);
        values.add(address_of({place.buffer, 0}, memory));
        values.add(element_offset(argument, place.offset));
      }
    }
    stream_.cuda->main.launch(launch_of(spec, *input.graph_kernels[l], values));
  }
}

void GraphRun::wait_for_writes() {
  if (!std::exchange(writes_, false)) return;
  stream_.cuda->writes->record(copied_);
  stream_.cuda->main.wait_for(copied_);
}

// Copies while kernels of other requests run, if the stream has a queue for that: nothing else uses
// the request's memory.
void GraphRun::write(const ocl::ArgumentPlace& to, const void* from, size_t bytes) {
  const bool beside = stream_.cuda->writes != nullptr;
  (beside ? *stream_.cuda->writes : stream_.cuda->main)
      .write(address_of(to, *memory_), from, bytes);
  writes_ = writes_ || beside;
}

size_t GraphRun::run(size_t first) {
  wait_for_writes();
  const auto& segments = memory_->graphs.at(sized_);
  const auto segment = segments.find(first);
  if (segment == segments.end()) return first;
  if (segment->second.graph != nullptr) stream_.cuda->main.launch(*segment->second.graph);
  return segment->second.end;
}

// Reads from the request's memory while kernels of other requests run, if the read is worth an
// event.
void GraphRun::read(const ocl::ArgumentPlace& from, void* to, size_t bytes) {
  constexpr size_t kWorthAnEvent = size_t{64} << 10;
  const bool beside = stream_.cuda->reads != nullptr && bytes >= kWorthAnEvent &&
                      from.buffer == static_cast<int>(Memory::request);
  if (beside && !reads_) {
    stream_.cuda->main.record(computed_);
    stream_.cuda->reads->wait_for(computed_);
    reads_ = true;
  }
  (beside ? *stream_.cuda->reads : stream_.cuda->main).read(to, address_of(from, *memory_), bytes);
}

std::shared_ptr<Completion> GraphRun::end() {
  const GraphStreams& streams = *stream_.cuda;
  if (completion_ == nullptr || completion_.use_count() > 1)
    completion_ = std::make_shared<StreamCompletion>(network_.cuda);
  if (reads_) {
    // The completion must follow reads on the main stream, too.
    streams.main.record(computed_);
    streams.reads->wait_for(computed_);
  }
  completion_->record(std::exchange(reads_, false) ? *streams.reads : streams.main);
  return completion_;
}

std::shared_ptr<Completion> GraphRun::end_of_all() {
  const GraphStreams& streams = *stream_.cuda;
  writes_ = reads_ = false;
  for (const auto* const beside : {streams.writes.get(), streams.reads.get()}) {
    if (beside == nullptr) continue;
    beside->record(copied_);
    streams.main.wait_for(copied_);
  }
  completion_ = std::make_shared<StreamCompletion>(network_.cuda);
  completion_->record(streams.main);
  return completion_;
}

void GraphRun::finish() {
  const GraphStreams& streams = *stream_.cuda;
  for (const auto* const beside : {streams.writes.get(), streams.reads.get()})
    if (beside != nullptr) beside->finish();
  streams.main.finish();
}

}  // namespace clinfer
