// The layer (OPENCL_LAYERS): lets launches wait, by queue.
#include "tests/faults/slow_device.h"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/opencl_layer.h"

namespace {

struct Queue {
  int milliseconds = 0;
  std::mutex busy;
};

std::atomic<int> g_pace{0};
std::mutex g_mutex;  // guards the map
std::map<cl_command_queue, std::shared_ptr<Queue>> g_queues;

// Notes a queue that `make` makes.
template <typename Make>
cl_command_queue noted(const Make& make, cl_int* error) {
  const int pace = g_pace;
  if (pace < 0) {
    if (error != nullptr) *error = CL_OUT_OF_RESOURCES;
    return nullptr;
  }
  cl_command_queue queue = make();
  auto made = std::make_shared<Queue>();
  made->milliseconds = pace;
  const std::lock_guard lock(g_mutex);
  g_queues[queue] = std::move(made);
  return queue;
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties, cl_int* error) {
  return noted([&] { return g_next->clCreateCommandQueue(context, device, properties, error); },
               error);
}

cl_command_queue CL_API_CALL create_queue_with(cl_context context, cl_device_id device,
                                               const cl_queue_properties* properties,
                                               cl_int* error) {
  return noted(
      [&] {
        return g_next->clCreateCommandQueueWithProperties(context, device, properties, error);
      },
      error);
}

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                          const size_t* offset, const size_t* global, const size_t* local,
                          cl_uint waits, const cl_event* after, cl_event* event) {
  std::shared_ptr<Queue> known;
  {
    const std::lock_guard lock(g_mutex);
    if (const auto found = g_queues.find(queue); found != g_queues.end()) known = found->second;
  }
  if (known != nullptr && known->milliseconds != 0) {
    const std::lock_guard lock(known->busy);
    std::this_thread::sleep_for(std::chrono::milliseconds(known->milliseconds));
  }
  return g_next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits,
                                        after, event);
}

}  // namespace

LAYER_EXPORT void set_pace(int milliseconds) { g_pace = milliseconds; }

void replace_calls(cl_icd_dispatch& table) {
  table.clCreateCommandQueue = create_queue;
  table.clCreateCommandQueueWithProperties = create_queue_with;
  table.clEnqueueNDRangeKernel = launch;
}
