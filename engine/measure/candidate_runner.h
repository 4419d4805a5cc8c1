// Runs an operation by other kernels than the one in use, on the same buffers, for the tuner.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "engine/ocl/compiler/programs.h"
#include "engine/runtime/network/launch.h"
#include "tuning/kernel_runner.h"

namespace clinfer {

// Returns the programs that a candidate needs.
std::vector<ocl::Instantiation> instantiate(const KernelPlan& plan);

class CandidateRunner final : public KernelRunner {
 public:
  // Returns where an input, an output or an image of the operation lies.
  using Find = std::function<BoundBuffer(const Argument&)>;

  // Takes the operation's present outputs, which the kernel in use has just computed, as the
  // reference. If `go_on` returns false, prepare() ends early. Arguments passed by reference must
  // outlive the runner.
  CandidateRunner(const ocl::Context& context, const OpDesc& desc, Find find,
                  ocl::ProgramBuilder& programs, unsigned threads,
                  const std::function<bool()>& go_on);
  // Restores the outputs.
  ~CandidateRunner() override;

  void expect(std::span<const KernelPlan> plans) override;
  std::vector<std::string> prepare(std::span<const KernelPlan> plans,
                                   const std::function<bool()>& has_time) override;
  std::string verify(size_t number) override;
  double time(size_t number, unsigned repeat) override;

 private:
  struct Ready {
    KernelPlan plan;
    std::vector<cl::Kernel> kernels;  // one for each launch
    cl::Buffer workspace;
  };
  // An output as the kernel in use wrote it, including the bytes between its elements. Copies stay
  // on the device, because outputs may have many megabytes and each candidate is verified.
  struct Reference {
    TensorDesc desc;
    cl::Buffer buffer;
    size_t begin = 0;  // offset in the buffer, in bytes
    std::vector<std::byte> bytes;
    std::vector<std::byte> mask;  // kPoison at those bytes that belong to elements of the output
    // The original bytes, and the same bytes with poison in the output's elements.
    cl::Buffer right, poisoned;
    double largest = 0;  // largest magnitude of a finite element
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
  bool events_ = false;                        // true if the device's clock is fine enough
  std::vector<std::unique_ptr<Ready>> ready_;  // null for a candidate that failed
  std::vector<Reference> references_;
  std::vector<std::byte> after_;  // bytes that a candidate wrote
  std::mutex mutex_;
  // Keyed by content, because many points pack in the same way.
  std::map<uint64_t, std::pair<size_t, cl::Buffer>> packed_;
};

}  // namespace clinfer
