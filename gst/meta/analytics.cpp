// Converts results from and to GstAnalytics.
#include "gst/meta/analytics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <set>
#include <utility>

#ifdef CLINFER_HAVE_ANALYTICS
#include <gst/analytics/analytics.h>
#endif

#include "gst/base/handle.h"
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

#if GST_CHECK_VERSION(1, 26, 0)

// The pixels of a segmentation's mask, which may be larger or smaller than its place.
struct Segments {
  int columns = 0, rows = 0;
  PictureBox area;
  std::vector<uint16_t> ids;  // of regions, row by row
};

std::optional<Segments> segments_of(const GstAnalyticsSegmentationMtd& mtd, int width, int height) {
  gint x = 0, y = 0;
  guint w = 0, h = 0;
  const Handle<GstBuffer> mask(gst_analytics_segmentation_mtd_get_mask(
      const_cast<GstAnalyticsSegmentationMtd*>(&mtd), &x, &y, &w, &h));
  GstVideoMeta* meta = mask == nullptr ? nullptr : gst_buffer_get_video_meta(mask.get());
  constexpr guint kMost = 1 << 14;
  if (meta == nullptr || w == 0 || h == 0 || meta->width == 0 || meta->height == 0 ||
      meta->width > kMost || meta->height > kMost)
    return std::nullopt;
  const bool wide = meta->format != GST_VIDEO_FORMAT_GRAY8;
  if (wide && meta->format != GST_VIDEO_FORMAT_GRAY16_LE &&
      meta->format != GST_VIDEO_FORMAT_GRAY16_BE)
    return std::nullopt;
  Segments segments;
  segments.columns = static_cast<int>(meta->width);
  segments.rows = static_cast<int>(meta->height);
  const auto share = [](double pixel, int size) { return static_cast<float>(pixel / size); };
  segments.area = {share(x, width), share(y, height), share(x + static_cast<double>(w), width),
                   share(y + static_cast<double>(h), height)};
  const size_t row_bytes = meta->width * (wide ? 2u : 1u);
  const auto stride = static_cast<size_t>(std::max(meta->stride[0], 0));
  GstMapInfo mapped;
  if (stride < row_bytes || !gst_buffer_map(mask.get(), &mapped, GST_MAP_READ)) return std::nullopt;
  const bool fits = meta->offset[0] + stride * (meta->height - 1) + row_bytes <= mapped.size;
  if (fits) {
    segments.ids.reserve(size_t{meta->width} * meta->height);
    for (guint row = 0; row < meta->height; ++row) {
      const uint8_t* from = mapped.data + meta->offset[0] + row * stride;
      for (guint column = 0; column < meta->width; ++column)
        segments.ids.push_back(!wide ? from[column]
                               : meta->format == GST_VIDEO_FORMAT_GRAY16_LE
                                   ? GST_READ_UINT16_LE(from + 2 * column)
                                   : GST_READ_UINT16_BE(from + 2 * column));
    }
  }
  gst_buffer_unmap(mask.get(), &mapped);
  if (!fits) return std::nullopt;
  return segments;
}

// Reads the mask of one object: decoders mark the pixels around it by 0.
void read_mask(const GstAnalyticsSegmentationMtd& mtd, int width, int height, RegionView& view) {
  const std::optional<Segments> segments = segments_of(mtd, width, height);
  if (!segments) return;
  view.mask.emplace();
  view.mask->columns = segments->columns;
  view.mask->rows = segments->rows;
  view.mask->area = segments->area;
  std::vector<float> values(segments->ids.begin(), segments->ids.end());
  for (float& value : values) value = value > 0 ? 1.0f : 0.0f;
  view.mask->values = bytes_of(std::move(values));
}

// Reads a segmentation of the picture with the names of its classes.
void read_map(GstAnalyticsRelationMeta* meta, const GstAnalyticsSegmentationMtd& mtd, int width,
              int height, std::vector<MapView>& maps, std::vector<bool>& claimed) {
  std::optional<Segments> segments = segments_of(mtd, width, height);
  if (!segments) return;
  auto* handle = const_cast<GstAnalyticsSegmentationMtd*>(&mtd);
  const gsize count = gst_analytics_segmentation_mtd_get_region_count(handle);
  std::set<uint16_t> known;
  MapView map;
  map.name = "segmentation";
  map.kind = MapKind::classes;
  map.columns = segments->columns;
  map.rows = segments->rows;
  map.area = segments->area;
  GstAnalyticsMtd names;
  gpointer state = nullptr;
  const bool named = gst_analytics_relation_meta_get_direct_related(
      meta, mtd.id, GST_ANALYTICS_REL_TYPE_ANY, gst_analytics_cls_mtd_get_mtd_type(), &state,
      &names);
  if (named) claimed[names.id] = true;
  for (gsize i = 0; i < count; ++i) {
    const guint id = gst_analytics_segmentation_mtd_get_region_id(handle, i);
    if (id >= kNoClass) continue;
    known.insert(static_cast<uint16_t>(id));
    if (!named || i >= gst_analytics_cls_mtd_get_length(&names)) continue;
    if (map.labels.size() <= id) map.labels.resize(id + 1);
    map.labels[id] = text_of_quark(gst_analytics_cls_mtd_get_quark(&names, i));
  }
  for (uint16_t& id : segments->ids)
    if (!known.contains(id)) id = kNoClass;
  map.values = bytes_of(std::move(segments->ids));
  maps.push_back(std::move(map));
}

#endif

void read_track(const GstAnalyticsTrackingMtd& track, RegionView& view) {
  guint64 id = 0;
  GstClockTime first = 0, last = 0;
  gboolean lost = FALSE;
  if (gst_analytics_tracking_mtd_get_info(const_cast<GstAnalyticsTrackingMtd*>(&track), &id, &first,
                                          &last, &lost) &&
      !lost)
    view.track_id = id;
}

// Reads what an object is related to, and marks it as claimed.
void read_related(GstAnalyticsRelationMeta* meta, int width, int height, AnalyticsObject& object,
                  std::vector<bool>& claimed) {
  GstAnalyticsMtd related;
  gpointer state = nullptr;
  while (gst_analytics_relation_meta_get_direct_related(
      meta, static_cast<guint>(object.view.analytics_id), GST_ANALYTICS_REL_TYPE_ANY,
      GST_ANALYTICS_MTD_TYPE_ANY, &state, &related)) {
    const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&related);
    claimed[related.id] = true;
    if (type == gst_analytics_cls_mtd_get_mtd_type()) {
      read_classes(related, object.view.classifications);
    } else if (type == gst_analytics_tracking_mtd_get_mtd_type()) {
      read_track(related, object.view);
    } else if (type == gst_analytics_od_mtd_get_mtd_type()) {
      if (gst_analytics_relation_meta_get_relation(meta,
                                                   static_cast<guint>(object.view.analytics_id),
                                                   related.id) == GST_ANALYTICS_REL_TYPE_IS_PART_OF)
        object.parent = static_cast<int>(related.id);
#if GST_CHECK_VERSION(1, 26, 0)
    } else if (type == gst_analytics_segmentation_mtd_get_mtd_type()) {
      read_mask(related, width, height, object.view);
#endif
    }
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

// Adds the object's rectangle; with GStreamer 1.26 or newer, the turned one.
bool add_object(GstAnalyticsRelationMeta* meta, const RegionView& object,
                [[maybe_unused]] int width, [[maybe_unused]] int height, GstAnalyticsODMtd* mtd) {
  const GQuark type = g_quark_from_string(object.roi_type.c_str());
  const auto confidence = static_cast<gfloat>(object.confidence);
#if GST_CHECK_VERSION(1, 26, 0)
  if (object.corners) {
    const OrientedBox box = oriented_box(*object.corners, width, height);
    const int w = std::max(static_cast<int>(std::lround(box.width)), 1),
              h = std::max(static_cast<int>(std::lround(box.height)), 1);
    const auto start = [](float center, int size) {
      return static_cast<int>(std::lround(center - static_cast<float>(size) / 2));
    };
    constexpr float kTurn = 2 * std::numbers::pi_v<float>;
    const float rotation = box.rotation < 0 ? box.rotation + kTurn : box.rotation;
    return gst_analytics_relation_meta_add_oriented_od_mtd(meta, type, start(box.x_center, w),
                                                           start(box.y_center, h), w, h, rotation,
                                                           confidence, mtd);
  }
#endif
  return gst_analytics_relation_meta_add_od_mtd(meta, type, object.x, object.y, object.width,
                                                object.height, confidence, mtd);
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

// Makes an image of bytes, row by row, with the GstVideoMeta that readers of masks look for.
// Returns null if there is no memory for it.
template <typename At>
GstBuffer* byte_image(int width, int height, At&& at) {
  GstVideoInfo info;
  gst_video_info_set_format(&info, GST_VIDEO_FORMAT_GRAY8, static_cast<guint>(width),
                            static_cast<guint>(height));
  Handle<GstBuffer> image(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr));
  GstMapInfo mapped;
  if (image == nullptr || !gst_buffer_map(image.get(), &mapped, GST_MAP_WRITE)) return nullptr;
  gst_buffer_add_video_meta_full(image.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8,
                                 static_cast<guint>(width), static_cast<guint>(height), 1,
                                 info.offset, info.stride);
  for (int y = 0; y < height; ++y) {
    uint8_t* to = mapped.data + static_cast<ptrdiff_t>(y) * GST_VIDEO_INFO_PLANE_STRIDE(&info, 0);
    for (int x = 0; x < width; ++x)
      to[x] = at(static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x));
  }
  gst_buffer_unmap(image.get(), &mapped);
  return image.release();
}

// Adds an object's mask over its box, in pixels of the picture: 0 around the object, and a number
// that differs among objects of one frame, up to 255 of them, inside. Overlays choose colours by
// it.
void add_mask(GstAnalyticsRelationMeta* meta, guint object, const RegionView& view, int width,
              int height) {
  if (!view.mask) return;
  const Raster raster = raster_of(*view.mask, view.box, width, height);
  if (raster.rect.width <= 0 || raster.rect.height <= 0) return;
  guint id = 1 + object % 255;
  GstBuffer* image = byte_image(raster.rect.width, raster.rect.height, [&](size_t pixel) {
    return static_cast<uint8_t>(raster.pixels[pixel] != 0 ? id : 0);
  });
  GstAnalyticsSegmentationMtd segments;
  if (image == nullptr ||
      !gst_analytics_relation_meta_add_segmentation_mtd(
          meta, image, GST_SEGMENTATION_TYPE_INSTANCE, 1, &id, raster.rect.x, raster.rect.y,
          static_cast<guint>(raster.rect.width), static_cast<guint>(raster.rect.height), &segments))
    return;
  gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, object,
                                           segments.id);
  gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, segments.id,
                                           object);
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
  GstBuffer* mask = byte_image(width, height, [&](size_t pixel) {
    const int32_t label = classes[pixel];
    return static_cast<uint8_t>(label >= 0 && label < kNone ? label : kNone);
  });
  if (mask == nullptr) return;
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

bool has_analytics() { return true; }

AnalyticsContents read_analytics(GstBuffer* buffer, int width, int height) {
  AnalyticsContents contents;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  if (meta == nullptr || width <= 0 || height <= 0) return contents;
  std::vector<bool> claimed(gst_analytics_relation_get_length(meta));
  const auto for_each = [&](GstAnalyticsMtdType type, auto&& visit) {
    GstAnalyticsMtd mtd;
    gpointer state = nullptr;
    while (gst_analytics_relation_meta_iterate(meta, &state, type, &mtd)) visit(mtd);
  };
  for_each(gst_analytics_od_mtd_get_mtd_type(), [&](const GstAnalyticsODMtd& mtd) {
    AnalyticsObject object{view_of(mtd, width, height)};
    read_related(meta, width, height, object, claimed);
    if (object.view.width != 0)  // the object is inside the picture
      contents.objects.push_back(std::move(object));
  });
#if GST_CHECK_VERSION(1, 26, 0)
  for_each(gst_analytics_segmentation_mtd_get_mtd_type(),
           [&](const GstAnalyticsSegmentationMtd& mtd) {
             if (!claimed[mtd.id]) read_map(meta, mtd, width, height, contents.whole.maps, claimed);
           });
#endif
  for_each(gst_analytics_cls_mtd_get_mtd_type(), [&](const GstAnalyticsClsMtd& mtd) {
    GstAnalyticsMtd other;
    gpointer state = nullptr;
    if (!claimed[mtd.id] &&
        !gst_analytics_relation_meta_get_direct_related(meta, mtd.id, GST_ANALYTICS_REL_TYPE_ANY,
                                                        GST_ANALYTICS_MTD_TYPE_ANY, &state, &other))
      read_classes(mtd, contents.whole.classifications);
  });
  return contents;
}

void reserve_analytics(GstBuffer* buffer, size_t objects) {
  if (objects == 0 || gst_buffer_get_analytics_relation_meta(buffer) != nullptr) return;
  constexpr size_t kObjectBytes = 64;
  const GstAnalyticsRelationMetaInitParams sizes{objects, objects * kObjectBytes};
  gst_buffer_add_analytics_relation_meta_full(
      buffer, const_cast<GstAnalyticsRelationMetaInitParams*>(&sizes));
}

void add_analytics_objects(GstBuffer* buffer, const std::vector<RegionView*>& objects, int width,
                           int height) {
  if (objects.empty()) return;
  reserve_analytics(buffer, objects.size());
  GstAnalyticsRelationMeta* meta = relations_of(buffer);
  std::map<int, guint> ids;
  for (RegionView* object : objects) {
    GstAnalyticsODMtd mtd;
    object->analytics_id = -1;
    if (!add_object(meta, *object, width, height, &mtd)) continue;
    object->analytics_id = static_cast<int>(mtd.id);
    if (objects.size() > 1) ids[object->id] = mtd.id;
    if (object->track_id) {
      GstAnalyticsTrackingMtd track;
      if (gst_analytics_relation_meta_add_tracking_mtd(meta, *object->track_id, 0, &track))
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, mtd.id,
                                                 track.id);
    }
    add_classes(meta, &mtd, object->classifications);
#if GST_CHECK_VERSION(1, 26, 0)
    add_mask(meta, mtd.id, *object, width, height);
#endif
  }
  for (const RegionView* object : objects)
    if (const auto parent = ids.find(object->parent_id);
        parent != ids.end() && object->parent_id != 0 && object->analytics_id >= 0)
      relate(meta, parent->second, static_cast<guint>(object->analytics_id));
}

void add_analytics_parent(GstBuffer* buffer, const RegionView& object, const RegionView& parent,
                          int width, int height) {
  GstAnalyticsRelationMeta* meta = relations_of(buffer);
  GstAnalyticsODMtd part, whole;
  if (find_object(meta, object, width, height, &part) &&
      find_object(meta, parent, width, height, &whole))
    relate(meta, whole.id, part.id);
}

void add_analytics_mask([[maybe_unused]] GstBuffer* buffer,
                        [[maybe_unused]] const RegionView& object, [[maybe_unused]] int width,
                        [[maybe_unused]] int height) {
#if GST_CHECK_VERSION(1, 26, 0)
  GstAnalyticsRelationMeta* meta = relations_of(buffer);
  GstAnalyticsODMtd mtd;
  if (find_object(meta, object, width, height, &mtd)) add_mask(meta, mtd.id, object, width, height);
#endif
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

void replace_analytics_objects(GstBuffer* buffer, const std::vector<RegionView*>& objects,
                               int width, int height) {
  if (GstAnalyticsRelationMeta* old = gst_buffer_get_analytics_relation_meta(buffer))
    gst_buffer_remove_meta(buffer, reinterpret_cast<GstMeta*>(old));
  add_analytics_objects(buffer, objects, width, height);
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

void add_analytics_answers_again(GstBuffer* buffer, const std::vector<ResultView>& results,
                                 int width, int height) {
  for (const ResultView& result : results) {
    Answers answers;
    answers.classifications = result.classifications;
    answers.maps = result.maps;
    add_analytics_answers(buffer, nullptr, answers, width, height);
  }
}

#else

bool has_analytics() { return false; }
AnalyticsContents read_analytics(GstBuffer*, int, int) { return {}; }
void reserve_analytics(GstBuffer*, size_t) {}
void add_analytics_objects(GstBuffer*, const std::vector<RegionView*>&, int, int) {}
void add_analytics_parent(GstBuffer*, const RegionView&, const RegionView&, int, int) {}
void replace_analytics_objects(GstBuffer*, const std::vector<RegionView*>&, int, int) {}
void add_analytics_track(GstBuffer*, const RegionView&, uint64_t, uint64_t, uint64_t, int, int) {}
void add_analytics_mask(GstBuffer*, const RegionView&, int, int) {}
size_t count_analytics_objects(GstBuffer*) { return 0; }
void add_analytics_answers(GstBuffer*, const RegionView*, const Answers&, int, int) {}
void add_analytics_answers_again(GstBuffer*, const std::vector<ResultView>&, int, int) {}

#endif

}  // namespace clinfer
