// Results on buffers, written and read.
#include "gst/meta/meta.h"

#include <algorithm>
#include <cmath>

#include "engine/heads/labels.h"

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

GstStructure* tensor_structure(const NamedTensor& tensor, const std::string& model) {
  GValue dims = G_VALUE_INIT;
  g_value_init(&dims, GST_TYPE_ARRAY);
  for (int64_t dimension : tensor.value.shape()) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, G_TYPE_INT);
    g_value_set_int(&value, static_cast<int>(dimension));
    gst_value_array_append_and_take_value(&dims, &value);
  }
  GBytes* data = g_bytes_new(tensor.value.raw(), tensor.value.bytes());
  GstStructure* structure =
      gst_structure_new("tensor", "name", G_TYPE_STRING, tensor.name.c_str(), "type", G_TYPE_STRING,
                        std::string(name_of(tensor.value.type())).c_str(), "data", G_TYPE_BYTES,
                        data, "model", G_TYPE_STRING, model.c_str(), nullptr);
  g_bytes_unref(data);
  gst_structure_take_value(structure, "dims", &dims);
  return structure;
}

GstStructure* classification_structure(const Classification& answer, const std::string& model) {
  GstStructure* structure = gst_structure_new(
      "classification", "attribute", G_TYPE_STRING, answer.attribute.c_str(), "label_id",
      G_TYPE_INT, answer.label_id, "confidence", G_TYPE_DOUBLE,
      static_cast<double>(answer.confidence), "model", G_TYPE_STRING, model.c_str(), nullptr);
  if (!answer.label.empty())
    gst_structure_set(structure, "label", G_TYPE_STRING, answer.label.c_str(), nullptr);
  return structure;
}

std::string text_of(const GstStructure* structure, const char* field) {
  const char* text = gst_structure_get_string(structure, field);
  return text != nullptr ? text : "";
}

ClassificationView read_classification(const GstStructure* structure) {
  ClassificationView view;
  gdouble confidence = 0;
  view.attribute = text_of(structure, "attribute");
  view.label = text_of(structure, "label");
  view.model = text_of(structure, "model");
  gst_structure_get_int(structure, "label_id", &view.label_id);
  if (gst_structure_get_double(structure, "confidence", &confidence))
    view.confidence = static_cast<float>(confidence);
  return view;
}

TensorView read_tensor(const GstStructure* structure) {
  TensorView view;
  view.name = text_of(structure, "name");
  view.type = text_of(structure, "type");
  view.model = text_of(structure, "model");
  const GValue* dims = gst_structure_get_value(structure, "dims");
  if (dims == nullptr || !GST_VALUE_HOLDS_ARRAY(dims)) return view;
  for (guint d = 0; d < gst_value_array_get_size(dims); ++d) {
    const GValue* value = gst_value_array_get_value(dims, d);
    if (G_VALUE_HOLDS_INT(value)) view.dims.push_back(g_value_get_int(value));
  }
  return view;
}

// Calls visit(nth, meta) for each region of interest of a buffer.
template <typename Visit>
void for_each_region(GstBuffer* buffer, Visit&& visit) {
  gpointer state = nullptr;
  size_t nth = 0;
  while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
             buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE))
    visit(nth++, reinterpret_cast<GstVideoRegionOfInterestMeta*>(meta));
}

GstVideoRegionOfInterestMeta* region_at(GstBuffer* buffer, size_t index) {
  GstVideoRegionOfInterestMeta* found = nullptr;
  for_each_region(buffer, [&](size_t nth, GstVideoRegionOfInterestMeta* roi) {
    if (nth == index) found = roi;
  });
  return found;
}

// The label of a region: of its detection, else its type.
std::string region_label(GstVideoRegionOfInterestMeta* roi) {
  std::string label;
  if (const GstStructure* detection = gst_video_region_of_interest_meta_get_param(roi, "detection"))
    label = text_of(detection, "label");
  if (const char* type = g_quark_to_string(roi->roi_type); label.empty() && type != nullptr)
    label = type;
  return label;
}

void attach_objects(GstBuffer* buffer, const PartResult& part, const Rect& visible,
                    const std::vector<std::string>& labels, int parent) {
#ifdef CLINFER_HAVE_ANALYTICS
  GstAnalyticsRelationMeta* analytics = gst_buffer_get_analytics_relation_meta(buffer);
  if (analytics == nullptr) analytics = gst_buffer_add_analytics_relation_meta(buffer);
#endif
  // Ids count on from what other elements left; 0 means none.
  int id =
      static_cast<int>(gst_buffer_get_n_meta(buffer, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE));
  for (const Detection& detection : part.results.detections) {
    const auto box = to_picture(detection, part.placement, visible);
    if (!box) continue;
    const auto pixel = [](float share, int size) {
      return static_cast<guint>(std::lround(static_cast<double>(share) * size));
    };
    const guint x = pixel(box->x_min, visible.width);
    const guint y = pixel(box->y_min, visible.height);
    const guint width = pixel(box->x_max, visible.width) - x;
    const guint height = pixel(box->y_max, visible.height) - y;
    const std::string label = label_of(labels, detection.label_id);
    const std::string type = label.empty() ? std::to_string(detection.label_id) : label;
    GstVideoRegionOfInterestMeta* roi =
        gst_buffer_add_video_region_of_interest_meta(buffer, type.c_str(), x, y, width, height);
    roi->id = ++id;
    roi->parent_id = parent;
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
  for (const Classification& answer : part.results.classifications) {
    const std::string name = answer.label.empty() ? std::to_string(answer.label_id) : answer.label;
    GstAnalyticsClsMtd classified;
    gst_analytics_relation_meta_add_one_cls_mtd(analytics, answer.confidence,
                                                g_quark_from_string(name.c_str()), &classified);
  }
#endif
}

// Appends to the list `field` of a structure.
void append_to_list(GstStructure* structure, const char* field,
                    const std::vector<GstStructure*>& items) {
  if (items.empty()) return;
  GValue list = G_VALUE_INIT;
  g_value_init(&list, GST_TYPE_LIST);
  for (GstStructure* item : items) append_structure(&list, item);
  gst_structure_take_value(structure, field, &list);
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

std::string_view name_of(Outcome outcome) {
  static constexpr std::string_view kNames[] = {"run", "skipped", "late"};
  return kNames[static_cast<size_t>(outcome)];
}

std::vector<InferenceRegion> regions_to_infer(GstBuffer* buffer, const Rect& visible,
                                              const std::string& object_class) {
  const std::vector<std::string> wanted = parse_labels(object_class);
  std::vector<InferenceRegion> regions;
  for_each_region(buffer, [&](size_t nth, GstVideoRegionOfInterestMeta* roi) {
    if (!wanted.empty() &&
        std::find(wanted.begin(), wanted.end(), region_label(roi)) == wanted.end())
      return;
    const auto limit = [](uint64_t value, int size) {
      return static_cast<int>(std::min<uint64_t>(value, static_cast<uint64_t>(size)));
    };
    const int left = limit(roi->x, visible.width), top = limit(roi->y, visible.height);
    const int right = limit(uint64_t{roi->x} + roi->w, visible.width);
    const int bottom = limit(uint64_t{roi->y} + roi->h, visible.height);
    if (right > left && bottom > top)
      regions.push_back({nth, {visible.x + left, visible.y + top, right - left, bottom - top}});
  });
  return regions;
}

void attach_result(GstBuffer* buffer, const FrameResult& result,
                   const std::vector<std::string>& labels) {
  GstCustomMeta* meta = gst_buffer_add_custom_meta(buffer, kResultMeta);
  GstStructure* structure = gst_custom_meta_get_structure(meta);
  gst_structure_set(structure, "inference", G_TYPE_STRING,
                    std::string(name_of(result.outcome)).c_str(), "model", G_TYPE_STRING,
                    result.model.c_str(), nullptr);
  for (const PartResult& part : result.parts) {
    GstVideoRegionOfInterestMeta* roi = part.region ? region_at(buffer, *part.region) : nullptr;
    if (part.region && roi == nullptr) continue;  // the copy of the buffer lost it
    std::vector<GstStructure*> classifications, tensors;
    for (const Classification& answer : part.results.classifications)
      classifications.push_back(classification_structure(answer, result.model));
    for (const NamedTensor& tensor : part.results.tensors)
      tensors.push_back(tensor_structure(tensor, result.model));
    if (roi == nullptr) {
      append_to_list(structure, "classifications", classifications);
      append_to_list(structure, "tensors", tensors);
    } else {
      for (const auto* parameters : {&classifications, &tensors})
        for (GstStructure* parameter : *parameters)
          gst_video_region_of_interest_meta_add_param(roi, parameter);
    }
    attach_objects(buffer, part, result.visible, labels, roi != nullptr ? roi->id : 0);
  }
}

std::vector<RegionView> read_regions(GstBuffer* buffer, int width, int height) {
  std::vector<RegionView> regions;
  for_each_region(buffer, [&](size_t, GstVideoRegionOfInterestMeta* roi) {
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
    for (const GList* item = roi->params; item != nullptr; item = item->next) {
      const auto* parameter = static_cast<const GstStructure*>(item->data);
      if (gst_structure_has_name(parameter, "classification"))
        view.classifications.push_back(read_classification(parameter));
      else if (gst_structure_has_name(parameter, "tensor"))
        view.tensors.push_back(read_tensor(parameter));
    }
    regions.push_back(std::move(view));
  });
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
    const std::string inference = text_of(structure, "inference");
    for (const Outcome outcome : {Outcome::run, Outcome::skipped, Outcome::late})
      if (inference == name_of(outcome)) view.outcome = outcome;
    view.model = text_of(structure, "model");
    const GValue* list = gst_structure_get_value(structure, "classifications");
    for (guint i = 0; list != nullptr && i < gst_value_list_get_size(list); ++i)
      view.classifications.push_back(
          read_classification(gst_value_get_structure(gst_value_list_get_value(list, i))));
    list = gst_structure_get_value(structure, "tensors");
    for (guint i = 0; list != nullptr && i < gst_value_list_get_size(list); ++i)
      view.tensors.push_back(
          read_tensor(gst_value_get_structure(gst_value_list_get_value(list, i))));
    results.push_back(std::move(view));
  }
  return results;
}

}  // namespace clinfer
