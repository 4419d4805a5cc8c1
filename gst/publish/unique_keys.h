// Keys of a JSON object that networks name, and that could therefore be taken.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "gst/base/json.h"

namespace clinfer {

class UniqueKeys {
 public:
  // `taken`: keys that the object has otherwise.
  UniqueKeys(JsonWriter& json, std::set<std::string> taken)
      : json_(json), taken_(std::move(taken)) {}
  // Writes the key, with a number behind it if it is taken, so that no key is in the object twice.
  JsonWriter& add(const std::string& wanted) {
    std::string name = wanted;
    for (int number = 2; !taken_.insert(name).second; ++number)
      name = wanted + "_" + std::to_string(number);
    return json_.key(name);
  }

 private:
  JsonWriter& json_;
  std::set<std::string> taken_;
};

}  // namespace clinfer
