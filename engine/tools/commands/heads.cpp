// clinfer heads: reports how the element reads a model's outputs and why, and what that gives on a
// picture.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

#include "engine/heads/network.h"
#include "engine/tools/commands.h"
#include "engine/tools/output/text.h"
#include "engine/tools/video/elements.h"
#include "kernels/base/text.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;

ModelOptions options_of(const Arguments& arguments) {
  ModelOptions options;
  options.model = arguments.positional(0);
  options.model_proc = arguments.value("--model-proc").value_or("");
  options.labels_file = arguments.value("--labels-file").value_or("");
  options.post_process = arguments.value("--post-process").value_or("auto");
  options.outputs = arguments.value("--outputs").value_or("");
  for (const std::string& text : arguments.all("--reshape"))
    options.reshape += (options.reshape.empty() ? "" : ";") + text;
  options.config_file = read_config(arguments).config_files();
  return options;
}

constexpr const char* kNeeds =
    "the elements clinfer, clpublish and cloverlay (set GST_PLUGIN_PATH), pngenc and a decoder of "
    "the "
    "picture (pngdec, jpegdec ...)";

bool is_picture(const std::string& file) {
  std::string suffix = fs::path(file).extension().string();
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* known : {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"})
    if (suffix == known) return true;
  return false;
}

// Escapes the name as a format of printf(), which elements for numbered files take.
std::string pattern(const std::string& file) {
  std::string text;
  for (const char c : file) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

void decode(const std::string& file, std::vector<std::string>& words) {
  append(words, {"filesrc", assignment("location", file), "!", "decodebin", "!", "videoconvert",
                 "!", "video/x-raw,format=RGB"});
}

// Adds clinfer with these options, and elements that write a drawn picture; of several pictures the
// last one stays.
void infer_and_draw(const ModelOptions& options, const Arguments& arguments,
                    const std::string& drawn, std::vector<std::string>& words) {
  append(words, {"clinfer", assignment("model", arguments.positional(0))});
  for (const auto& [option, property] : {std::pair{"--device", "device"},
                                         {"--model-proc", "model-proc"},
                                         {"--labels-file", "labels-file"},
                                         {"--post-process", "post-process"},
                                         {"--outputs", "outputs"}})
    if (const auto value = arguments.value(option)) words.push_back(assignment(property, *value));
  if (arguments.share("--threshold"))
    words.push_back(assignment("threshold", *arguments.value("--threshold")));
  if (!options.reshape.empty()) words.push_back(assignment("reshape", options.reshape));
  std::string config;
  for (const std::string& setting : arguments.all("--config"))
    config += (config.empty() ? "" : ",") + setting;
  if (!config.empty()) words.push_back(assignment("config", config));
  append(words, {"!", "clpublish", "!", "cloverlay", "!", "videoconvert", "!", "pngenc", "!",
                 "multifilesink", assignment("location", pattern(drawn))});
}

// Return the name, or the pattern, of numbered pictures in a folder.
std::string picture(const Folder& folder, int number) {
  return folder.file(std::to_string(number) + ".png");
}
std::string pictures(const Folder& folder) { return pattern(folder.file("")) + "%d.png"; }

// Writes the first `count` frames of a video, numbered from 0. A decoder may write more.
void unpack(const std::string& video, int count, const Folder& folder) {
  std::vector<std::string> words;
  decode(video, words);
  append(words,
         {"!", "identity", "eos-after=" + std::to_string(count + 1), "!", "pngenc",
          "compression-level=1", "!", "multifilesink", assignment("location", pictures(folder))});
  run_elements(words, kNeeds);
  std::error_code error;
  if (!fs::is_regular_file(picture(folder, count - 1), error))
    throw Error{ErrorCode::bad_argument, video + " has fewer than " + std::to_string(count) +
                                             " frames, which the network takes at a time"};
}

void show_frames(const Folder& folder, const ModelOptions& options, int count,
                 const std::string& drawn, const Arguments& arguments) {
  std::vector<std::string> words = {"multifilesrc",
                                    assignment("location", pictures(folder)),
                                    "stop-index=" + std::to_string(count - 1),
                                    "caps=image/png,framerate=25/1",
                                    "!",
                                    "pngdec",
                                    "!",
                                    "videoconvert",
                                    "!",
                                    "video/x-raw,format=RGB",
                                    "!"};
  infer_and_draw(options, arguments, drawn, words);
  run_elements(words, kNeeds);
}

// Shows a picture, which stands for all frames of a clip, or the first frames of a video.
void show_file(const std::string& file, const ModelOptions& options, int clip_length,
               const std::string& drawn, const Arguments& arguments) {
  std::vector<std::string> words;
  if (is_picture(file) || clip_length == 1) {
    decode(file, words);
    append(words, {"!", "imagefreeze", "num-buffers=" + std::to_string(clip_length), "!"});
    infer_and_draw(options, arguments, drawn, words);
    run_elements(words, kNeeds);
    return;
  }
  const Folder folder;
  unpack(file, clip_length, folder);
  show_frames(folder, options, clip_length, drawn, arguments);
}

// Shows pictures that are the frames of one clip.
void show_clip(const std::vector<std::string>& files, const ModelOptions& options,
               const std::string& drawn, const Arguments& arguments) {
  const Folder folder;
  int number = 0;
  for (const std::string& file : files) {
    std::vector<std::string> words;
    decode(file, words);
    append(words, {"!", "imagefreeze", "num-buffers=1", "!", "pngenc", "compression-level=1", "!",
                   "filesink", assignment("location", picture(folder, number++))});
    run_elements(words, kNeeds);
  }
  show_frames(folder, options, number, drawn, arguments);
}

// Prints where a picture was drawn: to stdout, or to stderr if stdout has only JSON.
void say_drawn(const std::string& file, const Arguments& arguments) {
  (arguments.has("--json") ? std::cerr : std::cout) << "drawn: " << file << "\n" << std::flush;
}

void show_images(const std::vector<std::string>& images, const ModelOptions& options,
                 int clip_length, const Arguments& arguments) {
  for (const std::string& image : images)
    if (std::error_code error; !fs::is_regular_file(image, error))
      throw Error{ErrorCode::not_found, "--image " + image + " is not a file"};
  const auto drawn_name = [](const std::string& image) {
    return fs::path(image).stem().string() + ".heads.png";
  };
  const auto drawn = arguments.value("--drawn");
  const bool clip = clip_length > 1 && images.size() > 1;
  if (clip && images.size() != static_cast<size_t>(clip_length))
    throw Error{ErrorCode::bad_argument,
                "the network takes clips of " + std::to_string(clip_length) +
                    " frames: give as many pictures of one size, or one picture or video"};
  if (!clip && images.size() > 1 && drawn)
    throw Error{ErrorCode::bad_argument, "--drawn names one picture, and there are " +
                                             std::to_string(images.size()) +
                                             "; without it each gets its own name"};
  if (clip) {
    const std::string file = drawn.value_or(drawn_name(images.back()));
    show_clip(images, options, file, arguments);
    say_drawn(file, arguments);
    return;
  }
  std::set<std::string> names;
  for (const std::string& image : images)
    if (!names.insert(drawn_name(image)).second)
      throw Error{ErrorCode::bad_argument, "two pictures would be drawn in " + drawn_name(image) +
                                               ": show them one by one, each with --drawn"};
  for (const std::string& image : images) {
    const std::string file = drawn.value_or(drawn_name(image));
    show_file(image, options, clip_length, file, arguments);
    say_drawn(file, arguments);
  }
}

std::string json_of(const Port& port, const char* more, const std::string& value) {
  return json_object({{"name", json_quoted(port.name)},
                      {"type", json_quoted(name_of(port.type))},
                      {"shape", to_string(port.shape)},
                      {more, json_quoted(value)}});
}

// Returns the output of explain() as one line of JSON.
std::string json_of(const Network& network) {
  const Model& model = *network.model;
  std::vector<std::string> inputs, outputs, heads, facts;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const bool constant = std::any_of(network.constants.begin(), network.constants.end(),
                                      [&](const auto& other) { return other.first == i; });
    inputs.push_back(json_of(model.inputs()[i], "fed",
                             i != network.image_input  ? constant ? "constant" : ""
                             : network.clip_length > 1 ? "frames"
                                                       : "picture"));
  }
  for (size_t i = 0; i < model.outputs().size(); ++i)
    outputs.push_back(json_of(model.outputs()[i], "operation", model.output_op(i)));
  for (const HeadFit& fit : network.head.considered)
    heads.push_back(json_object({{"name", json_quoted(fit.name)},
                                 {"fit", json_quoted(name_of(fit.fit))},
                                 {"reason", json_quoted(fit.reason)}}));
  for (const Fact& fact : network.origins)
    facts.push_back(json_object({{"what", json_quoted(fact.what)},
                                 {"value", json_quoted(fact.value)},
                                 {"source", json_quoted(fact.source)}}));
  return json_object({{"model", json_quoted(model.path())},
                      {"inputs", json_array(inputs)},
                      {"outputs", json_array(outputs)},
                      {"head", json_quoted(network.head.name)},
                      {"reason", json_quoted(network.head.reason)},
                      {"guess", json_flag(network.head.attach_tensors)},
                      {"considered", json_array(heads)},
                      {"facts", json_array(facts)},
                      {"warnings", json_strings(network.warnings)}}) +
         "\n";
}

// Describes a model that leaves its size open for a size that works.
Network describe(ModelOptions options, const Arguments& arguments) {
  try {
    return describe_network(options);
  } catch (const Error&) {
    options.reshape = size_for_open(arguments);
    if (options.reshape.empty()) throw;
    return describe_network(options);
  }
}

void run_heads(const Arguments& arguments) {
  const ModelOptions options = options_of(arguments);
  const Network network = describe(options, arguments);
  say_notes(*network.model);
  std::cout << (arguments.has("--json") ? json_of(network) : explain(network)) << std::flush;
  if (const auto images = arguments.all("--image"); !images.empty())
    show_images(images, options, network.clip_length, arguments);
}

}  // namespace

Command heads_command() {
  return {{"heads",
           "how a model's outputs are read and why; with pictures, what that gives",
           {"MODEL"},
           {{"--image", "F",
             "run the elements on a picture, or on the first frame (or clip) of a video: JSON "
             "lines and "
             "a drawn PNG; several are several pictures, or the frames of one clip"},
            {"--drawn", "F.png", "where that is written (default: the picture's name .heads.png)"},
            {"--post-process", "HEAD", "the head to use, or none; default: auto"},
            {"--outputs", "NAME,NAME", "the outputs that are read; default: all"},
            {"--model-proc", "F.json", "DL Streamer's description of the model"},
            {"--labels-file", "F", "one class name per line"},
            {"--threshold", "T", "least confidence of an object, with --image"},
            {"--json", "", "the description as one line of JSON, before the lines of pictures"},
            device_option(),
            reshape_option(),
            config_option()}},
          run_heads};
}

}  // namespace clinfer
