// Reads the metadata in a model's file: <rt_info> (v11), <meta_data> (v10).
#pragma once

#include <map>
#include <string>

namespace pugi {
class xml_node;
}

namespace clinfer {

// Returns the values of leaves below <net>'s <rt_info>, then <meta_data>, with keys joined by '/':
// "model_info/labels" -> "background face". For a repeated key the first value is kept. Elements
// nested deeper than 32 are left out.
std::map<std::string, std::string> read_rt_info(const pugi::xml_node& net);

}  // namespace clinfer
