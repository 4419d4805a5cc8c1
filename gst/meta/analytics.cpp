// Converts results from and to GstAnalytics.
#include "gst/meta/analytics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#ifdef CLINFER_HAVE_ANALYTICS
#include <gst/analytics/analytics.h>
#endif

#include "gst/meta/run_lengths.h"

namespace clinfer {

bool is_same_object(const RegionView& a, const RegionView& b) {
  // Tolerates that each converter rounds corners and sizes in its own way.
  constexpr int kRounding = 2;
  const auto near = [](int p, int q) { return std::abs(p - q) <= kRounding; };
  return a.roi_type == b.roi_type && near(a.x, b.x) && near(a.y, b.y) &&
         near(a.x + a.width, b.x + b.width) && near(a.y + a.height, b.y + b.height);
}

#ifdef CLINFER_HAVE_ANALYTICS

namespace {

GstAnalyticsRelationMeta* relations_of(GstBuffer* buffer) {
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  return meta != nullptr ? meta : gst_buffer_add_analytics_relation_meta(buffer);
}

const char* text_of_quark(GQuark quark) {
  const char* text = g_quark_to_string(quark);
  return text != nullptr ? text : "";
}

RegionView view_of(const GstAnalyticsODMtd& object, int width, int height) {
  auto* mtd = const_cast<GstAnalyticsODMtd*>(&object);  // the parameter is not const in 1.24
  RegionView view;
  gint x = 0, y = 0, w = 0, h = 0;
  gfloat confidence = 0;
#if GST_CHECK_VERSION(1, 26, 0)
  gfloat rotation = 0;
  gst_analytics_od_mtd_get_oriented_location(mtd, &x, &y, &w, &h, &rotation, &confidence);
#else
  gst_analytics_od_mtd_get_location(mtd, &x, &y, &w, &h, &confidence);
#endif
  view.has_detection = true;
  view.analytics_id = static_cast<int>(object.id);
  view.roi_type = text_of_quark(gst_analytics_od_mtd_get_obj_type(mtd));
  view.label = view.roi_type;
  view.confidence = static_cast<double>(confidence);
  const auto share = [](double pixel, int size) { return static_cast<float>(pixel / size); };
  view.box = {share(x, width), share(y, height), share(static_cast<double>(x) + w, width),
              share(static_cast<double>(y) + h, height)};
#if GST_CHECK_VERSION(1, 26, 0)
  if (rotation != 0) {
    const double c = std::cos(static_cast<double>(rotation)),
                 s = std::sin(static_cast<double>(rotation));
    view.corners.emplace();
    view.box = {1e9f, 1e9f, -1e9f, -1e9f};
    for (size_t i = 0; i < 4; ++i) {
      const double dx = (i == 0 || i == 3 ? -0.5 : 0.5) * w, dy = (i < 2 ? -0.5 : 0.5) * h;
      const Point corner{share(x + w / 2.0 + dx * c - dy * s, width),
                         share(y + h / 2.0 + dx * s + dy * c, height)};
      (*view.corners)[i] = corner;
      view.box = {std::min(view.box.x_min, corner.x), std::min(view.box.y_min, corner.y),
                  std::max(view.box.x_max, corner.x), std::max(view.box.y_max, corner.y)};
    }
  }
#endif
  move_region(view, {}, width, height);
  return view;
}

void read_classes(const GstAnalyticsClsMtd& classes, std::vector<ClassificationView>& answers) {
  auto* mtd = const_cast<GstAnalyticsClsMtd*>(&classes);
  for (gsize i = 0; i < gst_analytics_cls_mtd_get_length(mtd); ++i) {
    ClassificationView answer;
    answer.attribute = "classification";
    answer.label = text_of_quark(gst_analytics_cls_mtd_get_quark(mtd, i));
    answer.label_id = static_cast<int>(i);
    answer.confidence = gst_analytics_cls_mtd_get_level(mtd, i);
    answers.push_back(std::move(answer));
  }
  // Sorts, because a classifier of another element may list all of its classes.
  std::stable_sort(answers.begin(), answers.end(),
                   [](const auto& a, const auto& b) { return a.confidence > b.confidence; });
}

void read_related(GstAnalyticsRelationMeta* meta, guint object, RegionView& view) {
  GstAnalyticsMtd related;
  gpointer state = nullptr;
  while (gst_analytics_relation_meta_get_direct_related(meta, object, GST_ANALYTICS_REL_TYPE_ANY,
                                                        gst_analytics_cls_mtd_get_mtd_type(),
                                                        &state, &related))
    read_classes(related, view.classifications);
  state = nullptr;
  while (gst_analytics_relation_meta_get_direct_related(meta, object, GST_ANALYTICS_REL_TYPE_ANY,
                                                        gst_analytics_tracking_mtd_get_mtd_type(),
                                                        &state, &related)) {
    guint64 id = 0;
    GstClockTime first = 0, last = 0;
    gboolean lost = FALSE;
    if (gst_analytics_tracking_mtd_get_info(&related, &id, &first, &last, &lost) && !lost)
      view.track_id = id;
  }
}

// Finds the mtd of a region that is on the buffer. Returns false if there is none.
bool find_object(GstAnalyticsRelationMeta* meta, const RegionView& object, int width, int height,
                 GstAnalyticsODMtd* found) {
  if (object.analytics_id >= 0 &&
      gst_analytics_relation_meta_get_od_mtd(meta, static_cast<guint>(object.analytics_id), found))
    return true;
  gpointer state = nullptr;
  while (
      gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(), found))
    if (is_same_object(view_of(*found, width, height), object)) return true;
  return false;
}

void relate(GstAnalyticsRelationMeta* meta, guint whole, guint part) {
  gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_CONTAIN, whole, part);
  gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_IS_PART_OF, part, whole);
}

void add_classes(GstAnalyticsRelationMeta* meta, const GstAnalyticsODMtd* object,
                 const std::vector<ClassificationView>& answers) {
  for (size_t i = 0; i < answers.size();) {
    // Joins the answers of one output, which follow each other.
    std::vector<gfloat> levels;
    std::vector<GQuark> classes;
    const std::string& attribute = answers[i].attribute;
    for (; i < answers.size() && answers[i].attribute == attribute; ++i) {
      const ClassificationView& answer = answers[i];
      const std::string name =
          answer.label.empty() ? std::to_string(answer.label_id) : answer.label;
      levels.push_back(answer.confidence);
      classes.push_back(g_quark_from_string(name.c_str()));
    }
    GstAnalyticsClsMtd mtd;
    if (gst_analytics_relation_meta_add_cls_mtd(meta, levels.size(), levels.data(), classes.data(),
                                                &mtd) &&
        object != nullptr)
      relate(meta, object->id, mtd.id);
  }
}

#if GST_CHECK_VERSION(1, 26, 0)

GstTensorDataType data_type(const std::string& type) {
  static constexpr std::pair<const char*, GstTensorDataType> kTypes[] = {
      {"f32", GST_TENSOR_DATA_TYPE_FLOAT32}, {"f16", GST_TENSOR_DATA_TYPE_FLOAT16},
      {"f64", GST_TENSOR_DATA_TYPE_FLOAT64}, {"i8", GST_TENSOR_DATA_TYPE_INT8},
      {"u8", GST_TENSOR_DATA_TYPE_UINT8},    {"i16", GST_TENSOR_DATA_TYPE_INT16},
      {"u16", GST_TENSOR_DATA_TYPE_UINT16},  {"i32", GST_TENSOR_DATA_TYPE_INT32},
      {"u32", GST_TENSOR_DATA_TYPE_UINT32},  {"i64", GST_TENSOR_DATA_TYPE_INT64},
      {"u64", GST_TENSOR_DATA_TYPE_UINT64},  {"boolean", GST_TENSOR_DATA_TYPE_UINT8}};
  for (const auto& [name, value] : kTypes)
    if (type == name) return value;
  return GST_TENSOR_DATA_TYPE_UINT8;
}

GstBuffer* buffer_of(const Bytes& bytes) {
  // The buffer takes over the reference.
  return gst_buffer_new_wrapped_bytes(bytes.get());
}

// Adds a meta for each inference, with the tensors' names as their ids.
void add_tensors(GstBuffer* buffer, const std::vector<TensorView>& tensors) {
  std::vector<GstTensor*> list;
  for (const TensorView& tensor : tensors) {
    if (tensor.data == nullptr || tensor.dims.empty()) continue;
    std::vector<gsize> dims;
    for (const int dimension : tensor.dims) dims.push_back(static_cast<gsize>(dimension));
    if (GstTensor* made = gst_tensor_new_simple(
            g_quark_from_string(tensor.name.c_str()), data_type(tensor.type),
            buffer_of(tensor.data), GST_TENSOR_DIM_ORDER_ROW_MAJOR, dims.size(), dims.data()))
      list.push_back(made);
  }
  if (list.empty()) return;
  // The meta frees the array with g_free.
  auto** array = static_cast<GstTensor**>(g_memdup2(list.data(), list.size() * sizeof(GstTensor*)));
  gst_tensor_meta_set(gst_buffer_add_tensor_meta(buffer), static_cast<guint>(list.size()), array);
}

// Adds a map of classes as an image of bytes. The values are the classes' numbers, which are also
// the regions' ids; 255 means none. The classes' names, with their shares of the picture, are in a
// classification in the order of the regions.
void add_segmentation(GstAnalyticsRelationMeta* meta, const MapView& map, int width, int height) {
  constexpr int32_t kNone = 255;
  const std::vector<int32_t> classes = class_of_pixels(map, width, height);
  std::array<size_t, kNone> pixels{};
  for (const int32_t label : classes)
    if (label >= 0 && label < kNone) ++pixels[static_cast<size_t>(label)];
  std::vector<guint> ids;
  std::vector<gfloat> shares;
  std::vector<GQuark> names;
  for (size_t label = 0; label < pixels.size(); ++label) {
    if (pixels[label] == 0) continue;
    const bool known = label < map.labels.size() && !map.labels[label].empty();
    ids.push_back(static_cast<guint>(label));
    shares.push_back(static_cast<gfloat>(pixels[label]) / static_cast<gfloat>(classes.size()));
    names.push_back(
        g_quark_from_string(known ? map.labels[label].c_str() : std::to_string(label).c_str()));
  }
  if (ids.empty()) return;
  GstVideoInfo info;
  gst_video_info_set_format(&info, GST_VIDEO_FORMAT_GRAY8, static_cast<guint>(width),
                            static_cast<guint>(height));
  GstBuffer* mask = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
  gst_buffer_add_video_meta_full(mask, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8,
                                 static_cast<guint>(width), static_cast<guint>(height), 1,
                                 info.offset, info.stride);
  GstMapInfo mapped;
  if (gst_buffer_map(mask, &mapped, GST_MAP_WRITE)) {
    auto from = classes.begin();
    for (int y = 0; y < height; ++y) {
      uint8_t* to = mapped.data + static_cast<ptrdiff_t>(y) * GST_VIDEO_INFO_PLANE_STRIDE(&info, 0);
      for (int x = 0; x < width; ++x, ++from)
        to[x] = static_cast<uint8_t>(*from >= 0 && *from < kNone ? *from : kNone);
    }
    gst_buffer_unmap(mask, &mapped);
  }
  GstAnalyticsSegmentationMtd segments;
  GstAnalyticsClsMtd named;
  if (gst_analytics_relation_meta_add_segmentation_mtd(
          meta, mask, GST_SEGMENTATION_TYPE_SEMANTIC, ids.size(), ids.data(), 0, 0,
          static_cast<guint>(width), static_cast<guint>(height), &segments) &&
      gst_analytics_relation_meta_add_cls_mtd(meta, ids.size(), shares.data(), names.data(),
                                              &named))
    gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_N_TO_N, segments.id,
                                             named.id);
}

#endif

}  // namespace

std::vector<RegionView> read_analytics_objects(GstBuffer* buffer, int width, int height) {
  std::vector<RegionView> objects;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  if (meta == nullptr || width <= 0 || height <= 0) return objects;
  GstAnalyticsODMtd object;
  gpointer state = nullptr;
  while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                             &object)) {
    RegionView view = view_of(object, width, height);
    if (view.width == 0) continue;  // the object is outside of the picture
    read_related(meta, object.id, view);
    objects.push_back(std::move(view));
  }
  return objects;
}

std::vector<ClassificationView> read_analytics_answers(GstBuffer* buffer) {
  std::vector<ClassificationView> answers;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  if (meta == nullptr) return answers;
  GstAnalyticsClsMtd classes;
  gpointer state = nullptr;
  while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_cls_mtd_get_mtd_type(),
                                             &classes)) {
    bool related = false;
    const auto relation = [&](guint from, guint to) {
      return gst_analytics_relation_meta_get_relation(meta, from, to) !=
             GST_ANALYTICS_REL_TYPE_NONE;
    };
    for (guint other = 0; other < gst_analytics_relation_get_length(meta) && !related; ++other)
      related = relation(other, classes.id) || relation(classes.id, other);
    if (!related) read_classes(classes, answers);
  }
  return answers;
}

void add_analytics_objects(GstBuffer* buffer, const std::vector<RegionView*>& objects) {
  if (objects.empty()) return;
  GstAnalyticsRelationMeta* meta = relations_of(buffer);
  for (RegionView* object : objects) {
    GstAnalyticsODMtd mtd;
    object->analytics_id = -1;
    if (!gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(object->roi_type.c_str()),
                                                object->x, object->y, object->width, object->height,
                                                static_cast<gfloat>(object->confidence), &mtd))
      continue;
    object->analytics_id = static_cast<int>(mtd.id);
    if (object->track_id) {
      GstAnalyticsTrackingMtd track;
      if (gst_analytics_relation_meta_add_tracking_mtd(meta, *object->track_id, 0, &track))
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, mtd.id,
                                                 track.id);
    }
    add_classes(meta, &mtd, object->classifications);
  }
}

void add_analytics_track(GstBuffer* buffer, const RegionView& object, uint64_t id,
                         uint64_t first_seen, uint64_t last_seen, int width, int height) {
  GstAnalyticsRelationMeta* meta = relations_of(buffer);
  GstAnalyticsODMtd mtd;
  GstAnalyticsTrackingMtd track;
  if (!find_object(meta, object, width, height, &mtd) ||
      !gst_analytics_relation_meta_add_tracking_mtd(meta, id, first_seen, &track))
    return;
  gst_analytics_tracking_mtd_update_last_seen(&track, last_seen);
  gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, mtd.id,
                                           track.id);
}

size_t count_analytics_objects(GstBuffer* buffer) {
  size_t count = 0;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  GstAnalyticsODMtd object;
  gpointer state = nullptr;
  while (meta != nullptr && gst_analytics_relation_meta_iterate(
                                meta, &state, gst_analytics_od_mtd_get_mtd_type(), &object))
    ++count;
  return count;
}

void replace_analytics_objects(GstBuffer* buffer, const std::vector<RegionView*>& objects) {
  if (GstAnalyticsRelationMeta* old = gst_buffer_get_analytics_relation_meta(buffer))
    gst_buffer_remove_meta(buffer, reinterpret_cast<GstMeta*>(old));
  add_analytics_objects(buffer, objects);
}

void add_analytics_answers(GstBuffer* buffer, const RegionView* object, const Answers& answers,
                           [[maybe_unused]] int width, [[maybe_unused]] int height) {
  if (!answers.classifications.empty()) {
    GstAnalyticsRelationMeta* meta = relations_of(buffer);
    GstAnalyticsODMtd mtd;
    const bool known = object != nullptr && find_object(meta, *object, width, height, &mtd);
    // Skips classes of an object that is not in GstAnalytics.
    if (object == nullptr || known)
      add_classes(meta, known ? &mtd : nullptr, answers.classifications);
  }
#if GST_CHECK_VERSION(1, 26, 0)
  if (object != nullptr) return;
  add_tensors(buffer, answers.tensors);
  for (const MapView& map : answers.maps)
    if (map.kind == MapKind::classes) add_segmentation(relations_of(buffer), map, width, height);
#endif
}

#else

std::vector<RegionView> read_analytics_objects(GstBuffer*, int, int) { return {}; }
std::vector<ClassificationView> read_analytics_answers(GstBuffer*) { return {}; }
void add_analytics_objects(GstBuffer*, const std::vector<RegionView*>&) {}
void replace_analytics_objects(GstBuffer*, const std::vector<RegionView*>&) {}
void add_analytics_track(GstBuffer*, const RegionView&, uint64_t, uint64_t, uint64_t, int, int) {}
size_t count_analytics_objects(GstBuffer*) { return 0; }
void add_analytics_answers(GstBuffer*, const RegionView*, const Answers&, int, int) {}

#endif

}  // namespace clinfer
