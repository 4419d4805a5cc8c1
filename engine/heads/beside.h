// Facts from files beside a model: those that exporters leave there, and labels.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace clinfer {

// Values under the keys that model_info has for the same thing ("mean_values", "task"), each with
// the file that says so. Besides these: labels_numbered (the labels' file numbers them), crop_share (of the middle that is cut out) and picture_size
// (WIDTHxHEIGHT, for models that leave it open).
struct BesideFacts {
  std::map<std::string, std::string> info;
  std::map<std::string, std::string> sources;  // key -> file name
  std::vector<std::string> labels;
  std::string labels_source;  // file name; empty: no labels found
  bool sure_labels = false;  // the file is this model's for certain, not one of several in a folder
  std::vector<std::string> warnings;  // files that are not understood
  // Sets a value unless an earlier file has.
  void set(const std::string& key, const std::string& value, const std::string& source);
  void set_labels(std::vector<std::string> values, const std::string& source, bool sure);
};

// Looks beside the file (an .xml or .onnx), and where its folder is called onnx, openvino or visual
// also one folder up: Ultralytics' metadata.yaml, Hugging Face's, timm's and OpenCLIP's JSON,
// PaddleDetection's infer_cfg.yml, PaddleX's inference.yml, MMDeploy's pipeline.json, DeepStream's
// nvinfer configuration, GStreamer's .modelinfo, TensorFlow's label maps, files of labels. None of
// them need be there; what cannot be read is a warning, not an error. width, height: of the model's
// picture, 0 where it is open.
BesideFacts read_beside(const std::string& model_path, int width = 0, int height = 0);

// The metadata of the ONNX file that an IR was converted from, as Ultralytics' exporter writes them;
// OpenVINO's converter leaves them in rt_info below framework/.
BesideFacts read_framework(const std::map<std::string, std::string>& rt_info);

// DL Streamer's description of a model. Throws Error{not_found, bad_argument} that names the place.
BesideFacts read_model_proc(const std::string& path);

// The text files in the model's folder that are called like dictionaries of characters, in order.
std::vector<std::string> dictionaries_beside(const std::string& model_path);

// The model file that a path means: itself, or where it is a folder the one .xml or .onnx in it, else
// in its folder onnx or openvino. Of one model in several precisions (model.onnx, model_fp16.onnx)
// it is the plain one. Throws Error{not_found} when a folder has none, or several.
std::string model_file(const std::string& path);

}  // namespace clinfer
