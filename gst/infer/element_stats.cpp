// Collects the statistics of the element.
#include "gst/base/handle.h"
#include "gst/infer/element.h"
#include "gst/infer/model/tuning_messages.h"

namespace clinfer {
namespace {

void add_devices(GstStructure* stats, const std::vector<Statistics::Device>& devices) {
  GValue list = G_VALUE_INIT;
  g_value_init(&list, GST_TYPE_LIST);
  for (const Statistics::Device& device : devices) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, GST_TYPE_STRUCTURE);
    g_value_take_boxed(
        &value, gst_structure_new("device", "id", G_TYPE_STRING, device.id.c_str(), "name",
                                  G_TYPE_STRING, device.name.c_str(), "inferences", G_TYPE_UINT64,
                                  device.inferences, nullptr));
    gst_value_list_append_and_take_value(&list, &value);
  }
  gst_structure_take_value(stats, "devices", &list);
}

std::string path_reason_of(const SharedModel& shared, const MemoryKind* kind, bool take_imports,
                           bool copies_on_device, bool offers_cuda) {
  if (shared.compiled->tier() == Tier::first) return shared.compiled->sharing_problem();
  if (kind != nullptr) {
    const std::string frames = std::string("frames in ") + kind->name;
    const std::string problem =
        take_imports ? shared.importers.at(kind->handle)->problem() : "nv12-two-inputs=false";
    if (!problem.empty()) return frames + " are mapped: " + problem;
    return copies_on_device ? frames + " that cannot be exported are copied on the device" : frames;
  }
  if (offers_cuda)
    return "frames are in system memory: this build does not take the memory:CUDAMemory that "
           "upstream "
           "offers (it needs GStreamer 1.24 or newer, and -Dcuda=enabled)";
  if (!shared.surface_problem.empty()) return shared.surface_problem;
  if (shared.display != nullptr) return "surfaces of " + shared.display->display.name;
  return "frames are in system memory, or nv12-two-inputs=false";
}

}  // namespace

GstStructure* Element::stats() const {
  static const char* const kStageNames[Statistics::kStages] = {"motion", "queue", "infer",
                                                               "decode"};
  const Statistics::Snapshot snapshot = shared_.statistics.snapshot();
  Handle<GstStructure> owner(gst_structure_new(
      "clinfer-stats", "frames-in", G_TYPE_UINT64, snapshot.frames_in, "frames-out", G_TYPE_UINT64,
      snapshot.frames_out, "inferred", G_TYPE_UINT64, snapshot.inferred, "skipped", G_TYPE_UINT64,
      snapshot.skipped, "still", G_TYPE_UINT64, snapshot.still, "late", G_TYPE_UINT64,
      snapshot.late, "dropped", G_TYPE_UINT64, snapshot.dropped, "unreadable", G_TYPE_UINT64,
      shared_.unreadable.count(), "in-flight", G_TYPE_UINT,
      static_cast<guint>(shared_.queue.in_flight()), "frames-per-second", G_TYPE_DOUBLE,
      snapshot.frames_per_second, "sink-age-ms", G_TYPE_DOUBLE, snapshot.in_age, "src-age-ms",
      G_TYPE_DOUBLE, snapshot.out_age, nullptr));
  GstStructure* const stats = owner.get();
  for (size_t stage = 0; stage < Statistics::kStages; ++stage) {
    const std::string name = kStageNames[stage];
    const Percentiles& ms = snapshot.milliseconds[stage];
    gst_structure_set(stats, (name + "-p50-ms").c_str(), G_TYPE_DOUBLE, ms.p50,
                      (name + "-p95-ms").c_str(), G_TYPE_DOUBLE, ms.p95, (name + "-p99-ms").c_str(),
                      G_TYPE_DOUBLE, ms.p99, nullptr);
  }
  const std::shared_ptr<const Session> session = model_.session();
  if (session == nullptr) return owner.release();
  const CompiledModel& compiled = *session->shared->compiled;
  // Asks upstream here and not when its caps come, when some elements hold a lock
  // (aspectratiocrop).
  const bool offers_cuda = !kHaveCudaMemory && may_send(shared_.sink_pad, kCudaFeature);
  const std::string path_reason =
      path_reason_of(*session->shared, shared_.kind, model_.takes_imports(),
                     snapshot.device_copies != 0, offers_cuda);
  const char* path = snapshot.zero_copy != 0       ? "zero-copy"
                     : snapshot.device_copies != 0 ? "device copy"
                                                   : "system memory";
  const ModelBatcher& batcher = *session->shared->batcher;
  const ModelBatcher::Counts counts = batcher.counts();
  gst_structure_set(
      stats, "model", G_TYPE_STRING, session->network.name.c_str(), "tier", G_TYPE_STRING,
      compiled.tier() == Tier::first ? "first" : "full", "path", G_TYPE_STRING, path, "path-reason",
      G_TYPE_STRING, path_reason.c_str(), "zero-copy-frames", G_TYPE_UINT64, snapshot.zero_copy,
      "device-copied-frames", G_TYPE_UINT64, snapshot.device_copies, "fetched-frames",
      G_TYPE_UINT64, snapshot.fetched, "device", G_TYPE_STRING, compiled.device().name.c_str(),
      "precision", G_TYPE_STRING, name_of(compiled.precision()), "launch", G_TYPE_STRING,
      compiled.launch().c_str(), "streams", G_TYPE_UINT, compiled.streams(), "nireq", G_TYPE_UINT,
      static_cast<guint>(batcher.requests()), "batch-size", G_TYPE_UINT,
      static_cast<guint>(batcher.batch_size()), "batches", G_TYPE_UINT64, counts.batches, "images",
      G_TYPE_UINT64, counts.frames, "post-process", G_TYPE_STRING,
      session->network.head.name.c_str(), "post-process-reason", G_TYPE_STRING,
      session->network.head.reason.c_str(), "interpretation", G_TYPE_STRING,
      explain(session->network).c_str(), "contradictions", G_TYPE_UINT64,
      session->network.trust->contradictions(), "load-ms", G_TYPE_DOUBLE, compiled.load_ms(),
      "cached-programs", G_TYPE_UINT, static_cast<guint>(compiled.cached_programs()),
      "built-programs", G_TYPE_UINT, static_cast<guint>(compiled.built_programs()), nullptr);
  if (const std::string widths = intake_.ready_widths(); !widths.empty())
    gst_structure_set(stats, "widths", G_TYPE_STRING, widths.c_str(), nullptr);
  static const char* const kHintNames[] = {"default", "low", "medium", "high"};
  gst_structure_set(stats, "priority", G_TYPE_STRING,
                    kHintNames[static_cast<size_t>(compiled.priority())], "throttle", G_TYPE_STRING,
                    kHintNames[static_cast<size_t>(compiled.throttle())], nullptr);
  add_devices(stats, snapshot.devices);
  if (settings()->verify != 0) verification_.add_to(stats);
  targets_.add_to(stats);
  add_tuning(stats, compiled.tuning());
  if (session->shared->counts_layers && compiled.tier() == Tier::full) {
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_LIST);
    for (const StepProfile& step : compiled.profile()) {
      GValue value = G_VALUE_INIT;
      g_value_init(&value, GST_TYPE_STRUCTURE);
      g_value_take_boxed(
          &value, gst_structure_new("layer", "name", G_TYPE_STRING, step.layer.c_str(), "type",
                                    G_TYPE_STRING, step.type.c_str(), "kernel", G_TYPE_STRING,
                                    step.kernel.c_str(), "device-us", G_TYPE_DOUBLE, step.device_us,
                                    "host-us", G_TYPE_DOUBLE, step.host_us, "status", G_TYPE_STRING,
                                    name_of(step.status).c_str(), "fused-into", G_TYPE_STRING,
                                    step.fused_into.c_str(), "reason", G_TYPE_STRING,
                                    step.reason.c_str(), nullptr));
      gst_value_list_append_and_take_value(&list, &value);
    }
    gst_structure_take_value(stats, "layers", &list);
  }
  return owner.release();
}

}  // namespace clinfer
