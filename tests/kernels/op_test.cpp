// Implements the checker of op_test.h, which the tests of all operations use. With
// CLINFER_KERNEL_SOURCES=FOLDER it runs no kernels but writes the programs to the folder, as they
// would be compiled for Intel's devices (tests/kernels/ocloc).
#include "tests/kernels/op_test.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>
#include <set>

#include "engine/ocl/compiler/programs.h"
#include "engine/ocl/device.h"
#include "kernels/shape_util.h"
#include "kernels/tail.h"
#include "tests/devices.h"
#include "tests/kernels/op_runner.h"
#include "tuning/tuner.h"

namespace clinfer::test {

namespace {

// Counts the kernels that were run, over all tests of the program.
class Counts : public testing::Environment {
 public:
  void add(const KernelFamily& family) {
    families_.insert(family.name);
    ++points_;
  }
  void leave_out() { ++left_out_; }
  void build_apart() { ++apart_; }
  void TearDown() override {
    if (points_ == 0) return;
    std::cout << families_.size() << " kernel families run, " << points_
              << " times with a tuning point\n";
    if (left_out_ > 0)
      std::cout << left_out_ << " tuning points left out, which this version of PoCL miscompiles\n";
    if (apart_ > 0) std::cout << apart_ << " programs of several kernels could not be built\n";
  }

 private:
  std::set<std::string> families_;
  size_t points_ = 0, left_out_ = 0, apart_ = 0;
};
Counts& counts = *static_cast<Counts*>(testing::AddGlobalTestEnvironment(new Counts));

const ocl::Context& context() {
  static const auto shared = ocl::Context::create(ocl::select_device("GPU"));
  // Compilers start once, not for each kernel.
  static const auto compilers = ocl::CompilerPool::of(*shared);
  return *shared;
}

// PoCL 5.0, of Ubuntu 24.04, aborts the process when it compiles tiles with several slices, and
// collects the candidates of DetectionOutput wrongly. CPUs get neither in use; here they are
// planned as for a GPU.
bool is_miscompiled(const KernelFamily& family, const TuningPoint& point) {
  if (ocl::pocl_version(context().device) != 5) return false;
  return family.name == "detection_output" ||
         std::any_of(point.values.begin(), point.values.end(),
                     [](const auto& value) { return value.first == "SLICES" && value.second > 1; });
}

std::string text_of(const TuningPoint& point) {
  std::string text;
  for (const auto& [name, value] : point.values) text += " " + name + "=" + std::to_string(value);
  return text;
}

// Returns how an output differs from the reference; "" if it does not.
std::string difference(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  if (got.shape() != want.shape())
    return "shape " + to_string(got.shape()) + ", expected " + to_string(want.shape());
  const std::vector<float> a = got.to_floats(), b = want.to_floats();
  double largest = 0;
  for (float v : b)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(static_cast<double>(v)));
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool equal =
        (std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] ||
        std::fabs(static_cast<double>(a[i]) - b[i]) <=
            tolerance.absolute * std::max(1.0, largest) + tolerance.relative * std::fabs(b[i]);
    if (!equal && wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return std::to_string(wrong) + " of " + std::to_string(a.size()) +
         " values are wrong; the first at " + std::to_string(first) + ": " +
         std::to_string(a[first]) + ", expected " + std::to_string(b[first]) + " (shape " +
         to_string(got.shape()) + ")";
}

// The devices that Intel's offline compiler makes programs for.
const DeviceTraits kOffline[] = {
    intel_gpu("skl", 24),    intel_gpu("icllp", 64), intel_gpu("tgllp", 96),
    intel_gpu("dg2", 512),   intel_gpu("pvc", 512),  intel_gpu("mtl", 128),
    intel_gpu("arl-h", 128), intel_gpu("lnl", 64),   intel_gpu("bmg", 160)};

// One program of 64, by its hash.
bool is_sampled(const ocl::Instantiation& program) {
  return std::stoul(program.kernel_name.substr(program.kernel_name.size() - 2), nullptr, 16) % 64 ==
         0;
}

// Writes the programs of one operation, in f32 and f16, for each device:
//   FOLDER/DEVICE/layers.PID  a line for each family that takes it: what it is, and the names of the
//                             kernels of each candidate for the untuned choice, in order
//   FOLDER/DEVICE/default     the programs of the first candidate
//   FOLDER/DEVICE/next        those of the other candidates
//   FOLDER/DEVICE/other       of the other points: for the first device all, for the others a sample
size_t write_sources(const OpDesc& desc, const std::filesystem::path& folder) {
  size_t written = 0;
  for (const DeviceTraits& traits : kOffline) {
    const auto write = [&](const KernelSpec& spec, const char* place, const std::string& title) {
      const ocl::Instantiation program = ocl::instantiate(spec);
      if (place == std::string("other") && &traits != kOffline && !is_sampled(program))
        return program;
      ++written;
      const auto parent = folder / traits.name / place;
      if (std::filesystem::create_directories(parent))
        std::ofstream(parent / "options") << ocl::compiler_options(traits);
      // Writing an existing file again would wait for the disk.
      const auto file = parent / (program.kernel_name + ".cl");
      if (!std::filesystem::exists(file))
        std::ofstream(file) << ocl::program_source(program) << "// " << title << "\n";
      return program;
    };
    std::string layers;
    for (const bool half : {false, true}) {
      OpDesc typed = desc;
      for (auto* list : {&typed.inputs, &typed.outputs})
        for (TensorDesc& tensor : *list)
          if (half && tensor.type == ElementType::f32) tensor.type = ElementType::f16;
      for (const KernelFamily* family : find_op(desc.type, desc.opset)->families) {
        if (!family->reject(typed, traits).empty()) continue;
        const std::string start = family->name + " " + std::string(name_of(typed.inputs[0].type));
        const std::vector<KernelChoice> candidates = untuned_candidates(typed, traits, *family);
        layers += start + " of " + testing::UnitTest::GetInstance()->current_test_info()->name();
        for (const KernelChoice& candidate : candidates) {
          layers += "\t";
          for (const KernelSpec& spec : family->plan(typed, traits, candidate.point).launches)
            layers += write(spec, candidate == candidates[0] ? "default" : "next",
                            start + text_of(candidate.point))
                          .kernel_name +
                      " ";
        }
        layers += "\n";
        for (const TuningPoint& point : points_of(*family, typed, traits))
          if (std::ranges::find(candidates, point, &KernelChoice::point) == candidates.end())
            for (const KernelSpec& spec : family->plan(typed, traits, point).launches)
              write(spec, "other", start + text_of(point));
      }
    }
    if (layers.empty()) continue;
    std::ofstream(folder / traits.name / ("layers." + std::to_string(getpid())), std::ios::app)
        << layers;
  }
  return written;
}

// A kernel plan that tests run.
struct Planned {
  const KernelFamily* family;
  TuningPoint point;
  KernelPlan plan;
};

// With CLINFER_TEST_TOGETHER=1 the kernels of all plans are one program. Returns none without, or if
// that program cannot be built: then each kernel is built as the engine does.
std::optional<cl::Program> built_together(const std::vector<Planned>& all) {
  const char* together = std::getenv("CLINFER_TEST_TOGETHER");
  if (together == nullptr || *together != '1') return {};
  std::vector<KernelPlan> plans;
  for (const Planned& one : all) {
    for (const KernelSpec& launch : one.plan.launches)
      if (launch.own) return {};
    plans.push_back(one.plan);
  }
  try {
    return build_together(context(), std::move(plans));
  } catch (const cl::Error&) {
    counts.build_apart();
    return {};
  }
}

}  // namespace

Tensor random_tensor(Shape shape, float low, float high, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  Tensor tensor = Tensor::allocate(ElementType::f32, std::move(shape));
  for (int64_t i = 0; i < tensor.elements(); ++i)
    tensor.mutable_data<float>()[i] = distribution(generator);
  return tensor;
}

Tensor random_ints(ElementType type, Shape shape, int64_t low, int64_t high, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int64_t> distribution(low, high);
  Tensor tensor = Tensor::allocate(ElementType::i64, std::move(shape));
  for (int64_t i = 0; i < tensor.elements(); ++i)
    tensor.mutable_data<int64_t>()[i] = distribution(generator);
  return tensor.convert(type);
}

Tensor shifted_weights(const Shape& shape) {
  std::vector<float> values = random_ints(ElementType::i16, shape, -128, 127, 2).to_floats();
  const size_t part = values.size() / static_cast<size_t>(shape[0]);
  for (size_t i = 0; i < values.size(); ++i) {
    static constexpr float kShifts[] = {-127, 0, 128, -1, 40};
    values[i] += kShifts[i / part % 5];
  }
  return Tensor::of<float>(ElementType::i16, shape, values);
}

Attributes attributes(std::initializer_list<std::pair<const char*, const char*>> values) {
  Attributes result;
  for (const auto& [name, value] : values) result.set(name, value);
  return result;
}

OpDesc make_desc(const std::string& type, int opset, const Attributes& attributes,
                 const std::vector<Tensor>& inputs, const std::vector<bool>& constant,
                 size_t output_count) {
  const OpDef* def = find_op(type, opset);
  if (!def)
    throw Error(ErrorCode::unsupported, "no operation " + type + ", opset" + std::to_string(opset));
  OpDesc desc;
  desc.name = "test";
  desc.type = type;
  desc.opset = opset;
  desc.attributes = attributes;
  const auto layout = [&](ElementType element, const Shape& shape) {
    return has_channels_last(def->layout, shape) ? TensorDesc::channels_last(element, shape)
                                                 : TensorDesc::row_major(element, shape);
  };
  std::vector<ValueInfo> infos;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_constant = i < constant.size() && constant[i];
    desc.inputs.push_back(is_constant ? TensorDesc::row_major(inputs[i].type(), inputs[i].shape())
                                      : layout(inputs[i].type(), inputs[i].shape()));
    desc.constants.push_back(is_constant ? inputs[i] : Tensor());
    infos.push_back({inputs[i].type(), inputs[i].shape(), desc.constants.back()});
  }
  desc.own_inputs = inputs.size();
  for (const ValueInfo& info :
       def->infer_shapes({desc.type, opset, desc.attributes, infos, output_count}))
    desc.outputs.push_back(layout(info.type, info.shape));
  return desc;
}

TensorDesc with_gaps(TensorDesc desc, int64_t gap, int64_t offset) {
  // All strides except the innermost grow: the next larger one by `gap`, the others in proportion.
  int64_t inner = 0;
  for (size_t i = 0; i < desc.shape.size(); ++i)
    if (desc.shape[i] > 1 && (inner == 0 || desc.strides[i] < inner)) inner = desc.strides[i];
  std::vector<size_t> order;
  for (size_t i = 0; i < desc.shape.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return desc.strides[a] != desc.strides[b] ? desc.strides[a] < desc.strides[b]
                                              : desc.shape[a] < desc.shape[b];
  });
  int64_t stride = 1;
  bool first = true;
  for (size_t i : order) {
    if (desc.shape[i] == 1) continue;
    desc.strides[i] = stride;
    stride *= desc.shape[i];
    if (first) stride += gap;
    first = false;
  }
  desc.offset = offset;
  return desc;
}

std::vector<Tensor> reference(const OpDesc& desc, const std::vector<Tensor>& inputs) {
  const OpDef* def = find_op(desc.type, desc.opset);
  std::vector<Tensor> outputs;
  for (const TensorDesc& output : desc.outputs)
    outputs.push_back(Tensor::allocate(
        is_float(output.type) || quantizes(desc.tail) ? ElementType::f32 : output.type,
        output.shape));
  def->evaluate(desc, std::span(inputs).first(desc.own_inputs),
                std::span(outputs).first(outputs.size() - (keeps(desc.tail) ? 1 : 0)));
  apply_tail(desc, inputs, outputs);
  return outputs;
}

const DeviceTraits& device_traits() { return context().traits; }

DeviceTraits gpu_traits() {
  DeviceTraits traits;
  traits.name = "GPU";
  traits.compute_units = 16;
  traits.vector_width = 1;
  return traits;
}

std::vector<TuningPoint> points_of(const KernelFamily& family, const OpDesc& desc,
                                   const DeviceTraits& traits) {
  std::vector<TuningPoint> space = family.space(desc, traits);
  const TuningPoint chosen = family.heuristic(desc, traits);
  EXPECT_NE(std::find(space.begin(), space.end(), chosen), space.end())
      << family.name << ": the heuristic's point is not in the space";
  if (const char* all = std::getenv("CLINFER_TEST_ALL"); all && *all == '1') return space;
  std::vector<TuningPoint> few{chosen};
  for (size_t i : {size_t{0}, space.size() - 1})
    if (std::find(few.begin(), few.end(), space[i]) == few.end()) few.push_back(space[i]);
  return few;
}

DeviceTraits tiny_traits() {
  DeviceTraits tiny = gpu_traits();
  tiny.max_work_group = 64;
  return tiny;
}

void check_both(const OpDesc& desc, const std::vector<Tensor>& inputs, Tolerance tolerance) {
  const DeviceTraits gpu = gpu_traits();
  check_op(desc, inputs, tolerance);
  check_op(desc, inputs, tolerance, &gpu);
}

double kernel_us(const OpDesc& desc, const std::vector<Tensor>& inputs,
                 const DeviceTraits& traits) {
  for (const KernelFamily* family : find_op(desc.type, desc.opset)->families) {
    if (!family->reject(desc, traits).empty()) continue;
    const KernelPlan plan = family->plan(desc, traits, family->heuristic(desc, traits));
    return run_op(context(), desc, plan, inputs, 20).device_ns / 1e3;
  }
  throw Error(ErrorCode::unsupported, "no family takes " + desc.type);
}

size_t check_op(const OpDesc& desc, const std::vector<Tensor>& inputs, Tolerance tolerance,
                const DeviceTraits* pretend, const std::string& only) {
  if (const char* folder = std::getenv("CLINFER_KERNEL_SOURCES"))
    return write_sources(desc, folder);
  const DeviceTraits& traits = pretend ? *pretend : context().traits;
  const OpDef* def = find_op(desc.type, desc.opset);
  std::vector<Tensor> rounded;
  for (size_t i = 0; i < inputs.size(); ++i)
    rounded.push_back(desc.inputs[i].type == ElementType::f16
                          ? inputs[i].convert(ElementType::f16).convert(ElementType::f32)
                          : inputs[i]);
  const std::vector<Tensor> want = reference(desc, rounded);
  size_t runs = 0;
  std::string reasons;
  std::vector<Planned> all;
  for (const KernelFamily* family : def->families) {
    if (!only.empty() && family->name != only) continue;
    const std::string why = family->reject(desc, traits);
    if (!why.empty()) {
      reasons += family->name + ": " + why + "; ";
      continue;
    }
    for (const TuningPoint& point : points_of(*family, desc, traits)) {
      ++runs;
      if (is_miscompiled(*family, point))
        counts.leave_out();
      else
        all.push_back({family, point, family->plan(desc, traits, point)});
    }
  }
  const std::optional<cl::Program> program = built_together(all);
  const auto failure = [&](const KernelPlan& plan) -> std::string {
    try {
      const OpRun run = run_op(context(), desc, plan, rounded, 0, program ? &*program : nullptr);
      for (size_t i = 0; i < want.size(); ++i) {
        const Tensor got =
            def->rows_depend_on_data ? trim_unused_rows(run.outputs[i]) : run.outputs[i];
        if (std::string text = difference(got, want[i], tolerance); !text.empty()) return text;
      }
      if (run.stray.empty()) return "";
      return std::to_string(run.stray.size()) + " bytes outside the outputs were written";
    } catch (const Error& error) {
      return error.what();
    }
  };
  for (const auto& [family, point, plan] : all) {
    if (const std::string why = failure(plan); !why.empty())
      ADD_FAILURE() << desc.type << " by " << family->name << text_of(point) << ": " << why;
    counts.add(*family);
  }
  EXPECT_GT(runs, 0u) << "no family takes " << desc.type << ": " << reasons;
  return runs;
}

}  // namespace clinfer::test
