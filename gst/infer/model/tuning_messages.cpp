// Makes texts and structures about kernel tuning.
#include "gst/infer/model/tuning_messages.h"

#include <cmath>
#include <cstdio>

namespace clinfer {

std::string tuning_text(const TuningStatus& status) {
  if (status.index == status.layers) return "Comparing the whole network, tuned and untuned";
  std::string text = "Tuning layer " + std::to_string(status.index + 1) + " of " +
                     std::to_string(status.layers) + " (" + status.layer +
                     "): " + std::to_string(status.tried) + " points";
  if (status.best_ns > 0) {
    char gain[32];
    std::snprintf(gain, sizeof gain, ", best %.2f x default", status.default_ns / status.best_ns);
    text += gain;
  }
  if (status.seconds_left > 0)
    text += ", " + std::to_string(std::lround(status.seconds_left)) + " s left";
  return text;
}

GstStructure* tuning_structure(const TuningStatus& status) {
  return gst_structure_new(
      "clinfer-tuning", "layer", G_TYPE_STRING, status.layer.c_str(), "index", G_TYPE_UINT,
      static_cast<guint>(status.index), "layers", G_TYPE_UINT, static_cast<guint>(status.layers),
      "points", G_TYPE_UINT, static_cast<guint>(status.tried), "default-us", G_TYPE_DOUBLE,
      status.default_ns / 1e3, "best-us", G_TYPE_DOUBLE, status.best_ns / 1e3, "seconds",
      G_TYPE_DOUBLE, status.seconds, "seconds-left", G_TYPE_DOUBLE, status.seconds_left, nullptr);
}

void add_tuning(GstStructure* stats, const TuningReport& report) {
  gst_structure_set(stats, "tuning-hits", G_TYPE_UINT, static_cast<guint>(report.hits),
                    "tuning-misses", G_TYPE_UINT, static_cast<guint>(report.misses),
                    "tuning-lapsed", G_TYPE_UINT, static_cast<guint>(report.lapsed),
                    "tuning-shipped", G_TYPE_UINT, static_cast<guint>(report.shipped),
                    "tuning-measured", G_TYPE_UINT, static_cast<guint>(report.measured),
                    "tuning-modelled", G_TYPE_UINT, static_cast<guint>(report.modelled),
                    "tuning-taken-back", G_TYPE_UINT, static_cast<guint>(report.taken_back),
                    "tuning-gain", G_TYPE_DOUBLE, report.gain, nullptr);
  GValue list = G_VALUE_INIT;
  g_value_init(&list, GST_TYPE_LIST);
  for (const LayerTuning& layer : report.layers) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, GST_TYPE_STRUCTURE);
    g_value_take_boxed(
        &value, gst_structure_new("layer", "name", G_TYPE_STRING, layer.layer.c_str(), "type",
                                  G_TYPE_STRING, layer.type.c_str(), "from", G_TYPE_STRING,
                                  name_of(layer.source).c_str(), "kernel", G_TYPE_STRING,
                                  layer.kernel.c_str(), "default-us", G_TYPE_DOUBLE,
                                  layer.default_ns / 1e3, "us", G_TYPE_DOUBLE, layer.ns / 1e3,
                                  "lapsed", G_TYPE_STRING, layer.lapsed.c_str(), nullptr));
    gst_value_list_append_and_take_value(&list, &value);
  }
  gst_structure_take_value(stats, "tuning-layers", &list);
}

}  // namespace clinfer
