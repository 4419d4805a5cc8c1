// Lists the properties of clinfer, one in each row.
#include "gst/infer/settings/properties.h"

#include <charconv>

#include "gst/infer/settings/network.h"
#include "kernels/base/numbers.h"

namespace clinfer {
namespace {

// Makes a property that the compiled model depends on, without a key of the engine's configuration.
ElementProperty engine(const Property<Settings>& row) {
  ElementProperty made(row);
  made.of_engine = true;
  return made;
}

// Makes such a property with the member of Config that it sets.
template <auto Key, auto Member>
ElementProperty engine(const MemberRow<Member>& row) {
  ElementProperty made(row);
  made.of_engine = true;
  made.configure = [](const Settings& settings, Config& config) {
    using Value = std::remove_reference_t<decltype(config.*Key)>;
    config.*Key = Value(settings.*Member);
  };
  return made;
}

// Makes a property from which the rules for objects follow.
ElementProperty rule(const Property<Settings>& row) {
  ElementProperty made(row);
  made.part = ElementProperty::Part::rules;
  return made;
}

// Makes a property that periodic messages depend on.
ElementProperty ticker(const Property<Settings>& row) {
  ElementProperty made(row);
  made.part = ElementProperty::Part::tickers;
  return made;
}

// Returns the double that a person would write for `value`: 0.45, not 0.44999998807907104.
double as_written(float value) {
  char text[32];
  *std::to_chars(text, text + sizeof text - 1, value).ptr = '\0';
  return number_at(text);
}

// Makes a threshold that the model decides unless it is set. Reading returns the value that was
// set, or else the model's.
template <auto Member, auto InForce>
ElementProperty threshold(const char* name, const char* nick, const char* blurb) {
  ElementProperty made(row<Member>(g_param_spec_double(
      name, nick, blurb, 0, 1, as_written(DecodeSettings{}.*InForce), kControllable)));
  made.read = [](const Readings& readings, const Settings& settings, GValue* value) {
    const std::optional<double>& set = settings.*Member;
    g_value_set_double(value,
                       set ? *set : as_written(readings.decode_settings_in_force().*InForce));
  };
  return made;
}

// Lists auto, none, then the heads in order.
const std::vector<GEnumValue>& post_process_values() {
  static const auto& values = *new const std::vector<GEnumValue>([] {
    std::vector<GEnumValue> list = {{0, "By model_info and the shapes of the outputs", "auto"},
                                    {1, "No decoding: frames get the raw tensors", "none"}};
    for (const Head& head : heads())
      list.push_back({static_cast<int>(list.size()), head.description, head.name});
    return list;
  }());
  return values;
}

// Makes a property that is an enumeration for GObject, and a head's name in Settings.
ElementProperty post_process() {
  ElementProperty made;
  made.spec = g_param_spec_enum(
      "post-process", "Post-processing", "How the outputs of the network are read",
      enum_type("GstClinferPostProcess", post_process_values()), 0, kReady);
  made.set = [](Settings& settings, const GValue* value) {
    settings.post_process =
        post_process_values()[static_cast<size_t>(g_value_get_enum(value))].value_nick;
  };
  made.get = [](const Settings& settings, GValue* value) {
    for (const GEnumValue& known : post_process_values())
      if (settings.post_process == known.value_nick) g_value_set_enum(value, known.value);
  };
  made.equal = [](const Settings& a, const Settings& b) {
    return a.post_process == b.post_process;
  };
  return made;
}

// Makes a property for the bytes of a model, of which the settings hold a copy.
template <auto Member>
ElementProperty bytes(const char* name, const char* nick, const char* blurb) {
  ElementProperty made;
  made.spec = g_param_spec_boxed(name, nick, blurb, G_TYPE_BYTES, kReady);
  made.set = [](Settings& settings, const GValue* value) {
    auto* const given = static_cast<GBytes*>(g_value_get_boxed(value));
    settings.*Member = copy_of(given);
  };
  made.get = [](const Settings& settings, GValue* value) {
    const auto& held = settings.*Member;
    g_value_take_boxed(value, held ? g_bytes_new(held->data(), held->size()) : nullptr);
  };
  made.equal = [](const Settings& a, const Settings& b) {
    const auto &one = a.*Member, &other = b.*Member;
    return one == other || (one != nullptr && other != nullptr && *one == *other);
  };
  made.of_engine = true;
  return made;
}

constexpr unsigned kDefaultStreams = 1;

// Makes the property for the number of streams, which a target chooses unless it is set.
ElementProperty throughput_streams() {
  ElementProperty made;
  made.spec = g_param_spec_uint(
      "throughput-streams", "Throughput streams",
      "Inferences that run at the same time on the device (0: automatic, measured at the first "
      "load; unset: 1, or with target-latency or target-power what infers most frames, tried while "
      "playing)",
      0, Config::kMostStreams, kDefaultStreams, kReady);
  made.set = [](Settings& settings, const GValue* value) {
    settings.throughput_streams = g_value_get_uint(value);
  };
  made.get = [](const Settings& settings, GValue* value) {
    g_value_set_uint(value, settings.throughput_streams.value_or(kDefaultStreams));
  };
  made.equal = [](const Settings& a, const Settings& b) {
    return a.throughput_streams.value_or(kDefaultStreams) ==
           b.throughput_streams.value_or(kDefaultStreams);
  };
  made.of_engine = true;
  made.configure = [](const Settings& settings, Config& config) {
    config.streams = settings.throughput_streams.value_or(kDefaultStreams);
  };
  return made;
}

// Makes the property for the precisions that a target may choose, which are flags for GObject.
ElementProperty allow_precision() {
  static const GFlagsValue kValues[] = {
      {1u << static_cast<unsigned>(Precision::f32), "32-bit floats", "f32"},
      {1u << static_cast<unsigned>(Precision::f16), "16-bit floats", "f16"},
      {1u << static_cast<unsigned>(Precision::bf16), "Products in bfloat16, sums in f32", "bf16"},
      {0, nullptr, nullptr}};
  static const GType type = [] {
    constexpr char kType[] = "GstClinferPrecisions";
    // A program that links the elements may have loaded the plug-in as well.
    if (const GType known = g_type_from_name(kType); known != 0) return known;
    const GType made = g_flags_register_static(kType, kValues);
    gst_type_mark_as_plugin_api(made, static_cast<GstPluginAPIFlags>(0));
    return made;
  }();
  ElementProperty made;
  made.spec = g_param_spec_flags(
      "allow-precision", "Allow precision",
      "With target-latency or target-power: precisions in which the network may be computed "
      "instead of the one that config or the device gives it, as in f16+bf16. When the device "
      "cannot infer all frames, each is tried on live frames, and taken where it infers more; "
      "results then differ as the precision does. Element messages clinfer-target tell",
      type, 0, kReady);
  made.set = [](Settings& settings, const GValue* value) {
    settings.allow_precision = g_value_get_flags(value);
  };
  made.get = [](const Settings& settings, GValue* value) {
    g_value_set_flags(value, settings.allow_precision);
  };
  made.equal = [](const Settings& a, const Settings& b) {
    return a.allow_precision == b.allow_precision;
  };
  made.of_engine = true;
  return made;
}

constexpr char kStatsBlurb[] =
    "Frames in, out, inferred, skipped, still and late (parts of skipped), dropped, in flight, out "
    "per second; percentiles in milliseconds of motion (looking for changes), queue (arrival to "
    "launch), infer and decode (until pushed); "
    "device, precision, streams, nireq, batch-size, priority, throttle, post-process, "
    "interpretation (what "
    "`clinfer heads` prints); path "
    "(zero-copy, device copy or system memory), path-reason (why not zero-copy), zero-copy-frames, "
    "device-copied-frames (memory of CUDA that cannot be exported), fetched-frames (frames in "
    "system "
    "memory that the device read without a copy, because they lay in memory proposed upstream); "
    "results of tuning-file; batches and images run by all elements that share the model. Posted "
    "as "
    "an element message at the end of the stream (gst-launch-1.0 -m)";

ElementProperty statistics() {
  ElementProperty made;
  made.spec =
      g_param_spec_boxed("stats", "Statistics", kStatsBlurb, GST_TYPE_STRUCTURE,
                         static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
  made.read = [](const Readings& readings, const Settings&, GValue* value) {
    g_value_take_boxed(value, readings.stats());
  };
  return made;
}

template <auto Member>
MemberRow<Member> queue_hint(const char* name, const char* nick, const char* blurb) {
  return choice<Member>(name, nick, blurb, "GstClinferQueueHint",
                        {{QueueHint::automatic, "The driver's choice", "default"},
                         {QueueHint::low, "Low", "low"},
                         {QueueHint::medium, "Medium", "medium"},
                         {QueueHint::high, "High", "high"}});
}

}  // namespace

std::shared_ptr<const std::string> copy_of(GBytes* bytes) {
  if (bytes == nullptr) return nullptr;
  gsize size = 0;
  const auto* const data = static_cast<const char*>(g_bytes_get_data(bytes, &size));
  return std::make_shared<const std::string>(data == nullptr ? "" : data, size);
}

const std::vector<ElementProperty>& element_properties() {
  using S = Settings;
  static const auto& rows = *new std::vector<ElementProperty>{
      engine(text<&S::model>(
          "model", "Model",
          "ONNX model (.onnx), OpenVINO IR (the .xml file; its .bin lies beside it), or a "
          "folder that holds one. Set while playing, the new model compiles beside the old "
          "one and takes over between two frames, with an element message clinfer-model",
          kPlaying)),
      bytes<&S::data>(
          "model-data", "Model in memory",
          "The bytes of an ONNX model or of an OpenVINO IR's .xml, decrypted for example, instead "
          "of a file; model is a name then. Nothing of it is written to the cache folder unless "
          "config has CACHE_MODE=OPTIMIZE_SPEED. The signal load-model asks for them, too"),
      bytes<&S::weights>("model-weights", "Weights in memory",
                         "The bytes of the .bin that belongs to an IR in model-data"),
      text<&S::model_proc>("model-proc", "Model description",
                           "DL Streamer's JSON description of the model: preprocessing, labels, "
                           "attribute names; what it says wins over the model"),
      text<&S::gallery>("gallery", "Gallery",
                        "JSON file {name: [[numbers], ...]} of known vectors: embeddings get the "
                        "nearest name with its cosine as the attribute identity, from threshold on "
                        "where that is set"),
      engine(text<&S::reshape>(
          "reshape", "Reshape",
          "Size of the picture that the network gets, WIDTHxHEIGHT, for models that leave it open "
          "or allow another one; ?xHEIGHT: for a text recogniser, a width that follows each line; "
          "frame: the frame's own, rounded up to multiples of 32; frames=T: "
          "the length of a clip; or INDEX_OR_NAME=D,D,... for all dimensions of an input; several "
          "separated by ';' (unset: as the model states)")),
      engine<&Config::device>(text<&S::device>(
          "device", "Device",
          "GPU (the first GPU, else a CPU with a warning), GPU.N, CPU or CPU.N, by "
          "the names that `clinfer devices` lists; or several: MULTI:A,B (each "
          "frame on whichever is free), AUTO:A,B (A, and B until A is ready; AUTO "
          "alone is GPU,CPU), HETERO:A,B (layers that A has no kernels for on B)")),
      engine(number<&S::nireq>("nireq", "Infer requests",
                               "Infer requests in flight (0: twice the streams)", 0, 256)),
      throughput_streams(),
      engine(number<&S::batch_size>(
          "batch-size", "Batch size",
          "Frames per inference; nireq times as many are in flight (0: the best that `clinfer tune "
          "--pipeline` wrote to tuning-file, else the batch size of the model)",
          0, 256)),
      number<&S::batch_timeout>(
          "batch-timeout", "Batch time-out",
          "Milliseconds that a frame waits for others to fill its batch (-1: one frame interval "
          "for "
          "live sources; for others until the batch is full or no frame has come for 100 ms; 0: no "
          "waiting). Events and the end of the stream send a partial batch at once",
          -1, 3600000, kControllable),
      engine(text<&S::model_instance_id>(
          "model-instance-id", "Model instance",
          "Elements of one process with the same id share one compiled model; their frames form "
          "common batches")),
      engine<&Config::priority>(queue_hint<&S::priority>(
          "priority", "Queue priority",
          "Priority on the device, if it offers cl_khr_priority_hints; stats show the value in "
          "force")),
      engine<&Config::throttle>(queue_hint<&S::throttle>(
          "throttle", "Queue throttle",
          "Host time that the driver may use, if the device offers cl_khr_throttle_hints; with "
          "low, "
          "the element itself waits by sleeping on any device; stats show the value in force")),
      engine<&Config::exclusive>(flag<&S::exclusive>(
          "exclusive-async-requests", "Exclusive requests",
          "Never run an inference at the same time as another element of the process that sets "
          "this, whatever its model (one stream)")),
      engine<&Config::perf_count>(flag<&S::perf_count>(
          "perf-count", "Performance counters",
          "Time every layer on the device; stats show the times in the field layers")),
      engine<&Config::device_timeout>(number<&S::device_timeout>(
          "device-timeout", "Device time-out",
          "Milliseconds that the device may take for one inference, compiling not counted; beyond, "
          "it does not answer, which is an error, or with a live source and "
          "overload-policy=skip-inference or drop a warning, and frames go on without inference "
          "until the device answers (0: no limit)",
          0, G_MAXINT)),
      engine<&Config::first_tier>(flag<&S::first_tier>(
          "first-tier", "First tier",
          "Until the device's kernels are compiled, which takes seconds when it is done for the "
          "first time, the host computes frames; its results differ by rounding. false: frames "
          "wait "
          "for the device, or go on without inference, as overload-policy says")),
      engine<&Config::max_num_threads>(number<&S::max_num_threads>(
          "max-num-threads", "Build threads",
          "Threads that build OpenCL programs (0: one per core)", 0, 1024)),
      engine<&Config::cache_dir>(text<&S::cache_dir>(
          "cache-dir", "Cache folder",
          "Folder for built OpenCL programs (unset: the user's cache folder; empty: no cache)")),
      engine<&Config::cache_size>(number<&S::cache_size>(
          "cache-size", "Cache size",
          "MiB that the cache folder may hold; programs that were not used for the longest time go "
          "first (0: no limit)",
          0, G_MAXINT)),
      engine<&Config::config_file>(text<&S::config_file>(
          "config-file", "Custom layers",
          "XML files that describe operations with OpenCL kernels of your own, as the GPU "
          "plug-in's "
          "CONFIG_FILE; separated by spaces, a name with spaces in double quotes")),
      engine<&Config::dump_kernels>(
          flag<&S::dump_kernels>("dump-kernels", "Dump kernels",
                                 "Write the programs of the kernels of config-file, with the "
                                 "compiler's logs, into the working folder")),
      engine<&Config::graph_dumps_dir>(
          text<&S::graph_dumps_dir>("graph-dumps-dir", "Graph dumps folder",
                                    "Folder for a Graphviz file of the graph after each pass")),
      engine<&Config::sources_dumps_dir>(text<&S::sources_dumps_dir>(
          "sources-dumps-dir", "Sources dumps folder",
          "Folder for the OpenCL sources that were built, with the compiler's logs")),
      engine<&Config::tuning_mode>(choice<&S::tuning_mode>(
          "tuning-mode", "Tuning mode",
          "How kernels are chosen: create measures them on the device and fills tuning-file, "
          "use-existing takes what that file has",
          "GstClinferTuningMode",
          {{TuningMode::disabled, "The engine's own choice", "disabled"},
           {TuningMode::create, "Measure the layers that tuning-file lacks, and add them",
            "create"},
           {TuningMode::use_existing, "Use the records of tuning-file", "use-existing"},
           {TuningMode::update, "Use the records of tuning-file, and remove outdated ones from it",
            "update"},
           {TuningMode::retune, "Measure all layers again", "retune"}})),
      engine<&Config::tuning_file>(
          text<&S::tuning_file>("tuning-file", "Tuning file",
                                "JSON file with the best kernels of models on devices. Where it "
                                "exists and no tuning-mode "
                                "is set, its records are used")),
      engine(text<&S::config>("config", "Configuration", config_blurb())),
      flag<&S::nv12_two_inputs>(
          "nv12-two-inputs", "NV12 as two inputs",
          "Read the Y and UV planes of VA surfaces, DMA-BUFs and memory of CUDA on the device, "
          "without a copy; "
          "otherwise frames are mapped to system memory"),
      threshold<&S::threshold, &DecodeSettings::threshold>(
          "threshold", "Confidence threshold",
          "Least confidence of an object (unset: the model's model_info, else 0.5)"),
      threshold<&S::iou_threshold, &DecodeSettings::iou_threshold>(
          "iou-threshold", "Overlap threshold",
          "Boxes of one label that overlap by more than this are one object (unset: the model's "
          "model_info, else 0.45). Where it is set, it also applies to boxes that the model has "
          "suppressed itself; 1 keeps all boxes"),
      number<&S::max_detections>(
          "max-detections", "Maximum detections",
          "Most objects per frame, those of highest confidence (0: no limit)", 0, 100000,
          kControllable),
      flag<&S::attach_tensors>(
          "attach-tensors", "Attach tensors",
          "Attach the network's outputs by name, with their data, beside what was decoded of them",
          kControllable),
      flag<&S::roi_meta>(
          "roi-meta", "Regions of interest",
          "Write objects as GstVideoRegionOfInterestMeta, too; false: as GstAnalytics only "
          "(GStreamer 1.24 or newer)"),
      text<&S::labels>("labels", "Labels",
                       "Names of the classes, comma separated, in the order of their ids"),
      text<&S::labels_file>("labels-file", "Labels file",
                            "File with one class name per line; takes the place of labels"),
      choice<&S::resize_mode>(
          "resize-mode", "Resize mode", "How a frame is fitted to the input of the network",
          "GstClinferResizeMode",
          {{ResizeChoice::automatic,
            "As the model, files beside it or its family say, else stretch", "auto"},
           {ResizeChoice::stretch, "Fill the input, whatever the aspect ratio", "stretch"},
           {ResizeChoice::letterbox, "Keep the aspect ratio, pad the rest", "letterbox"},
           {ResizeChoice::crop, "Keep the aspect ratio, take the middle", "crop"}}),
      number<&S::crop_share>(
          "crop-share", "Crop share",
          "Share of each side of the picture or region, about its middle, that the network gets; "
          "resize-mode fits that into the input. 0.875 is what is left of a shorter side of 256 "
          "pixels when 224 are cut out (0: as files beside the model say, else all)",
          0, 1),
      text<&S::pad_value>(
          "pad-value", "Padding value",
          "Pixel value 0..255 around a letterboxed picture, before mean and scale: one number, or "
          "one per channel of the network's input, comma separated (unset: as the model, files "
          "beside it or its family say, else 114)"),
      choice<&S::pad_place>(
          "pad-place", "Padding place", "Where a letterboxed picture lies in the network's input",
          "GstClinferPadPlace",
          {{PadPlace::automatic, "As the model, files beside it or its family say, else centered",
            "auto"},
           {PadPlace::centered, "In the middle, padded on both sides", "centered"},
           {PadPlace::top_left, "At the top left, padded on the right or below", "top-left"}}),
      choice<&S::color_format>(
          "color-format", "Colour format", "Order of the channels of the network's input",
          "GstClinferColorFormat",
          {{ColorChoice::automatic,
            "As the model, files beside it or its family say, else BGR (gray for one channel)",
            "auto"},
           {ColorChoice::bgr, "Blue first", "bgr"},
           {ColorChoice::rgb, "Red first", "rgb"},
           {ColorChoice::gray, "Luma", "gray"}}),
      choice<&S::color_arithmetic>(
          "color-arithmetic", "Colour arithmetic", "How Y'CbCr frames become RGB",
          "GstClinferColorArithmetic",
          {{ColorArithmetic::exact, "By the matrix and range of the caps, rounded once", "exact"},
           {ColorArithmetic::videoconvert,
            "To the bit as GStreamer's videoconvert, whose coefficients have 8 bits",
            "videoconvert"}}),
      text<&S::mean>("mean", "Mean",
                     "Subtracted from pixel values 0..255: one number, or one per channel, comma "
                     "separated (unset: as the model, files beside it or its family say, else 0)"),
      text<&S::scale>("scale", "Scale",
                      "Divisor of the pixel values, after mean: one number, or one per channel "
                      "(unset: as the model, files beside it or its family say, else 1)"),
      engine(
          number<&S::clip_length>("clip-length", "Clip length",
                                  "Frames that a network for clips (action recognition) gets at a "
                                  "time, where its model leaves that open or allows another number "
                                  "(0: as the model states)",
                                  0, 1024)),
      number<&S::clip_stride>("clip-stride", "Clip stride",
                              "Networks for clips get every Nth frame, and run when one is taken; "
                              "copies of clip-length frames are held",
                              1, 1024),
      number<&S::inference_interval>("inference-interval", "Inference interval",
                                     "Run the network on every Nth frame", 1, G_MAXUINT,
                                     kControllable),
      choice<&S::inference_when>(
          "inference-when", "Inference when",
          "When the network runs; frames without it repeat the last results, marked as held",
          "GstClinferInferenceWhen",
          {{InferenceWhen::always, "On every frame, as inference-interval says", "always"},
           {InferenceWhen::motion,
            "When the picture, or motion-regions of it, has changed since the last inference",
            "motion"}},
          kPlaying),
      number<&S::motion_threshold>(
          "motion-threshold", "Motion threshold",
          "With inference-when=motion: least change of brightness, of 255, at neighbouring places; "
          "noise, flicker and rain raise it",
          1, 255, kControllable),
      rule(text<&S::motion_regions>(
          "motion-regions", "Motion regions",
          "With inference-when=motion: parts of the frame where changes count, X,Y,WIDTH,HEIGHT;"
          "... as regions has them (unset: everywhere)",
          kPlaying)),
      number<&S::motion_hold>("motion-hold", "Motion hold",
                              "With inference-when=motion: frames that are inferred after the last "
                              "change",
                              0, 100000, kControllable),
      row<&S::video_direction>(g_param_spec_enum(
          "video-direction", "Video direction",
          "How pictures are turned and mirrored for the network, so that it sees them upright; "
          "frames pass as they are, and results are in their coordinates (auto: as the stream's "
          "tag image-orientation or the frames' GstVideoAffineTransformationMeta says)",
          GST_TYPE_VIDEO_ORIENTATION_METHOD, GST_VIDEO_ORIENTATION_AUTO, kPlaying)),
      rule(choice<&S::inference_region>(
          "inference-region", "Inference region",
          "Part of the frame that the network gets; results of a region are attached to that "
          "region",
          "GstClinferInferenceRegion",
          {{RegionChoice::full_frame, "The whole frame", "full-frame"},
           {RegionChoice::roi_list,
            "Each region of interest on the buffer, from another clinfer or any other element",
            "roi-list"}},
          kPlaying)),
      text<&S::object_class>(
          "object-class", "Object class",
          "With inference-region=roi-list: take only regions with these labels, comma separated "
          "(unset: all)",
          kPlaying),
      text<&S::region_reach>(
          "region-reach", "Region reach",
          "With inference-region=roi-list: two landmarks; the region becomes the square around the "
          "first one whose sides are as far away as the second one (0>1: as MediaPipe's poses are "
          "found; regions without these landmarks stay; unset: no change)",
          kPlaying),
      text<&S::region_shift>(
          "region-shift", "Region shift",
          "With inference-region=roi-list: how far regions move before they grow, as shares of "
          "their width and height (0,-0.5: up by half), or of their longer side from one of their "
          "landmarks towards another (0>2,0.5: as MediaPipe's palms become hands; regions without "
          "these landmarks stay; unset: 0)",
          kPlaying),
      text<&S::region_turn>(
          "region-turn", "Region turn",
          "With inference-region=roi-list: the network gets regions turned about their middle, so "
          "that the way from one of their landmarks to another points up (0>2: MediaPipe's palms) "
          "or right, down or left (0>1,right: its faces, by their eyes); with quarter at the end "
          "(0>2,up,quarter) by the nearest quarter turn only; regions without these landmarks stay "
          "as they are (unset: no turn)",
          kPlaying),
      text<&S::region_margin>(
          "region-margin", "Region margin",
          "With inference-region=roi-list: how far regions grow to each side before the network "
          "gets them, as a share of their size (0.8 makes them 2.6 times larger) or of width and "
          "height (0.3,0.6). A region that this or another region property moves beyond the "
          "picture keeps its proportions: the picture's outermost pixels are repeated there "
          "(unset: 0)",
          kPlaying),
      choice<&S::region_shape>(
          "region-shape", "Region shape",
          "With inference-region=roi-list: the shape in which the network gets regions",
          "GstClinferRegionShape",
          {{RegionShape::as_is, "As they are, with region-margin", "as-is"},
           {RegionShape::square,
            "With region-margin, and then as wide and as high as the longer side", "square"}},
          kPlaying),
      number<&S::reclassify_interval>(
          "reclassify-interval", "Reclassify interval",
          "With inference-region=roi-list: infer an object with an id (cltrack) on every Nth frame "
          "on which it is (0: once), and repeat the last result on the others, marked as held",
          0, 1000000, kControllable),
      rule(text<&S::classes>(
          "classes", "Classes",
          "Objects wanted: labels or their numbers, comma separated (unset: all)", kPlaying)),
      rule(text<&S::thresholds>(
          "thresholds", "Thresholds by class",
          "Least confidence by label or number, as in person=0.6,car=0.4; other "
          "classes have threshold",
          kPlaying)),
      rule(text<&S::min_size>(
          "min-size", "Minimum size",
          "Least size of an object, WxH or one number for both: whole numbers are "
          "pixels, numbers with a point shares of the picture",
          kPlaying)),
      rule(text<&S::max_size>("max-size", "Maximum size",
                              "Largest size of an object, written as min-size is", kPlaying)),
      rule(text<&S::regions>(
          "regions", "Regions",
          "Parts of the picture to infer instead of the whole, as X,Y,WIDTH,HEIGHT;... "
          "in pixels, or with a point in shares; each becomes a region of interest "
          "with the results",
          kPlaying)),
      rule(text<&S::tiles>(
          "tiles", "Tiles",
          "Infer the picture in COLUMNSxROWS tiles, for small objects, and merge objects "
          "across their seams; after a comma the overlap as a share of a tile "
          "(3x2 is 3x2,0.2)",
          kPlaying)),
      choice<&S::overload_policy>(
          "overload-policy", "Overload policy",
          "Treatment of frames of a live source that arrive while the device is busy or the model "
          "is "
          "not ready; streams of one model-instance-id get equal shares of the device (see share)",
          "GstClinferOverloadPolicy",
          {{OverloadPolicy::block, "The source waits", "block"},
           {OverloadPolicy::skip_inference, "Frames are passed on without inference",
            "skip-inference"},
           {OverloadPolicy::drop, "Frames are dropped", "drop"}},
          kPlaying),
      number<&S::share>(
          "share", "Share",
          "Weight of this live stream among those with the same model-instance-id when the device "
          "cannot infer all their frames: a stream of share 2 gets twice the inferences of one of "
          "share 1",
          1, 1000, kControllable),
      ticker(number<&S::target_latency>(
          "target-latency", "Target latency",
          "Milliseconds from a live frame's arrival until its results leave, for 95 % of the "
          "inferred "
          "frames. The element chooses how many frames are inferred, how large batches are, how "
          "long they are waited for, how many streams of the device run (see throughput-streams) "
          "and in which precision (see allow-precision), together with all other elements on the "
          "device that have a "
          "target; other frames pass without inference (overload-policy=block counts as "
          "skip-inference). stats say what was chosen and why (0: no target)",
          0, 3600000, kPlaying)),
      ticker(number<&S::target_power>(
          "target-power", "Target power",
          "Watts that the device may take on average, with all that runs there: fewer frames are "
          "inferred and larger batches waited for, over all elements on the device that have a "
          "target. The power is read from NVML, RAPL or hwmon, which stats name; a CPU's is that "
          "of "
          "the whole processor (0: no target)",
          0, 100000, kPlaying)),
      allow_precision(),
      number<&S::hold_results>(
          "hold-results", "Hold results",
          "Repeat the last results on so many frames without inference after them, marked as held "
          "(0: those frames get no results)",
          0, 100000, kControllable),
      post_process(),
      text<&S::outputs>("outputs", "Outputs",
                        "Names of the outputs that are read, comma separated, where some of the "
                        "network's are not results (unset: all)"),
      flag<&S::qos>("qos", "Quality of service",
                    "Skip inference on frames that would reach a synchronised sink too late",
                    kControllable),
      number<&S::verify>(
          "verify", "Verify",
          "Compute every Nth inferred frame again on the host, in f32 and in the background, and "
          "compare: an element message clinfer-verify tells where the device's results differ by "
          "more than its precision explains, and stats count (0: never)",
          0, G_MAXUINT, kControllable),
      ticker(number<&S::stats_interval>(
          "stats-interval", "Statistics interval",
          "Milliseconds between two element messages clinfer-stats with what stats has (0: only at "
          "the end of the stream)",
          0, G_MAXUINT, kPlaying)),
      ticker(number<&S::frozen_after>(
          "frozen-after", "Frozen after",
          "Milliseconds without a frame after which a live source counts as frozen, which an "
          "element "
          "message clinfer-frozen tells, and another one when frames come again (0: never)",
          0, G_MAXUINT, kPlaying)),
      statistics()};
  return rows;
}

std::string engine_difference(const Settings& a, const Settings& b) {
  for (const ElementProperty& property : element_properties())
    if (property.of_engine && !property.equal(a, b)) return property.spec->name;
  return "";
}

void configure(const Settings& settings, Config& config) {
  for (const ElementProperty& property : element_properties())
    if (property.configure != nullptr) property.configure(settings, config);
}

}  // namespace clinfer
