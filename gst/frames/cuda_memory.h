// Frames in memory of CUDA, as NVIDIA's decoders give them. OpenCL imports such memory by descriptor
// where it was allocated to be exported; other memory is copied into some that was, on the device.
// Needs GStreamer's CUDA library of 1.24 or newer; without it no caps for such memory are offered.
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

// A pool of memory that can be exported, in the CUDA context of the element upstream of `sink`, for
// frames of `caps`. Null where there is no such context or memory.
Handle<GstBufferPool> new_exportable_pool(GstPad* sink, GstCaps* caps);

// Copies frames of one stream into memory that can be exported. For one thread.
class CudaCopier {
 public:
  // Returns whether OpenCL may import the buffer's memory as it is.
  static bool is_exportable(GstBuffer* buffer);
  // A copy of the frame, made on the device; it has the crop of `buffer`, no other metas. Throws Error
  // where that is not possible.
  Handle<GstBuffer> copy(GstBuffer* buffer, const GstVideoInfo& info);
  void clear();

 private:
  void open(GstBuffer* buffer, const GstVideoInfo& info);

  Handle<GstBufferPool> pool_;
  GstVideoInfo info_{};      // of the pool
  void* context_ = nullptr;  // the pool's, which it keeps
};

}  // namespace clinfer
