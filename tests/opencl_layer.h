// The two functions that the loader calls, for all OpenCL layers (OPENCL_LAYERS) of the tests. One source file
// of a layer includes this, and defines replace_calls().
#pragma once

#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <algorithm>
#include <cstring>

// Begins the declaration of a function that the loader of OpenCL, or a test, finds by its name.
#define LAYER_EXPORT extern "C" __attribute__((visibility("default")))

// The calls of what is below the layer: the driver, or the next layer.
const cl_icd_dispatch* g_next = nullptr;

// Replaces some of the calls in `table`, which is a copy of *g_next.
void replace_calls(cl_icd_dispatch& table);

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

LAYER_EXPORT cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch* next,
                                            cl_uint* own_count, const cl_icd_dispatch** own) {
  static cl_icd_dispatch table;
  if (next == nullptr || own_count == nullptr || own == nullptr) return CL_INVALID_VALUE;
  *own_count = std::min<cl_uint>(count, sizeof table / sizeof(void*));
  std::memcpy(&table, next, *own_count * sizeof(void*));
  *own = &table;
  g_next = next;
  replace_calls(table);
  return CL_SUCCESS;
}
