// OpenCL devices: enumeration, naming, traits, and a context on one of them.
#pragma once

#include <CL/opencl.hpp>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "kernels/kernel.h"

namespace clinfer::ocl {

struct Device {
  cl::Platform platform;
  cl::Device device;
  DeviceInfo info;
};

struct Devices {
  std::vector<Device> usable;        // sorted as they are numbered
  std::vector<std::string> refused;  // "name (platform): reason"
  std::string pocl_note;             // what provide_pocl_cache() did; "" for nothing
};

// Lists all devices, once per process, under a lock, since the first use of some drivers is not
// thread-safe. If the first call names a `cache_folder`, drivers also keep their caches there. (It
// is no std::string, because GCC 13 and newer then take the result for a reference into a temporary
// argument.)
const Devices& devices(const char* cache_folder = "");

// Finds a device by name: "GPU" is "GPU.0", "CPU" is "CPU.0". Without a GPU the first CPU device
// takes the place of "GPU.0". Throws Error{no_device}, which tells what was looked at.
const Device& select_device(const std::string& name);

// Returns a warning if a CPU device takes the place of the GPU that `name` asks for; else "".
std::string note_of_stand_in(const std::string& name, const DeviceInfo& device);

// Returns the major version in "OpenCL 3.0 PoCL 6.0 Linux ..."; 0 for another platform.
int pocl_version(const Device& device);

// Returns true for Mesa's rusticl.
bool is_rusticl(const Device& device);

// Returns the UUID by which other interfaces of its driver know a device (cl_khr_device_uuid);
// nothing if the driver does not tell it.
std::optional<std::array<unsigned char, 16>> uuid_of(const Device& device);

bool host_has_avx_vnni();  // about the processor that this process runs on

// Finds the features that kernels may rely on. Compiles probes where an extension list cannot be
// trusted.
DeviceTraits query_traits(const Device& device, const cl::Context& context);

class VaSharing;

// Returns whether a list, as in CL_DEVICE_EXTENSIONS, names the extension.
bool has_extension(const std::string& list, std::string_view name);

// Returns "-cl-std=...", the language version with which kernels are built.
std::string language_option(const DeviceTraits& traits);

// A device with a context on it, shared by everything that runs there. All members are thread-safe.
struct Context : std::enable_shared_from_this<Context> {
  Device device;
  cl::Context context;
  DeviceTraits traits;
  std::shared_ptr<const VaSharing> va;  // set if the context is on a VA display (va_sharing.h)
  std::string sharing_problem;          // why it is not on a VA display although that was wanted

  // Wraps a context of the application.
  static std::shared_ptr<const Context> around(const Device& device, cl_context context,
                                               std::shared_ptr<const VaSharing> va);
  static std::shared_ptr<const Context> create(const Device& device,
                                               const cl_context_properties* properties = nullptr,
                                               std::shared_ptr<const VaSharing> va = nullptr);
};

// Returns the same context, on which kernels are built and chosen for sums in one order.
std::shared_ptr<const Context> with_ordered_sums(const Context& context);

// Returns `count` equal parts of a CPU's cores as devices of their own; none if the device cannot
// be divided like that or the context has no queues for parts. They are made once in a process and
// kept until its end, because PoCL 3.1 uses a part even after the last queue on it is gone.
std::vector<cl::Device> parts(const Context& context, unsigned count);

std::string error_name(cl_int code);  // "CL_OUT_OF_RESOURCES"

// Throws an OpenCL failure as Error; `doing` tells what was tried. Lack of memory becomes
// out_of_memory.
[[noreturn]] void rethrow(const cl::Error& error, const std::string& doing,
                          SourcePlace place = SourcePlace::here());

}  // namespace clinfer::ocl
