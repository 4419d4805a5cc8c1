// Reads a network's output tensors in C++, in a program of its own.
//
//   c++ -std=c++17 read_tensors.cpp -o read_tensors $(pkg-config --cflags --libs gstreamer-1.0)
//   ./read_tensors 'videotestsrc num-buffers=3 ! clinfer model=m.xml post-process=none ! fakesink name=sink'
//
// All results of a frame are in one structure on its buffer, the custom meta "ClinferResult"; docs/metadata.md lists its
// fields. Nothing of clinfer's own is needed to build this.
#include <gst/gst.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace {

// Calls visit(structure) for each item of a list field.
template <typename Visit>
void for_each_item(const GstStructure* structure, const char* field, Visit&& visit) {
  const GValue* list = gst_structure_get_value(structure, field);
  if (list == nullptr || !GST_VALUE_HOLDS_LIST(list)) return;
  for (guint i = 0; i < gst_value_list_get_size(list); ++i)
    visit(gst_value_get_structure(gst_value_list_get_value(list, i)));
}

std::vector<guint> dimensions_of(const GstStructure* tensor) {
  std::vector<guint> dims;
  const GValue* array = gst_structure_get_value(tensor, "dims");
  for (guint i = 0; array != nullptr && i < gst_value_array_get_size(array); ++i)
    dims.push_back(g_value_get_uint(gst_value_array_get_value(array, i)));
  return dims;
}

// The values of a tensor of 32-bit floats (`precision` 10); empty for other types.
std::vector<float> floats_of(const GstStructure* tensor) {
  gint precision = 0;
  GVariant* data = nullptr;
  std::vector<float> values;
  if (!gst_structure_get(tensor, "precision", G_TYPE_INT, &precision, "data_buffer", G_TYPE_VARIANT,
                         &data, nullptr))
    return values;
  if (precision == 10) {
    values.resize(g_variant_get_size(data) / sizeof(float));
    std::memcpy(values.data(), g_variant_get_data(data), values.size() * sizeof(float));
  }
  g_variant_unref(data);
  return values;
}

void show_tensor(const GstStructure* tensor) {
  // Decoded results have a field `type`; raw tensors do not.
  if (gst_structure_has_field(tensor, "type") || !gst_structure_has_field(tensor, "dims")) return;
  std::printf("%s [", gst_structure_get_string(tensor, "tensor_name"));
  for (const guint dimension : dimensions_of(tensor)) std::printf(" %u", dimension);
  std::printf(" ]:");
  const std::vector<float> values = floats_of(tensor);
  for (size_t i = 0; i < values.size() && i < 4; ++i)
    std::printf(" %g", static_cast<double>(values[i]));
  std::printf("%s\n", values.size() > 4 ? " ..." : "");
}

GstPadProbeReturn on_frame(GstPad*, GstPadProbeInfo* info, gpointer) {
  GstCustomMeta* meta =
      gst_buffer_get_custom_meta(GST_PAD_PROBE_INFO_BUFFER(info), "ClinferResult");
  if (meta == nullptr) return GST_PAD_PROBE_OK;
  const GstStructure* result = gst_custom_meta_get_structure(meta);
  // Of the whole frame, by each element that it passed, then of each region of it.
  for (const char* part : {"inferences", "regions"})
    for_each_item(result, part,
                  [](const GstStructure* said) { for_each_item(said, "parameters", show_tensor); });
  return GST_PAD_PROBE_OK;
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  if (argc != 2) {
    std::fprintf(stderr,
                 "usage: %s 'SOURCE ! clinfer model=M.xml post-process=none ! SINK name=sink'\n",
                 argv[0]);
    return 2;
  }
  GError* error = nullptr;
  const std::unique_ptr<GstElement, decltype(&gst_object_unref)> pipeline(
      gst_parse_launch(argv[1], &error), gst_object_unref);
  GstElement* sink = pipeline != nullptr && GST_IS_BIN(pipeline.get())
                         ? gst_bin_get_by_name(GST_BIN(pipeline.get()), "sink")
                         : nullptr;
  if (error != nullptr || sink == nullptr) {
    std::fprintf(stderr, "%s\n",
                 error != nullptr ? error->message : "the line has no element with name=sink");
    return 2;
  }
  GstPad* pad = gst_element_get_static_pad(sink, "sink");
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, nullptr, nullptr);
  gst_object_unref(pad);
  gst_object_unref(sink);
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  GstBus* bus = gst_element_get_bus(pipeline.get());
  GstMessage* message = gst_bus_timed_pop_filtered(
      bus, GST_CLOCK_TIME_NONE, static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  const bool failed = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
  if (failed) {
    gst_message_parse_error(message, &error, nullptr);
    std::fprintf(stderr, "%s\n", error->message);
    g_error_free(error);
  }
  gst_message_unref(message);
  gst_object_unref(bus);
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  return failed ? 1 : 0;
}
