// Reads the files of a model. They are not mapped: a file that becomes shorter meanwhile is then an
// error and not a signal.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace clinfer {

// Bytes of a file or of memory, to be read piece by piece.
struct ByteSource {
  std::string path;
  size_t size = 0;
  // Fills `to` from `offset`; the range must lie within `size`. Throws Error{bad_model} if the file
  // has become shorter.
  std::function<void(size_t offset, std::span<std::byte> to)> read;
};

// Both functions accept regular files only (a pipe or a device would block or never end) and throw
// Error{not_found}, which names the file.
ByteSource open_file(const std::string& path);
std::string read_text_file(const std::string& path);

// Returns the path of a file that a model needs: `name` is relative to the model's folder. Links
// are followed, and must lead into this folder, or into the folder in which the model itself lies
// after its own links are followed (model caches of hubs are laid out like that). Throws
// Error{bad_model} for a name or a link that leads elsewhere, Error{not_found} if there is no such
// file.
std::string file_beside(const std::string& model, const std::string& name);

}  // namespace clinfer
