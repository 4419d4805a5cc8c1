// Reads names of classes from a property, a file, or the model.
#pragma once

#include <string>
#include <vector>

typedef struct _JsonNode JsonNode;  // of JSON-GLib, whose header stays in .cpp files

namespace clinfer {

struct YamlNode;

// Parses names in a property: "face,person" or "<face, person>"; drops blanks around a name.
std::vector<std::string> parse_labels(const std::string& text);

// Parses names in model_info: separated by blanks; blanks inside of a name were written as
// underscores.
std::vector<std::string> parse_model_labels(const std::string& text);

// Returns the names in a file of labels, by their number; missing numbers have empty names.
// Supports one name per line, lines of number and name, one line of names separated by ';'
// (DeepStream), YAML and JSON with a list or map of names (data.yaml, id2label, categories), and
// TensorFlow's label maps; `file` is its name, whose ending distinguishes YAML, JSON and label maps
// from lines. In files of lines, a line of a single blank is a name: the space of a dictionary of
// characters. Throws Error{bad_argument}, which names `file`, if it is no UTF-8 text, or not what
// its ending says. `numbered`: set to whether the text itself numbers the names.
std::vector<std::string> labels_of_text(const std::string& text, const std::string& file,
                                        bool* numbered = nullptr);

// Return the names in a parsed list or map; none if it is neither.
std::vector<std::string> labels_of_yaml(const YamlNode& names);
std::vector<std::string> labels_of_json(JsonNode* names);
// Reads {"0": "person"}, and {"person": 0}.
std::vector<std::string> labels_by_number(JsonNode* object);

// Returns whether a label stands for the blank that separates characters (CTC), so that the labels
// are a dictionary.
bool is_blank_name(const std::string& label);

// Reads a file as labels_of_text() reads a text. Throws Error{not_found} if the file cannot be
// read.
std::vector<std::string> read_labels(const std::string& path, bool* numbered = nullptr);

}  // namespace clinfer
