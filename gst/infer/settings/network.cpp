// Turns the properties into thresholds and the engine's configuration.
#include "gst/infer/settings/network.h"

#include <algorithm>

#include "gst/infer/settings/properties.h"
#include "gst/meta/analytics.h"
#include "kernels/base/precision_text.h"

namespace clinfer {

const char* config_blurb() {
  static const auto& blurb = *new std::string(
      std::string("Engine options as KEY=VALUE,... with the GPU plug-in's key names. ") +
      kPrecisionText);
  return blurb.c_str();
}

DecodeSettings decode_settings(const Network& network, const Settings& settings) {
  DecodeSettings decode = network.model_defaults;
  if (settings.threshold) decode.threshold = static_cast<float>(*settings.threshold);
  if (settings.iou_threshold) {
    decode.iou_threshold = static_cast<float>(*settings.iou_threshold);
    decode.suppress_all = true;
  }
  decode.max_detections = settings.max_detections;
  decode.attach_tensors = settings.attach_tensors;
  return decode;
}

void settle_config_file(const std::string& config, ModelOptions& options) {
  Config stated;
  stated.set_all(config);
  if (stated.config_file.empty()) stated.config_file = options.config_file;
  options.config_file = stated.config_files();
}

Config engine_config(const Network& network, const Settings& settings) {
  Config config;
  configure(settings, config);
  const auto stated = network.model->inputs()[network.image_input].shape[0];
  config.batch = settings.batch_size == 0        ? kAutoBatch
                 : stated == settings.batch_size ? 0
                                                 : settings.batch_size;
  const bool whole = settings.inference_region == RegionChoice::full_frame &&
                     settings.regions.empty() && settings.tiles.empty();
  if (!whole && !network.model->states().empty())
    throw Error{ErrorCode::unsupported,
                network.model->path() +
                    " keeps states from one frame to the next, which parts of a frame would mix: "
                    "leave out inference-region, regions and tiles"};
  if (settings.verify != 0 && !network.model->states().empty())
    throw Error{ErrorCode::unsupported,
                network.model->path() +
                    " keeps states from one frame to the next, without which a frame cannot be "
                    "computed again: leave out verify"};
  if (!settings.roi_meta && !has_analytics())
    throw Error{
        ErrorCode::unsupported,
        "roi-meta=false needs a clinfer that is built with GStreamer 1.24 or newer: leave it "
        "out"};
  config.nv12_two_inputs = settings.nv12_two_inputs;
  config.set_all(settings.config);
  if (config.tuning_mode.value_or(TuningMode::disabled) != TuningMode::disabled &&
      config.tuning_file.empty())
    throw Error{ErrorCode::bad_argument,
                "tuning-mode needs a file: set tuning-file=FILE.json, it is made by create"};
  return config;
}

}  // namespace clinfer
