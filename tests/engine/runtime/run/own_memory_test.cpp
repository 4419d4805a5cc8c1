// Frames in host memory on a device with memory of its own: they are copied on a queue of their own,
// several at a time on the host, and each one's kernel runs while the next are copied.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/engine/ball_model.h"
#include "tests/engine/relu_model.h"
#include "tests/engine/runtime/run/own_memory_layer.h"
#include "tests/kernels/op_test.h"
#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

constexpr size_t kBatch = 4;

// One model for all tests, and one whose layers are timed.
std::shared_ptr<CompiledModel> compiled(bool timed = false) {
  static const TemporaryFolder folder;
  static std::map<bool, std::shared_ptr<CompiledModel>> models;
  std::shared_ptr<CompiledModel>& model = models[timed];
  if (model == nullptr) {
    Config config;
    config.batch = kBatch;
    config.perf_count = timed;
    config.cache_dir = folder / "cache";
    model = CompiledModel::compile(Model::read(test::ball_model()), config);
  }
  return model;
}

std::shared_ptr<CompiledModel> compile_relu(const Shape& shape) {
  const TemporaryFolder folder;
  Config config;
  config.cache_dir = "";
  return CompiledModel::compile(Model::read(test::relu_model(folder, shape)), config);
}

// Pictures of one size, in BGR: each has other pixels.
class Pictures {
 public:
  Pictures(int width, int height, size_t count) : width_(width), height_(height) {
    for (size_t i = 0; i < count; ++i)
      pixels_.push_back(test::random_tensor({height, width, 3}, 0, 255, 11 + static_cast<int>(i))
                            .convert(ElementType::u8));
  }

  Frame frame(size_t i) const {
    Frame frame;
    frame.format = PixelFormat::bgr;
    frame.width = width_;
    frame.height = height_;
    frame.planes[0] = static_cast<const uint8_t*>(pixels_[i % pixels_.size()].raw());
    frame.strides[0] = width_ * 3;
    return frame;
  }

  // One after the other, as a network takes them.
  Tensor planes(size_t first) const {
    Tensor all = Tensor::allocate(ElementType::f32, {kBatch, 3, height_, width_});
    const size_t size = static_cast<size_t>(width_) * static_cast<size_t>(height_);
    for (size_t n = 0; n < kBatch; ++n) {
      const uint8_t* from = frame(first + n).planes[0];
      for (size_t c = 0; c < 3; ++c)
        for (size_t i = 0; i < size; ++i)
          all.mutable_data<float>()[(n * 3 + c) * size + i] = from[i * 3 + c];
    }
    return all;
  }

 private:
  int width_, height_;
  std::vector<Tensor> pixels_;
};

void set_frames(InferRequest& request, const Pictures& pictures, size_t first) {
  for (size_t n = 0; n < kBatch; ++n) request.set_frame(0, pictures.frame(first + n), {}, n);
}

std::vector<float> result_of(InferRequest& request) {
  request.wait();
  return request.output(0).to_floats();
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-3) << i;
}

TEST(OwnMemory, TheDeviceHasMemoryOfItsOwn) {
  EXPECT_FALSE(compiled()->device().is_cpu);
  EXPECT_FALSE(compiled()->device().is_integrated);
  EXPECT_TRUE(compiled()->wants_frame_memory());
}

// CUDA knows nothing of it, of which nothing has to be said.
TEST(OwnMemory, AnotherVendorsDeviceHasNoGraphs) {
  EXPECT_EQ(compiled()->launch(), "queue");
  EXPECT_TRUE(compiled()->warnings().empty());
}

// Compilers inherit the loader's lists, which the loader may have cut.
TEST(OwnMemory, CompilersFindTheSameDevices) {
  compiled();
  EXPECT_NE(std::string(std::getenv("OPENCL_LAYERS")).find(':'), std::string::npos);
}

// Two batches in flight on one stream.
TEST(OwnMemory, FramesAreInferredAsTensorsAre) {
  const Shape& shape = compiled()->inputs()[0].shape;
  const Pictures pictures(static_cast<int>(shape[3]), static_cast<int>(shape[2]), kBatch + 1);
  const auto one = compiled()->create_request(), other = compiled()->create_request();
  for (size_t round = 0; round < 4; ++round) {
    const std::vector<float> first = test::infer(*one, pictures.planes(round));
    const std::vector<float> second = test::infer(*other, pictures.planes(round + 1));
    EXPECT_NE(first, second);
    set_frames(*one, pictures, round);
    one->start();
    set_frames(*other, pictures, round + 1);
    other->start();
    expect_near(result_of(*one), first);
    expect_near(result_of(*other), second);
  }
  EXPECT_STREQ(own_memory_mistake(), "");
}

// Frames that are too small to be worth threads are copied in their order: a frame's kernel is enqueued
// before the next frame is copied.
TEST(OwnMemory, AFramesKernelRunsWhileTheNextIsCopied) {
  const Pictures pictures(320, 200, kBatch);
  const auto request = compiled()->create_request();
  own_memory_reset();
  set_frames(*request, pictures, 0);
  request->start();
  request->wait();
  constexpr long kFrames = kBatch;
  EXPECT_EQ(own_memory_waits(), kFrames);
  EXPECT_GE(own_memory_writes(), kFrames);
  EXPECT_EQ(own_memory_writes_before_first_wait() * kFrames, own_memory_writes());
  EXPECT_STREQ(own_memory_mistake(), "");
}

// Frames that several threads copy give what the device fetches itself from frame memory.
TEST(OwnMemory, LargeFramesAreCopiedByThreads) {
  constexpr int kWidth = 1280, kHeight = 720;
  const Pictures pictures(kWidth, kHeight, kBatch + 2);
  const size_t bytes = size_t{kWidth} * kHeight * 3;
  const auto memory = compiled()->allocate_frame_memory(kBatch * bytes);
  const auto request = compiled()->create_request(), fetching = compiled()->create_request();
  for (size_t round = 0; round < 3; ++round) {
    for (size_t n = 0; n < kBatch; ++n) {
      Frame frame = pictures.frame(round + n);
      std::byte* at = memory->data() + n * bytes;
      std::memcpy(at, frame.planes[0], bytes);
      frame.planes[0] = reinterpret_cast<const uint8_t*>(at);
      fetching->set_frame(0, frame, {}, n, memory.get());
    }
    fetching->start();
    const std::vector<float> expected = result_of(*fetching);
    set_frames(*request, pictures, round);
    request->start();
    EXPECT_EQ(result_of(*request), expected);
  }
  EXPECT_STREQ(own_memory_mistake(), "");
}

TEST(OwnMemory, TimesOfCopiesAreCounted) {
  const Pictures pictures(1280, 720, kBatch);
  const auto request = compiled(true)->create_request();
  set_frames(*request, pictures, 0);
  request->start();
  request->wait();
  double upload = 0, preprocess = 0;
  for (const StepProfile& row : compiled(true)->profile()) {
    if (row.layer == "(upload)") upload = row.device_us;
    if (row.layer == "(preprocess)") preprocess = row.device_us;
  }
  EXPECT_GT(upload, 0);
  EXPECT_GT(preprocess, 0);
}

// Large results are read on a queue of their own, while the next inference computes.
TEST(OwnMemory, LargeResultsAreReadBesideTheNextInference) {
  const auto large = compile_relu({2, 4, 512, 512});
  const auto one = large->create_request(), other = large->create_request();
  own_memory_reset();
  for (int round = 0; round < 2; ++round) {
    const Tensor first = test::random_tensor({2, 4, 512, 512}, -1, 1, 2 * round + 1);
    const Tensor second = test::random_tensor({2, 4, 512, 512}, -1, 1, 2 * round + 2);
    one->set_input(0, first);
    one->start();
    other->set_input(0, second);
    other->start();
    for (const auto& [request, input] : {std::pair{&one, &first}, {&other, &second}}) {
      std::vector<float> expected = input->to_floats();
      for (float& value : expected) value = std::max(value, 0.F);
      expect_near(result_of(**request), expected);
    }
  }
  EXPECT_EQ(own_memory_long_reads(), 4);
  EXPECT_STREQ(own_memory_mistake(), "");
}

// Events between queues would make the latency of a single image longer.
TEST(OwnMemory, OneImageTakesOneQueue) {
  const auto single = compile_relu({1, 3, 64, 64});
  const Pictures pictures(1280, 720, 1);
  const auto request = single->create_request();
  own_memory_reset();
  request->set_frame(0, pictures.frame(0), {}, 0);
  request->start();
  request->wait();
  EXPECT_GT(own_memory_writes(), 0);
  EXPECT_EQ(own_memory_waits(), 0);
  EXPECT_STREQ(own_memory_mistake(), "");
}

// A request that ends at once leaves no copy that reads the frames later: a sanitizer would see it.
TEST(OwnMemory, NothingReadsFramesOfARequestThatWasDropped) {
  for (size_t i = 0; i < 10; ++i) {
    const auto pictures = std::make_unique<Pictures>(640, 480, kBatch);
    const auto request = compiled()->create_request();
    set_frames(*request, *pictures, 0);
    request->start();
  }
  EXPECT_STREQ(own_memory_mistake(), "");
}

}  // namespace
}  // namespace clinfer
