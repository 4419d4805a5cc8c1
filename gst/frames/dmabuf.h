// Frames in DMA-BUFs that the device reads where they lie: whether it can, and their buffers, which
// live as long as the frames' memory.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/engine.h"

namespace clinfer {

// Of one compiled model, which outlives it. Thread-safe.
class DmabufImporter {
 public:
  struct Picture {
    ImportedPlanes planes;
    Frame frame;   // without planes
    Rect visible;  // the part that viewers see
  };

  explicit DmabufImporter(std::shared_ptr<CompiledModel> model) : model_(std::move(model)) {}

  // The frame in the buffers of its memories, made at a memory's first frame. Waits until who wrote
  // the frame is done. The first one is also mapped, and what the device reads of it is compared.
  // Nothing where the device imports none: problem() says why. Throws what is wrong with this one,
  // or with all since the first.
  std::optional<Picture> import(GstBuffer* buffer, const GstVideoInfo& info);
  // "" while nothing is known against it.
  std::string problem() const;

 private:
  std::shared_ptr<ImportedMemory> memory_of(GstMemory* memory) const;

  const std::shared_ptr<CompiledModel> model_;
  mutable std::mutex mutex_;
  bool tested_ = false;
  std::string problem_;
};

}  // namespace clinfer
