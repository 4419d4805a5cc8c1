// Persistent kernels of CPUs: what they compute, and what goes into them.
#include "engine/ocl/compiler/persistent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "engine/engine.h"
#include "engine/plan/cut.h"
#include "engine/runtime/network/launch.h"
#include "kernels/op.h"
#include "tests/engine/ball_model.h"
#include "tests/engine/products_model.h"
#include "tests/engine/test_files.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::ball_model;
using test::infer;

std::shared_ptr<CompiledModel> compile(Config::Persistent persistent, unsigned streams = 1) {
  Config config;
  config.device = list_devices().devices.at(0).id;
  config.persistent = persistent;
  config.streams = streams;
  config.device_timeout = {};  // PoCL compiles the one large kernel when it is launched
  return CompiledModel::compile(Model::read(ball_model()), config);
}

TEST(Persistent, ComputesWhatLaunchesCompute) {
  const auto one = compile(Config::Persistent::yes), many = compile(Config::Persistent::no);
  EXPECT_LT(one->kernel_count(), many->kernel_count());
  EXPECT_TRUE(one->warnings().empty()) << one->warnings()[0];
  const auto request = one->create_request(), other = many->create_request();
  for (unsigned seed : {1, 2, 3}) {
    const Tensor input = test::random_tensor(one->inputs()[0].shape, 0, 255, seed);
    EXPECT_EQ(infer(*request, input), infer(*other, input));
  }
}

TEST(Persistent, RequestsOfSeveralStreamsDoNotMix) {
  const auto compiled = compile(Config::Persistent::yes, 2);
  const auto single = compile(Config::Persistent::no)->create_request();
  std::vector<std::unique_ptr<InferRequest>> requests;
  for (int i = 0; i < 4; ++i) requests.push_back(compiled->create_request());
  for (unsigned round = 0; round < 5; ++round) {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < requests.size(); ++i) {
      inputs.push_back(
          test::random_tensor(compiled->inputs()[0].shape, 0, 255, 10 * round + unsigned(i)));
      requests[i]->set_input(0, inputs[i]);
      requests[i]->start();
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i]->wait();
      EXPECT_EQ(requests[i]->output(0).to_floats(), infer(*single, inputs[i]));
    }
  }
}

// Kernels are measured one by one; what the network is made of then is one kernel again, also where
// there was nothing to measure.
TEST(Persistent, ComesAfterTuning) {
  const TemporaryFolder folder;
  const auto model = Model::read(test_data("models/tunable.xml"));
  Config config;
  config.persistent = Config::Persistent::no;
  config.device_timeout = {};
  const auto plain = CompiledModel::compile(model, config);
  const Tensor input = test::random_tensor(plain->inputs()[0].shape, -1, 1, 5);
  const std::vector<float> want = infer(*plain->create_request(), input);
  config.tuning_mode = TuningMode::create;
  using enum Config::Persistent;
  const std::pair<std::string, Config::Persistent> runs[] = {
      {"launches.json", no}, {"launches.json", yes}, {"parts.json", yes}, {"parts.json", no}};
  std::string last;
  for (const auto& [file, persistent] : runs) {
    config.tuning_file = folder / file;
    config.persistent = persistent;
    const auto tuned = CompiledModel::compile(model, config);
    const std::vector<float> got = infer(*tuned->create_request(), input);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-3) << i;
    const TuningReport& report = tuned->tuning();
    EXPECT_EQ(report.measured, file == last ? 0 : report.layers.size());
    for (const LayerTuning& layer : report.layers)
      EXPECT_TRUE(layer.failed.empty()) << layer.layer << ": " << layer.failed[0];
    last = file;
  }
}

TEST(Persistent, TimesOfLayersNeedLaunchesOfTheirOwn) {
  Config config;
  config.device = list_devices().devices.at(0).id;
  config.perf_count = true;
  EXPECT_EQ(CompiledModel::compile(Model::read(ball_model()), config)->kernel_count(),
            compile(Config::Persistent::no)->kernel_count());
}

// One launch does it all on the cores of a stream, unless the driver computes its work-groups one after the
// other (CLINFER_ONE_CORE, by one_core_layer.cpp). Where each stream has one core, the number of streams need
// not be measured.
TEST(Persistent, TheCoresOfAStreamTakeOneLaunch) {
  const DeviceTraits traits = test::device_traits();
  const unsigned cores = list_devices().devices.at(0).compute_units;
  if (!traits.is_cpu || traits.vendor != Vendor::pocl || cores < 2)
    GTEST_SKIP() << "no PoCL on several cores";
  const auto many = compile(Config::Persistent::no, cores);
  const auto one = compile(Config::Persistent::automatic, cores);
  EXPECT_LT(one->kernel_count(), many->kernel_count());
  const auto request = one->create_request(), other = many->create_request();
  const auto shared = cores <= 8 ? compile(Config::Persistent::automatic, 1) : nullptr;
  const auto sharing = shared ? shared->create_request() : nullptr;
  if (shared) {
    const bool one_after_the_other = std::getenv("CLINFER_ONE_CORE") != nullptr;
    EXPECT_EQ(shared->kernel_count(), (one_after_the_other ? many : one)->kernel_count());
  }
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Tensor input = test::random_tensor(one->inputs()[0].shape, 0, 255, seed);
    const std::vector<float> want = infer(*other, input);
    EXPECT_EQ(infer(*request, input), want);
    if (sharing) {
      EXPECT_EQ(infer(*sharing, input), want) << "cores take the work from each other";
    }
  }
  if (cores > 4) return;
  const auto automatic = compile(Config::Persistent::automatic, 0);
  EXPECT_EQ(automatic->streams(), cores);
  EXPECT_EQ(automatic->kernel_count(), one->kernel_count());
}

// Launches of a chain of layers by one persistent kernel, on PoCL's CPU.
class SharedWork : public testing::Test {
 protected:
  static constexpr size_t kLayers = 40, kSize = 12345;

  void SetUp() override {
    const std::vector<DeviceInfo> devices = list_devices().devices;
    if (std::none_of(devices.begin(), devices.end(), std::mem_fn(&DeviceInfo::is_cpu)))
      GTEST_SKIP() << "no CPU device";
    context_ = ocl::Context::create(ocl::select_device("CPU"));
    cores_ = context_->device.info.compute_units;
    traits_ = context_->traits;
    traits_.grid_barrier = GridBarrier::single;
    if (!ocl::shares_work(traits_) || cores_ < 2) GTEST_SKIP() << "no PoCL on several cores";
    OpDesc desc;
    desc.name = desc.type = "Sigmoid";
    desc.inputs = desc.outputs = {TensorDesc::row_major(ElementType::f32, {1, kSize})};
    desc.constants = {Tensor()};
    desc.own_inputs = 1;
    const KernelFamily* family = find_op(desc.type, 1)->families.front();
    plan_ = family->plan(desc, traits_, family->heuristic(desc, traits_));
    const std::vector<const KernelSpec*> launches(kLayers, &plan_.launches.at(0));
    const auto place = [](size_t launch, const Argument& argument) {
      const size_t index = launch + (argument.kind == Argument::Kind::output);
      return ocl::ArgumentPlace{0, static_cast<int64_t>(index * kSize * sizeof(float))};
    };
    size_t count = 0;
    persistent_ = ocl::make_persistent(launches, place, traits_, count);
    ASSERT_EQ(count, kLayers);
    list_ = buffer_of(persistent_.list);
    programs_ = ocl::Programs::build(*context_, {&persistent_.program, 1}, {});
    counters_ = buffer_of(std::vector<cl_uint>(persistent_.counter_words(kMostGroups)));
  }

  template <typename T>
  cl::Buffer buffer_of(std::vector<T> values) {
    return cl::Buffer(context_->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                      values.size() * sizeof(T), values.data());
  }

  cl::Kernel kernel(const cl::Buffer& memory) {
    cl::Kernel kernel = programs_->kernel(persistent_.program.kernel_name);
    bind_persistent(kernel, {memory, memory, memory}, list_, counters_);
    return kernel;
  }

  // All layers' values after `times` launches with so many work-groups.
  std::vector<float> run(const cl::Device& device, unsigned groups, unsigned times) {
    std::vector<float> values((kLayers + 1) * kSize);
    for (size_t i = 0; i < kSize; ++i) values[i] = static_cast<float>(i % 97) - 48;
    const cl::Buffer memory = buffer_of(values);
    const cl::CommandQueue queue(context_->context, device);
    cl::Kernel kernel = this->kernel(memory);
    for (unsigned i = 0; i < times; ++i)
      enqueue_persistent(queue, kernel, persistent_.list.size(), groups);
    queue.enqueueReadBuffer(memory, CL_TRUE, 0, values.size() * sizeof(float), values.data());
    std::vector<cl_uint> counters(persistent_.counter_words(groups));
    queue.enqueueReadBuffer(counters_, CL_TRUE, 0, counters.size() * sizeof(cl_uint),
                            counters.data());
    EXPECT_EQ(counters, std::vector<cl_uint>(counters.size())) << "ready for the next launch";
    return values;
  }

  static constexpr unsigned kMostGroups = 7;
  std::shared_ptr<const ocl::Context> context_;
  unsigned cores_ = 0;
  DeviceTraits traits_;
  KernelPlan plan_;
  ocl::PersistentKernel persistent_;
  std::shared_ptr<const ocl::Programs> programs_;
  cl::Buffer list_, counters_;
};

TEST_F(SharedWork, AnyNumberOfGroupsComputesTheSame) {
  const cl::Device& all = context_->device.device;
  const std::vector<float> want = run(all, 1, 1);
  for (const unsigned groups : {2u, 3u, kMostGroups}) EXPECT_EQ(run(all, groups, 20), want);
}

// The first group does not wait for the others, which run after it.
TEST_F(SharedWork, GroupsOneAfterTheOtherComputeTheSame) {
  const std::vector<cl::Device> parts = ocl::parts(*context_, cores_);
  ASSERT_EQ(parts.size(), cores_);
  const std::vector<float> want = run(parts[0], 1, 1);
  for (const unsigned groups : {2u, kMostGroups}) EXPECT_EQ(run(parts[0], groups, 3), want);
}

TEST_F(SharedWork, ItIsSeenWhetherGroupsRunSideBySide) {
  const cl::Buffer memory = buffer_of(std::vector<float>(4));
  cl::Kernel kernel = this->kernel(memory);
  const auto meet = [&](const cl::Device& device, unsigned groups) {
    return groups_meet(cl::CommandQueue(context_->context, device), kernel, counters_, groups);
  };
  EXPECT_TRUE(meet(context_->device.device, 2));
  EXPECT_TRUE(meet(context_->device.device, 2)) << "once more";
  EXPECT_FALSE(meet(ocl::parts(*context_, cores_).at(0), 2)) << "one core";
}

// A launch of all of it would keep a caller who cancels waiting.
TEST(Persistent, ALongInferenceTakesSeveralLaunches) {
  const DeviceTraits traits = test::device_traits();
  const unsigned cores = list_devices().devices.at(0).compute_units;
  if (!traits.is_cpu || traits.vendor != Vendor::pocl || cores < 2)
    GTEST_SKIP() << "no PoCL on several cores";
  constexpr size_t kProducts = 12;
  const TemporaryFolder folder;
  Config config;
  config.device = list_devices().devices.at(0).id;
  config.streams = cores;
  config.device_timeout = {};
  const auto compiled =
      CompiledModel::compile(Model::read(test::products_model(folder, 1024, kProducts)), config);
  EXPECT_GT(compiled->kernel_count(), 1u);
  EXPECT_LT(compiled->kernel_count(), kProducts);
}

DeviceTraits core() {
  DeviceTraits traits;
  traits.grid_barrier = GridBarrier::single;
  return traits;
}

KernelSpec launch_of(size_t team, size_t shared) {
  KernelSpec spec;
  spec.source = "softmax.cl";
  spec.local = {team, 1, 1};
  spec.global = {team * 10, 1, 1};
  spec.shared = shared;
  spec.arguments = {Argument::input(0, 2), Argument::output(0, 2), Argument::value(1.5f),
                    Argument::value(std::array<int, 4>{1, 2, 3, 4})};
  return spec;
}

TEST(Persistent, RefusesWhatDoesNotFit) {
  EXPECT_EQ(ocl::reject_persistent(launch_of(48, 0), core()), "");
  EXPECT_EQ(ocl::reject_persistent(launch_of(48, 0), DeviceTraits{}),
            "the device launches kernels one by one");
  EXPECT_EQ(ocl::reject_persistent(launch_of(48, 64), core()), "work-items that share memory");
  KernelSpec image = launch_of(1, 0);
  image.arguments.push_back(Argument::image(0));
  EXPECT_EQ(ocl::reject_persistent(image, core()), "images");
}

// PoCL compiles a kernel three times, a function that it calls once.
TEST(Persistent, KernelsOfOneWorkItemCallAFunction) {
  const auto calls = [](const KernelSpec& spec) {
    return ocl::instantiate(spec).text.find("\nOUTLINE ") != std::string::npos;
  };
  EXPECT_TRUE(calls(launch_of(1, 0)));
  EXPECT_FALSE(calls(launch_of(2, 0))) << "its work-items are a loop that PoCL makes";
  EXPECT_FALSE(calls(launch_of(1, 64))) << "local memory is a kernel's";
  KernelSpec spec = launch_of(1, 0);
  spec.arguments.push_back(Argument::image(0));
  EXPECT_FALSE(calls(spec));
  EXPECT_FALSE(calls(can_be_cut(launch_of(1, 0)))) << "it asks for the offset of the launch";
}

// Offsets count elements; each distinct kernel is there once; what lies too far is left to the next.
TEST(Persistent, ListSaysWhatToDo) {
  const KernelSpec spec = launch_of(128, 0), other = launch_of(64, 0);
  const auto place = [](size_t launch, const Argument& argument) {
    return ocl::ArgumentPlace{argument.kind == Argument::Kind::input ? 0 : 1,
                              static_cast<int64_t>(100 * launch + 6)};
  };
  const std::vector<const KernelSpec*> launches{&spec, &other, &spec};
  size_t count = 0;
  const ocl::PersistentKernel kernel = ocl::make_persistent(launches, place, core(), count);
  EXPECT_EQ(count, 3u);
  const std::vector<int32_t> first{0, 10, 10, 1, 14, 0, 3, 1, 3, 0x3fc00000, 1, 2, 3, 4};
  ASSERT_EQ(kernel.list.size(), 3 * first.size());
  EXPECT_EQ(std::vector<int32_t>(kernel.list.begin(), kernel.list.begin() + 14), first);
  EXPECT_EQ(kernel.list[14], 1) << "another kernel";
  EXPECT_EQ(kernel.list[28], 0) << "the first one again";
  EXPECT_EQ(kernel.list[28 + 6], 103);

  const auto far = [](size_t, const Argument&) { return ocl::ArgumentPlace{0, int64_t{1} << 33}; };
  ocl::make_persistent(launches, far, core(), count);
  EXPECT_EQ(count, 0u) << "beyond what an int counts";
}

// Kernels follow each other in one program: a macro that one undefines is missing in later ones.
TEST(Persistent, NoKernelDefinesWhatAllOfThemUse) {
  KernelSpec spec;
  spec.source = "softmax.cl";
  EXPECT_NO_THROW(ocl::instantiate(spec));
  spec.defines = {{"TOTAL", "int"}};
  EXPECT_THROW(ocl::instantiate(spec), std::logic_error);
}

// A network may have as many launches of one kernel as it has layers.
TEST(Persistent, EqualKernelsAreInstantiatedOnce) {
  KernelSpec spec;
  spec.source = "softmax.cl";
  ocl::Instantiations all;
  const ocl::Instantiation* const first = &all.of(spec);
  EXPECT_EQ(first->text, ocl::instantiate(spec).text);
  spec.arguments = {Argument::input(0, 4)};  // decides whether the kernel calls a function
  const ocl::Instantiation* const other = &all.of(spec);
  EXPECT_EQ(other->text, ocl::instantiate(spec).text);
  spec.global = {64, 1, 1};
  EXPECT_EQ(&all.of(spec), other);
  spec.defines = {{"SOMETHING", "1"}};
  EXPECT_NE(&all.of(spec), other);
  EXPECT_NE(&all.of_function(spec, "a"), &all.of_function(spec, "b"));
  EXPECT_EQ(&all.of_function(spec, "a"), &all.of_function(spec, "a"));
}

}  // namespace
}  // namespace clinfer
