// The interpretation of a model: which input takes the picture and how, the values of the other
// inputs, and how the outputs are read.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/heads/base/decoder.h"
#include "engine/heads/classes/gallery.h"
#include "engine/heads/files/beside.h"

namespace clinfer {

enum class ResizeChoice { automatic, stretch, letterbox, crop };
enum class ColorChoice { automatic, bgr, rgb, gray };
// The place of a letterboxed picture in the network's input.
enum class PadPlace { automatic, centered, top_left };

// A user's options for a model. Empty or automatic values are taken from the model, the files
// beside it, or the usual values of its family.
struct ModelOptions {
  std::string model;  // path of a file, or of a folder that holds a model
  // The model's bytes, and those of an IR's weights; null: the file is read. Otherwise `model` is
  // only a name.
  std::shared_ptr<const std::string> data, weights;
  // "WxH", "?xH" (lines of text), "frames=T" or "INDEX_OR_NAME=D,D,...", several separated by ';'
  std::string reshape;
  std::string config_file;   // see Config::config_file
  unsigned clip_length = 0;  // frames of a clip; 0: as the model states
  std::string model_proc;    // path of DL Streamer's description
  std::string labels, labels_file;
  std::string gallery;  // path of known vectors by name (gallery.h)
  ResizeChoice resize_mode = ResizeChoice::automatic;
  ColorChoice color_format = ColorChoice::automatic;
  double crop_share = 0;  // of the centre of the picture; 0: as stated, else all of it
  std::string pad_value;  // around a letterboxed picture; as mean, in 0..255
  PadPlace pad_place = PadPlace::automatic;
  std::string mean, scale;  // numbers separated by commas
  ColorArithmetic color_arithmetic = ColorArithmetic::exact;
  std::string post_process = "auto";
  std::string outputs;  // names of outputs to read, separated by commas; empty: all
};

// A fact that was settled, and its source: "property", "model_info", a file's name, or that it was
// assumed.
struct Fact {
  std::string what, value, source;
};

struct Network {
  std::shared_ptr<const Model> model;
  std::string name;  // of the model's file, without folder and suffix
  std::vector<std::string> labels;
  size_t image_input = 0;
  int width = 0, height = 0, channels = 3;
  int clip_length = 1;  // frames in one inference
  FrameTransform transform;
  float crop_share =
      1;  // of each side of a picture or region, around its centre, taken before `transform`
  std::vector<std::pair<size_t, Tensor>> constants;  // inputs that are the same for all frames
  ModelFacts facts;                                  // on which the choice of the head is based
  HeadChoice head;
  std::shared_ptr<const Gallery> gallery;  // may be null
  std::vector<Fact> origins;          // of labels, resize-mode, colours, mean, scale, thresholds
  std::vector<std::string> warnings;  // for the user: what was guessed, and how to set it
  // Evidence since the model was loaded.
  std::shared_ptr<HeadTrust> trust = std::make_shared<HeadTrust>();
  DecodeSettings model_defaults;  // thresholds of model_info, else the general ones
};

// Reads the model and settles all of the above: a property precedes the model, the model the files
// beside it, those the usual values. Throws Error, which tells what does not fit and which property
// to set.
Network describe_network(const ModelOptions& options);

// Returns the part of a region of a picture that the network gets: all of it, or crop_share of each
// side.
Rect fed_part(const Rect& region, const Network& network);

// Parses ModelOptions::reshape. Throws Error{bad_argument}.
InputShapes input_shapes(const ModelOptions& options);

// Reads the model of the options, with the shapes that they state; if the model leaves these open,
// with the size that a file beside it states. If its graph begins with planes, the model takes a
// picture instead. Throws Error.
std::shared_ptr<const Model> read_model(const ModelOptions& options);

// Returns whether a model that read_model() refuses can be read if a size is given, and finds
// objects in pictures of any size, so that the frame's own size works. Reads the model.
bool leaves_size_open(const ModelOptions& options);

// Returns whether the size that the file states is only the example given to its exporter: too
// small to find anything in, for a detector of faces that takes pictures of any size.
bool states_example_size(const std::shared_ptr<const Model>& model, const ModelOptions& options);

// Returns the size for examining such a model without a frame: the one that a file beside it
// states, else 640x640; "" if it needs a size of its own. Reads the model.
std::string size_for_open(const ModelOptions& options);

// Does the same for a model in memory.
Network describe_network(std::shared_ptr<const Model> model, const ModelOptions& options);

// Decodes one inference. Outputs that contradict the head give raw tensors and no objects; a head
// that all of the first inferences contradict is dropped. Returns lines for the user at the first
// contradiction, when the head is dropped, at the first class without a name and at the first NaN.
// Thread-safe.
std::vector<std::string> read_outputs(const Network& network, std::span<const Tensor> outputs,
                                      const DecodeSettings& settings, bool attach_tensors,
                                      Results& results);

// Describes in several lines the model's inputs and outputs, every head with its fit and reason,
// and the source of each fact.
std::string explain(const Network& network);

// Parses "1.5" or "1,2,3" (brackets allowed); empty text gives nothing. Throws Error{bad_argument},
// which names `what`.
std::vector<float> parse_numbers(const std::string& text, const std::string& what);

}  // namespace clinfer
