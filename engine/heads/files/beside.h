// Facts from files beside a model: labels, and files that exporters write there.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace clinfer {

// Values under the keys that model_info has for the same thing ("mean_values", "task"), each with
// the file that states it. Further keys: labels_numbered (the labels' file numbers them),
// crop_share (share of the centre that is cropped) and picture_size (WIDTHxHEIGHT, for models that
// leave it open).
struct BesideFacts {
  std::map<std::string, std::string> info;
  std::map<std::string, std::string> sources;  // key -> file name
  std::vector<std::string> labels;
  std::string labels_source;  // file name; empty: no labels were found
  // True if the file certainly belongs to this model, and is not one of several in a folder.
  bool sure_labels = false;
  std::vector<std::string> warnings;  // about files that are not understood
  // Sets a value unless an earlier file has set it.
  void set(const std::string& key, const std::string& value, const std::string& source);
  void set_labels(std::vector<std::string> values, const std::string& source, bool sure);
};

// Looks beside the file (an .xml or .onnx), and also in the parent folder if its folder is called
// onnx, openvino or visual: Ultralytics' metadata.yaml, Hugging Face's, timm's and OpenCLIP's JSON,
// PaddleDetection's infer_cfg.yml, PaddleX's inference.yml, MMDeploy's pipeline.json, DeepStream's
// nvinfer configuration, GStreamer's .modelinfo, TensorFlow's label maps, files of labels. All are
// optional; what cannot be read is a warning, not an error. `width`, `height`: of the model's
// picture, 0 if open.
BesideFacts read_beside(const std::string& model_path, int width = 0, int height = 0);

// Reads the metadata of the ONNX file from which an IR was converted, as Ultralytics' exporter
// writes them; OpenVINO's converter keeps them in rt_info below framework/.
BesideFacts read_framework(const std::map<std::string, std::string>& rt_info);

// Reads DL Streamer's description of a model. Throws Error{not_found, bad_argument}, which names
// the place.
BesideFacts read_model_proc(const std::string& path);

// Returns the text files that are named like dictionaries of characters, in the model's folder and
// in folders of dictionaries there or beside it.
std::vector<std::string> dictionaries_beside(const std::string& model_path);

// Returns the model file that a path means: the file itself, or for a folder the only .xml or .onnx
// in it, or in its folder onnx or openvino. Of a model in several precisions (model.onnx,
// model_fp16.onnx) it is the plain one. Throws Error{not_found} if a folder has no model, or
// several.
std::string model_file(const std::string& path);

}  // namespace clinfer
