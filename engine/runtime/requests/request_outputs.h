// The outputs of a request and everything else that the host reads of an inference: where results
// go, the memory that they are read into, and the values that host steps have computed.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/ocl/device_pointer.h"
#include "engine/ocl/host_memory.h"
#include "engine/runtime/network/tensor_copy.h"
#include "engine/runtime/requests/request_work.h"
#include "engine/runtime/run/lent_memory.h"

namespace clinfer {

class RequestOutputs {
 public:
  explicit RequestOutputs(RequestWork& work) : work_(work), network_(*work.network) {}

  // Implement the functions of engine/opencl.h. Their settings hold until they are changed. Throw
  // cl::Error as well.
  void set_buffer(size_t index, const cl::Buffer& buffer, size_t offset);
  void set_host_memory(size_t index, void* data, size_t bytes);
  void set_pointer(size_t index, ocl::DevicePointer::Kind kind, void* data, size_t bytes);
  const cl::Buffer& own_buffer(size_t index);
  void reset(size_t index);  // to host memory of the request
  void set_image(size_t index, const cl::Image2D& image);

  // Implements opencl::explain() for outputs. `inputs`: those that are read in place.
  std::vector<std::string> explain(const InPlace::Wanted& inputs) const;

  // Returns whether an output goes to memory of the application.
  bool are_given() const { return !given_.empty(); }
  // Returns whether an output goes to memory of the device, which CUDA graphs do not support.
  bool need_queue() const;
  // Throws Error{bad_argument} for memory of the application that is gone, as far as that is known.
  void check() const;
  // Notes the outputs that kernels of `sized` write to buffers of the application in the next
  // inference; `wanted` has the inputs.
  void find_in_place(const SizedPlan& sized, InPlace::Wanted& wanted);
  // Enqueue that host memory of the application goes to the device, and back to the application.
  // Need the stream locked.
  void lend();
  void take_back();
  // Releases the results of the last inference.
  void clear();
  // Begins a segment. One of the two functions below reads back what it computes. Needs the stream
  // locked.
  void begin_segment();
  void read_operands(const Node& host_step);
  void read_results();
  // Returns whether the value is a constant, or the result of a step on the host.
  bool is_on_host(const Edge& edge) const {
    return edge.node->is("Constant") || host_values_.contains(key(storage_root(edge)));
  }
  // Returns a tensor on the host, row-major; without a copy if it was read back in that form.
  Tensor value_of(const Edge& edge, ElementType type) const;
  void set_value(const Edge& edge, Tensor value);  // a result of a host step
  void forget_values() { host_values_.clear(); }
  void collect();
  // Implements InferRequest::output().
  const Tensor& at(size_t index) const;
  // Returns an owner of everything that work in flight may still use.
  std::shared_ptr<void> leave();

 private:
  // An output that goes to memory of the application.
  struct GivenOutput {
    BoundBuffer memory;
    std::unique_ptr<LentMemory> lent;  // if that is host memory; may be null
    // Host memory to which collect() copies, instead of `memory`; may be null.
    void* host = nullptr;
    cl::Image2D image;  // receives the elements of `memory`; may be none
    std::map<const SizedPlan*, std::unique_ptr<TensorCopy>> copies;
    bool in_place = false;  // the next inference writes it where it is to lie
  };
  // A range of device memory that the host reads after a segment, as a copy or in place.
  struct Readback {
    std::map<const PlanRun*, ocl::HostMemoryPool> pools;
    std::shared_ptr<const void> owner;  // null: not read in this segment
    const std::byte* data = nullptr;
  };
  static std::pair<const Node*, int> key(const Edge& edge) { return {edge.node, edge.port}; }

  void check_redirectable(size_t index) const;
  // Does what check_redirectable() does, and checks memory of the application for the output.
  // Returns how many bytes it takes.
  size_t check_memory(size_t index, const void* data, size_t bytes) const;
  TensorDesc seen(size_t index) const;  // as applications see it
  // Returns the output's place, with what was set before forgotten.
  GivenOutput& give(size_t index);
  // `inputs`: memory that the inference reads where it lies.
  std::string why_copied(const SizedPlan& sized, size_t index, const GivenOutput& output,
                         const InPlace::Wanted& inputs) const;
  void deliver(size_t index, const Edge& edge);
  void read_back(const Edge& edge, bool is_result);
  bool lies_as_half(const Edge& edge) const;  // in the memory that was read back

  RequestWork& work_;
  const DeviceNetwork& network_;
  std::map<size_t, GivenOutput> given_;                        // by index of the output
  std::map<size_t, cl::Buffer> own_;                           // that own_buffer() returned
  std::map<std::pair<const Node*, int>, Readback> readbacks_;  // kept between inferences
  std::vector<Readback*> read_;                                // in this segment
  std::map<std::pair<const Node*, int>, Tensor> host_values_;  // outputs of host steps
  std::vector<Tensor> outputs_;
};

}  // namespace clinfer
