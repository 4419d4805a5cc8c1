// Lists OpenCL devices and finds their traits.
#include "engine/ocl/device.h"

#include <sys/resource.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <sys/platform/x86.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "engine/ocl/amx.h"
#include "engine/ocl/forks.h"
#include "engine/ocl/pocl_cache.h"
#include "kernels/base/system/leaving.h"
#include "kernels/base/system/processors.h"
#include "kernels/base/system/threads.h"
#include "kernels/base/text.h"

namespace clinfer::ocl {

namespace {

// Cleans a driver's string of padding and stray NULs, and makes it valid UTF-8.
std::string clean(const std::string& text) { return valid_utf8(trimmed(text.c_str())); }

// Parses "OpenCL 3.0 ..." to 30.
int version_of(const std::string& text) {
  int major = 0, minor = 0;
  if (std::sscanf(text.c_str(), "OpenCL %d.%d", &major, &minor) != 2) return 0;
  return major * 10 + minor;
}

std::string refusal(const cl::Device& device) {
  if (!device.getInfo<CL_DEVICE_AVAILABLE>()) return "the driver reports it as not available";
  if (!device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>()) return "its driver has no compiler";
  if (!device.getInfo<CL_DEVICE_ENDIAN_LITTLE>()) return "it is big-endian";
  const std::string version = clean(device.getInfo<CL_DEVICE_VERSION>());
  if (version_of(version) < 12) return "it offers " + version + ", OpenCL 1.2 is needed";
  return "";
}

DeviceInfo describe(const cl::Platform& platform, const cl::Device& device) {
  DeviceInfo info;
  info.name = clean(device.getInfo<CL_DEVICE_NAME>());
  info.vendor = clean(device.getInfo<CL_DEVICE_VENDOR>());
  info.platform = clean(platform.getInfo<CL_PLATFORM_NAME>());
  info.driver = clean(device.getInfo<CL_DRIVER_VERSION>());
  info.version = clean(device.getInfo<CL_DEVICE_VERSION>());
  info.is_cpu = (device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_CPU) != 0;
  cl_bool unified = CL_FALSE;
  clGetDeviceInfo(device(), CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, nullptr);
  info.is_integrated = !info.is_cpu && unified;
  info.compute_units = device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>();
  info.memory = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
  // CPU devices that offer half compute it in float. NVIDIA's driver does not list cl_khr_fp16
  // although it compiles.
  info.fp16 =
      !info.is_cpu && (has_extension(device.getInfo<CL_DEVICE_EXTENSIONS>(), "cl_khr_fp16") ||
                       info.vendor.find("NVIDIA") != std::string::npos);
  return info;
}

// Limits PoCL, which starts a thread for each core of the machine, to the cores that this process
// may use; more threads would take turns on them.
void limit_pocl_threads() {
  // The name since PoCL 4, and the one before it.
  constexpr const char* kNames[] = {"POCL_CPU_MAX_CU_COUNT", "POCL_MAX_PTHREAD_COUNT"};
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (available_processors() >= std::thread::hardware_concurrency() ||
      std::ranges::any_of(kNames, is_set))
    return;
  const std::string count = std::to_string(available_processors());
  for (const char* name : kNames) setenv(name, count.c_str(), 1);
}

// Tries to start as many threads as PoCL will when it is first asked for devices, because PoCL
// aborts the process if it cannot.
void check_threads() {
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < available_processors(); ++i)
    threads.push_back(start_thread<std::jthread>([](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }));
}

// Restores variables of Khronos's loader, which cuts these lists after their first entry, in place,
// while it reads them. Compiler processes inherit them and must find the same devices.
class LoaderLists {
 public:
  LoaderLists() {
    for (size_t i = 0; i < values_.size(); ++i)
      if (const char* value = std::getenv(kNames[i])) values_[i] = value;
  }
  ~LoaderLists() {
    for (size_t i = 0; i < values_.size(); ++i)
      if (const char* now = std::getenv(kNames[i]); now != nullptr && values_[i] != now)
        setenv(kNames[i], values_[i].c_str(), 1);
  }
  LoaderLists(const LoaderLists&) = delete;
  LoaderLists& operator=(const LoaderLists&) = delete;

 private:
  static constexpr std::array kNames{"OCL_ICD_FILENAMES", "OPENCL_LAYERS"};
  std::array<std::string, kNames.size()> values_;
};

constexpr const char* kPocl = "Portable Computing Language";

Devices enumerate(const std::string& cache_folder) {
  limit_pocl_threads();
  check_threads();
  const LoaderLists lists;
  Devices found;
  std::vector<cl::Platform> platforms;
  try {
    cl::Platform::get(&platforms);
  } catch (const cl::Error& error) {
    if (error.err() != CL_PLATFORM_NOT_FOUND_KHR) rethrow(error, "listing the OpenCL platforms");
  }
  std::vector<Device> integrated, discrete, cpus;
  for (const cl::Platform& platform : platforms) {
    std::string name = "a platform";
    std::vector<cl::Device> devices;
    try {
      name = clean(platform.getInfo<CL_PLATFORM_NAME>());
      bool usable = true;
      if (name == kPocl) {
        PoclCache cache = provide_pocl_cache(cache_folder);
        found.pocl_note = std::move(cache.note);
        usable = cache.usable;  // otherwise PoCL would end the process
      }
      if (usable) platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
    } catch (const cl::Error& error) {
      if (error.err() != CL_DEVICE_NOT_FOUND) {
        found.refused.push_back(name + ": no device (" + error_name(error.err()) + ")");
        continue;
      }
    }
    if (devices.empty())
      found.refused.push_back(
          name + ": no device" +
          (name == kPocl && !found.pocl_note.empty() ? " (" + found.pocl_note + ")" : ""));
    for (const cl::Device& device : devices) {
      try {
        Device entry{platform, device, describe(platform, device)};
        if (const std::string why = refusal(device); !why.empty())
          found.refused.push_back(entry.info.name + " (" + name + "): " + why);
        else
          (entry.info.is_cpu          ? cpus
           : entry.info.is_integrated ? integrated
                                      : discrete)
              .push_back(std::move(entry));
      } catch (const cl::Error& error) {
        found.refused.push_back("a device of " + name + ": " + error.what() + " failed with " +
                                error_name(error.err()));
      }
    }
  }
  size_t gpu = 0, cpu = 0;
  for (auto* list : {&integrated, &discrete})
    for (Device& device : *list) {
      device.info.id = "GPU." + std::to_string(gpu++);
      found.usable.push_back(std::move(device));
    }
  for (Device& device : cpus) {
    device.info.id = "CPU." + std::to_string(cpu++);
    found.usable.push_back(std::move(device));
  }
  return found;
}

std::string looked_at(const Devices& all) {
  std::string text;
  for (const Device& device : all.usable)
    text += (text.empty() ? "" : "; ") + device.info.id + " = " + device.info.name;
  for (const std::string& refused : all.refused)
    text += (text.empty() ? "" : "; ") + ("refused " + refused);
  if (!text.empty()) return "found " + text;
  text =
      "no OpenCL platform is installed (is there an .icd file in /etc/OpenCL/vendors? "
      "Debian: intel-opencl-icd for Intel GPUs, pocl-opencl-icd for any CPU)";
  rlimit memory{};
  if (getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur != RLIM_INFINITY)
    text += ", or its driver finds no room below the process's limit of memory (ulimit -v)";
  return text;
}

constexpr const char* kLanguage = "-cl-std=CL1.2";
// Integer dot products are functions of OpenCL C 3.0.
constexpr const char* kLanguageWithDot = "-cl-std=CL3.0";

// Returns the dot product of the host's processor. PoCL compiles for that processor, or for an
// older one if its compiler does not know it. Inline assembly may use any instruction, but only on
// vectors that the compiler knows.
DotProduct dot_of_host([[maybe_unused]] unsigned vector_width) {
#if defined(__x86_64__)
  const bool wide = vector_width >= 16;
  if (wide && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl"))
    return DotProduct::avx512;
  if (vector_width < 8) return DotProduct::none;
  if (host_has_avx_vnni()) return DotProduct::avx;
  // Vectors of 16 need AVX-512BW; PoCL's code for AVX2 also needs FMA.
  if (wide ? __builtin_cpu_supports("avx512bw")
           : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return DotProduct::pairs;
#endif
  return DotProduct::none;
}

Bf16 bf16_of_host([[maybe_unused]] unsigned vector_width) {
#if defined(__x86_64__)
  if (vector_width >= 16 && __builtin_cpu_supports("avx512bf16") &&
      __builtin_cpu_supports("avx512vl"))
    return Bf16::avx512;
#endif
  return Bf16::none;
}

// Returns whether a small kernel compiles on the device.
bool compiles(const cl::Context& context, const cl::Device& device, const char* source,
              const char* language = kLanguage) {
  try {
    cl::Program(context, std::string(source)).build(device, language);
    return true;
  } catch (const cl::Error&) {
    return false;
  }
}

// Kernels that show what NVIDIA's driver compiles.
constexpr const char* kHalf =
    "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
    "__kernel void probe_half(__global half *x) { x[0] = x[0] * x[1] + x[2]; }\n";
constexpr const char* kDotPtx =
    "__kernel void probe_dot(__global int *x) {\n"
    "  int d;\n"
    "  asm(\"dp4a.u32.s32 %0, %1, %2, %3;\" : \"=r\"(d) : \"r\"(x[0]), \"r\"(x[1]), \"r\"(x[2]));\n"
    "  x[3] = d;\n"
    "}\n";
constexpr const char* kMatrixPtx =
    "__kernel void probe_matrix(__global int *x) {\n"
    "  float f0 = x[0], f1 = x[1], f2 = x[2], f3 = x[3];\n"
    "  int i0 = x[0], i1 = x[1], i2 = x[2], i3 = x[3];\n"
    "  asm(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 \"\n"
    "      \"{%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};\"\n"
    "      : \"+f\"(f0), \"+f\"(f1), \"+f\"(f2), \"+f\"(f3) : \"r\"(x[4]));\n"
    "  asm(\"mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 \"\n"
    "      \"{%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};\"\n"
    "      : \"+r\"(i0), \"+r\"(i1), \"+r\"(i2), \"+r\"(i3) : \"r\"(x[4]));\n"
    "  x[5] = (int)(f0 + f1 + f2 + f3) + i0 + i1 + i2 + i3;\n"
    "}\n";
// Returns whether the device has warpgroup matrix instructions, and its driver's assembler is known
// to take them with more than 48 KiB of local memory. It is not probed, because an assembler may
// crash on what it refuses.
bool has_wgmma(const cl::Device& device) {
  constexpr cl_device_info kMajor = 0x4000, kMinor = 0x4001;  // CL_DEVICE_COMPUTE_CAPABILITY_*_NV
  cl_uint major = 0, minor = 0;
  return clGetDeviceInfo(device(), kMajor, sizeof major, &major, nullptr) == CL_SUCCESS &&
         clGetDeviceInfo(device(), kMinor, sizeof minor, &minor, nullptr) == CL_SUCCESS &&
         major == 9 && minor == 0 && std::atoi(device.getInfo<CL_DRIVER_VERSION>().c_str()) >= 580;
}

// Finds DeviceTraits::sub_groups for devices of Intel's drivers.
unsigned sub_groups_of(const cl::Device& device, const std::string& extensions) {
  for (const char* needed :
       {"cl_intel_subgroups", "cl_intel_subgroups_short", "cl_intel_required_subgroup_size"})
    if (!has_extension(extensions, needed)) return 0;
  constexpr cl_device_info kSizes = 0x4108;  // CL_DEVICE_SUB_GROUP_SIZES_INTEL
  std::array<size_t, 16> sizes{};
  size_t bytes = 0;
  if (clGetDeviceInfo(device(), kSizes, sizeof sizes, sizes.data(), &bytes) != CL_SUCCESS) return 0;
  unsigned sum = 0;
  for (size_t i = 0; i < bytes / sizeof sizes[0]; ++i)
    if (sizes[i] == 8 || sizes[i] == 16 || sizes[i] == 32) sum |= static_cast<unsigned>(sizes[i]);
  return sum;
}

// Finds the matrix instructions of a device with sub-groups. Devices whose smallest sub-group has
// eight lanes use the operands for eight lanes.
MatrixUnit xmx_of(const DeviceTraits& traits, const std::string& extensions,
                  const cl::Context& context, const cl::Device& device) {
  if (!has_extension(extensions, "cl_intel_subgroup_matrix_multiply_accumulate"))
    return MatrixUnit::none;
  const bool eight = (traits.sub_groups & 8) != 0;
  const std::string lanes = eight ? "8" : "16", row = eight ? "int8" : "short8";
  // Calls the function as the kernels do: with eight lanes the first operand is weights, with
  // sixteen lanes pixels.
  const std::string sums =
      eight ? "i8_u8_matrix_mad_k32(a, as_uint8(w[i])" : "u8_i8_matrix_mad_k32(as_ushort8(a), w[i]";
  const std::string program = "__attribute__((intel_reqd_sub_group_size(" + lanes +
                              ")))\n"
                              "__kernel void probe(__global float8 *x, __global int8 *w) {\n"
                              "  const size_t i = get_global_id(0);\n"
                              "  const " +
                              row + " a = convert_" + row +
                              "(w[i]);\n"
                              "  const int8 sums = intel_sub_group_" +
                              sums +
                              ", w[i + 99]);\n"
                              "  x[i] = intel_sub_group_f16_f16_matrix_mad_k16(a, w[i], x[i]) + "
                              "convert_float8(sums);\n"
                              "}\n";
  if ((traits.sub_groups & (8 + 16)) == 0 || !compiles(context, device, program.c_str()))
    return MatrixUnit::none;
  return eight ? MatrixUnit::xmx8 : MatrixUnit::xmx16;
}

// Finds DeviceTraits::blocks_2d for devices with such matrix instructions. Calls the functions as
// kernels/common/sub_group_matrix.cl does.
Blocks2d blocks_2d_of(const DeviceTraits& traits, const std::string& extensions,
                      const cl::Context& context, const cl::Device& device) {
  if (traits.matrix != MatrixUnit::xmx16) return Blocks2d::none;
  const std::string start =
      "#ifndef cl_intel_subgroup_extended_block_read\n"
      "ushort16 intel_subgroup_block_read_u16_m8k16v2(__global void *, int, int, int, int2);\n"
      "#endif\n"
      "__attribute__((intel_reqd_sub_group_size(16)))\n"
      "__kernel void probe(__global ushort *x) {\n"
      "  ushort values[16];\n";
  const std::string end = "  x[get_global_id(0)] = values[9];\n}\n";
  const std::string io =
      "  intel_sub_group_2d_block_read_16b_8r16x2c(x, 64, 8, 64, (int2)(0, 0), values);\n";
  const std::string extended =
      "  vstore16(intel_subgroup_block_read_u16_m8k16v2(x, 64, 8, 64, (int2)(0, 0)), 0, values);\n";
  if (has_extension(extensions, "cl_intel_subgroup_2d_block_io") &&
      compiles(context, device, (start + io + end).c_str()))
    return Blocks2d::io;
  if (has_extension(extensions, "cl_intel_subgroup_extended_block_read") &&
      compiles(context, device, (start + extended + end).c_str()))
    return Blocks2d::extended;
  return Blocks2d::none;
}

}  // namespace

namespace {

std::atomic<pid_t> opener{0};  // the process that listed the devices

}  // namespace

void refuse_forks() {
  const pid_t id = opener;
  if (id != 0 && id != getpid())
    throw Error(ErrorCode::no_device,
                "this process is a fork of one that has opened the OpenCL devices, and their "
                "drivers' threads are not in it: fork before the first model is compiled, or start "
                "new programs instead (in Python: multiprocessing.set_start_method(\"spawn\"))");
}

const Devices& devices(const char* cache_folder) {
  refuse_forks();
  static std::mutex mutex;
  static const Devices* all = nullptr;  // never destroyed, because threads may outlive statics
  const std::lock_guard lock(mutex);
  if (all == nullptr) {
    const ExitWaits exit_waits;
    all = new Devices(enumerate(cache_folder));
    opener = getpid();
  }
  return *all;
}

const Device& select_device(const std::string& name) {
  const Devices& all = devices();
  const bool first_gpu = name == "GPU" || name == "GPU.0" || name.empty();
  const std::string wanted = first_gpu ? "GPU.0" : name == "CPU" ? "CPU.0" : name;
  for (const Device& device : all.usable)
    if (device.info.id == wanted) return device;
  // "GPU.0" means the best device, so a CPU serves where there is no GPU.
  if (first_gpu && !all.usable.empty()) return all.usable.front();
  const bool several = name.find(':') != std::string::npos || name == "AUTO";
  const std::string why = several ? " (one device is needed here, not several)" : "";
  throw Error(ErrorCode::no_device,
              "no OpenCL device \"" + name + "\"" + why + ": " + looked_at(all));
}

std::string note_of_stand_in(const std::string& name, const DeviceInfo& device) {
  if (!device.is_cpu || name.rfind("CPU", 0) == 0) return "";
  return "there is no GPU: " + device.id + ", " + device.name +
         ", computes instead; `clinfer devices` says what was found";
}

bool has_extension(const std::string& list, std::string_view name) {
  return (" " + list + " ").find(" " + std::string(name) + " ") != std::string::npos;
}

std::string language_option(const DeviceTraits& traits) {
  return traits.dot == DotProduct::khr ? kLanguageWithDot : kLanguage;
}

bool host_has_avx_vnni() {
#if defined(__x86_64__)
  return x86_cpu_active(x86_cpu_AVX_VNNI);  // compilers before GCC 13 have no name for it
#else
  return false;
#endif
}

int pocl_version(const Device& device) {
  const auto text = device.platform.getInfo<CL_PLATFORM_VERSION>();
  const size_t at = text.find("PoCL ");
  if (at != std::string::npos) return std::atoi(text.c_str() + at + 5);
  const size_t old = text.find("pocl ");  // the form of PoCL 3.1
  return old == std::string::npos ? 0 : std::atoi(text.c_str() + old + 5);
}

bool is_rusticl(const Device& device) { return device.info.platform == "rusticl"; }

std::optional<std::array<unsigned char, 16>> uuid_of(const Device& device) {
  constexpr cl_device_info kUuid = 0x106A;  // CL_DEVICE_UUID_KHR
  std::array<unsigned char, 16> uuid{};
  if (!has_extension(device.device.getInfo<CL_DEVICE_EXTENSIONS>(), "cl_khr_device_uuid") ||
      clGetDeviceInfo(device.device(), kUuid, sizeof uuid, uuid.data(), nullptr) != CL_SUCCESS)
    return std::nullopt;
  return uuid;
}

DeviceTraits query_traits(const Device& entry, const cl::Context& context) {
  const cl::Device& device = entry.device;
  DeviceTraits traits;
  traits.name = entry.info.name;
  // Mesa computes work-items on a CPU as GPUs do, several of them in the lanes of a vector.
  traits.is_cpu = entry.info.is_cpu && !is_rusticl(entry);
  traits.compute_units = entry.info.compute_units;
  traits.max_work_group = device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>();
  traits.local_memory = device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>();
  traits.vector_width = std::max<cl_uint>(1, device.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>());
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  if (contains(entry.info.platform, kPocl))
    traits.vendor = Vendor::pocl;
  else if (contains(entry.info.vendor, "NVIDIA"))
    traits.vendor = Vendor::nvidia;
  else if (contains(entry.info.vendor, "Intel"))
    traits.vendor = Vendor::intel;
  else if (contains(entry.info.vendor, "Advanced Micro") || contains(entry.info.vendor, "AMD"))
    traits.vendor = Vendor::amd;
  else if (contains(entry.info.vendor, "ARM"))
    traits.vendor = Vendor::arm;
  const std::string extensions = device.getInfo<CL_DEVICE_EXTENSIONS>();
  const bool nvidia = traits.vendor == Vendor::nvidia;
  // Each program takes 0.1 s when first compiled; new devices accept all at once.
  const bool takes_all =
      nvidia && compiles(context, device, (std::string(kHalf) + kDotPtx + kMatrixPtx).c_str());
  const auto takes = [&](const char* probe) {
    return takes_all || compiles(context, device, probe);
  };
  traits.fp16 = has_extension(extensions, "cl_khr_fp16") || (entry.info.fp16 && takes(kHalf));
  if (nvidia && takes(kDotPtx)) {
    traits.dot = DotProduct::ptx;
  } else if (traits.vendor == Vendor::pocl) {
    // Takes only versions that were tested, because inline assembly is needed.
    const int version = pocl_version(entry);
    if (traits.is_cpu && (version < 4 || version == 5 || version == 6)) {
      traits.dot = dot_of_host(traits.vector_width);
      traits.bf16 = bf16_of_host(traits.vector_width);
      traits.no_amx = amx_problem();
      if (traits.no_amx.empty()) traits.matrix = MatrixUnit::amx;
    }
  } else if (has_extension(extensions, "cl_khr_integer_dot_product") &&
             // Kernels for Intel's GPUs do not use the function.
             (traits.vendor == Vendor::intel ||
              compiles(context, device,
                       "__kernel void probe(__global uint *x) { x[2] = "
                       "dot_4x8packed_us_int(x[0], x[1]); }",
                       kLanguageWithDot))) {
    traits.dot = DotProduct::khr;
  }
  if (nvidia && takes(kMatrixPtx)) traits.matrix = MatrixUnit::ptx;
  traits.wgmma = nvidia && has_wgmma(device);
  if (traits.vendor == Vendor::intel) {
    traits.sub_groups = sub_groups_of(device, extensions);
    traits.matrix = xmx_of(traits, extensions, context, device);
    traits.blocks_2d = blocks_2d_of(traits, extensions, context, device);
  }
  return traits;
}

std::vector<cl::Device> parts(const Context& context, unsigned count) {
  using Key = std::pair<cl_device_id, unsigned>;
  static std::mutex mutex;
  static auto& made = *new std::map<Key, std::vector<cl::Device>>;  // never freed
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = made.try_emplace(Key{context.device.device(), count});
  std::vector<cl::Device>& parts = entry->second;
  if (!is_new || count < 2) return parts;
  try {
    cl::Device whole = context.device.device;
    const auto units = whole.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>();
    if (units < count || !(whole.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_CPU)) return parts;
    const cl_device_partition_property equally[] = {
        CL_DEVICE_PARTITION_EQUALLY, static_cast<cl_device_partition_property>(units / count), 0};
    whole.createSubDevices(equally, &parts);
    if (parts.size() >= count)
      parts.resize(count);
    else
      parts.clear();
    // Fails on Intel's runtime, which has no queues for parts of a device for which the context was
    // made.
    if (!parts.empty()) cl::CommandQueue(context.context, parts[0]);
  } catch (const cl::Error&) {
    parts.clear();  // the driver has no sub-devices, so streams share the whole device
  }
  return parts;
}

std::shared_ptr<const Context> Context::create(const Device& device,
                                               const cl_context_properties* properties,
                                               std::shared_ptr<const VaSharing> va) {
  try {
    auto result = std::make_shared<Context>();
    result->device = device;
    result->context = cl::Context(device.device, properties);
    result->va = std::move(va);
    result->traits = query_traits(device, result->context);
    return result;
  } catch (const cl::Error& error) {
    rethrow(error, "creating an OpenCL context on " + device.info.name);
  }
}

std::shared_ptr<const Context> Context::around(const Device& device, cl_context context,
                                               std::shared_ptr<const VaSharing> va) {
  auto result = std::make_shared<Context>();
  result->device = device;
  result->context = cl::Context(context, true);
  result->va = std::move(va);
  result->traits = query_traits(device, result->context);
  return result;
}

std::shared_ptr<const Context> with_ordered_sums(const Context& context) {
  auto result = std::make_shared<Context>(context);
  result->traits.ordered_sums = true;
  return result;
}

std::string error_name(cl_int code) {
  switch (code) {
#define CLINFER_NAME(name) \
  case name:               \
    return #name
    CLINFER_NAME(CL_DEVICE_NOT_FOUND);
    CLINFER_NAME(CL_DEVICE_NOT_AVAILABLE);
    CLINFER_NAME(CL_COMPILER_NOT_AVAILABLE);
    CLINFER_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE);
    CLINFER_NAME(CL_OUT_OF_RESOURCES);
    CLINFER_NAME(CL_OUT_OF_HOST_MEMORY);
    CLINFER_NAME(CL_PROFILING_INFO_NOT_AVAILABLE);
    CLINFER_NAME(CL_BUILD_PROGRAM_FAILURE);
    CLINFER_NAME(CL_MAP_FAILURE);
    CLINFER_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CLINFER_NAME(CL_INVALID_VALUE);
    CLINFER_NAME(CL_INVALID_DEVICE);
    CLINFER_NAME(CL_INVALID_CONTEXT);
    CLINFER_NAME(CL_INVALID_QUEUE_PROPERTIES);
    CLINFER_NAME(CL_INVALID_COMMAND_QUEUE);
    CLINFER_NAME(CL_INVALID_MEM_OBJECT);
    CLINFER_NAME(CL_INVALID_BINARY);
    CLINFER_NAME(CL_INVALID_BUILD_OPTIONS);
    CLINFER_NAME(CL_INVALID_PROGRAM);
    CLINFER_NAME(CL_INVALID_PROGRAM_EXECUTABLE);
    CLINFER_NAME(CL_INVALID_KERNEL_NAME);
    CLINFER_NAME(CL_INVALID_KERNEL);
    CLINFER_NAME(CL_INVALID_ARG_INDEX);
    CLINFER_NAME(CL_INVALID_ARG_VALUE);
    CLINFER_NAME(CL_INVALID_ARG_SIZE);
    CLINFER_NAME(CL_INVALID_KERNEL_ARGS);
    CLINFER_NAME(CL_INVALID_WORK_DIMENSION);
    CLINFER_NAME(CL_INVALID_WORK_GROUP_SIZE);
    CLINFER_NAME(CL_INVALID_WORK_ITEM_SIZE);
    CLINFER_NAME(CL_INVALID_EVENT_WAIT_LIST);
    CLINFER_NAME(CL_INVALID_EVENT);
    CLINFER_NAME(CL_INVALID_OPERATION);
    CLINFER_NAME(CL_INVALID_BUFFER_SIZE);
    CLINFER_NAME(CL_INVALID_GLOBAL_WORK_SIZE);
    CLINFER_NAME(CL_PLATFORM_NOT_FOUND_KHR);
#undef CLINFER_NAME
    default:
      return "OpenCL error " + std::to_string(code);
  }
}

void rethrow(const cl::Error& error, const std::string& doing, SourcePlace place) {
  const cl_int code = error.err();
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
                      code == CL_INVALID_BUFFER_SIZE;
  throw Error(
      memory ? ErrorCode::out_of_memory : ErrorCode::device_failed,
      doing + " failed: " + (error.what() ? error.what() : "OpenCL") + " gave " + error_name(code),
      place);
}

}  // namespace clinfer::ocl
