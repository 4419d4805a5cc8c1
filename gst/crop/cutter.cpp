// Copies parts of frames plane by plane.
#include "gst/crop/cutter.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "gst/base/video_mapping.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

// Returns how many pixels share a sample, in each direction.
std::pair<int, int> step_of(const GstVideoInfo& info) {
  int x = 1, y = 1;
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); ++c) {
    x = std::max(x, 1 << GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, c));
    y = std::max(y, 1 << GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, c));
  }
  return {x, y};
}

// The part of a plane that covers a rectangle, in whole samples.
struct PlanePart {
  size_t offset = 0, bytes = 0;  // bytes in a row
  int first_row = 0, rows = 0;
};

// Finds the part. Components that share a plane may have fewer samples than others there (YUY2).
PlanePart part_of(const GstVideoFormatInfo* format, guint plane, const Rect& rect) {
  PlanePart part;
  for (guint c = 0; c < GST_VIDEO_FORMAT_INFO_N_COMPONENTS(format); ++c) {
    if (GST_VIDEO_FORMAT_INFO_PLANE(format, c) != plane) continue;
    const guint x = GST_VIDEO_FORMAT_INFO_W_SUB(format, c),
                y = GST_VIDEO_FORMAT_INFO_H_SUB(format, c);
    const auto pixel = static_cast<size_t>(GST_VIDEO_FORMAT_INFO_PSTRIDE(format, c));
    part.offset = static_cast<size_t>(rect.x >> x) * pixel;
    part.first_row = rect.y >> y;
    part.bytes =
        std::max(part.bytes, static_cast<size_t>(GST_VIDEO_SUB_SCALE(x, rect.width)) * pixel);
    part.rows = std::max<int>(part.rows, GST_VIDEO_SUB_SCALE(y, rect.height));
  }
  return part;
}

constexpr const char* kNoMapping = "a region cannot be mapped";

Handle<GstBuffer> buffer_for(const GstVideoInfo& info) {
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
  if (buffer == nullptr) throw Error{ErrorCode::out_of_memory, "no memory for a region"};
  return Handle<GstBuffer>(buffer);
}

}  // namespace

Rect whole_samples(const Rect& rect, const Rect& visible, const GstVideoInfo& info) {
  const auto [x_step, y_step] = step_of(info);
  const auto axis = [](int start, int size, int first, int end, int step) {
    const int from = std::clamp(start, first, end - 1),
              to = std::clamp(start + size, from + 1, end);
    // Counts samples from the corner of the frame.
    int low = from / step * step, high = (to + step - 1) / step * step;
    if (low < first) low += step;
    if (high > end) high = end;
    if (high <= low) low = std::max(high - step, 0);
    return std::pair(low, high - low);
  };
  const auto [x, width] = axis(rect.x, rect.width, visible.x, visible.x + visible.width, x_step);
  const auto [y, height] = axis(rect.y, rect.height, visible.y, visible.y + visible.height, y_step);
  return {x, y, width, height};
}

GstVideoInfo resized(const GstVideoInfo& like, int width, int height) {
  GstVideoInfo info;
  gst_video_info_init(&info);
  if (!gst_video_info_set_format(&info, GST_VIDEO_INFO_FORMAT(&like), static_cast<guint>(width),
                                 static_cast<guint>(height)))
    throw Error{ErrorCode::bad_argument, "a region of " + std::to_string(width) + "x" +
                                             std::to_string(height) + " is no picture"};
  info.colorimetry = like.colorimetry;
  info.chroma_site = like.chroma_site;
  GST_VIDEO_INFO_FPS_N(&info) = GST_VIDEO_INFO_FPS_N(&like);
  GST_VIDEO_INFO_FPS_D(&info) = GST_VIDEO_INFO_FPS_D(&like);
  return info;
}

Handle<GstBuffer> cut(GstVideoFrame& frame, const Rect& rect, int width, int height,
                      GstVideoInfo& info) {
  const GstVideoInfo whole = resized(frame.info, rect.width, rect.height);
  Handle<GstBuffer> copy = buffer_for(whole);
  {
    VideoMapping to(copy.get(), whole, GST_MAP_WRITE, kNoMapping);
    const GstVideoFormatInfo* format = frame.info.finfo;
    for (guint plane = 0; plane < GST_VIDEO_FRAME_N_PLANES(&frame); ++plane) {
      const PlanePart part = part_of(format, plane, rect);
      const auto* source = static_cast<const uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, plane));
      auto* target = static_cast<uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(to.frame(), plane));
      const ptrdiff_t from_stride = GST_VIDEO_FRAME_PLANE_STRIDE(&frame, plane),
                      to_stride = GST_VIDEO_FRAME_PLANE_STRIDE(to.frame(), plane);
      source += part.first_row * from_stride;
      source += part.offset;
      for (int row = 0; row < part.rows; ++row)
        std::memcpy(target + row * to_stride, source + row * from_stride, part.bytes);
    }
  }
  info = whole;
  if ((width == 0 || width == rect.width) && (height == 0 || height == rect.height)) return copy;
  info = resized(frame.info, width != 0 ? width : rect.width, height != 0 ? height : rect.height);
  Handle<GstBuffer> scaled = buffer_for(info);
  const std::unique_ptr<GstVideoConverter, void (*)(GstVideoConverter*)> converter(
      gst_video_converter_new(&whole, &info, nullptr), gst_video_converter_free);
  if (converter == nullptr)
    throw Error{ErrorCode::bad_argument,
                std::string("regions in ") +
                    gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&info)) +
                    " cannot be scaled; put videoconvert before clcrop"};
  VideoMapping from(copy.get(), whole, GST_MAP_READ, kNoMapping),
      to(scaled.get(), info, GST_MAP_WRITE, kNoMapping);
  gst_video_converter_frame(converter.get(), from.frame(), to.frame());
  return scaled;
}

}  // namespace clinfer
