// Creates streams, events and graphs.
#include "engine/cuda/stream.h"

namespace clinfer::cuda {

Event::Event(std::shared_ptr<const Device> device, bool sleeps) : device_(std::move(device)) {
  const Current current(*device_);
  device_->driver().cuEventCreate(&event_,
                                  CU_EVENT_DISABLE_TIMING | (sleeps ? CU_EVENT_BLOCKING_SYNC : 0));
}

Event::~Event() {
  const Current current(*device_, std::nothrow);
  device_->driver().cuEventDestroy_v2.result_of(event_);
}

bool Event::is_over() const {
  const Current current(*device_);
  const CUresult result = device_->driver().cuEventQuery.result_of(event_);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
    fail(device_->driver(), "cuEventQuery", result);
  return result == CUDA_SUCCESS;
}

void Event::wait() const {
  const Current current(*device_);
  device_->driver().cuEventSynchronize(event_);
}

Graph::Graph(std::shared_ptr<const Device> device, std::span<const Launch> launches,
             std::span<const std::vector<size_t>> after)
    : device_(std::move(device)) {
  const Driver& driver = device_->driver();
  const Current current(*device_);
  CUgraph graph = nullptr;
  driver.cuGraphCreate(&graph, 0);
  try {
    std::vector<CUgraphNode> nodes(launches.size());
    for (size_t i = 0; i < launches.size(); ++i) {
      const Launch& launch = launches[i];
      CUDA_KERNEL_NODE_PARAMS parameters{};
      parameters.func = launch.kernel->function();
      parameters.gridDimX = launch.groups[0];
      parameters.gridDimY = launch.groups[1];
      parameters.gridDimZ = launch.groups[2];
      parameters.blockDimX = launch.local[0];
      parameters.blockDimY = launch.local[1];
      parameters.blockDimZ = launch.local[2];
      parameters.sharedMemBytes = launch.kernel->dynamic_shared();
      parameters.kernelParams = launch.arguments;
      std::vector<CUgraphNode> before;
      for (const size_t other : after[i]) before.push_back(nodes[other]);
      // Of several it waits for the end.
      const bool early =
          launch.kernel->begins_early() && before.size() == 1 && driver.cuGraphAddDependencies_v2;
      driver.cuGraphAddKernelNode_v2(&nodes[i], graph, before.data(), early ? 0 : before.size(),
                                     &parameters);
      if (!early) continue;
      const CUgraphEdgeData edge{
          CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
      driver.cuGraphAddDependencies_v2(graph, before.data(), &nodes[i], &edge, 1);
    }
    driver.cuGraphInstantiateWithFlags(&executable_, graph, 0);
  } catch (...) {
    driver.cuGraphDestroy.result_of(graph);
    throw;
  }
  driver.cuGraphDestroy.result_of(graph);
}

Graph::~Graph() {
  const Current current(*device_, std::nothrow);
  device_->driver().cuGraphExecDestroy.result_of(executable_);
}

Stream::Stream(std::shared_ptr<const Device> device) : device_(std::move(device)) {
  const Current current(*device_);
  device_->driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
}

Stream::~Stream() {
  const Current current(*device_, std::nothrow);
  device_->driver().cuStreamDestroy_v2.result_of(stream_);
}

void Stream::write(CUdeviceptr to, const void* from, size_t bytes) const {
  const Current current(*device_);
  device_->driver().cuMemcpyHtoDAsync_v2(to, from, bytes, stream_);
}

void Stream::read(void* to, CUdeviceptr from, size_t bytes) const {
  const Current current(*device_);
  device_->driver().cuMemcpyDtoHAsync_v2(to, from, bytes, stream_);
}

void Stream::launch(const Launch& launch) const {
  const Current current(*device_);
  device_->driver().cuLaunchKernel(launch.kernel->function(), launch.groups[0], launch.groups[1],
                                   launch.groups[2], launch.local[0], launch.local[1],
                                   launch.local[2], launch.kernel->dynamic_shared(), stream_,
                                   launch.arguments, nullptr);
}

void Stream::launch(const Graph& graph) const {
  const Current current(*device_);
  device_->driver().cuGraphLaunch(graph.executable_, stream_);
}

void Stream::record(Event& event) const {
  const Current current(*device_);
  device_->driver().cuEventRecord(event.event_, stream_);
}

void Stream::wait_for(const Event& event) const {
  const Current current(*device_);
  device_->driver().cuStreamWaitEvent(stream_, event.event_, 0);
}

void Stream::finish() const {
  const Current current(*device_);
  device_->driver().cuStreamSynchronize(stream_);
}

void Stream::call_when_over(std::function<void()> function) const {
  auto own = std::make_unique<std::function<void()>>(std::move(function));
  const Current current(*device_);
  device_->driver().cuLaunchHostFunc(
      stream_,
      [](void* data) {
        const std::unique_ptr<std::function<void()>> called(
            static_cast<std::function<void()>*>(data));
        (*called)();
      },
      own.get());
  own.release();  // the callback owns it now
}

}  // namespace clinfer::cuda
