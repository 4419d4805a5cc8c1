// The files that CONFIG_FILE names: custom layers as the GPU plug-in documents them. The files are
// untrusted input, as models are; but the kernels in them are code that runs.
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
  // Finds a layer by the type that a model's file states; null: none.
  std::shared_ptr<const CustomLayer> find(const std::string& type) const;
  bool empty() const { return layers_.empty(); }
  const std::vector<std::string>& files() const { return files_; }  // all that were read

  // Adds the <CustomLayer> elements of one document. `read` gives the text of a source by its path.
  // Throws Error{bad_argument, not_found}: `FILE:LINE: <Element attribute="...">: what is wrong`.
  void add(std::string_view xml, const std::string& file,
           const std::function<std::string(const std::string& path)>& read);

 private:
  std::map<std::string, std::shared_ptr<const CustomLayer>> layers_;
  std::vector<std::string> files_;
};

// The names in a value of CONFIG_FILE: separated by spaces; a name with spaces is in double quotes,
// or stands as it is if a file has that name.
std::vector<std::string> split_config_files(const std::string& value);

// Reads all of them. "": none.
std::shared_ptr<const CustomLayers> read_custom_layers(const std::string& config_file);

// Makes the node one that the custom layer computes. Its inputs are known; `stated` is what the
// model's file says about its tensors, as far as it does.
void set_custom(struct Node& node, std::shared_ptr<const CustomLayer> layer,
                const std::string& type, std::vector<CustomUse::Stated> inputs,
                std::vector<CustomUse::Stated> outputs);

}  // namespace clinfer
