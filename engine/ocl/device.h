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
  std::vector<Device> usable;        // in the order of their names
  std::vector<std::string> refused;  // "name (platform): reason"
  std::string pocl_note;             // what provide_pocl_cache() did; "": nothing
};

// Asks all platforms once per process (first use of some drivers is not thread-safe, so under a
// lock). The first call's `cache_folder`, where it has one, is also for what drivers keep. (GCC 13
// and newer take the result for a reference into an argument that is a temporary object.)
const Devices& devices(const char* cache_folder = "");

// Finds a device by name: "GPU" is "GPU.0", "CPU" is "CPU.0". Without a GPU the first CPU device
// takes the place of "GPU.0". Throws Error{no_device} that says what was looked at.
const Device& select_device(const std::string& name);

// A warning where a CPU device takes the place of the GPU that `name` asks for; else "".
std::string note_of_stand_in(const std::string& name, const DeviceInfo& device);

// The major version in "OpenCL 3.0 PoCL 6.0 Linux ..."; 0 where the platform is another.
int pocl_version(const Device& device);

// The identity that other interfaces of its driver know a device by (cl_khr_device_uuid); none where
// the driver does not tell.
std::optional<std::array<unsigned char, 16>> uuid_of(const Device& device);

bool host_has_avx_vnni();  // the processor that we run on

// The device features that kernels may rely on. Probes by compiling where an extension list cannot
// be trusted.
DeviceTraits query_traits(const Device& device, const cl::Context& context);

class VaSharing;

// Returns whether a list as CL_DEVICE_EXTENSIONS gives it names the extension.
bool has_extension(const std::string& list, std::string_view name);

// "-cl-std=...": the language version that kernels are built with.
std::string language_option(const DeviceTraits& traits);

// One device with a context on it. Shared by all that run there; everything in it is thread-safe.
struct Context : std::enable_shared_from_this<Context> {
  Device device;
  cl::Context context;
  DeviceTraits traits;
  std::shared_ptr<const VaSharing>
      va;                       // where the context is on a VA display (va_sharing.h), else null
  std::string sharing_problem;  // why it is on none although one was wanted

  // Wraps a context of the application's.
  static std::shared_ptr<const Context> around(const Device& device, cl_context context,
                                               std::shared_ptr<const VaSharing> va);
  static std::shared_ptr<const Context> create(const Device& device,
                                               const cl_context_properties* properties = nullptr,
                                               std::shared_ptr<const VaSharing> va = nullptr);
};

// `count` equal parts of a CPU's cores as devices of their own; empty where the device cannot be
// parted so, or the context has no queues for parts. Made once in a process and kept until its end:
// PoCL 3.1 still uses a part when the last queue on it has gone.
std::vector<cl::Device> parts(const Context& context, unsigned count);

std::string error_name(cl_int code);  // "CL_OUT_OF_RESOURCES"

// Turns an OpenCL failure into Error; `doing` says what was tried. Memory shortage becomes
// out_of_memory.
[[noreturn]] void rethrow(const cl::Error& error, const std::string& doing,
                          SourcePlace place = SourcePlace::here());

}  // namespace clinfer::ocl
