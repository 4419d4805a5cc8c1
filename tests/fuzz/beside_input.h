// One input of the fuzzer of files beside models. Shared by the fuzz target and the replay of its
// corpus.
#pragma once

#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>

#include "engine/heads/files/beside_readers.h"
#include "engine/heads/files/labels.h"
#include "kernels/base/text.h"
#include "tests/fuzz/one_line.h"

namespace clinfer {

// Reads a text as the file, or as the property, that its first byte chooses. Ends the process if an
// error is not one printable line, or if a label is not UTF-8.
inline void read_beside_fuzz_input(const std::string& input) {
  static constexpr std::pair<const char*, BesideReader> kReaders[] = {
      {"config.json", read_huggingface_config},
      {"preprocessor_config.json", read_huggingface_picture},
      {"open_clip_config.json", read_open_clip},
      {"pipeline.json", read_mmdeploy},
      {"metadata.yaml", read_ultralytics},
      {"inference.yml", read_paddle},
      {"config.yml", read_frigate},
      {"nvinfer.txt", read_nvinfer},
      {"nvinfer.yml", read_nvinfer},
      {"model.modelinfo", read_modelinfo},
  };
  static constexpr const char* kLabels[] = {"labels.txt", "labels.json", "labels.yaml",
                                            "labels.pbtxt"};
  constexpr size_t kOfFiles = std::size(kReaders), kOfLabels = kOfFiles + std::size(kLabels);
  if (input.empty()) return;
  const size_t kind = static_cast<unsigned char>(input[0]) % (kOfLabels + 3);
  const std::string text = input.substr(1);
  BesideFacts facts;
  try {
    if (kind < kOfFiles) {
      const auto& [name, reader] = kReaders[kind];
      reader(text, name, {"", "model.onnx", true, 64, 48}, facts);
    } else if (kind < kOfLabels) {
      facts.labels = labels_of_text(text, kLabels[kind - kOfFiles]);
    } else if (kind == kOfLabels) {
      facts = read_framework({{"framework/names", text}, {"framework/stride", "32"}});
    } else if (kind == kOfLabels + 1) {
      parse_labels(text);
    } else {
      parse_model_labels(text);
    }
  } catch (const Error& error) {
    must_be_one_line(error);
  }
  for (const std::string& label : facts.labels)
    if (!is_utf8(label)) std::abort();
}

}  // namespace clinfer
