// The layer (OPENCL_LAYERS): launches on the lost device fail.
#include "tests/faults/lost_device.h"

#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

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
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (needed != nullptr) *needed = sizeof version;
  if (out == nullptr) return CL_SUCCESS;
  if (size < sizeof version) return CL_INVALID_VALUE;
  std::memcpy(out, &version, sizeof version);
  return CL_SUCCESS;
}

LAYER_EXPORT cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch* target,
                                            cl_uint* own_count, const cl_icd_dispatch** own) {
  if (target == nullptr || own_count == nullptr || own == nullptr) return CL_INVALID_VALUE;
  constexpr cl_uint kHave = sizeof(cl_icd_dispatch) / sizeof(void*);
  g_next = target;
  *own_count = count < kHave ? count : kHave;
  std::memcpy(&g_table, target, *own_count * sizeof(void*));
  g_table.clEnqueueNDRangeKernel = launch;
  *own = &g_table;
  const char* name = std::getenv("CLINFER_LOSE_DEVICE");
  const char* after = std::getenv("CLINFER_LOSE_AFTER");
  if (name != nullptr && after != nullptr) lose_device(name, std::atol(after));
  return CL_SUCCESS;
}
