// The custom meta written, read, and moved with the picture.
#include "gst/meta/record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gst/base/guard.h"
#include "gst/meta/analytics.h"
#include "gst/meta/parameters.h"

namespace clinfer {
namespace {

Structure region_structure(const RegionView& view, const Rect& picture) {
  const auto share = [](float value) { return static_cast<double>(value); };
  Structure s(gst_structure_new(
      "region", "region_id", G_TYPE_INT, view.id, "parent_id", G_TYPE_INT, view.parent_id,
      "roi_type", G_TYPE_STRING, view.roi_type.c_str(), "x_min", G_TYPE_DOUBLE,
      share(view.box.x_min), "y_min", G_TYPE_DOUBLE, share(view.box.y_min), "x_max", G_TYPE_DOUBLE,
      share(view.box.x_max), "y_max", G_TYPE_DOUBLE, share(view.box.y_max), nullptr));
  if (view.analytics_id >= 0)
    gst_structure_set(s.get(), "analytics_id", G_TYPE_INT, view.analytics_id, nullptr);
  set_list(s.get(), "parameters", parameters_of(view, picture.width, picture.height));
  return s;
}

RecordedRegion read_region(const GstStructure* s, const Rect& picture) {
  RecordedRegion region;
  RegionView& view = region.view;
  gst_structure_get(s, "region_id", G_TYPE_INT, &view.id, "parent_id", G_TYPE_INT, &view.parent_id,
                    nullptr);
  view.roi_type = text_of(s, "roi_type");
  if (!gst_structure_get_int(s, "analytics_id", &view.analytics_id)) view.analytics_id = -1;
  for_each_item(s, "parameters", [&](const GstStructure* parameter) {
    region.parameters.insert(gst_structure_get_name(parameter));
    read_parameter(parameter, view);
  });
  if (!view.has_detection) view.label = view.roi_type;
  gdouble x_min = 0, y_min = 0, x_max = 0, y_max = 0;
  gst_structure_get(s, "x_min", G_TYPE_DOUBLE, &x_min, "y_min", G_TYPE_DOUBLE, &y_min, "x_max",
                    G_TYPE_DOUBLE, &x_max, "y_max", G_TYPE_DOUBLE, &y_max, nullptr);
  view.box = {static_cast<float>(x_min), static_cast<float>(y_min), static_cast<float>(x_max),
              static_cast<float>(y_max)};
  move_region(view, {}, picture.width, picture.height);
  return region;
}

Structure result_structure(const ResultView& result) {
  Structure s(gst_structure_new("inference", "inference", G_TYPE_STRING,
                                std::string(name_of(result.outcome)).c_str(), "model_name",
                                G_TYPE_STRING, result.model.c_str(), nullptr));
  set_list(s.get(), "parameters", parameters_of(result));
  return s;
}

ResultView read_result(const GstStructure* s) {
  ResultView view;
  view.outcome = outcome_named(text_of(s, "inference")).value_or(Outcome::skipped);
  view.model = text_of(s, "model_name");
  for_each_item(s, "parameters",
                [&](const GstStructure* parameter) { read_parameter(parameter, view); });
  return view;
}

Structure zone_structure(const ZoneView& zone) {
  Structure s(gst_structure_new("zone", "name", G_TYPE_STRING, zone.name.c_str(), "is_line",
                                G_TYPE_BOOLEAN, zone.is_line, "in", G_TYPE_UINT64, zone.in, "out",
                                G_TYPE_UINT64, zone.out, "inside", G_TYPE_UINT64, zone.inside,
                                nullptr));
  std::vector<Structure> points;
  for (const Point& point : zone.points)
    points.emplace_back(gst_structure_new("point", "x", G_TYPE_DOUBLE, static_cast<double>(point.x),
                                          "y", G_TYPE_DOUBLE, static_cast<double>(point.y),
                                          nullptr));
  set_list(s.get(), "points", std::move(points));
  return s;
}

ZoneView read_zone(const GstStructure* s) {
  ZoneView zone;
  zone.name = text_of(s, "name");
  gboolean is_line = FALSE;
  guint64 in = 0, out = 0, inside = 0;
  gst_structure_get(s, "is_line", G_TYPE_BOOLEAN, &is_line, "in", G_TYPE_UINT64, &in, "out",
                    G_TYPE_UINT64, &out, "inside", G_TYPE_UINT64, &inside, nullptr);
  zone.is_line = is_line;
  zone.in = in, zone.out = out, zone.inside = inside;
  for_each_item(s, "points", [&](const GstStructure* point) {
    gdouble x = 0, y = 0;
    gst_structure_get(point, "x", G_TYPE_DOUBLE, &x, "y", G_TYPE_DOUBLE, &y, nullptr);
    if (std::isfinite(x) && std::isfinite(y))
      zone.points.push_back({static_cast<float>(x), static_cast<float>(y)});
  });
  return zone;
}

Structure event_structure(const EventView& event) {
  Structure s(gst_structure_new("event", "type", G_TYPE_STRING, event.type.c_str(), "zone",
                                G_TYPE_STRING, event.zone.c_str(), "direction", G_TYPE_STRING,
                                event.direction.c_str(), "id", G_TYPE_UINT64, event.track_id,
                                "label", G_TYPE_STRING, event.label.c_str(), nullptr));
  if (event.seconds) gst_structure_set(s.get(), "seconds", G_TYPE_DOUBLE, *event.seconds, nullptr);
  return s;
}

EventView read_event(const GstStructure* s) {
  EventView event{text_of(s, "type"),  text_of(s, "zone"), text_of(s, "direction"), 0,
                  text_of(s, "label"), std::nullopt};
  guint64 id = 0;
  gdouble seconds = 0;
  if (gst_structure_get_uint64(s, "id", &id)) event.track_id = id;
  if (gst_structure_get_double(s, "seconds", &seconds)) event.seconds = seconds;
  return event;
}

// ---- effects of converters on the picture -------------------------------------------------------

// Where the picture lies in the converted frame: videoscale and videoconvertscale add black borders
// when the shape of the display changes, as their property add-borders says by default.
Affine scaled(const GstVideoInfo& in, const GstVideoInfo& out, const Rect& picture) {
  const int out_width = GST_VIDEO_INFO_WIDTH(&out), out_height = GST_VIDEO_INFO_HEIGHT(&out);
  int width = out_width, height = out_height;
  gint n = 0, d = 0;
  // The shape of the whole input, in pixels of the output.
  if (gst_util_fraction_multiply(GST_VIDEO_INFO_WIDTH(&in), GST_VIDEO_INFO_HEIGHT(&in),
                                 GST_VIDEO_INFO_PAR_N(&in), GST_VIDEO_INFO_PAR_D(&in), &n, &d) &&
      gst_util_fraction_multiply(n, d, GST_VIDEO_INFO_PAR_D(&out), GST_VIDEO_INFO_PAR_N(&out), &n,
                                 &d) &&
      n > 0 && d > 0) {
    const auto fitting = [](int size, int by, int of) {
      return static_cast<int>(gst_util_uint64_scale_int(static_cast<guint64>(size), by, of));
    };
    height = fitting(out_width, d, n);
    if (height > out_height) {
      height = out_height;
      width = std::min(fitting(out_height, n, d), out_width);
    }
    // Rounding is no border.
    if (out_height - height <= 1) height = out_height;
    if (out_width - width <= 1) width = out_width;
  }
  const double left = (out_width - width) / 2, top = (out_height - height) / 2;
  const double x = static_cast<double>(width) / GST_VIDEO_INFO_WIDTH(&in),
               y = static_cast<double>(height) / GST_VIDEO_INFO_HEIGHT(&in);
  return {picture.width * x / out_width, (left + picture.x * x) / out_width,
          picture.height * y / out_height, (top + picture.y * y) / out_height};
}

void scale_record(GstBuffer* to, GstBuffer* from, const GstVideoMetaTransform& change) {
  std::optional<Record> record = read_record(from);
  if (!record) return;
  const GstVideoInfo& in = *change.in_info;
  const GstVideoInfo& out = *change.out_info;
  if (GST_VIDEO_INFO_WIDTH(&in) <= 0 || GST_VIDEO_INFO_HEIGHT(&in) <= 0) return;
  const Affine affine = scaled(in, out, record->picture);
  const size_t regions = record->regions.size();
  move_record(*record, affine, {0, 0, GST_VIDEO_INFO_WIDTH(&out), GST_VIDEO_INFO_HEIGHT(&out)});
  // GStreamer scales objects as if there were no borders. Objects of other elements cannot be told
  // apart and put right.
  const bool has_borders =
      std::abs(affine.x_scale - 1) > 1e-6 || std::abs(affine.y_scale - 1) > 1e-6;
  const size_t objects = count_analytics_objects(to);
  if (has_borders && objects != 0 && objects <= regions)
    replace_analytics_objects(to, views_of(*record));
  write_record(to, *record);
  restore_regions(to, *record);
}

gboolean transform(GstBuffer* to, GstCustomMeta* meta, GstBuffer* from, GQuark type, gpointer data,
                   gpointer) {
  const auto tell = [](ErrorCode, const char* what) {
    GST_WARNING("results do not follow their frame: %s", what);
  };
  return guard(tell, FALSE, [&]() -> gboolean {
    if (GST_META_TRANSFORM_IS_COPY(type)) {
      GstStructure* copy =
          gst_custom_meta_get_structure(gst_buffer_add_custom_meta(to, kResultMeta));
      gst_structure_foreach(
          gst_custom_meta_get_structure(meta),
          [](GQuark field, const GValue* value, gpointer structure) -> gboolean {
            gst_structure_id_set_value(static_cast<GstStructure*>(structure), field, value);
            return TRUE;
          },
          copy);
      return TRUE;
    }
    if (!GST_VIDEO_META_TRANSFORM_IS_SCALE(type)) return FALSE;
    // All metas of the input are one on the output.
    if (gst_buffer_get_custom_meta(to, kResultMeta) == nullptr)
      scale_record(to, from, *static_cast<const GstVideoMetaTransform*>(data));
    return TRUE;
  });
}

template <typename Visit>
void for_each_record(GstBuffer* buffer, Visit&& visit) {
  const GstMetaInfo* info = gst_meta_get_info(kResultMeta);
  if (info == nullptr) return;
  gpointer state = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta_filtered(buffer, &state, info->api)) visit(meta);
}

}  // namespace

void register_result_meta() {
  // These tags say that the picture's size and orientation matter: an element that changes them
  // without telling metas about it drops this one, as it does regions of interest.
  static const gchar* const kTags[] = {GST_META_TAG_VIDEO_STR, GST_META_TAG_VIDEO_ORIENTATION_STR,
                                       GST_META_TAG_VIDEO_SIZE_STR, nullptr};
  if (gst_meta_get_info(kResultMeta) == nullptr)
    gst_meta_register_custom(kResultMeta, const_cast<const gchar**>(kTags), transform, nullptr,
                             nullptr);
}

std::optional<Record> read_record(GstBuffer* buffer) {
  std::optional<Record> record;
  for_each_record(buffer, [&](GstMeta* meta) {
    const GstStructure* s = gst_custom_meta_get_structure(reinterpret_cast<GstCustomMeta*>(meta));
    Rect picture;
    gst_structure_get(s, "x", G_TYPE_INT, &picture.x, "y", G_TYPE_INT, &picture.y, "width",
                      G_TYPE_INT, &picture.width, "height", G_TYPE_INT, &picture.height, nullptr);
    if (!record) {
      record.emplace();
      record->picture = picture;
    }
    for_each_item(s, "regions", [&](const GstStructure* region) {
      record->regions.push_back(read_region(region, picture));
    });
    for_each_item(s, "inferences", [&](const GstStructure* result) {
      record->results.push_back(read_result(result));
    });
    for_each_item(s, "zones",
                  [&](const GstStructure* zone) { record->zones.push_back(read_zone(zone)); });
    for_each_item(s, "events",
                  [&](const GstStructure* event) { record->events.push_back(read_event(event)); });
  });
  return record;
}

void write_record(GstBuffer* buffer, const Record& record) {
  std::vector<GstMeta*> old;
  for_each_record(buffer, [&](GstMeta* meta) { old.push_back(meta); });
  for (GstMeta* meta : old) gst_buffer_remove_meta(buffer, meta);
  GstStructure* s = gst_custom_meta_get_structure(gst_buffer_add_custom_meta(buffer, kResultMeta));
  const Rect& picture = record.picture;
  gst_structure_set(s, "x", G_TYPE_INT, picture.x, "y", G_TYPE_INT, picture.y, "width", G_TYPE_INT,
                    picture.width, "height", G_TYPE_INT, picture.height, nullptr);
  std::vector<Structure> regions, results;
  for (const RecordedRegion& region : record.regions)
    regions.push_back(region_structure(region.view, picture));
  for (const ResultView& result : record.results) results.push_back(result_structure(result));
  set_list(s, "regions", std::move(regions));
  set_list(s, "inferences", std::move(results));
  std::vector<Structure> zones, events;
  for (const ZoneView& zone : record.zones) zones.push_back(zone_structure(zone));
  for (const EventView& event : record.events) events.push_back(event_structure(event));
  set_list(s, "zones", std::move(zones));
  set_list(s, "events", std::move(events));
}

std::vector<RegionView*> views_of(Record& record) {
  std::vector<RegionView*> views;
  for (RecordedRegion& region : record.regions) views.push_back(&region.view);
  return views;
}

void move_record(Record& record, const Affine& affine, const Rect& picture) {
  record.picture = picture;
  std::erase_if(record.regions, [&](RecordedRegion& region) {
    return !move_region(region.view, affine, picture.width, picture.height);
  });
  for (ResultView& result : record.results) move_answers(result, affine);
  for (ZoneView& zone : record.zones) move_zone(zone, affine);
}

void restore_regions(GstBuffer* buffer, const Record& record) {
  for (const RecordedRegion& region : record.regions) {
    const RegionView& view = region.view;
    GstVideoRegionOfInterestMeta* roi =
        gst_buffer_get_video_region_of_interest_meta_id(buffer, view.id);
    if (roi == nullptr)
      roi = gst_buffer_add_video_region_of_interest_meta(buffer, view.roi_type.c_str(), 0, 0, 0, 0);
    roi->id = view.id;
    roi->parent_id = view.parent_id;
    roi->x = static_cast<guint>(view.x);
    roi->y = static_cast<guint>(view.y);
    roi->w = static_cast<guint>(view.width);
    roi->h = static_cast<guint>(view.height);
    add_parameters(roi, view, record.picture);
  }
}

void add_parameters(GstVideoRegionOfInterestMeta* roi, const RegionView& view,
                    const Rect& picture) {
  std::set<std::string> present;
  for (const GList* item = roi->params; item != nullptr; item = item->next)
    present.insert(gst_structure_get_name(static_cast<const GstStructure*>(item->data)));
  for (Structure& parameter : parameters_of(view, picture.width, picture.height))
    if (present.count(gst_structure_get_name(parameter.get())) == 0)
      gst_video_region_of_interest_meta_add_param(roi, parameter.release());
}

}  // namespace clinfer
