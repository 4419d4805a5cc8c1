// From the properties to thresholds and the engine's configuration.
#include "gst/infer/network.h"

#include <algorithm>

#include "gst/infer/properties.h"
#include "kernels/base/precision_text.h"

namespace clinfer {

const char* config_blurb() {
  static const auto& blurb = *new std::string(
      std::string("Engine options as KEY=VALUE,... with the GPU plug-in's key names. ") +
      kPrecisionText);
  return blurb.c_str();
}

std::vector<std::pair<std::string, std::string>> parse_config(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  auto trim = [](std::string part) {
    const size_t first = part.find_first_not_of(" \t");
    return first == std::string::npos
               ? std::string()
               : part.substr(first, part.find_last_not_of(" \t") - first + 1);
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part = trim(text.substr(at, end - at));
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
  return pairs;
}

DecodeSettings decode_settings(const Network& network, const Settings& settings) {
  DecodeSettings decode = network.model_defaults;
  if (settings.threshold) decode.threshold = static_cast<float>(*settings.threshold);
  if (settings.iou_threshold) decode.iou_threshold = static_cast<float>(*settings.iou_threshold);
  decode.max_detections = settings.max_detections;
  decode.attach_tensors = settings.attach_tensors;
  return decode;
}

void settle_config_file(const std::string& config, ModelOptions& options) {
  Config stated;
  for (const auto& [key, value] : parse_config(config)) stated.set(key, value);
  if (!stated.config_file.empty()) options.config_file = stated.config_file;
}

Config engine_config(const Network& network, const Settings& settings) {
  Config config;
  configure(settings, config);
  const auto stated = network.model->inputs()[network.image_input].shape[0];
  config.batch = settings.batch_size == 0        ? kAutoBatch
                 : stated == settings.batch_size ? 0
                                                 : settings.batch_size;
  config.nv12_two_inputs = settings.nv12_two_inputs;
  for (const auto& [key, value] : parse_config(settings.config)) config.set(key, value);
  if (config.tuning_mode.value_or(TuningMode::disabled) != TuningMode::disabled &&
      config.tuning_file.empty())
    throw Error{ErrorCode::bad_argument,
                "tuning-mode needs a file: set tuning-file=FILE.json, it is made by create"};
  return config;
}

}  // namespace clinfer
