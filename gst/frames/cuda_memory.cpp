// Handles frames in CUDA memory.
#include "gst/frames/cuda_memory.h"

#include <gst/cuda/cuda-gst.h>
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>

#include <memory>

#include "gst/base/log.h"
#include "gst/base/video_mapping.h"
#include "gst/frames/mapped_frame.h"

#define GST_CAT_DEFAULT clinfer_frames_debug

namespace clinfer {
namespace {

// Makes a CUDA context the calling thread's for a scope.
class CurrentContext {
 public:
  explicit CurrentContext(GstCudaContext* context) {
    if (!gst_cuda_context_push(context))
      throw Error{ErrorCode::device_failed, "the CUDA context of a frame cannot be used"};
  }
  ~CurrentContext() { gst_cuda_context_pop(nullptr); }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
};

bool holds_cuda(GstMemory* memory) { return gst_is_cuda_memory(memory); }

// Waits for the memory's stream only, so that the device goes on with other work.
void wait_for_stream(GstMemory* memory) { gst_cuda_memory_sync(GST_CUDA_MEMORY_CAST(memory)); }

int export_memory(GstMemory* memory) {
  int fd = -1;
  if (!gst_cuda_memory_export(GST_CUDA_MEMORY_CAST(memory), &fd) || fd < 0)
    throw Error{ErrorCode::unsupported,
                "the driver does not export a frame's memory, or it was not allocated for that"};
  return fd;
}

GstCudaMemory* only_memory(GstBuffer* buffer) {
  GstMemory* memory =
      gst_buffer_n_memory(buffer) == 1 ? gst_buffer_peek_memory(buffer, 0) : nullptr;
  return memory != nullptr && gst_is_cuda_memory(memory) ? GST_CUDA_MEMORY_CAST(memory) : nullptr;
}

// Returns the context of the element that will use a pool. It must not be another one: memory and
// streams of different contexts cannot be combined, and the element would give up.
Handle<GstObject> upstream_context(GstPad* sink) {
  const Handle<GstQuery> query(gst_query_new_context(GST_CUDA_CONTEXT_TYPE));
  GstContext* context = nullptr;
  if (gst_pad_peer_query(sink, query.get())) gst_query_parse_context(query.get(), &context);
  GstCudaContext* found = nullptr;
  if (context != nullptr)
    gst_structure_get(gst_context_get_structure(context), GST_CUDA_CONTEXT_TYPE,
                      GST_TYPE_CUDA_CONTEXT, &found, nullptr);
  return Handle<GstObject>(reinterpret_cast<GstObject*>(found));
}

Handle<GstBufferPool> new_pool(GstCudaContext* context, GstCaps* caps, gsize size,
                               GstCudaStream* stream) {
  gboolean can_export = FALSE;
  g_object_get(context, "os-handle", &can_export, nullptr);
  if (!can_export) return nullptr;
  gst_cuda_memory_init_once();
  Handle<GstBufferPool> pool(gst_cuda_buffer_pool_new(context));
  GstStructure* config = gst_buffer_pool_get_config(pool.get());
  gst_buffer_pool_config_set_params(config, caps, static_cast<guint>(size), 0, 0);
  gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  gst_buffer_pool_config_set_cuda_alloc_method(config, GST_CUDA_MEMORY_ALLOC_MMAP);
  if (stream != nullptr) gst_buffer_pool_config_set_cuda_stream(config, stream);
  return gst_buffer_pool_set_config(pool.get(), config) ? std::move(pool) : nullptr;
}

void copy_plane(guint plane, const GstVideoInfo& info, const GstVideoFrame& from,
                const GstVideoFrame& to, CUstream stream) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(GST_VIDEO_FRAME_PLANE_DATA(&from, plane));
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(GST_VIDEO_FRAME_PLANE_DATA(&to, plane));
  copy.srcPitch = static_cast<size_t>(GST_VIDEO_FRAME_PLANE_STRIDE(&from, plane));
  copy.dstPitch = static_cast<size_t>(GST_VIDEO_FRAME_PLANE_STRIDE(&to, plane));
  const Frame frame = frame_of_info(info);
  const PlaneSize size = plane_sizes(frame)[plane];
  copy.WidthInBytes = static_cast<size_t>(size.row_bytes);
  copy.Height = static_cast<size_t>(size.rows);
  if (CuMemcpy2DAsync(&copy, stream) != CUDA_SUCCESS)
    throw Error{ErrorCode::device_failed, "CUDA does not copy a frame on the device"};
}

}  // namespace

const MemoryKind& cuda_kind() {
  static const MemoryKind kind{MemoryHandle::opaque, "CUDAMemory", holds_cuda, wait_for_stream,
                               export_memory};
  return kind;
}

Handle<GstBufferPool> new_exportable_pool(GstPad* sink, GstCaps* caps) {
  const Handle<GstObject> context = upstream_context(sink);
  GstVideoInfo info;
  if (context == nullptr || !gst_video_info_from_caps(&info, caps)) return nullptr;
  return new_pool(reinterpret_cast<GstCudaContext*>(context.get()), caps,
                  GST_VIDEO_INFO_SIZE(&info), nullptr);
}

bool CudaCopier::is_exportable(GstBuffer* buffer) {
  const GstCudaMemory* memory = only_memory(buffer);
  return memory != nullptr && gst_cuda_memory_get_alloc_method(
                                  const_cast<GstCudaMemory*>(memory)) == GST_CUDA_MEMORY_ALLOC_MMAP;
}

void CudaCopier::open(GstBuffer* buffer, const GstVideoInfo& info) {
  GstCudaMemory* memory = only_memory(buffer);
  if (memory == nullptr)
    throw Error{ErrorCode::bad_argument, "a buffer that should be memory of CUDA is none"};
  if (pool_ != nullptr && context_ == memory->context && gst_video_info_is_equal(&info_, &info))
    return;
  clear();
  const Handle<GstCaps> caps(gst_video_info_to_caps(&info));
  gst_caps_set_features_simple(caps.get(),
                               gst_caps_features_new_single(GST_CAPS_FEATURE_MEMORY_CUDA_MEMORY));
  pool_ = new_pool(memory->context, caps.get(), GST_VIDEO_INFO_SIZE(&info),
                   gst_cuda_memory_get_stream(memory));
  if (pool_ == nullptr || !gst_buffer_pool_set_active(pool_.get(), TRUE)) {
    pool_.reset();
    throw Error{ErrorCode::unsupported, "the CUDA driver has no memory that can be exported"};
  }
  context_ = memory->context;
  info_ = info;
}

Handle<GstBuffer> CudaCopier::copy(GstBuffer* buffer, const GstVideoInfo& info) {
  check_meta(buffer, info);
  open(buffer, info);
  GstBuffer* fresh = nullptr;
  if (gst_buffer_pool_acquire_buffer(pool_.get(), &fresh, nullptr) != GST_FLOW_OK)
    throw Error{ErrorCode::out_of_memory, "there is no memory of CUDA for a copy of a frame"};
  Handle<GstBuffer> target(fresh);
  if (const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer)) {
    GstVideoCropMeta* same = gst_buffer_add_video_crop_meta(fresh);
    same->x = crop->x;
    same->y = crop->y;
    same->width = crop->width;
    same->height = crop->height;
  }
  constexpr auto kOnDevice = static_cast<GstMapFlags>(GST_MAP_CUDA);
  const VideoMapping from(buffer, info, static_cast<GstMapFlags>(GST_MAP_READ | kOnDevice),
                          "a frame in memory of CUDA cannot be read");
  VideoMapping to(fresh, info, static_cast<GstMapFlags>(GST_MAP_WRITE | kOnDevice),
                  "memory of CUDA cannot be written");
  GstCudaMemory* memory = only_memory(buffer);
  const CurrentContext current(memory->context);
  GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
  const CUstream handle = stream != nullptr ? gst_cuda_stream_get_handle(stream) : nullptr;
  for (guint plane = 0; plane < GST_VIDEO_INFO_N_PLANES(&info); ++plane)
    copy_plane(plane, info, *from.frame(), *to.frame(), handle);
  // Waits, because the source may be overwritten as soon as its buffer is released.
  if (CuStreamSynchronize(handle) != CUDA_SUCCESS)
    throw Error{ErrorCode::device_failed, "CUDA does not finish a copy on the device"};
  return target;
}

void CudaCopier::clear() {
  if (pool_ != nullptr) gst_buffer_pool_set_active(pool_.get(), FALSE);
  pool_.reset();
  context_ = nullptr;
}

}  // namespace clinfer
