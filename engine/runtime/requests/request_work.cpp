// Makes a request's memory and locks its stream.
#include "engine/runtime/requests/request_work.h"

#include <algorithm>

namespace clinfer {

RequestWork::RequestWork(std::shared_ptr<const DeviceNetwork> network_, DeviceStream& stream_)
    : network(std::move(network_)),
      stream(stream_),
      sized(&network->plan_for(0)),
      by_queue(*network, stream) {
  memory = make_memory();
  if (network->cuda != nullptr) {
    by_graph = std::make_unique<GraphRun>(*network, stream);
    run = by_graph.get();
  }
  run->prepare(*sized, *memory);
}

void RequestWork::check_idle() const {
  if (running) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
}

std::unique_lock<std::mutex> RequestWork::take_stream(const PlanRun& of) const {
  std::unique_lock lock(stream.mutex);
  stream.take_turn(&of == by_graph.get());
  return lock;
}

std::shared_ptr<RequestMemory> RequestWork::make_memory() const {
  const size_t bytes = std::max<size_t>(network->request_bytes(), 4);
  auto made = std::make_shared<RequestMemory>(*network, bytes);
  // Fills the inputs with zeros, so that one that is never set does not hold what was in the memory
  // before.
  const std::lock_guard lock(stream.mutex);
  stream.queue.enqueueFillBuffer(made->all.buffer, cl_uint{0}, 0, bytes);
  if (network->cuda != nullptr) stream.queue.finish();
  return made;
}

BoundBuffer RequestWork::buffer_of(const Edge& edge) const {
  return by_queue.bound(network->plan_for(0).place_of(edge), *memory);
}

}  // namespace clinfer
