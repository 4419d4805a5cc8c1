// Views as GstStructures, with the names and layout of DL Streamer's parameters of a region, so
// that applications that read those can read these. docs/metadata.md lists every field.
#pragma once

#include <gst/gst.h>

#include <string>
#include <vector>

#include "gst/base/handle.h"
#include "gst/meta/fields.h"
#include "gst/meta/views.h"

namespace clinfer {

using Structure = Handle<GstStructure>;

// An element type in the names of the engine, of DL Streamer's JSON and of its structures.
struct TypeName {
  const char* engine;  // "f32"
  const char* json;    // "FP32"
  int number;          // in the structures' field `precision`
  size_t bytes;        // bytes of one value
};
// Finds a type by the engine's name; returns null for an unknown one.
const TypeName* type_named(const std::string& engine_name);

// A list of structures' names.
using Names = std::vector<std::string>;

// The names of parameters that a region has at most once.
inline constexpr char kDetection[] = "detection";
inline constexpr char kMask[] = "mask";
inline constexpr char kKeyPoints[] = "keypoints";
inline constexpr char kLandmarks[] = "landmarks";

// Returns the parameters of a region, `detection` first, without those whose names are in
// `present`. `width`, `height`: of the picture, in pixels.
std::vector<Structure> parameters_of(const RegionView& region, int width, int height,
                                     const Names& present = {});
std::vector<Structure> parameters_of(const Answers& answers, const Names& present = {});

// Add the contents of a parameter, ours or another element's. Sizes and counts in it are checked
// against its data; contradictory contents are left out.
void read_parameter(const GstStructure* parameter, RegionView& region);
void read_parameter(const GstStructure* parameter, Answers& answers);

// Returns "" if the field is missing or no string.
std::string text_of(const GstStructure* structure, Field field);

// Append to the GstValueList `field`, whose items are structures, and walk it.
void set_list(GstStructure* structure, Field field, std::vector<Structure> items);
template <typename Visit>
void for_each_item(const GstStructure* structure, Field field, Visit&& visit) {
  const GValue* list = value_of(structure, field);
  if (list == nullptr || !GST_VALUE_HOLDS_LIST(list)) return;
  for (guint i = 0; i < gst_value_list_get_size(list); ++i) {
    const GValue* item = gst_value_list_get_value(list, i);
    if (GST_VALUE_HOLDS_STRUCTURE(item)) visit(gst_value_get_structure(item));
  }
}

}  // namespace clinfer
