// The layer (OPENCL_LAYERS): launches on the lost device fail, those on the held one wait, and those
// on the stalled one come after an event that the test sets.
#include "tests/faults/lost_device.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "tests/opencl_layer.h"

namespace {

std::mutex g_mutex;  // guards what follows
std::string g_name, g_held, g_stalled;
long g_left = 0;
std::condition_variable g_changed;
std::vector<cl_event> g_gates;  // set when the stalled device goes on

constexpr auto kLongest = std::chrono::minutes(1);

std::string device_of(cl_command_queue queue) {
  cl_device_id device = nullptr;
  char name[256] = "";
  g_next->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr);
  g_next->clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, nullptr);
  return name;
}

bool is_lost(cl_command_queue queue) {
  std::unique_lock lock(g_mutex);
  if (g_name.empty() && g_held.empty()) return false;
  const std::string device = device_of(queue);
  g_changed.wait_for(lock, kLongest,
                     [&] { return g_held.empty() || device.rfind(g_held, 0) != 0; });
  const bool meant = g_name == "*" || (!g_name.empty() && device.rfind(g_name, 0) == 0);
  return meant && --g_left < 0;
}

// Puts an event in front of what is launched next.
void stall_if_wanted(cl_command_queue queue) {
  const std::lock_guard lock(g_mutex);
  if (g_stalled.empty() || device_of(queue).rfind(g_stalled, 0) != 0) return;
  cl_context context = nullptr;
  g_next->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr);
  cl_int error = CL_SUCCESS;
  const cl_event gate = g_next->clCreateUserEvent(context, &error);
  if (error != CL_SUCCESS) return;
  g_next->clEnqueueBarrierWithWaitList(queue, 1, &gate, nullptr);
  g_gates.push_back(gate);
}

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                          const size_t* offset, const size_t* global, const size_t* local,
                          cl_uint waits, const cl_event* after, cl_event* event) {
  if (is_lost(queue)) return CL_OUT_OF_RESOURCES;
  stall_if_wanted(queue);
  return g_next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits,
                                        after, event);
}

}  // namespace

LAYER_EXPORT void lose_device(const char* name, long after) {
  const std::lock_guard lock(g_mutex);
  g_name = name != nullptr ? name : "";
  g_left = after;
}

LAYER_EXPORT void hold_device(const char* name) {
  {
    const std::lock_guard lock(g_mutex);
    g_held = name != nullptr ? name : "";
  }
  g_changed.notify_all();
}

LAYER_EXPORT void stall_device(const char* name) {
  std::vector<cl_event> gates;
  {
    const std::lock_guard lock(g_mutex);
    g_stalled = name != nullptr ? name : "";
    gates.swap(g_gates);
  }
  for (const cl_event gate : gates) {
    g_next->clSetUserEventStatus(gate, CL_COMPLETE);
    g_next->clReleaseEvent(gate);
  }
}

void replace_calls(cl_icd_dispatch& table) {
  table.clEnqueueNDRangeKernel = launch;
  const char* name = std::getenv("CLINFER_LOSE_DEVICE");
  const char* after = std::getenv("CLINFER_LOSE_AFTER");
  if (name != nullptr && after != nullptr) lose_device(name, std::atol(after));
}
