// Cuts pinned memory out of large pieces, by the first range that is large enough.
#include "engine/cuda/pinned_memory.h"

#include <algorithm>
#include <iterator>

#include "engine/cuda/device.h"

namespace clinfer::cuda {

namespace {

constexpr size_t kPage = 4096;
// A new piece is as large as all others together, within these limits, so that many streams need few
// calls and one stream leaves little memory unused.
constexpr size_t kLeastPiece = size_t{4} << 20, kLargestPiece = size_t{64} << 20;

}  // namespace

PinnedMemory::~PinnedMemory() {
  while (!pieces_.empty()) unpin(pieces_.begin());
}

PinnedMemory::Pieces::iterator PinnedMemory::pin(size_t bytes) {
  const size_t whole = std::max(bytes, std::clamp(bytes_, kLeastPiece, kLargestPiece));
  const Current current(device_);
  void* data = nullptr;
  device_.driver().cuMemHostAlloc(&data, whole, CU_MEMHOSTALLOC_PORTABLE);
  bytes_ += whole;
  return pieces_.insert(pieces_.end(), {static_cast<std::byte*>(data), whole, {{0, whole}}});
}

void PinnedMemory::unpin(Pieces::iterator piece) noexcept {
  const Current current(device_, std::nothrow);
  device_.driver().cuMemFreeHost.result_of(piece->data);
  bytes_ -= piece->bytes;
  pieces_.erase(piece);
}

std::shared_ptr<std::byte> PinnedMemory::take(size_t bytes) {
  bytes = std::max<size_t>(bytes + kPage - 1, kPage) / kPage * kPage;
  const auto [piece, offset] = cut(bytes);
  return {piece->data + offset, [this, piece = piece, offset = offset, bytes](void*) {
            give_back(piece, offset, bytes);
          }};
}

std::pair<PinnedMemory::Pieces::iterator, size_t> PinnedMemory::cut(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto fits = [bytes](const auto& range) { return range.second >= bytes; };
  auto range = std::map<size_t, size_t>::iterator();
  auto piece = std::find_if(pieces_.begin(), pieces_.end(), [&](Piece& candidate) {
    range = std::find_if(candidate.free.begin(), candidate.free.end(), fits);
    return range != candidate.free.end();
  });
  if (piece == pieces_.end()) {
    piece = pin(bytes);
    range = piece->free.begin();
  }
  const auto [offset, length] = *range;
  if (length > bytes) piece->free.emplace(offset + bytes, length - bytes);
  piece->free.erase(range);
  return {piece, offset};
}

// Joins the range with its free neighbours. Keeps one unused piece for later calls of take(),
// because the driver holds up the device to release memory, too.
void PinnedMemory::give_back(Pieces::iterator piece, size_t offset, size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  auto& free = piece->free;
  auto after = free.lower_bound(offset);
  if (after != free.end() && after->first == offset + bytes) {
    bytes += after->second;
    after = free.erase(after);
  }
  if (after != free.begin() && std::prev(after)->first + std::prev(after)->second == offset)
    std::prev(after)->second += bytes;
  else
    free.emplace_hint(after, offset, bytes);
  const auto is_unused = [](const Piece& one) {
    return one.free.size() == 1 && one.free.begin()->second == one.bytes;
  };
  if (is_unused(*piece) && std::count_if(pieces_.begin(), pieces_.end(), is_unused) > 1)
    unpin(piece);
}

}  // namespace clinfer::cuda
