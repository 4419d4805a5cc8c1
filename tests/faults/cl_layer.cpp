// An OpenCL layer (OPENCL_LAYERS) in which every entry point that the engine calls can fail, and
// which counts objects that are alive. Calls that wait for the device wait before they fail: their
// commands run, and a caller may free the memory that these write to.
#include <atomic>
#include <cstring>
#include <type_traits>

#include "tests/faults/points.h"
#include "tests/opencl_layer.h"

namespace {

std::atomic<int> g_kind{kNoFault};
std::atomic<long> g_target{0}, g_in_a_row{1}, g_passed{0}, g_live{0};
std::atomic<int> g_struck{0};
thread_local int t_depth = 0;           // calls of OpenCL that this thread is in
thread_local bool t_of_driver = false;  // it was made by the driver

struct InDriver {
  InDriver() { ++t_depth; }
  ~InDriver() { --t_depth; }
};

// Counts the object that a successful call created, from the last of its arguments.
void count_created(cl_event* event) {
  if (event != nullptr && *event != nullptr) ++g_live;
}
template <typename Other>
void count_created(Other) {}

template <typename First>
First last_of(First only) {
  return only;
}
template <typename First, typename... Rest>
auto last_of(First, Rest... rest) {
  return last_of(rest...);
}

template <auto Member, typename Function = std::remove_cvref_t<decltype(g_next->*Member)>>
struct Call;

// Functions that return a status.
template <auto Member, typename... Arguments>
struct Call<Member, cl_int(CL_API_CALL*)(Arguments...)> {
  static cl_int CL_API_CALL before(Arguments... arguments) {
    if (fault_strikes(kOpenCl)) return CL_OUT_OF_RESOURCES;
    const InDriver in_driver;
    const cl_int status = (g_next->*Member)(arguments...);
    if (status == CL_SUCCESS) count_created(last_of(arguments...));
    return status;
  }
  static cl_int CL_API_CALL after(Arguments... arguments) {
    const int strikes = fault_strikes(kOpenCl);
    const InDriver in_driver;
    const cl_int status = (g_next->*Member)(arguments...);
    return strikes ? CL_OUT_OF_RESOURCES : status;
  }
  template <int Change>
  static cl_int CL_API_CALL counted(Arguments... arguments) {
    const InDriver in_driver;
    const cl_int status = (g_next->*Member)(arguments...);
    if (status == CL_SUCCESS) g_live += Change;
    return status;
  }
};

// Functions that return an object or an address, and a status by their last argument.
template <auto Member, typename Object, typename... Arguments>
struct Call<Member, Object*(CL_API_CALL*)(Arguments...)> {
  static Object* CL_API_CALL created(Arguments... arguments) {
    Object* const object = mapped(arguments...);
    if (object != nullptr) ++g_live;
    return object;
  }
  static Object* CL_API_CALL mapped(Arguments... arguments) {
    if (fault_strikes(kOpenCl)) {
      if (cl_int* error = last_of(arguments...)) *error = CL_OUT_OF_RESOURCES;
      return nullptr;
    }
    const InDriver in_driver;
    return (g_next->*Member)(arguments...);
  }
};

cl_int CL_API_CALL create_kernels(cl_program program, cl_uint count, cl_kernel* kernels,
                                  cl_uint* made) {
  if (fault_strikes(kOpenCl)) return CL_OUT_OF_RESOURCES;
  const InDriver in_driver;
  cl_uint ignored = 0;
  if (made == nullptr) made = &ignored;
  const cl_int status = g_next->clCreateKernelsInProgram(program, count, kernels, made);
  if (status == CL_SUCCESS && kernels != nullptr) g_live += *made;
  return status;
}

cl_int CL_API_CALL create_sub_devices(cl_device_id device,
                                      const cl_device_partition_property* properties, cl_uint count,
                                      cl_device_id* devices, cl_uint* made) {
  if (fault_strikes(kOpenCl)) return CL_OUT_OF_RESOURCES;
  const InDriver in_driver;
  return g_next->clCreateSubDevices(device, properties, count, devices, made);  // kept for ever
}

cl_int CL_API_CALL release_device(cl_device_id device) {
  const InDriver in_driver;
  return g_next->clReleaseDevice(device);
}

cl_int CL_API_CALL retain_device(cl_device_id device) {
  const InDriver in_driver;
  return g_next->clRetainDevice(device);
}

// Functions of cl_intel_va_api_media_sharing.
using CreateFromVa = cl_mem(CL_API_CALL*)(cl_context, cl_mem_flags, unsigned*, cl_uint, cl_int*);
using EnqueueVa = cl_int(CL_API_CALL*)(cl_command_queue, cl_uint, const cl_mem*, cl_uint,
                                       const cl_event*, cl_event*);
CreateFromVa g_create_from_va;
EnqueueVa g_acquire_va, g_release_va;

cl_mem CL_API_CALL create_from_va(cl_context context, cl_mem_flags flags, unsigned* surface,
                                  cl_uint plane, cl_int* error) {
  if (fault_strikes(kOpenCl)) {
    if (error != nullptr) *error = CL_OUT_OF_RESOURCES;
    return nullptr;
  }
  const InDriver in_driver;
  const cl_mem image = g_create_from_va(context, flags, surface, plane, error);
  if (image != nullptr) ++g_live;
  return image;
}

cl_int CL_API_CALL acquire_va(cl_command_queue queue, cl_uint count, const cl_mem* images,
                              cl_uint waits, const cl_event* after, cl_event* event) {
  if (fault_strikes(kOpenCl)) return CL_OUT_OF_RESOURCES;
  const InDriver in_driver;
  const cl_int status = g_acquire_va(queue, count, images, waits, after, event);
  if (status == CL_SUCCESS) count_created(event);
  return status;
}

// Does release, also where it fails.
cl_int CL_API_CALL release_va(cl_command_queue queue, cl_uint count, const cl_mem* images,
                              cl_uint waits, const cl_event* after, cl_event* event) {
  const int strikes = fault_strikes(kOpenCl);
  const InDriver in_driver;
  const cl_int status = g_release_va(queue, count, images, waits, after, event);
  if (status != CL_SUCCESS || !strikes) {
    if (status == CL_SUCCESS) count_created(event);
    return status;
  }
  if (event != nullptr) {
    g_next->clReleaseEvent(*event);
    *event = nullptr;
  }
  return CL_OUT_OF_RESOURCES;
}

void* CL_API_CALL function_address(cl_platform_id platform, const char* name) {
  if (fault_strikes(kOpenCl)) return nullptr;
  const InDriver in_driver;
  void* const next = g_next->clGetExtensionFunctionAddressForPlatform(platform, name);
  const auto instead = [&](const char* known, auto& keep, auto* own) -> void* {
    if (next == nullptr || std::strcmp(name, known) != 0) return nullptr;
    keep = reinterpret_cast<decltype(own)>(next);
    return reinterpret_cast<void*>(own);
  };
  void* own = instead("clCreateFromVA_APIMediaSurfaceINTEL", g_create_from_va, create_from_va);
  if (own == nullptr)
    own = instead("clEnqueueAcquireVA_APIMediaSurfacesINTEL", g_acquire_va, acquire_va);
  if (own == nullptr)
    own = instead("clEnqueueReleaseVA_APIMediaSurfacesINTEL", g_release_va, release_va);
  return own != nullptr ? own : next;
}

}  // namespace

LAYER_EXPORT void fault_arm(FaultKind kind, long n, long in_a_row) {
  g_kind = kNoFault;
  g_target = n;
  g_in_a_row = in_a_row;
  g_passed = 0;
  g_struck = 0;
  g_kind = kind;
}

LAYER_EXPORT long fault_passed() { return g_passed; }
LAYER_EXPORT int fault_struck() { return g_struck; }
LAYER_EXPORT int fault_in_driver() { return t_of_driver || t_depth > 0; }
LAYER_EXPORT void fault_set_driver_thread() { t_of_driver = true; }
LAYER_EXPORT long fault_live_objects() { return g_live; }

LAYER_EXPORT int fault_strikes(FaultKind kind) {
  if (g_kind != kind || fault_in_driver()) return 0;
  const long at = ++g_passed, first = g_target;
  if (first == 0 || at < first || at >= first + g_in_a_row) return 0;
  g_struck = 1;
  return 1;
}

void replace_calls(cl_icd_dispatch& table) {
#define FAULTS_FAIL(name) table.name = Call<&cl_icd_dispatch::name>::before
#define FAULTS_WAIT(name) table.name = Call<&cl_icd_dispatch::name>::after
#define FAULTS_CREATE(name) table.name = Call<&cl_icd_dispatch::name>::created
#define FAULTS_COUNT(name)                                                            \
  table.clRetain##name = Call<&cl_icd_dispatch::clRetain##name>::template counted<1>; \
  table.clRelease##name = Call<&cl_icd_dispatch::clRelease##name>::template counted<-1>
  FAULTS_FAIL(clGetPlatformInfo);
  FAULTS_FAIL(clGetDeviceIDs);
  FAULTS_FAIL(clGetDeviceInfo);
  FAULTS_FAIL(clBuildProgram);
  FAULTS_FAIL(clGetProgramInfo);
  FAULTS_FAIL(clGetProgramBuildInfo);
  FAULTS_FAIL(clSetKernelArg);
  FAULTS_FAIL(clGetKernelInfo);
  FAULTS_FAIL(clGetKernelWorkGroupInfo);
  FAULTS_FAIL(clGetEventInfo);
  FAULTS_FAIL(clGetEventProfilingInfo);
  FAULTS_FAIL(clSetEventCallback);
  FAULTS_FAIL(clGetMemObjectInfo);
  FAULTS_FAIL(clGetImageInfo);
  FAULTS_FAIL(clFlush);
  FAULTS_FAIL(clEnqueueReadBuffer);
  FAULTS_FAIL(clEnqueueWriteBuffer);
  FAULTS_FAIL(clEnqueueCopyBuffer);
  FAULTS_FAIL(clEnqueueFillBuffer);
  FAULTS_FAIL(clEnqueueNDRangeKernel);
  FAULTS_FAIL(clEnqueueUnmapMemObject);
  FAULTS_FAIL(clEnqueueMarkerWithWaitList);
  FAULTS_WAIT(clFinish);
  FAULTS_WAIT(clWaitForEvents);
  FAULTS_CREATE(clCreateContext);
  FAULTS_CREATE(clCreateCommandQueue);
  FAULTS_CREATE(clCreateCommandQueueWithProperties);
  FAULTS_CREATE(clCreateBuffer);
  FAULTS_CREATE(clCreateBufferWithProperties);
  FAULTS_CREATE(clCreateImage);
  FAULTS_CREATE(clCreateProgramWithSource);
  FAULTS_CREATE(clCreateProgramWithBinary);
  FAULTS_CREATE(clCreateKernel);
  FAULTS_COUNT(Context);
  FAULTS_COUNT(CommandQueue);
  FAULTS_COUNT(MemObject);
  FAULTS_COUNT(Program);
  FAULTS_COUNT(Kernel);
  FAULTS_COUNT(Event);
  table.clEnqueueMapBuffer = Call<&cl_icd_dispatch::clEnqueueMapBuffer>::mapped;
  table.clCreateKernelsInProgram = create_kernels;
  table.clCreateSubDevices = create_sub_devices;
  table.clReleaseDevice = release_device;
  table.clRetainDevice = retain_device;
  table.clGetExtensionFunctionAddressForPlatform = function_address;
}
