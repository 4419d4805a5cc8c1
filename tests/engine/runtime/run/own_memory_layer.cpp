// An OpenCL layer that checks what a device demands that works on several queues at a time: a command waits
// for what another queue has done with its buffers, by an event that follows that on the other queue, which
// was flushed, or the host has waited for it; and no two queues write one buffer from the host.
#include "tests/engine/runtime/run/own_memory_layer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "tests/opencl_layer.h"

namespace {

// The place of a command on an in-order queue, counted from 1.
struct Place {
  cl_command_queue queue = nullptr;
  long number = 0;
};

std::mutex g_mutex;                                      // guards what follows
std::map<cl_command_queue, long> g_enqueued, g_flushed;  // the last one on each queue
std::map<cl_mem, Place> g_writes, g_launches;            // the last one of each buffer
std::map<cl_mem, cl_event> g_reads;                      // likewise
std::map<cl_event, Place> g_events;
std::map<cl_kernel, std::map<cl_uint, cl_mem>> g_arguments;
std::map<std::pair<cl_command_queue, cl_command_queue>, long>
    g_awaited;  // by queue: of another one
long g_written = 0, g_waits = 0, g_before_first_wait = 0, g_long_reads = 0;
std::string g_mistake;

void enqueued(cl_command_queue queue, const cl_event* event) {
  const long number = ++g_enqueued[queue];
  if (event != nullptr) g_events[*event] = {queue, number};
}

void note(const char* mistake) {
  if (g_mistake.empty()) g_mistake = mistake;
}

// Takes notice of what the next command of `queue` waits for.
bool wait_for(cl_command_queue queue, cl_uint count, const cl_event* events) {
  bool waits = false;
  for (cl_uint i = 0; i < count; ++i) {
    const auto found = g_events.find(events[i]);
    if (found == g_events.end() || found->second.queue == queue) continue;
    const Place& place = found->second;
    waits = true;
    if (g_flushed[place.queue] < place.number) note("a queue waits for one that was not flushed");
    long& known = g_awaited[{queue, place.queue}];
    known = std::max(known, place.number);
  }
  return waits;
}

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void* host,
                                 cl_int* status) {
  const cl_mem memory = g_next->clCreateBuffer(context, flags, size, host, status);
  const std::lock_guard lock(g_mutex);
  g_writes.erase(memory);  // of an earlier one at this address
  g_launches.erase(memory);
  g_reads.erase(memory);
  return memory;
}

bool is_awaited(cl_command_queue queue, const Place& place) {
  return place.queue == queue || g_awaited[{queue, place.queue}] >= place.number;
}

bool is_over(cl_event event) {
  cl_int status = CL_QUEUED;
  return g_next->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                                nullptr) == CL_SUCCESS &&
         status <= CL_COMPLETE;
}

cl_int CL_API_CALL read(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t at,
                        size_t bytes, void* to, cl_uint count, const cl_event* after,
                        cl_event* event) {
  const std::lock_guard lock(g_mutex);
  const bool waits = wait_for(queue, count, after);
  const auto launched = g_launches.find(memory);
  if (launched != g_launches.end() && !is_awaited(queue, launched->second))
    note("a buffer is read before another queue has computed it");
  cl_event own = nullptr;
  cl_event* const told = event != nullptr ? event : &own;
  const cl_int status =
      g_next->clEnqueueReadBuffer(queue, memory, blocking, at, bytes, to, count, after, told);
  if (status != CL_SUCCESS) return status;
  enqueued(queue, told);
  if (waits) {
    ++g_long_reads;
    if (event != nullptr) g_next->clRetainEvent(*told);
    if (cl_event& last = g_reads[memory]; last != nullptr) g_next->clReleaseEvent(last);
    g_reads[memory] = *told;
  } else if (event == nullptr) {
    g_next->clReleaseEvent(own);
  }
  return status;
}

cl_int CL_API_CALL write(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t at,
                         size_t bytes, const void* from, cl_uint count, const cl_event* after,
                         cl_event* event) {
  const std::lock_guard lock(g_mutex);
  const cl_int status =
      g_next->clEnqueueWriteBuffer(queue, memory, blocking, at, bytes, from, count, after, event);
  wait_for(queue, count, after);
  enqueued(queue, event);
  ++g_written;
  Place& last = g_writes[memory];
  if (last.queue != nullptr && last.queue != queue) note("two queues write one buffer");
  last = {queue, g_enqueued[queue]};
  return status;
}

cl_int CL_API_CALL mark(cl_command_queue queue, cl_uint count, const cl_event* after,
                        cl_event* event) {
  const std::lock_guard lock(g_mutex);
  const cl_int status = g_next->clEnqueueMarkerWithWaitList(queue, count, after, event);
  wait_for(queue, count, after);
  enqueued(queue, event);
  return status;
}

cl_int CL_API_CALL flush(cl_command_queue queue) {
  const std::lock_guard lock(g_mutex);
  g_flushed[queue] = g_enqueued[queue];
  return g_next->clFlush(queue);
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* status) {
  const cl_kernel kernel = g_next->clCreateKernel(program, name, status);
  const std::lock_guard lock(g_mutex);
  g_arguments.erase(kernel);
  return kernel;
}

cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  const std::lock_guard lock(g_mutex);
  g_arguments[kernel].erase(index);
  if (size == sizeof(cl_mem) && value != nullptr)
    g_arguments[kernel][index] = *static_cast<const cl_mem*>(value);
  return g_next->clSetKernelArg(kernel, index, size, value);
}

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                          const size_t* offset, const size_t* global, const size_t* local,
                          cl_uint count, const cl_event* after, cl_event* event) {
  const std::lock_guard lock(g_mutex);
  if (wait_for(queue, count, after) && ++g_waits == 1) g_before_first_wait = g_written;
  for (const auto& [index, memory] : g_arguments[kernel]) {
    if (const auto found = g_writes.find(memory);
        found != g_writes.end() && !is_awaited(queue, found->second))
      note("a kernel does not wait for what another queue writes");
    if (const auto found = g_reads.find(memory); found != g_reads.end() && !is_over(found->second))
      note("a kernel may overwrite what another queue still reads");
  }
  const cl_int status = g_next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
                                                       local, count, after, event);
  enqueued(queue, event);
  for (const auto& [index, memory] : g_arguments[kernel])
    g_launches[memory] = {queue, g_enqueued[queue]};
  return status;
}

}  // namespace

LAYER_EXPORT void own_memory_reset() {
  const std::lock_guard lock(g_mutex);
  g_written = g_waits = g_before_first_wait = g_long_reads = 0;
}

LAYER_EXPORT long own_memory_writes() {
  const std::lock_guard lock(g_mutex);
  return g_written;
}

LAYER_EXPORT long own_memory_waits() {
  const std::lock_guard lock(g_mutex);
  return g_waits;
}

LAYER_EXPORT long own_memory_writes_before_first_wait() {
  const std::lock_guard lock(g_mutex);
  return g_before_first_wait;
}

LAYER_EXPORT long own_memory_long_reads() {
  const std::lock_guard lock(g_mutex);
  return g_long_reads;
}

LAYER_EXPORT const char* own_memory_mistake() {
  const std::lock_guard lock(g_mutex);
  return g_mistake.c_str();
}

void replace_calls(cl_icd_dispatch& table) {
  // As Khronos's loader does, which ends the list after its first entry while it reads it.
  if (char* const list = std::getenv("OPENCL_LAYERS"))
    if (char* const end = std::strchr(list, ':')) *end = '\0';
  table.clCreateBuffer = create_buffer;
  table.clEnqueueWriteBuffer = write;
  table.clEnqueueReadBuffer = read;
  table.clEnqueueMarkerWithWaitList = mark;
  table.clFlush = flush;
  table.clCreateKernel = create_kernel;
  table.clSetKernelArg = set_argument;
  table.clEnqueueNDRangeKernel = launch;
}
