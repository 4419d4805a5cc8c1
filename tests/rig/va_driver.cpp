// A VA-API driver on plain memory, loaded by the real libva (LIBVA_DRIVER_NAME=clinfer_rig).
// Surfaces, images and buffers; no codec. Stricter than hardware is: pitch and height are never
// those of the frame, ids come back at once, what is written is not there before vaSyncSurface, and
// what is destroyed is overwritten.
#include <sys/mman.h>
#include <unistd.h>
#include <va/va_backend.h>
#include <va/va_drmcommon.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/rig/rig.h"

namespace {

constexpr unsigned kPitchAlignment = 128, kHeightAlignment = 32;
constexpr unsigned kLargest = 16384;

unsigned aligned(unsigned value, unsigned to) { return (value + to - 1) / to * to; }

// ---- formats ------------------------------------------------------------------------------------

struct PlaneLayout {
  unsigned bytes, x_shift, y_shift;  // of one sample; log2 of the subsampling
};

struct Format {
  unsigned fourcc, rt_format, bits_per_pixel, depth;
  std::vector<PlaneLayout> planes;
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {VA_FOURCC_NV12, VA_RT_FORMAT_YUV420, 12, 0, {{1, 0, 0}, {2, 1, 1}}},
      {VA_FOURCC_P010, VA_RT_FORMAT_YUV420_10, 24, 0, {{2, 0, 0}, {4, 1, 1}}},
      {VA_FOURCC_I420, VA_RT_FORMAT_YUV420, 12, 0, {{1, 0, 0}, {1, 1, 1}, {1, 1, 1}}},
      {VA_FOURCC_YUY2, VA_RT_FORMAT_YUV422, 16, 0, {{2, 0, 0}}},
      {VA_FOURCC_BGRA, VA_RT_FORMAT_RGB32, 32, 32, {{4, 0, 0}}},
  };
  return all;
}

const Format* find_format(unsigned fourcc) {
  for (const Format& format : formats())
    if (format.fourcc == fourcc) return &format;
  return nullptr;
}

const Format* default_format(unsigned rt_format) {
  for (const Format& format : formats())
    if (format.rt_format & rt_format) return &format;
  return nullptr;
}

// ---- memory -------------------------------------------------------------------------------------

struct Memory {
  explicit Memory(size_t bytes) : size(bytes), fd(memfd_create("rig-surface", MFD_CLOEXEC)) {
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) return;
    map();
    if (data != nullptr) std::memset(data, 0x5a, size);
  }
  Memory(int shared, size_t bytes) : size(bytes), fd(dup(shared)) {
    if (fd >= 0 && lseek(fd, 0, SEEK_END) >= static_cast<off_t>(size)) map();
  }
  ~Memory() {
    if (data != nullptr) munmap(data, size);
    if (fd >= 0) close(fd);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void map() {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) data = static_cast<unsigned char*>(at);
  }

  size_t size;
  int fd;
  unsigned char* data = nullptr;
};

// Planes of a picture in memory.
struct Picture {
  const Format* format = nullptr;
  unsigned width = 0, height = 0;
  std::vector<unsigned> pitch, offset;
  std::shared_ptr<Memory> memory;

  unsigned rows(size_t plane) const {
    const unsigned shift = format->planes[plane].y_shift;
    return (height + (1u << shift) - 1) >> shift;
  }
  unsigned row_bytes(size_t plane) const {
    const PlaneLayout& layout = format->planes[plane];
    return ((width + (1u << layout.x_shift) - 1) >> layout.x_shift) * layout.bytes;
  }
  // Rows and pitches that are not the frame's.
  static Picture make(const Format& format, unsigned width, unsigned height) {
    Picture picture{&format, width, height, {}, {}, nullptr};
    unsigned end = 0;
    for (const PlaneLayout& plane : format.planes) {
      const unsigned columns = (width + (1u << plane.x_shift) - 1) >> plane.x_shift;
      const unsigned pitch = aligned(columns * plane.bytes + 1, kPitchAlignment);
      picture.pitch.push_back(
          format.fourcc == VA_FOURCC_NV12 || format.fourcc == VA_FOURCC_P010
              ? aligned(aligned(width, 2) * format.planes[0].bytes + 1, kPitchAlignment)
              : pitch);
      picture.offset.push_back(end);
      end += picture.pitch.back() * (aligned(height + 1, kHeightAlignment) >> plane.y_shift);
    }
    picture.memory = std::make_shared<Memory>(end);
    if (picture.memory->data == nullptr) picture.memory.reset();
    return picture;
  }
};

void copy(const Picture& from, const Picture& to, unsigned width, unsigned height) {
  for (size_t p = 0; p < from.format->planes.size(); ++p) {
    const PlaneLayout& plane = from.format->planes[p];
    const unsigned rows = (height + (1u << plane.y_shift) - 1) >> plane.y_shift;
    const unsigned bytes = ((width + (1u << plane.x_shift) - 1) >> plane.x_shift) * plane.bytes;
    for (unsigned y = 0; y < rows; ++y)
      std::memcpy(to.memory->data + to.offset[p] + size_t{y} * to.pitch[p],
                  from.memory->data + from.offset[p] + size_t{y} * from.pitch[p], bytes);
  }
}

// ---- objects ------------------------------------------------------------------------------------

struct Surface {
  Picture picture;
  std::shared_ptr<Memory> pending;                       // written, not there yet
  bool is_frame = false;                                 // rig_write() put a picture in
  std::shared_ptr<int> held = std::make_shared<int>(0);  // planes that OpenCL has acquired
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

struct Buffer {
  VABufferType type = VAImageBufferType;
  unsigned size = 0, elements = 1;
  std::shared_ptr<Memory> memory;
  int mapped = 0;
  bool of_frame = false;
};

struct Image {
  Picture picture;
  VABufferID buffer = 0;
};

struct Pin {
  std::shared_ptr<Memory> memory;
  std::shared_ptr<int> held;
  std::shared_ptr<bool> alive;
};

std::mutex g_mutex;  // over everything below
RigVaCounters g_count{};
RigFault g_surface_fault("surface");

// Ids: the lowest free one, so that ids come back as soon as they can.
template <typename Object>
class Table {
 public:
  explicit Table(unsigned first) : first_(first) {}
  unsigned add(Object object) {
    unsigned id = first_;
    while (objects_.count(id) != 0) ++id;
    objects_.emplace(id, std::move(object));
    return id;
  }
  Object* find(unsigned id) {
    const auto found = objects_.find(id);
    return found == objects_.end() ? nullptr : &found->second;
  }
  bool remove(unsigned id) { return objects_.erase(id) != 0; }
  size_t size() const { return objects_.size(); }
  const std::map<unsigned, Object>& all() const { return objects_; }

 private:
  unsigned first_;
  std::map<unsigned, Object> objects_;
};

struct Driver {
  Table<Surface> surfaces{1};
  Table<Buffer> buffers{0x1000};
  Table<Image> images{0x2000};
  Table<int> configs{0x3000}, contexts{0x4000};
};

Driver& driver(VADriverContextP context) { return *static_cast<Driver*>(context->pDriverData); }

void misuse(const char* what, unsigned id) {
  ++g_count.misuse;
  std::fprintf(stderr, "rig va: misuse: %s (surface or object %u)\n", what, id);
}

void finish_writes(Surface& surface) {
  if (surface.pending == nullptr) return;
  std::memcpy(surface.picture.memory->data, surface.pending->data, surface.pending->size);
  surface.pending.reset();
}

// Where what is written goes until the next vaSyncSurface; the surface itself shows rubbish
// meanwhile.
Picture write_target(Surface& surface) {
  Picture target = surface.picture;
  if (surface.pending == nullptr) {
    surface.pending = std::make_shared<Memory>(target.memory->size);
    std::memcpy(surface.pending->data, target.memory->data, target.memory->size);
    std::memset(target.memory->data, 0xcd, target.memory->size);
  }
  target.memory = surface.pending;
  return target;
}

// ---- configurations -----------------------------------------------------------------------------

VAStatus query_profiles(VADriverContextP, VAProfile* list, int* count) {
  list[0] = VAProfileNone;
  *count = 1;
  return VA_STATUS_SUCCESS;
}

VAStatus query_entrypoints(VADriverContextP, VAProfile profile, VAEntrypoint* list, int* count) {
  if (profile != VAProfileNone) return VA_STATUS_ERROR_UNSUPPORTED_PROFILE;
  list[0] = VAEntrypointVideoProc;
  *count = 1;
  return VA_STATUS_SUCCESS;
}

unsigned rt_formats() {
  unsigned all = 0;
  for (const Format& format : formats()) all |= format.rt_format;
  return all;
}

VAStatus get_config_attributes(VADriverContextP, VAProfile, VAEntrypoint, VAConfigAttrib* list,
                               int count) {
  for (VAConfigAttrib* a = list; a != list + count; ++a)
    a->value =
        a->type == VAConfigAttribRTFormat ? rt_formats()
        : a->type == VAConfigAttribMaxPictureWidth || a->type == VAConfigAttribMaxPictureHeight
            ? kLargest
            : VA_ATTRIB_NOT_SUPPORTED;
  return VA_STATUS_SUCCESS;
}

VAStatus create_config(VADriverContextP context, VAProfile, VAEntrypoint, VAConfigAttrib*, int,
                       VAConfigID* id) {
  const std::lock_guard lock(g_mutex);
  *id = driver(context).configs.add(0);
  return VA_STATUS_SUCCESS;
}

VAStatus destroy_config(VADriverContextP context, VAConfigID id) {
  const std::lock_guard lock(g_mutex);
  return driver(context).configs.remove(id) ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_CONFIG;
}

VAStatus query_config(VADriverContextP, VAConfigID, VAProfile* profile, VAEntrypoint* entrypoint,
                      VAConfigAttrib* list, int* count) {
  *profile = VAProfileNone;
  *entrypoint = VAEntrypointVideoProc;
  list[0] = {VAConfigAttribRTFormat, rt_formats()};
  *count = 1;
  return VA_STATUS_SUCCESS;
}

// ---- surfaces -----------------------------------------------------------------------------------

VAStatus query_surface_attributes(VADriverContextP, VAConfigID, VASurfaceAttrib* list,
                                  unsigned* count) {
  std::vector<VASurfaceAttrib> all;
  const auto add = [&](VASurfaceAttribType type, unsigned flags, int value) {
    VASurfaceAttrib attribute{};
    attribute.type = type;
    attribute.flags = flags;
    attribute.value.type = VAGenericValueTypeInteger;
    attribute.value.value.i = value;
    all.push_back(attribute);
  };
  const unsigned both = VA_SURFACE_ATTRIB_GETTABLE | VA_SURFACE_ATTRIB_SETTABLE;
  for (const Format& format : formats())
    add(VASurfaceAttribPixelFormat, both, static_cast<int>(format.fourcc));
  add(VASurfaceAttribMinWidth, VA_SURFACE_ATTRIB_GETTABLE, 1);
  add(VASurfaceAttribMinHeight, VA_SURFACE_ATTRIB_GETTABLE, 1);
  add(VASurfaceAttribMaxWidth, VA_SURFACE_ATTRIB_GETTABLE, kLargest);
  add(VASurfaceAttribMaxHeight, VA_SURFACE_ATTRIB_GETTABLE, kLargest);
  add(VASurfaceAttribMemoryType, both,
      VA_SURFACE_ATTRIB_MEM_TYPE_VA | VA_SURFACE_ATTRIB_MEM_TYPE_DRM_PRIME_2);
  const auto have = static_cast<unsigned>(all.size());
  const bool fits = list == nullptr || *count >= have;
  if (list != nullptr && fits) std::copy(all.begin(), all.end(), list);
  *count = have;
  return fits ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_MAX_NUM_EXCEEDED;
}

// A surface over the memory that a descriptor of vaExportSurfaceHandle() names.
Picture import_picture(const VADRMPRIMESurfaceDescriptor& from, unsigned width, unsigned height) {
  Picture picture{find_format(from.fourcc), width, height, {}, {}, nullptr};
  if (picture.format == nullptr || from.num_objects != 1) return picture;
  for (unsigned layer = 0; layer < from.num_layers; ++layer)
    for (unsigned plane = 0; plane < from.layers[layer].num_planes; ++plane) {
      picture.pitch.push_back(from.layers[layer].pitch[plane]);
      picture.offset.push_back(from.layers[layer].offset[plane]);
    }
  if (picture.pitch.size() != picture.format->planes.size()) return picture;
  for (size_t p = 0; p < picture.pitch.size(); ++p)
    if (picture.pitch[p] < picture.row_bytes(p) ||
        picture.offset[p] + uint64_t{picture.pitch[p]} * picture.rows(p) > from.objects[0].size)
      return picture;
  picture.memory = std::make_shared<Memory>(from.objects[0].fd, from.objects[0].size);
  if (picture.memory->data == nullptr) picture.memory.reset();
  return picture;
}

VAStatus create_surfaces2(VADriverContextP context, unsigned rt_format, unsigned width,
                          unsigned height, VASurfaceID* ids, unsigned count,
                          VASurfaceAttrib* attributes, unsigned attribute_count) {
  const Format* format = default_format(rt_format);
  const VADRMPRIMESurfaceDescriptor* shared = nullptr;
  bool import = false;
  for (VASurfaceAttrib* a = attributes; a != attributes + attribute_count; ++a) {
    if (a->type == VASurfaceAttribPixelFormat)
      format = find_format(static_cast<unsigned>(a->value.value.i));
    if (a->type == VASurfaceAttribMemoryType)
      import = a->value.value.i == VA_SURFACE_ATTRIB_MEM_TYPE_DRM_PRIME_2;
    if (a->type == VASurfaceAttribExternalBufferDescriptor)
      shared = static_cast<const VADRMPRIMESurfaceDescriptor*>(a->value.value.p);
  }
  if (format == nullptr || (format->rt_format & rt_format) == 0)
    return VA_STATUS_ERROR_UNSUPPORTED_RT_FORMAT;
  if (width < 1 || height < 1 || width > kLargest || height > kLargest)
    return VA_STATUS_ERROR_RESOLUTION_NOT_SUPPORTED;
  if (import && (shared == nullptr || count != 1)) return VA_STATUS_ERROR_INVALID_PARAMETER;

  const std::lock_guard lock(g_mutex);
  Driver& d = driver(context);
  for (unsigned i = 0; i < count; ++i) {
    Surface surface;
    if (!g_surface_fault.strikes())
      surface.picture =
          import ? import_picture(*shared, width, height) : Picture::make(*format, width, height);
    if (surface.picture.memory == nullptr) {
      for (unsigned k = 0; k < i; ++k) d.surfaces.remove(ids[k]);
      return VA_STATUS_ERROR_ALLOCATION_FAILED;
    }
    ids[i] = d.surfaces.add(std::move(surface));
  }
  g_count.surfaces_created += count;
  g_count.surfaces_alive += count;
  return VA_STATUS_SUCCESS;
}

VAStatus create_surfaces(VADriverContextP context, int width, int height, int format, int count,
                         VASurfaceID* ids) {
  return create_surfaces2(context, static_cast<unsigned>(format), static_cast<unsigned>(width),
                          static_cast<unsigned>(height), ids, static_cast<unsigned>(count), nullptr,
                          0);
}

VAStatus destroy_surfaces(VADriverContextP context, VASurfaceID* ids, int count) {
  const std::lock_guard lock(g_mutex);
  VAStatus status = VA_STATUS_SUCCESS;
  for (const VASurfaceID* id = ids; id != ids + count; ++id) {
    Surface* surface = driver(context).surfaces.find(*id);
    if (surface == nullptr) {
      misuse("vaDestroySurfaces of an unknown surface", *id);
      status = VA_STATUS_ERROR_INVALID_SURFACE;
      continue;
    }
    if (*surface->held != 0) misuse("a surface is destroyed while OpenCL has acquired it", *id);
    *surface->alive = false;
    // A reader that still uses the frame sees that it is gone.
    if (surface->is_frame)
      std::memset(surface->picture.memory->data, 0xdd, surface->picture.memory->size);
    driver(context).surfaces.remove(*id);
    --g_count.surfaces_alive;
  }
  return status;
}

VAStatus sync_surface(VADriverContextP context, VASurfaceID id) {
  const std::lock_guard lock(g_mutex);
  Surface* surface = driver(context).surfaces.find(id);
  if (surface == nullptr) return VA_STATUS_ERROR_INVALID_SURFACE;
  ++g_count.syncs;
  finish_writes(*surface);
  return VA_STATUS_SUCCESS;
}

VAStatus sync_surface2(VADriverContextP context, VASurfaceID id, uint64_t) {
  return sync_surface(context, id);
}

VAStatus query_surface_status(VADriverContextP context, VASurfaceID id, VASurfaceStatus* status) {
  const std::lock_guard lock(g_mutex);
  const Surface* surface = driver(context).surfaces.find(id);
  if (surface == nullptr) return VA_STATUS_ERROR_INVALID_SURFACE;
  *status = surface->pending != nullptr ? VASurfaceRendering : VASurfaceReady;
  return VA_STATUS_SUCCESS;
}

VAStatus export_surface(VADriverContextP context, VASurfaceID id, uint32_t type, uint32_t flags,
                        void* descriptor) {
  if (type != VA_SURFACE_ATTRIB_MEM_TYPE_DRM_PRIME_2)
    return VA_STATUS_ERROR_UNSUPPORTED_MEMORY_TYPE;
  const std::lock_guard lock(g_mutex);
  const Surface* surface = driver(context).surfaces.find(id);
  if (surface == nullptr) return VA_STATUS_ERROR_INVALID_SURFACE;
  const Picture& picture = surface->picture;
  VADRMPRIMESurfaceDescriptor out{};
  out.fourcc = picture.format->fourcc;
  out.width = picture.width;
  out.height = picture.height;
  out.num_objects = 1;
  out.objects[0] = {dup(picture.memory->fd), static_cast<uint32_t>(picture.memory->size), 0};
  const bool composed = (flags & VA_EXPORT_SURFACE_COMPOSED_LAYERS) != 0;
  const auto planes = static_cast<unsigned>(picture.format->planes.size());
  out.num_layers = composed ? 1 : planes;
  for (unsigned p = 0; p < planes; ++p) {
    auto& layer = out.layers[composed ? 0 : p];
    const unsigned at = composed ? p : 0;
    layer.drm_format = composed                               ? picture.format->fourcc
                       : picture.format->planes[p].bytes == 1 ? VA_FOURCC('R', '8', ' ', ' ')
                                                              : VA_FOURCC('G', 'R', '8', '8');
    layer.num_planes = at + 1;
    layer.object_index[at] = 0;
    layer.offset[at] = picture.offset[p];
    layer.pitch[at] = picture.pitch[p];
  }
  *static_cast<VADRMPRIMESurfaceDescriptor*>(descriptor) = out;
  ++g_count.exports;
  return VA_STATUS_SUCCESS;
}

// ---- buffers ------------------------------------------------------------------------------------

VAStatus create_buffer(VADriverContextP context, VAContextID, VABufferType type, unsigned size,
                       unsigned elements, void* data, VABufferID* id) {
  auto memory = std::make_shared<Memory>(std::max<size_t>(size_t{size} * elements, 1));
  if (memory->data == nullptr) return VA_STATUS_ERROR_ALLOCATION_FAILED;
  if (data != nullptr) std::memcpy(memory->data, data, size_t{size} * elements);
  const std::lock_guard lock(g_mutex);
  *id = driver(context).buffers.add({type, size, elements, std::move(memory)});
  return VA_STATUS_SUCCESS;
}

VAStatus map_buffer(VADriverContextP context, VABufferID id, void** data) {
  const std::lock_guard lock(g_mutex);
  Buffer* buffer = driver(context).buffers.find(id);
  if (buffer == nullptr) return VA_STATUS_ERROR_INVALID_BUFFER;
  ++buffer->mapped;
  ++(buffer->of_frame ? g_count.frame_maps : g_count.maps);
  *data = buffer->memory->data;
  return VA_STATUS_SUCCESS;
}

VAStatus unmap_buffer(VADriverContextP context, VABufferID id) {
  const std::lock_guard lock(g_mutex);
  Buffer* buffer = driver(context).buffers.find(id);
  if (buffer == nullptr) return VA_STATUS_ERROR_INVALID_BUFFER;
  if (buffer->mapped == 0)
    misuse("vaUnmapBuffer of a buffer that is not mapped", id);
  else
    --buffer->mapped;
  return VA_STATUS_SUCCESS;
}

VAStatus destroy_buffer(VADriverContextP context, VABufferID id) {
  const std::lock_guard lock(g_mutex);
  return driver(context).buffers.remove(id) ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_BUFFER;
}

VAStatus buffer_info(VADriverContextP context, VABufferID id, VABufferType* type, unsigned* size,
                     unsigned* elements) {
  const std::lock_guard lock(g_mutex);
  const Buffer* buffer = driver(context).buffers.find(id);
  if (buffer == nullptr) return VA_STATUS_ERROR_INVALID_BUFFER;
  *type = buffer->type;
  *size = buffer->size;
  *elements = buffer->elements;
  return VA_STATUS_SUCCESS;
}

// ---- images -------------------------------------------------------------------------------------

VAImageFormat image_format(const Format& format) {
  VAImageFormat result{};
  result.fourcc = format.fourcc;
  result.byte_order = VA_LSB_FIRST;
  result.bits_per_pixel = format.bits_per_pixel;
  result.depth = format.depth;
  if (format.fourcc == VA_FOURCC_BGRA) {
    result.red_mask = 0x00ff0000;
    result.green_mask = 0x0000ff00;
    result.blue_mask = 0x000000ff;
    result.alpha_mask = 0xff000000;
  }
  return result;
}

VAStatus query_image_formats(VADriverContextP, VAImageFormat* list, int* count) {
  *count = 0;
  for (const Format& format : formats()) list[(*count)++] = image_format(format);
  return VA_STATUS_SUCCESS;
}

void add_image(Driver& d, const Picture& picture, bool of_frame, VAImage* out) {
  const VABufferID buffer =
      d.buffers.add({VAImageBufferType, static_cast<unsigned>(picture.memory->size), 1,
                     picture.memory, 0, of_frame});
  *out = {};
  out->image_id = d.images.add({picture, buffer});
  out->format = image_format(*picture.format);
  out->buf = buffer;
  out->width = static_cast<uint16_t>(picture.width);
  out->height = static_cast<uint16_t>(picture.height);
  out->data_size = static_cast<uint32_t>(picture.memory->size);
  out->num_planes = static_cast<uint32_t>(picture.format->planes.size());
  for (size_t p = 0; p < picture.format->planes.size(); ++p) {
    out->pitches[p] = picture.pitch[p];
    out->offsets[p] = picture.offset[p];
  }
}

VAStatus create_image(VADriverContextP context, VAImageFormat* wanted, int width, int height,
                      VAImage* out) {
  const Format* format = find_format(wanted->fourcc);
  if (format == nullptr) return VA_STATUS_ERROR_INVALID_IMAGE_FORMAT;
  if (width < 1 || height < 1) return VA_STATUS_ERROR_INVALID_PARAMETER;
  const Picture picture =
      Picture::make(*format, static_cast<unsigned>(width), static_cast<unsigned>(height));
  if (picture.memory == nullptr) return VA_STATUS_ERROR_ALLOCATION_FAILED;
  const std::lock_guard lock(g_mutex);
  add_image(driver(context), picture, false, out);
  return VA_STATUS_SUCCESS;
}

VAStatus derive_image(VADriverContextP context, VASurfaceID id, VAImage* out) {
  const std::lock_guard lock(g_mutex);
  Surface* surface = driver(context).surfaces.find(id);
  if (surface == nullptr) return VA_STATUS_ERROR_INVALID_SURFACE;
  add_image(driver(context), surface->picture, surface->is_frame, out);
  return VA_STATUS_SUCCESS;
}

VAStatus destroy_image(VADriverContextP context, VAImageID id) {
  const std::lock_guard lock(g_mutex);
  Driver& d = driver(context);
  const Image* image = d.images.find(id);
  if (image == nullptr) return VA_STATUS_ERROR_INVALID_IMAGE;
  if (const Buffer* buffer = d.buffers.find(image->buffer);
      buffer != nullptr && buffer->mapped != 0)
    misuse("an image is destroyed while its buffer is mapped", id);
  d.buffers.remove(image->buffer);
  d.images.remove(id);
  return VA_STATUS_SUCCESS;
}

VAStatus get_image(VADriverContextP context, VASurfaceID surface_id, int x, int y, unsigned width,
                   unsigned height, VAImageID image_id) {
  const std::lock_guard lock(g_mutex);
  Surface* surface = driver(context).surfaces.find(surface_id);
  const Image* image = driver(context).images.find(image_id);
  if (surface == nullptr) return VA_STATUS_ERROR_INVALID_SURFACE;
  if (image == nullptr || image->picture.format != surface->picture.format)
    return VA_STATUS_ERROR_INVALID_IMAGE;
  if (x != 0 || y != 0 || width > std::min(surface->picture.width, image->picture.width) ||
      height > std::min(surface->picture.height, image->picture.height))
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  if (surface->is_frame) ++g_count.frame_gets;
  finish_writes(*surface);
  copy(surface->picture, image->picture, width, height);
  return VA_STATUS_SUCCESS;
}

VAStatus put_image(VADriverContextP context, VASurfaceID surface_id, VAImageID image_id, int from_x,
                   int from_y, unsigned from_width, unsigned from_height, int x, int y,
                   unsigned width, unsigned height) {
  const std::lock_guard lock(g_mutex);
  Surface* surface = driver(context).surfaces.find(surface_id);
  const Image* image = driver(context).images.find(image_id);
  if (surface == nullptr) return VA_STATUS_ERROR_INVALID_SURFACE;
  if (image == nullptr || image->picture.format != surface->picture.format)
    return VA_STATUS_ERROR_INVALID_IMAGE;
  if (from_x != 0 || from_y != 0 || x != 0 || y != 0 || from_width != width ||
      from_height != height || width > std::min(surface->picture.width, image->picture.width) ||
      height > std::min(surface->picture.height, image->picture.height))
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  if (*surface->held != 0) misuse("vaPutImage to a surface that OpenCL has acquired", surface_id);
  ++g_count.puts;
  copy(image->picture, write_target(*surface), width, height);
  return VA_STATUS_SUCCESS;
}

// ---- entry points that libva requires -----------------------------------------------------------

template <typename... Arguments>
VAStatus unimplemented(VADriverContextP, Arguments...) {
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}

VAStatus create_context(VADriverContextP context, VAConfigID, int, int, int, VASurfaceID*, int,
                        VAContextID* id) {
  const std::lock_guard lock(g_mutex);
  *id = driver(context).contexts.add(0);
  return VA_STATUS_SUCCESS;
}

VAStatus destroy_context(VADriverContextP context, VAContextID id) {
  const std::lock_guard lock(g_mutex);
  return driver(context).contexts.remove(id) ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_CONTEXT;
}

VAStatus query_subpicture_formats(VADriverContextP, VAImageFormat*, unsigned*, unsigned* count) {
  *count = 0;
  return VA_STATUS_SUCCESS;
}

VAStatus query_display_attributes(VADriverContextP, VADisplayAttribute*, int* count) {
  *count = 0;
  return VA_STATUS_SUCCESS;
}

VAStatus display_attributes(VADriverContextP, VADisplayAttribute*, int) {
  return VA_STATUS_SUCCESS;
}

VAStatus terminate(VADriverContextP context) {
  const std::lock_guard lock(g_mutex);
  delete &driver(context);
  context->pDriverData = nullptr;
  return VA_STATUS_SUCCESS;
}

}  // namespace

// ---- the rig's own entry points -----------------------------------------------------------------

#define RIG_EXPORT extern "C" __attribute__((visibility("default")))

static Surface* surface_of(void* display, unsigned id) {
  return driver(static_cast<VADisplayContextP>(display)->pDriverContext).surfaces.find(id);
}

// Whether OpenCL reads the surface as a Y and a UV plane.
static bool is_shareable(const Surface& surface) {
  const unsigned fourcc = surface.picture.format->fourcc;
  return fourcc == VA_FOURCC_NV12 || fourcc == VA_FOURCC_P010;
}

RIG_EXPORT int rig_pin(void* display, unsigned id, RigPlanes* planes) {
  const std::lock_guard lock(g_mutex);
  const Surface* surface = surface_of(display, id);
  if (surface == nullptr || !is_shareable(*surface)) return -1;
  const Picture& picture = surface->picture;
  *planes = {};
  for (size_t p = 0; p < 2; ++p) {
    planes->data[p] = picture.memory->data + picture.offset[p];
    planes->pitch[p] = picture.pitch[p];
  }
  planes->width = picture.width;
  planes->height = picture.height;
  planes->sample_bytes = picture.format->planes[0].bytes;
  planes->pin = new Pin{picture.memory, surface->held, surface->alive};
  return 0;
}

RIG_EXPORT void rig_unpin(void* pin) {
  const std::lock_guard lock(g_mutex);
  delete static_cast<Pin*>(pin);
}

RIG_EXPORT int rig_alive(void* pin) {
  const std::lock_guard lock(g_mutex);
  return *static_cast<Pin*>(pin)->alive ? 1 : 0;
}

RIG_EXPORT void rig_hold(void* pin, int change) {
  const std::lock_guard lock(g_mutex);
  *static_cast<Pin*>(pin)->held += change;
}

RIG_EXPORT int rig_write(void* display, unsigned id, const RigPicture* from) {
  const std::lock_guard lock(g_mutex);
  Surface* surface = surface_of(display, id);
  if (surface == nullptr || !is_shareable(*surface)) return -1;
  if (*surface->held != 0) misuse("a surface is written while OpenCL has acquired it", id);
  surface->is_frame = true;
  const Picture to = write_target(*surface);
  if (from->x + from->width > to.width || from->y + from->height > to.height) return -1;
  const unsigned sample = to.format->planes[0].bytes;
  for (size_t p = 0; p < 2; ++p) {
    const unsigned half = p == 0 ? 0 : 1;
    const unsigned rows = (from->height + half) >> half;
    const unsigned bytes = (((from->width + half) >> half) << half) * sample;
    for (unsigned y = 0; y < rows; ++y)
      std::memcpy(to.memory->data + to.offset[p] + size_t{(from->y >> half) + y} * to.pitch[p] +
                      size_t{from->x} * sample,
                  from->planes[p] + static_cast<ptrdiff_t>(y) * from->strides[p], bytes);
  }
  return 0;
}

RIG_EXPORT void rig_forgive() {
  const std::lock_guard lock(g_mutex);
  g_count.misuse = 0;
}

RIG_EXPORT void rig_va_counters(RigVaCounters* counters) {
  const std::lock_guard lock(g_mutex);
  *counters = g_count;
}

RIG_EXPORT VAStatus __vaDriverInit_1_0(VADriverContextP context) {
  static const char kVendor[] = "clinfer test rig";
  context->pDriverData = new Driver;
  context->version_major = VA_MAJOR_VERSION;
  context->version_minor = VA_MINOR_VERSION;
  context->max_profiles = 1;
  context->max_entrypoints = 1;
  context->max_attributes = 8;
  context->max_image_formats = static_cast<int>(formats().size());
  context->max_subpic_formats = 1;
  context->max_display_attributes = 1;
  context->str_vendor = kVendor;
  VADriverVTable& v = *context->vtable;
  v.vaTerminate = terminate;
  v.vaQueryConfigProfiles = query_profiles;
  v.vaQueryConfigEntrypoints = query_entrypoints;
  v.vaGetConfigAttributes = get_config_attributes;
  v.vaCreateConfig = create_config;
  v.vaDestroyConfig = destroy_config;
  v.vaQueryConfigAttributes = query_config;
  v.vaCreateSurfaces = create_surfaces;
  v.vaCreateSurfaces2 = create_surfaces2;
  v.vaDestroySurfaces = destroy_surfaces;
  v.vaQuerySurfaceAttributes = query_surface_attributes;
  v.vaSyncSurface = sync_surface;
  v.vaSyncSurface2 = sync_surface2;
  v.vaQuerySurfaceStatus = query_surface_status;
  v.vaExportSurfaceHandle = export_surface;
  v.vaCreateBuffer = create_buffer;
  v.vaBufferSetNumElements = unimplemented;
  v.vaMapBuffer = map_buffer;
  v.vaUnmapBuffer = unmap_buffer;
  v.vaDestroyBuffer = destroy_buffer;
  v.vaBufferInfo = buffer_info;
  v.vaQueryImageFormats = query_image_formats;
  v.vaCreateImage = create_image;
  v.vaDeriveImage = derive_image;
  v.vaDestroyImage = destroy_image;
  v.vaSetImagePalette = unimplemented;
  v.vaGetImage = get_image;
  v.vaPutImage = put_image;
  v.vaCreateContext = create_context;
  v.vaDestroyContext = destroy_context;
  v.vaBeginPicture = unimplemented;
  v.vaRenderPicture = unimplemented;
  v.vaEndPicture = unimplemented;
  v.vaPutSurface = unimplemented;
  v.vaQuerySubpictureFormats = query_subpicture_formats;
  v.vaCreateSubpicture = unimplemented;
  v.vaDestroySubpicture = unimplemented;
  v.vaSetSubpictureImage = unimplemented;
  v.vaSetSubpictureChromakey = unimplemented;
  v.vaSetSubpictureGlobalAlpha = unimplemented;
  v.vaAssociateSubpicture = unimplemented;
  v.vaDeassociateSubpicture = unimplemented;
  v.vaQueryDisplayAttributes = query_display_attributes;
  v.vaGetDisplayAttributes = display_attributes;
  v.vaSetDisplayAttributes = display_attributes;
  return VA_STATUS_SUCCESS;
}
