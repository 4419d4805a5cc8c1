// Walks the nested elements. A value is an attribute "value", else the text of an element without
// children.
#include "engine/ir/rt_info.h"

#include <pugixml.hpp>

namespace clinfer {

namespace {

constexpr int kDeepestInfo = 32;

void collect(const pugi::xml_node& parent, const std::string& prefix, int depth,
             std::map<std::string, std::string>& values) {
  if (depth > kDeepestInfo) return;
  for (const pugi::xml_node& child : parent.children()) {
    if (child.type() != pugi::node_element) continue;
    // Keys that are no XML names are written as <info name="the key">.
    const char* name = child.attribute("name") ? child.attribute("name").value() : child.name();
    const std::string key = prefix + name;
    if (const pugi::xml_attribute value = child.attribute("value"))
      values.emplace(key, value.value());
    else if (child.text())
      values.emplace(key, child.text().get());
    collect(child, key + '/', depth + 1, values);
  }
}

}  // namespace

std::map<std::string, std::string> read_rt_info(const pugi::xml_node& net) {
  std::map<std::string, std::string> values;
  collect(net.child("rt_info"), "", 0, values);
  collect(net.child("meta_data"), "", 0, values);
  return values;
}

}  // namespace clinfer
