// Writes the custom meta, reads it, and moves it with the picture.
#include "gst/meta/record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gst/base/guard.h"
#include "gst/base/log.h"
#include "gst/meta/analytics.h"
#include "gst/meta/parameters.h"

namespace clinfer {
namespace {

Structure region_structure(const RegionView& view, const Rect& picture) {
  Structure s(gst_structure_new_empty("region"));
  set(s.get(), "region_id"_f, view.id);
  set(s.get(), "parent_id"_f, view.parent_id);
  set(s.get(), "roi_type"_f, view.roi_type);
  set(s.get(), "x_min"_f, view.box.x_min);
  set(s.get(), "y_min"_f, view.box.y_min);
  set(s.get(), "x_max"_f, view.box.x_max);
  set(s.get(), "y_max"_f, view.box.y_max);
  if (view.analytics_id >= 0) set(s.get(), "analytics_id"_f, view.analytics_id);
  if (!view.has_roi) set(s.get(), "without_roi"_f, true);
  set_list(s.get(), "parameters"_f, parameters_of(view, picture.width, picture.height));
  return s;
}

RecordedRegion read_region(const GstStructure* s, const Rect& picture) {
  RecordedRegion region;
  region.stored = Stored::all;
  RegionView& view = region.view;
  view.id = integer(s, "region_id"_f);
  view.parent_id = integer(s, "parent_id"_f);
  view.roi_type = text_of(s, "roi_type"_f);
  view.analytics_id = integer(s, "analytics_id"_f, -1);
  view.has_roi = !is_set(s, "without_roi"_f);
  for_each_item(s, "parameters"_f, [&](const GstStructure* parameter) {
    region.parameters.emplace_back(gst_structure_get_name(parameter));
    read_parameter(parameter, view);
  });
  if (!view.has_detection) view.label = view.roi_type;
  view.box = {static_cast<float>(number(s, "x_min"_f)), static_cast<float>(number(s, "y_min"_f)),
              static_cast<float>(number(s, "x_max"_f)), static_cast<float>(number(s, "y_max"_f))};
  move_region(view, {}, picture.width, picture.height);
  return region;
}

Structure result_structure(const ResultView& result) {
  Structure s(gst_structure_new_empty("inference"));
  set(s.get(), "inference"_f, std::string(name_of(result.outcome)));
  set(s.get(), "model_name"_f, result.model);
  set_list(s.get(), "parameters"_f, parameters_of(result));
  return s;
}

ResultView read_result(const GstStructure* s) {
  ResultView view;
  view.outcome = outcome_named(text_of(s, "inference"_f)).value_or(Outcome::skipped);
  view.model = text_of(s, "model_name"_f);
  for_each_item(s, "parameters"_f,
                [&](const GstStructure* parameter) { read_parameter(parameter, view); });
  return view;
}

Structure zone_structure(const ZoneView& zone) {
  Structure s(gst_structure_new_empty("zone"));
  set(s.get(), "name"_f, zone.name);
  set(s.get(), "is_line"_f, zone.is_line);
  set(s.get(), "in"_f, guint64{zone.in});
  set(s.get(), "out"_f, guint64{zone.out});
  set(s.get(), "inside"_f, guint64{zone.inside});
  std::vector<Structure> points;
  for (const Point& point : zone.points) {
    points.emplace_back(gst_structure_new_empty("point"));
    set(points.back().get(), "x"_f, point.x);
    set(points.back().get(), "y"_f, point.y);
  }
  set_list(s.get(), "points"_f, std::move(points));
  return s;
}

ZoneView read_zone(const GstStructure* s) {
  ZoneView zone;
  zone.name = text_of(s, "name"_f);
  zone.is_line = is_set(s, "is_line"_f);
  zone.in = count(s, "in"_f);
  zone.out = count(s, "out"_f);
  zone.inside = count(s, "inside"_f);
  for_each_item(s, "points"_f, [&](const GstStructure* point) {
    const double x = number(point, "x"_f), y = number(point, "y"_f);
    if (std::isfinite(x) && std::isfinite(y))
      zone.points.push_back({static_cast<float>(x), static_cast<float>(y)});
  });
  return zone;
}

Structure event_structure(const EventView& event) {
  Structure s(gst_structure_new_empty("event"));
  set(s.get(), "type"_f, event.type);
  set(s.get(), "zone"_f, event.zone);
  set(s.get(), "direction"_f, event.direction);
  set(s.get(), "id"_f, guint64{event.track_id});
  set(s.get(), "label"_f, event.label);
  if (event.seconds) set(s.get(), "seconds"_f, *event.seconds);
  return s;
}

EventView read_event(const GstStructure* s) {
  EventView event{text_of(s, "type"_f), text_of(s, "zone"_f),  text_of(s, "direction"_f),
                  count(s, "id"_f),     text_of(s, "label"_f), std::nullopt};
  if (has(s, "seconds"_f, G_TYPE_DOUBLE)) event.seconds = number(s, "seconds"_f);
  return event;
}

// ---- adding to what is there --------------------------------------------------------------------

// Returns the list in a field, which may be changed in place; makes it if it is missing.
GValue* list_in(GstStructure* s, Field field) {
  if (!has(s, field, GST_TYPE_LIST)) {
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_LIST);
    take_value(s, field, &list);
  }
  return const_cast<GValue*>(value_of(s, field));
}

void append(GValue* list, Structure item) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, GST_TYPE_STRUCTURE);
  g_value_take_boxed(&value, item.release());
  gst_value_list_append_and_take_value(list, &value);
}

// Appends the items that the list does not have yet.
template <typename View, typename Make>
void append_rest(GstStructure* s, Field field, const std::vector<View>& views, Make&& make) {
  if (views.empty()) return;
  GValue* const list = list_in(s, field);
  for (size_t i = gst_value_list_get_size(list); i < views.size(); ++i)
    append(list, make(views[i]));
}

void extend(GstStructure* s, const Record& record) {
  const Rect& picture = record.picture;
  if (!record.regions.empty()) {
    GValue* const list = list_in(s, "regions"_f);
    const guint known = gst_value_list_get_size(list);
    for (guint i = 0; i < record.regions.size(); ++i) {
      const RecordedRegion& region = record.regions[i];
      if (i >= known) {
        append(list, region_structure(region.view, picture));
      } else if (region.stored != Stored::all) {
        auto* item = const_cast<GValue*>(gst_value_list_get_value(list, i));
        if (region.stored == Stored::no) {
          g_value_take_boxed(item, region_structure(region.view, picture).release());
          continue;
        }
        GValue* const parameters =
            list_in(const_cast<GstStructure*>(gst_value_get_structure(item)), "parameters"_f);
        for (Structure& parameter :
             parameters_of(region.view, picture.width, picture.height, region.parameters))
          append(parameters, std::move(parameter));
      }
    }
  }
  append_rest(s, "inferences"_f, record.results, result_structure);
  append_rest(s, "zones"_f, record.zones, zone_structure);
  append_rest(s, "events"_f, record.events, event_structure);
}

// ---- effects of converters on the picture -------------------------------------------------------

// Returns where the picture lies in the converted frame. videoscale and videoconvertscale add black
// borders if the shape of the display changes, unless their property add-borders is false.
PointMap scaled(const GstVideoInfo& in, const GstVideoInfo& out, const Rect& picture) {
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
    // Ignores a border of one pixel, which is due to rounding.
    if (out_height - height <= 1) height = out_height;
    if (out_width - width <= 1) width = out_width;
  }
  const double left = (out_width - width) / 2, top = (out_height - height) / 2;
  const double x = static_cast<double>(width) / GST_VIDEO_INFO_WIDTH(&in),
               y = static_cast<double>(height) / GST_VIDEO_INFO_HEIGHT(&in);
  return {picture.width * x / out_width,      0,
          (left + picture.x * x) / out_width, 0,
          picture.height * y / out_height,    (top + picture.y * y) / out_height};
}

void scale_record(GstBuffer* to, GstBuffer* from, const GstVideoMetaTransform& change) {
  std::optional<Record> record = read_record(from);
  if (!record) return;
  const GstVideoInfo& in = *change.in_info;
  const GstVideoInfo& out = *change.out_info;
  if (GST_VIDEO_INFO_WIDTH(&in) <= 0 || GST_VIDEO_INFO_HEIGHT(&in) <= 0) return;
  const PointMap affine = scaled(in, out, record->picture);
  const size_t regions = record->regions.size();
  move_record(*record, affine, {0, 0, GST_VIDEO_INFO_WIDTH(&out), GST_VIDEO_INFO_HEIGHT(&out)});
  // Corrects objects that GStreamer has scaled as if there were no borders. Objects of other
  // elements cannot be told apart, and stay wrong.
  const bool has_borders = std::abs(affine.xx - 1) > 1e-6 || std::abs(affine.yy - 1) > 1e-6;
  const size_t objects = count_analytics_objects(to);
  if (has_borders && objects != 0 && objects <= regions) {
    const Rect& picture = record->picture;
    replace_analytics_objects(to, views_of(*record), picture.width, picture.height);
    add_analytics_answers_again(to, record->results, picture.width, picture.height);
  }
  write_moved(to, *record);
}

gboolean transform(GstBuffer* to, GstCustomMeta* meta, GstBuffer* from, GQuark type, gpointer data,
                   gpointer) {
  const auto tell = [](const Failure& failure) {
    GST_CAT_WARNING(clinfer_meta_debug, "results do not follow their frame: %s", failure.what);
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
    // All metas of the input become one on the output.
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

// Returns whether a region of interest follows this meta.
bool is_before_region(GstBuffer* buffer, const GstMeta* record) {
  gpointer state = nullptr;
  bool passed = false;
  while (const GstMeta* meta = gst_buffer_iterate_meta(buffer, &state)) {
    if (passed && meta->info->api == GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE) return true;
    passed = passed || meta == record;
  }
  return false;
}

}  // namespace

void register_result_meta() {
  // These tags mean that the meta depends on the picture's size and orientation: an element that
  // changes them without telling metas drops it, as it drops regions of interest.
  static const gchar* const kTags[] = {GST_META_TAG_VIDEO_STR, GST_META_TAG_VIDEO_ORIENTATION_STR,
                                       GST_META_TAG_VIDEO_SIZE_STR, nullptr};
  if (gst_meta_get_info(kResultMeta) == nullptr)
    gst_meta_register_custom(kResultMeta, const_cast<const gchar**>(kTags), transform, nullptr,
                             nullptr);
}

std::optional<Record> read_record(GstBuffer* buffer) {
  std::optional<Record> record;
  for_each_record(buffer, [&](GstMeta* meta) {
    GstStructure* s = gst_custom_meta_get_structure(reinterpret_cast<GstCustomMeta*>(meta));
    const Rect picture{integer(s, "x"_f), integer(s, "y"_f), integer(s, "width"_f),
                       integer(s, "height"_f)};
    const bool is_first = !record;
    if (is_first) {
      record.emplace();
      record->picture = picture;
    }
    // Counts items, because those that are no structures are not read, and then items and views do
    // not match.
    size_t items = 0;
    const auto read = [&](Field field, auto& views, auto&& one) {
      for_each_item(s, field, [&](const GstStructure* item) { views.push_back(one(item)); });
      const GValue* list = value_of(s, field);
      if (list != nullptr) items += GST_VALUE_HOLDS_LIST(list) ? gst_value_list_get_size(list) : 1;
    };
    read("regions"_f, record->regions,
         [&](const GstStructure* region) { return read_region(region, picture); });
    read("inferences"_f, record->results, read_result);
    read("zones"_f, record->zones, read_zone);
    read("events"_f, record->events, read_event);
    const size_t views = record->regions.size() + record->results.size() + record->zones.size() +
                         record->events.size();
    record->source = is_first && items == views ? s : nullptr;
  });
  return record;
}

void write_record(GstBuffer* buffer, const Record& record) {
  std::vector<GstMeta*> old;
  for_each_record(buffer, [&](GstMeta* meta) { old.push_back(meta); });
  if (record.source != nullptr && old.size() == 1 && !is_before_region(buffer, old[0]) &&
      gst_custom_meta_get_structure(reinterpret_cast<GstCustomMeta*>(old[0])) == record.source) {
    extend(record.source, record);
    return;
  }
  for (GstMeta* meta : old) gst_buffer_remove_meta(buffer, meta);
  GstStructure* s = gst_custom_meta_get_structure(gst_buffer_add_custom_meta(buffer, kResultMeta));
  const Rect& picture = record.picture;
  set(s, "x"_f, picture.x);
  set(s, "y"_f, picture.y);
  set(s, "width"_f, picture.width);
  set(s, "height"_f, picture.height);
  extend(s, record);
}

std::vector<RegionView*> views_of(Record& record) {
  std::vector<RegionView*> views;
  for (RecordedRegion& region : record.regions) views.push_back(&region.view);
  return views;
}

void move_record(Record& record, const PointMap& affine, const Rect& picture) {
  record.source = nullptr;
  record.picture = picture;
  std::erase_if(record.regions, [&](RecordedRegion& region) {
    return !move_region(region.view, affine, picture.width, picture.height);
  });
  for (ResultView& result : record.results) move_answers(result, affine);
  for (ZoneView& zone : record.zones) move_zone(zone, affine);
}

void write_moved(GstBuffer* buffer, const Record& record) {
  for (const RecordedRegion& region : record.regions) {
    const RegionView& view = region.view;
    if (!view.has_roi) continue;
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
  write_record(buffer, record);
}

void remove_parameters(GstVideoRegionOfInterestMeta* roi, const Names& names) {
  for (GList* item = roi->params; item != nullptr;) {
    GList* const next = item->next;
    auto* parameter = static_cast<GstStructure*>(item->data);
    if (std::find(names.begin(), names.end(),
                  std::string_view(gst_structure_get_name(parameter))) != names.end()) {
      gst_structure_free(parameter);
      roi->params = g_list_delete_link(roi->params, item);
    }
    item = next;
  }
}

void add_parameters(GstVideoRegionOfInterestMeta* roi, const RegionView& view,
                    const Rect& picture) {
  Names present;
  for (const GList* item = roi->params; item != nullptr; item = item->next)
    present.emplace_back(gst_structure_get_name(static_cast<const GstStructure*>(item->data)));
  for (Structure& parameter : parameters_of(view, picture.width, picture.height, present))
    gst_video_region_of_interest_meta_add_param(roi, parameter.release());
}

}  // namespace clinfer
