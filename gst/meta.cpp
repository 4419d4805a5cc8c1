// Results on buffers, written and read.
#include "gst/meta.h"

#include <algorithm>
#include <cmath>

#ifdef CLINFER_HAVE_ANALYTICS
#include <gst/analytics/analytics.h>
#endif

namespace clinfer {
namespace {

std::string label_of(const std::vector<std::string>& labels, int id) {
  return id >= 0 && static_cast<size_t>(id) < labels.size() ? labels[static_cast<size_t>(id)] : "";
}

void append_structure(GValue* list, GstStructure* structure) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, GST_TYPE_STRUCTURE);
  g_value_take_boxed(&value, structure);
  gst_value_list_append_and_take_value(list, &value);
}

GstStructure* tensor_structure(const NamedTensor& tensor) {
  GValue dims = G_VALUE_INIT;
  g_value_init(&dims, GST_TYPE_ARRAY);
  for (int64_t dimension : tensor.value.shape()) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, G_TYPE_INT);
    g_value_set_int(&value, static_cast<int>(dimension));
    gst_value_array_append_and_take_value(&dims, &value);
  }
  GBytes* data = g_bytes_new(tensor.value.raw(), tensor.value.bytes());
  GstStructure* structure = gst_structure_new(
      "tensor", "name", G_TYPE_STRING, tensor.name.c_str(), "type", G_TYPE_STRING,
      std::string(name_of(tensor.value.type())).c_str(), "data", G_TYPE_BYTES, data, nullptr);
  g_bytes_unref(data);
  gst_structure_take_value(structure, "dims", &dims);
  return structure;
}

void attach_regions(GstBuffer* buffer, const FrameResult& result,
                    const std::vector<std::string>& labels) {
#ifdef CLINFER_HAVE_ANALYTICS
  GstAnalyticsRelationMeta* analytics = gst_buffer_get_analytics_relation_meta(buffer);
  if (analytics == nullptr) analytics = gst_buffer_add_analytics_relation_meta(buffer);
#endif
  // Ids count on from what other elements left; 0 means none.
  int id =
      static_cast<int>(gst_buffer_get_n_meta(buffer, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE));
  for (const Detection& detection : result.results.detections) {
    const auto box = to_picture(detection, result.placement, result.visible);
    if (!box) continue;
    const auto pixel = [](float share, int size) {
      return static_cast<guint>(std::lround(static_cast<double>(share) * size));
    };
    const guint x = pixel(box->x_min, result.visible.width);
    const guint y = pixel(box->y_min, result.visible.height);
    const guint width = pixel(box->x_max, result.visible.width) - x;
    const guint height = pixel(box->y_max, result.visible.height) - y;
    const std::string label = label_of(labels, detection.label_id);
    const std::string type = label.empty() ? std::to_string(detection.label_id) : label;
    GstVideoRegionOfInterestMeta* roi =
        gst_buffer_add_video_region_of_interest_meta(buffer, type.c_str(), x, y, width, height);
    roi->id = ++id;
    GstStructure* parameters = gst_structure_new(
        "detection", "x_min", G_TYPE_DOUBLE, static_cast<double>(box->x_min), "x_max",
        G_TYPE_DOUBLE, static_cast<double>(box->x_max), "y_min", G_TYPE_DOUBLE,
        static_cast<double>(box->y_min), "y_max", G_TYPE_DOUBLE, static_cast<double>(box->y_max),
        "confidence", G_TYPE_DOUBLE, static_cast<double>(detection.confidence), "label_id",
        G_TYPE_INT, detection.label_id, nullptr);
    if (!label.empty())
      gst_structure_set(parameters, "label", G_TYPE_STRING, label.c_str(), nullptr);
    gst_video_region_of_interest_meta_add_param(roi, parameters);
#ifdef CLINFER_HAVE_ANALYTICS
    GstAnalyticsODMtd object;
    gst_analytics_relation_meta_add_od_mtd(
        analytics, g_quark_from_string(type.c_str()), static_cast<gint>(x), static_cast<gint>(y),
        static_cast<gint>(width), static_cast<gint>(height), detection.confidence, &object);
#endif
  }
#ifdef CLINFER_HAVE_ANALYTICS
  for (const Classification& answer : result.results.classifications) {
    const std::string name = answer.label.empty() ? std::to_string(answer.label_id) : answer.label;
    GstAnalyticsClsMtd classified;
    gst_analytics_relation_meta_add_one_cls_mtd(analytics, answer.confidence,
                                                g_quark_from_string(name.c_str()), &classified);
  }
#endif
}

}  // namespace

void register_result_meta() {
  static const gchar* const kNoTags[] = {nullptr};
  if (gst_meta_get_info(kResultMeta) == nullptr)
    gst_meta_register_custom(kResultMeta, const_cast<const gchar**>(kNoTags), nullptr, nullptr,
                             nullptr);
}

std::optional<PictureBox> to_picture(const Detection& detection, const Placement& placement,
                                     const Rect& visible) {
  if (visible.width <= 0 || visible.height <= 0) return std::nullopt;
  const auto share = [](float network, float margin, float scale, float origin, int start,
                        int size) {
    const double frame = (static_cast<double>(network) - margin) * scale + origin;
    return static_cast<float>(std::clamp((frame - start) / size, 0.0, 1.0));
  };
  const auto x = [&](float v) {
    return share(v, placement.left, placement.x_scale, placement.origin_x, visible.x,
                 visible.width);
  };
  const auto y = [&](float v) {
    return share(v, placement.top, placement.y_scale, placement.origin_y, visible.y,
                 visible.height);
  };
  const PictureBox box{x(detection.x_min), y(detection.y_min), x(detection.x_max),
                       y(detection.y_max)};
  if (!(box.x_max > box.x_min) || !(box.y_max > box.y_min)) return std::nullopt;
  return box;
}

void attach_result(GstBuffer* buffer, const FrameResult& result,
                   const std::vector<std::string>& labels) {
  GstCustomMeta* meta = gst_buffer_add_custom_meta(buffer, kResultMeta);
  GstStructure* structure = gst_custom_meta_get_structure(meta);
  gst_structure_set(structure, "inference", G_TYPE_STRING, result.ran ? "run" : "skipped", "model",
                    G_TYPE_STRING, result.model.c_str(), nullptr);
  if (!result.ran) return;
  if (!result.results.classifications.empty()) {
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_LIST);
    for (const Classification& answer : result.results.classifications) {
      GstStructure* item =
          gst_structure_new("classification", "attribute", G_TYPE_STRING, answer.attribute.c_str(),
                            "label_id", G_TYPE_INT, answer.label_id, "confidence", G_TYPE_DOUBLE,
                            static_cast<double>(answer.confidence), nullptr);
      if (!answer.label.empty())
        gst_structure_set(item, "label", G_TYPE_STRING, answer.label.c_str(), nullptr);
      append_structure(&list, item);
    }
    gst_structure_take_value(structure, "classifications", &list);
  }
  if (!result.results.tensors.empty()) {
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_LIST);
    for (const NamedTensor& tensor : result.results.tensors)
      append_structure(&list, tensor_structure(tensor));
    gst_structure_take_value(structure, "tensors", &list);
  }
  attach_regions(buffer, result, labels);
}

std::vector<RegionView> read_regions(GstBuffer* buffer, int width, int height) {
  std::vector<RegionView> regions;
  gpointer state = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
             buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
    auto* roi = reinterpret_cast<GstVideoRegionOfInterestMeta*>(meta);
    RegionView view;
    const auto limited = [](guint value) {
      return static_cast<int>(std::min<guint>(value, G_MAXINT / 4));
    };
    view.x = limited(roi->x);
    view.y = limited(roi->y);
    view.width = limited(roi->w);
    view.height = limited(roi->h);
    view.id = roi->id;
    view.parent_id = roi->parent_id;
    if (const char* type = g_quark_to_string(roi->roi_type)) view.roi_type = type;
    if (width > 0 && height > 0)
      view.box = {static_cast<float>(view.x) / static_cast<float>(width),
                  static_cast<float>(view.y) / static_cast<float>(height),
                  static_cast<float>(view.x + view.width) / static_cast<float>(width),
                  static_cast<float>(view.y + view.height) / static_cast<float>(height)};
    if (const GstStructure* detection =
            gst_video_region_of_interest_meta_get_param(roi, "detection")) {
      gdouble x_min = 0, x_max = 0, y_min = 0, y_max = 0, confidence = 0;
      gint label_id = 0;
      view.has_detection = true;
      if (gst_structure_get(detection, "x_min", G_TYPE_DOUBLE, &x_min, "x_max", G_TYPE_DOUBLE,
                            &x_max, "y_min", G_TYPE_DOUBLE, &y_min, "y_max", G_TYPE_DOUBLE, &y_max,
                            nullptr))
        view.box = {static_cast<float>(x_min), static_cast<float>(y_min), static_cast<float>(x_max),
                    static_cast<float>(y_max)};
      if (gst_structure_get_double(detection, "confidence", &confidence))
        view.confidence = confidence;
      if (gst_structure_get_int(detection, "label_id", &label_id)) view.label_id = label_id;
      if (const char* label = gst_structure_get_string(detection, "label")) view.label = label;
      if (view.label.empty() && view.label_id && view.roi_type != std::to_string(*view.label_id))
        view.label = view.roi_type;
    } else {
      view.label = view.roi_type;
    }
    regions.push_back(std::move(view));
  }
  return regions;
}

std::vector<ResultView> read_results(GstBuffer* buffer) {
  std::vector<ResultView> results;
  const GstMetaInfo* info = gst_meta_get_info(kResultMeta);
  if (info == nullptr) return results;
  gpointer state = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta_filtered(buffer, &state, info->api)) {
    const GstStructure* structure =
        gst_custom_meta_get_structure(reinterpret_cast<GstCustomMeta*>(meta));
    ResultView view;
    view.ran = g_strcmp0(gst_structure_get_string(structure, "inference"), "run") == 0;
    if (const char* model = gst_structure_get_string(structure, "model")) view.model = model;
    const GValue* list = gst_structure_get_value(structure, "classifications");
    for (guint i = 0; list != nullptr && i < gst_value_list_get_size(list); ++i) {
      const GstStructure* item = gst_value_get_structure(gst_value_list_get_value(list, i));
      Classification answer;
      gdouble confidence = 0;
      if (const char* name = gst_structure_get_string(item, "attribute")) answer.attribute = name;
      if (const char* label = gst_structure_get_string(item, "label")) answer.label = label;
      gst_structure_get_int(item, "label_id", &answer.label_id);
      if (gst_structure_get_double(item, "confidence", &confidence))
        answer.confidence = static_cast<float>(confidence);
      view.classifications.push_back(std::move(answer));
    }
    list = gst_structure_get_value(structure, "tensors");
    for (guint i = 0; list != nullptr && i < gst_value_list_get_size(list); ++i) {
      const GstStructure* item = gst_value_get_structure(gst_value_list_get_value(list, i));
      ResultView::TensorView tensor;
      if (const char* name = gst_structure_get_string(item, "name")) tensor.name = name;
      if (const char* type = gst_structure_get_string(item, "type")) tensor.type = type;
      if (const GValue* dims = gst_structure_get_value(item, "dims"))
        for (guint d = 0; d < gst_value_array_get_size(dims); ++d)
          tensor.dims.push_back(g_value_get_int(gst_value_array_get_value(dims, d)));
      view.tensors.push_back(std::move(tensor));
    }
    results.push_back(std::move(view));
  }
  return results;
}

}  // namespace clinfer
