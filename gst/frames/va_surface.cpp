// Handles frames that are VA-API surfaces.
#include "gst/frames/va_surface.h"

#include <gst/va/gstva.h>
#include <unistd.h>
#include <va/va.h>
#include <va/va_drmcommon.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "gst/base/handle.h"
#include "gst/base/unreadable_frame.h"
#include "gst/frames/mapped_frame.h"
#include "gst/frames/memory_data.h"

namespace clinfer {
namespace {

constexpr size_t kPatternWidth = 64, kPatternHeight = 48;

// VA-API's description of a format.
struct VaFormat {
  unsigned fourcc, rt_format, bits_per_pixel;
  size_t sample_bytes;
};
VaFormat va_format_of(PixelFormat format) {
  return format == PixelFormat::p010 ? VaFormat{VA_FOURCC_P010, VA_RT_FORMAT_YUV420_10, 24, 2}
                                     : VaFormat{VA_FOURCC_NV12, VA_RT_FORMAT_YUV420, 12, 1};
}

std::shared_ptr<const SurfaceDisplay> hold(GstVaDisplay* display) {
  void* handle = gst_va_display_get_va_dpy(display);
  const char* vendor = vaQueryVendorString(handle);
  return std::make_shared<const SurfaceDisplay>(
      SurfaceDisplay{{handle, vendor != nullptr ? vendor : "of an unnamed driver"},
                     {gst_object_ref(display), [](void* object) { gst_object_unref(object); }}});
}

std::shared_ptr<const SurfaceDisplay> display_in(GstContext* context) {
  GstVaDisplay* display = nullptr;
  if (context == nullptr || !gst_context_get_va_display(
                                context, GST_VA_DISPLAY_HANDLE_CONTEXT_TYPE_STR, nullptr, &display))
    return nullptr;
  const std::unique_ptr<GstVaDisplay, decltype(&gst_object_unref)> owner(display, gst_object_unref);
  return hold(display);
}

void check(VAStatus status, const char* what) {
  if (status != VA_STATUS_SUCCESS)
    throw Error{ErrorCode::device_failed, std::string(what) + ": " + vaErrorStr(status)};
}

// A surface that this object creates and destroys.
class OwnSurface {
 public:
  OwnSurface(VADisplay display, const VaFormat& format, unsigned width, unsigned height,
             VASurfaceAttrib* attributes, unsigned count)
      : display_(display) {
    check(vaCreateSurfaces(display, format.rt_format, width, height, &id_, 1, attributes, count),
          "vaCreateSurfaces");
  }
  ~OwnSurface() { vaDestroySurfaces(display_, &id_, 1); }
  OwnSurface(const OwnSurface&) = delete;
  OwnSurface& operator=(const OwnSurface&) = delete;
  VASurfaceID id() const { return id_; }

 private:
  VADisplay display_;
  VASurfaceID id_ = VA_INVALID_ID;
};

VASurfaceAttrib attribute(VASurfaceAttribType type, int value) {
  VASurfaceAttrib result{};
  result.type = type;
  result.flags = VA_SURFACE_ATTRIB_SETTABLE;
  result.value.type = VAGenericValueTypeInteger;
  result.value.value.i = value;
  return result;
}

// Makes a second surface of even size over the memory of `id`. For odd sizes Intel's OpenCL rounds
// the UV plane down, and loses a column or row that the memory has.
std::unique_ptr<OwnSurface> even_alias(VADisplay display, VASurfaceID id, const Frame& picture) {
  const VaFormat format = va_format_of(picture.format);
  VADRMPRIMESurfaceDescriptor memory{};
  check(vaExportSurfaceHandle(display, id, VA_SURFACE_ATTRIB_MEM_TYPE_DRM_PRIME_2,
                              VA_EXPORT_SURFACE_READ_WRITE | VA_EXPORT_SURFACE_COMPOSED_LAYERS,
                              &memory),
        "vaExportSurfaceHandle");
  struct Closer {
    const VADRMPRIMESurfaceDescriptor& memory;
    ~Closer() {
      for (uint32_t i = 0; i < memory.num_objects; ++i) close(memory.objects[i].fd);
    }
  } closer{memory};
  memory.width = static_cast<uint32_t>((picture.width + 1) / 2 * 2);
  memory.height = static_cast<uint32_t>((picture.height + 1) / 2 * 2);
  VASurfaceAttrib attributes[] = {
      attribute(VASurfaceAttribPixelFormat, static_cast<int>(format.fourcc)),
      attribute(VASurfaceAttribMemoryType, VA_SURFACE_ATTRIB_MEM_TYPE_DRM_PRIME_2),
      attribute(VASurfaceAttribExternalBufferDescriptor, 0)};
  attributes[2].value.type = VAGenericValueTypePointer;
  attributes[2].value.value.p = &memory;
  return std::make_unique<OwnSurface>(display, format, memory.width, memory.height, attributes,
                                      static_cast<unsigned>(std::size(attributes)));
}

// The OpenCL images of one surface, attached to its memory as qdata. The memory is freed with the
// surface, whereas a later surface may have the same id.
class SurfaceImages {
 public:
  std::shared_ptr<ImportedSurface> get(VADisplay display, VASurfaceID id, const Frame& picture,
                                       const std::shared_ptr<CompiledModel>& model) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](const Entry& entry) { return entry.model.expired(); });
    for (const Entry& entry : entries_)
      if (entry.model.lock() == model) return entry.images;
    Entry entry{model, nullptr, model->import_surface(id)};
    if (entry.images->width() < picture.width || entry.images->height() < picture.height) {
      entry.alias = even_alias(display, id, picture);
      entry.images = model->import_surface(entry.alias->id());
    }
    entries_.push_back(std::move(entry));
    return entries_.back().images;
  }

 private:
  struct Entry {
    std::weak_ptr<CompiledModel> model;
    std::unique_ptr<OwnSurface> alias;  // used if the surface's own images are too small
    std::shared_ptr<ImportedSurface> images;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

// Makes a pattern in which all columns and all rows differ. Samples of 10 bits are in the upper
// bits.
std::vector<uint8_t> make_pattern(const VaFormat& format) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < kPatternWidth * kPatternHeight * 3 / 2; ++i) {
    const size_t x = i % kPatternWidth, y = i / kPatternWidth;
    if (format.sample_bytes == 2) bytes.push_back(static_cast<uint8_t>((x + y) % 4 << 6));
    bytes.push_back(static_cast<uint8_t>(16 + (x * 7 + y * 13 + (x & 1) * 50) % 220));
  }
  return bytes;
}

void write_pattern(VADisplay display, VASurfaceID surface, const VaFormat& stored,
                   const std::vector<uint8_t>& pattern) {
  VAImageFormat format{};
  format.fourcc = stored.fourcc;
  format.byte_order = VA_LSB_FIRST;
  format.bits_per_pixel = stored.bits_per_pixel;
  const size_t row_bytes = kPatternWidth * stored.sample_bytes;
  VAImage image{};
  check(vaCreateImage(display, &format, kPatternWidth, kPatternHeight, &image), "vaCreateImage");
  try {
    void* data = nullptr;
    check(vaMapBuffer(display, image.buf, &data), "vaMapBuffer");
    for (size_t row = 0; row < kPatternHeight * 3 / 2; ++row) {
      const size_t plane = row < kPatternHeight ? 0 : 1;
      std::copy_n(pattern.data() + row * row_bytes, row_bytes,
                  static_cast<uint8_t*>(data) + image.offsets[plane] +
                      (row - plane * kPatternHeight) * image.pitches[plane]);
    }
    check(vaUnmapBuffer(display, image.buf), "vaUnmapBuffer");
    check(vaPutImage(display, surface, image.image_id, 0, 0, kPatternWidth, kPatternHeight, 0, 0,
                     kPatternWidth, kPatternHeight),
          "vaPutImage");
  } catch (...) {
    vaDestroyImage(display, image.image_id);
    throw;
  }
  check(vaDestroyImage(display, image.image_id), "vaDestroyImage");
}

}  // namespace

bool is_surface_caps(const GstCaps* caps) { return has_feature(caps, GST_CAPS_FEATURE_MEMORY_VA); }

bool may_send_surfaces(GstPad* sink) { return may_send(sink, GST_CAPS_FEATURE_MEMORY_VA); }

std::shared_ptr<const SurfaceDisplay> find_display(GstElement* element, GstPad* sink) {
  const char* type = GST_VA_DISPLAY_HANDLE_CONTEXT_TYPE_STR;
  const Handle<GstContext> given(gst_element_get_context(element, type));
  if (auto display = display_in(given.get())) return display;
  const Handle<GstQuery> query(gst_query_new_context(type));
  if (!gst_pad_peer_query(sink, query.get())) return nullptr;
  GstContext* context = nullptr;
  gst_query_parse_context(query.get(), &context);
  return display_in(context);
}

std::shared_ptr<const SurfaceDisplay> display_of(
    GstBuffer* buffer, const std::shared_ptr<const SurfaceDisplay>& known) {
  if (gst_buffer_n_memory(buffer) == 0) throw UnreadableFrame("a buffer holds no VA surface");
  GstVaDisplay* display = gst_va_buffer_peek_display(buffer);
  if (display == nullptr || gst_va_buffer_get_surface(buffer) == VA_INVALID_ID)
    throw Error{ErrorCode::bad_argument,
                "a buffer that should be a VA surface is none; does the element before allocate "
                "memory:VAMemory?"};
  if (known != nullptr && known->display.handle == gst_va_display_get_va_dpy(display)) return known;
  return hold(display);
}

SurfacePicture surface_picture(GstBuffer* buffer, const GstVideoInfo& info) {
  if (gst_buffer_n_memory(buffer) == 0) throw UnreadableFrame("a buffer holds no VA surface");
  if (GST_BUFFER_FLAG_IS_SET(buffer, GST_VIDEO_BUFFER_FLAG_INTERLACED))
    throw Error{ErrorCode::unsupported,
                "interlaced VA surfaces are not read: put a deinterlacer before clinfer"};
  SurfacePicture picture;
  picture.frame = frame_of_info(info);
  if (const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer)) {
    picture.frame.width = static_cast<int>(std::min<guint>(meta->width, G_MAXINT));
    picture.frame.height = static_cast<int>(std::min<guint>(meta->height, G_MAXINT));
  }
  picture.visible = visible_part(picture.frame.width, picture.frame.height, buffer);
  if (gst_buffer_get_video_crop_meta(buffer) != nullptr) picture.frame.region = picture.visible;
  return picture;
}

std::shared_ptr<ImportedSurface> import_surface(GstBuffer* buffer, const SurfaceDisplay& display,
                                                const Frame& picture,
                                                const std::shared_ptr<CompiledModel>& model) {
  const VASurfaceID id = gst_va_buffer_get_surface(buffer);
  // Waits for the decoder here, where no lock is held; otherwise acquiring the surface would wait.
  check(vaSyncSurface(display.display.handle, id), "vaSyncSurface");
  return data_of<SurfaceImages>(gst_buffer_peek_memory(buffer, 0), "clinfer-surface-images")
      .get(display.display.handle, id, picture, model);
}

std::string test_sharing(const SurfaceDisplay& display, CompiledModel& model, PixelFormat format) {
  try {
    const VaFormat stored = va_format_of(format);
    VASurfaceAttrib wanted = attribute(VASurfaceAttribPixelFormat, static_cast<int>(stored.fourcc));
    const OwnSurface surface(display.display.handle, stored, kPatternWidth, kPatternHeight, &wanted,
                             1);
    const std::vector<uint8_t> pattern = make_pattern(stored);
    write_pattern(display.display.handle, surface.id(), stored, pattern);
    const size_t row_bytes = kPatternWidth * stored.sample_bytes;
    Frame expected;
    expected.format = format;
    expected.width = kPatternWidth;
    expected.height = kPatternHeight;
    expected.planes = {pattern.data(), pattern.data() + row_bytes * kPatternHeight, nullptr};
    expected.strides = {static_cast<int>(row_bytes), static_cast<int>(row_bytes), 0};
    const auto images = model.import_surface(surface.id());
    const std::string wrong = model.check_surface(images, expected);
    images->wait();
    return wrong.empty() ? "" : "the self-test read a wrong picture: " + wrong;
  } catch (const Error& error) {
    return std::string("the self-test failed: ") + error.what();
  }
}

}  // namespace clinfer
