// A stand-in for libcuda.so.1 by OpenCL: an OpenCL layer above PoCL that presents its devices as ones of which
// CUDA knows, and the functions of CUDA that engine/cuda calls. A program's binary is a text like PTX that names
// the program; memory of the device is memory of the host that OpenCL and "CUDA" see at once; each stream is a thread,
// so that what is not ordered by events is not in order; of a graph's kernels that may run, the last one runs first.
#include "tests/engine/cuda/stand_in.h"

#include <CL/cl_ext.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/cuda/interface/functions.h"
#include "tests/opencl_layer.h"

namespace {

constexpr CUresult kUnknown = static_cast<CUresult>(999);
constexpr char kUuid[17] = "a device of CUDA";
constexpr size_t kPage = size_t{1} << 16;  // in place of 2 MiB
constexpr size_t kLargestValue = 768;      // of a kernel's argument

std::mutex g_mutex;  // guards what follows
std::map<std::string, long> g_calls;
std::string g_failing, g_mistake;
long g_skip = 0;
bool g_corrupts = false;
std::map<std::string, cl_program> g_programs;  // by the kernels' names, which their text has
thread_local std::vector<CUcontext> t_current;

void note(const char* mistake) {
  const std::lock_guard lock(g_mutex);
  if (g_mistake.empty()) g_mistake = mistake;
}

// Counts a call; true where it is to fail.
bool fails(const char* function) {
  const std::lock_guard lock(g_mutex);
  ++g_calls[function];
  return g_failing == function && g_skip-- <= 0;
}

// ---- memory -------------------------------------------------------------------------------------------------

struct Block {
  int fd = -1;
  size_t bytes = 0;
  char* data = nullptr;
};
std::map<CUmemGenericAllocationHandle, std::shared_ptr<Block>> g_blocks;
std::map<CUdeviceptr, std::shared_ptr<Block>> g_mapped;

// The memory that an address of the device is in; null: none.
std::shared_ptr<Block> block_at(CUdeviceptr address, size_t bytes) {
  const std::lock_guard lock(g_mutex);
  auto found = g_mapped.upper_bound(address);
  if (found == g_mapped.begin()) return nullptr;
  --found;
  return address + bytes <= found->first + found->second->bytes ? found->second : nullptr;
}

// ---- kernels ------------------------------------------------------------------------------------------------

struct Function {
  cl_program program = nullptr;
  std::string name;
  bool waits = false;  // before its first instruction
};
struct Module {
  cl_program program = nullptr;
  bool waits = false;
  std::vector<std::unique_ptr<Function>> functions;
};

// A kernel with its arguments.
struct Node {
  cl_kernel kernel = nullptr;
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  size_t global[3]{}, local[3]{};
  std::vector<cl_mem> memories;
  CUdeviceptr last_address = 0;
  bool waits = false;
  std::vector<Node*> after;
  ~Node() {
    for (const cl_mem memory : memories) g_next->clReleaseMemObject(memory);
    if (kernel != nullptr) g_next->clReleaseKernel(kernel);
  }
};

// Takes the arguments, whose sizes the kernel tells.
CUresult bind(Node& node, const Function& function, void** arguments) {
  cl_int status = CL_SUCCESS;
  node.kernel = g_next->clCreateKernel(function.program, function.name.c_str(), &status);
  if (status != CL_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  g_next->clGetProgramInfo(function.program, CL_PROGRAM_CONTEXT, sizeof node.context, &node.context,
                           nullptr);
  g_next->clGetProgramInfo(function.program, CL_PROGRAM_DEVICES, sizeof node.device, &node.device,
                           nullptr);
  cl_uint count = 0;
  g_next->clGetKernelInfo(node.kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr);
  for (cl_uint i = 0; i < count; ++i) {
    cl_kernel_arg_address_qualifier where = 0;
    status = g_next->clGetKernelArgInfo(node.kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                                        sizeof where, &where, nullptr);
    if (where == CL_KERNEL_ARG_ADDRESS_GLOBAL) {
      const auto address = *static_cast<const CUdeviceptr*>(arguments[i]);
      const std::shared_ptr<Block> block = block_at(address, 1);
      if (block == nullptr) {
        note("a kernel is given an address that is no memory");
        return CUDA_ERROR_INVALID_VALUE;
      }
      char* const data = reinterpret_cast<char*>(address);
      const cl_mem memory = g_next->clCreateBuffer(
          node.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
          block->bytes - static_cast<size_t>(data - block->data), data, &status);
      if (status != CL_SUCCESS) return CUDA_ERROR_OUT_OF_MEMORY;
      node.memories.push_back(memory);
      node.last_address = address;
      status = g_next->clSetKernelArg(node.kernel, i, sizeof memory, &memory);
    } else {
      // Drivers that do not know the size take more than the value: what follows it, as far as it can be read.
      std::array<char, kLargestValue> value{};
      const iovec to{value.data(), value.size()}, from{arguments[i], value.size()};
      process_vm_readv(getpid(), &to, 1, &from, 1, 0);
      status = CL_INVALID_ARG_SIZE;
      for (size_t bytes = value.size(); bytes >= 4 && status == CL_INVALID_ARG_SIZE; bytes -= 4)
        status = g_next->clSetKernelArg(node.kernel, i, bytes, value.data());
    }
    if (status != CL_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

struct Graph {
  std::vector<std::shared_ptr<Node>> nodes;
};

void run(const Node& node) {
  cl_int status = CL_SUCCESS;
  const cl_command_queue queue =
      g_next->clCreateCommandQueue(node.context, node.device, 0, &status);
  if (status == CL_SUCCESS)
    status = g_next->clEnqueueNDRangeKernel(queue, node.kernel, 3, nullptr, node.global, node.local,
                                            0, nullptr, nullptr);
  if (status == CL_SUCCESS) status = g_next->clFinish(queue);
  if (status != CL_SUCCESS) note("a kernel cannot be launched");
  g_next->clReleaseCommandQueue(queue);
}

// The last one first of those that need not wait.
void run(const Graph& graph) {
  std::set<const Node*> done;
  while (done.size() < graph.nodes.size())
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = *graph.nodes[i];
      const bool ready = !done.contains(&node) &&
                         std::all_of(node.after.begin(), node.after.end(),
                                     [&](const Node* other) { return done.contains(other); });
      if (!ready) continue;
      run(node);
      done.insert(&node);
      break;
    }
  bool corrupts = false;
  {
    const std::lock_guard lock(g_mutex);
    corrupts = g_corrupts;
  }
  if (corrupts && !graph.nodes.empty())
    *reinterpret_cast<char*>(graph.nodes.back()->last_address) ^= 1;
}

// ---- streams and events -------------------------------------------------------------------------------------

std::mutex g_hold_mutex;
std::condition_variable g_hold_changed;
bool g_holds = false;

// A thread that does what it is given, until it is told to end.
struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool ends = false, busy = false;

  static Stream* start() {
    auto* const stream = new Stream;
    std::thread([stream] { stream->live(); }).detach();
    return stream;
  }
  void live() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return ends || !work.empty(); });
      if (work.empty()) break;
      const auto next = std::move(work.front());
      work.pop_front();
      busy = true;
      lock.unlock();
      {
        std::unique_lock hold(g_hold_mutex);
        g_hold_changed.wait(hold, [] { return !g_holds; });
      }
      next();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
    lock.unlock();
    delete this;
  }
  void give(std::function<void()> next) {
    const std::lock_guard lock(mutex);
    work.push_back(std::move(next));
    changed.notify_all();
  }
  void finish() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return work.empty() && !busy; });
  }
};

struct Event {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    long recorded = 0, reached = 0;
  };
  std::shared_ptr<State> state = std::make_shared<State>();
};

void wait_until(Event::State& state, long recorded) {
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return state.reached >= recorded; });
}

template <typename T, typename Handle>
T* own(Handle handle) {
  return reinterpret_cast<T*>(handle);
}

bool has_context() {
  if (!t_current.empty()) return true;
  note("CUDA is called without a context");
  return false;
}

// ---- the layer ----------------------------------------------------------------------------------------------

cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void* out,
                               size_t* needed) {
  if (what == CL_DEVICE_EXTENSIONS)
    return with_extension(
        [&](size_t s, void* o, size_t* n) {
          return g_next->clGetDeviceInfo(device, what, s, o, n);
        },
        "cl_khr_device_uuid cl_khr_external_memory cl_khr_external_memory_opaque_fd", size, out,
        needed);
  if (what == 0x106A) return answer_bytes(kUuid, 16, size, out, needed);  // CL_DEVICE_UUID_KHR
  return g_next->clGetDeviceInfo(device, what, size, out, needed);
}

cl_int CL_API_CALL hand_over(cl_command_queue queue, cl_uint, const cl_mem*, cl_uint count,
                             const cl_event* after, cl_event* event) {
  return g_next->clEnqueueMarkerWithWaitList(queue, count, after, event);
}

void* CL_API_CALL function_address(cl_platform_id platform, const char* name) {
  const std::string wanted = name;
  if (wanted == "clEnqueueAcquireExternalMemObjectsKHR" ||
      wanted == "clEnqueueReleaseExternalMemObjectsKHR")
    return reinterpret_cast<void*>(hand_over);
  return g_next->clGetExtensionFunctionAddressForPlatform(platform, name);
}

cl_mem CL_API_CALL create_buffer(cl_context context, const cl_mem_properties* properties,
                                 cl_mem_flags flags, size_t size, void* host, cl_int* status) {
  if (properties == nullptr || properties[0] != CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR)
    return g_next->clCreateBufferWithProperties(context, properties, flags, size, host, status);
  const int fd = static_cast<int>(properties[1]);
  struct stat of_fd {};
  fstat(fd, &of_fd);
  close(fd);
  char* data = nullptr;
  {
    const std::lock_guard lock(g_mutex);
    for (const auto& [address, block] : g_mapped) {
      struct stat of_block {};
      fstat(block->fd, &of_block);
      if (of_block.st_ino == of_fd.st_ino && size <= block->bytes) data = block->data;
    }
  }
  if (data == nullptr) {
    if (status != nullptr) *status = CL_INVALID_VALUE;
    return nullptr;
  }
  const size_t lines = (size + 63) / 64 * 64;  // as the layer below wants memory of the host
  return g_next->clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, lines, data, status);
}

// With what bind() asks of a kernel's arguments.
cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id* devices,
                         const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                         void* data) {
  const std::string all = std::string(options == nullptr ? "" : options) + " -cl-kernel-arg-info";
  return g_next->clBuildProgram(program, count, devices, all.c_str(), notify, data);
}

// Programs of the same kernels have the same text.
std::string text_of(cl_program program) {
  std::array<char, 4096> names{};
  g_next->clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, names.size() - 1, names.data(),
                           nullptr);
  const std::lock_guard lock(g_mutex);
  if (g_programs.try_emplace(names.data(), program).second) g_next->clRetainProgram(program);
  return "// program " + std::string(names.data()) +
         "\n.version 8.0\n.target sm_90\n.address_size 64\n.entry any()\n{\n\t.reg .b32 %r<3>;\n"
         "mov.b32 %r1, %envreg3;\nmov.b32 %r2, %envreg9;\n}\n";
}

cl_int CL_API_CALL program_info(cl_program program, cl_program_info what, size_t size, void* out,
                                size_t* needed) {
  if (what == CL_PROGRAM_BINARY_SIZES)
    return answer<size_t>(text_of(program).size(), size, out, needed);
  if (what != CL_PROGRAM_BINARIES || out == nullptr)
    return g_next->clGetProgramInfo(program, what, size, out, needed);
  const std::string text = text_of(program);
  std::memcpy(*static_cast<unsigned char**>(out), text.data(), text.size());
  return CL_SUCCESS;
}

}  // namespace

void replace_calls(cl_icd_dispatch& table) {
  table.clGetDeviceInfo = device_info;
  table.clGetExtensionFunctionAddressForPlatform = function_address;
  table.clCreateBufferWithProperties = create_buffer;
  table.clGetProgramInfo = program_info;
  table.clBuildProgram = build;
}

// ---- controls -----------------------------------------------------------------------------------------------

LAYER_EXPORT void stand_in_fail(const char* function, int skip) {
  const std::lock_guard lock(g_mutex);
  g_failing = function == nullptr ? "" : function;
  g_skip = skip;
}

LAYER_EXPORT long stand_in_calls(const char* function) {
  const std::lock_guard lock(g_mutex);
  return g_calls[function];
}

LAYER_EXPORT void stand_in_reset() {
  const std::lock_guard lock(g_mutex);
  g_calls.clear();
}

LAYER_EXPORT void stand_in_corrupt(bool corrupts) {
  const std::lock_guard lock(g_mutex);
  g_corrupts = corrupts;
}

LAYER_EXPORT void stand_in_hold(bool holds) {
  const std::lock_guard lock(g_hold_mutex);
  g_holds = holds;
  g_hold_changed.notify_all();
}

LAYER_EXPORT const char* stand_in_mistake() {
  const std::lock_guard lock(g_mutex);
  return g_mistake.c_str();
}

// ---- CUDA ---------------------------------------------------------------------------------------------------

#define CUDA_FUNCTION extern "C" __attribute__((visibility("default"))) CUresult
#define MAY_FAIL \
  if (fails(__func__)) return kUnknown
#define NEEDS_CONTEXT \
  MAY_FAIL;           \
  if (!has_context()) return static_cast<CUresult>(201)

CUDA_FUNCTION cuInit(unsigned) {
  MAY_FAIL;
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == kUnknown               ? "CUDA_ERROR_UNKNOWN"
                                            : "CUDA_ERROR_INVALID_VALUE";
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuDeviceGetCount(int* count) {
  MAY_FAIL;
  *count = 2;
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuDeviceGet(CUdevice* device, int number) {
  MAY_FAIL;
  *device = number;
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  MAY_FAIL;
  std::memcpy(uuid->bytes, device == 1 ? kUuid : "another device..", sizeof uuid->bytes);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  MAY_FAIL;
  static int any;
  *context = reinterpret_cast<CUcontext>(&any);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuCtxPushCurrent_v2(CUcontext context) {
  MAY_FAIL;
  t_current.push_back(context);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuCtxPopCurrent_v2(CUcontext* context) {
  if (t_current.empty()) return CUDA_ERROR_INVALID_VALUE;
  *context = t_current.back();
  t_current.pop_back();
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                            CUmemAllocationGranularity_flags) {
  NEEDS_CONTEXT;
  *granularity = kPage;
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                          const CUmemAllocationProp* prop, unsigned long long) {
  NEEDS_CONTEXT;
  if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->location.id != 1 || bytes % kPage != 0 ||
      prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  auto block = std::make_shared<Block>();
  block->fd = memfd_create("cuda", 0);
  block->bytes = bytes;
  if (block->fd < 0 || ftruncate(block->fd, static_cast<off_t>(bytes)) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(g_mutex);
  static CUmemGenericAllocationHandle last = 0;
  g_blocks[*handle = ++last] = block;
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(g_mutex);
  return g_blocks.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUDA_FUNCTION cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr,
                                  unsigned long long) {
  NEEDS_CONTEXT;
  void* const place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(place);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  munmap(reinterpret_cast<void*>(address), bytes);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemMap(CUdeviceptr address, size_t bytes, size_t,
                       CUmemGenericAllocationHandle handle, unsigned long long) {
  NEEDS_CONTEXT;
  const std::lock_guard lock(g_mutex);
  const std::shared_ptr<Block>& block = g_blocks.at(handle);
  block->data =
      static_cast<char*>(mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED, block->fd, 0));
  g_mapped[address] = block;
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const std::lock_guard lock(g_mutex);
  close(g_mapped.at(address)->fd);
  g_mapped.erase(address);
  mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
       -1, 0);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  NEEDS_CONTEXT;
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemExportToShareableHandle(void* handle, CUmemGenericAllocationHandle memory,
                                           CUmemAllocationHandleType, unsigned long long) {
  NEEDS_CONTEXT;
  const std::lock_guard lock(g_mutex);
  *static_cast<int*>(handle) = dup(g_blocks.at(memory)->fd);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* descriptor,
                                             CUmemAllocationHandleType type) {
  NEEDS_CONTEXT;
  struct stat of_fd {};
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(descriptor));
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat(fd, &of_fd) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  auto block = std::make_shared<Block>();
  block->fd = dup(fd);
  block->bytes = static_cast<size_t>(of_fd.st_size);
  const std::lock_guard lock(g_mutex);
  static CUmemGenericAllocationHandle last = CUmemGenericAllocationHandle{1} << 32;
  g_blocks[*handle = ++last] = block;
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  NEEDS_CONTEXT;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *memory == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemFreeHost(void* memory) {
  MAY_FAIL;
  std::free(memory);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes,
                                   CUstream stream) {
  NEEDS_CONTEXT;
  if (block_at(to, bytes) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  own<Stream>(stream)->give([=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NEEDS_CONTEXT;
  if (block_at(from, bytes) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  own<Stream>(stream)->give([=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
  return CUDA_SUCCESS;
}
// The code that a link makes of a text is the text.
CUDA_FUNCTION cuLinkCreate_v2(unsigned, CUjit_option*, void**, CUlinkState* link) {
  NEEDS_CONTEXT;
  *link = reinterpret_cast<CUlinkState>(new std::string);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuLinkAddData_v2(CUlinkState link, CUjitInputType type, void* data, size_t bytes,
                               const char*, unsigned, CUjit_option*, void**) {
  NEEDS_CONTEXT;
  if (type != CU_JIT_INPUT_PTX) return CUDA_ERROR_INVALID_VALUE;
  own<std::string>(link)->assign(static_cast<const char*>(data), bytes);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuLinkComplete(CUlinkState link, void** code, size_t* bytes) {
  NEEDS_CONTEXT;
  *code = own<std::string>(link)->data();
  *bytes = own<std::string>(link)->size();
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuLinkDestroy(CUlinkState link) {
  delete own<std::string>(link);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuModuleLoadData(CUmodule* module, const void* image) {
  NEEDS_CONTEXT;
  const std::string text = static_cast<const char*>(image);
  const std::string begin = "// program ";
  if (text.find("%envreg") != text.npos || !text.starts_with(begin))
    return static_cast<CUresult>(218);  // CUDA_ERROR_INVALID_PTX
  const std::lock_guard lock(g_mutex);
  const auto found = g_programs.find(text.substr(begin.size(), text.find('\n') - begin.size()));
  if (found == g_programs.end()) return static_cast<CUresult>(218);
  const size_t wait = text.find("griddepcontrol.wait;"), first = text.find("mov.b32");
  *module = reinterpret_cast<CUmodule>(new Module{found->second, wait < first, {}});
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuModuleUnload(CUmodule module) {
  delete own<Module>(module);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  NEEDS_CONTEXT;
  auto& all = own<Module>(module)->functions;
  all.push_back(std::make_unique<Function>(
      Function{own<Module>(module)->program, name, own<Module>(module)->waits}));
  *function = reinterpret_cast<CUfunction>(all.back().get());
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
  NEEDS_CONTEXT;
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuStreamCreate(CUstream* stream, unsigned) {
  NEEDS_CONTEXT;
  *stream = reinterpret_cast<CUstream>(Stream::start());
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuStreamDestroy_v2(CUstream stream) {
  Stream& ended = *own<Stream>(stream);
  const std::lock_guard lock(ended.mutex);
  ended.ends = true;
  ended.changed.notify_all();
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuStreamSynchronize(CUstream stream) {
  NEEDS_CONTEXT;
  own<Stream>(stream)->finish();
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  NEEDS_CONTEXT;
  const auto state = own<Event>(event)->state;
  const std::lock_guard lock(state->mutex);
  own<Stream>(stream)->give([state, recorded = state->recorded] { wait_until(*state, recorded); });
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  NEEDS_CONTEXT;
  own<Stream>(stream)->give([=] { function(data); });
  return CUDA_SUCCESS;
}

namespace {
CUresult fill(Node& node, CUfunction function, const unsigned (&groups)[3],
              const unsigned (&local)[3], void** arguments) {
  for (size_t d = 0; d < 3; ++d) {
    node.local[d] = local[d];
    node.global[d] = size_t{groups[d]} * local[d];
  }
  node.waits = own<Function>(function)->waits;
  return bind(node, *own<Function>(function), arguments);
}
}  // namespace

CUDA_FUNCTION cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned lx,
                             unsigned ly, unsigned lz, unsigned, CUstream stream, void** arguments,
                             void**) {
  NEEDS_CONTEXT;
  const auto node = std::make_shared<Node>();
  if (const CUresult result = fill(*node, function, {x, y, z}, {lx, ly, lz}, arguments);
      result != CUDA_SUCCESS)
    return result;
  own<Stream>(stream)->give([node] { run(*node); });
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuEventCreate(CUevent* event, unsigned) {
  NEEDS_CONTEXT;
  *event = reinterpret_cast<CUevent>(new Event);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuEventDestroy_v2(CUevent event) {
  delete own<Event>(event);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuEventRecord(CUevent event, CUstream stream) {
  NEEDS_CONTEXT;
  const auto state = own<Event>(event)->state;
  const std::lock_guard lock(state->mutex);
  own<Stream>(stream)->give([state, number = ++state->recorded] {
    const std::lock_guard reached(state->mutex);
    state->reached = std::max(state->reached, number);
    state->changed.notify_all();
  });
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuEventQuery(CUevent event) {
  NEEDS_CONTEXT;
  Event::State& state = *own<Event>(event)->state;
  const std::lock_guard lock(state.mutex);
  return state.reached >= state.recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUDA_FUNCTION cuEventSynchronize(CUevent event) {
  NEEDS_CONTEXT;
  Event::State& state = *own<Event>(event)->state;
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&, recorded = state.recorded] { return state.reached >= recorded; });
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuGraphCreate(CUgraph* graph, unsigned) {
  NEEDS_CONTEXT;
  *graph = reinterpret_cast<CUgraph>(new Graph);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuGraphDestroy(CUgraph graph) {
  delete own<Graph>(graph);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                      size_t count, const CUDA_KERNEL_NODE_PARAMS* p) {
  NEEDS_CONTEXT;
  auto made = std::make_shared<Node>();
  for (size_t i = 0; i < count; ++i) made->after.push_back(own<Node>(after[i]));
  if (const CUresult result = fill(*made, p->func, {p->gridDimX, p->gridDimY, p->gridDimZ},
                                   {p->blockDimX, p->blockDimY, p->blockDimZ}, p->kernelParams);
      result != CUDA_SUCCESS)
    return result;
  *node = reinterpret_cast<CUgraphNode>(made.get());
  own<Graph>(graph)->nodes.push_back(std::move(made));
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuGraphAddDependencies_v2(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                        const CUgraphEdgeData* edges, size_t count) {
  NEEDS_CONTEXT;
  for (size_t i = 0; i < count; ++i) {
    if (edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && !own<Node>(to[i])->waits)
      note("a kernel that does not wait is launched early");
    own<Node>(to[i])->after.push_back(own<Node>(from[i]));
  }
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                          unsigned long long) {
  NEEDS_CONTEXT;
  *executable = reinterpret_cast<CUgraphExec>(
      new std::shared_ptr<const Graph>(std::make_shared<Graph>(*own<Graph>(graph))));
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuGraphExecDestroy(CUgraphExec executable) {
  delete own<std::shared_ptr<const Graph>>(executable);
  return CUDA_SUCCESS;
}
CUDA_FUNCTION cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  NEEDS_CONTEXT;
  own<Stream>(stream)->give(
      [graph = *own<std::shared_ptr<const Graph>>(executable)] { run(*graph); });
  return CUDA_SUCCESS;
}
