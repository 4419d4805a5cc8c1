// Chooses which files beside a model are read, and in which order.
#include "engine/heads/files/beside.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/heads/base/common.h"
#include "engine/heads/files/beside_readers.h"
#include "engine/heads/files/labels.h"
#include "kernels/base/error.h"
#include "kernels/base/system/files.h"

namespace clinfer {
namespace fs = std::filesystem;
namespace {

// Returns the files of a folder with this extension, sorted; none if the folder cannot be read.
std::vector<fs::path> files_ending(const fs::path& folder, const fs::path& extension) {
  std::vector<fs::path> found;
  for (const std::string& name : names_in(folder.string()))
    if (fs::path(name).extension() == extension) found.push_back(folder / name);
  std::sort(found.begin(), found.end());
  return found;
}

// Returns the model's name without the words by which exporters mark precisions: "model_q4f16" ->
// "model".
std::string plain_name(std::string stem) {
  static const auto& kPrecisions = *new const std::set<std::string>{
      "fp16", "fp32",  "f16", "f32",       "int8",       "uint8",     "int4",
      "q4",   "q4f16", "q8",  "bnb4",      "quantized",  "quantised", "quant",
      "half", "qdq",   "opt", "optimized", "simplified", "sim"};
  for (;;) {
    const size_t at = stem.find_last_of("_-.");
    if (at == std::string::npos || at == 0 || kPrecisions.count(lower(stem.substr(at + 1))) == 0)
      return stem;
    stem.resize(at);
  }
}

// Returns whether all models of the folder are the same model, so that files without a model's name
// belong to it.
bool is_alone(const fs::path& model) {
  const fs::path folder = model.parent_path().empty() ? "." : model.parent_path();
  std::set<std::string> names;
  for (const fs::path& file : files_ending(folder, model.extension()))
    names.insert(plain_name(file.stem().string()));
  return names.size() <= 1;
}

// Returns whether the folder holds a model whose description lies in the parent folder.
bool is_of_a_repository(const fs::path& folder) {
  const std::string name = lower(folder.filename().string());
  return name == "onnx" || name == "openvino" || name == "visual";
}

void take_labels(const std::string& text, const std::string& source, bool sure,
                 BesideFacts& facts) {
  bool numbered = false;
  std::vector<std::string> names = labels_of_text(text, source, &numbered);
  if (numbered && facts.labels.empty() && !names.empty())
    facts.set("labels_numbered", "true", source);
  facts.set_labels(std::move(names), source, sure);
}

class Finder {
 public:
  Finder(const fs::path& model, int width, int height)
      : model_(model), stem_(model.stem().string()), width_(width), height_(height) {}

  BesideFacts find() {
    const fs::path folder = model_.parent_path();
    alone_ = is_alone(model_);
    // Reads files with the model's own name first.
    read(folder / (stem_ + ".modelinfo"), read_modelinfo);
    read(folder / (model_.filename().string() + ".modelinfo"), read_modelinfo);
    std::vector<fs::path> folders;
    if (alone_) folders.push_back(folder);
    const fs::path here = fs::absolute(folder.empty() ? fs::path(".") : folder).lexically_normal();
    const fs::path named = here.has_filename() ? here : here.parent_path();
    if (is_of_a_repository(named)) folders.push_back(folder / "..");
    for (const fs::path& place : folders) read_descriptions(place);
    read_nvinfer_files(folder);
    read_labels_beside(folder, folders);
    return std::move(facts_);
  }

 private:
  void read(const fs::path& path, BesideReader reader) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return;
    const BesideContext context{path.parent_path().string(), model_.filename().string(), alone_,
                                width_, height_};
    try {
      reader(file_text(path.string()), path.filename().string(), context, facts_);
    } catch (const Error& problem) {
      facts_.warnings.push_back(path.string() + ": " + problem.what() + "; the file is ignored");
    }
  }

  void read_descriptions(const fs::path& folder) {
    static constexpr std::pair<const char*, BesideReader> kFiles[] = {
        {"metadata.yaml", read_ultralytics},
        {"config.json", read_huggingface_config},
        {"preprocessor_config.json", read_huggingface_picture},
        {"processor_config.json", read_huggingface_picture},
        {"preprocess_cfg.json", read_open_clip},
        {"open_clip_config.json", read_open_clip},
        {"infer_cfg.yml", read_paddle},
        {"inference.yml", read_paddle},
        {"pipeline.json", read_mmdeploy},
        {"config.yml", read_frigate},
        {"config.yaml", read_frigate},
        {"frigate.yml", read_frigate},
        {"configs.yaml", read_mltu},
    };
    for (const auto& [name, reader] : kFiles) read(folder / name, reader);
  }

  // Reads files of any name, since people name them freely.
  void read_nvinfer_files(const fs::path& folder) {
    for (const char* ending : {".txt", ".yml", ".yaml"})
      for (const fs::path& path : files_ending(folder.empty() ? "." : folder, ending)) {
        const std::string name = lower(path.stem().string());
        if (std::any_of(std::begin(kNvinferWords), std::end(kNvinferWords),
                        [&](const char* word) { return name.find(word) != std::string::npos; }))
          read(path, read_nvinfer);
      }
  }

  void read_labels_beside(const fs::path& folder, const std::vector<fs::path>& folders) {
    const auto sure = [](const std::string& text, const std::string& source, const BesideContext&,
                         BesideFacts& to) { take_labels(text, source, true, to); };
    const auto unsure = [](const std::string& text, const std::string& source, const BesideContext&,
                           BesideFacts& to) { take_labels(text, source, false, to); };
    read(folder / (stem_ + ".pbtxt"), sure);
    for (const char* ending : {".labels", ".names", "_labels.txt", ".txt", "_labels.json"})
      read(folder / (stem_ + ending), unsure);
    for (const fs::path& place : folders) {
      for (const char* name : {"label_map.pbtxt", "labelmap.pbtxt"}) read(place / name, sure);
      for (const char* name :
           {"labels.txt",       "classes.txt",     "labelmap.txt",    "label_map.txt",
            "label_list.txt",   "class_names.txt", "label_names.txt", "names.txt",
            "obj.names",        "class.names",     "classes.names",   "custom.names",
            "coco.names",       "voc.names",       "labels.json",     "classes.json",
            "class_names.json", "label_map.json",  "id2label.json",   "labels.yaml",
            "labels.yml",       "classes.yaml",    "data.yaml",       "data.yml",
            "dataset.yaml"})
        read(place / name, unsure);
      const auto names = files_ending(place.empty() ? "." : place, ".names");
      if (names.size() == 1) read(names[0], unsure);
    }
  }

  static constexpr const char* kNvinferWords[] = {"config", "nvinfer", "pgie", "sgie"};

  const fs::path model_;
  const std::string stem_;
  const int width_, height_;
  bool alone_ = false;
  BesideFacts facts_;
};

// Returns the only model among files, or the plain one of several precisions; empty if there are
// several.
fs::path one_of(const std::vector<fs::path>& files) {
  if (files.size() == 1) return files[0];
  for (const fs::path& file : files)
    if (std::all_of(files.begin(), files.end(), [&](const fs::path& other) {
          return other.extension() == file.extension() &&
                 plain_name(other.stem().string()) == file.stem().string();
        }))
      return file;
  return {};
}

}  // namespace

void BesideFacts::set(const std::string& key, const std::string& value, const std::string& source) {
  if (value.empty() || info.count(key) != 0) return;
  info[key] = value;
  sources[key] = source;
}

void BesideFacts::set_labels(std::vector<std::string> values, const std::string& source,
                             bool sure) {
  if (values.empty() || !labels.empty()) return;
  labels = std::move(values);
  labels_source = source;
  sure_labels = sure;
}

BesideFacts read_beside(const std::string& model_path, int width, int height) {
  return model_path.empty() ? BesideFacts() : Finder(model_path, width, height).find();
}

std::vector<std::string> dictionaries_beside(const std::string& model_path) {
  const fs::path folder = fs::path(model_path).parent_path();
  std::vector<fs::path> folders = {folder.empty() ? "." : folder};
  // PaddleOCR's users keep detector, classifier and recogniser in folders of their own, with the
  // dictionary one folder up.
  if (lower(folder.filename().string()) == "rec") folders.push_back(folder / "..");
  // Others keep dictionaries in a folder of their own, in the model's or beside it: "char_dicts".
  for (const fs::path& place : {folders[0], folders[0] / ".."})
    for (const std::string& name : names_in(place.string())) {
      const std::string last = lower(name.substr(name.find_last_of("_-") + 1));
      std::error_code error;
      if ((last == "dict" || last == "dicts") && !fs::equivalent(place / name, folders[0], error))
        folders.push_back(place / name);
    }
  std::vector<std::string> found;
  for (const fs::path& place : folders)
    for (const char* ending : {".txt", ".json"})
      for (const fs::path& path : files_ending(place, ending)) {
        const std::string name = lower(path.stem().string());
        for (const char* word : {"dict", "keys", "charset", "alphabet", "characters"})
          if (name.find(word) != std::string::npos) {
            found.push_back(path.string());
            break;
          }
      }
  return found;
}

std::string model_file(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  std::vector<fs::path> found;
  for (const char* inner : {"", "onnx", "openvino"}) {
    const fs::path folder = *inner == '\0' ? fs::path(path) : fs::path(path) / inner;
    found = files_ending(folder, ".xml");
    const std::vector<fs::path> onnx = files_ending(folder, ".onnx");
    found.insert(found.end(), onnx.begin(), onnx.end());
    if (!found.empty()) break;
  }
  if (found.empty())
    throw Error{ErrorCode::not_found, path + " is a folder without a model (.xml or .onnx)"};
  if (const fs::path one = one_of(found); !one.empty()) return one;
  throw Error{ErrorCode::not_found, path + " is a folder with " + std::to_string(found.size()) +
                                        " models, among them " + found[0].filename().string() +
                                        " and " + found[1].filename().string() +
                                        "; name one of them"};
}

}  // namespace clinfer
