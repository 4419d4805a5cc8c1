// Tensors as inputs of a request, and the preparation of inputs for an inference.
#include "engine/runtime/requests/request_inputs.h"

#include <algorithm>
#include <tuple>

#include "engine/runtime/requests/memory_objects.h"
#include "kernels/frames/clip.h"

namespace clinfer {

RequestInputs::RequestInputs(RequestWork& work)
    : work_(work), network_(*work.network), host_(network_.network_inputs.size()) {}

size_t RequestInputs::network_input(size_t index) const {
  if (index >= network_.inputs.size())
    throw Error(ErrorCode::bad_argument, "there is no input " + std::to_string(index) +
                                             "; the model has " +
                                             std::to_string(network_.inputs.size()));
  return network_.picture && index > network_.picture->index ? index - 1 : index;
}

size_t RequestInputs::tensor_input(size_t index) const {
  work_.check_idle();
  const size_t target = network_input(index);
  if (network_.picture && target == network_.picture->index)
    throw Error(ErrorCode::unsupported, "input " + std::to_string(index) +
                                            " is a plane of a picture of any size: use "
                                            "set_input(), set_frame() or set_memory()");
  return target;
}

const TensorDesc& RequestInputs::stored_input(size_t target) const {
  return network_.plan().graph->parameters[target]->outputs[0].desc;
}

size_t RequestInputs::images_in(size_t target, bool nhwc) const {
  return static_cast<size_t>(images_of(network_.network_inputs[target].shape, nhwc));
}

bool RequestInputs::is_stored_as_given(size_t target) const {
  const TensorDesc& desc = stored_input(target);
  return desc.type == network_.network_inputs[target].type && desc.is_row_major();
}

void RequestInputs::replace_input(size_t target) {
  host_[target].dirty = false;
  host_[target].from.reset();
  if (const auto found = device_.find(target); found != device_.end()) {
    found->second.bound = found->second.pending = false;
    found->second.lent.reset();
  }
  for (auto& [place, picture] : pictures_)
    if (place.first == target) picture.due = picture.on_device = false;
  lost_.found(target);
}

void RequestInputs::keep_other_images(size_t target, size_t images) {
  HostInput& input = host_[target];
  const auto device = device_.find(target);
  if (images == 1) {
    input.dirty = false;
    input.from.reset();
    if (device != device_.end()) device->second.bound = device->second.pending = false;
    return;
  }
  if (input.from != nullptr) {
    convert_memory(target);
    input.from.reset();
    input.dirty = true;
  }
  if (device == device_.end()) return;
  device->second.pending |= std::exchange(device->second.bound, false);
}

void RequestInputs::set_tensor(size_t index, const Tensor& value) try {
  work_.check_idle();
  const size_t target = network_input(index);
  const Port& port = network_.inputs[index];
  if (network_.picture && target == network_.picture->index)
    return planes_.set(index - target, port, value);
  if (value.shape() != port.shape)
    throw Error(ErrorCode::bad_argument, "input " + std::to_string(index) + " (\"" + port.name +
                                             "\") is " + to_string(port.shape) +
                                             ", the value given is " + to_string(value.shape()));
  replace_input(target);
  store(target, value);
  host_[target].dirty = true;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "allocating memory for an input");
}

void RequestInputs::store(size_t target, const Tensor& value) {
  const TensorDesc& desc = stored_input(target);
  const size_t bytes = static_cast<size_t>(desc.span()) * size_of(desc.type);
  if (bytes == 0) return;
  HostInput& input = host_[target];
  if (input.stored == nullptr) {
    input.stored = network_.make_host_memory(work_.stream.queue, bytes);
    std::fill_n(input.stored->data(), bytes, std::byte{0});  // gaps between elements stay zeros
  }
  scatter_to(value, desc, input.stored->data());
}

Tensor RequestInputs::value(size_t index) const {
  const size_t target = network_input(index);
  const Port& port = network_.network_inputs[target];
  if (count(port.shape) == 0) return Tensor::allocate(port.type, port.shape);
  if (host_[target].stored == nullptr)
    throw Error(ErrorCode::bad_argument, "input " + std::to_string(index) + " (\"" + port.name +
                                             "\") was lost with an inference; set it again");
  return gather_from(stored_input(target), host_[target].stored->data(), port.type);
}

void RequestInputs::upload_again() {
  work_.check_idle();
  for (size_t target = 0; target < host_.size(); ++target) {
    const auto device = device_.find(target);
    const bool in_use =
        std::ranges::none_of(pictures_,
                             [&](const auto& picture) { return picture.first.first == target; }) &&
        (device == device_.end() || !device->second.bound) && host_[target].from == nullptr;
    host_[target].dirty |= in_use && host_[target].stored != nullptr;
  }
}

std::span<std::byte> RequestInputs::memory(size_t index) try {
  const size_t target = tensor_input(index);
  const Port& port = network_.network_inputs[target];
  const size_t bytes = static_cast<size_t>(count(port.shape)) * size_of(port.type);
  HostInput& input = host_[target];
  if (input.memory == nullptr) {
    input.memory = network_.make_host_memory(work_.stream.queue, std::max<size_t>(bytes, 1));
    std::fill_n(input.memory->data(), bytes, std::byte{0});
  }
  replace_input(target);
  input.from = input.memory;
  return {input.memory->data(), bytes};
} catch (const cl::Error& error) {
  ocl::rethrow(error, "allocating memory for an input");
}

void RequestInputs::set_buffer(size_t index, const cl::Buffer& buffer, size_t offset,
                               const cl::Event& ready) {
  const size_t target = tensor_input(index);
  const Port& port = network_.network_inputs[target];
  const std::string what = "the buffer for input " + std::to_string(index);
  check_memory_object(*network_.context, buffer, CL_MEM_OBJECT_BUFFER, what);
  check_range(buffer, offset, TensorDesc::row_major(port.type, port.shape), what);
  take(target, {buffer, static_cast<int64_t>(offset)}, nullptr, ready);
}

static std::string input_memory(size_t input) {
  return "the memory for input " + std::to_string(input);
}

size_t RequestInputs::check_memory(size_t index, const void* data, size_t bytes) const {
  const Port& port = network_.network_inputs[tensor_input(index)];
  return check_range(data, bytes, TensorDesc::row_major(port.type, port.shape),
                     input_memory(index));
}

void RequestInputs::set_host_memory(size_t index, void* data, size_t bytes) {
  const size_t needed = check_memory(index, data, bytes), target = network_input(index);
  const ocl::Context& context = *network_.context;
  if (auto lent = LentMemory::make(context, work_.stream.queue, data, needed, true)) {
    const cl::Buffer buffer = lent->buffer();
    return take(target, {buffer}, std::move(lent), {});
  }
  replace_input(target);
  // The application owns the memory.
  const std::shared_ptr<std::byte> there(std::shared_ptr<void>(), static_cast<std::byte*>(data));
  host_[target].from = std::make_shared<ocl::HostMemory>(context, there, needed);
}

void RequestInputs::set_pointer(size_t index, ocl::DevicePointer::Kind kind, void* data,
                                size_t bytes, const cl::Event& ready) {
  check_memory(index, data, bytes);
  take(network_input(index),
       pointed_memory(*network_.context, kind, data, bytes, input_memory(index)), nullptr, ready);
}

void RequestInputs::take(size_t target, BoundBuffer memory, std::unique_ptr<LentMemory> lent,
                         const cl::Event& ready) {
  replace_input(target);
  DeviceInput& input = device_[target];
  input.memory = std::move(memory);
  input.lent = std::move(lent);
  input.ready = ready;
  input.bound = true;
}

std::string RequestInputs::why_copied(const SizedPlan& sized, size_t target,
                                      const DeviceInput& input) const {
  const Port& port = network_.network_inputs[target];
  return work_.in_place.why_not(sized, {sized.plan.graph->parameters[target], 0},
                                TensorDesc::row_major(port.type, port.shape), input.memory, true);
}

std::vector<std::string> RequestInputs::explain() const {
  std::map<size_t, std::string> reasons;
  for (const auto& [target, input] : device_)
    if (input.bound) reasons[target] = why_copied(network_.whole, target, input);
  for (size_t target = 0; target < host_.size(); ++target)
    if (host_[target].from != nullptr && host_[target].from != host_[target].memory)
      reasons[target] = LentMemory::why_not(*network_.context, host_[target].from->data(),
                                            host_[target].from->bytes());
  std::vector<std::string> lines;
  for (const auto& [target, why] : reasons)
    if (!why.empty())
      lines.push_back("input " + std::to_string(target) + " (" +
                      network_.network_inputs[target].name + "): copied, since " + why);
  return lines;
}

void RequestInputs::find_in_place(const SizedPlan& sized, InPlace::Wanted& wanted) {
  for (auto& [target, input] : device_) {
    // A plan for a part of a batch has a tensor of its own, which begins like the whole one.
    input.in_place =
        input.bound && &sized == &network_.whole && why_copied(sized, target, input).empty();
    if (input.in_place) wanted[{sized.plan.graph->parameters[target], 0}] = input.memory;
  }
}

void RequestInputs::begin(size_t images) {
  for (const auto& [target, input] : device_)
    if ((input.bound || input.pending) && input.memory.pointer != nullptr)
      input.memory.pointer->check();  // it may have been freed
  images_ = images;
  if (planes_.pending()) {
    const PictureInput& picture = *network_.picture;
    for (size_t n = 0; n < images_in(picture.index, picture.transform.nhwc); ++n)
      set_picture(picture.index, planes_.frame(static_cast<int64_t>(n)), DeviceFrame::Source::host,
                  {}, picture.transform, n);
  }
  lost_.check(network_.network_inputs, images, kNeverRead);
}

bool RequestInputs::is_wanted(const Place& place, bool nhwc) const {
  return LostImages::is_wanted(place, nhwc, network_.network_inputs, images_);
}

bool RequestInputs::reads_now(const Place& place, const Picture& picture) const {
  return picture.due && (!picture.on_device || is_wanted(place, picture.input.transform.nhwc));
}

bool RequestInputs::need_queue() const {
  return given_to_queue_ ||
         std::ranges::any_of(
             device_,
             [](const auto& input) { return input.second.bound || input.second.pending; }) ||
         std::ranges::any_of(pictures_, [this](const auto& picture) {
           const bool by_graph = picture.second.on_device
                                     ? picture.second.by_graph
                                     : !picture.second.input.graph_kernels.empty();
           return !by_graph && reads_now(picture.first, picture.second);
         });
}

bool RequestInputs::is_set_anew(size_t target) const {
  if (host_[target].dirty || host_[target].from != nullptr) return true;
  if (const auto found = device_.find(target);
      found != device_.end() && (found->second.bound || found->second.pending))
    return true;
  size_t images = 0, all = 0;
  for (const auto& [place, picture] : pictures_) {
    if (place.first != target || !reads_now(place, picture)) continue;
    ++images;
    all = images_in(target, picture.input.transform.nhwc);
  }
  return images != 0 && images == all;
}

void RequestInputs::take_along(const RequestMemory& before) {
  const Plan& plan = network_.plan();
  for (size_t i = 0; i < host_.size(); ++i) {
    if (is_set_anew(i)) continue;
    const Region& input = plan.region_of({plan.graph->parameters[i], 0});
    work_.stream.queue.enqueueCopyBuffer(before.all.buffer, work_.memory->all.buffer, input.offset,
                                         input.offset, input.bytes);
  }
}

// Converts inputs that the device stores in another form than the port states.
void RequestInputs::convert_memory(size_t target) {
  const Port& port = network_.network_inputs[target];
  store(target, Tensor::view(port.type, port.shape, host_[target].from->data(), nullptr));
}

void RequestInputs::enqueue() {
  for (size_t i = 0; i < host_.size(); ++i) {
    if (host_[i].from == nullptr || is_stored_as_given(i)) continue;
    convert_memory(i);
    host_[i].dirty = true;
  }
  {
    const auto lock = work_.take_stream();
    upload();
  }
  enqueue_frames();
  for (auto& [place, picture] : pictures_) {
    if (!picture.on_device) continue;
    if (reads_now(place, picture)) read_again(place, picture);
    picture.due = true;
  }
  given_to_queue_ = false;
}

void RequestInputs::upload() {
  for (size_t i = 0; i < host_.size(); ++i) {
    HostInput& input = host_[i];
    const bool direct = input.from != nullptr && !input.dirty;
    const ocl::HostMemory* const from = (direct ? input.from : input.stored).get();
    if ((!input.dirty && !direct) || from == nullptr || stored_input(i).elements() == 0) continue;
    work_.run->write(network_.whole.place_of(Edge{network_.plan().graph->parameters[i], 0}),
                     from->data(),
                     static_cast<size_t>(stored_input(i).span()) * size_of(stored_input(i).type));
    input.dirty = false;
  }
  for (auto& [target, input] : device_) {
    if (!input.bound && !input.pending) continue;
    if (input.lent != nullptr) input.lent->lend();
    const std::vector<cl::Event> after{input.ready};
    if (input.in_place) {
      if (input.ready() != nullptr) work_.stream.queue.enqueueBarrierWithWaitList(&after);
    } else {
      const Port& port = network_.network_inputs[target];
      if (input.copy == nullptr)
        input.copy = std::make_unique<TensorCopy>(
            network_, TensorDesc::row_major(port.type, port.shape), stored_input(target));
      input.copy->enqueue(work_.stream.queue, input.memory,
                          work_.buffer_of({network_.plan().graph->parameters[target], 0}),
                          input.ready() != nullptr ? &after : nullptr);
    }
    input.pending = false;
    input.ready = {};
  }
}

void RequestInputs::take_back() {
  for (auto& [target, input] : device_) {
    if (input.lent == nullptr) continue;
    input.lent->take_back();
    if (!input.bound && !input.pending) input.lent.reset();
  }
}

void RequestInputs::abandon() {
  for (auto& [place, picture] : pictures_) {
    if (!picture.on_device && picture.due) lost_.add(place, picture.input.transform.nhwc);
    picture.due = picture.on_device;
  }
}

std::shared_ptr<void> RequestInputs::leave() {
  std::vector<std::pair<std::shared_ptr<ocl::HostMemory>, std::shared_ptr<ocl::HostMemory>>>
      uploads;
  for (HostInput& input : host_)
    if (!input.dirty) uploads.emplace_back(std::exchange(input.stored, {}), input.memory);
  // Keeps pictures on the device: the next inference reads them again, with kernels of its own.
  std::map<Place, Picture> kept;
  for (auto& [place, picture] : pictures_) {
    if (!picture.on_device) continue;
    Picture& again = kept[place];
    again.input.frame = picture.input.frame;
    again.input.transform = picture.input.transform;
    again.input.index = place.first;
    again.input.image = place.second;
    again.input.source = picture.input.source;
    again.input.offsets = picture.input.offsets;
    again.surface = picture.surface;
    again.memories = picture.memories;
    again.image = picture.image;
    again.image_copy = picture.image_copy;
    again.on_device = again.due = true;
  }
  auto used = std::tuple(std::move(uploads), std::exchange(pictures_, std::move(kept)));
  return std::make_shared<decltype(used)>(std::move(used));
}

}  // namespace clinfer
