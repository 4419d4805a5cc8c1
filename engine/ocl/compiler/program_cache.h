// Stores program binaries and compiled graphs on disk, one file each. A file that is not exactly
// what was written is ignored and replaced. Programs from the cache are run, so its folder and
// files are used only if nobody but this user and root can change them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/hash.h"

namespace clinfer::ocl {

// Thread-safe, also between processes: files are written under a temporary name and renamed. Copies
// of the object are the same cache.
class ProgramCache {
 public:
  // `directory` is created (with parents, for this user alone) at the first store; callers must not
  // pass "". When all files together exceed `most_bytes`, those that were not used for the longest
  // time are removed.
  explicit ProgramCache(const std::string& directory, uint64_t most_bytes = uint64_t{2} << 30);

  // Returns the user's cache folder for this program: $XDG_CACHE_HOME/clinfer or ~/.cache/clinfer;
  // "" if neither is known.
  static std::string default_directory();

  // Loads an entry. `key` must contain everything that the binary depends on: for a program its
  // source, options, device, driver and engine version.
  std::optional<std::vector<unsigned char>> load(const std::string& key) const;
  // Stores an entry. A failure to write is no error, but a problem().
  void store(const std::string& key, const std::vector<unsigned char>& binary) const;

  // Returns the first reason why something was not read or written, with advice; "" if there is
  // none.
  std::string problem() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace clinfer::ocl
