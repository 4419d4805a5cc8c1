// Copies frames to memory that the device reads.
#include "engine/runtime/run/frame_input.h"

#include <algorithm>

namespace clinfer {

void ImportedRead::wait() const noexcept {
  try {
    over.wait();
  } catch (const Error&) {  // the stream failed: nothing of it is in flight
  }
}

// Returns offsets of the first byte and of the end of the rows of a frame's region, by plane.
std::array<std::pair<size_t, size_t>, 3> ranges_of_region(const Frame& frame) {
  const auto sizes = plane_sizes(frame);
  const auto rows = rows_of_region(frame);
  std::array<std::pair<size_t, size_t>, 3> ranges{};
  for (size_t p = 0; p < 3; ++p) {
    if (sizes[p].rows == 0) continue;
    const int stride = frame.strides[p];
    const auto begin = static_cast<size_t>(int64_t{stride} * rows[p].first);
    ranges[p] = {begin, begin + static_cast<size_t>(
                                    PlaneSize{rows[p].count, sizes[p].row_bytes}.bytes(stride))};
  }
  return ranges;
}

void copy_parts(
    DeviceFrame& input, const DeviceNetwork& network,
    const std::function<std::shared_ptr<ocl::HostMemory>(size_t bytes)>& pin,
    const std::function<void(size_t plane, size_t at, size_t bytes, const void* from)>& write) {
  const auto sizes = plane_sizes(input.frame);
  const auto ranges = ranges_of_region(input.frame);
  for (size_t p = 0; p < 3; ++p) {
    if (sizes[p].rows == 0) continue;
    const uint8_t* const data = input.frame.planes[p];
    const auto all = static_cast<size_t>(sizes[p].bytes(input.frame.strides[p]));
    input.starts[p] = 0;
    if (input.plane_bytes[p] < all) {
      input.planes[p] = make_memory(network, all);
      input.pinned[p].reset();
      input.plane_bytes[p] = all;
    }
    const auto [begin, end] = ranges[p];
    if (input.in_frame_memory || !network.wants_frame_memory()) {
      write(p, begin, end - begin, data + begin);
      continue;
    }
    if (input.pinned[p] == nullptr) input.pinned[p] = pin(input.plane_bytes[p]);
    // Copies in parts, so that one part is transferred while the next one is copied.
    constexpr size_t kPart = size_t{1} << 19;
    for (size_t at = begin; at < end; at += kPart) {
      const size_t part = std::min(kPart, end - at);
      write(p, at, part, input.pinned[p]->write(at, data + at, part));
    }
  }
}

}  // namespace clinfer
