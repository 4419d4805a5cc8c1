// Parses command lines by a CommandSpec.
#include "engine/tools/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernels/base/error.h"

namespace clinfer {

namespace {

[[noreturn]] void fail_argument(const std::string& what) {
  throw Error(ErrorCode::bad_argument, what);
}

const OptionSpec& find_option(const CommandSpec& spec, const std::string& name) {
  std::string names;
  for (const OptionSpec& option : spec.options) {
    if (option.name == name) return option;
    names += (names.empty() ? "" : ", ") + option.name;
  }
  fail_argument("there is no option " + name + "; clinfer " + spec.name + " takes " + names);
}

}  // namespace

Arguments::Arguments(const CommandSpec& spec, const std::vector<std::string>& words) {
  bool only_positional = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (only_positional || word.size() < 2 || word[0] != '-') {
      positional_.push_back(word);
    } else if (word == "--") {
      only_positional = true;
    } else if (word == "--help" || word == "-h") {
      help_ = true;
      return;
    } else {
      const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
      const std::string name = word.substr(0, equals);
      const OptionSpec& option = find_option(spec, name);
      std::string value;
      if (equals != std::string::npos) {
        if (option.value.empty()) fail_argument(option.name + " takes no value");
        value = word.substr(equals + 1);
      } else if (!option.value.empty()) {
        if (i + 1 == words.size())
          fail_argument(option.name + " needs a value: " + option.name + " " + option.value);
        value = words[++i];
      }
      values_[option.name].push_back(std::move(value));
    }
  }
  if (positional_.size() < spec.positional.size() &&
      !spec.positional[positional_.size()].starts_with("["))
    fail_argument(spec.positional[positional_.size()] + " is missing; see clinfer " + spec.name +
                  " --help");
  const bool repeats = std::any_of(spec.positional.begin(), spec.positional.end(),
                                   [](const std::string& name) { return name.ends_with("..."); });
  if (positional_.size() > spec.positional.size() && !repeats)
    fail_argument("what is \"" + positional_[spec.positional.size()] + "\"? See clinfer " +
                  spec.name + " --help");
}

std::optional<std::string> Arguments::value(const std::string& option) const {
  const auto found = values_.find(option);
  if (found == values_.end()) return {};
  return found->second.back();
}

std::vector<std::string> Arguments::all(const std::string& option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

unsigned Arguments::number(const std::string& option, unsigned otherwise, unsigned least,
                           unsigned most) const {
  const auto text = value(option);
  if (!text) return otherwise;
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || number < least || number > most)
    fail_argument(
        option + " is " + *text + ", a whole number from " + std::to_string(least) +
        (most < std::numeric_limits<unsigned>::max() ? " to " + std::to_string(most) : "") +
        " is needed");
  return number;
}

std::optional<double> Arguments::real(const std::string& option) const {
  const auto text = value(option);
  if (!text) return {};
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size())
    return std::numeric_limits<double>::quiet_NaN();
  return number;
}

double Arguments::seconds(const std::string& option, double otherwise) const {
  const std::optional<double> number = real(option);
  if (number && (!(*number > 0) || *number > 1e6))
    fail_argument(option + " is " + *value(option) + ", a time in seconds above 0 is needed");
  return number.value_or(otherwise);
}

std::optional<double> Arguments::share(const std::string& option) const {
  const std::optional<double> number = real(option);
  if (number && !(*number >= 0 && *number <= 1))
    fail_argument(option + " is " + *value(option) + ", a number from 0 to 1 is needed");
  return number;
}

std::string help_text(const CommandSpec& spec) {
  std::string text = "clinfer " + spec.name;
  for (const std::string& name : spec.positional) text += " " + name;
  text += spec.options.empty() ? "\n" : " [options]\n";
  text += "  " + spec.help + "\n";
  size_t width = 0;
  const auto left = [](const OptionSpec& o) {
    return o.name + (o.value.empty() ? "" : " " + o.value);
  };
  for (const OptionSpec& option : spec.options) width = std::max(width, left(option).size());
  for (const OptionSpec& option : spec.options) {
    const std::string name = left(option);
    text += "  " + name + std::string(width - name.size() + 2, ' ') + option.help + "\n";
  }
  return text;
}

}  // namespace clinfer
