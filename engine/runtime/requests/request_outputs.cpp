// Brings results of a request to the host and into memory of the application.
#include "engine/runtime/requests/request_outputs.h"

#include <algorithm>
#include <cstring>

#include "engine/graph/evaluate.h"
#include "engine/runtime/requests/memory_objects.h"
#include "kernels/base/host_type.h"
#include "kernels/shape_util.h"

namespace clinfer {

void RequestOutputs::check_redirectable(size_t index) const {
  work_.check_idle();
  const size_t outputs = network_.outputs.size();
  if (index >= outputs)
    throw Error(ErrorCode::bad_argument, "there is no output " + std::to_string(index) +
                                             "; the model has " + std::to_string(outputs));
  const Edge edge = network_.plan().graph->results[index]->inputs[0];
  if (edge.node->def != nullptr && edge.node->def->rows_depend_on_data)
    throw Error(ErrorCode::unsupported,
                "output " + std::to_string(index) +
                    " has as many rows as its values say: read it by output()");
}

TensorDesc RequestOutputs::seen(size_t index) const {
  const Port& port = network_.outputs[index];
  return TensorDesc::row_major(host_type(port.type), port.shape);
}

void RequestOutputs::set_buffer(size_t index, const cl::Buffer& buffer, size_t offset) {
  check_redirectable(index);
  const std::string what = "the buffer for output " + std::to_string(index);
  check_memory_object(*network_.context, buffer, CL_MEM_OBJECT_BUFFER, what);
  check_range(buffer, offset, seen(index), what);
  give(index).memory = {buffer, static_cast<int64_t>(offset)};
}

static std::string output_memory(size_t output) {
  return "the memory for output " + std::to_string(output);
}

size_t RequestOutputs::check_memory(size_t index, const void* data, size_t bytes) const {
  check_redirectable(index);
  return check_range(data, bytes, seen(index), output_memory(index));
}

void RequestOutputs::set_host_memory(size_t index, void* data, size_t bytes) {
  const size_t needed = check_memory(index, data, bytes);
  auto lent = LentMemory::make(*network_.context, work_.stream.queue, data, needed, false);
  GivenOutput& output = give(index);
  if (lent == nullptr) {
    output.host = data;
    return;
  }
  output.memory.buffer = lent->buffer();
  output.lent = std::move(lent);
}

void RequestOutputs::set_pointer(size_t index, ocl::DevicePointer::Kind kind, void* data,
                                 size_t bytes) {
  check_memory(index, data, bytes);
  BoundBuffer memory = pointed_memory(*network_.context, kind, data, bytes, output_memory(index));
  give(index).memory = std::move(memory);
}

void RequestOutputs::reset(size_t index) {
  check_redirectable(index);
  given_.erase(index);
}

RequestOutputs::GivenOutput& RequestOutputs::give(size_t index) {
  GivenOutput& output = given_[index];
  output.memory = {};
  output.lent.reset();
  output.host = nullptr;
  output.image = {};
  return output;
}

bool RequestOutputs::need_queue() const {
  return std::ranges::any_of(given_,
                             [](const auto& output) { return output.second.host == nullptr; });
}

void RequestOutputs::check() const {
  for (const auto& [index, output] : given_)
    if (output.memory.pointer != nullptr) output.memory.pointer->check();
}

void RequestOutputs::lend() {
  for (auto& [index, output] : given_)
    if (output.lent != nullptr) output.lent->lend();
}

void RequestOutputs::take_back() {
  for (auto& [index, output] : given_)
    if (output.lent != nullptr) output.lent->take_back();
}

const cl::Buffer& RequestOutputs::own_buffer(size_t index) {
  check_redirectable(index);
  cl::Buffer& own = own_[index];
  if (own() == nullptr) {
    const TensorDesc desc = seen(index);
    const auto bytes = static_cast<size_t>(desc.elements()) * size_of(desc.type);
    own = cl::Buffer(network_.context->context, CL_MEM_READ_WRITE, std::max<size_t>(bytes, 1));
  }
  set_buffer(index, own, 0);
  return own;
}

void RequestOutputs::set_image(size_t index, const cl::Image2D& image) {
  check_memory_object(*network_.context, image, CL_MEM_OBJECT_IMAGE2D,
                      "the image for output " + std::to_string(index));
  check_redirectable(index);
  const TensorDesc desc = seen(index);
  const cl_image_format format = image.getImageInfo<CL_IMAGE_FORMAT>();
  const size_t components = components_of(format.image_channel_order);
  const size_t width = image.getImageInfo<CL_IMAGE_WIDTH>(),
               height = image.getImageInfo<CL_IMAGE_HEIGHT>();
  // Several planes of components, one after the other, cannot be an image's pixels.
  const bool pixels = components == 1 || (!desc.shape.empty() &&
                                          desc.shape.back() == static_cast<int64_t>(components));
  if (!pixels || !image_holds(format.image_channel_data_type, desc.type) ||
      width * height * components != static_cast<size_t>(desc.elements())) {
    throw Error(ErrorCode::bad_argument,
                "output " + std::to_string(index) + " is " + to_string(desc.shape) + " of " +
                    std::string(name_of(desc.type)) + "; an image of " + std::to_string(width) +
                    "x" + std::to_string(height) + " with " + std::to_string(components) +
                    " components cannot hold it (components are the last dimension)");
  }
  own_buffer(index);
  given_.at(index).image = image;
}

void RequestOutputs::deliver(size_t index, const Edge& edge) {
  GivenOutput& output = given_.at(index);
  const TensorDesc& from = edge.node->outputs[edge.port].desc;
  const TensorDesc to = TensorDesc::row_major(host_type(network_.outputs[index].type), from.shape);
  if (to.elements() == 0) return;
  if (output.in_place) {
    // The kernels have written it there.
  } else if (is_on_host(edge)) {
    const Tensor value = value_of(edge, to.type);
    if (output.memory.pointer != nullptr)
      output.memory.pointer->write(work_.stream.queue, value.raw(), value.bytes());
    else
      work_.stream.queue.enqueueWriteBuffer(output.memory.buffer, CL_TRUE,
                                            static_cast<size_t>(output.memory.offset),
                                            value.bytes(), value.raw());
  } else {
    auto& copy = output.copies[work_.sized];
    if (copy == nullptr) copy = std::make_unique<TensorCopy>(network_, from, to);
    copy->enqueue(work_.stream.queue, work_.by_queue.bound(work_.sized->place_of(edge)),
                  output.memory);
  }
  if (output.image() == nullptr) return;
  work_.stream.queue.enqueueCopyBufferToImage(output.memory.buffer, output.image,
                                              static_cast<size_t>(output.memory.offset), {0, 0, 0},
                                              {output.image.getImageInfo<CL_IMAGE_WIDTH>(),
                                               output.image.getImageInfo<CL_IMAGE_HEIGHT>(), 1});
}

std::string RequestOutputs::why_copied(const SizedPlan& sized, size_t index,
                                       const GivenOutput& output,
                                       const InPlace::Wanted& inputs) const {
  if (output.host != nullptr) {
    const TensorDesc desc = seen(index);
    return LentMemory::why_not(*network_.context, output.host,
                               static_cast<size_t>(desc.elements()) * size_of(desc.type));
  }
  const Edge& edge = sized.plan.graph->results[index]->inputs[0];
  const Node* const producer = storage_root(edge).node;
  if (std::ranges::any_of(sized.plan.steps,
                          [&](const Step& step) { return step.node == producer && step.on_host; }))
    return "the host computes it";
  for (const auto& [tensor, memory] : inputs)
    if (overlap(memory, output.memory)) return "an input lies in the same memory";
  return work_.in_place.why_not(sized, edge, seen(index), output.memory, false);
}

std::vector<std::string> RequestOutputs::explain(const InPlace::Wanted& inputs) const {
  std::vector<std::string> lines;
  for (const auto& [index, output] : given_)
    if (const std::string why = why_copied(network_.whole, index, output, inputs); !why.empty())
      lines.push_back("output " + std::to_string(index) + " (" + network_.outputs[index].name +
                      "): copied, since " + why);
  return lines;
}

void RequestOutputs::find_in_place(const SizedPlan& sized, InPlace::Wanted& wanted) {
  const InPlace::Wanted inputs = wanted;
  for (auto& [index, output] : given_) {
    output.in_place = &sized == &network_.whole && why_copied(sized, index, output, inputs).empty();
    const Edge& edge = sized.plan.graph->results[index]->inputs[0];
    if (output.in_place) wanted[{edge.node, edge.port}] = output.memory;
  }
}

void RequestOutputs::clear() {
  outputs_.clear();  // frees memory for the next results
  begin_segment();
}

void RequestOutputs::begin_segment() {
  for (Readback* const readback : read_) readback->owner.reset();
  read_.clear();
}

void RequestOutputs::read_operands(const Node& host_step) {
  for (const Edge& input : host_step.inputs) read_back(input, false);
}

void RequestOutputs::read_results() {
  const std::vector<Node*>& results = work_.sized->plan.graph->results;
  for (size_t i = 0; i < network_.outputs.size(); ++i) {
    const auto given = given_.find(i);
    if (given != given_.end() && given->second.host == nullptr)
      deliver(i, results[i]->inputs[0]);
    else
      read_back(results[i]->inputs[0], true);
  }
}

// Results stay in place until the next inference, so that a device that shares the host's memory
// can hand them out without a copy. Copied are operands of host steps and inputs that are results
// as well, since both may be overwritten sooner, and small results, which would keep a large memory
// alive while applications hold them.
void RequestOutputs::read_back(const Edge& edge, bool is_result) {
  if (is_on_host(edge)) return;
  const TensorDesc& desc = edge.node->outputs[edge.port].desc;
  if (desc.elements() == 0) return;
  Readback& readback = readbacks_[key(edge)];
  if (readback.owner) return;
  read_.push_back(&readback);
  const auto [low, high] = desc.byte_range();
  const auto begin = static_cast<size_t>(low), size = static_cast<size_t>(high - low);
  const Region& region = work_.sized->plan.region_of(edge);
  constexpr size_t kWorthMapping = size_t{128} << 10;
  if (is_result && network_.shares_host_memory() && size >= kWorthMapping &&
      !region.root.node->is("Parameter")) {
    readback.data = work_.by_queue.map(region.offset + begin, size);
    readback.owner = work_.memory;
    return;
  }
  const auto memory =
      readback.pools[work_.run].take([&] { return work_.run->make_host_memory(size); });
  readback.data = memory->data();
  readback.owner = memory;
  work_.run->read({static_cast<int>(region.memory), static_cast<int64_t>(region.offset + begin)},
                  memory->data(), size);
}

Tensor RequestOutputs::value_of(const Edge& edge, ElementType type) const {
  if (edge.node->is("Constant"))
    return edge.node->constant.type() == type ? edge.node->constant
                                              : edge.node->constant.convert(type);
  TensorDesc desc = edge.node->outputs[edge.port].desc;
  const Edge root = storage_root(edge);
  if (desc.elements() == 0 && !host_values_.contains(key(root)))
    return Tensor::allocate(type, desc.shape);
  if (const auto found = host_values_.find(key(root)); found != host_values_.end()) {
    if (root == edge)
      return found->second.type() == type ? found->second : found->second.convert(type);
    desc.type = found->second.type();
    return gather_from(desc, found->second.raw(), type);
  }
  const Readback& readback = readbacks_.at(key(edge));
  const auto value = [&] {
    if (desc.type == type && desc.is_row_major())
      return Tensor::view(type, desc.shape, readback.data, readback.owner);
    desc.offset -= desc.byte_range().first / static_cast<int64_t>(size_of(desc.type));
    return gather_from(desc, readback.data, type);
  };
  const OpDef* def = edge.node->def;
  return def && def->rows_depend_on_data ? trim_unused_rows(value()) : value();
}

bool RequestOutputs::lies_as_half(const Edge& edge) const {
  return !is_on_host(edge) && edge.node->outputs[edge.port].desc.type == ElementType::f16;
}

void RequestOutputs::set_value(const Edge& edge, Tensor value) {
  host_values_[key(edge)] = std::move(value);
}

void RequestOutputs::collect() {
  const Graph& graph = *work_.sized->plan.graph;
  outputs_.clear();
  for (size_t i = 0; i < network_.outputs.size(); ++i) {
    const ElementType port = network_.outputs[i].type;
    const Edge& edge = graph.results[i]->inputs[0];
    ElementType type = host_type(port);
    if (const auto given = given_.find(i); given != given_.end()) {
      if (void* const to = given->second.host) {
        const Tensor value = value_of(edge, type);
        std::memcpy(to, value.raw(), value.bytes());
      }
      outputs_.emplace_back();
      continue;
    }
    if (is_float(port) && network_.options.half_outputs && lies_as_half(edge))
      type = ElementType::f16;
    outputs_.push_back(value_of(edge, type));
  }
  forget_values();
}

const Tensor& RequestOutputs::at(size_t index) const {
  if (index >= network_.outputs.size())
    throw Error(ErrorCode::bad_argument, "there is no output " + std::to_string(index) +
                                             "; the model has " +
                                             std::to_string(network_.outputs.size()));
  if (work_.running || outputs_.empty())
    throw Error(ErrorCode::bad_argument, "there is no output " + std::to_string(index) +
                                             " before an inference has finished");
  if (const auto given = given_.find(index); given != given_.end() || outputs_[index].empty()) {
    const bool on_host =
        given != given_.end() && (given->second.host != nullptr || given->second.lent != nullptr);
    throw Error(ErrorCode::bad_argument, "output " + std::to_string(index) +
                                             " goes to memory of the " +
                                             (on_host ? "application" : "device"));
  }
  return outputs_[index];
}

std::shared_ptr<void> RequestOutputs::leave() {
  read_.clear();
  auto used = std::pair(std::exchange(readbacks_, {}), std::exchange(outputs_, {}));
  return std::make_shared<decltype(used)>(std::move(used));
}

}  // namespace clinfer
