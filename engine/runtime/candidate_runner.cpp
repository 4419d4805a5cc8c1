// Candidates for one operation: building, binding, checking, timing.
#include "engine/runtime/candidate_runner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "kernels/hash.h"

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kCoarsestTick =
    10000;                          // ns; where the device's clock is coarser, the host's is better
constexpr std::byte kPoison{0xff};  // NaN in f32 and f16
// Largest difference to the network's own kernel, relative to the largest value: sums in another
// order.
constexpr double kToleranceF32 = 2e-4, kToleranceF16 = 1e-2;
constexpr double kFlips =
    0.01;  // share of elements that may come to lie on the other side of a step

// A function that jumps makes a whole step of the last bit before it.
bool jumps(const OpDesc& desc) {
  return std::any_of(desc.tail.begin(), desc.tail.end(), [](const PostOp& op) {
    for (const char* part : {"round", "floor", "ceil", "sign", "mod", "equal", "less", "greater"})
      if (op.function.find(part) != std::string::npos && op.function != "softsign") return true;
    return false;
  });
}

}  // namespace

CandidateRunner::CandidateRunner(const ocl::Context& context, const OpDesc& desc, Find find,
                                 ocl::ProgramBuilder& programs, unsigned threads,
                                 const std::function<bool()>& go_on)
    : context_(context),
      desc_(desc),
      find_(std::move(find)),
      programs_(programs),
      threads_(threads),
      go_on_(go_on) {
  queue_ = cl::CommandQueue(context.context, context.device.device, CL_QUEUE_PROFILING_ENABLE);
  events_ = context.device.device.getInfo<CL_DEVICE_PROFILING_TIMER_RESOLUTION>() <= kCoarsestTick;
  for (size_t port = 0; port < desc_.outputs.size(); ++port) {
    const TensorDesc& output = desc_.outputs[port];
    if (output.elements() == 0) continue;
    const auto [low, high] = output.byte_range();
    const auto size = static_cast<int64_t>(size_of(output.type));
    const BoundBuffer bound = find_(Argument::output(port, size_of(output.type)));
    Reference reference;
    reference.desc = output;
    reference.desc.offset -= low / size;
    reference.buffer = bound.buffer;
    reference.begin = static_cast<size_t>(bound.offset - output.offset * size + low);
    reference.bytes.resize(static_cast<size_t>(high - low));
    queue_.enqueueReadBuffer(bound.buffer, CL_TRUE, reference.begin, reference.bytes.size(),
                             reference.bytes.data());
    const Tensor values = gather_from(reference.desc, reference.bytes.data(), ElementType::f32);
    for (int64_t i = 0; i < values.elements(); ++i)
      if (const float v = values.data<float>()[i]; std::isfinite(v))
        reference.largest = std::max(reference.largest, std::abs(static_cast<double>(v)));
    Tensor poison = Tensor::allocate(output.type, output.shape);
    std::fill_n(static_cast<std::byte*>(poison.raw_mutable()), poison.bytes(), kPoison);
    std::vector<std::byte> poisoned = reference.bytes;
    scatter_to(poison, reference.desc, poisoned.data());
    reference.mask.resize(poisoned.size());
    scatter_to(poison, reference.desc, reference.mask.data());
    const auto on_device = [&](std::vector<std::byte>& bytes) {
      return cl::Buffer(context_.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes.size(),
                        bytes.data());
    };
    reference.right = on_device(reference.bytes);
    reference.poisoned = on_device(poisoned);
    references_.push_back(std::move(reference));
  }
}

CandidateRunner::~CandidateRunner() {
  try {
    restore();
  } catch (const cl::Error&) {
    // The device failed; what follows on it will say so.
  }
}

void CandidateRunner::restore() {
  for (const Reference& reference : references_)
    queue_.enqueueCopyBuffer(reference.right, reference.buffer, 0, reference.begin,
                             reference.bytes.size());
  queue_.finish();
}

cl::Buffer CandidateRunner::packed_buffer(const std::function<std::vector<std::byte>()>& make) {
  std::vector<std::byte> bytes = make();
  bytes.resize(std::max<size_t>(bytes.size(), 4));
  const uint64_t hash = fnv1a({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const std::lock_guard lock(mutex_);
  auto& [size, buffer] = packed_[hash];
  if (size != bytes.size()) {
    buffer = cl::Buffer(context_.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes.size(),
                        bytes.data());
    size = bytes.size();
  }
  return buffer;
}

CandidateRunner::Ready CandidateRunner::make_ready(const KernelPlan& plan) {
  Ready ready{plan, {}, {}};
  std::vector<cl::Buffer> packed;
  for (const auto& make : plan.packed) packed.push_back(packed_buffer(make));
  ready.plan.packed.clear();
  ready.workspace =
      cl::Buffer(context_.context, CL_MEM_READ_WRITE, std::max<size_t>(plan.workspace, 4));
  for (const KernelSpec& spec : ready.plan.launches) {
    const ocl::Instantiation instantiation = ocl::instantiate(spec);
    ready.kernels.emplace_back(programs_.get(instantiation, go_on_).program,
                               instantiation.kernel_name.c_str());
    bind_arguments(ready.kernels.back(), spec, [&](const Argument& argument) -> BoundBuffer {
      switch (argument.kind) {
        case Argument::Kind::packed:
          return {packed.at(argument.index), 0};
        case Argument::Kind::workspace:
          return {ready.workspace, 0};
        default:
          return find_(argument);
      }
    });
  }
  return ready;
}

void CandidateRunner::want(std::span<const KernelPlan> plans) {
  for (const KernelPlan& plan : plans)
    for (const KernelSpec& spec : plan.launches) programs_.want(ocl::instantiate(spec));
}

void CandidateRunner::expect(std::span<const KernelPlan> plans) {
  // On a CPU the compilers would take the cores that are measured.
  if (!context_.traits.is_cpu) want(plans);
}

std::vector<std::string> CandidateRunner::prepare(std::span<const KernelPlan> plans) {
  std::vector<std::string> reasons(plans.size());
  std::vector<std::unique_ptr<Ready>> made(plans.size());
  want(plans);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next++) < plans.size();) {
      try {
        if (!go_on_()) throw Error(ErrorCode::cancelled, "stopped before it was built");
        made[i] = std::make_unique<Ready>(make_ready(plans[i]));
      } catch (const cl::Error& error) {
        reasons[i] = std::string(error.what()) + " gave " + ocl::error_name(error.err());
      } catch (const std::exception& error) {
        reasons[i] = error.what();
      }
    }
  };
  std::vector<std::jthread> pool;
  const unsigned threads = threads_ ? threads_ : std::max(1u, std::thread::hardware_concurrency());
  for (size_t i = 1; i < std::min<size_t>(threads, plans.size()); ++i) pool.emplace_back(work);
  work();
  pool.clear();
  for (auto& ready : made) ready_.push_back(std::move(ready));
  return reasons;
}

void CandidateRunner::launch(const Ready& ready, std::vector<cl::Event>* events) {
  for (size_t l = 0; l < ready.kernels.size(); ++l) {
    cl::Event* event = nullptr;
    if (events) event = &events->emplace_back();
    enqueue(queue_, ready.kernels[l], ready.plan.launches[l], event);
  }
}

std::string CandidateRunner::compare(const Reference& reference) const {
  const ElementType type = reference.desc.type;
  const size_t size = size_of(type);
  const double tolerance =
      (type == ElementType::f16 ? kToleranceF16 : kToleranceF32) * reference.largest + 1e-7;
  const auto value = [&](const std::vector<std::byte>& bytes, size_t at) -> double {
    float f32;
    uint16_t f16;
    if (type == ElementType::f32) return std::memcpy(&f32, &bytes[at], size), f32;
    return std::memcpy(&f16, &bytes[at], size), half_to_float(f16);
  };
  int64_t wrong = 0;
  for (size_t at = 0; at < after_.size(); at += size) {
    if (std::memcmp(&after_[at], &reference.bytes[at], size) == 0) continue;
    // Between the outputs lie other tensors.
    if (reference.mask[at] != kPoison) return "it writes outside its outputs";
    if (type != ElementType::f32 && type != ElementType::f16) {
      ++wrong;
      continue;
    }
    const double a = value(after_, at), b = value(reference.bytes, at);
    wrong += !(a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance);
  }
  const int64_t elements = reference.desc.elements();
  const double allowed = jumps(desc_) ? kFlips * static_cast<double>(elements) : 0;
  if (static_cast<double>(wrong) > allowed)
    return std::to_string(wrong) + " of " + std::to_string(elements) +
           " outputs differ from those of the untuned kernel";
  return "";
}

std::string CandidateRunner::verify(size_t number) try {
  for (const Reference& reference : references_)
    queue_.enqueueCopyBuffer(reference.poisoned, reference.buffer, 0, reference.begin,
                             reference.bytes.size());
  launch(*ready_.at(number), nullptr);
  std::string why;
  for (const Reference& reference : references_) {
    after_.resize(reference.bytes.size());
    queue_.enqueueReadBuffer(reference.buffer, CL_TRUE, reference.begin, after_.size(),
                             after_.data());
    if (why.empty()) why = compare(reference);
  }
  restore();
  return why;
} catch (const cl::Error& error) {
  return std::string(error.what()) + " gave " + ocl::error_name(error.err());
}

double CandidateRunner::time(size_t number, unsigned repeat) try {
  const Ready& ready = *ready_.at(number);
  std::vector<cl::Event> events;
  const auto begin = Clock::now();
  for (unsigned i = 0; i < repeat; ++i) launch(ready, events_ ? &events : nullptr);
  queue_.finish();
  double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  if (events_) {
    ns = 0;
    for (const cl::Event& event : events)
      ns += static_cast<double>(event.getProfilingInfo<CL_PROFILING_COMMAND_END>() -
                                event.getProfilingInfo<CL_PROFILING_COMMAND_START>());
  }
  return std::max(ns, 1.0) / repeat;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "timing a kernel of " + desc_.name);
}

}  // namespace clinfer
