// Frames in memory of other APIs that the device reads without a copy. The OpenCL buffers made for
// them live as long as the frames' memory.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/engine.h"

namespace clinfer {

// A kind of memory that OpenCL imports by a file descriptor.
struct MemoryKind {
  MemoryHandle handle;
  const char* name;  // name in caps
  bool (*holds)(GstMemory* memory);
  // Waits until the writer of the memory has finished. Throws Error{device_failed}.
  void (*wait_for_writer)(GstMemory* memory);
  // Returns the descriptor, which the memory keeps. Throws Error if there is none.
  int (*descriptor)(GstMemory* memory);
};

const MemoryKind& dmabuf_kind();

// Imports for one compiled model, which must outlive it. Thread-safe.
class MemoryImporter {
 public:
  struct Picture {
    ImportedPlanes planes;
    Frame frame;   // without planes
    Rect visible;  // the part that viewers see
  };

  MemoryImporter(std::shared_ptr<CompiledModel> model, const MemoryKind& kind)
      : model_(std::move(model)), kind_(kind) {}

  // Returns the frame in the OpenCL buffers of its memories, which are made at a memory's first
  // frame. Waits until the writer of the frame has finished. The first frame is also mapped and
  // compared with what the device reads. Returns nothing if the device imports no such memory;
  // problem() gives the reason. Throws Error if this frame cannot be imported although the device
  // imports such memory.
  std::optional<Picture> import(GstBuffer* buffer, const GstVideoInfo& info);
  // Returns why such memory is not imported; "" while no reason is known.
  std::string problem() const;

 private:
  std::shared_ptr<ImportedMemory> memory_of(GstMemory* memory) const;

  const std::shared_ptr<CompiledModel> model_;
  const MemoryKind& kind_;
  mutable std::mutex mutex_;
  bool tested_ = false;
  std::string problem_;
};

}  // namespace clinfer
