// Copies frames into system memory.
#include "gst/frames/frame_copy.h"

#include "gst/base/video_mapping.h"

namespace clinfer {
namespace {

// Describes a picture of this size and format without padding between rows.
GstVideoInfo plain(const GstVideoInfo& info) {
  GstVideoInfo made;
  gst_video_info_init(&made);
  if (!gst_video_info_set_format(&made, GST_VIDEO_INFO_FORMAT(&info),
                                 static_cast<guint>(GST_VIDEO_INFO_WIDTH(&info)),
                                 static_cast<guint>(GST_VIDEO_INFO_HEIGHT(&info))))
    throw Error{ErrorCode::bad_argument, "a frame to copy has an impossible size"};
  made.colorimetry = info.colorimetry;
  made.chroma_site = info.chroma_site;
  return made;
}

Handle<GstBuffer> copy_as(GstBuffer* buffer, const GstVideoInfo& from, const GstVideoInfo& to) {
  Handle<GstBuffer> copy(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&to), nullptr));
  if (copy.get() == nullptr)
    throw Error{ErrorCode::out_of_memory, "no memory for a copy of a frame"};
  {
    constexpr const char* kNoMapping = "a frame to copy cannot be mapped";
    VideoMapping source(buffer, from, GST_MAP_READ, kNoMapping);
    VideoMapping target(copy.get(), to, GST_MAP_WRITE, kNoMapping);
    if (!gst_video_frame_copy(target.frame(), source.frame()))
      throw Error{ErrorCode::bad_argument, "a frame cannot be copied"};
  }
  if (const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer)) {
    GstVideoCropMeta* same = gst_buffer_add_video_crop_meta(copy.get());
    same->x = crop->x;
    same->y = crop->y;
    same->width = crop->width;
    same->height = crop->height;
  }
  return copy;
}

}  // namespace

std::shared_ptr<FrameInput> copied_input(GstBuffer* buffer, const GstVideoInfo& info,
                                         const CompiledModel& model) {
  const GstVideoInfo own = plain(info);
  const Handle<GstBuffer> copy = copy_as(buffer, info, own);
  return std::make_shared<FrameInput>(copy.get(), own, model);
}

}  // namespace clinfer
