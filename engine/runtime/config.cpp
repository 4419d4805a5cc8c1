// Sets the configuration by the key names of OpenVINO's GPU plug-in.
#include <algorithm>
#include <filesystem>
#include <string_view>

#include "engine/engine.h"
#include "engine/runtime/options.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

// Splits "GPU.1.PERF_COUNT" into the device's name and the key. A key alone gives an empty name.
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

std::string_view without_prefixes(std::string_view key) {
  for (const std::string_view prefix : {"KEY_", "GPU_", "CLDNN_"})
    if (key.starts_with(prefix)) key.remove_prefix(prefix.size());
  return key;
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
    Config().set(rest, value);  // refuses a wrong key or value
    device_settings.push_back({std::move(named), std::string(without_prefixes(rest)), value});
    return;
  }
  const std::string_view name = without_prefixes(key);
  std::string known;
  for (const Option& option : options()) {
    if (option.name == name || std::count(option.aliases.begin(), option.aliases.end(), name) > 0) {
      if (option.set(*this, value)) return;
      throw Error(ErrorCode::bad_argument,
                  "config " + key + "=" + value + ": allowed is " + std::string(option.allowed));
    }
    known += (known.empty() ? "" : ", ") + std::string(option.name);
  }
  known +=
      " (with KEY_, GPU_ or CLDNN_ in front or not; GPU.1.PERF_COUNT is for one device of several)";
  throw Error(ErrorCode::bad_argument, "unknown config key " + key + "; known are " + known);
}

void Config::set_all(const std::string& settings) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t at = 0; at < settings.size();) {
    const size_t end = std::min(settings.find(',', at), settings.size());
    const std::string part(trimmed(std::string_view(settings).substr(at, end - at)));
    at = end + 1;
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    // TARGET_FALLBACK alone takes a list with commas as its value.
    if (equals == std::string::npos && !pairs.empty() &&
        pairs.back().first.ends_with("TARGET_FALLBACK")) {
      pairs.back().second += "," + part;
      continue;
    }
    if (equals == std::string::npos || equals == 0)
      throw Error{ErrorCode::bad_argument, "config: '" + part + "' is not KEY=VALUE"};
    pairs.emplace_back(trimmed(part.substr(0, equals)), trimmed(part.substr(equals + 1)));
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
