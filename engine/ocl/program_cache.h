// Program binaries and compiled graphs on disk, one file each. A file that is not exactly what was written is
// ignored and replaced. Programs from the cache are run, so its folder and files count only where nobody but this
// user and root can change them.
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
// are the same cache.
class ProgramCache {
 public:
  // `directory` is made (with parents, for this user alone) at the first store; "" is refused by
  // the caller. Of files that together have more than `most_bytes` those go that were not used for
  // the longest time.
  explicit ProgramCache(const std::string& directory, uint64_t most_bytes = uint64_t{2} << 30);

  // The user's cache folder for this program: $XDG_CACHE_HOME/clinfer or ~/.cache/clinfer; "" when
  // neither is known.
  static std::string default_directory();

  // `key` is all that decides the binary: of a program its source, options, device, driver and engine
  // version.
  std::optional<std::vector<unsigned char>> load(const std::string& key) const;
  // A failure to write is not an error, but a problem().
  void store(const std::string& key, const std::vector<unsigned char>& binary) const;

  // The first reason why something was not read or not written, with advice; "" where there is
  // none.
  std::string problem() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace clinfer::ocl
