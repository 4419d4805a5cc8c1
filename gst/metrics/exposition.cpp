// Writes statistics in the text format of Prometheus.
#include "gst/metrics/exposition.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string_view>

#include "gst/base/handle.h"
#include "gst/metrics/elements.h"
#include "kernels/base/text.h"

namespace clinfer {
namespace {

// The mapping of a field of a statistics structure to a metric.
struct Field {
  const char* structure;
  const char* field;
  const char* metric;
  const char* type;
  const char* help;
  double scale = 1;
  const char* label = nullptr;  // a further label, with its value
  const char* value = nullptr;
};

constexpr char kStageHelp[] = "Time that recent frames spent in a stage, by quantile.";
constexpr char kAgeHelp[] = "Time since the last frame came in (sink) or went out (src).";

constexpr Field kFields[] = {
    {"clinfer-stats", "frames-in", "clinfer_frames_in_total", "counter", "Frames that came in."},
    {"clinfer-stats", "frames-out", "clinfer_frames_out_total", "counter", "Frames that went out."},
    {"clinfer-stats", "inferred", "clinfer_frames_inferred_total", "counter",
     "Frames that the network got."},
    {"clinfer-stats", "skipped", "clinfer_frames_skipped_total", "counter",
     "Frames that went out without inference, for whatever reason."},
    {"clinfer-stats", "still", "clinfer_frames_still_total", "counter",
     "Skipped frames on which nothing had changed."},
    {"clinfer-stats", "late", "clinfer_frames_late_total", "counter",
     "Skipped frames that would have reached the sink too late."},
    {"clinfer-stats", "dropped", "clinfer_frames_dropped_total", "counter",
     "Frames that the element dropped."},
    {"clinfer-stats", "unreadable", "clinfer_frames_unreadable_total", "counter",
     "Frames whose memory did not fit their format."},
    {"clinfer-stats", "in-flight", "clinfer_frames_in_flight", "gauge", "Frames in the element."},
    {"clinfer-stats", "frames-per-second", "clinfer_frames_per_second", "gauge",
     "Frames out a second, since the first."},
    {"clinfer-stats", "sink-age-ms", "clinfer_last_frame_age_seconds", "gauge", kAgeHelp, 1e-3,
     "pad", "sink"},
    {"clinfer-stats", "src-age-ms", "clinfer_last_frame_age_seconds", "gauge", kAgeHelp, 1e-3,
     "pad", "src"},
    {"clinfer-stats", "batches", "clinfer_batches_total", "counter",
     "Inferences of the model, by all elements that share it."},
    {"clinfer-stats", "images", "clinfer_images_total", "counter", "Pictures in these inferences."},
    {"clinfer-stats", "contradictions", "clinfer_contradictions_total", "counter",
     "Outputs that contradicted how they are read."},
    {"clinfer-stats", "load-ms", "clinfer_model_load_seconds", "gauge",
     "Time that loading the model took.", 1e-3},
    {"clinfer-stats", "target-latency-p95-ms", "clinfer_target_latency_seconds", "gauge",
     "95th percentile of the last second's latency, under a target.", 1e-3},
    {"clinfer-stats", "target-interval", "clinfer_target_interval", "gauge",
     "Frames per inference, under a target."},
    {"clinfer-stats", "target-limit", "clinfer_target_limit", "gauge",
     "Inferences per second that the stream may have, under a target (0: no limit)."},
    {"clinfer-stats", "target-changes", "clinfer_target_changes_total", "counter",
     "Changes of the limit by the target."},
    {"clinfer-stats", "power-watts", "clinfer_power_watts", "gauge",
     "Power of the device, under a target."},
    {"clinfer-stats", "joules-per-frame", "clinfer_joules_per_frame", "gauge",
     "Energy that the device took for each inferred frame, under a target."},
    {"clcamera-stats", "failures", "clinfer_camera_failures_total", "counter",
     "Times that clcamera lost its source."},
    {"clpublish-stats", "frames", "clinfer_published_frames_total", "counter",
     "Frames whose results clpublish wrote or queued."},
    {"clpublish-stats", "sent", "clinfer_messages_sent_total", "counter",
     "Messages that the broker confirmed."},
    {"clpublish-stats", "queued", "clinfer_messages_queued", "gauge",
     "Messages that wait for the broker."},
    {"clpublish-stats", "dropped", "clinfer_messages_dropped_total", "counter",
     "Messages that clpublish dropped."},
    {"clpublish-stats", "connection-losses", "clinfer_connection_losses_total", "counter",
     "Times that the broker was lost."},
    {"cltrack-stats", "tracks", "clinfer_tracks", "gauge", "Objects that cltrack follows."},
    {"cltrack-stats", "ids", "clinfer_track_ids_total", "counter", "Ids that cltrack has given."},
};

// Returns a label's value as the format takes it. Names of models come from files.
std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : safe_line(value)) {
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

void Exposition::add(const std::string& name, const char* type, const char* help,
                     const Labels& labels, double value) {
  auto metric = std::find_if(metrics_.begin(), metrics_.end(),
                             [&](const Metric& known) { return known.name == name; });
  if (metric == metrics_.end()) metric = metrics_.insert(metric, {name, type, help, ""});
  std::string& line = metric->samples;
  line += name;
  const char* separator = "{";
  for (const auto& [label, text] : labels) {
    line += separator + label + "=\"" + escaped(text) + "\"";
    separator = ",";
  }
  if (!labels.empty()) line += "}";
  char number[G_ASCII_DTOSTR_BUF_SIZE + 1] = " ";
  g_ascii_dtostr(number + 1, G_ASCII_DTOSTR_BUF_SIZE, value);
  line += std::string(number) + "\n";
}

void Exposition::add_stats(const GstStructure* stats, Labels labels) {
  const std::string_view structure = gst_structure_get_name(stats);
  if (const std::string model = string_of(stats, "model"); !model.empty())
    labels.emplace_back("model", model);
  for (const Field& field : kFields) {
    double number = 0;
    if (structure != field.structure || !number_of(stats, field.field, number)) continue;
    Labels all = labels;
    if (field.label != nullptr) all.emplace_back(field.label, field.value);
    add(field.metric, field.type, field.help, all, number * field.scale);
  }
  if (structure != "clinfer-stats") return;
  for (const char* stage : {"motion", "queue", "infer", "decode"})
    for (const auto& [percentile, quantile] :
         {std::pair("p50", "0.5"), {"p95", "0.95"}, {"p99", "0.99"}}) {
      double number = 0;
      if (!number_of(stats, (std::string(stage) + "-" + percentile + "-ms").c_str(), number))
        continue;
      Labels all = labels;
      all.emplace_back("stage", stage);
      all.emplace_back("quantile", quantile);
      add("clinfer_stage_seconds", "gauge", kStageHelp, all, number / 1e3);
    }
  if (gst_structure_has_field(stats, "model")) {
    Labels all = labels;
    for (const char* field : {"device", "precision", "tier", "path", "launch"})
      all.emplace_back(field, string_of(stats, field));
    add("clinfer_model_info", "gauge", "What runs the model: always 1.", all, 1);
  }
  const GValue* devices = gst_structure_get_value(stats, "devices");
  for (guint i = 0; devices != nullptr && i < gst_value_list_get_size(devices); ++i) {
    const auto* device =
        static_cast<const GstStructure*>(g_value_get_boxed(gst_value_list_get_value(devices, i)));
    double inferences = 0;
    if (!number_of(device, "inferences", inferences)) continue;
    Labels all = labels;
    all.emplace_back("device", string_of(device, "id"));
    add("clinfer_device_inferences_total", "counter", "Inferences by the device that ran them.",
        all, inferences);
  }
}

void Exposition::add_queue(GstElement* queue, const Labels& labels) {
  guint buffers = 0;
  guint64 time = 0;
  g_object_get(queue, "current-level-buffers", &buffers, "current-level-time", &time, nullptr);
  add("gstreamer_queue_buffers", "gauge", "Buffers in a queue.", labels, buffers);
  add("gstreamer_queue_seconds", "gauge", "Time that the buffers in a queue play.", labels,
      static_cast<double>(time) / 1e9);
}

void Exposition::add_pipeline(GstElement* pipeline) {
  if (!GST_IS_BIN(pipeline)) return;
  const std::string name = name_of(pipeline);
  for_each(gst_bin_iterate_recurse(GST_BIN(pipeline)), [&](gpointer object) {
    auto* element = GST_ELEMENT(object);
    GstElementFactory* factory = gst_element_get_factory(element);
    const std::string_view kind = factory != nullptr ? GST_OBJECT_NAME(factory) : "";
    const bool is_queue = kind == "queue";
    const GParamSpec* property = g_object_class_find_property(G_OBJECT_GET_CLASS(element), "stats");
    if (!is_queue && (property == nullptr || property->value_type != GST_TYPE_STRUCTURE)) return;
    const Labels labels{
        {"pipeline", name}, {"element", name_of(element)}, {"camera", camera_of(element)}};
    if (is_queue) return add_queue(element, labels);
    GstStructure* stats = nullptr;
    g_object_get(element, "stats", &stats, nullptr);
    const Handle<GstStructure> owner(stats);
    if (stats != nullptr) add_stats(stats, labels);
  });
}

void Exposition::add_process() {
  std::ifstream memory("/proc/self/statm");
  double pages = 0;
  if (memory >> pages >> pages)
    add("process_resident_memory_bytes", "gauge", "Resident memory.", {},
        pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
  timespec used{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0)
    add("process_cpu_seconds_total", "counter", "CPU time, user and system.", {},
        static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9);
  if (DIR* folder = opendir("/proc/self/fd")) {
    int entries = 0;
    while (readdir(folder) != nullptr) ++entries;
    closedir(folder);
    // Without ., .. and the folder itself.
    add("process_open_fds", "gauge", "Open file descriptors.", {}, entries - 3);
  }
}

std::string Exposition::text() const {
  std::string text;
  for (const Metric& metric : metrics_)
    text += "# HELP " + metric.name + " " + metric.help + "\n# TYPE " + metric.name + " " +
            metric.type + "\n" + metric.samples;
  return text;
}

}  // namespace clinfer
