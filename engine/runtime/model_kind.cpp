// Recognises file formats by their first bytes.
#include "engine/runtime/model_kind.h"

#include <filesystem>
#include <fstream>
#include <string_view>

namespace clinfer {

namespace {

using namespace std::string_view_literals;

struct Signature {
  size_t at;  // offset of the first byte
  std::string_view bytes;
  const char* kind;
};

constexpr const char* kPyTorch =
    "a PyTorch file: export the model to ONNX (torch.onnx.export; Ultralytics: yolo export "
    "format=onnx)";
constexpr const char* kPage = "a web page, not a model: download the file itself";

const Signature kSignatures[] = {
    {4, "TFL3"sv,
     "a TensorFlow Lite model: convert it to ONNX (tf2onnx --tflite) or OpenVINO IR (ovc)"},
    {0, "PK\x03\x04"sv, kPyTorch},
    {0, "\x80\x02"sv, kPyTorch},
    {0, "\x80\x03"sv, kPyTorch},
    {0, "\x80\x04"sv, kPyTorch},
    {0, "\x80\x05"sv, kPyTorch},
    {0, "ftrt"sv,
     "a TensorRT engine, which only TensorRT runs: give the ONNX file that it was built from"},
    {0, "ptrt"sv,
     "a TensorRT engine, which only TensorRT runs: give the ONNX file that it was built from"},
    {8, "{\""sv, "a safetensors file, weights without a graph: export the model to ONNX"},
    {0, "\x89HDF\r\n"sv,
     "a Keras (HDF5) file: convert it to ONNX (tf2onnx --keras) or OpenVINO IR (ovc)"},
    {0, "GGUF"sv, "a GGUF file, weights without a graph: export the model to ONNX"},
    {0, "7767517"sv, "an ncnn model: give the ONNX file that it was converted from"},
    {0, "version https://git-lfs"sv, "a pointer of Git LFS: fetch the file itself (git lfs pull)"},
    {0, "<!DOCTYPE html"sv, kPage},
    {0, "<!doctype html"sv, kPage},
    {0, "<html"sv, kPage},
};

}  // namespace

std::string foreign_kind(const std::string& path, bool named_onnx) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  char start[64] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(start, sizeof start);
  const std::string_view head(start, static_cast<size_t>(file.gcount()));
  for (const Signature& signature : kSignatures)
    if (head.size() > signature.at && head.substr(signature.at).starts_with(signature.bytes))
      return signature.kind;
  const bool is_xml = head.find_first_not_of("\xef\xbb\xbf \t\r\n") != std::string_view::npos &&
                      head[head.find_first_not_of("\xef\xbb\xbf \t\r\n")] == '<';
  if (named_onnx) return is_xml ? "an XML file: name it .xml, with its .bin beside it" : "";
  if (is_xml || head.empty()) return {};
  const fs::path name(path);
  if (name.extension() == ".bin" && fs::exists(fs::path(path).replace_extension(".xml"), error))
    return "the weights of an OpenVINO model: give " +
           fs::path(path).replace_extension(".xml").filename().string();
  // Recognises protocol buffers by their first field: ONNX begins with its version (field 1, at
  // least 3), a SavedModel with 1, a frozen graph of TensorFlow with a node (field 1 of type
  // bytes).
  if (head.size() > 2 && head[0] == 0x08 && head[1] >= 3 && head[1] < 32)
    return "an ONNX file: name it .onnx";
  if (name.extension() == ".pb" && (head[0] == 0x08 || head[0] == 0x0a))
    return "a TensorFlow model: convert it to ONNX (tf2onnx) or OpenVINO IR (ovc)";
  return {};
}

}  // namespace clinfer
