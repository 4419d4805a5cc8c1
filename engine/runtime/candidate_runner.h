// Runs one operation by other kernels than the one in use, on the same buffers: the tuner's hands.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "engine/ocl/programs.h"
#include "engine/runtime/launch.h"
#include "tuning/kernel_runner.h"

namespace clinfer {

class CandidateRunner final : public KernelRunner {
 public:
  // Where the operation's inputs, outputs and images lie.
  using Find = std::function<BoundBuffer(const Argument&)>;

  // The kernel in use has just run: what lies in the outputs is taken as right. `go_on` returning
  // false makes prepare() end early. What is given by reference outlives the runner.
  CandidateRunner(const ocl::Context& context, const OpDesc& desc, Find find,
                  ocl::ProgramBuilder& programs, unsigned threads,
                  const std::function<bool()>& go_on);
  // Puts the outputs back to what they were.
  ~CandidateRunner() override;

  void expect(std::span<const KernelPlan> plans) override;
  std::vector<std::string> prepare(std::span<const KernelPlan> plans) override;
  std::string verify(size_t number) override;
  double time(size_t number, unsigned repeat) override;

 private:
  struct Ready {
    KernelPlan plan;
    std::vector<cl::Kernel> kernels;
    cl::Buffer workspace;
  };
  // An output as the kernel in use wrote it, with whatever lies between its elements. Copies stay
  // on the device: networks have outputs of many megabytes, and each candidate is verified.
  struct Reference {
    TensorDesc desc;
    cl::Buffer buffer;
    size_t begin = 0;  // bytes in the buffer
    std::vector<std::byte> bytes;
    std::vector<std::byte> mask;  // of these bytes: kPoison where elements of the output lie
    cl::Buffer right, poisoned;   // the bytes as they were, and with poison for an output
    double largest = 0;           // magnitude of a finite element
  };

  void want(std::span<const KernelPlan> plans);
  Ready make_ready(const KernelPlan& plan);
  cl::Buffer packed_buffer(const std::function<std::vector<std::byte>()>& make);
  void launch(const Ready& ready, std::vector<cl::Event>* events);
  void restore();
  std::string compare(const Reference& reference) const;

  const ocl::Context& context_;
  const OpDesc& desc_;
  const Find find_;
  ocl::ProgramBuilder& programs_;
  const unsigned threads_;
  const std::function<bool()>& go_on_;
  cl::CommandQueue queue_;
  bool events_ = false;                        // the device's clock is fine enough
  std::vector<std::unique_ptr<Ready>> ready_;  // null: failed
  std::vector<Reference> references_;
  std::vector<std::byte> after_;  // what a candidate wrote
  std::mutex mutex_;
  std::map<uint64_t, std::pair<size_t, cl::Buffer>> packed_;  // by content: many points pack alike
};

}  // namespace clinfer
