// Reading and mapping of the files of a model.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace clinfer {

// A file in memory, read-only; alive as long as `owner`.
struct MappedFile {
  std::string path;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// Both take regular files only (a pipe or a device would block or never end) and throw
// Error{not_found} that names the file.
MappedFile map_file(const std::string& path);
std::string read_text_file(const std::string& path);

}  // namespace clinfer
