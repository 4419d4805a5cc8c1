// Reading of the files of a model. Nothing is mapped: a file that others shorten meanwhile is an
// error and not a signal.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace clinfer {

// Bytes to read piece by piece, of a file or of memory.
struct ByteSource {
  std::string path;
  size_t size = 0;
  // Fills `to` from `offset`; both together lie within `size`. Throws Error{bad_model} when the
  // file has become shorter.
  std::function<void(size_t offset, std::span<std::byte> to)> read;
};

// Both take regular files only (a pipe or a device would block or never end) and throw
// Error{not_found} that names the file.
ByteSource open_file(const std::string& path);
std::string read_text_file(const std::string& path);

}  // namespace clinfer
