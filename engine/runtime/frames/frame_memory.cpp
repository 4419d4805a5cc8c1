// Checks of frame memory and of the frames that lie in it.
#include "engine/runtime/frames/frame_memory.h"

#include <cstdint>

#include "engine/ocl/host_memory.h"

namespace clinfer {

bool fetches_from(const ocl::Context& context, const FrameMemory& memory) {
  const auto* own = dynamic_cast<const ocl::HostMemory*>(&memory);
  return own != nullptr && own->is_known_to(context.device);
}

void check_in_frame_memory(const ocl::Context& context, const FrameMemory& memory,
                           const Frame& frame) {
  if (!fetches_from(context, memory))
    throw Error(ErrorCode::bad_argument,
                "frame memory was allocated by a model on a device of another driver");
  const auto sizes = plane_sizes(frame);
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  for (size_t p = 0; p < sizes.size(); ++p) {
    if (sizes[p].rows == 0) continue;
    const auto plane = reinterpret_cast<uintptr_t>(frame.planes[p]);
    const auto bytes = static_cast<size_t>(sizes[p].bytes(frame.strides[p]));
    if (plane < begin || plane - begin > memory.bytes() || bytes > memory.bytes() - (plane - begin))
      throw Error(ErrorCode::bad_argument,
                  "plane " + std::to_string(p) + " of a frame does not lie in its frame memory");
  }
}

}  // namespace clinfer
