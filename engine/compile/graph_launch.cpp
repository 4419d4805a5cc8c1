// Launches OpenCL's kernels as graphs of CUDA.
#include "engine/compile/graph_launch.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <system_error>

#include "engine/measure/noise.h"
#include "engine/runtime/network/launch.h"
#include "engine/runtime/requests/infer_request.h"
#include "engine/runtime/run/graph_run.h"
#include "kernels/base/host_type.h"
#include "kernels/base/system/threads.h"

namespace clinfer {

namespace {

// Launch of the kernel that computes sums.
constexpr size_t kSumItems = size_t{1} << 16, kSumGroup = 256;

KernelSpec spec_of_sums(size_t words) {
  KernelSpec spec;
  spec.source = "checksum.cl";
  spec.defines = {{"GROUP", std::to_string(kSumGroup)}};
  spec.global = {kSumItems, 1, 1};
  spec.local = {kSumGroup, 1, 1};
  const std::array<int, 4> size{static_cast<int>(words / kSumItems),
                                static_cast<int>(words % kSumItems)};
  spec.arguments = {Argument::input(0, 4), Argument::output(0, 4), Argument::value(size)};
  return spec;
}

// Computes sums of memories on the device, because reading the memories takes up to a second.
class Sums {
 public:
  explicit Sums(const DeviceNetwork& network)
      : kernel_(network.whole.programs->kernel(program_of_sums().kernel_name)),
        sums_(network.context->context, CL_MEM_WRITE_ONLY, kSumItems * sizeof(cl_uint)) {}

  std::vector<cl_uint> of(const cl::CommandQueue& queue, const cl::Buffer& memory) {
    const KernelSpec spec = spec_of_sums(memory.getInfo<CL_MEM_SIZE>() / sizeof(cl_uint));
    bind_arguments(kernel_, spec, [&](const Argument& argument) {
      return BoundBuffer{argument.kind == Argument::Kind::output ? sums_ : memory};
    });
    enqueue(queue, kernel_, spec);
    std::vector<cl_uint> sums(kSumItems);
    queue.enqueueReadBuffer(sums_, CL_TRUE, 0, sums.size() * sizeof(cl_uint), sums.data());
    return sums;
  }

 private:
  cl::Kernel kernel_;
  const cl::Buffer sums_;
};

// Writes noise where the inputs lie, the same for each image, so that a large batch takes no longer
// than a small one.
void write_noise(const DeviceNetwork& network, const cl::CommandQueue& queue,
                 const cl::Buffer& memory) {
  constexpr int64_t kMostElements = 1 << 16;
  const Plan& plan = network.plan();
  for (size_t i = 0; i < network.network_inputs.size(); ++i) {
    const Edge input{plan.graph->parameters[i], 0};
    const Region& region = plan.region_of(input);
    const TensorDesc& stored = input.node->outputs[0].desc;
    const size_t size = size_of(stored.type);
    Port port = network.network_inputs[i];
    port.type = host_type(stored.type);
    const auto elements =
        std::min<int64_t>(kMostElements, static_cast<int64_t>(region.bytes / size));
    // The rank distinguishes pictures from other inputs.
    std::fill(port.shape.begin(), port.shape.end(), 1);
    if (port.shape.empty()) port.shape = {1};
    port.shape.back() = elements;
    const Tensor noise = synthetic_tensor(port);
    std::vector<std::byte> bytes(static_cast<size_t>(elements) * size);
    if (bytes.empty()) continue;
    scatter_to(noise, TensorDesc::row_major(stored.type, {elements}), bytes.data());
    queue.enqueueWriteBuffer(memory, CL_TRUE, region.offset, bytes.size(), bytes.data());
    for (size_t done = bytes.size(); done < region.bytes;) {
      const size_t more = std::min(done, region.bytes - done);
      queue.enqueueCopyBuffer(memory, memory, region.offset, region.offset + done, more);
      done += more;
    }
  }
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

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

}  // namespace

CudaOpening::CudaOpening(const ocl::Device& device) {
  const auto open = [&device] { return open_cuda(device); };
  try {
    opened_ = std::async(std::launch::async, open);
  } catch (const std::system_error&) {  // no thread can be had
    opened_ = std::async(std::launch::deferred, open);
  }
}

ocl::Instantiation program_of_sums() { return ocl::instantiate(spec_of_sums(0)); }

void check_plans(const DeviceNetwork& network) {
  const auto check = [](const SizedPlan& sized) {
    if (const std::string why = reject_graph(sized); !why.empty())
      throw cuda::Failure(ErrorCode::unsupported, why);
  };
  check(network.whole);
  for (const auto& [images, sized] : network.partial) check(sized);
}

void check_graphs(const std::shared_ptr<const DeviceNetwork>& network,
                  const std::function<void(InferRequest&)>& wait) {
  DeviceStream& stream = network->stream(0);
  DeviceRequest request(network, stream);
  const cl::Buffer memories[] = {stream.memory.buffer, request.memory()};
  Sums sums(*network);
  std::vector<size_t> sizes{0};
  for (const auto& [images, sized] : network->partial) sizes.push_back(images);
  for (const size_t images : sizes) {
    // The state after an inference whose memory held nothing of earlier inferences.
    struct State {
      std::vector<cl_uint> sums;
      std::vector<Tensor> results;
    };
    const auto run = [&](bool by_queue) {
      for (const cl::Buffer& memory : memories)
        stream.queue.enqueueFillBuffer(memory, cl_uint{0xA5A5A5A5}, 0,
                                       memory.getInfo<CL_MEM_SIZE>() / 4 * 4);
      write_noise(*network, stream.queue, request.memory());
      stream.queue.finish();
      request.keep_to_queue(by_queue);
      request.start(images);
      wait(request);
      State left;
      for (const cl::Buffer& memory : memories)
        std::ranges::copy(sums.of(stream.queue, memory), std::back_inserter(left.sums));
      for (size_t i = 0; i < network->outputs.size(); ++i)
        left.results.push_back(request.output(i));
      return left;
    };
    const State expected = run(true), found = run(false);
    if (found.sums != expected.sums ||
        !std::equal(found.results.begin(), found.results.end(), expected.results.begin(),
                    expected.results.end(), same_bits))
      throw cuda::Failure(ErrorCode::device_failed,
                          "a graph's results differ from those of OpenCL's own launches");
  }
}

}  // namespace clinfer
