// MULTI and AUTO: inferences on two devices, on those that work, and on whichever is ready first.
#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "engine/devices/multi_model.h"
#include "kernels/base/no_answer.h"
#include "tests/engine/devices/two_devices.h"
#include "tests/engine/request_without_inputs.h"
#include "tests/engine/watched_compilation.h"
#include "tests/says.h"

namespace clinfer {
namespace {

using test::infer;
using test::says;

class Multi : public test::TwoDevices {};

TEST_F(Multi, EachRequestHasItsDeviceAndAllGiveTheSame) {
  const auto compiled = compile("MULTI:CPU.0,CPU.1");
  EXPECT_EQ(compiled->streams(), 2u);
  EXPECT_EQ(compiled->optimal_requests(), 4u);
  EXPECT_EQ(compiled->device().id, "MULTI:CPU.0,CPU.1");
  EXPECT_TRUE(compiled->warnings().empty());
  std::vector<std::unique_ptr<InferRequest>> requests;
  for (unsigned i = 0; i < 4; ++i) requests.push_back(compiled->create_request());
  for (unsigned i = 0; i < 12; ++i)
    EXPECT_TRUE(same(infer(*requests[i % 4], picture(i)), wanted(i))) << i;
  EXPECT_EQ(inferences(*compiled, "CPU.0"), 6u);
  EXPECT_EQ(inferences(*compiled, "CPU.1"), 6u);
  EXPECT_TRUE(compiled->take_problems().empty());
}

TEST_F(Multi, RequestsOfSeveralThreadsAtATime) {
  const auto compiled = compile("MULTI:CPU.0,CPU.1");
  std::vector<std::vector<float>> want;
  for (unsigned i = 0; i < 4; ++i) want.push_back(wanted(i));
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back([&, i, request = std::shared_ptr(compiled->create_request())] {
      for (int k = 0; k < 10; ++k) EXPECT_TRUE(same(infer(*request, picture(i)), want[i]));
    });
}

TEST_F(Multi, InputsMayBeWrittenInPlace) {
  for (const char* devices : {"MULTI:CPU.0,CPU.1", "HETERO:CPU.0,CPU.1"}) {
    const auto request = compile(devices)->create_request();
    const std::span<std::byte> memory = request->input_memory(0);
    for (unsigned i = 0; i < 2; ++i) {
      const Tensor input = picture(i);
      ASSERT_EQ(memory.size(), input.bytes());
      std::memcpy(memory.data(), input.raw(), input.bytes());
      request->start();
      request->wait();
      EXPECT_TRUE(same(request->output(0).to_floats(), wanted(i))) << devices << " " << i;
    }
    EXPECT_TRUE(same(infer(*request, picture(5)), wanted(5))) << "set_input() replaces it";
    EXPECT_THROW(request->input_memory(1), Error);
  }
}

TEST_F(Multi, DevicesHaveTheirOwnSettings) {
  for (const std::string device : {"CPU.0", "CPU.1"}) {
    Config config = on("MULTI:CPU.0,CPU.1");
    config.set(device + ".THROUGHPUT_STREAMS", "2");
    const auto compiled = CompiledModel::compile(ball(), config);
    EXPECT_EQ(compiled->streams(), 3u) << device;
    EXPECT_EQ(compiled->optimal_requests(), 6u) << device;
    config.set(device + ".NV12_TWO_INPUTS", "YES");
    EXPECT_THROW(CompiledModel::compile(ball(), config), Error) << device;
  }
}

TEST_F(Multi, FramesAndBatches) {
  std::vector<uint8_t> pixels(3 * 64 * 48);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7);
  Frame frame;
  frame.format = PixelFormat::bgr;
  frame.width = 64;
  frame.height = 48;
  frame.planes[0] = pixels.data();
  frame.strides[0] = 3 * 64;
  std::vector<std::vector<float>> results;
  for (const char* device : {"CPU.0", "MULTI:CPU.0,CPU.1"}) {
    Config config = on(device);
    config.batch = 2;
    const auto compiled = CompiledModel::compile(ball(), config);
    for (int i = 0; i < 2; ++i) {
      const auto request = compiled->create_request();
      request->set_frame(0, frame, {}, 0);
      request->set_frame(0, frame, {}, 1);
      request->start();
      request->wait();
      results.push_back(request->output(0).to_floats());
    }
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST_F(Multi, WhatALostDeviceHadIsDoneByTheOther) {
  const auto compiled = compile("MULTI:CPU.0,CPU.1");
  std::vector<std::unique_ptr<InferRequest>> requests;
  for (unsigned i = 0; i < 4; ++i) requests.push_back(compiled->create_request());
  for (unsigned i = 0; i < 4; ++i) requests[i]->set_input(0, picture(i));
  test::infer(*requests[1], picture(1));
  lose_device(name(1).c_str(), 5);
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; ++k) {
        requests[i]->start();
        requests[i]->wait();
      }
    });
  threads.clear();
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_TRUE(same(requests[i]->output(0).to_floats(), wanted(i))) << i;
  EXPECT_EQ(inferences(*compiled, "CPU.0") + inferences(*compiled, "CPU.1"), 21u);
  const auto problems = compiled->take_problems();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(says(problems[0], "CPU.1 (" + name(1)));
  EXPECT_TRUE(says(problems[0], "is not used any more, the other devices go on"));
  EXPECT_TRUE(compiled->take_problems().empty());
  // Later requests have the device that is left.
  const auto later = compiled->create_request();
  EXPECT_TRUE(same(infer(*later, picture(9)), wanted(9)));
}

// 64x48 pixels, whose memory the frame does not own.
Frame grey_frame(const std::vector<uint8_t>& pixels) {
  Frame frame;
  frame.format = PixelFormat::gray8;
  frame.width = 64;
  frame.height = 48;
  frame.planes[0] = pixels.data();
  frame.strides[0] = 64;
  return frame;
}

TEST_F(Multi, OtherImagesOfABatchStay) {
  const std::vector<uint8_t> pixels(64 * 48, 90);
  const Frame frame = grey_frame(pixels);
  std::vector<std::vector<float>> results;
  for (const char* device : {"CPU.0", "MULTI:CPU.0,CPU.1"}) {
    Config config = on(device);
    config.batch = 2;
    const auto compiled = CompiledModel::compile(ball(), config);
    Tensor both = Tensor::allocate(ElementType::f32, compiled->inputs()[0].shape);
    for (int64_t i = 0; i < both.elements(); ++i)
      both.mutable_data<float>()[i] = static_cast<float>(i * 7 % 250);
    for (const bool in_place : {false, true}) {
      const auto request = compiled->create_request();
      if (in_place)
        std::memcpy(request->input_memory(0).data(), both.raw(), both.bytes());
      else
        request->set_input(0, both);
      request->set_frame(0, frame, {}, 1);
      request->start();
      request->wait();
      results.push_back(request->output(0).to_floats());
      EXPECT_EQ(results.back(), results.front()) << device << in_place;
    }
  }
}

// The device that failed was the only one that still had it: no other picture takes its place.
TEST_F(Multi, AFrameOfALostDeviceIsSetAgain) {
  const std::vector<uint8_t> pixels(64 * 48, 90);
  const Frame frame = grey_frame(pixels);
  const auto compiled = compile("MULTI:CPU.0,CPU.1");
  const auto first = compiled->create_request(), request = compiled->create_request();
  request->set_frame(0, frame, {});
  request->start();
  request->wait();
  const std::vector<float> want = request->output(0).to_floats();
  ASSERT_EQ(inferences(*compiled, "CPU.1"), 1u);
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), want);
  lose_device(name(1).c_str(), 0);
  for (int n = 0; n < 2; ++n) {
    try {
      request->start();
      request->wait();
      ADD_FAILURE() << "a result of no picture";
    } catch (const Error& error) {
      EXPECT_TRUE(says(error.what(), "image 0 of input 0 was on a device that has failed"))
          << error.what();
    }
  }
  request->set_frame(0, frame, {});
  request->start();
  request->wait();
  EXPECT_TRUE(same(request->output(0).to_floats(), want));
}

TEST_F(Multi, WithoutAnyDeviceInferencesFail) {
  const auto compiled = compile("MULTI:CPU.0,CPU.1");
  const auto request = compiled->create_request();
  lose_device(name(1).c_str(), 0);
  EXPECT_TRUE(same(infer(*request, picture(2)), wanted(2)));  // CPU.0 is left
  const auto other = compiled->create_request();
  EXPECT_TRUE(same(infer(*other, picture(3)), wanted(3)));
  EXPECT_EQ(compiled->take_problems().size(), 1u);
  lose_device(name(0).c_str(), 0);
  for (int i = 0; i < 2; ++i) {
    try {
      infer(*request, picture(2));
      FAIL() << "no device is left";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device_failed) << error.what();
    }
  }
}

TEST_F(Multi, ADeviceThatCannotCompileIsLeftOut) {
  lose_device(name(0).c_str(), 0);  // fails in the first inference, which compiling includes
  const auto compiled = compile("MULTI:CPU.0,CPU.1");
  EXPECT_EQ(compiled->device().id, "CPU.1");
  const auto problems = compiled->take_problems();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(says(problems[0], "CPU.0 is not used: "));
  lose_device(name(0).c_str(), 0);
  EXPECT_THROW(compile("MULTI:CPU.0"), Error);
}

TEST_F(Multi, ATuningFileIsWrittenForOneDevice) {
  for (const std::string kind : {"MULTI", "AUTO", "HETERO"}) {
    Config config = on(kind + ":CPU.0,CPU.1");
    config.tuning_mode = TuningMode::create;
    config.tuning_file = "/nonexistent/file.json";
    try {
      CompiledModel::compile(ball(), config);
      FAIL() << kind;
    } catch (const Error& error) {
      EXPECT_TRUE(says(error.what(), "tune each with device="));
    }
  }
}

TEST_F(Multi, CountersAndFrameMemoryAreThoseOfTheDevices) {
  Config config = on("MULTI:CPU.0,CPU.1");
  config.perf_count = true;
  const auto compiled = CompiledModel::compile(ball(), config);
  const auto one = compiled->create_request(), other = compiled->create_request();
  constexpr int kWidth = 64, kHeight = 48;
  constexpr size_t kBytes = size_t{3} * kWidth * kHeight;
  EXPECT_FALSE(compiled->wants_frame_memory());
  const auto memory = compiled->allocate_frame_memory(kBytes);
  ASSERT_GE(memory->bytes(), kBytes);
  EXPECT_TRUE(compiled->fetches_from(*memory));
  for (size_t i = 0; i < kBytes; ++i) memory->data()[i] = static_cast<std::byte>(i * 7 % 251);
  const std::vector<std::byte> elsewhere(memory->data(), memory->data() + kBytes);
  const auto result = [&](InferRequest& request, const std::byte* data, const FrameMemory* in) {
    Frame frame;
    frame.format = PixelFormat::bgr;
    frame.width = kWidth;
    frame.height = kHeight;
    frame.planes[0] = reinterpret_cast<const uint8_t*>(data);
    frame.strides[0] = 3 * kWidth;
    request.set_frame(0, frame, {}, 0, in);
    request.start();
    EXPECT_TRUE(request.wait());
    return request.output(0).to_floats();
  };
  const std::vector<float> want = result(*one, elsewhere.data(), nullptr);
  for (const auto& request : {one.get(), other.get()})
    EXPECT_TRUE(same(result(*request, memory->data(), memory.get()), want));
  std::set<std::string> devices;
  for (const StepProfile& step : compiled->profile())
    devices.insert(step.layer.substr(0, step.layer.find(':')));
  EXPECT_EQ(devices, (std::set<std::string>{"CPU.0", "CPU.1"}));
}

TEST_F(Multi, SurfacesAreNotImported) {
  const auto compiled = compile("MULTI:CPU.0,CPU.1");
  EXPECT_TRUE(says(compiled->import_problem(MemoryHandle::dmabuf),
                   "several devices read frames from system memory"));
  EXPECT_THROW(compiled->import_surface(1), Error);
  EXPECT_THROW(compiled->import_memory(MemoryHandle::dmabuf, 1, 1), Error);
}

// A device whose inferences end as the test says.
struct Script {
  std::atomic<int> started{0}, cancelled{0};
  std::atomic<bool> answers{true};
};

class Scripted final : public RequestWithoutInputs {
 public:
  Scripted(std::shared_ptr<Script> script, float value)
      : script_(std::move(script)),
        tensor_(Tensor::of(ElementType::f32, {1}, std::vector<float>{value})) {}
  void cancel() override { ++script_->cancelled; }
  void start(size_t) override { ++script_->started; }
  bool wait(std::optional<std::chrono::milliseconds>) override {
    if (!script_->answers) throw NoAnswer("the device does not answer");
    return true;
  }
  const Tensor& output(size_t) const override { return tensor_; }

 private:
  const std::shared_ptr<Script> script_;
  const Tensor tensor_;
};

class ScriptedModel final : public JoinedModel {
 public:
  ScriptedModel(std::shared_ptr<CompiledModel> real, std::shared_ptr<Script> script, float value)
      : JoinedModel(nullptr, real->device().id, {real}, Config(), {}),
        script_(std::move(script)),
        value_(value) {}
  const std::vector<Port>& inputs() const override { return parts()[0]->inputs(); }
  const std::vector<Port>& outputs() const override { return parts()[0]->outputs(); }
  unsigned streams() const override { return 1; }
  unsigned optimal_requests() const override { return 2; }
  size_t kernel_count() const override { return 1; }
  std::unique_ptr<InferRequest> create_request() override {
    return std::make_unique<Scripted>(script_, value_);
  }
  bool wants_frame_memory() const override { return false; }
  std::shared_ptr<FrameMemory> allocate_frame_memory(size_t) override { return nullptr; }
  bool fetches_from(const FrameMemory&) const override { return false; }
  std::vector<StepProfile> profile() const override { return {}; }

 private:
  const std::shared_ptr<Script> script_;
  const float value_;
};

TEST_F(Multi, ADeviceThatDoesNotAnswerIsLeftAndKeepsItsFrames) {
  const auto slow = std::make_shared<Script>(), good = std::make_shared<Script>();
  slow->answers = false;
  std::vector<std::shared_ptr<CompiledModel>> parts{
      std::make_shared<ScriptedModel>(compile("CPU.0"), slow, 1.f),
      std::make_shared<ScriptedModel>(compile("CPU.1"), good, 2.f)};
  const auto multi = std::make_shared<MultiModel>(ball(), "MULTI:CPU.0,CPU.1", parts, Config(),
                                                  std::vector<std::string>{});
  const auto request = multi->create_request();
  request->set_frame(0, Frame(), {}, 0);
  request->start();
  EXPECT_TRUE(request->wait());
  EXPECT_EQ(request->output(0).to_floats(), std::vector<float>{2});
  EXPECT_TRUE(request->keeps_frames());
  EXPECT_EQ(multi->take_problems().size(), 1u);
  request->start();
  EXPECT_TRUE(request->wait());
  EXPECT_FALSE(request->keeps_frames());  // it began on the other device
  EXPECT_EQ(slow->started, 1);
  EXPECT_EQ(good->started, 2);
  // The last device's failure is the request's own; it stays in flight.
  good->answers = false;
  request->start();
  EXPECT_THROW(request->wait(), NoAnswer);
  good->answers = true;
  EXPECT_TRUE(request->wait());
  request->cancel();
  EXPECT_EQ(good->cancelled, 1);
}

class Auto : public test::TwoDevices {};

TEST_F(Auto, GivesTheFirstDeviceAndWhicheverIsReadyUntilThen) {
  Config config = on("AUTO:CPU.1,CPU.0");
  config.first_tier = false;
  std::vector<std::string> offered;
  hold_device(name(1).c_str());  // CPU.1 is not ready before CPU.0 has inferred
  const auto compiled =
      test::compile_watched(ball(), config, [&](const std::shared_ptr<CompiledModel>& model) {
        offered.push_back(model->device().id);
        const auto request = model->create_request();
        EXPECT_TRUE(same(infer(*request, picture(4)), wanted(4))) << offered.back();
        hold_device(nullptr);
      });
  EXPECT_EQ(compiled->device().id, "CPU.1");
  EXPECT_EQ(offered, std::vector<std::string>{"CPU.0"});
  EXPECT_TRUE(same(infer(*compiled->create_request(), picture(4)), wanted(4)));
  EXPECT_TRUE(compiled->take_problems().empty());
}

TEST_F(Auto, BeginsWithTheHostWhereKernelsHaveToBeCompiled) {
  const TemporaryFolder cache;
  Config config = on("AUTO:CPU.1,CPU.0");
  config.cache_dir = cache / "programs";
  std::vector<std::string> offered;
  const auto compiled =
      test::compile_watched(ball(), config, [&](const std::shared_ptr<CompiledModel>& model) {
        offered.push_back(model->device().id);
        const auto request = model->create_request();
        const std::vector<float> got = infer(*request, picture(4)), want = wanted(4);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-3f) << i;
      });
  EXPECT_EQ(compiled->device().id, "CPU.1");
  // Each is offered only where it is ready in time, and never after a better one.
  const std::vector<std::string> order = {"host", "CPU.0", "CPU.1"};
  auto from = order.begin();
  for (const std::string& id : offered) {
    const auto at = std::find(from, order.end(), id);
    ASSERT_NE(at, order.end()) << id << " as number " << offered.size();
    from = at + 1;
  }
}

TEST_F(Auto, WithoutATaskTheFirstThatIsReadyIsGiven) {
  const auto compiled = compile("AUTO:CPU.1,CPU.0");
  EXPECT_TRUE(compiled->device().id == "CPU.0" || compiled->device().id == "CPU.1");
  EXPECT_TRUE(same(infer(*compiled->create_request(), picture(6)), wanted(6)));
}

TEST_F(Auto, WithoutTheFirstDeviceTheNextOneStays) {
  lose_device(name(1).c_str(), 0);
  const auto compiled = compile("AUTO:CPU.1,CPU.0");
  EXPECT_EQ(compiled->device().id, "CPU.0");
  lose_device(name(1).c_str(), 0);
  bool offered = false;
  const auto again =
      test::compile_watched(ball(), on("AUTO:CPU.1,CPU.0"),
                            [&](const std::shared_ptr<CompiledModel>&) { offered = true; });
  EXPECT_EQ(again->device().id, "CPU.0");
  const auto problems = again->take_problems();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(says(problems[0], "CPU.1 is not used: "));
  (void)offered;  // whether CPU.0 was ready before CPU.1 failed is chance
}

TEST_F(Auto, IsCancelledAsAWhole) {
  TemporaryFolder cache;
  for (const char* device : {"AUTO:CPU.1,CPU.0", "MULTI:CPU.0,CPU.1", "HETERO:CPU.0,CPU.1"}) {
    Config config = on(device);
    config.cache_dir = cache / "programs";
    try {
      CompiledModel::compile(ball(), config,
                             [](const std::string&, size_t, size_t) { return false; });
      FAIL() << device;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled) << device << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace clinfer
