// Runs one step of a network by other kernels than the plan's, on the network's own buffers: the
// tuner's hands.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "engine/runtime/infer_request.h"
#include "tuning/kernel_runner.h"

namespace clinfer {

class StepRunner final : public KernelRunner {
 public:
  // `request` stands behind step `step` (DeviceRequest::walk), whose outputs are taken as right.
  // `go_on` returning false makes prepare() end early. All of them outlive the runner.
  StepRunner(const DeviceModel& model, const DeviceRequest& request, size_t step,
             ocl::ProgramBuilder& programs, unsigned threads, const std::function<bool()>& go_on);
  // Puts the outputs back to what the network's own kernel wrote.
  ~StepRunner() override;

  std::vector<std::string> prepare(std::span<const KernelPlan> plans) override;
  std::string verify(size_t number) override;
  double time(size_t number, unsigned repeat) override;

 private:
  struct Ready {
    KernelPlan plan;
    std::vector<cl::Kernel> kernels;
    cl::Buffer workspace;
  };
  // An output as the network's own kernel wrote it, with whatever lies between its elements.
  struct Reference {
    TensorDesc desc;  // from the first byte on
    cl::Buffer buffer;
    size_t begin = 0;  // bytes in the buffer
    std::vector<std::byte> bytes;
    std::vector<float> values;
  };

  Ready make_ready(const KernelPlan& plan);
  cl::Buffer packed_buffer(const std::function<std::vector<std::byte>()>& make);
  void launch(const Ready& ready, std::vector<cl::Event>* events);
  void restore();
  std::string compare(const Reference& reference, const std::vector<std::byte>& after) const;

  const DeviceModel& model_;
  const DeviceRequest& request_;
  const Step& step_;
  ocl::ProgramBuilder& programs_;
  const unsigned threads_;
  const std::function<bool()>& go_on_;
  cl::CommandQueue queue_;
  bool events_ = false;                        // the device's clock is fine enough
  std::vector<std::unique_ptr<Ready>> ready_;  // null: failed
  std::vector<Reference> references_;
  std::mutex mutex_;
  std::map<uint64_t, std::pair<size_t, cl::Buffer>> packed_;  // by content: many points pack alike
};

}  // namespace clinfer
