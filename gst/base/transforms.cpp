// Implements what the elements for metadata have in common.
#include "gst/base/transforms.h"

namespace clinfer {
namespace {

gboolean propose_allocation(GstBaseTransform* transform, GstQuery*, GstQuery* query) {
  return gst_pad_peer_query(GST_BASE_TRANSFORM_SRC_PAD(transform), query);
}

gboolean decide_allocation(GstBaseTransform*, GstQuery* query) {
  while (gst_query_get_n_allocation_pools(query) > 0)
    gst_query_remove_nth_allocation_pool(query, 0);
  return TRUE;
}

GstFlowReturn prepare_output_buffer(GstBaseTransform*, GstBuffer* in, GstBuffer** out) {
  *out = in;
  if (gst_buffer_is_writable(in)) return GST_FLOW_OK;
  *out = gst_buffer_copy(in);
  // Keeps the memory from going back to its pool meanwhile.
  if (gst_buffer_get_parent_buffer_meta(*out) == nullptr)
    gst_buffer_add_parent_buffer_meta(*out, in);
  return GST_FLOW_OK;
}

}  // namespace

bool read_size(const GstCaps* caps, GstVideoInfo& info) {
  if (gst_video_info_from_caps(&info, caps)) return true;
  // Takes the size from the caps for formats that only a memory feature defines (DMA_DRM).
  gint width = 0, height = 0;
  const GstStructure* structure = gst_caps_get_structure(caps, 0);
  gst_video_info_init(&info);
  if (!gst_structure_get_int(structure, "width", &width) ||
      !gst_structure_get_int(structure, "height", &height))
    return false;
  info.width = width;
  info.height = height;
  return true;
}

void make_no_buffers(GstBaseTransformClass* transform) {
  transform->propose_allocation = propose_allocation;
  transform->decide_allocation = decide_allocation;
}

void write_metadata_only(GstBaseTransformClass* transform) {
  make_no_buffers(transform);
  transform->prepare_output_buffer = prepare_output_buffer;
}

FrameTime::Step advance_time(FrameTime& time, GstBaseTransform* transform, GstBuffer* buffer,
                             const GstVideoInfo& info) {
  std::optional<uint64_t> stamp;
  if (GST_BUFFER_PTS_IS_VALID(buffer) && transform->segment.format == GST_FORMAT_TIME) {
    const guint64 running =
        gst_segment_to_running_time(&transform->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    if (GST_CLOCK_TIME_IS_VALID(running)) stamp = running;
  }
  const double interval =
      GST_VIDEO_INFO_FPS_N(&info) > 0
          ? static_cast<double>(GST_VIDEO_INFO_FPS_D(&info)) / GST_VIDEO_INFO_FPS_N(&info)
          : 0;
  FrameTime::Step step = time.advance(stamp, interval);
  if (!step.problem.empty())
    GST_ELEMENT_WARNING(transform, STREAM, FORMAT, ("%s", step.problem.c_str()),
                        ("later jumps are not told again"));
  return step;
}

}  // namespace clinfer
