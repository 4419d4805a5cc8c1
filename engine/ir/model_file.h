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

// The path of a file that a model needs beside it: `name` counts from the model's folder. Links are
// followed, and must lead into this folder, or into the one in which the model itself lies when its
// own links are followed (as caches of models on the hub lay them out). Throws Error{bad_model} for
// a name or a link that leads elsewhere, Error{not_found} where there is none.
std::string file_beside(const std::string& model, const std::string& name);

}  // namespace clinfer
