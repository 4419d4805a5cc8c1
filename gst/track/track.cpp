// Implements cltrack, a transform in place that only adds metadata.
#include "gst/track/track.h"

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include "gst/base/element_class.h"
#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"
#include "gst/base/transforms.h"
#include "gst/base/unreadable_frame.h"
#include "gst/frames/mapped_frame.h"
#include "gst/meta/meta.h"
#include "gst/meta/notice.h"
#include "gst/track/frame_tracker.h"

#define GST_CAT_DEFAULT cltrack_debug

namespace {

struct TrackState {
  TrackState() { gst_video_info_init(&info); }
  // Members that the object lock guards:
  clinfer::TrackSettings settings;
  clinfer::LostProperties lost;
  clinfer::FrameStats stats;
  GstStructure* copy_stats(GstElement* element) const { return stats.copy(element); }

  GstVideoInfo info;
  clinfer::FrameTracker tracker;
  uint64_t frames = 0, predicted = 0;
  clinfer::FrameTime time;
  clinfer::UnreadableFrames unreadable;
  clinfer::RoiNotice roi_notice;
  bool warned = false;
};

}  // namespace

using GstCltrack = clinfer::Instance<GstBaseTransform, TrackState>;
using GstCltrackClass = GstBaseTransformClass;

G_DEFINE_TYPE(GstCltrack, gst_cltrack, GST_TYPE_BASE_TRANSFORM)

namespace {

using clinfer::Property;
using clinfer::TrackSettings;

const std::vector<Property<TrackSettings>>& properties() {
  using clinfer::flag, clinfer::kControllable, clinfer::kPlaying, clinfer::number, clinfer::text;
  using S = TrackSettings;
  static const auto& rows = *new std::vector<Property<S>>{
      number<&S::high_threshold>("high-threshold", "High threshold",
                                 "Least confidence of a sure object; one that starts a track needs "
                                 "0.1 more (lower it for networks that "
                                 "are less sure)",
                                 0, 1, kControllable),
      number<&S::low_threshold>("low-threshold", "Low threshold",
                                "Least confidence of an object that may continue a track (to use "
                                "it, set the threshold of clinfer as low)",
                                0, 1, kControllable),
      number<&S::min_hits>("min-hits", "Minimum of hits",
                           "Frames on which an object must be found before it gets an id", 1, 1000,
                           kControllable),
      number<&S::lost_time>("lost-time", "Lost time",
                            "Milliseconds that an object may be out of sight and keep its id", 0,
                            G_MAXUINT, kControllable),
      number<&S::appearance_threshold>(
          "appearance-threshold", "Appearance threshold",
          "Least cosine of two embeddings of one object, if a re-identification network ran on the "
          "objects before (0: embeddings are not used)",
          0, 1, kControllable),
      flag<&S::per_class>("per-class", "Per class",
                          "An object keeps its label; false: objects whose label changes from "
                          "frame to frame keep their id",
                          kPlaying),
      flag<&S::predict>("predict", "Predict",
                        "Add the expected boxes of tracked objects on frames without inference "
                        "(inference-interval, overload-policy)",
                        kControllable),
      number<&S::max_objects>(
          "max-objects", "Most objects",
          "Most objects of a kind to track on a frame: those with the highest confidence", 1, 10000,
          kControllable),
      text<&S::object_class>("object-class", "Object class",
                             "Labels of the objects to track, comma separated (empty: all)",
                             kPlaying)};
  return rows;
}

using Class = clinfer::ElementClass<GstCltrack, properties>;

gboolean start(GstBaseTransform* transform) {
  return clinfer::guard(GST_ELEMENT(transform), FALSE, [&]() -> gboolean {
    TrackState& state = Class::state(transform);
    Class::settings(transform);  // throws if a property could not be set
    state.tracker = {};
    state.frames = state.predicted = 0;
    state.time.clear();
    state.unreadable.clear();
    state.roi_notice.clear();
    state.warned = false;
    return TRUE;
  });
}

gboolean set_caps(GstBaseTransform* transform, GstCaps* in, GstCaps*) {
  return clinfer::read_size(in, Class::state(transform).info);
}

gboolean sink_event(GstBaseTransform* transform, GstEvent* event) {
  TrackState& state = Class::state(transform);
  if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START ||
      GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) {
    state.tracker.clear();
    state.time.clear();
  }
  return GST_BASE_TRANSFORM_CLASS(gst_cltrack_parent_class)->sink_event(transform, event);
}

void update_stats(GstBaseTransform* transform) {
  TrackState& state = Class::state(transform);
  clinfer::Handle<GstStructure> stats(gst_structure_new(
      "cltrack-stats", "frames", G_TYPE_UINT64, state.frames, "ids", G_TYPE_UINT64,
      state.tracker.ids(), "tracks", G_TYPE_UINT, static_cast<guint>(state.tracker.tracks()),
      "predicted", G_TYPE_UINT64, state.predicted, nullptr));
  state.stats.set(GST_ELEMENT(transform), std::move(stats));
}

void track(GstBaseTransform* transform, GstBuffer* buffer) {
  TrackState& state = Class::state(transform);
  clinfer::sync_controllers(GST_ELEMENT(transform), transform->segment, buffer);
  const TrackSettings settings = Class::settings(transform);
  const clinfer::FrameTime::Step step =
      clinfer::advance_time(state.time, transform, buffer, state.info);
  const clinfer::Rect visible = clinfer::visible_part(GST_VIDEO_INFO_WIDTH(&state.info),
                                                      GST_VIDEO_INFO_HEIGHT(&state.info), buffer);
  if (step.is_hole && step.seconds * 1000 > settings.lost_time) state.tracker.clear();
  clinfer::FrameResults results(buffer, visible);
  state.roi_notice.look(GST_ELEMENT(transform), results.view());
  const auto objects = state.tracker.track(results.view(), settings, step.seconds, visible.width,
                                           visible.height, GST_BUFFER_PTS(buffer));
  results.attach(objects);
  state.unreadable.count_readable();
  for (const clinfer::TrackedObject& object : objects)
    if (!object.region) ++state.predicted;
  constexpr uint64_t kMany = 100;
  if (state.tracker.ids() == 0 && state.tracker.unsure() >= kMany &&
      !std::exchange(state.warned, true))
    GST_ELEMENT_WARNING(
        transform, STREAM, FORMAT,
        ("no object gets an id: the confidence of all is below high-threshold (%g) + 0.1",
         settings.high_threshold),
        ("lower high-threshold to the threshold of the network before"));
}

GstFlowReturn transform_ip(GstBaseTransform* transform, GstBuffer* buffer) {
  return clinfer::guard(GST_ELEMENT(transform), GST_FLOW_ERROR, [&] {
    TrackState& state = Class::state(transform);
    try {
      track(transform, buffer);
    } catch (const clinfer::UnreadableFrame& frame) {
      state.unreadable.lose(GST_ELEMENT(transform), frame);
    }
    ++state.frames;
    update_stats(transform);
    return GST_FLOW_OK;
  });
}

}  // namespace

static void gst_cltrack_class_init(GstCltrackClass* klass) {
  auto* transform = GST_BASE_TRANSFORM_CLASS(klass);
  clinfer::register_result_meta();
  Class::set_up(klass,
                {"Object tracker", "Filter/Analyzer/Video",
                 "Gives detected objects ids that stay the same from frame to frame, and predicts "
                 "their boxes "
                 "on frames without inference",
                 CLINFER_DOCS "tracking.md"},
                "Frames, ids given so far, tracks known now, boxes predicted so far");
  clinfer::write_metadata_only(transform);
  transform->start = start;
  transform->set_caps = set_caps;
  transform->sink_event = sink_event;
  transform->transform_ip = transform_ip;
}

static void gst_cltrack_init(GstCltrack* self) {
  Class::make_state(self);
  gst_base_transform_set_in_place(GST_BASE_TRANSFORM(self), TRUE);
}

static gboolean register_cltrack(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "cltrack", gst_cltrack_get_type(), properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(cltrack, register_cltrack)
