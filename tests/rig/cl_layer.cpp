// An OpenCL layer (OPENCL_LAYERS) that adds cl_intel_va_api_media_sharing over any CPU's OpenCL,
// for surfaces of the rig's VA driver, and watches every use. The Y image lies over the surface's
// own memory. So would UV, but PoCL has no two-component images: it is a four-component one that is
// filled when acquired and made rubbish when released, on the device, in order, by a native kernel;
// RIG_SHADOW=1 makes Y such a one as well. Images of two components that are copied from host memory
// are made like that, too, unless RIG_NO_RG=1. RIG_HIDE=1 leaves the extension out, RIG_CORRUPT=1 makes
// acquired chroma wrong, RIG_FAIL as in rig.h: import, acquire, enqueue (of any kernel), device (at
// an enqueue: whatever is done with the contexts made so far fails from then on, as after a reset).
// RIG_REPORT=1 writes the counters at exit; misuse and images left alive fail the process.
// DMA-BUFs: cl_dmabuf.cpp.
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "tests/rig/cl_layer.h"

#include <CL/cl_va_api_media_sharing_intel.h>
#include <unistd.h>
#include <va/va_backend.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/opencl_layer.h"

namespace rig {

std::mutex g_mutex;
RigClCounters g_count{};
RigFault g_import_fault("import"), g_acquire_fault("acquire");
// Kernels' arguments that are memory of others.
static std::map<cl_kernel, std::map<cl_uint, cl_mem>> g_arguments;
static std::set<cl_context> g_working, g_lost;  // contexts; some may be gone

bool set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '1';
}

bool lost(cl_context context) {
  const std::lock_guard lock(g_mutex);
  return g_lost.count(context) != 0;
}

bool lost(cl_command_queue queue) {
  cl_context context = nullptr;
  g_next->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr);
  return lost(context);
}

static bool lost(cl_event event) {
  cl_context context = nullptr;
  g_next->clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof context, &context, nullptr);
  return lost(context);
}

void forget_argument(cl_mem memory) {
  for (auto& [kernel, arguments] : g_arguments)
    std::erase_if(arguments, [&](const auto& argument) { return argument.second == memory; });
}

}  // namespace rig

namespace {

using namespace rig;

constexpr const char* kExtension = "cl_intel_va_api_media_sharing";
constexpr const char* kDeviceExtensions =
    "cl_intel_va_api_media_sharing cl_khr_external_memory cl_khr_external_memory_dma_buf "
    "cl_khr_external_memory_opaque_fd";

RigFault g_enqueue_fault("enqueue"), g_device_fault("device");

// A plane of a surface as an image.
struct Image {
  ~Image() {
    if (planes.pin == nullptr) return;
    const auto unpin = rig_function<RigUnpin>(display, "rig_unpin");
    unpin(planes.pin);
  }
  bool alive() const { return rig_function<RigAlive>(display, "rig_alive")(planes.pin) != 0; }
  void hold(int change) const { rig_function<RigHold>(display, "rig_hold")(planes.pin, change); }
  unsigned components() const { return plane == 0 ? 1 : 2; }
  unsigned texel_bytes() const { return components() * planes.sample_bytes; }
  cl_channel_type type() const {
    return planes.sample_bytes == 1 ? cl_channel_type{CL_UNORM_INT8} : CL_UNORM_INT16;
  }

  VADisplay display = nullptr;
  cl_context context = nullptr;
  VASurfaceID surface = 0;
  cl_uint plane = 0;
  cl_mem_flags flags = 0;
  RigPlanes planes{};
  unsigned width = 0, height = 0;
  std::vector<unsigned char>
      shadow;  // its texels, four samples each; empty: the surface's own memory
  cl_command_queue queue = nullptr;  // the one that acquired it, in the order of the host's calls
  bool in_use = false;               // in the order of the device
};

struct ContextOnDisplay {
  VADisplay display;
  std::vector<cl_context_properties> properties;
};

std::map<cl_context, ContextOnDisplay> g_contexts;
std::map<cl_mem, std::shared_ptr<Image>> g_images;

void misuse(const char* what, const Image* image) {
  ++g_count.misuse;
  std::fprintf(stderr, "rig cl: misuse: %s (surface %u, plane %u)\n", what,
               image != nullptr ? image->surface : 0, image != nullptr ? image->plane : 0);
}

std::shared_ptr<Image> find(cl_mem memory) {
  const auto found = g_images.find(memory);
  return found == g_images.end() ? nullptr : found->second;
}

// A function whose first argument is a queue, as one that fails when its device is lost.
template <auto Member, typename... Arguments>
cl_int CL_API_CALL on_working(cl_command_queue queue, Arguments... arguments) {
  return lost(queue) ? CL_OUT_OF_RESOURCES : (g_next->*Member)(queue, arguments...);
}

// ---- the device at acquire and release ----------------------------------------------------------

struct Transfer {
  bool acquire;
  std::vector<std::shared_ptr<Image>> images;
};

void CL_CALLBACK run_transfer(void* argument) {
  const std::unique_ptr<Transfer> transfer(*static_cast<Transfer**>(argument));
  for (const auto& image : transfer->images) {
    {
      const std::lock_guard lock(g_mutex);
      if (transfer->acquire && image->in_use)
        misuse("two uses of a surface overlap on the device", image.get());
      if (!image->alive()) misuse("a surface was destroyed before its use was over", image.get());
      image->in_use = transfer->acquire;
    }
    if (image->shadow.empty()) continue;
    if (!transfer->acquire) {
      std::fill(image->shadow.begin(), image->shadow.end(), kPoison);
      continue;
    }
    const unsigned bytes = image->texel_bytes(), four = 4 * image->planes.sample_bytes;
    const bool corrupt =
        set("RIG_CORRUPT") || (image->planes.sample_bytes == 2 && set("RIG_CORRUPT_DEEP"));
    const unsigned char wrong = image->plane == 1 && corrupt ? 0x40 : 0;
    for (unsigned y = 0; y < image->height; ++y)
      for (unsigned x = 0; x < image->width; ++x) {
        const unsigned char* from = image->planes.data[image->plane] +
                                    size_t{y} * image->planes.pitch[image->plane] +
                                    size_t{x} * bytes;
        unsigned char* to = &image->shadow[(size_t{y} * image->width + x) * four];
        std::fill_n(to, four, static_cast<unsigned char>(0));
        for (unsigned i = 0; i < bytes; ++i) to[i] = from[i] ^ wrong;
        std::fill_n(to + four / 4 * 3, four / 4, static_cast<unsigned char>(255));
      }
  }
}

// ---- the extension's functions ------------------------------------------------------------------

// One GPU has one display: of a platform's devices the first one only.
cl_int CL_API_CALL get_devices(cl_platform_id platform, cl_va_api_device_source_intel source,
                               void* display, cl_va_api_device_set_intel, cl_uint count,
                               cl_device_id* devices, cl_uint* found) {
  if (source != CL_VA_API_DISPLAY_INTEL) return CL_INVALID_VALUE;
  if (!vaDisplayIsValid(display) || vaGetLibFunc(display, "rig_pin") == nullptr)
    return CL_INVALID_VA_API_MEDIA_ADAPTER_INTEL;
  cl_device_id first = nullptr;
  cl_uint all = 0;
  const cl_int status = g_next->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &first, &all);
  if (status != CL_SUCCESS) return status;
  if (found != nullptr) *found = 1;
  if (devices != nullptr && count > 0) devices[0] = first;
  return CL_SUCCESS;
}

void CL_CALLBACK forget_image(cl_mem memory, void*) {
  std::shared_ptr<Image> gone;
  const std::lock_guard lock(g_mutex);
  const auto found = g_images.find(memory);
  if (found == g_images.end()) return;
  gone = found->second;
  if (gone->queue != nullptr)
    misuse("an image is released for good while it is acquired", gone.get());
  g_images.erase(found);
  forget_argument(memory);
  --g_count.images_alive;
}

cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags, VASurfaceID* surface,
                                cl_uint plane, cl_int* error) {
  cl_int ignored = CL_SUCCESS;
  if (error == nullptr) error = &ignored;
  auto image = std::make_shared<Image>();
  {
    const std::lock_guard lock(g_mutex);
    const auto found = g_contexts.find(context);
    if (found == g_contexts.end()) {
      misuse("an image of a surface in a context without a VA display", nullptr);
      *error = CL_INVALID_CONTEXT;
      return nullptr;
    }
    image->display = found->second.display;
    if (g_import_fault.strikes()) {
      *error = CL_INVALID_VA_API_MEDIA_SURFACE_INTEL;
      return nullptr;
    }
  }
  if (surface == nullptr || plane > 1 ||
      (flags != CL_MEM_READ_ONLY && flags != CL_MEM_WRITE_ONLY && flags != CL_MEM_READ_WRITE)) {
    const std::lock_guard lock(g_mutex);
    misuse("wrong arguments of clCreateFromVA_APIMediaSurfaceINTEL", nullptr);
    *error = CL_INVALID_VALUE;
    return nullptr;
  }
  const auto pin = rig_function<RigPin>(image->display, "rig_pin");
  if (pin(image->display, *surface, &image->planes) != 0) {
    *error = CL_INVALID_VA_API_MEDIA_SURFACE_INTEL;
    return nullptr;
  }
  if (lost(context)) {
    *error = CL_OUT_OF_RESOURCES;
    return nullptr;
  }
  image->context = context;
  image->surface = *surface;
  image->plane = plane;
  image->flags = flags;
  image->width = plane == 0 ? image->planes.width
                            : image->planes.width / 2;  // rounded down, as Intel's driver does
  image->height = plane == 0 ? image->planes.height : image->planes.height / 2;
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = image->width;
  description.image_height = image->height;
  cl_image_format format{CL_R, image->type()};
  void* data = image->planes.data[plane];
  description.image_row_pitch = image->planes.pitch[plane];
  if (plane == 1 || set("RIG_SHADOW")) {
    format.image_channel_order = CL_RGBA;
    description.image_row_pitch = size_t{image->width} * 4 * image->planes.sample_bytes;
    image->shadow.assign(description.image_row_pitch * image->height, kPoison);
    data = image->shadow.data();
  }
  const cl_mem memory = g_next->clCreateImage(context, flags | CL_MEM_USE_HOST_PTR, &format,
                                              &description, data, error);
  if (memory == nullptr) return nullptr;
  {
    const std::lock_guard lock(g_mutex);
    g_images[memory] = image;
    ++g_count.imported;
    ++g_count.images_alive;
  }
  g_next->clSetMemObjectDestructorCallback(memory, forget_image, nullptr);
  return memory;
}

// GPUs have images of two components, PoCL has not: four of them stand for two. Of host memory that is
// copied, which suffices for kernels that read them.
cl_mem CL_API_CALL create_picture(cl_context context, cl_mem_flags flags,
                                  const cl_image_format* format, const cl_image_desc* description,
                                  void* data, cl_int* error) {
  const bool widen = format != nullptr && description != nullptr && data != nullptr &&
                     format->image_channel_order == CL_RG &&
                     format->image_channel_data_type == CL_UNORM_INT8 &&
                     (flags & CL_MEM_COPY_HOST_PTR) != 0 &&
                     description->image_type == CL_MEM_OBJECT_IMAGE2D && !set("RIG_NO_RG");
  if (!widen) return g_next->clCreateImage(context, flags, format, description, data, error);
  const size_t width = description->image_width, height = description->image_height;
  const size_t pitch = description->image_row_pitch != 0 ? description->image_row_pitch : 2 * width;
  std::vector<uint8_t> wide(4 * width * height);
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < width; ++x)
      std::copy_n(static_cast<const uint8_t*>(data) + y * pitch + 2 * x, 2,
                  wide.data() + 4 * (y * width + x));
  cl_image_format four = *format;
  four.image_channel_order = CL_RGBA;
  cl_image_desc dense = *description;
  dense.image_row_pitch = 0;
  return g_next->clCreateImage(context, flags, &four, &dense, wide.data(), error);
}

cl_int hand_over(bool acquire, cl_command_queue queue, cl_uint count, const cl_mem* memories,
                 cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if ((count == 0) != (memories == nullptr)) return CL_INVALID_VALUE;
  if (acquire && lost(queue)) return CL_OUT_OF_RESOURCES;
  auto transfer = std::make_unique<Transfer>(Transfer{acquire, {}});
  {
    const std::lock_guard lock(g_mutex);
    if (acquire && g_acquire_fault.strikes()) return CL_OUT_OF_RESOURCES;
    for (cl_uint i = 0; i < count; ++i) {
      const auto image = find(memories[i]);
      if (image == nullptr) {
        misuse("acquire or release of what is no image of a surface", nullptr);
        return CL_INVALID_MEM_OBJECT;
      }
      if (acquire && image->queue != nullptr) {
        misuse("acquired twice", image.get());
        return CL_VA_API_MEDIA_SURFACE_ALREADY_ACQUIRED_INTEL;
      }
      if (!acquire && image->queue == nullptr) {
        misuse("released without being acquired", image.get());
        return CL_VA_API_MEDIA_SURFACE_NOT_ACQUIRED_INTEL;
      }
      if (!acquire && image->queue != queue)
        misuse("released on another queue than acquired", image.get());
      if (!image->alive()) {
        misuse("used after vaDestroySurfaces", image.get());
        return CL_INVALID_VA_API_MEDIA_SURFACE_INTEL;
      }
      transfer->images.push_back(image);
    }
  }
  if (acquire)
    for (const auto& image : transfer->images)
      if (vaSyncSurface(image->display, image->surface) != VA_STATUS_SUCCESS)
        return CL_INVALID_VA_API_MEDIA_SURFACE_INTEL;
  const std::vector<std::shared_ptr<Image>> images = transfer->images;
  if (!acquire && lost(queue)) {  // what a lost device held is free
    g_next->clFinish(queue);
    const std::lock_guard lock(g_mutex);
    for (const auto& image : images) {
      image->queue = nullptr;
      image->in_use = false;
      image->hold(-1);
    }
    ++g_count.released;
    return CL_OUT_OF_RESOURCES;
  }
  Transfer* argument = transfer.get();
  const cl_int status =
      g_next->clEnqueueNativeKernel(queue, run_transfer, &argument, sizeof argument, 0, nullptr,
                                    nullptr, waits, wait_list, event);
  if (status != CL_SUCCESS) return status;
  transfer.release();  // run_transfer's now
  const std::lock_guard lock(g_mutex);
  for (const auto& image : images) {
    image->queue = acquire ? queue : nullptr;
    image->hold(acquire ? 1 : -1);
  }
  ++(acquire ? g_count.acquired : g_count.released);
  return CL_SUCCESS;
}

cl_int CL_API_CALL acquire_images(cl_command_queue queue, cl_uint count, const cl_mem* memories,
                                  cl_uint waits, const cl_event* wait_list, cl_event* event) {
  return hand_over(true, queue, count, memories, waits, wait_list, event);
}

cl_int CL_API_CALL release_images(cl_command_queue queue, cl_uint count, const cl_mem* memories,
                                  cl_uint waits, const cl_event* wait_list, cl_event* event) {
  return hand_over(false, queue, count, memories, waits, wait_list, event);
}

void* extension_function(const char* name) {
  if (set("RIG_HIDE")) return nullptr;
  const std::string wanted = name;
  if (wanted == "clGetDeviceIDsFromVA_APIMediaAdapterINTEL")
    return reinterpret_cast<void*>(get_devices);
  if (wanted == "clCreateFromVA_APIMediaSurfaceINTEL") return reinterpret_cast<void*>(create_image);
  if (wanted == "clEnqueueAcquireVA_APIMediaSurfacesINTEL")
    return reinterpret_cast<void*>(acquire_images);
  if (wanted == "clEnqueueReleaseVA_APIMediaSurfacesINTEL")
    return reinterpret_cast<void*>(release_images);
  return dmabuf_function(wanted);
}

// ---- functions of the platform that the layer stands before -------------------------------------

void* CL_API_CALL function_for_platform(cl_platform_id platform, const char* name) {
  void* own = extension_function(name);
  return own != nullptr ? own : g_next->clGetExtensionFunctionAddressForPlatform(platform, name);
}

cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size,
                                 void* out, size_t* needed) {
  if (what != CL_PLATFORM_EXTENSIONS || set("RIG_HIDE"))
    return g_next->clGetPlatformInfo(platform, what, size, out, needed);
  return with_extension(
      [&](size_t s, void* o, size_t* n) {
        return g_next->clGetPlatformInfo(platform, what, s, o, n);
      },
      kExtension, size, out, needed);
}

cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void* out,
                               size_t* needed) {
  if (what != CL_DEVICE_EXTENSIONS || set("RIG_HIDE"))
    return g_next->clGetDeviceInfo(device, what, size, out, needed);
  return with_extension(
      [&](size_t s, void* o, size_t* n) { return g_next->clGetDeviceInfo(device, what, s, o, n); },
      kDeviceExtensions, size, out, needed);
}

using ContextCallback = void(CL_CALLBACK*)(const char*, const void*, size_t, void*);

cl_context CL_API_CALL make_context(const cl_context_properties* properties, cl_uint count,
                                    const cl_device_id* devices, ContextCallback callback,
                                    void* user, cl_int* error) {
  cl_int ignored = CL_SUCCESS;
  if (error == nullptr) error = &ignored;
  std::vector<cl_context_properties> passed;
  ContextOnDisplay made{nullptr, {}};
  for (const cl_context_properties* p = properties; p != nullptr && p[0] != 0; p += 2) {
    made.properties.insert(made.properties.end(), {p[0], p[1]});
    if (p[0] == CL_CONTEXT_VA_API_DISPLAY_INTEL && !set("RIG_HIDE")) {
      made.display = reinterpret_cast<VADisplay>(p[1]);
      if (!vaDisplayIsValid(made.display)) {
        *error = CL_INVALID_VA_API_MEDIA_ADAPTER_INTEL;
        return nullptr;
      }
    } else if (p[0] != CL_CONTEXT_INTEROP_USER_SYNC) {  // PoCL knows no interoperation
      passed.insert(passed.end(), {p[0], p[1]});
    }
  }
  passed.push_back(0);
  made.properties.push_back(0);
  const cl_context context = g_next->clCreateContext(passed.size() > 1 ? passed.data() : nullptr,
                                                     count, devices, callback, user, error);
  if (context == nullptr) return nullptr;
  const std::lock_guard lock(g_mutex);
  g_contexts.erase(context);  // a dead context's address may come back
  g_lost.erase(context);
  g_working.insert(context);
  if (made.display != nullptr) g_contexts.emplace(context, std::move(made));
  return context;
}

// As drivers do, the context gives back the properties it was made with: the display is one of them.
cl_int CL_API_CALL context_info(cl_context context, cl_context_info what, size_t size, void* out,
                                size_t* needed) {
  if (what == CL_CONTEXT_PROPERTIES) {
    const std::lock_guard lock(g_mutex);
    if (const auto found = g_contexts.find(context); found != g_contexts.end()) {
      const auto& properties = found->second.properties;
      return answer_bytes(properties.data(), properties.size() * sizeof properties[0], size, out,
                          needed);
    }
  }
  return g_next->clGetContextInfo(context, what, size, out, needed);
}

cl_int CL_API_CALL image_info(cl_mem memory, cl_image_info what, size_t size, void* out,
                              size_t* needed) {
  {
    const std::lock_guard lock(g_mutex);
    if (const auto image = find(memory)) {
      if (what == CL_IMAGE_VA_API_PLANE_INTEL) return answer(image->plane, size, out, needed);
      if (what == CL_IMAGE_FORMAT) {
        const cl_image_format format{
            image->plane == 0 ? cl_channel_order{CL_R} : cl_channel_order{CL_RG}, image->type()};
        return answer(format, size, out, needed);
      }
    }
  }
  return g_next->clGetImageInfo(memory, what, size, out, needed);
}

cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  const cl_int status = g_next->clSetKernelArg(kernel, index, size, value);
  if (status != CL_SUCCESS) return status;
  cl_mem memory = nullptr;
  if (value != nullptr && size == sizeof memory) std::memcpy(&memory, value, size);
  const std::lock_guard lock(g_mutex);
  if (memory != nullptr && (find(memory) != nullptr || is_dmabuf(memory)))
    g_arguments[kernel][index] = memory;
  else if (const auto found = g_arguments.find(kernel); found != g_arguments.end())
    found->second.erase(index);
  return status;
}

cl_int CL_API_CALL release_kernel(cl_kernel kernel) {
  cl_uint references = 0;
  g_next->clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof references, &references,
                          nullptr);
  if (references == 1) {
    const std::lock_guard lock(g_mutex);
    g_arguments.erase(kernel);
  }
  return g_next->clReleaseKernel(kernel);
}

cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                  const size_t* offset, const size_t* global, const size_t* local,
                                  cl_uint waits, const cl_event* wait_list, cl_event* event) {
  {
    const std::lock_guard lock(g_mutex);
    if (g_enqueue_fault.strikes()) return CL_OUT_OF_RESOURCES;
    if (g_device_fault.strikes()) g_lost.merge(g_working);
  }
  if (lost(queue)) return CL_OUT_OF_RESOURCES;
  {
    const std::lock_guard lock(g_mutex);
    if (const auto found = g_arguments.find(kernel);
        found != g_arguments.end() && !found->second.empty()) {
      ++g_count.kernels;
      for (const auto& [index, memory] : found->second) {
        if (is_dmabuf(memory)) {
          if (!may_use_dmabuf(memory, queue)) return CL_INVALID_OPERATION;
          continue;
        }
        const auto image = find(memory);
        if (image->queue == nullptr) {
          misuse("a kernel reads a surface that is not acquired", image.get());
          return CL_VA_API_MEDIA_SURFACE_NOT_ACQUIRED_INTEL;
        }
        if (image->queue != queue)
          misuse("a kernel reads a surface that another queue acquired", image.get());
      }
    }
  }
  return g_next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits,
                                        wait_list, event);
}

// Nothing but kernels may touch a surface: whoever reads or maps an image copies the frame to the
// host.
cl_int CL_API_CALL read_image(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                              const size_t* origin, const size_t* region, size_t row_pitch,
                              size_t slice_pitch, void* data, cl_uint waits,
                              const cl_event* wait_list, cl_event* event) {
  {
    const std::lock_guard lock(g_mutex);
    if (const auto image = find(memory)) misuse("clEnqueueReadImage of a surface", image.get());
  }
  return g_next->clEnqueueReadImage(queue, memory, blocking, origin, region, row_pitch, slice_pitch,
                                    data, waits, wait_list, event);
}

cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                               size_t offset, size_t size, void* data, cl_uint waits,
                               const cl_event* wait_list, cl_event* event) {
  if (lost(queue)) return CL_OUT_OF_RESOURCES;
  {
    const std::lock_guard lock(g_mutex);
    if (is_dmabuf(memory)) misuse("clEnqueueReadBuffer of a DMA-BUF", nullptr);
  }
  return g_next->clEnqueueReadBuffer(queue, memory, blocking, offset, size, data, waits, wait_list,
                                     event);
}

void* CL_API_CALL map_image(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                            cl_map_flags flags, const size_t* origin, const size_t* region,
                            size_t* row_pitch, size_t* slice_pitch, cl_uint waits,
                            const cl_event* wait_list, cl_event* event, cl_int* error) {
  {
    const std::lock_guard lock(g_mutex);
    if (const auto image = find(memory)) misuse("clEnqueueMapImage of a surface", image.get());
  }
  return g_next->clEnqueueMapImage(queue, memory, blocking, flags, origin, region, row_pitch,
                                   slice_pitch, waits, wait_list, event, error);
}

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void* data,
                                 cl_int* error) {
  if (!lost(context)) return g_next->clCreateBuffer(context, flags, size, data, error);
  if (error != nullptr) *error = CL_OUT_OF_RESOURCES;
  return nullptr;
}

// Under a lost device the rig's commands still run. They are waited for before the failure is
// reported, because then a caller may free what they write to.
cl_int CL_API_CALL finish(cl_command_queue queue) {
  const cl_int status = g_next->clFinish(queue);
  return lost(queue) ? CL_OUT_OF_RESOURCES : status;
}

cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event* events) {
  const cl_int status = g_next->clWaitForEvents(count, events);
  return count > 0 && lost(events[0]) ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : status;
}

cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t size, void* out,
                              size_t* needed) {
  const cl_int status = g_next->clGetEventInfo(event, what, size, out, needed);
  if (what != CL_EVENT_COMMAND_EXECUTION_STATUS || status != CL_SUCCESS || out == nullptr)
    return status;
  cl_int& execution = *static_cast<cl_int*>(out);
  if (execution == CL_COMPLETE && lost(event)) execution = CL_OUT_OF_RESOURCES;
  return status;
}

void at_exit() {
  if (std::getenv("RIG_REPORT") != nullptr)
    std::fprintf(stderr,
                 "rig cl: imported=%ld alive=%ld dmabufs=%ld alive=%ld acquired=%ld released=%ld "
                 "kernels=%ld "
                 "misuse=%ld\n",
                 g_count.imported, g_count.images_alive, g_count.buffers_imported,
                 g_count.buffers_alive, g_count.acquired, g_count.released, g_count.kernels,
                 g_count.misuse);
  if (g_count.misuse != 0 || g_count.images_alive != 0 || g_count.buffers_alive != 0 ||
      g_count.acquired != g_count.released)
    _exit(70);
}

}  // namespace

LAYER_EXPORT void rig_cl_counters(RigClCounters* counters) {
  const std::lock_guard lock(g_mutex);
  *counters = g_count;
}

LAYER_EXPORT void rig_forgive() {
  const std::lock_guard lock(g_mutex);
  g_count.misuse = 0;
  g_count.released = g_count.acquired;
}

void replace_calls(cl_icd_dispatch& table) {
  table.clGetExtensionFunctionAddressForPlatform = function_for_platform;
  table.clGetPlatformInfo = platform_info;
  table.clGetDeviceInfo = device_info;
  table.clCreateContext = make_context;
  table.clGetContextInfo = context_info;
  table.clGetImageInfo = image_info;
  table.clCreateImage = create_picture;
  table.clSetKernelArg = set_argument;
  table.clReleaseKernel = release_kernel;
  table.clEnqueueNDRangeKernel = enqueue_kernel;
  table.clCreateBuffer = create_buffer;
  table.clFinish = finish;
  table.clWaitForEvents = wait_for_events;
  table.clGetEventInfo = event_info;
  table.clFlush = on_working<&cl_icd_dispatch::clFlush>;
  table.clEnqueueReadBuffer = read_buffer;
  table.clCreateBufferWithProperties = create_dmabuf;
  table.clEnqueueWriteBuffer = on_working<&cl_icd_dispatch::clEnqueueWriteBuffer>;
  table.clEnqueueFillBuffer = on_working<&cl_icd_dispatch::clEnqueueFillBuffer>;
  table.clEnqueueMarkerWithWaitList = on_working<&cl_icd_dispatch::clEnqueueMarkerWithWaitList>;
  table.clEnqueueReadImage = read_image;
  table.clEnqueueMapImage = map_image;
  std::atexit(at_exit);
}
