// Moves states between inferences on the device, and reads and sets them for the application.
#include "engine/runtime/requests/request_states.h"

#include <algorithm>

#include "kernels/base/host_type.h"
#include "kernels/shape_util.h"

namespace clinfer {

RequestStates::RequestStates(RequestWork& work) : work_(work), network_(*work.network) {
  for (const NetworkState& state : network_.states) {
    State& made = states_.emplace_back();
    made.value = cl::Buffer(network_.context->context, CL_MEM_READ_WRITE,
                            std::max<size_t>(state.initial.size(), 1));
  }
}

const NetworkState& RequestStates::described(size_t index) const {
  work_.check_idle();
  if (index >= states_.size())
    throw Error(ErrorCode::bad_argument, "there is no state " + std::to_string(index) +
                                             "; the model has " + std::to_string(states_.size()));
  return network_.states[index];
}

const TensorDesc& RequestStates::stored(size_t index) const {
  return network_.plan().graph->parameters[network_.states[index].parameter]->outputs[0].desc;
}

void RequestStates::reset() {
  work_.check_idle();
  for (State& state : states_) state.known = false;
}

Tensor RequestStates::value(size_t index) const {
  const NetworkState& state = described(index);
  std::vector<std::byte> bytes = state.initial;
  if (states_[index].known && !bytes.empty()) {
    work_.stream.queue.enqueueReadBuffer(states_[index].value, CL_TRUE, 0, bytes.size(),
                                         bytes.data());
  } else if (!states_[index].known && state.is_new) {
    throw Error(ErrorCode::bad_argument, "state " + std::to_string(index) + " (\"" +
                                             state.port.name +
                                             "\") is new: the next inference computes its value");
  }
  return gather_from(stored(index), bytes.data(), host_type(state.port.type));
}

void RequestStates::set(size_t index, const Tensor& value) {
  const NetworkState& state = described(index);
  if (value.shape() != state.port.shape)
    throw Error(ErrorCode::bad_argument, "state " + std::to_string(index) + " (\"" +
                                             state.port.name + "\") is " +
                                             to_string(state.port.shape) + ", the value given is " +
                                             to_string(value.shape()));
  std::vector<std::byte> bytes(state.initial.size());
  if (!bytes.empty()) scatter_to(value, stored(index), bytes.data());
  write(index, bytes);
  states_[index].known = true;
}

void RequestStates::write(size_t index, const std::vector<std::byte>& bytes) {
  if (!bytes.empty())
    work_.stream.queue.enqueueWriteBuffer(states_[index].value, CL_TRUE, 0, bytes.size(),
                                          bytes.data());
}

void RequestStates::enqueue() {
  static constexpr uint8_t kFlags[] = {0, 1};
  const Plan& plan = network_.plan();
  for (size_t i = 0; i < states_.size(); ++i) {
    const NetworkState& state = network_.states[i];
    const Edge place{plan.graph->parameters[state.parameter], 0};
    if (state.is_new)
      work_.run->write(network_.whole.place_of({plan.graph->parameters[*state.is_new], 0}),
                       &kFlags[states_[i].known ? 0 : 1], 1);
    if (state.initial.empty()) continue;
    if (states_[i].known)
      work_.stream.queue.enqueueCopyBuffer(states_[i].value, work_.memory->all.buffer, 0,
                                           plan.region_of(place).offset, state.initial.size());
    else
      work_.run->write(network_.whole.place_of(place), state.initial.data(), state.initial.size());
  }
}

void RequestStates::save(const RequestOutputs& outputs) {
  const Graph& graph = *network_.plan().graph;
  for (size_t i = 0; i < states_.size(); ++i) {
    const NetworkState& state = network_.states[i];
    if (state.initial.empty()) continue;
    // A state that no inference changes keeps its first value.
    const Edge next = state.result ? graph.results[*state.result]->inputs[0]
                                   : Edge{graph.parameters[state.parameter], 0};
    if (outputs.is_on_host(next)) {
      const Tensor value = outputs.value_of(next, host_type(state.port.type));
      std::vector<std::byte> bytes(state.initial.size());
      scatter_to(value, stored(i), bytes.data());
      write(i, bytes);
      continue;
    }
    if (states_[i].copy == nullptr)
      states_[i].copy =
          std::make_unique<TensorCopy>(network_, next.node->outputs[next.port].desc, stored(i));
    states_[i].copy->enqueue(work_.stream.queue, work_.buffer_of(next), {states_[i].value, 0});
  }
}

void RequestStates::keep() {
  for (State& state : states_) state.known = true;
}

}  // namespace clinfer
