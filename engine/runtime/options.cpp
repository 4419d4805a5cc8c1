// The table of the engine's options. A new option is a row here and a member of Config.
#include "engine/runtime/options.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "kernels/base/system/processors.h"

namespace clinfer {
namespace {

std::optional<unsigned> to_number(std::string_view text) {
  unsigned parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return parsed;
}

template <typename Value, size_t N>
using Names = std::array<std::pair<std::string_view, Value>, N>;

constexpr Names<bool, 6> kYesNo = {{{"YES", true},
                                    {"NO", false},
                                    {"true", true},
                                    {"false", false},
                                    {"TRUE", true},
                                    {"FALSE", false}}};
constexpr Names<QueueHint, 8> kHints = {{{"0", QueueHint::automatic},
                                         {"1", QueueHint::low},
                                         {"2", QueueHint::medium},
                                         {"3", QueueHint::high},
                                         {"DEFAULT", QueueHint::automatic},
                                         {"LOW", QueueHint::low},
                                         {"MEDIUM", QueueHint::medium},
                                         {"HIGH", QueueHint::high}}};
constexpr Names<Precision, 6> kPrecisions = {{{"auto", Precision::automatic},
                                              {"dynamic", Precision::automatic},
                                              {"undefined", Precision::automatic},
                                              {"f32", Precision::f32},
                                              {"f16", Precision::f16},
                                              {"bf16", Precision::bf16}}};
constexpr Names<CacheMode, 2> kCacheModes = {
    {{"OPTIMIZE_SPEED", CacheMode::optimize_speed}, {"OPTIMIZE_SIZE", CacheMode::optimize_size}}};
constexpr Names<Config::Persistent, 3> kPersistent = {{{"AUTO", Config::Persistent::automatic},
                                                       {"YES", Config::Persistent::yes},
                                                       {"NO", Config::Persistent::no}}};
constexpr Names<Config::Launch, 3> kLaunches = {{{"auto", Config::Launch::automatic},
                                                 {"graph", Config::Launch::graph},
                                                 {"queue", Config::Launch::queue}}};
constexpr Names<TuningMode, 5> kTuningModes = {{{"DISABLED", TuningMode::disabled},
                                                {"CREATE", TuningMode::create},
                                                {"USE_EXISTING", TuningMode::use_existing},
                                                {"UPDATE", TuningMode::update},
                                                {"RETUNE", TuningMode::retune}}};

template <auto Member, const auto& kNames>
bool named(Config& config, const std::string& value) {
  for (const auto& [name, meaning] : kNames)
    if (value == name) {
      config.*Member = meaning;
      return true;
    }
  return false;
}

template <auto Member>
bool flag(Config& config, const std::string& value) {
  return named<Member, kYesNo>(config, value);
}

template <auto Member>
bool number(Config& config, const std::string& value) {
  using Value = std::remove_reference_t<decltype(config.*Member)>;
  const std::optional<unsigned> parsed = to_number(value);
  if (parsed) config.*Member = Value(*parsed);
  return parsed.has_value();
}

template <auto Member>
bool text(Config& config, const std::string& value) {
  config.*Member = value;
  return true;
}

bool streams(Config& config, const std::string& value) {
  // Also takes the names of C++ constants from OpenVINO's documentation of the GPU plug-in, and -1,
  // which AUTO stands for today.
  const bool automatic = value == "GPU_THROUGHPUT_AUTO" || value == "KEY_GPU_THROUGHPUT_AUTO" ||
                         value == "AUTO" || value == "-1";
  const std::optional<unsigned> parsed = automatic ? 0 : to_number(value);
  if (!parsed || (*parsed == 0 && !automatic)) return false;
  config.streams = *parsed;
  config.streams_stated = true;
  return true;
}

bool performance_hint(Config& config, const std::string& value) {
  const bool throughput = value == "THROUGHPUT";
  if (!throughput && value != "LATENCY") return false;
  if (!config.streams_stated && config.streams <= 1) config.streams = throughput ? 0 : 1;
  return true;
}

bool precision(Config& config, const std::string& value) {
  return config.precision_stated = named<&Config::precision, kPrecisions>(config, value);
}

bool execution_mode(Config& config, const std::string& value) {
  const bool accuracy = value == "ACCURACY" || value == "accuracy";
  if (!accuracy && value != "PERFORMANCE" && value != "performance") return false;
  if (!config.precision_stated) config.precision = accuracy ? Precision::f32 : Precision::automatic;
  config.ordered_sums = accuracy;
  return true;
}

// Takes negative numbers, and more threads than the process has processors, as 0, which means one
// thread for each of them.
bool threads(Config& config, const std::string& value) {
  const bool negative = value.size() > 1 && value[0] == '-';
  const std::string digits = negative ? value.substr(1) : value;
  const bool large = digits.size() > 9 && digits.find_first_not_of("0123456789") == digits.npos;
  const std::optional<unsigned> parsed = large ? 0 : to_number(digits);
  if (!parsed) return false;
  config.max_num_threads = negative || *parsed > available_processors() ? 0 : *parsed;
  return true;
}

bool tuning_mode(Config& config, const std::string& value) {
  const bool whole = value.starts_with("TUNING_");
  return named<&Config::tuning_mode, kTuningModes>(config, whole ? value.substr(7) : value);
}

bool target_fallback(Config& config, const std::string& value) {
  if (value.empty()) return false;
  config.device_settings.push_back({"HETERO", "TARGET_FALLBACK", value});
  return true;
}

constexpr std::string_view kYesOrNo = "YES or NO, true or false";
constexpr std::string_view kHint = "0 (DEFAULT), 1 (LOW), 2 (MEDIUM) or 3 (HIGH)";

}  // namespace

const std::vector<Option>& options() {
  using C = Config;
  static const auto& all = *new const std::vector<Option>{
      {"PERF_COUNT",
       {"ENABLE_PROFILING"},
       "perf-count",
       kYesOrNo,
       "times of the layers",
       flag<&C::perf_count>},
      {"THROUGHPUT_STREAMS",
       {"NUM_STREAMS"},
       "throughput-streams",
       "GPU_THROUGHPUT_AUTO or a number from 1",
       "inferences that the device computes at a time",
       streams},
      {"PERFORMANCE_HINT",
       {},
       "",
       "LATENCY or THROUGHPUT (device=MULTI is for CUMULATIVE_THROUGHPUT)",
       "THROUGHPUT: as many streams as AUTO finds, unless their number is stated",
       performance_hint},
      {"DEVICE_TIMEOUT",
       {},
       "device-timeout",
       "milliseconds, or 0 for no limit",
       "how long the device may take for an inference",
       number<&C::device_timeout>},
      {"SHAPE_PLANS",
       {},
       "",
       "a number, or 0 for none",
       "plans that are kept for other shapes of open inputs",
       number<&C::shape_plans>},
      {"AUTO_BATCH_TIMEOUT",
       {},
       "",
       "milliseconds",
       "how long a request of device=BATCH waits for others to fill the batch",
       number<&C::auto_batch_timeout>},
      {"FIRST_TIER",
       {},
       "first-tier",
       kYesOrNo,
       "the host computes until the device's kernels are compiled",
       flag<&C::first_tier>},
      {"MAX_NUM_THREADS",
       {"COMPILATION_NUM_THREADS"},
       "max-num-threads",
       "a number, or -1 for all cores",
       "threads of compilers and of each layer that runs on the host",
       threads},
      {"ENABLE_LOOP_UNROLLING",
       {},
       "",
       kYesOrNo,
       "short loops with a known number of iterations are written out",
       flag<&C::unroll_loops>},
      {"PERSISTENT_KERNEL",
       {},
       "",
       "AUTO, YES or NO",
       "one launch for many kernels; AUTO: where launches cost more than what they compute",
       named<&C::persistent, kPersistent>},
      {"LAUNCH",
       {},
       "",
       "auto, graph or queue",
       "graph: one graph of CUDA's driver for the layers of an inference; queue: each kernel by "
       "OpenCL; auto: graph where CUDA is there, else queue",
       named<&C::launch, kLaunches>},
      {"PLUGIN_PRIORITY",
       {"QUEUE_PRIORITY", "MODEL_PRIORITY"},
       "priority",
       kHint,
       "priority on the device",
       named<&C::priority, kHints>},
      {"PLUGIN_THROTTLE",
       {"QUEUE_THROTTLE"},
       "throttle",
       kHint,
       "how much the driver spares the host",
       named<&C::throttle, kHints>},
      {"EXCLUSIVE_ASYNC_REQUESTS",
       {},
       "exclusive-async-requests",
       kYesOrNo,
       "never beside another exclusive model of the process",
       flag<&C::exclusive>},
      {"CACHE_DIR",
       {},
       "cache-dir",
       "a folder, or nothing for no cache",
       "where compiled programs and graphs are kept",
       text<&C::cache_dir>},
      {"CACHE_MODE",
       {},
       "",
       "OPTIMIZE_SPEED or OPTIMIZE_SIZE",
       "OPTIMIZE_SIZE: that folder gets programs and nothing of the model; the default of models "
       "from "
       "memory",
       named<&C::cache_mode, kCacheModes>},
      {"CACHE_SIZE",
       {},
       "cache-size",
       "MiB, or 0 for no limit",
       "how large that folder may become",
       number<&C::cache_size>},
      {"CONFIG_FILE",
       {},
       "config-file",
       "files, separated by spaces",
       "operations with kernels of your own",
       text<&C::config_file>},
      {"DUMP_KERNELS",
       {},
       "dump-kernels",
       kYesOrNo,
       "writes the programs of those into the working folder",
       flag<&C::dump_kernels>},
      {"GRAPH_DUMPS_DIR",
       {},
       "graph-dumps-dir",
       "a folder",
       "gets the graph after each pass, for Graphviz",
       text<&C::graph_dumps_dir>},
      {"SOURCES_DUMPS_DIR",
       {},
       "sources-dumps-dir",
       "a folder",
       "gets the sources of the programs with their build logs",
       text<&C::sources_dumps_dir>},
      {"NV12_TWO_INPUTS",
       {},
       "",
       kYesOrNo,
       "the picture is two inputs, Y and UV, made BGR on the device",
       flag<&C::nv12_two_inputs>},
      {"ENABLE_FP16_FOR_QUANTIZED_MODELS",
       {},
       "",
       kYesOrNo,
       "NO: the floats of a quantised model are f32",
       flag<&C::fp16_for_quantized_models>},
      {"LP_TRANSFORMS_MODE",
       {},
       "",
       kYesOrNo,
       "NO: FakeQuantize in floats, as the model states it",
       flag<&C::quantized_in_integers>},
      {"TUNING_MODE",
       {},
       "tuning-mode",
       "TUNING_DISABLED, TUNING_CREATE, TUNING_USE_EXISTING, TUNING_UPDATE or TUNING_RETUNE",
       "whether kernels are measured, and what becomes of tuning-file",
       tuning_mode},
      {"TUNING_FILE",
       {},
       "tuning-file",
       "a file",
       "the records of kernels that were measured",
       text<&C::tuning_file>},
      {"TUNING_DB",
       {},
       "",
       kYesOrNo,
       "NO: records shipped with clinfer do not count",
       flag<&C::tuning_db>},
      {"TUNING_SECONDS",
       {},
       "",
       "a number, 0 for no limit",
       "about how long kernels are measured",
       number<&C::tuning_seconds>},
      {"TARGET_FALLBACK",
       {},
       "",
       "devices, best first: GPU,CPU",
       "the devices of HETERO",
       target_fallback},
      {"HETERO_DUMP_GRAPH_DOT",
       {},
       "",
       kYesOrNo,
       "draws HETERO's parts for Graphviz in the working folder",
       flag<&C::hetero_dump_graph_dot>},
      {"INFERENCE_PRECISION",
       {"INFERENCE_PRECISION_HINT"},
       "",
       "f32, f16, bf16 or auto",
       "the type of values between layers",
       precision},
      {"EXECUTION_MODE_HINT",
       {"EXECUTION_MODE"},
       "",
       "PERFORMANCE or ACCURACY",
       "ACCURACY: f32, unless INFERENCE_PRECISION says otherwise, and sums in one order",
       execution_mode},
  };
  return all;
}

}  // namespace clinfer
