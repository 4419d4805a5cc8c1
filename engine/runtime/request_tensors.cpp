// Inputs and outputs of a request in memory of the application, on the host and on the device.
#include "engine/ocl/external_memory.h"
#include "engine/runtime/infer_request.h"
#include "kernels/base/host_type.h"

namespace clinfer {

namespace {

// Throws unless it is a memory object of this type and of the context.
void check_memory_object(const ocl::Context& context, const cl::Memory& memory,
                         cl_mem_object_type type, const std::string& what) {
  if (memory() == nullptr) throw Error(ErrorCode::bad_argument, what + " is null");
  if (memory.getInfo<CL_MEM_TYPE>() != type)
    throw Error(
        ErrorCode::bad_argument,
        what + (type == CL_MEM_OBJECT_BUFFER ? " is no buffer" : " is no two-dimensional image"));
  if (memory.getInfo<CL_MEM_CONTEXT>()() != context.context())
    throw Error(
        ErrorCode::bad_argument,
        what + " is of another OpenCL context than the model; compile the model in that one");
}

void check_range(const cl::Buffer& buffer, size_t offset, const TensorDesc& desc,
                 const std::string& what) {
  const auto bytes = static_cast<size_t>(desc.elements()) * size_of(desc.type);
  const size_t all = buffer.getInfo<CL_MEM_SIZE>();
  if (offset % size_of(desc.type) != 0)
    throw Error(ErrorCode::bad_argument, what + ": offset " + std::to_string(offset) +
                                             " is no multiple of an element's " +
                                             std::to_string(size_of(desc.type)) + " bytes");
  if (offset > all || bytes > all - offset)
    throw Error(ErrorCode::bad_argument,
                what + ": " + to_string(desc.shape) + " of " + std::string(name_of(desc.type)) +
                    " needs " + std::to_string(bytes) + " bytes from " + std::to_string(offset) +
                    " on, the buffer has " + std::to_string(all));
}

size_t components_of(cl_channel_order order) {
  switch (order) {
    case CL_R:
      return 1;
    case CL_RG:
      return 2;
    case CL_RGBA:
    case CL_BGRA:
      return 4;
    default:
      return 0;
  }
}

bool image_holds(cl_channel_type channel, ElementType type) {
  switch (type) {
    case ElementType::f32:
      return channel == CL_FLOAT;
    case ElementType::f16:
      return channel == CL_HALF_FLOAT;
    case ElementType::u8:
      return channel == CL_UNSIGNED_INT8 || channel == CL_UNORM_INT8;
    case ElementType::i8:
      return channel == CL_SIGNED_INT8 || channel == CL_SNORM_INT8;
    case ElementType::i32:
      return channel == CL_SIGNED_INT32;
    case ElementType::u32:
      return channel == CL_UNSIGNED_INT32;
    default:
      return false;
  }
}

}  // namespace

size_t DeviceRequest::tensor_input(size_t index) const {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  const size_t target = network_input(index);
  if (network_->picture && target == network_->picture->index)
    throw Error(ErrorCode::unsupported, "input " + std::to_string(index) +
                                            " is a plane of a picture of any size: use "
                                            "set_input(), set_frame() or set_memory()");
  return target;
}

void DeviceRequest::replace_input(size_t target) {
  host_inputs_[target].dirty = host_inputs_[target].from_memory = false;
  if (const auto found = device_inputs_.find(target); found != device_inputs_.end())
    found->second.pending = false;
}

void DeviceRequest::replace_frames(size_t target) {
  replace_input(target);
  for (auto& [where, frame] : frames_)
    if (where.first == target) frame.pending = false;
}

const TensorDesc& DeviceRequest::stored_input(size_t target) const {
  return network_->plan().graph->parameters[target]->outputs[0].desc;
}

std::span<std::byte> DeviceRequest::input_memory(size_t index) try {
  const size_t target = tensor_input(index);
  const Port& port = network_->network_inputs[target];
  const size_t bytes = static_cast<size_t>(count(port.shape)) * size_of(port.type);
  HostInput& input = host_inputs_[target];
  if (input.memory == nullptr) {
    input.memory = network_->make_host_memory(stream_.queue, std::max<size_t>(bytes, 1));
    std::fill_n(input.memory->data(), bytes, std::byte{0});
  }
  replace_frames(target);
  input.from_memory = true;
  return {input.memory->data(), bytes};
} catch (const cl::Error& error) {
  ocl::rethrow(error, "allocating memory for an input");
}

// The host converts those that the device stores otherwise than the port states them.
void DeviceRequest::convert_input_memory() {
  for (size_t i = 0; i < host_inputs_.size(); ++i) {
    HostInput& input = host_inputs_[i];
    const TensorDesc& desc = stored_input(i);
    const Port& port = network_->network_inputs[i];
    if (!input.from_memory || count(port.shape) == 0) continue;
    if (desc.type == port.type && desc.is_row_major()) continue;
    input.bytes.resize(static_cast<size_t>(desc.span()) * size_of(desc.type));
    scatter_to(Tensor::view(port.type, port.shape, input.memory->data(), nullptr), desc,
               input.bytes.data());
    input.dirty = true;
  }
}

void DeviceRequest::upload_inputs() {
  for (size_t i = 0; i < host_inputs_.size(); ++i) {
    HostInput& input = host_inputs_[i];
    const bool direct = input.from_memory && !input.dirty;
    const size_t bytes = direct ? input.memory->bytes() : input.bytes.size();
    if ((!input.dirty && !direct) || bytes == 0 || stored_input(i).elements() == 0) continue;
    run_->write(network_->whole.place_of(Edge{network_->plan().graph->parameters[i], 0}),
                direct ? input.memory->data() : input.bytes.data(), bytes);
    input.dirty = false;
  }
  for (auto& [target, input] : device_inputs_) {
    if (!input.pending) continue;
    input.pending = false;
    const std::vector<cl::Event> after{input.ready};
    input.copy->enqueue(stream_.queue, {input.buffer, static_cast<int64_t>(input.offset)},
                        buffer_of({network_->plan().graph->parameters[target], 0}),
                        input.ready() != nullptr ? &after : nullptr);
    input.ready = {};
  }
}

void DeviceRequest::set_device_input(size_t index, const cl::Buffer& buffer, size_t offset,
                                     const cl::Event& ready) {
  const size_t target = tensor_input(index);
  const Port& port = network_->network_inputs[target];
  const std::string what = "the buffer for input " + std::to_string(index);
  check_memory_object(*network_->context, buffer, CL_MEM_OBJECT_BUFFER, what);
  const TensorDesc given = TensorDesc::row_major(port.type, port.shape);
  check_range(buffer, offset, given, what);
  DeviceInput& input = device_inputs_[target];
  if (input.copy == nullptr)
    input.copy = std::make_unique<TensorCopy>(*network_, given, stored_input(target));
  replace_frames(target);
  input.buffer = buffer;
  input.offset = offset;
  input.ready = ready;
  input.pending = true;
}

Placement DeviceRequest::set_image(size_t index, const cl::Image2D& picture,
                                   const FrameTransform& transform, size_t image) {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  const size_t target = network_input(index);
  check_memory_object(*network_->context, picture, CL_MEM_OBJECT_IMAGE2D,
                      "the image for input " + std::to_string(index));
  const cl_image_format format = picture.getImageInfo<CL_IMAGE_FORMAT>();
  const size_t components = components_of(format.image_channel_order);
  const bool bytes = format.image_channel_data_type == CL_UNORM_INT8 ||
                     format.image_channel_data_type == CL_UNSIGNED_INT8;
  if (!bytes || components == 0 || components == 2)
    throw Error(ErrorCode::bad_argument,
                "an image for an input is CL_RGBA, CL_BGRA or CL_R, of 8-bit UNORM "
                "or UNSIGNED; planes of NV12 are two images (import_images)");
  const size_t width = picture.getImageInfo<CL_IMAGE_WIDTH>(),
               height = picture.getImageInfo<CL_IMAGE_HEIGHT>();
  Frame frame;
  frame.format = components == 1                         ? PixelFormat::gray8
                 : format.image_channel_order == CL_BGRA ? PixelFormat::bgrx
                                                         : PixelFormat::rgbx;
  frame.width = static_cast<int>(width);
  frame.height = static_cast<int>(height);
  frame.strides[0] = static_cast<int>(width * components);
  auto& copy = image_copies_[{target, image}];
  const size_t size = width * height * components;
  if (copy == nullptr || copy->bytes() < size)
    copy = std::make_shared<ocl::ExternalMemory>(
        network_->context->context,
        cl::Buffer(network_->context->context, CL_MEM_READ_WRITE, size));
  {
    const std::lock_guard lock(stream_.mutex);
    stream_.queue.enqueueCopyImageToBuffer(picture, copy->buffer(), {0, 0, 0}, {width, height, 1},
                                           0);
  }
  ImportedPlanes planes;
  planes.memories[0] = copy;
  return set_memory(index, planes, frame, transform, image);
}

DeviceRequest::DeviceOutput& DeviceRequest::redirect_output(size_t index) {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  const std::vector<Node*>& results = network_->plan().graph->results;
  if (index >= results.size())
    throw Error(ErrorCode::bad_argument, "there is no output " + std::to_string(index) +
                                             "; the model has " + std::to_string(results.size()));
  const Edge edge = results[index]->inputs[0];
  if (edge.node->def != nullptr && edge.node->def->rows_depend_on_data)
    throw Error(ErrorCode::unsupported,
                "output " + std::to_string(index) +
                    " has as many rows as its values say: read it by output()");
  return device_outputs_[index];
}

TensorDesc DeviceRequest::given_output(size_t index) const {
  const Port& port = network_->outputs[index];
  return TensorDesc::row_major(host_type(port.type), port.shape);
}

void DeviceRequest::set_device_output(size_t index, const cl::Buffer& buffer, size_t offset) {
  if (buffer() == nullptr) {
    redirect_output(index);
    device_outputs_.erase(index);
    return;
  }
  const std::string what = "the buffer for output " + std::to_string(index);
  check_memory_object(*network_->context, buffer, CL_MEM_OBJECT_BUFFER, what);
  DeviceOutput& output = redirect_output(index);
  try {
    check_range(buffer, offset, given_output(index), what);
  } catch (const Error&) {
    if (output.buffer() == nullptr) device_outputs_.erase(index);
    throw;
  }
  output.buffer = buffer;
  output.offset = offset;
  output.image = {};
}

const cl::Buffer& DeviceRequest::own_output_buffer(size_t index) {
  redirect_output(index);
  cl::Buffer& own = own_outputs_[index];
  if (own() == nullptr) {
    const TensorDesc desc = given_output(index);
    const auto bytes = static_cast<size_t>(desc.elements()) * size_of(desc.type);
    own = cl::Buffer(network_->context->context, CL_MEM_READ_WRITE, std::max<size_t>(bytes, 1));
  }
  set_device_output(index, own, 0);
  return own;
}

void DeviceRequest::set_output_image(size_t index, const cl::Image2D& image) {
  check_memory_object(*network_->context, image, CL_MEM_OBJECT_IMAGE2D,
                      "the image for output " + std::to_string(index));
  redirect_output(index);
  const TensorDesc desc = given_output(index);
  const cl_image_format format = image.getImageInfo<CL_IMAGE_FORMAT>();
  const size_t components = components_of(format.image_channel_order);
  const size_t width = image.getImageInfo<CL_IMAGE_WIDTH>(),
               height = image.getImageInfo<CL_IMAGE_HEIGHT>();
  // Planes of several components, one after the other, are no pixels.
  const bool pixels = components == 1 || (!desc.shape.empty() &&
                                          desc.shape.back() == static_cast<int64_t>(components));
  if (!pixels || !image_holds(format.image_channel_data_type, desc.type) ||
      width * height * components != static_cast<size_t>(desc.elements())) {
    if (device_outputs_.at(index).buffer() == nullptr) device_outputs_.erase(index);
    throw Error(ErrorCode::bad_argument,
                "output " + std::to_string(index) + " is " + to_string(desc.shape) + " of " +
                    std::string(name_of(desc.type)) + "; an image of " + std::to_string(width) +
                    "x" + std::to_string(height) + " with " + std::to_string(components) +
                    " components cannot hold it (components are the last dimension)");
  }
  own_output_buffer(index);
  device_outputs_.at(index).image = image;
}

void DeviceRequest::deliver_output(size_t index, const Edge& edge) {
  DeviceOutput& output = device_outputs_.at(index);
  const TensorDesc& from = edge.node->outputs[edge.port].desc;
  const TensorDesc to = TensorDesc::row_major(host_type(network_->outputs[index].type), from.shape);
  if (to.elements() == 0) return;
  if (edge.node->is("Constant") || host_values_.contains(key(storage_root(edge)))) {
    const Tensor value = value_of(edge, to.type);
    stream_.queue.enqueueWriteBuffer(output.buffer, CL_TRUE, output.offset, value.bytes(),
                                     value.raw());
  } else {
    auto& copy = output.copies[sized_];
    if (copy == nullptr) copy = std::make_unique<TensorCopy>(*network_, from, to);
    copy->enqueue(stream_.queue, by_queue_.bound(sized_->place_of(edge)),
                  {output.buffer, static_cast<int64_t>(output.offset)});
  }
  if (output.image() == nullptr) return;
  stream_.queue.enqueueCopyBufferToImage(output.buffer, output.image, output.offset, {0, 0, 0},
                                         {output.image.getImageInfo<CL_IMAGE_WIDTH>(),
                                          output.image.getImageInfo<CL_IMAGE_HEIGHT>(), 1});
}

}  // namespace clinfer
