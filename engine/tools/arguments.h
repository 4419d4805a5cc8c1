// Command lines: positional arguments, options with and without a value, and one-line errors that
// list what there is.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace clinfer {

struct OptionSpec {
  std::string name;   // "--device"
  std::string value;  // placeholder of its value in the help ("D"); "" for a flag
  std::string help;
};

struct CommandSpec {
  std::string name;                     // "run"
  std::string help;                     // one line
  std::vector<std::string> positional;  // "MODEL"; "[B]" may be left out
  std::vector<OptionSpec> options;
};

class Arguments {
 public:
  // Throws Error{bad_argument} for an unknown option, a missing value, too many or too few
  // positional arguments.
  Arguments(const CommandSpec& spec, const std::vector<std::string>& words);

  bool wants_help() const { return help_; }
  size_t positionals() const { return positional_.size(); }
  const std::string& positional(size_t i) const { return positional_[i]; }
  bool has(const std::string& option) const { return values_.count(option) != 0; }
  std::optional<std::string> value(const std::string& option) const;  // the last one given
  std::vector<std::string> all(const std::string& option) const;
  // A whole number from `least` to `most`; throws Error{bad_argument} otherwise.
  unsigned number(const std::string& option, unsigned otherwise, unsigned least = 0,
                  unsigned most = std::numeric_limits<unsigned>::max()) const;
  double seconds(const std::string& option, double otherwise) const;
  std::optional<double> share(const std::string& option) const;  // 0 to 1

 private:
  std::optional<double> real(const std::string& option) const;  // NaN where it is no number

  bool help_ = false;
  std::vector<std::string> positional_;
  std::map<std::string, std::vector<std::string>> values_;
};

std::string help_text(const CommandSpec& spec);

}  // namespace clinfer
