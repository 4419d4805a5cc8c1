// The outputs of a request and what else the host reads of an inference: where results go, the memory that
// they are read to, and the values that steps on the host have computed.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/ocl/host_memory.h"
#include "engine/runtime/request_work.h"
#include "engine/runtime/tensor_copy.h"

namespace clinfer {

class RequestOutputs {
 public:
  explicit RequestOutputs(RequestWork& work) : work_(work), network_(*work.network) {}

  // As the functions of engine/opencl.h, from now on until they are set anew. They throw cl::Error, too.
  void set_buffer(size_t index, const cl::Buffer& buffer, size_t offset);
  const cl::Buffer& own_buffer(size_t index);
  void set_image(size_t index, const cl::Image2D& image);

  // As opencl::explain(), of outputs.
  std::vector<std::string> explain() const;

  // Whether an output goes to memory of the device, which graphs do not know.
  bool need_queue() const { return !device_.empty(); }
  // Lets go of the results of the last inference.
  void clear();
  // A segment begins, whose end is read back by one of the next two functions. The stream is locked.
  void begin_segment();
  void read_operands(const Node& host_step);
  void read_results();
  // A tensor on the host, row-major: where it was read to, if it lies there like that.
  Tensor value_of(const Edge& edge, ElementType type) const;
  void set_value(const Edge& edge, Tensor value);  // of a step on the host
  void forget_values() { host_values_.clear(); }
  void collect();
  // As InferRequest::output().
  const Tensor& at(size_t index) const;
  // Hands over what work in flight may still use.
  std::shared_ptr<void> leave();

 private:
  // An output that goes to memory of the device.
  struct DeviceOutput {
    cl::Buffer buffer;
    size_t offset = 0;
    cl::Image2D image;  // that gets the buffer's elements, or none
    std::map<const SizedPlan*, std::unique_ptr<TensorCopy>> copies;
  };
  // A range of device memory that the host reads after a segment: a copy, or where it lies.
  struct Readback {
    std::map<const PlanRun*, ocl::HostMemoryPool> pools;
    std::shared_ptr<const void> owner;  // none: not read in this segment
    const std::byte* data = nullptr;
  };
  static std::pair<const Node*, int> key(const Edge& edge) { return {edge.node, edge.port}; }

  void check_redirectable(size_t index) const;
  TensorDesc given(size_t index) const;  // as applications get it
  void deliver(size_t index, const Edge& edge);
  void read_back(const Edge& edge, bool is_result);
  bool lies_as_half(const Edge& edge) const;  // in the memory that was read back

  RequestWork& work_;
  const DeviceNetwork& network_;
  std::map<size_t, DeviceOutput> device_;                      // by output
  std::map<size_t, cl::Buffer> own_;                           // of own_buffer()
  std::map<std::pair<const Node*, int>, Readback> readbacks_;  // kept between inferences
  std::map<std::pair<const Node*, int>, Tensor> host_values_;  // outputs of host steps
  std::vector<Tensor> outputs_;
};

}  // namespace clinfer
