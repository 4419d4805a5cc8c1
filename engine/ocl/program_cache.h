// Program binaries on disk, one file per program. A file that is not exactly what was written is
// ignored and replaced.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/hash.h"

namespace clinfer::ocl {

// Thread-safe, also between processes: files are written under a temporary name and renamed.
class ProgramCache {
 public:
  // `directory` is made (with parents) at the first store; "" is refused by the caller.
  explicit ProgramCache(std::string directory) : directory_(std::move(directory)) {}

  // The user's cache folder for this program: $XDG_CACHE_HOME/clinfer or ~/.cache/clinfer; "" when
  // neither is known.
  static std::string default_directory();

  // `key` is the full text that decides the binary (source, options, device, driver, engine
  // version).
  std::optional<std::vector<unsigned char>> load(const std::string& key) const;
  void store(const std::string& key,
             const std::vector<unsigned char>& binary) const;  // failures are silent: a cache

 private:
  std::string path(const std::string& key) const;
  std::string directory_;
};

}  // namespace clinfer::ocl
