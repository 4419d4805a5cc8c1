// What a model means: which input takes the picture and how, what the other inputs get, how the
// outputs are read.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/heads/decoder.h"

namespace clinfer {

enum class ResizeChoice { automatic, stretch, letterbox, crop };
enum class ColorChoice { automatic, bgr, rgb, gray };

// What a user says about a model. Empty and automatic: left to the model, the files beside it and
// what its family is known for.
struct ModelOptions {
  std::string model;  // path
  std::string labels, labels_file;
  ResizeChoice resize_mode = ResizeChoice::automatic;
  ColorChoice color_format = ColorChoice::automatic;
  std::string mean, scale;  // numbers, comma separated
  std::string post_process = "auto";
};

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
Network describe_network(const ModelOptions& options);

// The same for a model in memory.
Network describe_network(std::shared_ptr<const Model> model, const ModelOptions& options);

// "1.5" or "1,2,3" (brackets allowed); empty text gives nothing. Throws Error{bad_argument} naming
// `what`.
std::vector<float> parse_numbers(const std::string& text, const std::string& what);

}  // namespace clinfer
