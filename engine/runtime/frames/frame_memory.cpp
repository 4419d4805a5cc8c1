// Frames in host memory that the device fetches from: allocating it, and giving such frames.
#include <cstdint>

#include "engine/runtime/compiled_model.h"
#include "engine/runtime/infer_request.h"

namespace clinfer {

std::shared_ptr<FrameMemory> DeviceModel::allocate_frame_memory(size_t bytes) try {
  return std::make_shared<ocl::HostMemory>(*network_->context, network_->stream(0).queue, bytes);
} catch (const cl::Error& error) {
  ocl::rethrow(error, "allocating " + std::to_string(bytes) + " bytes for frames");
}

bool DeviceNetwork::fetches_from(const FrameMemory& memory) const {
  const auto* own = dynamic_cast<const ocl::HostMemory*>(&memory);
  return own != nullptr && own->is_known_to(context->device);
}

void DeviceRequest::check_in(const FrameMemory& memory, const Frame& frame) const {
  if (!network_->fetches_from(memory))
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

Placement DeviceRequest::set_frame(size_t index, const Frame& frame,
                                   const FrameTransform& transform, size_t image,
                                   const FrameMemory* memory) {
  if (memory != nullptr) check_in(*memory, frame);
  const size_t target = network_input(index);
  const Placement placement = set_picture(target, frame, Source::host, {}, transform, image);
  frames_.at({target, image}).in_frame_memory = memory != nullptr;
  return placement;
}

}  // namespace clinfer
