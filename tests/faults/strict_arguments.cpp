// An OpenCL layer that holds programs to what NVIDIA's driver demands and PoCL does not. Kernels do
// not keep their arguments alive: a launch with one that was released is refused. Of two
// sub-buffers that overlap, the one that was made later is released first: else the program is
// aborted, where that driver crashes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "tests/opencl_layer.h"

namespace {

std::mutex g_mutex;                                          // guards what follows
std::map<cl_mem, int> g_references;                          // that the program has
std::map<cl_kernel, std::map<cl_uint, cl_mem>> g_arguments;  // that are memory objects

struct Part {
  cl_mem whole, part;
  size_t begin, end;
};

std::vector<Part> g_parts;  // the sub-buffers that are alive, in the order of their making

void check_release(cl_mem memory) {
  const auto at = std::find_if(g_parts.begin(), g_parts.end(),
                               [&](const Part& part) { return part.part == memory; });
  if (at == g_parts.end()) return;
  for (auto later = at + 1; later != g_parts.end(); ++later) {
    const bool same = later->begin == at->begin && later->end == at->end;
    if (later->whole != at->whole || same || later->begin >= at->end || at->begin >= later->end)
      continue;
    std::fprintf(stderr, "a sub-buffer is released before one that overlaps it and is newer\n");
    std::abort();
  }
  g_parts.erase(at);
}

cl_mem made(cl_mem memory) {
  const std::lock_guard lock(g_mutex);
  if (memory != nullptr) g_references[memory] = 1;
  return memory;
}

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void* host,
                                 cl_int* status) {
  return made(g_next->clCreateBuffer(context, flags, size, host, status));
}

cl_mem CL_API_CALL create_sub_buffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                     const void* region, cl_int* status) {
  cl_mem part = made(g_next->clCreateSubBuffer(buffer, flags, type, region, status));
  const std::lock_guard lock(g_mutex);
  const auto* const range = static_cast<const cl_buffer_region*>(region);
  if (part != nullptr)
    g_parts.push_back({buffer, part, range->origin, range->origin + range->size});
  return part;
}

cl_int CL_API_CALL retain(cl_mem memory) {
  {
    const std::lock_guard lock(g_mutex);
    if (g_references.contains(memory)) ++g_references[memory];
  }
  return g_next->clRetainMemObject(memory);
}

cl_int CL_API_CALL release(cl_mem memory) {
  {
    const std::lock_guard lock(g_mutex);
    if (g_references.contains(memory) && --g_references[memory] == 0) check_release(memory);
  }
  return g_next->clReleaseMemObject(memory);
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* status) {
  const cl_kernel kernel = g_next->clCreateKernel(program, name, status);
  const std::lock_guard lock(g_mutex);
  g_arguments.erase(kernel);  // of an earlier kernel at this address
  return kernel;
}

cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  {
    const std::lock_guard lock(g_mutex);
    g_arguments[kernel].erase(index);
    if (size == sizeof(cl_mem) && value != nullptr)
      if (cl_mem memory = *static_cast<const cl_mem*>(value); g_references.contains(memory))
        g_arguments[kernel][index] = memory;
  }
  return g_next->clSetKernelArg(kernel, index, size, value);
}

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                          const size_t* offset, const size_t* global, const size_t* local,
                          cl_uint events, const cl_event* after, cl_event* event) {
  {
    const std::lock_guard lock(g_mutex);
    for (const auto& [index, memory] : g_arguments[kernel])
      if (g_references[memory] <= 0) return CL_INVALID_KERNEL_ARGS;
  }
  return g_next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, events,
                                        after, event);
}

}  // namespace

void replace_calls(cl_icd_dispatch& table) {
  table.clCreateBuffer = create_buffer;
  table.clCreateSubBuffer = create_sub_buffer;
  table.clRetainMemObject = retain;
  table.clReleaseMemObject = release;
  table.clCreateKernel = create_kernel;
  table.clSetKernelArg = set_argument;
  table.clEnqueueNDRangeKernel = launch;
}
