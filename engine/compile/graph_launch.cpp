// Kernels of OpenCL, launched as graphs of CUDA.
#include "engine/compile/graph_launch.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "engine/measure/noise.h"
#include "engine/runtime/infer_request.h"
#include "kernels/base/threads.h"

namespace clinfer {

namespace {

// The most that is compared of one memory.
constexpr size_t kCompared = size_t{256} << 20;

std::vector<std::byte> bytes_of(const cl::CommandQueue& queue, const cl::Buffer& buffer) {
  std::vector<std::byte> bytes(std::min<size_t>(buffer.getInfo<CL_MEM_SIZE>(), kCompared));
  queue.enqueueReadBuffer(buffer, CL_TRUE, 0, bytes.size(), bytes.data());
  return bytes;
}

}  // namespace

std::shared_ptr<const cuda::Device> open_cuda(const ocl::Device& device) {
  const ocl::MemorySharing sharing(device);
  if (const std::string& problem = sharing.problem(MemoryHandle::opaque); !problem.empty())
    throw cuda::Failure(ErrorCode::unsupported, problem);
  const auto uuid = ocl::uuid_of(device);
  if (!uuid)
    throw cuda::Failure(ErrorCode::unsupported,
                        device.info.name + " does not offer cl_khr_device_uuid");
  return cuda::Device::find(*uuid);
}

void load_graph_kernels(DeviceNetwork& network, unsigned threads) {
  std::vector<std::pair<std::string, std::string>>
      binaries;  // by name; drivers may give them one by one
  const auto add = [&](const SizedPlan& sized) {
    for (size_t s = 0; s < sized.plan.steps.size(); ++s)
      for (const std::string& name : sized.kernel_names[s])
        if (network.graph_kernels.try_emplace(name).second)
          binaries.emplace_back(name, sized.programs->binary(name));
  };
  add(network.whole);
  for (const auto& [images, sized] : network.partial) add(sized);
  std::vector<std::shared_ptr<const cuda::Kernel>> kernels(binaries.size());
  parallel_for(binaries.size(), threads, [&](size_t i) {
    kernels[i] = std::make_shared<cuda::Kernel>(network.cuda, std::move(binaries[i].second),
                                                binaries[i].first);
  });
  for (size_t i = 0; i < binaries.size(); ++i)
    network.graph_kernels[binaries[i].first] = std::move(kernels[i]);
}

void check_graphs(const std::shared_ptr<const DeviceNetwork>& network) {
  DeviceStream& stream = network->stream(0);
  DeviceRequest request(network, stream);
  std::vector<size_t> sizes{0};
  for (const auto& [images, sized] : network->partial) sizes.push_back(images);
  for (const size_t images : sizes) {
    // Gives what a run leaves in the memory of both, which holds nothing of another run before.
    const auto contents = [&](const std::function<void()>& run) {
      for (const cl::Buffer& buffer : {stream.memory.buffer, request.memory()})
        stream.queue.enqueueFillBuffer(buffer, cl_uint{0xA5A5A5A5}, 0,
                                       buffer.getInfo<CL_MEM_SIZE>() / 4 * 4);
      stream.queue.finish();
      set_noise(request, network->inputs);
      run();
      return std::pair(bytes_of(stream.queue, stream.memory.buffer),
                       bytes_of(stream.queue, request.memory()));
    };
    const auto results = [&] {
      std::vector<Tensor> tensors;
      for (size_t i = 0; i < network->outputs.size(); ++i) tensors.push_back(request.output(i));
      return tensors;
    };
    const auto expected = contents([&] { request.run_step_by_step([](size_t) {}, images); });
    const std::vector<Tensor> wanted = results();
    const auto found = contents([&] {
      request.start(images);
      request.wait({});
    });
    const std::vector<Tensor> got = results();
    const auto same = [](const Tensor& a, const Tensor& b) {
      return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
    };
    if (found != expected ||
        !std::equal(got.begin(), got.end(), wanted.begin(), wanted.end(), same))
      throw cuda::Failure(ErrorCode::device_failed,
                          "a graph's results differ from those of OpenCL's own launches");
  }
}

}  // namespace clinfer
