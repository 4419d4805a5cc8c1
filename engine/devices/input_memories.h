// Implements InferRequest::input_memory() for requests that pass their inputs on to other requests.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>

#include "engine/engine.h"

namespace clinfer {

// Throws Error{bad_argument} where there is no such input.
inline const Port& port_of(const std::vector<Port>& inputs, size_t index) {
  if (index < inputs.size()) return inputs[index];
  throw Error(ErrorCode::bad_argument, "there is no input " + std::to_string(index) +
                                           "; the model has " + std::to_string(inputs.size()));
}

// Host memory for inputs, which start() passes on. Not thread-safe.
class InputMemories {
 public:
  std::span<std::byte> of(size_t index, const Port& port) {
    if (port.any_size)
      throw Error(ErrorCode::unsupported, "input " + std::to_string(index) +
                                              " is a plane of a picture of any size: use "
                                              "set_input() or set_frame()");
    Tensor& memory = memories_[index];
    if (memory.empty()) memory = Tensor::allocate(port.type, port.shape);
    counting_.insert(index);
    return {static_cast<std::byte*>(memory.raw_mutable()), memory.bytes()};
  }
  // Notes that another function has set the input.
  void forget(size_t index) { counting_.erase(index); }
  // Prepares for setting an image of the input: passes on what the memory holds, for the other
  // images.
  void hand_over(size_t index, InferRequest& request) {
    if (counting_.erase(index) != 0) request.set_input(index, memories_.at(index));
  }
  // Sets all inputs that were given by memory. The request copies them, and may call forget().
  void set(InferRequest& request) {
    const std::set<size_t> counting = counting_;
    for (const size_t index : counting) request.set_input(index, memories_.at(index));
    counting_ = counting;
  }

 private:
  std::map<size_t, Tensor> memories_;  // by index of the input
  std::set<size_t> counting_;
};

}  // namespace clinfer
