// Writes views as GstStructures and reads them.
#include "gst/meta/parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace clinfer {
namespace {

constexpr TypeName kTypes[] = {
    {"f32", "FP32", 10, 4}, {"f16", "FP16", 11, 2}, {"f64", "FP64", 13, 8},
    {"i8", "I8", 50, 1},    {"u8", "U8", 40, 1},    {"i16", "I16", 30, 2},
    {"u16", "U16", 60, 2},  {"i32", "I32", 70, 4},  {"u32", "U32", 74, 4},
    {"i64", "I64", 72, 8},  {"u64", "U64", 73, 8},  {"boolean", "BOOL", 41, 1},
};

// Values of the field `type`, which tells what a structure other than `detection` is. Raw tensors
// have none.
constexpr char kClassification[] = "classification_result";
constexpr char kText[] = "text";
constexpr char kEmbedding[] = "embedding";
constexpr char kZones[] = "zones";
constexpr std::pair<MapKind, const char*> kMaps[] = {{MapKind::classes, "segmentation"},
                                                     {MapKind::depth, "depth"},
                                                     {MapKind::saliency, "saliency"},
                                                     {MapKind::anomaly, "anomaly"}};

bool is_among(std::string_view name, const Names& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Makes a valid name of a structure: letters, digits and /-_.:+ only, starting with a letter.
// "detection" is the object's own.
std::string structure_name(const std::string& name) {
  std::string valid;
  for (const char c : name)
    valid += g_ascii_isalnum(c) || (c != '\0' && std::strchr("/-_.:+", c) != nullptr) ? c : '_';
  if (valid.empty() || !g_ascii_isalpha(valid[0])) valid = "output_" + valid;
  if (valid == "detection" || valid == "object_id") valid += "_output";
  return valid;
}

Structure named(const std::string& name) {
  return Structure(gst_structure_new_empty(structure_name(name).c_str()));
}

void set_some(GstStructure* s, Field field, const std::string& text) {
  if (!text.empty()) set(s, field, text);
}

// Sets a GstValueArray of `count` values of type GType; fill(GValue*, i) sets each.
template <typename Fill>
void set_array(GstStructure* s, Field field, GType type, size_t count, Fill&& fill) {
  GValue array = G_VALUE_INIT;
  g_value_init(&array, GST_TYPE_ARRAY);
  for (size_t i = 0; i < count; ++i) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, type);
    fill(&value, i);
    gst_value_array_append_and_take_value(&array, &value);
  }
  take_value(s, field, &array);
}

void set_texts(GstStructure* s, Field field, const std::vector<std::string>& texts) {
  set_array(s, field, G_TYPE_STRING, texts.size(),
            [&](GValue* value, size_t i) { g_value_set_string(value, texts[i].c_str()); });
}

template <typename Visit>
void for_each_value(const GstStructure* s, Field field, Visit&& visit) {
  const GValue* array = value_of(s, field);
  if (array == nullptr || !GST_VALUE_HOLDS_ARRAY(array)) return;
  for (guint i = 0; i < gst_value_array_get_size(array); ++i)
    visit(gst_value_array_get_value(array, i));
}

std::vector<float> numbers(const GstStructure* s, Field field) {
  std::vector<float> list;
  for_each_value(s, field, [&](const GValue* value) {
    list.push_back(G_VALUE_HOLDS_DOUBLE(value)  ? static_cast<float>(g_value_get_double(value))
                   : G_VALUE_HOLDS_FLOAT(value) ? g_value_get_float(value)
                                                : 0.0f);
  });
  return list;
}

std::vector<std::string> texts(const GstStructure* s, Field field) {
  std::vector<std::string> list;
  for_each_value(s, field, [&](const GValue* value) {
    const char* text = G_VALUE_HOLDS_STRING(value) ? g_value_get_string(value) : nullptr;
    list.emplace_back(text != nullptr ? text : "");
  });
  return list;
}

std::vector<int> integers(const GstStructure* s, Field field) {
  std::vector<int> list;
  for_each_value(s, field, [&](const GValue* value) {
    list.push_back(G_VALUE_HOLDS_UINT(value)
                       ? static_cast<int>(std::min<guint>(g_value_get_uint(value), G_MAXINT))
                   : G_VALUE_HOLDS_INT(value) ? g_value_get_int(value)
                                              : 0);
  });
  return list;
}

// ---- results of an earlier frame ----------------------------------------------------------------

void set_held(GstStructure* s, bool held) {
  if (held) set(s, "held"_f, true);
}

bool is_held(const GstStructure* s) { return is_set(s, "held"_f); }

// ---- data with its type and dimensions ----------------------------------------------------------

void set_data(GstStructure* s, const char* type, const std::vector<int>& dims, const Bytes& data) {
  if (const TypeName* known = type_named(type)) set(s, "precision"_f, known->number);
  set_array(s, "dims"_f, G_TYPE_UINT, dims.size(), [&](GValue* value, size_t i) {
    g_value_set_uint(value, static_cast<guint>(std::max(dims[i], 0)));
  });
  if (data == nullptr) return;
  GVariant* variant = g_variant_new_from_bytes(G_VARIANT_TYPE_BYTESTRING, data.get(), TRUE);
  g_variant_ref_sink(variant);
  gst_structure_set(s, "data_buffer", G_TYPE_VARIANT, variant, nullptr);
  g_variant_unref(variant);
}

Bytes read_data(const GstStructure* s) {
  const GValue* value = value_of(s, "data_buffer"_f);
  if (value == nullptr || !G_VALUE_HOLDS_VARIANT(value)) return nullptr;
  GVariant* variant = g_value_get_variant(value);
  if (variant == nullptr || !g_variant_is_of_type(variant, G_VARIANT_TYPE_BYTESTRING))
    return nullptr;
  return Bytes(g_variant_get_data_as_bytes(variant), g_bytes_unref);
}

TensorView read_tensor(const GstStructure* s) {
  TensorView view;
  view.name = text_of(s, "tensor_name"_f);
  if (view.name.empty()) view.name = text_of(s, "layer_name"_f);
  if (view.name.empty()) view.name = gst_structure_get_name(s);
  view.model = text_of(s, "model_name"_f);
  view.dims = integers(s, "dims"_f);
  const int precision = integer(s, "precision"_f, -1);
  for (const TypeName& type : kTypes)
    if (type.number == precision) view.type = type.engine;
  view.data = read_data(s);
  view.held = is_held(s);
  return view;
}

Structure tensor_structure(const TensorView& tensor) {
  Structure s = named(tensor.name);
  set(s.get(), "tensor_name"_f, tensor.name);
  set(s.get(), "layer_name"_f, tensor.name);
  set(s.get(), "model_name"_f, tensor.model);
  set_data(s.get(), tensor.type.c_str(), tensor.dims, tensor.data);
  set_held(s.get(), tensor.held);
  return s;
}

void set_grid(GstStructure* s, const GridView& grid, const char* type) {
  set_data(s, type, {grid.rows, grid.columns}, grid.values);
  set(s, "x_min"_f, grid.area.x_min);
  set(s, "y_min"_f, grid.area.y_min);
  set(s, "x_max"_f, grid.area.x_max);
  set(s, "y_max"_f, grid.area.y_max);
}

// Returns false if the data is not as large as the grid.
bool read_grid(const GstStructure* s, size_t bytes, GridView& grid) {
  const std::vector<int> dims = integers(s, "dims"_f);
  grid.values = read_data(s);
  if (dims.size() != 2 || dims[0] <= 0 || dims[1] <= 0 || grid.values == nullptr) return false;
  grid.rows = dims[0];
  grid.columns = dims[1];
  grid.area = {static_cast<float>(number(s, "x_min"_f)), static_cast<float>(number(s, "y_min"_f)),
               static_cast<float>(number(s, "x_max"_f)), static_cast<float>(number(s, "y_max"_f))};
  const size_t cells = static_cast<size_t>(grid.rows) * static_cast<size_t>(grid.columns);
  return g_bytes_get_size(grid.values.get()) / bytes >= cells;
}

// ---- one structure each -------------------------------------------------------------------------

Structure classification_structure(const ClassificationView& answer) {
  Structure s = named(answer.attribute);
  set(s.get(), "type"_f, kClassification);
  set(s.get(), "attribute_name"_f, answer.attribute);
  set(s.get(), "layer_name"_f, answer.attribute);
  set(s.get(), "model_name"_f, answer.model);
  // Writes the number of a class without a name, since readers look for a label. Names may be
  // numbers, too.
  set(s.get(), "label"_f, answer.label.empty() ? std::to_string(answer.label_id) : answer.label);
  if (answer.label.empty()) set(s.get(), "unnamed"_f, true);
  set(s.get(), "label_id"_f, answer.label_id);
  set(s.get(), "confidence"_f, answer.confidence);
  set_held(s.get(), answer.held);
  return s;
}

ClassificationView read_classification(const GstStructure* s) {
  ClassificationView view;
  view.attribute = text_of(s, "attribute_name"_f);
  if (view.attribute.empty()) view.attribute = gst_structure_get_name(s);
  view.label = text_of(s, "label"_f);
  view.model = text_of(s, "model_name"_f);
  view.confidence = static_cast<float>(number(s, "confidence"_f));
  view.label_id = integer(s, "label_id"_f);
  if (is_set(s, "unnamed"_f)) view.label.clear();
  view.held = is_held(s);
  return view;
}

Structure text_structure(const TextView& text) {
  Structure s = named(text.attribute);
  set(s.get(), "type"_f, kText);
  set(s.get(), "attribute_name"_f, text.attribute);
  set(s.get(), "model_name"_f, text.model);
  set(s.get(), "label"_f, text.text);
  set(s.get(), "confidence"_f, text.confidence);
  set_held(s.get(), text.held);
  return s;
}

TextView read_text(const GstStructure* s) {
  TextView view;
  view.attribute = text_of(s, "attribute_name"_f);
  view.text = text_of(s, "label"_f);
  view.model = text_of(s, "model_name"_f);
  view.confidence = static_cast<float>(number(s, "confidence"_f));
  view.held = is_held(s);
  return view;
}

Structure map_structure(const MapView& map) {
  Structure s = named(map.name);
  for (const auto& [kind, name] : kMaps)
    if (kind == map.kind) set(s.get(), "type"_f, name);
  set(s.get(), "tensor_name"_f, map.name);
  set(s.get(), "model_name"_f, map.model);
  set_grid(s.get(), map, map.kind == MapKind::classes ? "u16" : "f32");
  if (!map.labels.empty()) set_texts(s.get(), "labels"_f, map.labels);
  return s;
}

Structure detection_structure(const RegionView& region, int width, int height) {
  Structure s(gst_structure_new_empty(kDetection));
  set(s.get(), "x_min"_f, region.box.x_min);
  set(s.get(), "x_max"_f, region.box.x_max);
  set(s.get(), "y_min"_f, region.box.y_min);
  set(s.get(), "y_max"_f, region.box.y_max);
  set(s.get(), "confidence"_f, region.confidence);
  if (region.label_id) set(s.get(), "label_id"_f, *region.label_id);
  set_some(s.get(), "label"_f, region.label);
  set_some(s.get(), "model_name"_f, region.model);
  set_held(s.get(), region.held);
  if (region.corners) {
    const OrientedBox box = oriented_box(*region.corners, width, height);
    set(s.get(), "x_center"_f, box.x_center);
    set(s.get(), "y_center"_f, box.y_center);
    set(s.get(), "width"_f, box.width);
    set(s.get(), "height"_f, box.height);
    set(s.get(), "rotation"_f, box.rotation);
    for (const bool x : {true, false})
      set_array(s.get(), x ? "corners_x"_f : "corners_y"_f, G_TYPE_DOUBLE, 4,
                [&](GValue* value, size_t i) {
                  const Point& corner = (*region.corners)[i];
                  g_value_set_double(value, static_cast<double>(x ? corner.x : corner.y));
                });
  }
  return s;
}

void read_detection(const GstStructure* s, RegionView& region) {
  region.has_detection = true;
  if (has(s, "x_min"_f, G_TYPE_DOUBLE) && has(s, "x_max"_f, G_TYPE_DOUBLE) &&
      has(s, "y_min"_f, G_TYPE_DOUBLE) && has(s, "y_max"_f, G_TYPE_DOUBLE))
    region.box = {
        static_cast<float>(number(s, "x_min"_f)), static_cast<float>(number(s, "y_min"_f)),
        static_cast<float>(number(s, "x_max"_f)), static_cast<float>(number(s, "y_max"_f))};
  region.confidence = number(s, "confidence"_f);
  if (has(s, "label_id"_f, G_TYPE_INT)) region.label_id = integer(s, "label_id"_f);
  region.held = is_held(s);
  region.label = text_of(s, "label"_f);
  region.model = text_of(s, "model_name"_f);
  if (region.label.empty() && region.label_id &&
      region.roi_type != std::to_string(*region.label_id))
    region.label = region.roi_type;
  const std::vector<float> xs = numbers(s, "corners_x"_f), ys = numbers(s, "corners_y"_f);
  if (xs.size() != 4 || ys.size() != 4) return;
  region.corners.emplace();
  for (size_t i = 0; i < 4; ++i) (*region.corners)[i] = {xs[i], ys[i]};
}

constexpr Skeleton kSkeletons[] = {Skeleton::coco17, Skeleton::body25, Skeleton::body18,
                                   Skeleton::face5,  Skeleton::hand21, Skeleton::body33};

template <typename P>
void set_points(GstStructure* s, const std::vector<P>& points) {
  for (const bool x : {true, false})
    set_array(s, x ? "x"_f : "y"_f, G_TYPE_DOUBLE, points.size(), [&](GValue* value, size_t i) {
      g_value_set_double(value, static_cast<double>(x ? points[i].x : points[i].y));
    });
}

// Writes names and bones with the points, so that a reader needs no table of its own.
void set_skeleton(GstStructure* s, Skeleton skeleton) {
  const SkeletonFacts& facts = skeleton_of(skeleton);
  if (facts.points.empty()) return;
  set(s, "skeleton"_f, facts.name);
  set_texts(s, "point_names"_f, facts.points);
  set_array(s, "point_connections"_f, G_TYPE_UINT, facts.connections.size() * 2,
            [&](GValue* value, size_t i) {
              const auto& bone = facts.connections[i / 2];
              g_value_set_uint(value, static_cast<guint>(i % 2 == 0 ? bone.first : bone.second));
            });
}

void read_points(const GstStructure* s, bool with_confidence, RegionView& region) {
  const std::vector<float> xs = numbers(s, "x"_f), ys = numbers(s, "y"_f),
                           confidences = numbers(s, "confidence"_f);
  const std::string skeleton = text_of(s, "skeleton"_f);
  for (const Skeleton known : kSkeletons)
    if (skeleton == skeleton_of(known).name) region.skeleton = known;
  for (size_t i = 0; i < std::min(xs.size(), ys.size()); ++i) {
    if (with_confidence)
      region.keypoints.push_back({xs[i], ys[i], i < confidences.size() ? confidences[i] : 0});
    else
      region.landmarks.push_back({xs[i], ys[i]});
  }
}

}  // namespace

const TypeName* type_named(const std::string& engine_name) {
  for (const TypeName& type : kTypes)
    if (engine_name == type.engine) return &type;
  return nullptr;
}

std::string text_of(const GstStructure* structure, Field field) {
  const GValue* value = value_of(structure, field);
  const char* text =
      value != nullptr && G_VALUE_HOLDS_STRING(value) ? g_value_get_string(value) : nullptr;
  return text != nullptr ? text : "";
}

void set_list(GstStructure* structure, Field field, std::vector<Structure> items) {
  if (items.empty()) return;
  GValue list = G_VALUE_INIT;
  g_value_init(&list, GST_TYPE_LIST);
  for (Structure& item : items) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, GST_TYPE_STRUCTURE);
    g_value_take_boxed(&value, item.release());
    gst_value_list_append_and_take_value(&list, &value);
  }
  take_value(structure, field, &list);
}

std::vector<Structure> parameters_of(const Answers& answers, const Names& present) {
  std::vector<Structure> list;
  const auto is_new = [&](const std::string& name) {
    return present.empty() || !is_among(structure_name(name), present);
  };
  for (const ClassificationView& answer : answers.classifications)
    if (is_new(answer.attribute)) list.push_back(classification_structure(answer));
  for (const TextView& text : answers.texts)
    if (is_new(text.attribute)) list.push_back(text_structure(text));
  for (const TensorView& embedding : answers.embeddings) {
    if (!is_new(embedding.name)) continue;
    list.push_back(tensor_structure(embedding));
    set(list.back().get(), "type"_f, kEmbedding);
  }
  for (const MapView& map : answers.maps)
    if (is_new(map.name)) list.push_back(map_structure(map));
  for (const TensorView& tensor : answers.tensors)
    if (is_new(tensor.name)) list.push_back(tensor_structure(tensor));
  return list;
}

std::vector<Structure> parameters_of(const RegionView& region, int width, int height,
                                     const Names& present) {
  std::vector<Structure> list;
  const auto is_new = [&](const char* name) { return !is_among(name, present); };
  if (region.has_detection && is_new(kDetection))
    list.push_back(detection_structure(region, width, height));
  if (region.track_id && is_new("object_id")) {
    list.emplace_back(gst_structure_new_empty("object_id"));
    set(list.back().get(), "id"_f,
        static_cast<int>(std::min<uint64_t>(*region.track_id, std::numeric_limits<int>::max())));
    if (region.predicted) set(list.back().get(), "predicted"_f, true);
  }
  if (!region.zones.empty() && is_new(kZones)) {
    list.push_back(named(kZones));
    set(list.back().get(), "type"_f, kZones);
    set_texts(list.back().get(), "names"_f, region.zones);
  }
  if (!region.keypoints.empty() && is_new(kKeyPoints)) {
    Structure s = named(kKeyPoints);
    set(s.get(), "type"_f, kKeyPoints);
    set_points(s.get(), region.keypoints);
    set_array(s.get(), "confidence"_f, G_TYPE_DOUBLE, region.keypoints.size(),
              [&](GValue* value, size_t i) {
                g_value_set_double(value, static_cast<double>(region.keypoints[i].confidence));
              });
    set_skeleton(s.get(), region.skeleton);
    list.push_back(std::move(s));
  }
  if (!region.landmarks.empty() && is_new(kLandmarks)) {
    Structure s = named(kLandmarks);
    set(s.get(), "type"_f, kLandmarks);
    set_points(s.get(), region.landmarks);
    if (region.keypoints.empty()) set_skeleton(s.get(), region.skeleton);
    list.push_back(std::move(s));
  }
  if (region.mask && is_new(kMask)) {
    Structure s = named(kMask);
    set(s.get(), "type"_f, kMask);
    set_grid(s.get(), *region.mask, "f32");
    set(s.get(), "level"_f, region.mask->level);
    list.push_back(std::move(s));
  }
  for (Structure& s : parameters_of(static_cast<const Answers&>(region), present))
    list.push_back(std::move(s));
  return list;
}

void read_parameter(const GstStructure* parameter, Answers& answers) {
  const std::string type = text_of(parameter, "type"_f);
  if (type == kText) {
    answers.texts.push_back(read_text(parameter));
    return;
  }
  if (type == kEmbedding) {
    answers.embeddings.push_back(read_tensor(parameter));
    return;
  }
  for (const auto& [kind, name] : kMaps) {
    if (type != name) continue;
    MapView map;
    map.kind = kind;
    map.name = text_of(parameter, "tensor_name"_f);
    map.model = text_of(parameter, "model_name"_f);
    map.labels = texts(parameter, "labels"_f);
    if (read_grid(parameter, kind == MapKind::classes ? sizeof(uint16_t) : sizeof(float), map))
      answers.maps.push_back(std::move(map));
    return;
  }
  if (type == kClassification || has(parameter, "label"_f, G_TYPE_STRING) ||
      has(parameter, "label_id"_f, G_TYPE_INT)) {
    answers.classifications.push_back(read_classification(parameter));
    return;
  }
  if (type.empty() && has(parameter, "dims"_f, GST_TYPE_ARRAY))
    answers.tensors.push_back(read_tensor(parameter));
}

void read_parameter(const GstStructure* parameter, RegionView& region) {
  const std::string type = text_of(parameter, "type"_f);
  if (gst_structure_has_name(parameter, kDetection)) {
    read_detection(parameter, region);
  } else if (gst_structure_has_name(parameter, "object_id")) {
    if (const int id = integer(parameter, "id"_f, -1); id >= 0)
      region.track_id = static_cast<uint64_t>(id);
    region.predicted = is_set(parameter, "predicted"_f);
  } else if (type == kKeyPoints || type == kLandmarks) {
    read_points(parameter, type == kKeyPoints, region);
  } else if (type == kZones) {
    region.zones = texts(parameter, "names"_f);
  } else if (type == kMask) {
    MaskView mask;
    mask.level = static_cast<float>(number(parameter, "level"_f, 0.5));
    if (read_grid(parameter, sizeof(float), mask)) region.mask = std::move(mask);
  } else {
    read_parameter(parameter, static_cast<Answers&>(region));
  }
}

}  // namespace clinfer
