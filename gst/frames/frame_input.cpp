// Gives frames to infer requests.
#include "gst/frames/frame_input.h"

#include "gst/base/log.h"
#include "gst/frames/frame_memory.h"

namespace clinfer {

FrameInput::FrameInput(GstBuffer* buffer, const GstVideoInfo& info, const CompiledModel& model)
    : buffer_(gst_buffer_ref(buffer)), info_(info) {
  map();
  const FrameMemory* memory = frame_memory_of(buffer);
  if (memory != nullptr && model.fetches_from(*memory)) memory_ = memory;
}

FrameInput::FrameInput(GstBuffer* buffer, const GstVideoInfo& info, const SurfaceDisplay& display,
                       const std::shared_ptr<CompiledModel>& model)
    : buffer_(gst_buffer_ref(buffer)), info_(info) {
  if constexpr (kHaveSurfaces) {
    const SurfacePicture picture = surface_picture(buffer, info);
    frame_ = picture.frame;
    visible_ = picture.visible;
    try {
      surface_ = import_surface(buffer, display, frame_, model);
      return;
    } catch (const Error& error) {
      problem_ = error.what();
      GST_CAT_DEBUG(clinfer_frames_debug, "a surface is mapped: %s", problem_.c_str());
    }
  }
  map();
}

FrameInput::FrameInput(GstBuffer* buffer, const GstVideoInfo& info, MemoryImporter& importer)
    : buffer_(gst_buffer_ref(buffer)), info_(info) {
  try {
    if (auto picture = importer.import(buffer, info)) {
      frame_ = picture->frame;
      visible_ = picture->visible;
      planes_ = std::move(picture->planes);
      return;
    }
  } catch (const Error& error) {
    problem_ = error.what();
    GST_CAT_DEBUG(clinfer_frames_debug, "a frame is mapped: %s", problem_.c_str());
  }
  map();
}

FrameInput::~FrameInput() { wait(); }

void FrameInput::wait() {
  if (surface_ != nullptr) surface_->wait();
  for (const auto& memory : planes_.memories)
    if (memory != nullptr) memory->wait();
}

void FrameInput::map() {
  mapped_ = std::make_unique<MappedFrame>(buffer_.get(), info_);
  frame_ = mapped_->frame();
  visible_ = mapped_->visible();
}

void FrameInput::give_up(const std::string& why) {
  problem_ = why;
  GST_CAT_DEBUG(clinfer_frames_debug, "a frame is mapped after all: %s", why.c_str());
  wait();
  surface_.reset();
  planes_ = {};
  map();
}

Placement FrameInput::fill(InferRequest& request, size_t input, const FrameTransform& transform,
                           const FramePart& part, size_t image) {
  const std::lock_guard lock(filling_);
  if (zero_copy()) {
    try {
      Frame picture = frame_;
      picture.visible = visible_;
      picture.region = part.region;
      picture.angle = part.angle;
      picture.orientation = orientation_;
      return surface_ != nullptr ? request.set_surface(input, surface_, picture, transform, image)
                                 : request.set_memory(input, planes_, picture, transform, image);
    } catch (const Error& error) {
      give_up(error.what());
    }
  }
  Frame frame = frame_;
  frame.visible = visible_;
  frame.region = part.region;
  frame.angle = part.angle;
  frame.orientation = orientation_;
  return request.set_frame(input, frame, transform, image, memory_);
}

}  // namespace clinfer
