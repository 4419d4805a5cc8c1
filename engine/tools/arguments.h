// Command lines: positional arguments, options with and without a value, and errors of one line
// that list what is allowed.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace clinfer {

struct OptionSpec {
  std::string name;   // "--device"
  std::string value;  // placeholder for the value in the help ("D"); "" for a flag
  std::string help;
};

struct CommandSpec {
  std::string name;  // "run"
  std::string help;  // one line
  // "MODEL"; one in brackets, "[B]", is optional, one with dots, "URI...", may be repeated
  std::vector<std::string> positional;
  std::vector<OptionSpec> options;
};

class Arguments {
 public:
  // Throws Error{bad_argument} for an unknown option, a missing value, and too many or too few
  // positional arguments.
  Arguments(const CommandSpec& spec, const std::vector<std::string>& words);

  bool wants_help() const { return help_; }
  size_t positionals() const { return positional_.size(); }
  const std::string& positional(size_t i) const { return positional_[i]; }
  bool has(const std::string& option) const { return values_.count(option) != 0; }
  // The last one, if given several times.
  std::optional<std::string> value(const std::string& option) const;
  std::vector<std::string> all(const std::string& option) const;
  // Returns a whole number from `least` to `most`; throws Error{bad_argument} for anything else.
  unsigned number(const std::string& option, unsigned otherwise, unsigned least = 0,
                  unsigned most = std::numeric_limits<unsigned>::max()) const;
  double seconds(const std::string& option, double otherwise) const;
  std::optional<double> share(const std::string& option) const;  // from 0 to 1

 private:
  std::optional<double> real(const std::string& option) const;  // NaN for text that is no number

  bool help_ = false;
  std::vector<std::string> positional_;
  std::map<std::string, std::vector<std::string>> values_;
};

std::string help_text(const CommandSpec& spec);

}  // namespace clinfer
