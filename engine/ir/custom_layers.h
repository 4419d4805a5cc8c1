// Reads the files that CONFIG_FILE names: custom layers as OpenVINO documents them for its GPU
// plug-in. The files are untrusted input, as models are; but the kernels in them are code that
// runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/custom/custom_layer.h"

namespace clinfer {

class CustomLayers {
 public:
  // Finds a layer by the type in a model's file; null if there is none.
  std::shared_ptr<const CustomLayer> find(const std::string& type) const;
  bool empty() const { return layers_.empty(); }
  const std::vector<std::string>& files() const { return files_; }  // all files that were read

  // Adds the <CustomLayer> elements of one document. `read` returns the text of a source file by
  // its path. Throws Error{bad_argument, not_found}: `FILE:LINE: <Element attribute="...">: what is
  // wrong`.
  void add(std::string_view xml, const std::string& file,
           const std::function<std::string(const std::string& path)>& read);

 private:
  std::map<std::string, std::shared_ptr<const CustomLayer>> layers_;
  std::vector<std::string> files_;
};

// Splits a value of CONFIG_FILE into names: separated by spaces; a name with spaces is in double
// quotes, or stands as it is if a file has that name.
std::vector<std::string> split_config_files(const std::string& value);

// Reads all files of a value of CONFIG_FILE; "": none.
std::shared_ptr<const CustomLayers> read_custom_layers(const std::string& config_file);

// Makes a custom layer compute the node, whose inputs are known. `stated`: what the model's file
// states about its tensors.
void set_custom(struct Node& node, std::shared_ptr<const CustomLayer> layer,
                const std::string& type, std::vector<CustomUse::Stated> inputs,
                std::vector<CustomUse::Stated> outputs);

}  // namespace clinfer
