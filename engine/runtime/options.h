// The options of the engine that have a name: one row each, from which come Config::set(), what it
// refuses, and the help of --config. Tests compare docs/keys.md and the element's properties with it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

// All of them take effect when a model is compiled.
struct Option {
  std::string_view name;  // as users write it, without KEY_, GPU_ and CLDNN_
  std::vector<std::string_view> aliases;
  std::string_view
      property;  // of the element, which sets the same member; "": the element has it in `config` only
  std::string_view allowed;  // the values, for people
  std::string_view help;
  bool (*set)(Config& config, const std::string& value);  // false: the value is not allowed
};

// Returns the options in the order in which help shows them. Any thread may call this.
const std::vector<Option>& options();

}  // namespace clinfer
