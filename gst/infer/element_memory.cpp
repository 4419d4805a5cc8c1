// The memory of frames: how the element reads it, and which it proposes upstream.
#include "gst/frames/cuda_memory.h"
#include "gst/frames/frame_memory.h"
#include "gst/infer/element.h"

namespace clinfer {

std::shared_ptr<FrameInput> Element::input_for(Job& job, const Session& session,
                                               const Orientation& orientation) {
  if (session.shared == job.session->shared) return job.input;
  std::shared_ptr<FrameInput>& input = job.inputs_of_widths[session.shared->compiled.get()];
  if (input == nullptr) {
    input = make_input(job, *session.shared);
    input->turn(orientation);
  }
  return input;
}

std::unique_ptr<FrameInput> Element::make_input(Job& job, SharedModel& shared) {
  if (shared.compiled->tier() == Tier::first)  // the host reads what is mapped
    return std::make_unique<FrameInput>(job.buffer.get(), info_, *shared.compiled);
  if (has_surfaces_ && take_surfaces_ && shared.display != nullptr) {
    const std::string problem = shared.surface_problem_of(frame_of_info(info_).format);
    if (problem.empty())
      return std::make_unique<FrameInput>(job.buffer.get(), info_, *shared.display,
                                          shared.compiled);
    warn_of_copies(problem);
  }
  if (const MemoryKind* kind = kind_; kind != nullptr && take_imports_)
    return import_frame(job, shared, *kind);
  return std::make_unique<FrameInput>(job.buffer.get(), info_, *shared.compiled);
}

std::unique_ptr<FrameInput> Element::import_frame(Job& job, SharedModel& shared,
                                                  const MemoryKind& kind) {
  MemoryImporter& importer = *shared.importers.at(kind.handle);
  if constexpr (kHaveCudaMemory) {
    if (&kind == &cuda_kind() && !CudaCopier::is_exportable(job.buffer.get()) &&
        importer.problem().empty())
      try {
        const Handle<GstBuffer> copy = cuda_copier_.copy(job.buffer.get(), info_);
        auto input = std::make_unique<FrameInput>(copy.get(), info_, importer);
        job.copied_on_device = input->zero_copy();
        if (job.copied_on_device) tell_of_device_copies();
        return input;
      } catch (const Error& error) {
        warn_of_copies(error.what());
      }
  }
  return std::make_unique<FrameInput>(job.buffer.get(), info_, importer);
}

void Element::tell_of_device_copies() {
  if (std::exchange(told_of_device_copies_, true)) return;
  GST_ELEMENT_INFO(self_, RESOURCE, SETTINGS,
                   ("frames in CUDAMemory are copied on the device: the element before allocates "
                    "memory that cannot be exported"),
                   (nullptr));
}

void Element::warn_of_copies(const std::string& why) {
  if (warned_of_copies_.exchange(true)) return;
  const MemoryKind* kind = kind_;
  const std::string what = kind != nullptr ? std::string("frames in ") + kind->name : "VA surfaces";
  GST_ELEMENT_WARNING(self_, RESOURCE, SETTINGS,
                      ("%s are copied through system memory: %s", what.c_str(), why.c_str()),
                      (nullptr));
}

bool Element::answer_allocation(GstQuery* query) {
  GstCaps* caps = nullptr;
  gboolean need_pool = FALSE;
  // Frames pass unchanged, so downstream's answer holds for upstream as well; only more of them are
  // in flight.
  gst_pad_peer_query(src_, query);
  gst_query_parse_allocation(query, &caps, &need_pool);
  GstVideoInfo info;
  if (caps == nullptr || !read_caps(caps, info)) return false;
  const guint held =
      static_cast<guint>(frames_in_flight_for(settings(), loader_.session().get())) + 1;
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

// Proposes memory from which the device fetches frames without another copy; downstream's wishes
// come first. The device is known once the model is compiled. An earlier query is not kept waiting,
// since other branches of the pipeline would wait, too; upstream is asked to query again.
void Element::propose_memory(GstQuery* query, GstCaps& caps) {
  if constexpr (kHaveCudaMemory)
    if (has_feature(&caps, kCudaFeature)) return propose_exportable_memory(query, caps);
  const GstCapsFeatures* features = gst_caps_get_features(&caps, 0);
  if (!gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY) ||
      !takes_any_memory(query))
    return;
  const std::shared_ptr<const Session> session = loader_.session();
  asked_early_ = session == nullptr || session->shared->is_interim;
  if (asked_early_ || !session->shared->compiled->wants_frame_memory()) return;
  const Handle<GstAllocator> allocator(new_frame_allocator(session->shared->compiled));
  propose_allocator(query, allocator.get());
}

// Proposes memory of CUDA that OpenCL can import, unless downstream wants a pool of its own.
void Element::propose_exportable_memory(GstQuery* query, GstCaps& caps) {
  if (!take_imports_) return;
  GstBufferPool* theirs = nullptr;
  guint size = 0, least = 0, most = 0;
  gst_query_parse_nth_allocation_pool(query, 0, &theirs, &size, &least, &most);
  if (const Handle<GstBufferPool> wanted(theirs); wanted != nullptr) return;
  if constexpr (kHaveCudaMemory)
    if (const Handle<GstBufferPool> pool = new_exportable_pool(sink_, &caps))
      gst_query_set_nth_allocation_pool(query, 0, pool.get(), size, least, most);
}

}  // namespace clinfer
