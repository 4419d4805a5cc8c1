// Planes in DMA-BUFs as pictures: importing, checking, and reading them around one kernel.
#include <limits>
#include <set>

#include "engine/runtime/compiled_model.h"
#include "engine/runtime/infer_request.h"

namespace clinfer {

namespace {

ocl::ExternalMemory& own_memory(const DeviceNetwork& network, ImportedMemory& memory) {
  auto* own = dynamic_cast<ocl::ExternalMemory*>(&memory);
  if (own == nullptr || own->context()() != network.context->context())
    throw Error(ErrorCode::bad_argument,
                "a DMA-BUF was imported by another model: its buffer is of another OpenCL context");
  return *own;
}

// The planes that a picture has, as kernels take them.
struct OwnPlanes {
  PlaneMemories memories{};
  std::array<int, 3> offsets{};
};

// Throws Error{bad_argument} for planes without memory, in that of another model, or beyond theirs.
OwnPlanes own_planes(const DeviceNetwork& network, const Frame& picture,
                     const ImportedPlanes& planes) {
  const auto sizes = plane_sizes(picture);
  OwnPlanes own;
  for (size_t p = 0; p < sizes.size(); ++p) {
    if (sizes[p].rows == 0) continue;
    if (planes.memories[p] == nullptr)
      throw Error(ErrorCode::bad_argument,
                  "plane " + std::to_string(p) + " of a frame has no memory");
    own.memories[p] = &own_memory(network, *planes.memories[p]);
    const size_t bytes = own.memories[p]->bytes(), offset = planes.offsets[p];
    const int stride = picture.strides[p];
    const auto limit = static_cast<int64_t>(
        std::min<size_t>(bytes, static_cast<size_t>(std::numeric_limits<int>::max())));
    if (stride < sizes[p].row_bytes || offset > static_cast<size_t>(limit) ||
        static_cast<int64_t>(offset) + sizes[p].bytes(stride) > limit)
      throw Error(ErrorCode::bad_argument,
                  "plane " + std::to_string(p) + " of a frame, at byte " + std::to_string(offset) +
                      " with stride " + std::to_string(stride) + ", does not fit its DMA-BUF of " +
                      std::to_string(bytes) + " bytes");
    own.offsets[p] = static_cast<int>(offset);
  }
  return own;
}

// Each memory once, in the order of their addresses.
std::vector<ocl::ExternalMemory*> distinct(const PlaneMemories& planes) {
  std::set<ocl::ExternalMemory*> memories(planes.begin(), planes.end());
  memories.erase(nullptr);
  return {memories.begin(), memories.end()};
}

}  // namespace

std::shared_ptr<ImportedMemory> DeviceModel::import_dmabuf(int fd, size_t bytes) {
  if (!dmabuf_problem().empty())
    throw Error(ErrorCode::bad_argument, "DMA-BUFs cannot be imported: " + dmabuf_problem());
  auto memory = network_->dmabufs->import(network_->context->context, fd, bytes);
  const std::lock_guard lock(mutex_);
  std::erase_if(memories_, [](const auto& weak) { return weak.expired(); });
  memories_.push_back(memory);
  return memory;
}

std::string DeviceModel::check_memory(const ImportedPlanes& imported, const Frame& picture,
                                      const Frame& expected) try {
  const OwnPlanes own = own_planes(*network_, picture, imported);
  std::array<DevicePlane, 3> planes;
  for (size_t p = 0; p < 3; ++p) planes[p] = {own.offsets[p], picture.strides[p]};
  const FrameTransform transform;
  const TensorDesc out =
      TensorDesc::row_major(ElementType::u8, {1, 3, picture.height, picture.width});
  return check_picture(
      plan_preprocess(picture, planes, transform, out, 0, network_->default_preprocess_point()),
      out,
      [&](const Argument& argument) -> BoundBuffer {
        return {own.memories[argument.index]->buffer(), 0};
      },
      [&](const cl::CommandQueue& queue, const ocl::AcquireRelease::Use& use) {
        network_->dmabufs->with_acquired(queue, distinct(own.memories), use);
      },
      expected);
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading a DMA-BUF");
}

Placement DeviceRequest::set_memory(size_t index, const ImportedPlanes& planes,
                                    const Frame& picture, const FrameTransform& transform,
                                    size_t image) try {
  const OwnPlanes own = own_planes(*network_, picture, planes);
  const size_t target = network_input(index);
  const Placement placement =
      set_picture(target, picture, Source::memory, own.offsets, transform, image);
  ImageInput& input = frames_.at({target, image});
  input.pending = false;
  const std::lock_guard lock(stream_.mutex);
  bind_frame(input, nullptr, &own.memories);
  network_->dmabufs->with_acquired(
      stream_.queue, distinct(own.memories),
      [&](const cl::Event& acquired) { return enqueue_frame(input, acquired); });
  return placement;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading a DMA-BUF");
}

}  // namespace clinfer
