// Implements clzones, a transform in place that counts and adds metadata.
#include "gst/zones/zones.h"

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <algorithm>

#include "engine/heads/files/labels.h"
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
#include "gst/zones/rules.h"

#define GST_CAT_DEFAULT clzones_debug

namespace {

enum class Anchor { bottom, center };

struct ZonesSettings {
  std::string lines, zones, zones_file, object_class;
  Anchor anchor = Anchor::bottom;
  double margin = 0.05;
  unsigned dwell_time = 0, lost_time = 2000;
};

struct ZonesState {
  ZonesState() { gst_video_info_init(&info); }
  // Members that the object lock guards:
  ZonesSettings settings;
  clinfer::LostProperties lost;
  std::optional<ZonesSettings> in_force;  // set from start to stop
  clinfer::FrameStats stats;
  GstStructure* copy_stats(GstElement* element) const { return stats.copy(element); }

  GstVideoInfo info;
  clinfer::ZoneRules rules;
  int width = 0, height = 0;  // the size for which the counter was made
  clinfer::ZoneCounter counter{{}};
  std::map<uint64_t, std::string> labels;  // of the objects in the counter
  double seconds = 0;                      // since the first frame
  clinfer::FrameTime time;
  clinfer::UnreadableFrames unreadable;
  clinfer::RoiNotice roi_notice;
  uint64_t untracked = 0;
  bool warned = false, tracked = false;
};

}  // namespace

using GstClzones = clinfer::Instance<GstBaseTransform, ZonesState>;
using GstClzonesClass = GstBaseTransformClass;

G_DEFINE_TYPE(GstClzones, gst_clzones, GST_TYPE_BASE_TRANSFORM)

namespace {

using clinfer::EventView;
using clinfer::Property;

const std::vector<Property<ZonesSettings>>& properties() {
  using clinfer::kPlaying, clinfer::number, clinfer::text;
  using S = ZonesSettings;
  static const auto& rows = *new std::vector<Property<S>>{
      text<&S::lines>(
          "lines", "Lines",
          "Lines to count at: NAME:X1,Y1,X2,Y2;... (whole numbers: pixels, with a point: "
          "shares of the picture). Seen from the first point to the second, objects "
          "come in from the left to the right: over a line that is drawn from left to "
          "right they come in downwards"),
      text<&S::zones>("zones", "Zones", "Polygons to count in: NAME:X1,Y1,X2,Y2,X3,Y3,...;..."),
      text<&S::zones_file>("zones-file", "Zones file",
                           "JSON file of lines and zones: {\"lines\": [{\"name\": \"door\", "
                           "\"points\": [[0.1, 0.5], [0.9, 0.5]]}], \"zones\": [...]}"),
      clinfer::choice<&S::anchor>("anchor", "Anchor", "The point of an object that counts",
                                  "GstClzonesAnchor",
                                  {{Anchor::bottom, "The middle of its lower edge", "bottom"},
                                   {Anchor::center, "Its centre", "center"}},
                                  kPlaying),
      number<&S::margin>(
          "margin", "Margin",
          "Objects nearer to a line than this share of their size are on neither side, so "
          "that one that stands on the line is not counted again and again",
          0, 10, kPlaying),
      number<&S::dwell_time>("dwell-time", "Dwell time",
                             "Milliseconds in a zone after which an event is posted, once a visit "
                             "(0: never)",
                             0, G_MAXUINT, kPlaying),
      number<&S::lost_time>("lost-time", "Lost time",
                            "Milliseconds after which an object that is not seen counts as having "
                            "left its zones; at least lost-time of cltrack",
                            0, G_MAXUINT, kPlaying),
      text<&S::object_class>("object-class", "Object class",
                             "Labels of the objects to count, comma separated (empty: all)",
                             kPlaying)};
  return rows;
}

using Class = clinfer::ElementClass<GstClzones, properties>;

gboolean start(GstBaseTransform* transform) {
  return clinfer::guard(GST_ELEMENT(transform), FALSE, [&]() -> gboolean {
    ZonesState& state = Class::state(transform);
    const ZonesSettings settings = Class::settings(transform);
    state.rules = clinfer::ZoneRules(settings.lines, settings.zones, settings.zones_file);
    if (state.rules.empty())
      throw clinfer::Error{clinfer::ErrorCode::bad_argument,
                           "there is nothing to count at: set lines, zones or zones-file"};
    state.width = state.height = 0;
    state.labels.clear();
    state.seconds = 0;
    state.time.clear();
    state.unreadable.clear();
    state.roi_notice.clear();
    state.untracked = 0;
    state.warned = state.tracked = false;
    const clinfer::ObjectLock lock(transform);
    state.in_force = settings;
    return TRUE;
  });
}

gboolean stop(GstBaseTransform* transform) {
  ZonesState* const state = Class::find_state(transform);
  if (state == nullptr) return TRUE;
  const clinfer::ObjectLock lock(transform);
  state->in_force.reset();
  return TRUE;
}

gboolean set_caps(GstBaseTransform* transform, GstCaps* in, GstCaps*) {
  return clinfer::read_size(in, Class::state(transform).info);
}

std::string name_of(clinfer::Event event) {
  switch (event) {
    case clinfer::Event::cross_in:
    case clinfer::Event::cross_out:
      return "cross";
    case clinfer::Event::enter:
      return "enter";
    case clinfer::Event::leave:
      return "leave";
    case clinfer::Event::dwell:
      return "dwell";
  }
  return "";
}

EventView view_of(const ZonesState& state, const clinfer::ZoneEvent& event) {
  EventView view;
  view.type = name_of(event.event);
  view.zone = state.counter.zones()[event.zone].name;
  if (event.event == clinfer::Event::cross_in) view.direction = "in";
  if (event.event == clinfer::Event::cross_out) view.direction = "out";
  view.track_id = event.id;
  const auto label = state.labels.find(event.id);
  if (label != state.labels.end()) view.label = label->second;
  if (event.event == clinfer::Event::leave || event.event == clinfer::Event::dwell)
    view.seconds = event.seconds;
  return view;
}

void post(GstBaseTransform* transform, const EventView& event, GstClockTime time) {
  GstStructure* message = gst_structure_new(
      "clzones", "event", G_TYPE_STRING, event.type.c_str(), "zone", G_TYPE_STRING,
      event.zone.c_str(), "id", G_TYPE_UINT64, event.track_id, "label", G_TYPE_STRING,
      event.label.c_str(), "timestamp", G_TYPE_UINT64, time, nullptr);
  if (!event.direction.empty())
    gst_structure_set(message, "direction", G_TYPE_STRING, event.direction.c_str(), nullptr);
  if (event.seconds) gst_structure_set(message, "seconds", G_TYPE_DOUBLE, *event.seconds, nullptr);
  gst_element_post_message(GST_ELEMENT(transform),
                           gst_message_new_element(GST_OBJECT(transform), message));
}

void update_stats(GstBaseTransform* transform, const std::vector<clinfer::ZoneView>& zones) {
  ZonesState& state = Class::state(transform);
  clinfer::Handle<GstStructure> stats(gst_structure_new_empty("clzones-stats"));
  for (const clinfer::ZoneView& zone : zones) {
    GstStructure* counts =
        zone.is_line
            ? gst_structure_new("line", "in", G_TYPE_UINT64, zone.in, "out", G_TYPE_UINT64,
                                zone.out, nullptr)
            : gst_structure_new("zone", "inside", G_TYPE_UINT64, zone.inside, "entered",
                                G_TYPE_UINT64, zone.in, "left", G_TYPE_UINT64, zone.out, nullptr);
    gst_structure_set(stats.get(), zone.name.c_str(), GST_TYPE_STRUCTURE, counts, nullptr);
    gst_structure_free(counts);
  }
  state.stats.set(GST_ELEMENT(transform), std::move(stats));
}

std::vector<clinfer::SeenObject> objects_of(ZonesState& state, const clinfer::FrameView& frame,
                                            const ZonesSettings& settings) {
  const std::vector<std::string> wanted = clinfer::parse_labels(settings.object_class);
  std::vector<clinfer::SeenObject> objects;
  for (const clinfer::RegionView& region : frame.regions) {
    if (!clinfer::is_among(region, wanted)) continue;
    if (!region.track_id) {
      if (region.has_detection) ++state.untracked;
      continue;
    }
    state.tracked = true;
    const double left = region.box.x_min * state.width, right = region.box.x_max * state.width;
    const double top = region.box.y_min * state.height, bottom = region.box.y_max * state.height;
    const double y = settings.anchor == Anchor::bottom ? bottom : (top + bottom) / 2;
    const double size = std::min(right - left, bottom - top);
    objects.push_back({*region.track_id, {(left + right) / 2, y}, settings.margin * size});
    state.labels[*region.track_id] = region.label;
  }
  return objects;
}

void warn_without_ids(GstBaseTransform* transform) {
  ZonesState& state = Class::state(transform);
  constexpr uint64_t kMany = 100;
  if (state.tracked || state.untracked < kMany || std::exchange(state.warned, true)) return;
  GST_ELEMENT_WARNING(transform, STREAM, FORMAT,
                      ("nothing is counted: the objects have no ids from a tracker"),
                      ("put cltrack in front of clzones"));
}

// Returns whether objects in a picture of this size can cross the line, or be in the zone.
bool is_within_reach(const clinfer::Zone& zone, int width, int height) {
  const auto [left, right] =
      std::minmax_element(zone.points.begin(), zone.points.end(),
                          [](const auto& a, const auto& b) { return a.x < b.x; });
  const auto [top, bottom] =
      std::minmax_element(zone.points.begin(), zone.points.end(),
                          [](const auto& a, const auto& b) { return a.y < b.y; });
  const bool is_wide = left->x < right->x, is_high = top->y < bottom->y;
  return (zone.is_line ? is_wide || is_high : is_wide && is_high) && left->x <= width &&
         top->y <= height;
}

void warn_out_of_reach(GstBaseTransform* transform) {
  const ZonesState& state = Class::state(transform);
  for (const clinfer::Zone& zone : state.counter.zones())
    if (!is_within_reach(zone, state.width, state.height))
      GST_ELEMENT_WARNING(
          transform, RESOURCE, SETTINGS,
          ("the %s %s counts nothing: in frames of %dx%d no object reaches it",
           zone.is_line ? "line" : "zone", zone.name.c_str(), state.width, state.height),
          ("whole numbers are pixels, numbers with a point are shares"));
}

// Returns the counts so far, for results and for the property `stats`.
std::vector<clinfer::ZoneView> zones_so_far(const ZonesState& state) {
  std::vector<clinfer::ZoneView> views;
  for (size_t i = 0; i < state.counter.zones().size(); ++i) {
    const clinfer::Zone& zone = state.counter.zones()[i];
    const clinfer::ZoneCounts& counts = state.counter.counts()[i];
    clinfer::ZoneView& view = views.emplace_back();
    view.name = zone.name;
    view.is_line = zone.is_line;
    view.in = counts.in;
    view.out = counts.out;
    view.inside = counts.inside;
    for (const clinfer::Place& place : zone.points)
      view.points.push_back(
          {static_cast<float>(place.x / state.width), static_cast<float>(place.y / state.height)});
  }
  return views;
}

void count(GstBaseTransform* transform, GstBuffer* buffer) {
  ZonesState& state = Class::state(transform);
  const ZonesSettings settings = Class::settings(transform);
  const clinfer::FrameTime::Step step =
      clinfer::advance_time(state.time, transform, buffer, state.info);
  state.seconds += step.seconds;
  const clinfer::Rect visible = clinfer::visible_part(GST_VIDEO_INFO_WIDTH(&state.info),
                                                      GST_VIDEO_INFO_HEIGHT(&state.info), buffer);
  // Keeps counting in the pixels of the first frame if the stream changes its size.
  if (state.width == 0) {
    state.width = visible.width;
    state.height = visible.height;
    state.counter = clinfer::ZoneCounter(state.rules.zones(visible.width, visible.height));
    warn_out_of_reach(transform);
  }
  clinfer::FrameResults results(buffer, visible);
  const clinfer::FrameView& frame = results.view();
  state.roi_notice.look(GST_ELEMENT(transform), frame);
  const auto objects = objects_of(state, frame, settings);
  const double lost = settings.lost_time / 1000.0;
  std::vector<clinfer::ZoneEvent> events;
  if (step.is_hole) events = state.counter.forget(state.seconds, lost);
  for (const clinfer::ZoneEvent& event :
       state.counter.update(state.seconds, objects, lost, settings.dwell_time / 1000.0))
    events.push_back(event);
  clinfer::ZoneResult result;
  for (const clinfer::ZoneEvent& event : events) {
    result.events.push_back(view_of(state, event));
    post(transform, result.events.back(), GST_BUFFER_PTS(buffer));
  }
  result.zones = zones_so_far(state);
  for (size_t i = 0; i < frame.regions.size(); ++i)
    if (frame.regions[i].track_id)
      for (const size_t zone : state.counter.zones_of(*frame.regions[i].track_id))
        result.objects[i].push_back(state.counter.zones()[zone].name);
  results.attach(result);
  update_stats(transform, result.zones);
  std::erase_if(state.labels, [&](const auto& label) { return !state.counter.knows(label.first); });
  warn_without_ids(transform);
}

GstFlowReturn transform_ip(GstBaseTransform* transform, GstBuffer* buffer) {
  return clinfer::guard(GST_ELEMENT(transform), GST_FLOW_ERROR, [&] {
    clinfer::UnreadableFrames& unreadable = Class::state(transform).unreadable;
    try {
      count(transform, buffer);
      unreadable.count_readable();
    } catch (const clinfer::UnreadableFrame& frame) {
      unreadable.lose(GST_ELEMENT(transform), frame);
    }
    return GST_FLOW_OK;
  });
}

}  // namespace

static void gst_clzones_class_init(GstClzonesClass* klass) {
  auto* transform = GST_BASE_TRANSFORM_CLASS(klass);
  clinfer::register_result_meta();
  Class::set_up(
      klass,
      {"Zone counter", "Filter/Analyzer/Video",
       "Counts tracked objects that cross lines and visit zones, and reports it on the bus and in "
       "the results",
       CLINFER_DOCS "tracking.md"},
      "By name: for a line the objects that came in and out, for a zone those inside now and those "
      "that entered and left");
  clinfer::write_metadata_only(transform);
  transform->start = start;
  transform->stop = stop;
  transform->set_caps = set_caps;
  transform->transform_ip = transform_ip;
}

static void gst_clzones_init(GstClzones* self) {
  Class::make_state(self);
  gst_base_transform_set_in_place(GST_BASE_TRANSFORM(self), TRUE);
}

static gboolean register_clzones(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "clzones", gst_clzones_get_type(), properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(clzones, register_clzones)
