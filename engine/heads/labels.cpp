// Names of classes: from a property, a file, or the model.
#include "engine/heads/labels.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "kernels/base/error.h"
#include "kernels/base/files.h"

namespace clinfer {
namespace {

constexpr off_t kLargestFile = 16 << 20;

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// As RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF, no zero byte.
bool is_utf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const unsigned lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xc2 ? 0
                          : lead < 0xe0 ? 2
                          : lead < 0xf0 ? 3
                          : lead < 0xf5 ? 4
                                        : 0;
    if (length == 0 || lead == 0 || i + length > text.size()) return false;
    unsigned code = length == 1 ? lead : lead & (0x7fu >> length);
    for (size_t k = 1; k < length; ++k) {
      const unsigned next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3f);
    }
    if ((length == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
        (length == 4 && (code < 0x10000 || code > 0x10ffff)))
      return false;
    i += length;
  }
  return true;
}

}  // namespace

std::vector<std::string> parse_labels(const std::string& text) {
  std::string list = trimmed(text);
  if (list.size() >= 2 && list.front() == '<' && list.back() == '>')
    list = list.substr(1, list.size() - 2);
  std::vector<std::string> labels;
  if (trimmed(list).empty()) return labels;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    labels.push_back(trimmed(list.substr(at, end - at)));
    at = end + 1;
  }
  return labels;
}

std::vector<std::string> parse_model_labels(const std::string& text) {
  std::vector<std::string> labels;
  size_t at = text.find_first_not_of(" \t\r\n");
  while (at != std::string::npos) {
    const size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    labels.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(" \t\r\n", end);
  }
  return labels;
}

std::vector<std::string> labels_of_text(const std::string& text, const std::string& source) {
  std::vector<std::string> labels;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = trimmed(text.substr(at, end - at));
    if (!is_utf8(line)) {
      throw Error{ErrorCode::bad_argument,
                  source + " line " + std::to_string(labels.size() + 1) + " is not UTF-8 text"};
    }
    labels.push_back(line);
    at = end + 1;
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  return labels;
}

std::vector<std::string> read_labels(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0)
    throw Error{ErrorCode::not_found, "labels-file " + path + ": " + system_reason(errno)};
  if (!S_ISREG(status.st_mode))
    throw Error{ErrorCode::not_found, "labels-file " + path + " is not a file"};
  if (status.st_size > kLargestFile)
    throw Error{ErrorCode::bad_argument, "labels-file " + path + " is larger than 16 MiB"};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error{ErrorCode::not_found, "labels-file " + path + ": " + system_reason(errno)};
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (text.rfind("\xef\xbb\xbf", 0) == 0) text.erase(0, 3);
  std::vector<std::string> labels = labels_of_text(text, "labels-file " + path);
  if (labels.empty()) throw Error{ErrorCode::bad_argument, "labels-file " + path + " is empty"};
  return labels;
}

}  // namespace clinfer
