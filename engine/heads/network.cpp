// Settles how a model is used, from its rt_info and the options.
#include "engine/heads/network.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/files/beside.h"
#include "engine/heads/files/labels.h"
#include "engine/heads/picture.h"
#include "kernels/base/log.h"
#include "kernels/base/text.h"

namespace clinfer {
namespace {

std::string describe_inputs(const Model& model) {
  std::string text;
  for (const Port& port : model.inputs())
    text += (text.empty() ? "" : ", ") + port.name + " " + to_string(port.shape);
  return text;
}

// Returns the value of a further input, by its name and size: the picture size for detectors, so
// that boxes are in pixels of the network's input; sequence marks for recognisers.
Tensor constant_input(const Port& port, const ImageShape& image, const Model& model) {
  const int64_t n = count(port.shape);
  const std::string name = lower(port.name);
  auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  const float height = static_cast<float>(image.height), width = static_cast<float>(image.width);
  std::vector<float> values;
  if (has("orig") && has("size") && n == 2) {  // RT-DETR and similar networks: width first
    values = {width, height};
  } else if (has("info") && (n == 3 || n == 6)) {
    values.assign(static_cast<size_t>(n), 1.0f);
    values[0] = height;
    values[1] = width;
  } else if ((has("shape") || has("size")) && n == 2) {
    values = {height, width};
  } else if (has("mask") && n >= 1 && n <= 1 << 24) {
    // All of the picture is valid: transformers' pixel_mask [N,H,W] is 1 there; a mask that is a
    // picture itself (LSTR's) has 0 there and marks padding.
    values.assign(static_cast<size_t>(n), port.shape.size() == 4 ? 0.0f : 1.0f);
  } else if (has("scale") && n == 2) {
    values = {1, 1};
  } else if (has("seq") && n >= 1 && n <= 4096) {  // CTCGreedyDecoder ends at the first 0
    values.assign(static_cast<size_t>(n), 1.0f);
  } else {
    throw Error{ErrorCode::unsupported, model.path() + ": nothing is known to feed input " +
                                            port.name + " " + to_string(port.shape) +
                                            " with; inputs are " + describe_inputs(model)};
  }
  return Tensor::of<float>(ElementType::f32, port.shape, values);
}

// Leaves only the input with colours in `images`, if the names of the others, with one channel, say
// that they are masks.
void drop_masks(const Model& model, std::vector<size_t>& images) {
  std::vector<size_t> colours;
  for (const size_t i : images) {
    const Port& port = model.inputs()[i];
    const bool mask =
        image_shape(port).channels == 1 && lower(port.name).find("mask") != std::string::npos;
    if (!mask) colours.push_back(i);
  }
  if (colours.size() == 1) images = colours;
}

// Returns the part of rt_info below model_info.
std::map<std::string, std::string> model_info_of(const Model& model) {
  const std::string prefix = "model_info/";
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : model.rt_info())
    if (key.rfind(prefix, 0) == 0) found[key.substr(prefix.size())] = value;
  return found;
}

// Prefers a tensor name if the converter has numbered its layers ("485", "Add_485").
void prefer_words(OutputFacts& output) {
  const auto is_number = [&](const std::string& name) {
    const std::string numbered = output.op + "_";
    const size_t from = name.rfind(numbered, 0) == 0 ? numbered.size() : 0;
    return name.find_first_not_of("0123456789", from) == std::string::npos;
  };
  if (!is_number(output.name)) return;
  for (std::string& alias : output.aliases) {
    if (is_number(alias)) continue;
    std::swap(alias, output.name);
    return;
  }
}

// Returns a number between 0 and 1, or `otherwise`.
float share_of(const StatedFacts& facts, const char* key, float otherwise,
               std::vector<Fact>& origins) {
  const auto found = facts.info.find(key);
  if (found == facts.info.end()) return otherwise;
  const std::vector<float> value = parse_numbers(found->second, key);
  if (value.size() != 1 || !(value[0] >= 0) || !(value[0] <= 1)) return otherwise;
  origins.push_back({key, found->second, facts.source_of(key)});
  return value[0];
}

// Joins facts: model-proc precedes the model, which precedes the files beside it.
StatedFacts stated_facts(const Model& model, const BesideFacts& proc, const BesideFacts& framework,
                         const BesideFacts& beside) {
  StatedFacts facts;
  facts.info = proc.info;
  facts.sources = proc.sources;
  for (const auto& [key, value] : model_info_of(model))
    if (facts.info.emplace(key, value).second) facts.sources[key] = "model_info";
  for (const BesideFacts* more : {&framework, &beside})
    for (const auto& [key, value] : more->info)
      if (facts.info.emplace(key, value).second) facts.sources[key] = more->sources.at(key);
  return facts;
}

struct Labels {
  std::vector<std::string> names;
  std::string source;
  bool own = true;
  bool numbered = false;  // true if the file itself numbers the names
};
Labels settle_labels(const ModelOptions& options, const BesideFacts& proc, const Model& model,
                     const BesideFacts& framework, const BesideFacts& beside) {
  if (!options.labels_file.empty()) {
    Labels labels{{}, "property labels-file", false};
    labels.names = read_labels(options.labels_file, &labels.numbered);
    return labels;
  }
  if (!options.labels.empty()) return {parse_labels(options.labels), "property labels", false};
  if (!proc.labels.empty()) return {proc.labels, proc.labels_source, true};
  const auto info = model_info_of(model);
  if (const auto found = info.find("labels"); found != info.end())
    if (std::vector<std::string> names = parse_model_labels(found->second); !names.empty())
      return {std::move(names), "model_info", true};
  if (!framework.labels.empty()) return {framework.labels, framework.labels_source, true};
  return {beside.labels, beside.labels_source, beside.sure_labels,
          beside.info.count("labels_numbered") != 0};
}

// Returns whether a dictionary in an ONNX file's metadata does not belong to its outputs: PP-OCR's
// models for tables and formulas hold one, too. Recognisers have a class for each character, the
// blank and the space; or give the characters' numbers.
bool has_foreign_dictionary(const Model& model, const ModelFacts& facts) {
  if (model.rt_info().count("metadata_props/character") == 0 ||
      facts.model_info.count("model_type") == 0 ||
      facts.model_info.at("model_type") != "text_recognition")
    return false;
  const auto characters = static_cast<int64_t>(facts.labels.size());
  return std::none_of(facts.outputs.begin(), facts.outputs.end(), [&](const OutputFacts& output) {
    return !is_float_output(output) ||
           std::any_of(output.shape.begin(), output.shape.end(),
                       [&](int64_t d) { return d >= characters && d <= characters + 2; });
  });
}

// Finds the dictionary of a network that gives scores of characters in steps, if no labels are
// known: the only file beside it with such a name and as many lines as there are classes, with or
// without the blank and the space that decoders add.
void take_dictionary(Network& network) {
  ModelFacts& facts = network.facts;
  if (!facts.labels.empty() || facts.outputs.size() != 1) return;
  OutputFacts steps = facts.outputs[0];  // [1,T,C] or [T,1,C]
  if (steps.shape.size() == 3 && steps.shape[1] == 1) std::swap(steps.shape[0], steps.shape[1]);
  const auto table = steps.shape.size() == 3 ? table_of(steps) : std::nullopt;
  if (!table || table->rows < 2) return;
  std::string file;
  std::vector<std::string> names;
  for (const std::string& path : dictionaries_beside(network.model->path())) {
    std::vector<std::string> lines;
    try {
      lines = read_labels(path);
    } catch (const Error&) {
      continue;  // the file is something else
    }
    if (lines.size() > table->columns || lines.size() + 3 < table->columns) continue;
    if (!file.empty()) return;
    file = path;
    names = std::move(lines);
  }
  if (file.empty()) return;
  const std::string name = std::filesystem::path(file).filename().string();
  network.warnings.push_back(
      "the dictionary " + name +
      " is taken, which alone beside the model has as many characters as the outputs (" +
      std::to_string(names.size()) + " of " + std::to_string(table->columns) +
      " classes); set labels-file where it is another");
  network.origins.push_back({"labels", std::to_string(names.size()) + " names", name});
  facts.own_labels = false;
  facts.labels = network.labels = std::move(names);
}

// Returns whether a model or its folder has a name like those of Open Model Zoo's own networks:
// "road-segmentation-adas-0001", or with underscores.
bool of_open_model_zoo(const std::string& path) {
  std::string name = lower(path);
  std::replace(name.begin(), name.end(), '_', '-');
  for (const std::string task : {"-adas-", "-retail-", "-barrier-", "-crossroad-"}) {
    const size_t at = name.rfind(task);
    if (at == std::string::npos) continue;
    const size_t from = at + task.size();
    const size_t to = std::min(name.find_first_not_of("0123456789", from), name.size());
    if (to - from == 4) return true;
  }
  return false;
}

// Reads the gallery, if there is one; its vectors must have the length of the model's.
std::shared_ptr<const Gallery> read_gallery(const ModelOptions& options, const ModelFacts& facts,
                                            const HeadChoice& head) {
  if (options.gallery.empty()) return nullptr;
  auto gallery = std::make_shared<const Gallery>(options.gallery);
  if (head.name != "embedding")
    throw Error{ErrorCode::bad_argument,
                "gallery=" + options.gallery + ": the outputs are read as " + head.name +
                    ", which gives no vectors; set post-process=embedding where they are"};
  if (std::none_of(facts.outputs.begin(), facts.outputs.end(), [&](const OutputFacts& output) {
        return gallery->has_vectors_of(static_cast<size_t>(count(output.shape)));
      }))
    throw Error{ErrorCode::bad_argument,
                "gallery=" + options.gallery +
                    ": its vectors are of another model; the outputs are " + describe(facts)};
  return gallery;
}

// Adds the gallery's closest name to each vector, as an attribute.
void look_up(const Gallery& gallery, const DecodeSettings& settings, Results& results) {
  for (const Embedding& embedding : results.embeddings)
    if (const auto nearest = gallery.nearest(embedding.values);
        nearest && nearest->cosine >= settings.threshold)
      results.classifications.push_back(
          {"identity", static_cast<int>(nearest->number), nearest->name, nearest->cosine});
}

}  // namespace

Network describe_network(std::shared_ptr<const Model> model, const ModelOptions& options) {
  Network network;
  network.model = std::move(model);
  const Model& m = *network.model;
  network.name = safe_line(std::filesystem::path(m.path()).stem().string());

  std::vector<size_t> images;
  for (size_t i = 0; i < m.inputs().size(); ++i)
    if (image_shape(m.inputs()[i]).channels != 0) images.push_back(i);
  if (images.size() > 1) drop_masks(m, images);
  if (images.size() != 1) {
    throw Error{ErrorCode::unsupported,
                m.path() +
                    (images.empty() ? ": no input takes a picture ([N,3,H,W] or [N,H,W,3]"
                                      ", 1 or 3 channels) or a clip ([N,3,T,H,W], [N,T,3,H,W], "
                                      "[N,T,H,W,3]); inputs are "
                                    : ": more than one input takes a picture; inputs are ") +
                    describe_inputs(m) +
                    (images.empty() ? ""
                                    : "; export it with one picture as its input, from which the "
                                      "graph makes the others")};
  }
  network.image_input = images[0];
  const Port& picture = m.inputs()[images[0]];
  const ImageShape image = image_shape(picture);
  network.width = image.width;
  network.height = image.height;
  network.channels = image.channels;
  network.clip_length = image.frames;
  if (options.clip_length > 1 && options.clip_length != static_cast<unsigned>(image.frames))
    throw Error{ErrorCode::bad_argument, "clip-length=" + std::to_string(options.clip_length) +
                                             ": the model takes " + std::to_string(image.frames) +
                                             " frames at a time; inputs are " + describe_inputs(m)};
  for (size_t i = 0; i < m.inputs().size(); ++i)
    if (i != network.image_input)
      network.constants.emplace_back(i, constant_input(m.inputs()[i], image, m));

  const BesideFacts proc =
      options.model_proc.empty() ? BesideFacts() : read_model_proc(options.model_proc);
  const BesideFacts beside =
      m.is_from_memory() ? BesideFacts() : read_beside(m.path(), image.width, image.height);
  const BesideFacts framework = read_framework(m.rt_info());
  const StatedFacts stated = stated_facts(m, proc, framework, beside);
  const Labels labels = settle_labels(options, proc, m, framework, beside);
  network.labels = labels.names;
  network.warnings = beside.warnings;
  network.warnings.insert(network.warnings.end(), proc.warnings.begin(), proc.warnings.end());
  if (!labels.names.empty())
    network.origins.push_back(
        {"labels", std::to_string(labels.names.size()) + " names", labels.source});

  ModelFacts& facts = network.facts;
  facts.name = network.name;
  facts.model_info = stated.info;
  facts.width = image.width;
  facts.height = image.height;
  facts.channels = image.channels;
  facts.channels_last = image.nhwc;
  facts.open_width = picture.open_width;
  facts.labels = labels.names;
  facts.own_labels = labels.own;
  facts.model_info.erase("labels_numbered");
  if (labels.numbered) facts.model_info["labels_numbered"] = "true";
  for (const Port& port : m.inputs()) facts.input_names.push_back(lower(port.name));
  for (size_t i = 0; i < m.outputs().size(); ++i) {
    const Port& port = m.outputs()[i];
    Shape shape = port.shape;
    if (!shape.empty() && picture.shape[0] > 1 && shape[0] == picture.shape[0])
      shape[0] = 1;  // infers one frame at a time, whatever batch the file states
    facts.outputs.push_back({port.name, port.tensor_names, port.type, shape, m.output_op(i),
                             m.output_op_attributes(i)});
    prefer_words(facts.outputs.back());
  }
  if (const auto size = stated.info.find("picture_size");
      size != stated.info.end() && options.reshape.empty() &&
      size->second == std::to_string(image.width) + "x" + std::to_string(image.height))
    network.origins.push_back({"picture size", size->second, stated.source_of("picture_size")});
  // A name for each class of a vector is no dictionary, although such metadata may have that name.
  if (m.rt_info().count("metadata_props/character") != 0 && facts.outputs.size() == 1 &&
      vector_size(facts.outputs[0].shape) == facts.labels.size()) {
    facts.model_info.erase("model_type");
  } else if (has_foreign_dictionary(m, facts)) {
    facts.model_info.erase("model_type");
    facts.labels.clear();
    network.labels.clear();
    std::erase_if(network.origins, [](const Fact& fact) { return fact.what == "labels"; });
  }
  for (const char* key : {"model_type", "task"})
    if (const auto found = stated.info.find(key); found != stated.info.end())
      network.origins.push_back({key, found->second, stated.source_of(key)});
  take_dictionary(network);
  network.head = choose_head(facts, options.post_process, parse_labels(options.outputs));
  if (network.labels.empty() && !network.head.class_names.empty()) {
    network.labels = network.head.class_names;
    network.origins.push_back({"labels", std::to_string(network.labels.size()) + " names",
                               "what the head " + network.head.name + " finds"});
  }
  log(LogArea::heads, LogLevel::info,
      [&] { return m.path() + " is read as " + network.head.name + ": " + network.head.reason; });
  if (picture.open_width && network.head.name != "text-recognition")
    throw Error{ErrorCode::unsupported,
                m.path() + ": input \"" + picture.name +
                    "\" is open in its width, and no line of text is read: " + network.head.reason +
                    "; set reshape=WIDTHxHEIGHT (--reshape WIDTHxHEIGHT) or what it asks for"};
  network.warnings.insert(network.warnings.end(), network.head.warnings.begin(),
                          network.head.warnings.end());
  // Larger steps mean that boxes in pixels and their scores share one scale.
  constexpr float kCoarse = 0.5f;
  if (network.head.step > kCoarse)
    network.warnings.push_back("the output that is read is quantised in steps of " +
                               std::to_string(network.head.step) +
                               ", which are coarse for scores from 0 to 1; scores are multiples of "
                               "it, and at most 1; quantise the model without its last operations "
                               "to get finer ones");
  // A zoo's own convention is more likely than the usual one of a task.
  if ((!network.head.picture || network.head.picture->task) && of_open_model_zoo(m.path()))
    network.head.picture = picture_of(Family::open_model_zoo);
  const PictureFeed feed = picture_feed(m, stated, image, picture.type, options,
                                        network.head.picture, network.origins, network.warnings);
  network.transform = feed.transform;
  network.crop_share = feed.crop_share;
  network.model_defaults.threshold =
      share_of(stated, "confidence_threshold", 0.5f, network.origins);
  network.gallery = read_gallery(options, facts, network.head);
  // Accepts the closest name at any distance, unless a threshold is set.
  if (network.gallery && stated.info.count("confidence_threshold") == 0)
    network.model_defaults.threshold = 0;
  network.model_defaults.iou_threshold = share_of(stated, "iou_threshold", 0.45f, network.origins);
  // Cleans texts that quote the model and the files beside it.
  network.head.reason = message_line(network.head.reason);
  for (std::string& warning : network.warnings) warning = message_line(warning);
  return network;
}

InputShapes input_shapes(const ModelOptions& options) {
  InputShapes shapes;
  shapes.open_width = options.reshape.empty();
  for (size_t at = 0; at < options.reshape.size();) {
    const size_t end = std::min(options.reshape.find(';', at), options.reshape.size());
    shapes.add(options.reshape.substr(at, end - at));
    at = end + 1;
  }
  if (options.clip_length > 1) shapes.add("frames=" + std::to_string(options.clip_length));
  return shapes;
}

Rect fed_part(const Rect& region, const Network& network) {
  const auto taken = [&](int side) {
    return std::clamp(static_cast<int>(std::lround(side * network.crop_share)), 1, side);
  };
  if (network.crop_share >= 1 || region.width < 1 || region.height < 1) return region;
  const int width = taken(region.width), height = taken(region.height);
  return {region.x + (region.width - width) / 2, region.y + (region.height - height) / 2, width,
          height};
}

namespace {

// Reads the model from the file, or from the bytes that replace it.
std::shared_ptr<const Model> read_model(const ModelOptions& options, const InputShapes& shapes) {
  if (options.data == nullptr)
    return Model::read(model_file(options.model), shapes, options.config_file);
  const auto bytes = [](const std::shared_ptr<const std::string>& of) {
    return std::as_bytes(of ? std::span(*of) : std::span<const char>());
  };
  return Model::read_bytes(bytes(options.data), bytes(options.weights),
                           options.model.empty() ? "model-data" : options.model, shapes,
                           options.config_file);
}

// Returns the size of pictures that a file beside the model states; "" if none does, or the model
// is no file.
std::string size_beside(const ModelOptions& options) {
  if (options.data != nullptr) return {};
  const BesideFacts beside = read_beside(model_file(options.model));
  const auto found = beside.info.find("picture_size");
  return found == beside.info.end() ? std::string() : found->second;
}

// The size for PP-OCR's classifier of lines that are upside down, whose files leave it open.
constexpr const char* kLinesOfDirections = "192x48";

bool tells_directions(const ModelOptions& options) {
  try {
    InputShapes shapes;
    shapes.add(kLinesOfDirections);
    const auto model = read_model(options, shapes);
    const Network network = describe_network(model, options);
    return network.head.picture &&
           network.head.picture->family == picture_of(Family::text_direction).family;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string size_for_open(const ModelOptions& options) {
  if (!options.reshape.empty()) return {};
  if (const std::string size = size_beside(options); !size.empty()) return size;
  if (tells_directions(options)) return kLinesOfDirections;
  return leaves_size_open(options) ? "640x640" : "";
}

namespace {

// Returns the size of pictures that a model needs although it leaves the size open, as YOLOv5's
// exports in half precision do, whose grids are of one size; "" if it takes others, or none of the
// usual ones.
std::string only_size(const ModelOptions& options) {
  for (const std::string size : {"64x64", "640x640", "416x416", "320x320"}) {
    InputShapes shapes = input_shapes(options);
    shapes.add(size);
    try {
      read_model(options, shapes);
    } catch (const Error&) {
      continue;
    }
    return size == "64x64" ? "" : size;
  }
  return {};
}

}  // namespace

std::shared_ptr<const Model> read_model(const ModelOptions& options) {
  if (options.model.empty() && options.data == nullptr)
    throw Error{ErrorCode::bad_argument, "no model: set model=FILE (.onnx or .xml)"};
  InputShapes shapes = input_shapes(options);
  try {
    return Model::with_picture(read_model(options, shapes));
  } catch (const Error& error) {
    // Reads a model that leaves its size open with the size that a file beside it states, that all
    // networks of its kind have, or that is the only one with which it can be read.
    std::string size = shapes.empty() ? size_beside(options) : std::string();
    if (size.empty() && shapes.empty() && tells_directions(options)) size = kLinesOfDirections;
    const bool open =
        std::string_view(error.what()).find("is open in its shape") != std::string_view::npos;
    if (size.empty() && shapes.empty() && open) size = only_size(options);
    if (size.empty()) throw;
    try {
      shapes.add(size);
      return Model::with_picture(read_model(options, shapes));
    } catch (const Error&) {
    }
    throw;
  }
}

bool states_example_size(const std::shared_ptr<const Model>& model, const ModelOptions& options) {
  constexpr int kLargestExample = 64;
  if (!options.reshape.empty()) return false;
  try {
    const Network network = describe_network(model, options);
    return std::max(network.width, network.height) <= kLargestExample &&
           network.head.sizes == Sizes::examples;
  } catch (const Error&) {
    return false;
  }
}

bool leaves_size_open(const ModelOptions& options) {
  InputShapes shapes = input_shapes(options);
  if (!shapes.empty()) return false;
  try {
    shapes.add("64x64");
    const auto model = read_model(options, shapes);
    return describe_network(model, options).head.sizes != Sizes::own;
  } catch (const Error&) {
    return false;
  }
}

Network describe_network(const ModelOptions& options) {
  return describe_network(read_model(options), options);
}

std::vector<std::string> read_outputs(const Network& network, std::span<const Tensor> outputs,
                                      const DecodeSettings& settings, bool attach_tensors,
                                      Results& results) {
  const HeadChoice& head = network.head;
  if (network.trust->dropped()) {
    results = {};
    match_tensors(network.facts).decode(outputs, settings, results);
    return {};
  }
  run_head(head, network.facts, outputs, settings, attach_tensors, results);
  if (network.gallery) look_up(*network.gallery, settings, results);
  std::vector<std::string> said;
  // Raw tensors are no answers, and may hold anything.
  if (head.name != "none" && !network.trust->knows_nan())
    if (std::string nan = not_numbers(network.facts, outputs);
        !nan.empty() && network.trust->note_nan())
      said.push_back(std::move(nan));
  const bool contradicted = !results.contradiction.empty();
  const bool first = contradicted && network.trust->contradictions() == 0;
  if (network.trust->note(contradicted))
    said.push_back("all of the first inferences contradict the head " + head.name + " (" +
                   results.contradiction +
                   "); it is dropped until the model is loaded again, frames get raw tensors; set "
                   "post-process");
  else if (first)
    said.push_back("the values of the outputs contradict the head " + head.name + ": " +
                   results.contradiction +
                   "; such frames get raw tensors and no objects, and stats counts them "
                   "(contradictions); set post-process if the head is not the right one");
  if (std::string unnamed = unnamed_class(head, network.facts, results);
      !unnamed.empty() && network.trust->note_unnamed())
    said.push_back(std::move(unnamed));
  return said;
}

}  // namespace clinfer
