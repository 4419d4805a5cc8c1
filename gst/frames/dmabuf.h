// Frames in DMA-BUFs that the device reads without a copy. The OpenCL buffers made for them live as
// long as the frames' memory.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/engine.h"

namespace clinfer {

// Imports for one compiled model, which outlives it. Thread-safe.
class DmabufImporter {
 public:
  struct Picture {
    ImportedPlanes planes;
    Frame frame;   // without planes
    Rect visible;  // the part that viewers see
  };

  explicit DmabufImporter(std::shared_ptr<CompiledModel> model) : model_(std::move(model)) {}

  // The frame in the OpenCL buffers of its memories, which are made at a memory's first frame. Waits
  // until the writer of the frame has finished. The first frame is also mapped and compared with what
  // the device reads. Empty if the device imports no DMA-BUFs: problem() gives the reason. Throws Error
  // if this frame cannot be imported, or none since the first could.
  std::optional<Picture> import(GstBuffer* buffer, const GstVideoInfo& info);
  // Why DMA-BUFs are not imported; "" while no reason is known.
  std::string problem() const;

 private:
  std::shared_ptr<ImportedMemory> memory_of(GstMemory* memory) const;

  const std::shared_ptr<CompiledModel> model_;
  mutable std::mutex mutex_;
  bool tested_ = false;
  std::string problem_;
};

}  // namespace clinfer
