// The layer (OPENCL_LAYERS): launches on the lost device fail.
#include "tests/faults/lost_device.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>

#include "tests/opencl_layer.h"

namespace {

const cl_icd_dispatch* g_next;
cl_icd_dispatch g_table;
std::mutex g_mutex;  // guards what follows
std::string g_name, g_held;
long g_left = 0;
std::condition_variable g_changed;

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

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                          const size_t* offset, const size_t* global, const size_t* local,
                          cl_uint waits, const cl_event* after, cl_event* event) {
  if (is_lost(queue)) return CL_OUT_OF_RESOURCES;
  return g_next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits,
                                        after, event);
}

}  // namespace

#define LAYER_EXPORT extern "C" __attribute__((visibility("default")))

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

LAYER_EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void* out,
                                               size_t* needed) {
  return clinfer::layer_version(what, size, out, needed);
}

LAYER_EXPORT cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch* target,
                                            cl_uint* own_count, const cl_icd_dispatch** own) {
  const cl_int begun = clinfer::begin_layer(count, target, own_count, own, g_next, g_table);
  if (begun != CL_SUCCESS) return begun;
  g_table.clEnqueueNDRangeKernel = launch;
  const char* name = std::getenv("CLINFER_LOSE_DEVICE");
  const char* after = std::getenv("CLINFER_LOSE_AFTER");
  if (name != nullptr && after != nullptr) lose_device(name, std::atol(after));
  return CL_SUCCESS;
}
