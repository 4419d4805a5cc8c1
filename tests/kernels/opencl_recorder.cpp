// An OpenCL library that computes nothing: it passes for the driver of one of Intel's GPUs and writes
// the programs that an application builds. openvino_isa.py compiles it into libOpenCL.so.1 and lets
// OpenVINO's GPU plug-in load it, for which it has the functions that this plug-in needs.
// RECORDER_FOLDER: where NUMBER.cl and NUMBER.options are written. RECORDER_DEVICE: skl, tgllp, dg2.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))
// Functions that have nothing to do.
#define SUCCEED(name, ...) \
  EXPORT cl_int name(__VA_ARGS__) { return CL_SUCCESS; }
#define WAIT cl_uint, const cl_event*
// Commands: finished when they return, with an event.
#define COMMAND(name, ...) \
  EXPORT cl_int name(cl_command_queue, __VA_ARGS__, WAIT, cl_event* event) { return finish(event); }
#define OBJECT(Name, handle)      \
  SUCCEED(clRetain##Name, handle) \
  SUCCEED(clRelease##Name, handle)

namespace {

// Objects live until the process ends.
struct Memory {
  std::vector<char> own;
  char* data = nullptr;
  size_t size = 0;
  cl_image_format format{};
  size_t width = 0, height = 0;
};
struct Program {
  std::string source;
  std::vector<std::string> kernels;
};
struct Kernel {
  std::string name;
  Program* program;
};
struct Other {};
Other platform, device, event_of_all;

const auto kPlatform = reinterpret_cast<cl_platform_id>(&platform);
const auto kDevice = reinterpret_cast<cl_device_id>(&device);

std::string setting(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

struct Facts {
  const char* kind;
  const char* name;
  cl_uint id, version, units, threads, clock;
  size_t group;
  bool dp4a;
};
const Facts& facts() {
  static const Facts all[] = {
      {"skl", "Intel(R) HD Graphics 530", 0x1912, 9U << 22 | 9, 24, 7, 1150, 256, false},
      {"tgllp", "Intel(R) Iris(R) Xe Graphics", 0x9a49, 12U << 22, 96, 7, 1350, 512, true},
      {"dg2", "Intel(R) Arc(TM) A770 Graphics", 0x56a0, 12U << 22 | 55U << 14 | 8, 512, 8, 2400,
       1024, true}};
  for (const Facts& facts : all)
    if (setting("RECORDER_DEVICE") == facts.kind) return facts;
  std::abort();
}

cl_int answer(const void* value, size_t size, size_t room, void* to, size_t* needed) {
  if (needed) *needed = size;
  if (to && room >= size) std::memcpy(to, value, size);
  return to && room < size ? CL_INVALID_VALUE : CL_SUCCESS;
}
cl_int answer(const std::string& text, size_t room, void* to, size_t* needed) {
  return answer(text.c_str(), text.size() + 1, room, to, needed);
}
template <typename T>
cl_int answer(T value, size_t room, void* to, size_t* needed) {
  return answer(&value, sizeof(value), room, to, needed);
}
// Of a question that nobody needs answered: zeros, as many as there is room for.
cl_int answer_nothing(size_t room, void* to, size_t* needed) {
  if (needed) *needed = to ? room : sizeof(cl_ulong);
  if (to) std::memset(to, 0, room);
  return CL_SUCCESS;
}

cl_int finish(cl_event* event) {
  if (event) *event = reinterpret_cast<cl_event>(&event_of_all);
  return CL_SUCCESS;
}

template <typename Handle, typename T>
Handle make(T object, cl_int* error) {
  if (error) *error = CL_SUCCESS;
  return reinterpret_cast<Handle>(new T(std::move(object)));
}
Memory& at(cl_mem memory) { return *reinterpret_cast<Memory*>(memory); }
Program& at(cl_program program) { return *reinterpret_cast<Program*>(program); }
Kernel& at(cl_kernel kernel) { return *reinterpret_cast<Kernel*>(kernel); }

cl_mem make_memory(size_t size, void* host, cl_mem_flags flags, cl_int* error) {
  const auto memory = make<cl_mem>(Memory{}, error);
  at(memory).size = size;
  if (host && (flags & CL_MEM_USE_HOST_PTR)) {
    at(memory).data = static_cast<char*>(host);
    return memory;
  }
  at(memory).own.resize(size);
  at(memory).data = at(memory).own.data();
  if (host) std::memcpy(at(memory).data, host, size);
  return memory;
}

}  // namespace

EXPORT cl_int clGetPlatformIDs(cl_uint room, cl_platform_id* to, cl_uint* count) {
  if (count) *count = 1;
  if (room) *to = kPlatform;
  return CL_SUCCESS;
}
EXPORT cl_int clGetPlatformInfo(cl_platform_id, cl_platform_info what, size_t room, void* to,
                                size_t* needed) {
  switch (what) {
    case CL_PLATFORM_NAME:
      return answer("Intel(R) OpenCL Graphics", room, to, needed);
    case CL_PLATFORM_VENDOR:
      return answer("Intel(R) Corporation", room, to, needed);
    case CL_PLATFORM_VERSION:
      return answer("OpenCL 3.0 ", room, to, needed);
    default:
      return answer("", room, to, needed);
  }
}
EXPORT cl_int clGetDeviceIDs(cl_platform_id, cl_device_type type, cl_uint room, cl_device_id* to,
                             cl_uint* count) {
  const bool gpu = (type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT)) != 0;
  if (count) *count = gpu ? 1 : 0;
  if (gpu && room) *to = kDevice;
  return gpu ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}
EXPORT cl_int clGetDeviceInfo(cl_device_id, cl_device_info what, size_t room, void* to,
                              size_t* needed) {
  const Facts& f = facts();
  const auto number = [&](auto value) { return answer(value, room, to, needed); };
  const auto text = [&](const std::string& value) { return answer(value, room, to, needed); };
  switch (what) {
    case CL_DEVICE_TYPE:
      return number(cl_device_type{CL_DEVICE_TYPE_GPU});
    case CL_DEVICE_VENDOR_ID:
      return number(cl_uint{0x8086});
    case CL_DEVICE_NAME:
      return text(f.name);
    case CL_DEVICE_VENDOR:
      return text("Intel(R) Corporation");
    case CL_DRIVER_VERSION:
      return text("23.35.27191");
    case CL_DEVICE_VERSION:
      return text("OpenCL 3.0 NEO ");
    case CL_DEVICE_OPENCL_C_VERSION:
      return text("OpenCL C 1.2 ");
    case CL_DEVICE_EXTENSIONS:
      return text(std::string("cl_khr_fp16 cl_khr_icd cl_khr_subgroups cl_intel_subgroups "
                              "cl_intel_required_subgroup_size cl_intel_subgroups_short "
                              "cl_intel_subgroups_char cl_intel_subgroups_long "
                              "cl_khr_create_command_queue cl_intel_device_attribute_query") +
                  (f.dp4a ? " cl_khr_integer_dot_product" : ""));
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return number(f.units);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
      return number(f.clock);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      return number(f.group);
    case CL_DEVICE_LOCAL_MEM_SIZE:
      return number(cl_ulong{64 << 10});
    case CL_DEVICE_GLOBAL_MEM_SIZE:
      return number(cl_ulong{8} << 30);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return number(cl_ulong{4} << 30);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
      return number(cl_ulong{1} << 20);
    case CL_DEVICE_IMAGE2D_MAX_WIDTH:
    case CL_DEVICE_IMAGE2D_MAX_HEIGHT:
      return number(size_t{16384});
    case CL_DEVICE_IMAGE_SUPPORT:
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
      return number(cl_bool{CL_TRUE});
    case CL_DEVICE_PLATFORM:
      return number(kPlatform);
    case CL_DEVICE_SUB_GROUP_SIZES_INTEL: {
      const size_t sizes[] = {8, 16, 32};
      return answer(sizes, sizeof(sizes), room, to, needed);
    }
    case CL_DEVICE_IP_VERSION_INTEL:
      return number(f.version);
    case CL_DEVICE_ID_INTEL:
      return number(f.id);
    case CL_DEVICE_NUM_SLICES_INTEL:
      return number(cl_uint{1});
    case CL_DEVICE_NUM_SUB_SLICES_PER_SLICE_INTEL:
      return number(f.units / 8);
    case CL_DEVICE_NUM_EUS_PER_SUB_SLICE_INTEL:
      return number(cl_uint{8});
    case CL_DEVICE_NUM_THREADS_PER_EU_INTEL:
      return number(f.threads);
    case CL_DEVICE_FEATURE_CAPABILITIES_INTEL:
      return number(cl_bitfield{f.dp4a ? 1U : 0U});
    case CL_DEVICE_UUID_KHR:
    case CL_DRIVER_UUID_KHR: {
      const char id[CL_UUID_SIZE_KHR] = {1};
      return answer(id, sizeof(id), room, to, needed);
    }
    default:
      return answer_nothing(room, to, needed);
  }
}
OBJECT(Device, cl_device_id)
EXPORT cl_int clCreateSubDevices(cl_device_id, const cl_device_partition_property*, cl_uint,
                                 cl_device_id*, cl_uint*) {
  return CL_DEVICE_PARTITION_FAILED;
}

EXPORT cl_context clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id*,
                                  void(CL_CALLBACK*)(const char*, const void*, size_t, void*),
                                  void*, cl_int* error) {
  return make<cl_context>(Other{}, error);
}
EXPORT cl_int clGetContextInfo(cl_context, cl_context_info what, size_t room, void* to,
                               size_t* needed) {
  if (what == CL_CONTEXT_DEVICES) return answer(kDevice, room, to, needed);
  if (what == CL_CONTEXT_NUM_DEVICES) return answer(cl_uint{1}, room, to, needed);
  return answer_nothing(room, to, needed);
}
OBJECT(Context, cl_context)
EXPORT cl_command_queue clCreateCommandQueueWithProperties(cl_context, cl_device_id,
                                                           const cl_queue_properties*,
                                                           cl_int* error) {
  return make<cl_command_queue>(Other{}, error);
}
EXPORT cl_int clGetCommandQueueInfo(cl_command_queue, cl_command_queue_info, size_t room, void* to,
                                    size_t* needed) {
  return answer(kDevice, room, to, needed);
}
OBJECT(CommandQueue, cl_command_queue)
SUCCEED(clFinish, cl_command_queue)
SUCCEED(clFlush, cl_command_queue)

EXPORT cl_mem clCreateBuffer(cl_context, cl_mem_flags flags, size_t size, void* host,
                             cl_int* error) {
  return make_memory(size, host, flags, error);
}
EXPORT cl_mem clCreateSubBuffer(cl_mem memory, cl_mem_flags, cl_buffer_create_type,
                                const void* what, cl_int* error) {
  const auto* region = static_cast<const cl_buffer_region*>(what);
  return make_memory(region->size, at(memory).data + region->origin, CL_MEM_USE_HOST_PTR, error);
}
EXPORT cl_mem clCreateImage(cl_context, cl_mem_flags flags, const cl_image_format* format,
                            const cl_image_desc* what, void*, cl_int* error) {
  constexpr size_t kPixel = 16;
  const size_t height = what->image_height ? what->image_height : 1;
  const cl_mem image = make_memory(what->image_width * height * kPixel, nullptr, flags, error);
  at(image).format = *format;
  at(image).width = what->image_width;
  at(image).height = height;
  return image;
}
EXPORT cl_mem clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                              size_t width, size_t height, size_t, void*, cl_int* error) {
  cl_image_desc what{};
  what.image_width = width;
  what.image_height = height;
  return clCreateImage(context, flags, format, &what, nullptr, error);
}
EXPORT cl_int clGetMemObjectInfo(cl_mem memory, cl_mem_info what, size_t room, void* to,
                                 size_t* needed) {
  if (what == CL_MEM_SIZE) return answer(at(memory).size, room, to, needed);
  return answer_nothing(room, to, needed);
}
EXPORT cl_int clGetImageInfo(cl_mem image, cl_image_info what, size_t room, void* to,
                             size_t* needed) {
  if (what == CL_IMAGE_FORMAT) return answer(at(image).format, room, to, needed);
  return answer(what == CL_IMAGE_WIDTH ? at(image).width : at(image).height, room, to, needed);
}
OBJECT(MemObject, cl_mem)

EXPORT cl_program clCreateProgramWithSource(cl_context, cl_uint count, const char** texts,
                                            const size_t* lengths, cl_int* error) {
  Program program;
  for (cl_uint i = 0; i < count; ++i)
    program.source +=
        lengths && lengths[i] ? std::string(texts[i], lengths[i]) : std::string(texts[i]);
  return make<cl_program>(std::move(program), error);
}
EXPORT cl_int clBuildProgram(cl_program handle, cl_uint, const cl_device_id*, const char* options,
                             void(CL_CALLBACK* call)(cl_program, void*), void* data) {
  static std::atomic<int> number{0};
  Program& program = at(handle);
  const std::string path = setting("RECORDER_FOLDER") + "/" + std::to_string(number++);
  std::ofstream(path + ".cl") << program.source;
  std::ofstream(path + ".options") << (options ? options : "");
  static const std::string kStart = "__kernel void ";
  for (size_t at = 0; (at = program.source.find(kStart, at)) != std::string::npos;) {
    at += kStart.size();
    program.kernels.push_back(
        program.source.substr(at, program.source.find_first_of(" \n(", at) - at));
  }
  if (call) call(handle, data);
  return CL_SUCCESS;
}
// The binary of a program is its address.
EXPORT cl_program clCreateProgramWithBinary(cl_context, cl_uint, const cl_device_id*, const size_t*,
                                            const unsigned char** binaries, cl_int* status,
                                            cl_int* error) {
  cl_program program = nullptr;
  std::memcpy(&program, binaries[0], sizeof(program));
  if (status) *status = CL_SUCCESS;
  if (error) *error = CL_SUCCESS;
  return program;
}
EXPORT cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t room, void* to,
                               size_t* needed) {
  std::string names;
  switch (what) {
    case CL_PROGRAM_NUM_DEVICES:
      return answer(cl_uint{1}, room, to, needed);
    case CL_PROGRAM_DEVICES:
      return answer(kDevice, room, to, needed);
    case CL_PROGRAM_BINARY_SIZES:
      return answer(sizeof(program), room, to, needed);
    case CL_PROGRAM_BINARIES:
      if (to) std::memcpy(*static_cast<void**>(to), &program, sizeof(program));
      if (needed) *needed = sizeof(void*);
      return CL_SUCCESS;
    case CL_PROGRAM_NUM_KERNELS:
      return answer(at(program).kernels.size(), room, to, needed);
    case CL_PROGRAM_KERNEL_NAMES:
      for (const std::string& name : at(program).kernels)
        names += (names.empty() ? "" : ";") + name;
      return answer(names, room, to, needed);
    default:
      return answer_nothing(room, to, needed);
  }
}
EXPORT cl_int clGetProgramBuildInfo(cl_program, cl_device_id, cl_program_build_info what,
                                    size_t room, void* to, size_t* needed) {
  if (what == CL_PROGRAM_BUILD_STATUS)
    return answer(cl_build_status{CL_BUILD_SUCCESS}, room, to, needed);
  return answer("", room, to, needed);
}
OBJECT(Program, cl_program)

EXPORT cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* error) {
  return make<cl_kernel>(Kernel{name, &at(program)}, error);
}
EXPORT cl_int clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel* to,
                                       cl_uint* count) {
  const std::vector<std::string>& names = at(program).kernels;
  if (count) *count = static_cast<cl_uint>(names.size());
  for (size_t i = 0; to && i < names.size() && i < room; ++i)
    to[i] = clCreateKernel(program, names[i].c_str(), nullptr);
  return CL_SUCCESS;
}
EXPORT cl_int clGetKernelInfo(cl_kernel kernel, cl_kernel_info what, size_t room, void* to,
                              size_t* needed) {
  if (what == CL_KERNEL_FUNCTION_NAME) return answer(at(kernel).name, room, to, needed);
  return answer(at(kernel).program, room, to, needed);
}
SUCCEED(clSetKernelArg, cl_kernel, cl_uint, size_t, const void*)
OBJECT(Kernel, cl_kernel)

EXPORT cl_int clEnqueueReadBuffer(cl_command_queue, cl_mem memory, cl_bool, size_t offset,
                                  size_t size, void* to, WAIT, cl_event* event) {
  std::memcpy(to, at(memory).data + offset, size);
  return finish(event);
}
EXPORT cl_int clEnqueueWriteBuffer(cl_command_queue, cl_mem memory, cl_bool, size_t offset,
                                   size_t size, const void* from, WAIT, cl_event* event) {
  std::memcpy(at(memory).data + offset, from, size);
  return finish(event);
}
EXPORT void* clEnqueueMapBuffer(cl_command_queue, cl_mem memory, cl_bool, cl_map_flags,
                                size_t offset, size_t, WAIT, cl_event* event, cl_int* error) {
  finish(event);
  if (error) *error = CL_SUCCESS;
  return at(memory).data + offset;
}
EXPORT void* clEnqueueMapImage(cl_command_queue, cl_mem image, cl_bool, cl_map_flags, const size_t*,
                               const size_t*, size_t* row, size_t* slice, WAIT, cl_event* event,
                               cl_int* error) {
  finish(event);
  if (row) *row = at(image).width * 16;
  if (slice) *slice = 0;
  if (error) *error = CL_SUCCESS;
  return at(image).data;
}
COMMAND(clEnqueueUnmapMemObject, cl_mem, void*)
COMMAND(clEnqueueCopyBuffer, cl_mem, cl_mem, size_t, size_t, size_t)
COMMAND(clEnqueueCopyImage, cl_mem, cl_mem, const size_t*, const size_t*, const size_t*)
COMMAND(clEnqueueFillBuffer, cl_mem, const void*, size_t, size_t, size_t)
COMMAND(clEnqueueFillImage, cl_mem, const void*, const size_t*, const size_t*)
COMMAND(clEnqueueReadImage, cl_mem, cl_bool, const size_t*, const size_t*, size_t, size_t, void*)
COMMAND(clEnqueueWriteImage, cl_mem, cl_bool, const size_t*, const size_t*, size_t, size_t,
        const void*)
COMMAND(clEnqueueNDRangeKernel, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*)
EXPORT cl_int clEnqueueBarrierWithWaitList(cl_command_queue, WAIT, cl_event* event) {
  return finish(event);
}
EXPORT cl_int clEnqueueMarkerWithWaitList(cl_command_queue, WAIT, cl_event* event) {
  return finish(event);
}

EXPORT cl_event clCreateUserEvent(cl_context, cl_int* error) {
  return make<cl_event>(Other{}, error);
}
SUCCEED(clSetUserEventStatus, cl_event, cl_int)
SUCCEED(clWaitForEvents, WAIT)
EXPORT cl_int clSetEventCallback(cl_event event, cl_int,
                                 void(CL_CALLBACK* call)(cl_event, cl_int, void*), void* data) {
  call(event, CL_COMPLETE, data);
  return CL_SUCCESS;
}
EXPORT cl_int clGetEventInfo(cl_event, cl_event_info, size_t room, void* to, size_t* needed) {
  return answer(cl_int{CL_COMPLETE}, room, to, needed);
}
EXPORT cl_int clGetEventProfilingInfo(cl_event, cl_profiling_info, size_t room, void* to,
                                      size_t* needed) {
  return answer_nothing(room, to, needed);
}
OBJECT(Event, cl_event)
EXPORT cl_int clGetDeviceAndHostTimer(cl_device_id, cl_ulong* device_time, cl_ulong* host_time) {
  *device_time = *host_time = 1;
  return CL_SUCCESS;
}
EXPORT void* clGetExtensionFunctionAddressForPlatform(cl_platform_id, const char*) {
  return nullptr;
}
