// What a model means to the element: which input takes the picture and how, what the other inputs
// get, how the outputs are read. No GStreamer.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "gst/decoders/decoder.h"
#include "gst/infer/settings.h"

namespace clinfer {

struct Network {
  std::shared_ptr<const Model> model;
  std::string name;  // of the model's file, without folder and suffix
  std::vector<std::string> labels;
  size_t image_input = 0;
  int width = 0, height = 0, channels = 3;
  FrameTransform transform;
  std::vector<std::pair<size_t, Tensor>> constants;  // inputs that are the same for all frames
  HeadChoice head;
  DecodeSettings model_defaults;  // thresholds of model_info, else the general ones
};

// Reads the model and settles all of the above. Throws Error that says what does not fit and which
// property to set.
Network describe_network(const Settings& settings);

// The same for a model in memory.
Network describe_network(std::shared_ptr<const Model> model, const Settings& settings);

// Thresholds in force: a property that was set wins.
DecodeSettings decode_settings(const Network& network, const Settings& settings);

Config engine_config(const Network& network, const Settings& settings);

// "KEY=VALUE,KEY=VALUE". Throws Error{bad_argument} on a part without '='.
std::vector<std::pair<std::string, std::string>> parse_config(const std::string& text);

// "1.5" or "1,2,3" (brackets allowed); empty text gives nothing. Throws Error{bad_argument} naming
// `what`.
std::vector<float> parse_numbers(const std::string& text, const std::string& what);

}  // namespace clinfer
