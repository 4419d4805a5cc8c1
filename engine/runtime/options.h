// The options of the engine that have a name: one row each, from which come Config::set(), what it
// refuses, and the help of --config. Tests compare docs/keys.md and the element's properties with
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

// An option by name. All options take effect when a model is compiled.
struct Option {
  std::string_view name;  // without the prefixes KEY_, GPU_ and CLDNN_
  std::vector<std::string_view> aliases;
  std::string_view property;  // of the element; "": the element has the option only in `config`
  std::string_view allowed;   // describes the values, for people
  std::string_view help;
  // Returns false for a value that is not allowed.
  bool (*set)(Config& config, const std::string& value);
};

// Returns the options in the order of the help text. Thread-safe.
const std::vector<Option>& options();

}  // namespace clinfer
