// An OpenCL layer that presents all devices as GPUs, without halves. Those whose names begin with
// CLINFER_INTEGRATED share the host's memory, the others have their own. With CLINFER_MESA they stay what they
// are, but of Mesa's platform and without fused multiply-adds: only programs that know that are built. A buffer
// in memory of the host must be such that Intel's driver shares it: whole pages, up to whole cache lines. With
// CLINFER_REFUSE_HOST_MEMORY no such buffer can be made. clinfer_layer_shared() is the number of those
// that were made, clinfer_layer_written() the number of bytes that were written to others, clinfer_layer_read()
// of those that were read.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/opencl_layer.h"

namespace {

bool is_integrated(cl_device_id device) {
  const char* const wanted = std::getenv("CLINFER_INTEGRATED");
  char name[256] = "";
  g_next->clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, nullptr);
  return wanted != nullptr && std::string(name).rfind(wanted, 0) == 0;
}

cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void* out,
                               size_t* needed) {
  if (std::getenv("CLINFER_MESA") != nullptr) {
    if (what == CL_DEVICE_SINGLE_FP_CONFIG)
      return answer<cl_device_fp_config>(CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST, size, out, needed);
    return g_next->clGetDeviceInfo(device, what, size, out, needed);
  }
  switch (what) {
    case CL_DEVICE_TYPE:
      return answer<cl_device_type>(CL_DEVICE_TYPE_GPU, size, out, needed);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
      return answer<cl_bool>(is_integrated(device) ? CL_TRUE : CL_FALSE, size, out, needed);
    default:
      return g_next->clGetDeviceInfo(device, what, size, out, needed);
  }
}

cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size,
                                 void* out, size_t* needed) {
  if (what != CL_PLATFORM_NAME || std::getenv("CLINFER_MESA") == nullptr)
    return g_next->clGetPlatformInfo(platform, what, size, out, needed);
  return answer(std::to_array("rusticl"), size, out, needed);
}

cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id* devices,
                         const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                         void* data) {
  const std::string text = options == nullptr ? "" : options;
  if (std::getenv("CLINFER_MESA") != nullptr && text.find("-DNO_FMA") == text.npos)
    return CL_BUILD_PROGRAM_FAILURE;
  return g_next->clBuildProgram(program, count, devices, options, notify, data);
}

std::atomic<size_t> g_shared{0}, g_written{0}, g_read{0};

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void* data,
                                 cl_int* error) {
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) {
    const bool whole = reinterpret_cast<uintptr_t>(data) % 4096 == 0 && size % 64 == 0;
    if (!whole || std::getenv("CLINFER_REFUSE_HOST_MEMORY") != nullptr) {
      if (error != nullptr) *error = CL_INVALID_HOST_PTR;
      return nullptr;
    }
    ++g_shared;
  }
  return g_next->clCreateBuffer(context, flags, size, data, error);
}

cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                size_t offset, size_t size, const void* data, cl_uint waits,
                                const cl_event* wait_list, cl_event* event) {
  g_written += size;
  return g_next->clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, data, waits, wait_list,
                                      event);
}

cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                               size_t offset, size_t size, void* data, cl_uint waits,
                               const cl_event* wait_list, cl_event* event) {
  g_read += size;
  return g_next->clEnqueueReadBuffer(queue, buffer, blocking, offset, size, data, waits, wait_list,
                                     event);
}

}  // namespace

LAYER_EXPORT size_t clinfer_layer_shared() { return g_shared; }
LAYER_EXPORT size_t clinfer_layer_written() { return g_written; }
LAYER_EXPORT size_t clinfer_layer_read() { return g_read; }

void replace_calls(cl_icd_dispatch& table) {
  table.clGetPlatformInfo = platform_info;
  table.clGetDeviceInfo = device_info;
  table.clBuildProgram = build;
  table.clCreateBuffer = create_buffer;
  table.clEnqueueWriteBuffer = write_buffer;
  table.clEnqueueReadBuffer = read_buffer;
}
