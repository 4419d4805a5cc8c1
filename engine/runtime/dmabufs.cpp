// DMA-BUFs as pictures: importing, checking, and reading them around one kernel.
#include <limits>

#include "engine/runtime/infer_request.h"

namespace clinfer {

namespace {

// Offsets as kernels take them. Throws Error{bad_argument} for planes that reach beyond the memory.
std::array<int, 3> checked_offsets(const Frame& picture, const std::array<size_t, 3>& offsets,
                                   size_t bytes) {
  const auto sizes = plane_sizes(picture);
  std::array<int, 3> checked{};
  for (size_t p = 0; p < sizes.size(); ++p) {
    if (sizes[p].rows == 0) continue;
    const int64_t stride = picture.strides[p], row = sizes[p].row_bytes;
    const auto limit = static_cast<int64_t>(
        std::min<size_t>(bytes, static_cast<size_t>(std::numeric_limits<int>::max())));
    if (stride < row || offsets[p] > static_cast<size_t>(limit) ||
        static_cast<int64_t>(offsets[p]) + stride * (sizes[p].rows - 1) + row > limit)
      throw Error(ErrorCode::bad_argument,
                  "plane " + std::to_string(p) + " of a frame, at byte " +
                      std::to_string(offsets[p]) + " with stride " + std::to_string(stride) +
                      ", does not fit its DMA-BUF of " + std::to_string(bytes) + " bytes");
    checked[p] = static_cast<int>(offsets[p]);
  }
  return checked;
}

}  // namespace

ocl::ExternalMemory& own_memory(const DeviceModel& model, ImportedMemory& memory) {
  auto* own = dynamic_cast<ocl::ExternalMemory*>(&memory);
  if (own == nullptr || own->context()() != model.context().context())
    throw Error(ErrorCode::bad_argument,
                "a DMA-BUF was imported by another model: its buffer is of another OpenCL context");
  return *own;
}

std::shared_ptr<ImportedMemory> DeviceModel::import_dmabuf(int fd, size_t bytes) {
  if (!dmabuf_problem().empty())
    throw Error(ErrorCode::bad_argument, "DMA-BUFs cannot be imported: " + dmabuf_problem());
  auto memory = dmabufs_->import(context_->context, fd, bytes);
  const std::lock_guard lock(mutex_);
  std::erase_if(memories_, [](const auto& weak) { return weak.expired(); });
  memories_.push_back(memory);
  return memory;
}

std::string DeviceModel::check_memory(const std::shared_ptr<ImportedMemory>& imported,
                                      const Frame& picture, const std::array<size_t, 3>& offsets,
                                      const Frame& expected) try {
  ocl::ExternalMemory& memory = own_memory(*this, *imported);
  const std::array<int, 3> begins = checked_offsets(picture, offsets, memory.bytes());
  std::array<DevicePlane, 3> planes;
  for (size_t p = 0; p < 3; ++p) planes[p] = {begins[p], picture.strides[p]};
  const FrameTransform transform;
  const TensorDesc out =
      TensorDesc::row_major(ElementType::u8, {1, 3, picture.height, picture.width});
  return check_picture(
      plan_preprocess(picture, planes, transform, out, 0, default_preprocess_point()), out,
      [&](const Argument&) -> BoundBuffer {
        return {memory.buffer(), 0};
      },
      [&](const cl::CommandQueue& queue, const ocl::HandOver::Use& use) {
        dmabufs_->with_acquired(queue, memory, use);
      },
      expected);
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading a DMA-BUF");
}

Placement DeviceRequest::set_memory(size_t index, const std::shared_ptr<ImportedMemory>& memory,
                                    const Frame& picture, const std::array<size_t, 3>& offsets,
                                    const FrameTransform& transform, size_t image) try {
  ocl::ExternalMemory& own = own_memory(model_, *memory);
  const size_t target = network_input(index);
  const Placement placement =
      set_picture(target, picture, Source::memory, checked_offsets(picture, offsets, own.bytes()),
                  transform, image);
  FrameInput& input = frames_.at({target, image});
  input.pending = false;
  const std::lock_guard lock(stream_.mutex);
  bind_frame(input, nullptr, &own);
  model_.dmabufs().with_acquired(stream_.queue, own, [&](const cl::Event& acquired) {
    return enqueue_frame(input, acquired);
  });
  return placement;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading a DMA-BUF");
}

}  // namespace clinfer
