// The layer (OPENCL_LAYERS): alters launches, arguments and data.
#include "tests/faults/wrong_device.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/opencl_layer.h"

namespace {

std::atomic<Wrong> g_what{Wrong::nothing};
std::atomic<int> g_which{1};
std::atomic<long> g_launches{0}, g_faults{0};

// Bytes; less may be sizes and indices, which lead a kernel anywhere.
constexpr size_t kLeastWeights = 2048;

bool is_nth_launch() { return g_launches++ % std::max(g_which.load(), 1) == 0; }

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                          const size_t* offset, const size_t* global, const size_t* local,
                          cl_uint waits, const cl_event* after, cl_event* event) {
  const Wrong what = g_what;
  if (what == Wrong::dropped && is_nth_launch()) {
    ++g_faults;
    return g_next->clEnqueueMarkerWithWaitList(queue, waits, after, event);
  }
  size_t fewer[3] = {};
  if (what == Wrong::half && is_nth_launch())
    for (cl_uint d = 0; d < dimensions; ++d) {
      const size_t half = global[d] / 2, group = local != nullptr ? local[d] : 1;
      if (half == 0 || half % group != 0) continue;
      std::copy_n(global, dimensions, fewer);
      fewer[d] = half;
      global = fewer;
      ++g_faults;
      break;
    }
  return g_next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits,
                                        after, event);
}

cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  const auto which = static_cast<size_t>(g_which.load());
  if (g_what != Wrong::argument || value == nullptr || size <= sizeof(void*) ||
      size < (which + 1) * sizeof(int32_t))
    return g_next->clSetKernelArg(kernel, index, size, value);
  std::vector<int32_t> numbers((size + 3) / 4);
  std::memcpy(numbers.data(), value, size);
  if (numbers[which] >= 2 && numbers[which] < 1 << 20) {
    --numbers[which];
    ++g_faults;
  }
  return g_next->clSetKernelArg(kernel, index, size, numbers.data());
}

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void* data,
                                 cl_int* error) {
  if (g_what != Wrong::weights || size < kLeastWeights || data == nullptr ||
      (flags & CL_MEM_COPY_HOST_PTR) == 0)
    return g_next->clCreateBuffer(context, flags, size, data, error);
  std::vector<float> numbers(size / 4 + 1);
  std::memcpy(numbers.data(), data, size);
  for (size_t i = 0; i + 1 < numbers.size(); i += static_cast<size_t>(g_which.load()))
    numbers[i] += 1;
  ++g_faults;
  return g_next->clCreateBuffer(context, flags, size, numbers.data(), error);
}

cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                size_t offset, size_t size, const void* data, cl_uint waits,
                                const cl_event* after, cl_event* event) {
  if (g_what != Wrong::weights || size < kLeastWeights)
    return g_next->clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, data, waits, after,
                                        event);
  std::vector<float> numbers(size / 4 + 1);
  std::memcpy(numbers.data(), data, size);
  for (size_t i = 0; i + 1 < numbers.size(); i += static_cast<size_t>(g_which.load()))
    numbers[i] += 1;
  ++g_faults;
  return g_next->clEnqueueWriteBuffer(queue, buffer, CL_TRUE, offset, size, numbers.data(), waits,
                                      after, event);
}

// Makes the macros by which kernels store floats (kernels/common/types.cl) store others.
std::string spoilt(std::string text) {
  const auto replace = [&](const std::string& part, const std::string& by) {
    if (const size_t at = text.find(part); at != text.npos) text.replace(at, part.size(), by);
  };
  replace("STORE_float_1(v, p) (*(p) = (v))", "STORE_float_1(v, p) (*(p) = (v) * 1.0625f)");
  for (const std::string width : {"2", "4", "8", "16"})
    replace("STORE_float_" + width + "(v, p) store" + width + "(v, p)",
            "STORE_float_" + width + "(v, p) store" + width + "((v) * 1.0625f, p)");
  return text;
}

cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char** texts,
                                      const size_t* lengths, cl_int* error) {
  const char* const part = std::getenv(kWrongPrograms);
  std::string text;
  for (cl_uint i = 0; part != nullptr && i < count; ++i)
    text += lengths != nullptr && lengths[i] != 0 ? std::string(texts[i], lengths[i]) : texts[i];
  if (part == nullptr || text.find(part) == text.npos)
    return g_next->clCreateProgramWithSource(context, count, texts, lengths, error);
  text = spoilt(std::move(text));
  const char* whole = text.c_str();
  return g_next->clCreateProgramWithSource(context, 1, &whole, nullptr, error);
}

void spoil(float* numbers, size_t count) {
  const auto which = static_cast<size_t>(std::max(g_which.load(), 1));
  switch (g_what) {
    case Wrong::nan:
    case Wrong::infinite:
    case Wrong::scaled:
      for (size_t i = 0; i < count; i += which)
        numbers[i] = g_what == Wrong::scaled     ? numbers[i] * 1.5f
                     : g_what == Wrong::infinite ? INFINITY
                                                 : NAN;
      break;
    case Wrong::shifted:
      if (count > which) std::memmove(numbers + which, numbers, (count - which) * sizeof(float));
      break;
    default:
      return;
  }
  ++g_faults;
}

cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                               size_t offset, size_t size, void* data, cl_uint waits,
                               const cl_event* after, cl_event* event) {
  const cl_int status =
      g_next->clEnqueueReadBuffer(queue, buffer, blocking, offset, size, data, waits, after, event);
  if (status != CL_SUCCESS || g_what == Wrong::nothing) return status;
  g_next->clFinish(queue);
  spoil(static_cast<float*>(data), size / sizeof(float));
  return status;
}

}  // namespace

LAYER_EXPORT void make_wrong(Wrong what, int which) {
  g_which = which;
  g_launches = g_faults = 0;
  g_what = what;
}

LAYER_EXPORT long wrong_so_far() { return g_faults; }

void replace_calls(cl_icd_dispatch& table) {
  table.clEnqueueNDRangeKernel = launch;
  table.clSetKernelArg = set_argument;
  table.clCreateBuffer = create_buffer;
  table.clEnqueueWriteBuffer = write_buffer;
  table.clEnqueueReadBuffer = read_buffer;
  table.clCreateProgramWithSource = create_program;
}
