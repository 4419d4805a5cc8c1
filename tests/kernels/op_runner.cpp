// One operation on a device, with guard bytes around everything.
#include "tests/kernels/op_runner.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

#include "engine/ocl/compiler/programs.h"
#include "engine/runtime/network/launch.h"
#include "kernels/base/host_type.h"

namespace clinfer {

namespace {

constexpr unsigned char kPoison = 0xff;  // NaN in f32 and f16
constexpr size_t kGuard = 256;           // bytes on each side of a tensor

struct Placed {
  TensorDesc desc;  // offset counts from the start of the buffer
  std::vector<std::byte> host;
  cl::Buffer buffer;
};

Placed poisoned(const TensorDesc& desc) {
  Placed placed{desc, {}, {}};
  const auto [low, high] = desc.byte_range();
  const size_t size = size_of(desc.type);
  placed.desc.offset +=
      static_cast<int64_t>(kGuard / size) - std::min<int64_t>(low, 0) / static_cast<int64_t>(size);
  const int64_t bytes = std::max<int64_t>(high, 0) - std::min<int64_t>(low, 0) + 2 * kGuard;
  placed.host.assign(static_cast<size_t>(bytes), std::byte{kPoison});
  return placed;
}

// With CLINFER_TEST_CUT=N all launches are cut into parts of N work-groups.
std::vector<Cut> cut_for_tests(KernelPlan& plan) {
  std::vector<Cut> cuts(plan.launches.size());
  const char* groups = std::getenv("CLINFER_TEST_CUT");
  if (groups == nullptr) return cuts;
  for (size_t l = 0; l < cuts.size(); ++l) {
    cuts[l] = cut_of(plan.launches[l], std::numeric_limits<double>::infinity());
    if (!cuts[l]) continue;
    cuts[l].first = static_cast<size_t>(std::max(1, std::atoi(groups)));
    plan.launches[l] = can_be_cut(std::move(plan.launches[l]));
  }
  return cuts;
}

}  // namespace

cl::Program build_together(const ocl::Context& context, std::vector<KernelPlan> plans) {
  // Texts of outlined kernels define work-item functions anew, so they come last.
  std::string plain, outlined;
  std::set<std::string> known;
  for (KernelPlan& plan : plans) {
    cut_for_tests(plan);
    for (const KernelSpec& spec : plan.launches) {
      const ocl::Instantiation one = ocl::instantiate(spec);
      if (!known.insert(one.kernel_name).second) continue;
      (one.text.starts_with(kernel_source("outline.cl")) ? outlined : plain) += one.text;
    }
  }
  cl::Program program(context.context, ocl::program_source({"", plain + outlined}));
  program.build(context.device.device, ocl::compiler_options(context.traits).c_str());
  return program;
}

OpRun run_op(const ocl::Context& context, const OpDesc& desc, const KernelPlan& whole,
             std::span<const Tensor> inputs, unsigned repeat, const cl::Program* built) try {
  KernelPlan plan = whole;
  const std::vector<Cut> cuts = cut_for_tests(plan);
  std::vector<Placed> in, out;
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    in.push_back(poisoned(desc.inputs[i]));
    if (desc.inputs[i].elements()) scatter_to(inputs[i], in[i].desc, in[i].host.data());
  }
  for (const TensorDesc& output : desc.outputs) out.push_back(poisoned(output));
  for (auto* list : {&in, &out})
    for (Placed& placed : *list)
      placed.buffer = cl::Buffer(context.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                 placed.host.size(), placed.host.data());

  std::vector<cl::Buffer> packed;
  for (const auto& make : plan.packed) {
    std::vector<std::byte> bytes = make();
    bytes.resize(std::max<size_t>(bytes.size(), 4));
    packed.emplace_back(context.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes.size(),
                        bytes.data());
  }
  const cl::Buffer workspace(context.context, CL_MEM_READ_WRITE,
                             std::max<size_t>(plan.workspace, 4));

  std::vector<ocl::Instantiation> instantiations;
  for (const KernelSpec& spec : plan.launches) instantiations.push_back(ocl::instantiate(spec));
  const auto programs = built ? nullptr : ocl::Programs::build(context, instantiations, {});
  const cl::CommandQueue queue(context.context, context.device.device,
                               repeat ? CL_QUEUE_PROFILING_ENABLE : 0);
  SubBuffers parts;
  const auto place = [&](const auto& memory) -> BoundBuffer {
    return {memory.buffer,
            memory.desc.offset * static_cast<int64_t>(size_of(memory.desc.type)),
            {},
            &parts};
  };
  const auto find = [&](const Argument& argument) -> BoundBuffer {
    switch (argument.kind) {
      case Argument::Kind::input:
        return place(in.at(argument.index));
      case Argument::Kind::output:
        return place(out.at(argument.index));
      case Argument::Kind::packed:
        return {packed.at(argument.index), 0};
      default:
        return {workspace, 0};
    }
  };
  std::vector<cl::Kernel> kernels;
  for (size_t l = 0; l < plan.launches.size(); ++l) {
    const std::string& name = instantiations[l].kernel_name;
    kernels.push_back(built ? cl::Kernel(*built, name.c_str()) : programs->kernel(name));
    bind_arguments(kernels.back(), plan.launches[l], find);
  }

  OpRun run;
  run.device_ns = std::numeric_limits<double>::infinity();
  for (unsigned round = 0; round <= repeat; ++round) {
    double total = 0;
    std::vector<cl::Event> events(kernels.size());
    for (size_t i = 0; i < kernels.size(); ++i)
      if (cuts[i])
        for (size_t first = 0; first < cuts[i].groups; first += cuts[i].first)
          enqueue_part(queue, kernels[i], plan.launches[i], cuts[i], first,
                       std::min(cuts[i].first, cuts[i].groups - first),
                       repeat ? &events[i] : nullptr);
      else
        enqueue(queue, kernels[i], plan.launches[i], repeat ? &events[i] : nullptr);
    queue.finish();
    if (round == 0) continue;  // warm-up
    for (const cl::Event& event : events)
      total += static_cast<double>(event.getProfilingInfo<CL_PROFILING_COMMAND_END>() -
                                   event.getProfilingInfo<CL_PROFILING_COMMAND_START>());
    run.device_ns = std::min(run.device_ns, total);
  }

  for (Placed& placed : out) {
    std::vector<std::byte> after(placed.host.size());
    queue.enqueueReadBuffer(placed.buffer, CL_TRUE, 0, after.size(), after.data());
    const ElementType type = host_type(placed.desc.type);
    run.outputs.push_back(gather_from(placed.desc, after.data(), type));
    // The bytes between and around the outputs must still be poison: overwrite the outputs with
    // poison and compare.
    const size_t size = size_of(placed.desc.type);
    Tensor poison = Tensor::allocate(placed.desc.type, placed.desc.shape);
    std::fill_n(static_cast<unsigned char*>(poison.raw_mutable()), poison.elements() * size,
                kPoison);
    scatter_to(poison, placed.desc, after.data());
    for (std::byte b : after)
      if (b != std::byte{kPoison}) run.stray.push_back(b);
  }
  return run;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "running " + desc.type);
}

}  // namespace clinfer
