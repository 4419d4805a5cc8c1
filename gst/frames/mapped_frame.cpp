// Maps buffers, and checks that their metadata match their memory.
#include "gst/frames/mapped_frame.h"

#include <optional>
#include <string>

#include "gst/base/handle.h"
#include "gst/base/unreadable_frame.h"
#include "gst/base/video_mapping.h"

namespace clinfer {
namespace {

std::optional<PixelFormat> pixel_format(GstVideoFormat format) {
  switch (format) {
    case GST_VIDEO_FORMAT_NV12:
      return PixelFormat::nv12;
    case GST_VIDEO_FORMAT_NV21:
      return PixelFormat::nv21;
    case GST_VIDEO_FORMAT_I420:
      return PixelFormat::i420;
    case GST_VIDEO_FORMAT_YV12:
      return PixelFormat::yv12;
    case GST_VIDEO_FORMAT_YUY2:
      return PixelFormat::yuy2;
    case GST_VIDEO_FORMAT_UYVY:
      return PixelFormat::uyvy;
    case GST_VIDEO_FORMAT_RGB:
      return PixelFormat::rgb;
    case GST_VIDEO_FORMAT_BGR:
      return PixelFormat::bgr;
    case GST_VIDEO_FORMAT_RGBx:
    case GST_VIDEO_FORMAT_RGBA:
      return PixelFormat::rgbx;
    case GST_VIDEO_FORMAT_BGRx:
    case GST_VIDEO_FORMAT_BGRA:
      return PixelFormat::bgrx;
    case GST_VIDEO_FORMAT_xRGB:
    case GST_VIDEO_FORMAT_ARGB:
      return PixelFormat::xrgb;
    case GST_VIDEO_FORMAT_xBGR:
    case GST_VIDEO_FORMAT_ABGR:
      return PixelFormat::xbgr;
    case GST_VIDEO_FORMAT_GRAY8:
      return PixelFormat::gray8;
    case GST_VIDEO_FORMAT_NV16:
      return PixelFormat::nv16;
    case GST_VIDEO_FORMAT_Y42B:
      return PixelFormat::y42b;
    case GST_VIDEO_FORMAT_Y444:
      return PixelFormat::y444;
    case GST_VIDEO_FORMAT_P010_10LE:
      return PixelFormat::p010;
    case GST_VIDEO_FORMAT_I420_10LE:
      return PixelFormat::i420_10;
    default:
      return std::nullopt;
  }
}

YuvMatrix yuv_matrix(GstVideoColorMatrix matrix) {
  switch (matrix) {
    case GST_VIDEO_COLOR_MATRIX_BT709:
    case GST_VIDEO_COLOR_MATRIX_SMPTE240M:  // differs by less than 0.6 %
      return YuvMatrix::bt709;
    case GST_VIDEO_COLOR_MATRIX_BT2020:
      return YuvMatrix::bt2020;
    default:
      return YuvMatrix::bt601;
  }
}

std::string size_text(const GstVideoInfo& info) {
  return std::string(gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&info))) + " " +
         std::to_string(GST_VIDEO_INFO_WIDTH(&info)) + "x" +
         std::to_string(GST_VIDEO_INFO_HEIGHT(&info));
}

}  // namespace

namespace {

bool parse_caps(const GstCaps* caps, GstVideoInfo& info) {
#if GST_CHECK_VERSION(1, 24, 0)
  if (gst_video_is_dma_drm_caps(caps)) {
    GstVideoInfoDmaDrm drm;
    return gst_video_info_dma_drm_from_caps(&drm, caps) &&
           gst_video_info_dma_drm_to_video_info(&drm, &info);
  }
#endif
  return gst_video_info_from_caps(&info, caps);
}

}  // namespace

bool read_caps(const GstCaps* caps, GstVideoInfo& info) {
  if (!parse_caps(caps, info)) return false;
  if (GST_VIDEO_INFO_IS_YUV(&info) &&
      !gst_structure_has_field(gst_caps_get_structure(caps, 0), "colorimetry"))
    gst_video_colorimetry_from_string(&info.colorimetry, GST_VIDEO_COLORIMETRY_BT601);
  return true;
}

bool has_feature(const GstCaps* caps, const char* feature) {
  const GstCapsFeatures* features = gst_caps_get_features(caps, 0);
  return features != nullptr && gst_caps_features_contains(features, feature);
}

bool is_dmabuf_caps(const GstCaps* caps) { return has_feature(caps, "memory:DMABuf"); }

bool may_send(GstPad* sink, const char* feature) {
  const Handle<GstCaps> possible(gst_pad_peer_query_caps(sink, nullptr));
  if (possible == nullptr || gst_caps_is_any(possible.get())) return false;
  for (guint i = 0; i < gst_caps_get_size(possible.get()); ++i) {
    const GstCapsFeatures* features = gst_caps_get_features(possible.get(), i);
    if (features != nullptr && gst_caps_features_contains(features, feature)) return true;
  }
  return false;
}

void check_meta(GstBuffer* buffer, const GstVideoInfo& info) {
  constexpr guint kMost = G_MAXINT / 4;  // the bytes of a row this wide still fit an int
  const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
  if (meta == nullptr ||
      (meta->format == GST_VIDEO_INFO_FORMAT(&info) && meta->width <= kMost &&
       meta->height <= kMost && meta->width >= static_cast<guint>(GST_VIDEO_INFO_WIDTH(&info)) &&
       meta->height >= static_cast<guint>(GST_VIDEO_INFO_HEIGHT(&info))))
    return;
  const char* format = gst_video_format_to_string(meta->format);
  throw UnreadableFrame("a frame of " + size_text(info) + " has a GstVideoMeta of " + format + " " +
                        std::to_string(meta->width) + "x" + std::to_string(meta->height));
}

int component_offset(const GstVideoFormatInfo* format, guint component) {
  const int stated = GST_VIDEO_FORMAT_INFO_POFFSET(format, component);
  return GST_VIDEO_FORMAT_INFO_DEPTH(format, component) > 8 && stated != 0 ? 2 : stated;
}

void check_frame_memory(const GstVideoFrame& mapped, GstBuffer* buffer) {
  const GstVideoFormatInfo* format = mapped.info.finfo;
  // With a GstVideoMeta each plane has a mapping of its own, else all share the first.
  const bool has_meta = gst_buffer_get_video_meta(buffer) != nullptr;
  for (guint c = 0; c < GST_VIDEO_FRAME_N_COMPONENTS(&mapped); ++c) {
    const int plane = GST_VIDEO_FRAME_COMP_PLANE(&mapped, c);
    const GstMapInfo& map = mapped.map[has_meta ? plane : 0];
    const int64_t rows = GST_VIDEO_FRAME_COMP_HEIGHT(&mapped, c);
    const int64_t columns = GST_VIDEO_FRAME_COMP_WIDTH(&mapped, c);
    const int64_t stride = GST_VIDEO_FRAME_PLANE_STRIDE(&mapped, plane);
    const int64_t row_bytes = component_offset(format, c) +
                              (columns - 1) * GST_VIDEO_FORMAT_INFO_PSTRIDE(format, c) +
                              (GST_VIDEO_FORMAT_INFO_BITS(format) + 7) / 8;
    const int64_t start = static_cast<const guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&mapped, plane)) -
                          static_cast<const guint8*>(map.data);
    const int64_t end = start + (rows - 1) * stride + row_bytes;
    if (rows < 1 || columns < 1 || stride < row_bytes || start < 0 ||
        end > static_cast<int64_t>(map.size)) {
      throw UnreadableFrame("a frame of " + size_text(mapped.info) + " with stride " +
                            std::to_string(stride) + " in plane " + std::to_string(plane) +
                            " does not fit its memory of " + std::to_string(map.size) + " bytes");
    }
  }
}

Rect visible_part(int width, int height, GstBuffer* buffer) {
  const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer);
  if (crop == nullptr) return {0, 0, width, height};
  const uint64_t right = static_cast<uint64_t>(crop->x) + crop->width;
  const uint64_t bottom = static_cast<uint64_t>(crop->y) + crop->height;
  if (crop->width == 0 || crop->height == 0 || right > static_cast<uint64_t>(width) ||
      bottom > static_cast<uint64_t>(height)) {
    throw UnreadableFrame("the crop rectangle of a frame reaches beyond its " +
                          std::to_string(width) + "x" + std::to_string(height));
  }
  return {static_cast<int>(crop->x), static_cast<int>(crop->y), static_cast<int>(crop->width),
          static_cast<int>(crop->height)};
}

Frame frame_of_info(const GstVideoInfo& info) {
  const std::optional<PixelFormat> format = pixel_format(GST_VIDEO_INFO_FORMAT(&info));
  if (!format)
    throw Error{ErrorCode::bad_argument, "frames of " + size_text(info) + " cannot be read"};
  Frame frame;
  frame.format = *format;
  frame.width = GST_VIDEO_INFO_WIDTH(&info);
  frame.height = GST_VIDEO_INFO_HEIGHT(&info);
  frame.matrix = yuv_matrix(info.colorimetry.matrix);
  frame.full_range = info.colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255;
  if (GST_VIDEO_INFO_PAR_N(&info) > 0 && GST_VIDEO_INFO_PAR_D(&info) > 0)
    frame.pixel_aspect =
        static_cast<double>(GST_VIDEO_INFO_PAR_N(&info)) / GST_VIDEO_INFO_PAR_D(&info);
  return frame;
}

MappedFrame::MappedFrame(GstBuffer* buffer, const GstVideoInfo& info)
    : frame_(frame_of_info(info)) {
  check_meta(buffer, info);
  if (!gst_video_frame_map(&mapped_, &info, buffer, GST_MAP_READ)) {
    throw_not_mapped(buffer, "a buffer of " + std::to_string(gst_buffer_get_size(buffer)) +
                                 " bytes does not hold a frame of " + size_text(info));
  }
  try {
    frame_.width = GST_VIDEO_FRAME_WIDTH(&mapped_);
    frame_.height = GST_VIDEO_FRAME_HEIGHT(&mapped_);
    for (guint plane = 0; plane < GST_VIDEO_FRAME_N_PLANES(&mapped_) && plane < 3; ++plane) {
      frame_.planes[plane] =
          static_cast<const uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&mapped_, plane));
      frame_.strides[plane] = GST_VIDEO_FRAME_PLANE_STRIDE(&mapped_, plane);
    }
    visible_ = visible_part(frame_.width, frame_.height, buffer);
    if (gst_buffer_get_video_crop_meta(buffer) != nullptr) frame_.region = visible_;
    check_frame_memory(mapped_, buffer);
  } catch (...) {
    gst_video_frame_unmap(&mapped_);
    throw;
  }
}

MappedFrame::~MappedFrame() { gst_video_frame_unmap(&mapped_); }

}  // namespace clinfer
