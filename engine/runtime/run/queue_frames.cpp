// Brings frames to the device through OpenCL's queue.
#include <algorithm>

#include "engine/runtime/run/lent_memory.h"
#include "engine/runtime/run/queue_run.h"

namespace clinfer {

namespace {

// Lets the device read the planes in the host's memory. For an integrated GPU, planes that may share
// a page (kSharedPage) are put into one buffer.
void lend(DeviceFrame& input, const ocl::Context& context) {
  const bool is_cpu = context.device.info.is_cpu;
  const uintptr_t page = is_cpu ? 1 : kSharedPage, line = is_cpu ? 1 : kSharedLine;
  const auto sizes = plane_sizes(input.frame);
  const auto begin = [&](size_t p) { return reinterpret_cast<uintptr_t>(input.frame.planes[p]); };
  std::vector<size_t> planes;
  for (size_t p = 0; p < sizes.size(); ++p)
    if (sizes[p].rows > 0) planes.push_back(p);
  std::sort(planes.begin(), planes.end(), [&](size_t a, size_t b) { return begin(a) < begin(b); });
  for (size_t first = 0, next = 0; first < planes.size(); first = next) {
    const uintptr_t start = begin(planes[first]) / page * page;
    uintptr_t end = start;
    for (; next < planes.size() && (next == first || begin(planes[next]) / page * page < end);
         ++next)
      end = std::max(end, begin(planes[next]) + static_cast<uintptr_t>(sizes[planes[next]].bytes(
                                                    input.frame.strides[planes[next]])));
    const cl::Buffer buffer(context.context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR,
                            (end - start + line - 1) / line * line, reinterpret_cast<void*>(start));
    for (size_t i = first; i < next; ++i) {
      input.planes[planes[i]] = {.buffer = buffer};
      input.starts[planes[i]] = static_cast<int64_t>(begin(planes[i]) - start);
      input.plane_bytes[planes[i]] = 0;
    }
  }
}

}  // namespace

// Copies the planes to the device without changing their layout; of a region only its rows. CPUs
// and integrated GPUs read the frame in the host's memory instead. Other devices copy while other
// work runs only from pinned memory: to copy from other memory, NVIDIA's driver first waits in a
// busy loop for earlier commands of the queue, and keeps its lock during the copy.
void QueueRun::copy_frame(DeviceFrame& input) {
  const ocl::Context& context = *network_.context;
  if (context.device.info.is_cpu) return lend(input, context);
  try {
    if (context.device.info.is_integrated) return lend(input, context);
  } catch (const cl::Error&) {
    // The device cannot map this memory, as is possible for a camera's buffers, so it is copied.
  }
  const bool beside = stream_.copies() != nullptr;
  const cl::CommandQueue& queue = beside ? stream_.copies : stream_.queue;
  copy_parts(
      input, network_, [&](size_t bytes) { return make_host_memory(bytes); },
      [&](size_t plane, size_t at, size_t bytes, const void* from) {
        queue.enqueueWriteBuffer(input.planes[plane].buffer, CL_FALSE, at, bytes, from, nullptr,
                                 timed(events.uploads));
      });
  if (!beside) return;
  queue.enqueueMarkerWithWaitList(nullptr, &input.copied);
  queue.flush();  // commands on another queue wait for these
}

void QueueRun::bind_frame(DeviceFrame& input, const ocl::Surface* surface,
                          const PlaneMemories* memories, RequestMemory& memory) {
  const auto sizes = plane_sizes(input.frame);
  const Edge target{network_.plan().graph->parameters[input.index], 0};
  const auto find = [&](const Argument& argument) -> BoundBuffer {
    switch (argument.kind) {
      case Argument::Kind::input: {
        if (memories != nullptr) return {memories->at(argument.index)->buffer(), 0};
        const size_t p = sizes[argument.index].rows ? argument.index : 0;
        return {input.planes[p].buffer, input.starts[p]};
      }
      case Argument::Kind::image:
        return {{}, 0, surface->plane(argument.index)};
      default:
        return bound(network_.whole.place_of(target), memory);
    }
  };
  for (size_t l = 0; l < input.kernels.size(); ++l)
    bind_arguments(input.kernels[l], input.plan.launches[l], find);
}

void QueueRun::launch_frame(DeviceFrame& input) {
  bind_frame(input, nullptr, nullptr, *memory_);
  const std::vector<cl::Event> copied{std::exchange(input.copied, {})};
  for (size_t l = 0; l < input.kernels.size(); ++l)
    enqueue(stream_.queue, input.kernels[l], input.plan.launches[l], timed(events.preprocessing),
            l == 0 && copied[0]() != nullptr ? &copied : nullptr);
  if (stream_.copies() != nullptr) stream_.queue.flush();
}

}  // namespace clinfer
