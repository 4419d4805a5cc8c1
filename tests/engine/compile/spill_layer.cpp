// An OpenCL layer that says how many bytes of registers a kernel spills, as Intel's drivers do.
#include "tests/engine/compile/spill_layer.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "tests/opencl_layer.h"

namespace {

constexpr cl_kernel_work_group_info kSpilled = 0x4109;  // CL_KERNEL_SPILL_MEM_SIZE_INTEL
constexpr size_t kMostBytes = 4096;                     // of the first kernel

std::mutex g_mutex;       // guards what follows
std::string g_beginning;  // of the names of kernels that may spill
int g_spilling = 0;
std::vector<std::string> g_asked;

cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_device_id device,
                               cl_kernel_work_group_info what, size_t size, void* out,
                               size_t* needed) {
  if (what != kSpilled)
    return g_next->clGetKernelWorkGroupInfo(kernel, device, what, size, out, needed);
  char name[512] = "";
  if (const cl_int status =
          g_next->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, nullptr);
      status != CL_SUCCESS)
    return status;
  const std::lock_guard lock(g_mutex);
  if (g_beginning.empty() || std::string(name).rfind(g_beginning, 0) != 0)
    return answer<cl_ulong>(0, size, out, needed);
  const auto found = std::find(g_asked.begin(), g_asked.end(), name);
  const auto number = found - g_asked.begin();
  if (found == g_asked.end()) g_asked.emplace_back(name);
  return answer<cl_ulong>(number < g_spilling ? kMostBytes >> number : 0, size, out, needed);
}

}  // namespace

void replace_calls(cl_icd_dispatch& table) { table.clGetKernelWorkGroupInfo = kernel_info; }

LAYER_EXPORT void spill_layer_begin(const char* source, int kernels) {
  const std::lock_guard lock(g_mutex);
  g_beginning = std::string(source) + "_";
  g_spilling = kernels;
  g_asked.clear();
}

LAYER_EXPORT int spill_layer_asked() {
  const std::lock_guard lock(g_mutex);
  return static_cast<int>(g_asked.size());
}
