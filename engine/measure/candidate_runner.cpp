// Builds, binds, checks and times candidates for one operation.
#include "engine/measure/candidate_runner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "kernels/base/hash.h"
#include "kernels/base/system/processors.h"
#include "kernels/base/system/threads.h"

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

// The coarsest tick of the device's clock in nanoseconds with which it is used; otherwise the
// host's clock is better.
constexpr size_t kCoarsestTick = 10000;
constexpr std::byte kPoison{0xff};  // NaN in f32 and f16
// The largest allowed difference to the network's own kernel, relative to the largest value.
// Candidates add up in another order.
constexpr double kToleranceF32 = 2e-4, kToleranceF16 = 1e-2;
// The share of elements that may differ by a step of a function that jumps.
constexpr double kFlips = 0.01;

// Returns whether the tail has a function that jumps, so that a difference in the last bit can
// become a whole step.
bool jumps(const OpDesc& desc) {
  return std::any_of(desc.tail.begin(), desc.tail.end(), [](const PostOp& op) {
    for (const char* part : {"round", "floor", "ceil", "sign", "mod", "equal", "less", "greater"})
      if (op.function.find(part) != std::string::npos && op.function != "softsign") return true;
    return false;
  });
}

// Reads an element, f32 or f16, as a double.
double value_at(ElementType type, const std::vector<std::byte>& bytes, size_t at) {
  float f32;
  uint16_t f16;
  if (type == ElementType::f32) return std::memcpy(&f32, &bytes[at], sizeof f32), f32;
  return std::memcpy(&f16, &bytes[at], sizeof f16), half_to_float(f16);
}

// Returns `size` bytes with kPoison where elements of the tensor lie.
std::vector<std::byte> mask_of(const TensorDesc& desc, size_t size) {
  Tensor poison = Tensor::allocate(desc.type, desc.shape);
  std::fill_n(static_cast<std::byte*>(poison.raw_mutable()), poison.bytes(), kPoison);
  std::vector<std::byte> mask(size);
  scatter_to(poison, desc, mask.data());
  return mask;
}

}  // namespace

std::vector<ocl::Instantiation> instantiate(const KernelPlan& plan) {
  std::vector<ocl::Instantiation> programs;
  for (const KernelSpec& spec : plan.launches) programs.push_back(ocl::instantiate(spec));
  return programs;
}

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
    const auto must_go_on = [&] {
      if (!go_on_()) throw Error(ErrorCode::cancelled, "stopped before anything was measured");
    };
    must_go_on();
    queue_.enqueueReadBuffer(bound.buffer, CL_TRUE, reference.begin, reference.bytes.size(),
                             reference.bytes.data());
    must_go_on();
    reference.mask = mask_of(reference.desc, reference.bytes.size());
    must_go_on();
    after_ = reference.bytes;
    for (size_t i = 0; i < after_.size(); ++i) after_[i] |= reference.mask[i];
    if (is_float(output.type))
      for (size_t at = 0; at < after_.size(); at += size_of(output.type))
        if (reference.mask[at] == kPoison)
          if (const double v = value_at(output.type, reference.bytes, at); std::isfinite(v))
            reference.largest = std::max(reference.largest, std::abs(v));
    must_go_on();
    const auto on_device = [&](std::vector<std::byte>& bytes) {
      return cl::Buffer(context_.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes.size(),
                        bytes.data());
    };
    reference.right = on_device(reference.bytes);
    must_go_on();
    reference.poisoned = on_device(after_);
    references_.push_back(std::move(reference));
  }
}

CandidateRunner::~CandidateRunner() {
  try {
    restore();
  } catch (const cl::Error&) {
    // The device failed; the next use of it reports that.
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
  Ready ready;
  ready.plan = plan;
  std::vector<cl::Buffer> packed;
  for (const auto& make : plan.packed) packed.push_back(packed_buffer(make));
  ready.plan.packed.clear();
  ready.workspace =
      cl::Buffer(context_.context, CL_MEM_READ_WRITE, std::max<size_t>(plan.workspace, 4));
  for (const KernelSpec& spec : ready.plan.launches) {
    const ocl::Instantiation instantiation = ocl::instantiate(spec);
    ready.kernels.emplace_back(programs_.get(instantiation, go_on_).program,
                               instantiation.kernel_name.c_str());
    const auto find = [&](const Argument& argument) -> BoundBuffer {
      switch (argument.kind) {
        case Argument::Kind::packed:
          return {packed.at(argument.index), 0};
        case Argument::Kind::workspace:
          return {ready.workspace, 0};
        default:
          return find_(argument);
      }
    };
    bind_arguments(ready.kernels.back(), spec, find);
  }
  return ready;
}

void CandidateRunner::want(std::span<const KernelPlan> plans) {
  for (const KernelPlan& plan : plans)
    for (const ocl::Instantiation& program : instantiate(plan)) programs_.want(program);
}

void CandidateRunner::expect(std::span<const KernelPlan> plans) {
  // On a CPU, compilers would take the cores that are measured.
  if (!context_.traits.is_cpu) want(plans);
}

std::vector<std::string> CandidateRunner::prepare(std::span<const KernelPlan> plans,
                                                  const std::function<bool()>& has_time) {
  std::vector<std::string> reasons(plans.size());
  std::vector<std::unique_ptr<Ready>> made(plans.size());
  // On a CPU, compiling after the time is over would disturb the measuring.
  if (!has_time || !context_.traits.is_cpu) want(plans);
  std::mutex mutex;
  size_t begun = 0;
  bool over = false;
  const auto next = [&] {
    const std::lock_guard lock(mutex);
    over = over || begun == plans.size() || (begun > 0 && has_time && !has_time());
    return over ? plans.size() : begun++;
  };
  const auto work = [&] {
    for (size_t i; (i = next()) < plans.size();) {
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
  const unsigned threads = threads_ ? threads_ : available_processors();
  on_threads(std::min<size_t>(threads, plans.size()), work);
  for (size_t i = 0; i < begun; ++i) ready_.push_back(std::move(made[i]));
  reasons.resize(begun);
  return reasons;
}

void CandidateRunner::launch(const Ready& ready, std::vector<cl::Event>* events) {
  for (size_t l = 0; l < ready.kernels.size(); ++l)
    enqueue(queue_, ready.kernels[l], ready.plan.launches[l],
            events ? &events->emplace_back() : nullptr);
}

std::string CandidateRunner::compare(const Reference& reference) const {
  const ElementType type = reference.desc.type;
  const size_t size = size_of(type);
  const double tolerance =
      (type == ElementType::f16 ? kToleranceF16 : kToleranceF32) * reference.largest + 1e-7;
  int64_t wrong = 0;
  for (size_t at = 0; at < after_.size(); at += size) {
    if (std::memcmp(&after_[at], &reference.bytes[at], size) == 0) continue;
    // Other tensors lie between the output's elements.
    if (reference.mask[at] != kPoison) return "it writes outside its outputs";
    if (type != ElementType::f32 && type != ElementType::f16) {
      ++wrong;
      continue;
    }
    const double a = value_at(type, after_, at), b = value_at(type, reference.bytes, at);
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
