// The calls that every OpenCL layer (OPENCL_LAYERS) of the tests has to answer.
#pragma once

#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <cstring>

// Begins the declaration of a function that the loader of OpenCL, or a test, finds by its name.
#define LAYER_EXPORT extern "C" __attribute__((visibility("default")))

namespace clinfer {

// clGetLayerInfo for a layer that has a version and nothing else to say.
inline cl_int layer_version(cl_layer_info what, size_t size, void* out, size_t* needed) {
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (needed != nullptr) *needed = sizeof version;
  if (out == nullptr) return CL_SUCCESS;
  if (size < sizeof version) return CL_INVALID_VALUE;
  std::memcpy(out, &version, sizeof version);
  return CL_SUCCESS;
}

// Begins clInitLayer: `next` and `table` become the calls of what is below, `table` is what the
// layer gives. The layer then replaces calls in `table`.
inline cl_int begin_layer(cl_uint count, const cl_icd_dispatch* target, cl_uint* own_count,
                          const cl_icd_dispatch** own, const cl_icd_dispatch*& next,
                          cl_icd_dispatch& table) {
  if (target == nullptr || own_count == nullptr || own == nullptr) return CL_INVALID_VALUE;
  constexpr cl_uint kHave = sizeof(cl_icd_dispatch) / sizeof(void*);
  next = target;
  *own_count = count < kHave ? count : kHave;
  std::memcpy(&table, target, *own_count * sizeof(void*));
  *own = &table;
  return CL_SUCCESS;
}

}  // namespace clinfer
