// Copies tensors on the device.
#include "engine/runtime/network/tensor_copy.h"

namespace clinfer {

TensorCopy::TensorCopy(const DeviceNetwork& network, const TensorDesc& from, const TensorDesc& to)
    : network_(network), from_(from), to_(to) {
  if (from.elements() == 0) return;
  if (from.type == to.type && from.is_row_major() && to.is_row_major())
    bytes_ = static_cast<size_t>(from.elements()) * size_of(from.type);
  else
    make_kernels();
}

void TensorCopy::make_kernels() {
  OpDesc desc;
  desc.name = "a tensor of the application";
  desc.type = "Reorder";
  desc.inputs = {from_};
  desc.constants.resize(1);
  desc.outputs = {to_};
  desc.own_inputs = 1;
  std::string why;
  for (const KernelFamily* family : find_op(desc.type, desc.opset)->families) {
    why = family->reject(desc, network_.traits);
    if (!why.empty()) continue;
    plan_ = family->plan(desc, network_.traits, family->heuristic(desc, network_.traits));
    for (const KernelSpec& launch : plan_.launches)
      kernels_.push_back(network_.extra_kernel(launch));
    return;
  }
  throw Error(ErrorCode::unsupported,
              "the device does not copy this tensor: " + why + "; use host memory for it");
}

void TensorCopy::enqueue(const cl::CommandQueue& queue, const BoundBuffer& from,
                         const BoundBuffer& to, const std::vector<cl::Event>* after) {
  if (bytes_ != 0) {
    if (from.pointer == nullptr && to.pointer == nullptr) {
      queue.enqueueCopyBuffer(from.buffer, to.buffer, static_cast<size_t>(from.offset),
                              static_cast<size_t>(to.offset), bytes_, after);
      return;
    }
    // OpenCL has no copy between a buffer and a pointer.
    if (kernels_.empty()) make_kernels();
  }
  for (size_t l = 0; l < kernels_.size(); ++l) {
    bind_arguments(kernels_[l], plan_.launches[l], [&](const Argument& argument) {
      return argument.kind == Argument::Kind::output ? to : from;
    });
    clinfer::enqueue(queue, kernels_[l], plan_.launches[l], nullptr, after);
  }
}

std::string why_copied(const TensorDesc& stored, const TensorDesc& given) {
  if (stored.type != given.type)
    return "its kernels use " + std::string(name_of(stored.type)) + ", the application has " +
           std::string(name_of(given.type));
  if (!stored.is_row_major())
    return "its kernels use another order in memory (" +
           std::string(stored.is_channels_last() ? "channels last" : "a part of another tensor") +
           ")";
  return "";
}

}  // namespace clinfer
