// Runs one operation by other kernels than the one in use, on the same buffers: the tuner's hands.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "engine/ocl/persistent.h"
#include "engine/runtime/launch.h"
#include "tuning/kernel_runner.h"

namespace clinfer {

// Kernels that will be part of a persistent kernel are measured as that: several times in a row in
// one of their own.
struct PersistentPart {
  const DeviceTraits& traits;
  unsigned groups;  // work-groups that stay on the device
};

// The programs of a candidate.
std::vector<ocl::Instantiation> instantiate(const KernelPlan& plan, const PersistentPart* part);

class CandidateRunner final : public KernelRunner {
 public:
  // Tells where the operation's inputs, outputs and images lie.
  using Find = std::function<BoundBuffer(const Argument&)>;

  // The kernel in use has just run: its outputs are the reference. `go_on` returning false makes
  // prepare() end early. `part`: candidates are parts of a persistent kernel; nullptr: launches.
  // Arguments passed by reference must outlive the runner.
  CandidateRunner(const ocl::Context& context, const OpDesc& desc, Find find,
                  const PersistentPart* part, ocl::ProgramBuilder& programs, unsigned threads,
                  const std::function<bool()>& go_on);
  // Puts the outputs back to what they were.
  ~CandidateRunner() override;

  void expect(std::span<const KernelPlan> plans) override;
  std::vector<std::string> prepare(std::span<const KernelPlan> plans,
                                   const std::function<bool()>& has_time) override;
  std::string verify(size_t number) override;
  double time(size_t number, unsigned repeat) override;

 private:
  struct Ready {
    KernelPlan plan;
    std::vector<cl::Kernel> kernels;  // one a launch, or the persistent one
    cl::Buffer workspace;
    // State of a persistent kernel: work-items of a work-group, words of the list for one
    // execution, and the value of the arrival counter after all executions so far.
    size_t items = 0, words = 0;
    cl_uint barriers_passed = 0;
    cl::Buffer list, counters;
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
  void make_launches(Ready& ready, const std::vector<cl::Buffer>& packed);
  void make_part(Ready& ready, const std::vector<cl::Buffer>& packed);
  cl::Buffer packed_buffer(const std::function<std::vector<std::byte>()>& make);
  void launch(Ready& ready, unsigned times, std::vector<cl::Event>* events);
  void restore();
  std::string compare(const Reference& reference) const;

  const ocl::Context& context_;
  const OpDesc& desc_;
  const Find find_;
  const PersistentPart* const part_;
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
