// Proposes memory upstream.
#include "gst/frames/cuda_memory.h"
#include "gst/frames/frame_memory.h"
#include "gst/infer/stream/delivery.h"

namespace clinfer {

bool Delivery::answer_allocation(GstQuery* query) {
  GstCaps* caps = nullptr;
  gboolean need_pool = FALSE;
  // Asks downstream first: frames pass unchanged, so its answer holds for upstream as well, except
  // that more of them are in flight.
  gst_pad_peer_query(shared_.src_pad, query);
  gst_query_parse_allocation(query, &caps, &need_pool);
  GstVideoInfo info;
  if (caps == nullptr || !read_caps(caps, info)) return false;
  const guint held =
      static_cast<guint>(pooled_frames_for(*shared_.settings.now(), model_.session().get())) + 1;
  const guint pools = gst_query_get_n_allocation_pools(query);
  for (guint i = 0; i < pools; ++i) {
    GstBufferPool* pool = nullptr;
    guint size = 0, least = 0, most = 0;
    gst_query_parse_nth_allocation_pool(query, i, &pool, &size, &least, &most);
    least += held;
    if (most != 0) least = std::min(least, most);
    gst_query_set_nth_allocation_pool(query, i, pool, size, least, most);
    if (pool != nullptr) gst_object_unref(pool);
  }
  if (pools == 0)
    gst_query_add_allocation_pool(query, nullptr, static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)),
                                  held, 0);
  propose_memory(query, *caps);
  return true;
}

// Proposes memory from which the device fetches frames without another copy, unless downstream has
// wishes. The device is known once the model is compiled. An earlier query does not wait for that,
// since other branches of the pipeline would wait, too; upstream is asked to query again.
void Delivery::propose_memory(GstQuery* query, GstCaps& caps) {
  if constexpr (kHaveCudaMemory)
    if (has_feature(&caps, kCudaFeature)) return propose_exportable_memory(query, caps);
  const GstCapsFeatures* features = gst_caps_get_features(&caps, 0);
  if (!gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY) ||
      !takes_any_memory(query))
    return;
  const std::shared_ptr<const Session> session = model_.session();
  shared_.asked_early = session == nullptr || session->shared->is_interim;
  if (shared_.asked_early || !session->shared->compiled->wants_frame_memory()) return;
  const Handle<GstAllocator> allocator(new_frame_allocator(session->shared->compiled));
  propose_allocator(query, allocator.get());
}

// Proposes CUDA memory that OpenCL can import, unless downstream wants a pool of its own.
void Delivery::propose_exportable_memory(GstQuery* query, GstCaps& caps) {
  if (!model_.takes_imports()) return;
  GstBufferPool* theirs = nullptr;
  guint size = 0, least = 0, most = 0;
  gst_query_parse_nth_allocation_pool(query, 0, &theirs, &size, &least, &most);
  if (const Handle<GstBufferPool> wanted(theirs); wanted != nullptr) return;
  if constexpr (kHaveCudaMemory)
    if (const Handle<GstBufferPool> pool = new_exportable_pool(shared_.sink_pad, &caps))
      gst_query_set_nth_allocation_pool(query, 0, pool.get(), size, least, most);
}

}  // namespace clinfer
