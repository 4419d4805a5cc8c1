// The two functions that the loader calls, for all OpenCL layers (OPENCL_LAYERS) of the tests, and answers to queries.
// One source file of a layer includes this, and defines replace_calls().
#pragma once

#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <algorithm>
#include <cstring>
#include <string>

// Begins the declaration of a function that the loader of OpenCL, or a test, finds by its name.
#define LAYER_EXPORT extern "C" __attribute__((visibility("default")))

// The calls of what is below the layer: the driver, or the next layer.
const cl_icd_dispatch* g_next = nullptr;

// Replaces some of the calls in `table`, which is a copy of *g_next.
void replace_calls(cl_icd_dispatch& table);

// Answers a query of an information, as the functions of OpenCL that have such parameters do.
inline cl_int answer_bytes(const void* value, size_t bytes, size_t size, void* out,
                           size_t* needed) {
  if (needed != nullptr) *needed = bytes;
  if (out == nullptr) return CL_SUCCESS;
  if (size < bytes) return CL_INVALID_VALUE;
  std::memcpy(out, value, bytes);
  return CL_SUCCESS;
}
template <typename T>
cl_int answer(const T& value, size_t size, void* out, size_t* needed) {
  return answer_bytes(&value, sizeof value, size, out, needed);
}

// Answers what `query` (size, out, needed) does, a list of extensions, with further ones.
template <typename Query>
cl_int with_extension(Query query, const char* added, size_t size, void* out, size_t* needed) {
  size_t bytes = 0;
  if (const cl_int status = query(0, nullptr, &bytes); status != CL_SUCCESS) return status;
  std::string text(bytes, '\0');
  if (const cl_int status = query(bytes, text.data(), nullptr); status != CL_SUCCESS) return status;
  text.resize(std::strlen(text.c_str()));
  text += std::string(" ") + added;
  return answer_bytes(text.c_str(), text.size() + 1, size, out, needed);
}

LAYER_EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void* out,
                                               size_t* needed) {
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  return answer<cl_layer_api_version>(CL_LAYER_API_VERSION_100, size, out, needed);
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
