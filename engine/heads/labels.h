// Names of classes: from a property, a file, or the model.
#pragma once

#include <string>
#include <vector>

typedef struct _JsonNode JsonNode;  // of JSON-GLib, whose header stays in .cpp files

namespace clinfer {

struct YamlNode;

// Names in a property: "face,person" or "<face, person>"; blanks around a name are dropped.
std::vector<std::string> parse_labels(const std::string& text);

// model_info's way: separated by blanks; blanks inside a name were written as underscores.
std::vector<std::string> parse_model_labels(const std::string& text);

// The names in a file of labels, by their number; numbers that it leaves out have empty names. Known
// are a name a line, lines of number and name, one line of names between ';' (DeepStream), YAML and
// JSON with a list or map of names (data.yaml, id2label, categories), and TensorFlow's label maps;
// `file` is its name, whose ending tells YAML, JSON and label maps from lines. In files of lines, a
// line that is one blank is a name: the space of a dictionary of characters. Throws
// Error{bad_argument} that names `file` when it is no UTF-8 text, or not what its ending says.
// numbered: whether the text itself gives each name its number.
std::vector<std::string> labels_of_text(const std::string& text, const std::string& file,
                                        bool* numbered = nullptr);

// Names of a parsed list or map; none where it is neither.
std::vector<std::string> labels_of_yaml(const YamlNode& names);
std::vector<std::string> labels_of_json(JsonNode* names);
// {"0": "person"}, and {"person": 0}.
std::vector<std::string> labels_by_number(JsonNode* object);

// Returns whether a label stands for the blank that separates characters (CTC), so that the labels
// are a dictionary.
bool is_blank_name(const std::string& label);

// Reads a file as labels_of_text() reads a text. Throws Error{not_found} when the file cannot be
// read.
std::vector<std::string> read_labels(const std::string& path, bool* numbered = nullptr);

}  // namespace clinfer
