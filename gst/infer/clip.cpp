// The last frames of a stream, copied.
#include "gst/infer/clip.h"

namespace clinfer {
namespace {

class Mapped {
 public:
  Mapped(GstBuffer* buffer, const GstVideoInfo& info, GstMapFlags flags) {
    if (!gst_video_frame_map(&frame_, const_cast<GstVideoInfo*>(&info), buffer, flags))
      throw Error{ErrorCode::bad_argument, "a frame of a clip cannot be mapped"};
  }
  ~Mapped() { gst_video_frame_unmap(&frame_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  GstVideoFrame* get() { return &frame_; }

 private:
  GstVideoFrame frame_;
};

// A picture of this size and format without padding between rows.
GstVideoInfo plain(const GstVideoInfo& info) {
  GstVideoInfo made;
  gst_video_info_init(&made);
  if (!gst_video_info_set_format(&made, GST_VIDEO_INFO_FORMAT(&info),
                                 static_cast<guint>(GST_VIDEO_INFO_WIDTH(&info)),
                                 static_cast<guint>(GST_VIDEO_INFO_HEIGHT(&info))))
    throw Error{ErrorCode::bad_argument, "frames of a clip have an impossible size"};
  made.colorimetry = info.colorimetry;
  made.chroma_site = info.chroma_site;
  return made;
}

Handle<GstBuffer> copy_of(GstBuffer* buffer, const GstVideoInfo& from, const GstVideoInfo& to) {
  Handle<GstBuffer> copy(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&to), nullptr));
  if (copy.get() == nullptr) throw Error{ErrorCode::out_of_memory, "no memory for a clip's frame"};
  {
    Mapped source(buffer, from, GST_MAP_READ);
    Mapped target(copy.get(), to, GST_MAP_WRITE);
    if (!gst_video_frame_copy(target.get(), source.get()))
      throw Error{ErrorCode::bad_argument, "a frame of a clip cannot be copied"};
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

bool Clip::add(GstBuffer* buffer, const GstVideoInfo& info, const Orientation& orientation,
               const CompiledModel& model, size_t length, unsigned stride) {
  if (seen_++ % stride != 0) return false;
  const GstVideoInfo own = plain(info);
  const Handle<GstBuffer> copy = copy_of(buffer, info, own);
  frames_.push_back(std::make_shared<FrameInput>(copy.get(), own, model));
  frames_.back()->turn(orientation);
  while (frames_.size() > length) frames_.pop_front();
  return frames_.size() == length;
}

void Clip::clear() {
  frames_.clear();
  seen_ = 0;
}

}  // namespace clinfer
