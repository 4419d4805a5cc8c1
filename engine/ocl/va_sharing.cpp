// Shares surfaces of a VA-API display as OpenCL images.
#include "engine/ocl/va_sharing.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace clinfer::ocl {

namespace {

// Names and numbers of the extension's specification.
constexpr const char* kExtension = "cl_intel_va_api_media_sharing";
constexpr cl_uint kDisplaySource = 0x4094;                 // CL_VA_API_DISPLAY_INTEL
constexpr cl_uint kPreferredDevices = 0x4095;              // CL_PREFERRED_DEVICES_FOR_VA_API_INTEL
constexpr cl_context_properties kContextDisplay = 0x4097;  // CL_CONTEXT_VA_API_DISPLAY_INTEL
using GetDevices = cl_int(CL_API_CALL*)(cl_platform_id, cl_uint, void*, cl_uint, cl_uint,
                                        cl_device_id*, cl_uint*);

// Returns the devices with which the display's surfaces can be shared, preferred ones first, or
// sets `problem` if there are none.
std::vector<const Device*> devices_of(const VaDisplay& display, std::string& problem) {
  std::vector<const Device*> found;
  std::vector<cl_platform_id> asked;
  problem = std::string("no OpenCL device offers ") + kExtension;
  for (const Device& candidate : devices().usable) {
    const cl_platform_id platform = candidate.platform();
    if (std::find(asked.begin(), asked.end(), platform) != asked.end()) continue;
    asked.push_back(platform);
    if (!has_extension(candidate.platform.getInfo<CL_PLATFORM_EXTENSIONS>(), kExtension) &&
        !has_extension(candidate.device.getInfo<CL_DEVICE_EXTENSIONS>(), kExtension))
      continue;
    const auto get = extension_function<GetDevices>(candidate.platform,
                                                    "clGetDeviceIDsFromVA_APIMediaAdapterINTEL");
    if (get == nullptr) continue;
    cl_device_id ids[16] = {};
    cl_uint count = 0;
    const cl_int status = get(platform, kDisplaySource, display.handle, kPreferredDevices,
                              static_cast<cl_uint>(std::size(ids)), ids, &count);
    if (status != CL_SUCCESS || count == 0) {
      problem = candidate.info.platform + " has no device for the VA display " + display.name +
                " (" + error_name(status) + ")";
      continue;
    }
    for (cl_uint i = 0; i < std::min<cl_uint>(count, std::size(ids)); ++i)
      for (const Device& device : devices().usable)
        if (device.device() == ids[i]) found.push_back(&device);
  }
  return found;
}

std::string describe(const Device& device) {
  return device.info.name + " (" + device.info.id + ")";
}

// Returns the context of a device, which all models share while one of them lives, so that each can
// use what another model's requests leave in the device's memory.
std::shared_ptr<const Context> default_context(const Device& device) {
  struct Contexts {
    std::mutex mutex;
    std::map<cl_device_id, std::weak_ptr<const Context>> of;
  };
  static Contexts& contexts = *new Contexts;  // used until the process ends
  const std::lock_guard lock(contexts.mutex);
  std::weak_ptr<const Context>& known = contexts.of[device.device()];
  std::shared_ptr<const Context> context = known.lock();
  if (context == nullptr) known = context = Context::create(device);
  return context;
}

}  // namespace

int Surface::width() const {
  return static_cast<int>(std::min(planes_[0].getImageInfo<CL_IMAGE_WIDTH>(),
                                   2 * planes_[1].getImageInfo<CL_IMAGE_WIDTH>()));
}

int Surface::height() const {
  return static_cast<int>(std::min(planes_[0].getImageInfo<CL_IMAGE_HEIGHT>(),
                                   2 * planes_[1].getImageInfo<CL_IMAGE_HEIGHT>()));
}

void Surface::drop() {
  uses_.close([&] { planes_ = {}; });
}

VaSharing::VaSharing(const cl::Platform& platform) {
  create_ = extension_function<Create>(platform, "clCreateFromVA_APIMediaSurfaceINTEL");
  functions_.acquire_name = "clEnqueueAcquireVA_APIMediaSurfacesINTEL";
  functions_.release_name = "clEnqueueReleaseVA_APIMediaSurfacesINTEL";
  functions_.acquire =
      extension_function<AcquireReleaseFunctions::Enqueue>(platform, functions_.acquire_name);
  functions_.release =
      extension_function<AcquireReleaseFunctions::Enqueue>(platform, functions_.release_name);
  if (create_ == nullptr || functions_.acquire == nullptr || functions_.release == nullptr)
    throw Error(ErrorCode::unsupported, std::string("the OpenCL driver names ") + kExtension +
                                            " but lacks functions of it");
}

std::shared_ptr<Surface> VaSharing::import(const cl::Context& context, unsigned id) const {
  auto surface = std::make_shared<Surface>(context, id);
  for (cl_uint plane = 0; plane < 2; ++plane) {
    cl_int status = CL_SUCCESS;
    const cl_mem image = create_(context(), CL_MEM_READ_ONLY, &surface->id_, plane, &status);
    if (image == nullptr || status != CL_SUCCESS)
      throw Error(ErrorCode::device_failed, std::string("the ") + (plane == 0 ? "Y" : "UV") +
                                                " plane of VA surface " + std::to_string(id) +
                                                " cannot be shared with OpenCL (" +
                                                error_name(status) + ")");
    surface->planes_[plane] = cl::Image2D(image);
  }
  return surface;
}

void VaSharing::with_acquired(const cl::CommandQueue& queue, Surface& surface,
                              const AcquireRelease::Use& use) const {
  const cl_mem images[] = {surface.planes_[0](), surface.planes_[1]()};
  surface.uses_.with_acquired(functions_, queue, images, use);
}

DisplayMatch match_display(const std::string& device, const VaDisplay& display) {
  if (display.handle == nullptr) return {&select_device(device), nullptr, ""};
  try {
    std::string problem;
    const std::vector<const Device*> shared = devices_of(display, problem);
    if (shared.empty()) return {&select_device(device), nullptr, problem};
    if (device.empty() || device == "GPU") return {shared.front(), display.handle, ""};
    const Device& named = select_device(device);
    if (std::find(shared.begin(), shared.end(), &named) == shared.end())
      throw Error(ErrorCode::no_device,
                  "the frames are surfaces of the VA display " + display.name +
                      ", whose OpenCL device is " + describe(*shared.front()) +
                      ", but device=" + device + " is " + describe(named) +
                      ": set device=" + shared.front()->info.id + ", or decode on the other one");
    return {&named, display.handle, ""};
  } catch (const cl::Error& error) {
    rethrow(error, "looking for the OpenCL device of a VA display");
  }
}

std::shared_ptr<const VaSharing> sharing_of(const cl::Platform& platform,
                                            const cl::Context& context) {
  // Avoids a crash of PoCL 3.1, when it is asked for properties of a context that has none.
  size_t bytes = 0;
  if (clGetContextInfo(context(), CL_CONTEXT_PROPERTIES, 0, nullptr, &bytes) != CL_SUCCESS ||
      bytes == 0)
    return nullptr;
  std::vector<cl_context_properties> properties(bytes / sizeof(cl_context_properties));
  const cl_int status =
      clGetContextInfo(context(), CL_CONTEXT_PROPERTIES, bytes, properties.data(), nullptr);
  if (status != CL_SUCCESS) throw cl::Error(status, "clGetContextInfo");
  for (size_t i = 0; i + 1 < properties.size() && properties[i] != 0; i += 2)
    if (properties[i] == kContextDisplay) return std::make_shared<VaSharing>(platform);
  return nullptr;
}

std::shared_ptr<const Context> create_context(const DisplayMatch& match) {
  std::string problem = match.problem;
  if (match.display != nullptr) {
    try {
      const cl_context_properties properties[] = {
          CL_CONTEXT_PLATFORM,
          reinterpret_cast<cl_context_properties>(match.device->platform()),
          kContextDisplay,
          reinterpret_cast<cl_context_properties>(match.display),
          CL_CONTEXT_INTEROP_USER_SYNC,
          CL_FALSE,
          0};
      return Context::create(*match.device, properties,
                             std::make_shared<VaSharing>(match.device->platform));
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  auto context = default_context(*match.device);
  if (problem.empty()) return context;
  auto with_problem = std::make_shared<Context>(*context);
  with_problem->sharing_problem = problem;
  return with_problem;
}

}  // namespace clinfer::ocl
