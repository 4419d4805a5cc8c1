// The interpretation of a model: which input takes the picture and how, the values of the other
// inputs, and how the outputs are read.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/heads/beside.h"
#include "engine/heads/decoder.h"
#include "engine/heads/gallery.h"

namespace clinfer {

enum class ResizeChoice { automatic, stretch, letterbox, crop };
enum class ColorChoice { automatic, bgr, rgb, gray };

// A user's statements about a model. Empty or automatic values are taken from the model, the files
// beside it, or the usual values of its family.
struct ModelOptions {
  std::string model;  // path of a file, or of a folder that holds one
  // The model's bytes, and those of an IR's weights; null: those of the file. `model` is just a name then.
  std::shared_ptr<const std::string> data, weights;
  // "WxH", "?xH" (lines of text), "frames=T" or "INDEX_OR_NAME=D,D,...", several separated by ';'
  std::string reshape;
  std::string config_file;   // as Config::config_file
  unsigned clip_length = 0;  // frames of a clip; 0: as the model states
  std::string model_proc;    // path of DL Streamer's description
  std::string labels, labels_file;
  std::string gallery;  // path of known vectors by name (gallery.h)
  ResizeChoice resize_mode = ResizeChoice::automatic;
  ColorChoice color_format = ColorChoice::automatic;
  double crop_share = 0;    // of the middle of the picture; 0: as stated, else all of it
  std::string mean, scale;  // numbers, comma separated
  ColorArithmetic color_arithmetic = ColorArithmetic::exact;
  std::string post_process = "auto";
  std::string outputs;  // names of those that are read, comma separated; empty: all
};

// Something that was settled, and what settled it: "property", "model_info", a file's name, or that
// it was assumed.
struct Fact {
  std::string what, value, source;
};

struct Network {
  std::shared_ptr<const Model> model;
  std::string name;  // of the model's file, without folder and suffix
  std::vector<std::string> labels;
  size_t image_input = 0;
  int width = 0, height = 0, channels = 3;
  int clip_length = 1;  // frames of one inference
  FrameTransform transform;
  float crop_share =
      1;  // of each side of a picture or region, about its middle, before `transform`
  std::vector<std::pair<size_t, Tensor>> constants;  // inputs that are the same for all frames
  ModelFacts facts;                                  // what the head was chosen by
  HeadChoice head;
  std::shared_ptr<const Gallery> gallery;  // or none
  std::vector<Fact> origins;          // of labels, resize-mode, colours, mean, scale, thresholds
  std::vector<std::string> warnings;  // for the user: what was guessed, and how to set it
  std::shared_ptr<HeadTrust> trust = std::make_shared<HeadTrust>();  // since the model was loaded
  DecodeSettings model_defaults;  // thresholds of model_info, else the general ones
};

// Reads the model and settles all of the above: a property wins over the model, the model over the
// files beside it, those over what is usual. Throws Error that says what does not fit and which
// property to set.
Network describe_network(const ModelOptions& options);

// The part of a region of a picture that the network gets: all of it, or crop_share of each side.
Rect fed_part(const Rect& region, const Network& network);

// Parses ModelOptions::reshape. Throws Error{bad_argument}.
InputShapes input_shapes(const ModelOptions& options);

// The model of the options, in the shapes that they wish, else in the size that a file beside it
// states where it leaves that open; it takes a picture where its graph begins
// with planes. Throws Error.
std::shared_ptr<const Model> read_model(const ModelOptions& options);

// Whether a model that read_model() refuses can be read where a size is given, and finds things in
// pictures of any size, so that the frame's own size serves. Reads the model.
bool leaves_size_open(const ModelOptions& options);

// Whether the size that the file states is the example that its exporter was given: too small to find
// anything in, for a detector of faces that takes pictures of any size.
bool states_example_size(const std::shared_ptr<const Model>& model, const ModelOptions& options);

// The size in which to look at such a model without a frame: what a file beside it states, else 640x640;
// "" where it wants a size of its own. Reads the model.
std::string size_for_open(const ModelOptions& options);

// As describe_network() above, for a model in memory.
Network describe_network(std::shared_ptr<const Model> model, const ModelOptions& options);

// Decodes one inference. Outputs that contradict the head give raw tensors and no objects; a head
// that all of the first inferences contradict is dropped. Returns lines for the user at the first
// contradiction, when the head is dropped, at the first class without a name and at the first NaN.
// Safe to use from any thread.
std::vector<std::string> read_outputs(const Network& network, std::span<const Tensor> outputs,
                                      const DecodeSettings& settings, bool attach_tensors,
                                      Results& results);

// Describes in several lines the model's inputs and outputs, every head with its fit and reason,
// and the source of each fact.
std::string explain(const Network& network);

// "1.5" or "1,2,3" (brackets allowed); empty text gives nothing. Throws Error{bad_argument} naming
// `what`.
std::vector<float> parse_numbers(const std::string& text, const std::string& what);

}  // namespace clinfer
