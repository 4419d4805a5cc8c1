// Frames in CUDA memory, as NVIDIA's decoders produce them. OpenCL imports such memory by
// descriptor if it was allocated for export; other memory is copied to such memory on the device.
// Needs GStreamer's CUDA library 1.24 or newer; without it no caps for such memory are offered.
#pragma once

#include <gst/video/video.h>

#include "gst/base/handle.h"
#include "gst/frames/memory_import.h"

namespace clinfer {

#ifdef CLINFER_HAVE_CUDA
inline constexpr bool kHaveCudaMemory = true;
#define CLINFER_CUDA_CAPS \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES("memory:CUDAMemory", "{ NV12, P010_10LE }") ";"
#else
inline constexpr bool kHaveCudaMemory = false;
#define CLINFER_CUDA_CAPS
#endif

inline constexpr const char* kCudaFeature = "memory:CUDAMemory";

const MemoryKind& cuda_kind();

// Returns a pool of memory that can be exported, in the CUDA context of the element upstream of
// `sink`, for frames of `caps`. Returns null without such a context or memory.
Handle<GstBufferPool> new_exportable_pool(GstPad* sink, GstCaps* caps);

// Copies frames of one stream to memory that can be exported. Not thread-safe.
class CudaCopier {
 public:
  // Returns whether OpenCL can import the buffer's memory directly.
  static bool is_exportable(GstBuffer* buffer);
  // Returns a copy of the frame, made on the device, with the crop of `buffer` and no other metas.
  // Throws Error if that is not possible.
  Handle<GstBuffer> copy(GstBuffer* buffer, const GstVideoInfo& info);
  void clear();

 private:
  void open(GstBuffer* buffer, const GstVideoInfo& info);

  Handle<GstBufferPool> pool_;
  GstVideoInfo info_{};      // of the pool
  void* context_ = nullptr;  // the pool's context, kept alive by the pool
};

}  // namespace clinfer
