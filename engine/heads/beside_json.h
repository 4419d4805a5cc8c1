// Readers of JSON files beside a model, each from the file's text. They throw Error{bad_argument}
// on what is no JSON.
#pragma once

#include <string>

#include "engine/heads/beside.h"

namespace clinfer {

// Without a byte order mark. Throws Error{not_found, bad_argument} without the path.
std::string file_text(const std::string& path);

void read_huggingface_config(const std::string& text, const std::string& source,
                             BesideFacts& facts);
void read_huggingface_picture(const std::string& text, const std::string& source,
                              BesideFacts& facts);
void read_mmdeploy(const std::string& text, const std::string& source, BesideFacts& facts);

}  // namespace clinfer
