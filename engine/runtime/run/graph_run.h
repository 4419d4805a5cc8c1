// Runs inferences as graphs of CUDA.
#pragma once

#include <string>

#include "engine/runtime/frames/imported_planes.h"
#include "engine/runtime/run/plan_run.h"

namespace clinfer {

// Returns why the steps of a plan cannot be launched as graphs, or "".
std::string reject_graph(const SizedPlan& sized);

// Holds a graph for each segment of a plan, made for the memory of one request.
class GraphRun final : public PlanRun {
 public:
  GraphRun(const DeviceNetwork& network, DeviceStream& stream)
      : network_(network), stream_(stream), copied_(network.cuda), computed_(network.cuda) {}
  bool prepare(const SizedPlan& sized, RequestMemory& memory) override;
  void begin(const SizedPlan& sized, RequestMemory& memory) override;
  std::shared_ptr<ocl::HostMemory> make_host_memory(size_t bytes) const override;
  void copy_frame(DeviceFrame& input) override;
  void launch_frame(DeviceFrame& input) override;
  // Whether imported planes of a frame can be read without OpenCL, and the launch of the frame's
  // kernels, which notes that use of the memories. The stream is locked.
  bool reads(const DeviceFrame& input, const OwnPlanes& planes) const;
  void launch_imported(DeviceFrame& input, const OwnPlanes& planes, const RequestMemory& memory);
  void write(const ocl::ArgumentPlace& to, const void* from, size_t bytes) override;
  size_t run(size_t first) override;
  void read(const ocl::ArgumentPlace& from, void* to, size_t bytes) override;
  std::shared_ptr<Completion> end() override;
  std::shared_ptr<Completion> end_of_all() override;
  void finish() override;

 private:
  CUdeviceptr address_of(const ocl::ArgumentPlace& place, const RequestMemory& memory) const;
  // Launches the kernels of a frame whose planes lie there, each at its input.starts.
  void launch_planes(DeviceFrame& input, const std::array<CUdeviceptr, 3>& planes,
                     const RequestMemory& memory);
  // Lets the main stream go on after what was written beside it.
  void wait_for_writes();
  std::unique_ptr<cuda::Graph> make_graph(const SizedPlan& sized, const RequestMemory& memory,
                                          size_t first, size_t end) const;

  const DeviceNetwork& network_;
  DeviceStream& stream_;
  const SizedPlan* sized_ = nullptr;
  RequestMemory* memory_ = nullptr;
  cuda::Event copied_, computed_;
  bool writes_ = false, reads_ = false;  // in this segment, on the streams for copies
  std::shared_ptr<StreamCompletion> completion_;
};

}  // namespace clinfer
