// Pinned host memory, cut out of large pieces: the driver takes long to pin memory, and holds up
// what runs meanwhile, so that a pool of frames would stall all streams of a device once for each
// of its buffers.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace clinfer::cuda {

class Device;

// The pinned memory of a device. Thread-safe.
class PinnedMemory {
 public:
  // The device must outlive this object.
  explicit PinnedMemory(const Device& device) : device_(device) {}
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Returns uninitialised memory, aligned to a page, of so many bytes or more. It may be released by
  // any thread, and must be before this object is destroyed. Throws Failure{out_of_memory,
  // device_failed}.
  std::shared_ptr<std::byte> take(size_t bytes);

 private:
  // Memory that was pinned in one call.
  struct Piece {
    std::byte* data;
    size_t bytes;
    std::map<size_t, size_t> free;  // bytes of each free range by its offset; no two adjoin
  };
  using Pieces = std::list<Piece>;

  // Takes so many bytes, whole pages, out of a piece; returns their offset in it.
  std::pair<Pieces::iterator, size_t> cut(size_t bytes);
  Pieces::iterator pin(size_t bytes);
  void unpin(Pieces::iterator piece) noexcept;
  void give_back(Pieces::iterator piece, size_t offset, size_t bytes) noexcept;

  const Device& device_;
  std::mutex mutex_;  // guards the members below
  Pieces pieces_;
  size_t bytes_ = 0;  // of all pieces
};

}  // namespace clinfer::cuda
