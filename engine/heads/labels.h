// Names of classes: from a property, a file, or the model.
#pragma once

#include <string>
#include <vector>

namespace clinfer {

// Names in a property: "face,person" or "<face, person>"; blanks around a name are dropped.
std::vector<std::string> parse_labels(const std::string& text);

// model_info's way: separated by blanks; blanks inside a name were written as underscores.
std::vector<std::string> parse_model_labels(const std::string& text);

// The lines of a text; empty last ones are dropped. Throws Error{bad_argument} that names `source`
// when it is no UTF-8 text.
std::vector<std::string> labels_of_text(const std::string& text, const std::string& source);

// One name a line; a byte order mark, carriage returns and empty last lines are dropped. Throws
// Error{not_found} when the file cannot be read and Error{bad_argument} when it is no UTF-8 text.
std::vector<std::string> read_labels(const std::string& path);

}  // namespace clinfer
