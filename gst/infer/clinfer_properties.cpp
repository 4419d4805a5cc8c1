// clinfer's properties.
#include "gst/infer/clinfer.h"

using clinfer::ColorChoice;
using clinfer::OverloadPolicy;
using clinfer::QueueHint;
using clinfer::RegionChoice;
using clinfer::ResizeChoice;
using clinfer::Settings;
using clinfer::TuningMode;

namespace {

enum {
  kPropModel = 1,
  kPropDevice,
  kPropNireq,
  kPropThroughputStreams,
  kPropBatchSize,
  kPropBatchTimeout,
  kPropModelInstanceId,
  kPropPriority,
  kPropThrottle,
  kPropExclusiveAsyncRequests,
  kPropPerfCount,
  kPropMaxNumThreads,
  kPropCacheDir,
  kPropGraphDumpsDir,
  kPropSourcesDumpsDir,
  kPropTuningMode,
  kPropTuningFile,
  kPropConfig,
  kPropNv12TwoInputs,
  kPropThreshold,
  kPropIouThreshold,
  kPropMaxDetections,
  kPropLabels,
  kPropLabelsFile,
  kPropResizeMode,
  kPropColorFormat,
  kPropMean,
  kPropScale,
  kPropInferenceInterval,
  kPropInferenceRegion,
  kPropObjectClass,
  kPropOverloadPolicy,
  kPropPostProcess,
  kPropQos,
  kPropStats,
};

GType resize_mode_type() {
  static const GEnumValue kValues[] = {
      {static_cast<int>(ResizeChoice::automatic), "What the model's model_info says, else stretch",
       "auto"},
      {static_cast<int>(ResizeChoice::stretch), "Fill the network's input", "stretch"},
      {static_cast<int>(ResizeChoice::letterbox), "Keep the aspect, pad the rest", "letterbox"},
      {static_cast<int>(ResizeChoice::crop), "Keep the aspect, take the middle", "crop"},
      {0, nullptr, nullptr}};
  static const GType type = g_enum_register_static("GstClinferResizeMode", kValues);
  return type;
}

GType tuning_mode_type() {
  static const GEnumValue kValues[] = {
      {static_cast<int>(TuningMode::disabled), "Kernels as the engine chooses them", "disabled"},
      {static_cast<int>(TuningMode::create), "Measure what tuning-file lacks, and add it",
       "create"},
      {static_cast<int>(TuningMode::use_existing), "Use what is in tuning-file", "use-existing"},
      {static_cast<int>(TuningMode::update),
       "Use what is in tuning-file, and remove from it what has lapsed", "update"},
      {static_cast<int>(TuningMode::retune), "Measure everything anew", "retune"},
      {0, nullptr, nullptr}};
  static const GType type = g_enum_register_static("GstClinferTuningMode", kValues);
  return type;
}

GType color_format_type() {
  static const GEnumValue kValues[] = {
      {static_cast<int>(ColorChoice::automatic),
       "What the model's model_info says, else BGR (gray for one channel)", "auto"},
      {static_cast<int>(ColorChoice::bgr), "Blue first", "bgr"},
      {static_cast<int>(ColorChoice::rgb), "Red first", "rgb"},
      {static_cast<int>(ColorChoice::gray), "Luma", "gray"},
      {0, nullptr, nullptr}};
  static const GType type = g_enum_register_static("GstClinferColorFormat", kValues);
  return type;
}

GType inference_region_type() {
  static const GEnumValue kValues[] = {
      {static_cast<int>(RegionChoice::full_frame), "The whole frame", "full-frame"},
      {static_cast<int>(RegionChoice::roi_list),
       "Each region of interest on the buffer, of another clinfer or any other element",
       "roi-list"},
      {0, nullptr, nullptr}};
  static const GType type = g_enum_register_static("GstClinferInferenceRegion", kValues);
  return type;
}

GType queue_hint_type() {
  static const GEnumValue kValues[] = {
      {static_cast<int>(QueueHint::automatic), "The driver's choice", "default"},
      {static_cast<int>(QueueHint::low), "Low", "low"},
      {static_cast<int>(QueueHint::medium), "Medium", "medium"},
      {static_cast<int>(QueueHint::high), "High", "high"},
      {0, nullptr, nullptr}};
  static const GType type = g_enum_register_static("GstClinferQueueHint", kValues);
  return type;
}

GType overload_policy_type() {
  static const GEnumValue kValues[] = {
      {static_cast<int>(OverloadPolicy::block), "The source waits", "block"},
      {static_cast<int>(OverloadPolicy::skip_inference), "Frames go on without inference",
       "skip-inference"},
      {static_cast<int>(OverloadPolicy::drop), "Frames are dropped", "drop"},
      {0, nullptr, nullptr}};
  static const GType type = g_enum_register_static("GstClinferOverloadPolicy", kValues);
  return type;
}

// auto, none, then the heads in their order.
const std::vector<GEnumValue>& post_process_values() {
  static const std::vector<GEnumValue> values = [] {
    std::vector<GEnumValue> list = {{0, "By model_info and the outputs' shapes", "auto"},
                                    {1, "No decoding: the raw tensors", "none"}};
    for (const clinfer::Head& head : clinfer::heads())
      list.push_back({static_cast<int>(list.size()), head.description, head.name});
    list.push_back({0, nullptr, nullptr});
    return list;
  }();
  return values;
}

GType post_process_type() {
  static const GType type =
      g_enum_register_static("GstClinferPostProcess", post_process_values().data());
  return type;
}

std::string text_of(const GValue* value) {
  const char* text = g_value_get_string(value);
  return text != nullptr ? text : "";
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  GST_CLINFER(object)->element->change_settings([&](Settings& s) {
    switch (id) {
      case kPropModel:
        s.model = text_of(value);
        break;
      case kPropDevice:
        s.device = text_of(value);
        break;
      case kPropNireq:
        s.nireq = g_value_get_uint(value);
        break;
      case kPropThroughputStreams:
        s.throughput_streams = g_value_get_uint(value);
        break;
      case kPropBatchSize:
        s.batch_size = g_value_get_uint(value);
        break;
      case kPropBatchTimeout:
        s.batch_timeout = g_value_get_int(value);
        break;
      case kPropModelInstanceId:
        s.model_instance_id = text_of(value);
        break;
      case kPropPriority:
        s.priority = static_cast<QueueHint>(g_value_get_enum(value));
        break;
      case kPropThrottle:
        s.throttle = static_cast<QueueHint>(g_value_get_enum(value));
        break;
      case kPropExclusiveAsyncRequests:
        s.exclusive = g_value_get_boolean(value);
        break;
      case kPropPerfCount:
        s.perf_count = g_value_get_boolean(value);
        break;
      case kPropMaxNumThreads:
        s.max_num_threads = g_value_get_uint(value);
        break;
      case kPropCacheDir:
        s.cache_dir.reset();
        if (g_value_get_string(value) != nullptr) s.cache_dir = text_of(value);
        break;
      case kPropGraphDumpsDir:
        s.graph_dumps_dir = text_of(value);
        break;
      case kPropSourcesDumpsDir:
        s.sources_dumps_dir = text_of(value);
        break;
      case kPropTuningMode:
        s.tuning_mode = static_cast<TuningMode>(g_value_get_enum(value));
        break;
      case kPropTuningFile:
        s.tuning_file = text_of(value);
        break;
      case kPropConfig:
        s.config = text_of(value);
        break;
      case kPropNv12TwoInputs:
        s.nv12_two_inputs = g_value_get_boolean(value);
        break;
      case kPropThreshold:
        s.threshold = g_value_get_double(value);
        break;
      case kPropIouThreshold:
        s.iou_threshold = g_value_get_double(value);
        break;
      case kPropMaxDetections:
        s.max_detections = g_value_get_uint(value);
        break;
      case kPropLabels:
        s.labels = text_of(value);
        break;
      case kPropLabelsFile:
        s.labels_file = text_of(value);
        break;
      case kPropResizeMode:
        s.resize_mode = static_cast<ResizeChoice>(g_value_get_enum(value));
        break;
      case kPropColorFormat:
        s.color_format = static_cast<ColorChoice>(g_value_get_enum(value));
        break;
      case kPropMean:
        s.mean = text_of(value);
        break;
      case kPropScale:
        s.scale = text_of(value);
        break;
      case kPropInferenceInterval:
        s.inference_interval = g_value_get_uint(value);
        break;
      case kPropInferenceRegion:
        s.inference_region = static_cast<RegionChoice>(g_value_get_enum(value));
        break;
      case kPropObjectClass:
        s.object_class = text_of(value);
        break;
      case kPropOverloadPolicy:
        s.overload_policy = static_cast<OverloadPolicy>(g_value_get_enum(value));
        break;
      case kPropPostProcess:
        s.post_process =
            post_process_values()[static_cast<size_t>(g_value_get_enum(value))].value_nick;
        break;
      case kPropQos:
        s.qos = g_value_get_boolean(value);
        break;
      default:
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
  });
}

void get_text(GValue* value, const std::string& text) {
  g_value_set_string(value, text.empty() ? nullptr : text.c_str());
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  const clinfer::Element& element = *GST_CLINFER(object)->element;
  const Settings s = element.settings();
  switch (id) {
    case kPropModel:
      get_text(value, s.model);
      break;
    case kPropDevice:
      g_value_set_string(value, s.device.c_str());
      break;
    case kPropNireq:
      g_value_set_uint(value, s.nireq);
      break;
    case kPropThroughputStreams:
      g_value_set_uint(value, s.throughput_streams);
      break;
    case kPropBatchSize:
      g_value_set_uint(value, s.batch_size);
      break;
    case kPropBatchTimeout:
      g_value_set_int(value, s.batch_timeout);
      break;
    case kPropModelInstanceId:
      get_text(value, s.model_instance_id);
      break;
    case kPropPriority:
      g_value_set_enum(value, static_cast<int>(s.priority));
      break;
    case kPropThrottle:
      g_value_set_enum(value, static_cast<int>(s.throttle));
      break;
    case kPropExclusiveAsyncRequests:
      g_value_set_boolean(value, s.exclusive);
      break;
    case kPropPerfCount:
      g_value_set_boolean(value, s.perf_count);
      break;
    case kPropMaxNumThreads:
      g_value_set_uint(value, s.max_num_threads);
      break;
    case kPropCacheDir:
      g_value_set_string(value, s.cache_dir ? s.cache_dir->c_str() : nullptr);
      break;
    case kPropGraphDumpsDir:
      get_text(value, s.graph_dumps_dir);
      break;
    case kPropSourcesDumpsDir:
      get_text(value, s.sources_dumps_dir);
      break;
    case kPropTuningMode:
      g_value_set_enum(value, static_cast<int>(s.tuning_mode));
      break;
    case kPropTuningFile:
      get_text(value, s.tuning_file);
      break;
    case kPropConfig:
      get_text(value, s.config);
      break;
    case kPropNv12TwoInputs:
      g_value_set_boolean(value, s.nv12_two_inputs);
      break;
    case kPropThreshold:
      g_value_set_double(value, static_cast<double>(element.decode_settings_in_force().threshold));
      break;
    case kPropIouThreshold:
      g_value_set_double(value,
                         static_cast<double>(element.decode_settings_in_force().iou_threshold));
      break;
    case kPropMaxDetections:
      g_value_set_uint(value, s.max_detections);
      break;
    case kPropLabels:
      get_text(value, s.labels);
      break;
    case kPropLabelsFile:
      get_text(value, s.labels_file);
      break;
    case kPropResizeMode:
      g_value_set_enum(value, static_cast<int>(s.resize_mode));
      break;
    case kPropColorFormat:
      g_value_set_enum(value, static_cast<int>(s.color_format));
      break;
    case kPropMean:
      get_text(value, s.mean);
      break;
    case kPropScale:
      get_text(value, s.scale);
      break;
    case kPropInferenceInterval:
      g_value_set_uint(value, s.inference_interval);
      break;
    case kPropInferenceRegion:
      g_value_set_enum(value, static_cast<int>(s.inference_region));
      break;
    case kPropObjectClass:
      get_text(value, s.object_class);
      break;
    case kPropOverloadPolicy:
      g_value_set_enum(value, static_cast<int>(s.overload_policy));
      break;
    case kPropPostProcess: {
      const std::vector<GEnumValue>& values = post_process_values();
      for (size_t i = 0; i + 1 < values.size(); ++i)
        if (s.post_process == values[i].value_nick) g_value_set_enum(value, values[i].value);
      break;
    }
    case kPropQos:
      g_value_set_boolean(value, s.qos);
      break;
    case kPropStats:
      g_value_take_boxed(value, element.stats());
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

}  // namespace

void gst_clinfer_install_properties(GObjectClass* klass) {
  klass->set_property = set_property;
  klass->get_property = get_property;
  const auto base = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  const auto ready = static_cast<GParamFlags>(base | GST_PARAM_MUTABLE_READY);
  const auto playing =
      static_cast<GParamFlags>(base | GST_PARAM_MUTABLE_PLAYING | GST_PARAM_CONTROLLABLE);
  const auto text = [&](guint id, const char* name, const char* nick, const char* blurb,
                        const char* otherwise) {
    g_object_class_install_property(klass, id,
                                    g_param_spec_string(name, nick, blurb, otherwise, ready));
  };
  const auto number = [&](guint id, const char* name, const char* nick, const char* blurb,
                          guint least, guint most, guint otherwise, GParamFlags flags) {
    g_object_class_install_property(
        klass, id, g_param_spec_uint(name, nick, blurb, least, most, otherwise, flags));
  };
  const auto choice = [&](guint id, const char* name, const char* nick, const char* blurb,
                          GType type) {
    gst_type_mark_as_plugin_api(type, static_cast<GstPluginAPIFlags>(0));
    g_object_class_install_property(klass, id,
                                    g_param_spec_enum(name, nick, blurb, type, 0, ready));
  };

  text(kPropModel, "model", "Model", "OpenVINO IR model, the .xml file (its .bin lies beside it)",
       nullptr);
  text(kPropDevice, "device", "Device",
       "GPU (the first GPU, else a CPU), GPU.N, or CPU, as `clinfer devices` names them", "GPU");
  number(kPropNireq, "nireq", "Infer requests", "Infer requests in flight (0: twice the streams)",
         0, 256, 0, ready);
  number(
      kPropThroughputStreams, "throughput-streams", "Throughput streams",
      "Inferences that run side by side on the device (0: automatic, measured at the first load)",
      0, 64, 1, ready);
  number(
      kPropBatchSize, "batch-size", "Batch size",
      "Frames an inference; nireq times as many are in flight (0: what `clinfer tune --pipeline` "
      "found best and tuning-file has, else as the model states)",
      0, 256, 1, ready);
  g_object_class_install_property(
      klass, kPropBatchTimeout,
      g_param_spec_int("batch-timeout", "Batch time-out",
                       "Milliseconds that a frame waits for others to fill its batch (-1: live "
                       "sources one frame interval, others until it is full or nothing has come "
                       "for 100 ms; 0: no waiting). At events and the end of the stream a batch "
                       "goes as it is",
                       -1, 3600000, -1, playing));
  text(kPropModelInstanceId, "model-instance-id", "Model instance",
       "Elements of one process with the same name here share one compiled model; batches form "
       "across their streams",
       nullptr);
  choice(
      kPropPriority, "priority", "Queue priority",
      "Among the work of the device, where it offers cl_khr_priority_hints; stats say what is in "
      "force",
      queue_hint_type());
  choice(kPropThrottle, "throttle", "Queue throttle",
         "Host time that the driver may spend, where the device offers cl_khr_throttle_hints; low: "
         "the element's own waiting sleeps on any device; stats say what is in force",
         queue_hint_type());
  g_object_class_install_property(
      klass, kPropExclusiveAsyncRequests,
      g_param_spec_boolean("exclusive-async-requests", "Exclusive requests",
                           "Run inferences one after the other with those of all other elements of "
                           "the process that set this, whatever their models (one stream)",
                           FALSE, ready));
  g_object_class_install_property(
      klass, kPropPerfCount,
      g_param_spec_boolean("perf-count", "Performance counters",
                           "Time every layer on the device; the times are in stats, field layers",
                           FALSE, ready));
  number(kPropMaxNumThreads, "max-num-threads", "Build threads",
         "Threads that build OpenCL programs (0: one a core)", 0, 1024, 0, ready);
  text(kPropCacheDir, "cache-dir", "Cache folder",
       "Folder for built OpenCL programs (unset: the user's cache folder; empty: no cache)",
       nullptr);
  text(kPropGraphDumpsDir, "graph-dumps-dir", "Graph dumps folder",
       "Folder for a Graphviz file of the graph after each pass", nullptr);
  text(kPropSourcesDumpsDir, "sources-dumps-dir", "Sources dumps folder",
       "Folder for the OpenCL sources that were built, with their logs", nullptr);
  choice(
      kPropTuningMode, "tuning-mode", "Tuning mode",
      "What is done about the kernels: create measures them on the device and fills tuning-file, "
      "use-existing runs with what is there",
      tuning_mode_type());
  text(kPropTuningFile, "tuning-file", "Tuning file",
       "JSON file with the best kernels of models on devices", nullptr);
  text(kPropConfig, "config", "Configuration",
       "Engine options as KEY=VALUE,... with the GPU plug-in's key names", nullptr);
  g_object_class_install_property(
      klass, kPropNv12TwoInputs,
      g_param_spec_boolean("nv12-two-inputs", "NV12 as two inputs",
                           "Read the Y and UV planes of VA surfaces where they lie, on the device; "
                           "else surfaces are mapped to system memory",
                           TRUE, ready));
  g_object_class_install_property(
      klass, kPropThreshold,
      g_param_spec_double("threshold", "Confidence threshold",
                          "Least confidence of an object (unset: the model's model_info, else 0.5)",
                          0, 1, 0.5, playing));
  g_object_class_install_property(
      klass, kPropIouThreshold,
      g_param_spec_double("iou-threshold", "Overlap threshold",
                          "Objects of one label that overlap more than this are one (unset: the "
                          "model's model_info, else 0.45); not for models that suppress themselves",
                          0, 1, 0.45, playing));
  number(kPropMaxDetections, "max-detections", "Maximum detections",
         "Most objects a frame, the surest ones (0: no limit)", 0, 100000, 0, playing);
  text(kPropLabels, "labels", "Labels",
       "Names of the classes, comma separated, in order of their ids", nullptr);
  text(kPropLabelsFile, "labels-file", "Labels file",
       "File with one class name a line, instead of labels", nullptr);
  choice(kPropResizeMode, "resize-mode", "Resize mode",
         "How a frame is fitted to the network's input", resize_mode_type());
  choice(kPropColorFormat, "color-format", "Colour format", "Order of the network's input channels",
         color_format_type());
  text(kPropMean, "mean", "Mean",
       "Subtracted from pixel values 0..255: a number, or one per channel, comma separated (unset: "
       "model_info's, else 0)",
       nullptr);
  text(kPropScale, "scale", "Scale",
       "Pixel values minus mean are divided by this: a number, or one per channel (unset: "
       "model_info's, else 1)",
       nullptr);
  number(kPropInferenceInterval, "inference-interval", "Inference interval",
         "Run the network on every Nth frame", 1, G_MAXUINT, 1, playing);
  choice(kPropInferenceRegion, "inference-region", "Inference region",
         "What the network runs on; what it says of a region is attached to the region",
         inference_region_type());
  text(kPropObjectClass, "object-class", "Object class",
       "With inference-region=roi-list, the labels of the regions to take, comma separated (unset: "
       "all)",
       nullptr);
  choice(kPropOverloadPolicy, "overload-policy", "Overload policy",
         "What happens to the frames of a live source that come while the device is behind",
         overload_policy_type());
  choice(kPropPostProcess, "post-process", "Post-processing", "How the network's outputs are read",
         post_process_type());
  g_object_class_install_property(
      klass, kPropQos,
      g_param_spec_boolean("qos", "Quality of service",
                           "Pass frames that a clocked sink would get too late without inference",
                           TRUE, playing));
  g_object_class_install_property(
      klass, kPropStats,
      g_param_spec_boxed(
          "stats", "Statistics",
          "Frames in, out, inferred, skipped, late (of these), dropped, in flight, out a second; "
          "percentiles of queue (until it is launched), infer and decode (until it is pushed) in "
          "milliseconds; device, precision, streams, nireq, batch-size, priority, throttle, "
          "post-process; path (zero-copy, else system memory), path-reason (why not zero-copy), "
          "fetched-frames (of these in system memory, what the "
          "device took from memory that was proposed upstream, without a copy); "
          "what tuning-file gave; batches and images that the model was run on, for all who share "
          "it. Posted as an element message at the end of the stream (gst-launch-1.0 -m)",
          GST_TYPE_STRUCTURE, static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}
