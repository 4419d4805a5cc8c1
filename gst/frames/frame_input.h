// A frame in a form that infer requests accept: a VA surface, DMA-BUF or CUDA memory that the
// device reads without a copy, or mapped memory.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <mutex>
#include <string>

#include "gst/base/handle.h"
#include "gst/frames/mapped_frame.h"
#include "gst/frames/memory_import.h"
#include "gst/frames/va_surface.h"

namespace clinfer {

// A region of a frame and its turn, as in Frame.
struct FramePart {
  Rect region;
  std::optional<float> angle;
};

// Holds a reference to the buffer. The destructor waits until no request reads the surface. Several
// threads may call fill() at the same time (for the regions of a frame), but no other function.
class FrameInput {
 public:
  // Maps the buffer; `model` fetches it from there if it lies in its frame memory. Throws
  // UnreadableFrame as MappedFrame does.
  FrameInput(GstBuffer* buffer, const GstVideoInfo& info, const CompiledModel& model);
  // Imports the buffer's surface for `model`, which compiled for `display`, and maps the buffer
  // only if that fails. Throws Error for frames that cannot be read in either way.
  FrameInput(GstBuffer* buffer, const GstVideoInfo& info, const SurfaceDisplay& display,
             const std::shared_ptr<CompiledModel>& model);
  // Imports the buffer's memories, and maps the buffer only if that fails. Throws as the
  // constructor above does.
  FrameInput(GstBuffer* buffer, const GstVideoInfo& info, MemoryImporter& importer);
  ~FrameInput();
  FrameInput(const FrameInput&) = delete;
  FrameInput& operator=(const FrameInput&) = delete;

  // The part that viewers see, in pixels of the frame.
  const Rect& visible() const { return visible_; }
  const Rect& region() const { return frame_.region; }
  bool zero_copy() const { return surface_ != nullptr || planes_.memories[0] != nullptr; }
  bool in_frame_memory() const { return memory_ != nullptr; }
  // Returns why a surface or imported memory was mapped instead; "" if it was not.
  const std::string& problem() const { return problem_; }

  // Sets how the picture is turned for the network.
  void turn(const Orientation& orientation) { orientation_ = orientation; }

  // Gives a part of the frame to a request as one image of its input.
  Placement fill(InferRequest& request, size_t input, const FrameTransform& transform,
                 const FramePart& part, size_t image);

 private:
  void map();
  void wait();                           // blocks until no request reads the surface or memories
  void give_up(const std::string& why);  // maps the buffer from now on

  Handle<GstBuffer> buffer_;
  GstVideoInfo info_;
  Frame frame_;
  Rect visible_;
  Orientation orientation_;
  std::shared_ptr<ImportedSurface> surface_;
  ImportedPlanes planes_;
  std::unique_ptr<MappedFrame> mapped_;
  // The memory of the mapped buffer, if the model can fetch from it.
  const FrameMemory* memory_ = nullptr;
  std::string problem_;
  std::mutex filling_;
};

}  // namespace clinfer
