// The states of a request: values that stay on the device from one inference to the next.
#pragma once

#include <memory>
#include <vector>

#include "engine/runtime/network/tensor_copy.h"
#include "engine/runtime/requests/request_outputs.h"
#include "engine/runtime/requests/request_work.h"

namespace clinfer {

class RequestStates {
 public:
  explicit RequestStates(RequestWork& work);

  // Implement the functions of InferRequest. Throw cl::Error as well.
  void reset();
  Tensor value(size_t index) const;
  void set(size_t index, const Tensor& value);

  // Copies the states to where the next inference reads them. Needs the stream locked.
  void enqueue();
  // Copies what the inference has computed to the states. An inference that does not come so far
  // leaves them as they were. Needs the stream locked.
  void save(const RequestOutputs& outputs);
  // The inference that save() was called for has succeeded.
  void keep();

 private:
  // The value has a buffer of its own, because a request may go on in other memory, and because an
  // inference may fail.
  struct State {
    cl::Buffer value;    // as the inference reads it
    bool known = false;  // `value` holds it; else it is the initial one
    std::unique_ptr<TensorCopy> copy;
  };
  const NetworkState& described(size_t index) const;
  const TensorDesc& stored(size_t index) const;
  void write(size_t index, const std::vector<std::byte>& bytes);

  RequestWork& work_;
  const DeviceNetwork& network_;
  std::vector<State> states_;
};

}  // namespace clinfer
