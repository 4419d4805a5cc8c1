// Declarations shared by the two parts of the OpenCL layer.
#pragma once

#include <CL/cl_icd.h>

#include <mutex>
#include <string>

#include "tests/rig/rig.h"

extern const cl_icd_dispatch* g_next;  // tests/opencl_layer.h

namespace rig {

inline constexpr unsigned char kPoison = 0xa5;

extern std::mutex g_mutex;  // over all state; never held over a call that may wait
extern RigClCounters g_count;
extern RigFault g_import_fault, g_acquire_fault;

bool set(const char* variable);
bool lost(cl_context context);
bool lost(cl_command_queue queue);
void forget_argument(cl_mem memory);  // with the lock

// cl_dmabuf.cpp. The first two with the lock; may_use_dmabuf() counts misuse.
bool is_dmabuf(cl_mem memory);
bool may_use_dmabuf(cl_mem memory, cl_command_queue queue);
void* dmabuf_function(const std::string& name);
cl_mem CL_API_CALL create_dmabuf(cl_context context, const cl_mem_properties* properties,
                                 cl_mem_flags flags, size_t size, void* host, cl_int* error);

}  // namespace rig
