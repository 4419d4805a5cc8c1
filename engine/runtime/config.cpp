// Configuration by the GPU plug-in's key names.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "engine/engine.h"
#include "kernels/base/processors.h"

namespace clinfer {

namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& value,
                         const std::string& allowed, SourcePlace place = SourcePlace::here()) {
  throw Error(ErrorCode::bad_argument, "config " + key + "=" + value + ": allowed is " + allowed,
              place);
}

bool yes_no(const std::string& key, const std::string& value) {
  if (value == "YES") return true;
  if (value == "NO") return false;
  refuse(key, value, "YES or NO");
}

unsigned number(const std::string& key, const std::string& value, const std::string& allowed) {
  unsigned parsed = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (error != std::errc() || end != value.data() + value.size() || value.empty())
    refuse(key, value, allowed);
  return parsed;
}

QueueHint hint(const std::string& key, const std::string& value) {
  static const std::vector<std::string> kNames = {"DEFAULT", "LOW", "MEDIUM", "HIGH"};
  for (size_t i = 0; i < kNames.size(); ++i)
    if (value == kNames[i] || value == std::to_string(i)) return static_cast<QueueHint>(i);
  refuse(key, value, "0 (DEFAULT), 1 (LOW), 2 (MEDIUM) or 3 (HIGH)");
}

struct Key {
  std::string name;  // without KEY_, GPU_ and CLDNN_
  void (*set)(Config&, const std::string& key, const std::string& value);
};

const std::vector<Key>& keys() {
  static const std::vector<Key> all = {
      {"PERF_COUNT",
       [](Config& c, const std::string& k, const std::string& v) { c.perf_count = yes_no(k, v); }},
      {"THROUGHPUT_STREAMS",
       [](Config& c, const std::string& k, const std::string& v) {
         const std::string allowed = "GPU_THROUGHPUT_AUTO or a number from 1";
         // The GPU plug-in's page writes the value as its constant in C++, too.
         const bool automatic =
             v == "GPU_THROUGHPUT_AUTO" || v == "KEY_GPU_THROUGHPUT_AUTO" || v == "AUTO";
         c.streams = automatic ? 0 : number(k, v, allowed);
         if (c.streams == 0 && !automatic) refuse(k, v, allowed);
       }},
      {"DEVICE_TIMEOUT",
       [](Config& c, const std::string& k, const std::string& v) {
         c.device_timeout =
             std::chrono::milliseconds(number(k, v, "milliseconds, or 0 for no limit"));
       }},
      {"FIRST_TIER",
       [](Config& c, const std::string& k, const std::string& v) { c.first_tier = yes_no(k, v); }},
      {"MAX_NUM_THREADS",
       [](Config& c, const std::string& k, const std::string& v) {
         // More than the processors that may be used, and what is below zero, are as many as
         // those, which 0 stands for, too.
         const bool negative = v.size() > 1 && v[0] == '-';
         const std::string digits = negative ? v.substr(1) : v;
         const bool large = digits.size() > 9 && digits.find_first_not_of("0123456789") == v.npos;
         const unsigned count = large ? 0 : number(k, digits, "a number, or -1 for all cores");
         c.max_num_threads = negative ? 0 : count;
         if (c.max_num_threads > available_processors()) c.max_num_threads = 0;
       }},
      {"ENABLE_LOOP_UNROLLING", [](Config& c, const std::string& k,
                                   const std::string& v) { c.unroll_loops = yes_no(k, v); }},
      {"PERSISTENT_KERNEL",
       [](Config& c, const std::string& k, const std::string& v) {
         c.persistent = v == "AUTO"    ? Config::Persistent::automatic
                        : yes_no(k, v) ? Config::Persistent::yes
                                       : Config::Persistent::no;
       }},
      {"PLUGIN_PRIORITY",
       [](Config& c, const std::string& k, const std::string& v) { c.priority = hint(k, v); }},
      {"PLUGIN_THROTTLE",
       [](Config& c, const std::string& k, const std::string& v) { c.throttle = hint(k, v); }},
      {"EXCLUSIVE_ASYNC_REQUESTS",
       [](Config& c, const std::string& k, const std::string& v) { c.exclusive = yes_no(k, v); }},
      {"CACHE_DIR", [](Config& c, const std::string&, const std::string& v) { c.cache_dir = v; }},
      {"CACHE_SIZE",
       [](Config& c, const std::string& k, const std::string& v) {
         c.cache_size = number(k, v, "MiB, or 0 for no limit");
       }},
      {"CONFIG_FILE",
       [](Config& c, const std::string&, const std::string& v) { c.config_file = v; }},
      {"DUMP_KERNELS", [](Config& c, const std::string& k,
                          const std::string& v) { c.dump_kernels = yes_no(k, v); }},
      {"GRAPH_DUMPS_DIR",
       [](Config& c, const std::string&, const std::string& v) { c.graph_dumps_dir = v; }},
      {"SOURCES_DUMPS_DIR",
       [](Config& c, const std::string&, const std::string& v) { c.sources_dumps_dir = v; }},
      {"NV12_TWO_INPUTS", [](Config& c, const std::string& k,
                             const std::string& v) { c.nv12_two_inputs = yes_no(k, v); }},
      {"ENABLE_FP16_FOR_QUANTIZED_MODELS",
       [](Config& c, const std::string& k, const std::string& v) {
         c.fp16_for_quantized_models = yes_no(k, v);
       }},
      {"LP_TRANSFORMS_MODE", [](Config& c, const std::string& k,
                                const std::string& v) { c.quantized_in_integers = yes_no(k, v); }},
      {"TUNING_MODE",
       [](Config& c, const std::string& k, const std::string& v) {
         static const std::pair<const char*, TuningMode> kModes[] = {
             {"DISABLED", TuningMode::disabled},
             {"CREATE", TuningMode::create},
             {"USE_EXISTING", TuningMode::use_existing},
             {"UPDATE", TuningMode::update},
             {"RETUNE", TuningMode::retune}};
         const std::string name = v.rfind("TUNING_", 0) == 0 ? v.substr(7) : v;
         for (const auto& [text, mode] : kModes)
           if (name == text) {
             c.tuning_mode = mode;
             return;
           }
         refuse(
             k, v,
             "TUNING_DISABLED, TUNING_CREATE, TUNING_USE_EXISTING, TUNING_UPDATE or TUNING_RETUNE");
       }},
      {"TUNING_FILE",
       [](Config& c, const std::string&, const std::string& v) { c.tuning_file = v; }},
      {"TUNING_DB",
       [](Config& c, const std::string& k, const std::string& v) { c.tuning_db = yes_no(k, v); }},
      {"TUNING_SECONDS",
       [](Config& c, const std::string& k, const std::string& v) {
         c.tuning_seconds = number(k, v, "a number, 0 for no limit");
       }},
      {"TARGET_FALLBACK",
       [](Config& c, const std::string& k, const std::string& v) {
         if (v.empty()) refuse(k, v, "devices, best first: GPU,CPU");
         c.device_settings.push_back({"HETERO", "TARGET_FALLBACK", v});
       }},
      {"HETERO_DUMP_GRAPH_DOT",
       [](Config& c, const std::string& k, const std::string& v) {
         c.hetero_dump_graph_dot = yes_no(k, v);
       }},
      {"INFERENCE_PRECISION",
       [](Config& c, const std::string& k, const std::string& v) {
         if (v == "f32")
           c.precision = Precision::f32;
         else if (v == "f16")
           c.precision = Precision::f16;
         else if (v == "bf16")
           c.precision = Precision::bf16;
         else if (v == "auto")
           c.precision = Precision::automatic;
         else
           refuse(k, v, "f32, f16, bf16 or auto");
       }},
  };
  return all;
}

}  // namespace

namespace {

// "GPU.1.PERF_COUNT": the device's name and the key; a key alone gives an empty name.
std::pair<std::string, std::string> split_device(const std::string& key) {
  const size_t last = key.rfind('.');
  if (last == std::string::npos) return {"", key};
  std::string device = key.substr(0, last);
  const std::string kind = device.substr(0, 3), number = device.substr(3);
  const bool named = (kind == "GPU" || kind == "CPU") &&
                     (number.empty() || (number.size() > 1 && number[0] == '.' &&
                                         number.find_first_not_of("0123456789", 1) == number.npos));
  if (!named) return {"", key};
  return {std::move(device), key.substr(last + 1)};
}

}  // namespace

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::automatic:
      return "auto";
    case Precision::f32:
      return "f32";
    case Precision::f16:
      return "f16";
    case Precision::bf16:
      return "bf16";
  }
  return "";
}

void Config::set(const std::string& key, const std::string& value) {
  if (auto [named, rest] = split_device(key); !named.empty()) {
    Config().set(rest, value);  // is refused as it is elsewhere
    device_settings.push_back({std::move(named), std::move(rest), value});
    return;
  }
  std::string name = key;
  for (const std::string prefix : {"KEY_", "GPU_", "CLDNN_"})
    if (name.rfind(prefix, 0) == 0) name = name.substr(prefix.size());
  if (name == "INFERENCE_PRECISION_HINT") name = "INFERENCE_PRECISION";
  if (name == "QUEUE_PRIORITY") name = "PLUGIN_PRIORITY";
  if (name == "QUEUE_THROTTLE") name = "PLUGIN_THROTTLE";
  std::string known;
  for (const Key& candidate : keys()) {
    if (candidate.name == name) return candidate.set(*this, key, value);
    known += (known.empty() ? "" : ", ") + candidate.name;
  }
  known +=
      " (with KEY_, GPU_ or CLDNN_ in front or not; GPU.1.PERF_COUNT is for one device of several)";
  throw Error(ErrorCode::bad_argument, "unknown config key " + key + "; known are " + known);
}

void Config::set_all(const std::string& settings) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto trim = [](const std::string& part) {
    const size_t first = part.find_first_not_of(" \t");
    return first == std::string::npos
               ? std::string()
               : part.substr(first, part.find_last_not_of(" \t") - first + 1);
  };
  for (size_t at = 0; at < settings.size();) {
    const size_t end = std::min(settings.find(',', at), settings.size());
    const std::string part = trim(settings.substr(at, end - at));
    at = end + 1;
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    // The one key whose value is a list with commas.
    if (equals == std::string::npos && !pairs.empty() &&
        pairs.back().first.ends_with("TARGET_FALLBACK")) {
      pairs.back().second += "," + part;
      continue;
    }
    if (equals == std::string::npos || equals == 0)
      throw Error{ErrorCode::bad_argument, "config: '" + part + "' is not KEY=VALUE"};
    pairs.emplace_back(trim(part.substr(0, equals)), trim(part.substr(equals + 1)));
  }
  for (const auto& [key, value] : pairs) set(key, value);
}

TuningMode Config::tuning_mode_in_force() const {
  if (tuning_mode) return *tuning_mode;
  std::error_code cannot_tell;
  const bool is_there = !tuning_file.empty() && std::filesystem::exists(tuning_file, cannot_tell);
  return is_there ? TuningMode::use_existing : TuningMode::disabled;
}

}  // namespace clinfer
