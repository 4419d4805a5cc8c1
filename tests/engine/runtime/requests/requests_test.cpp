// Infer requests in flight on several streams, with the bundled detector: each gets its own answer,
// whatever the others do.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "engine/engine.h"
#include "engine/graph/evaluate.h"
#include "engine/ir/ir_reader.h"
#include "tests/engine/ball_model.h"
#include "tests/engine/test_files.h"
#include "tests/host_layer_model.h"
#include "tests/kernels/op_test.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

using test::ball_model;
using test::infer;

std::shared_ptr<CompiledModel> compile(unsigned streams, unsigned batch = 0) {
  static const auto model = Model::read(ball_model());
  Config config;
  config.streams = streams;
  config.batch = batch;
  return CompiledModel::compile(model, config);
}

// A picture with a bright square on a dark ground; the network sees something else in each.
Tensor picture(const Shape& shape, unsigned seed) {
  Tensor tensor = test::random_tensor(shape, 0, 20, seed);
  const int64_t h = shape[2], w = shape[3], x0 = 10 + 20 * (seed % 10), y0 = 10 + 13 * (seed % 11);
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t c = 0; c < shape[1]; ++c)
      for (int64_t y = y0; y < y0 + 14; ++y)
        for (int64_t x = x0; x < x0 + 14; ++x)
          tensor.mutable_data<float>()[((n * shape[1] + c) * h + y) * w + x] = 240;
  return tensor;
}

TEST(Requests, LayersOnTheHostUseTheThreadsOfTheConfiguration) {
  const TemporaryFolder folder;
  const auto model = Model::read(test::host_layer_model(folder));
  Config config;
  config.perf_count = true;
  std::vector<float> alone;
  for (const unsigned threads : {1u, 2u, 3u}) {
    config.max_num_threads = threads;
    const auto compiled = CompiledModel::compile(model, config);
    const auto request = compiled->create_request();
    const std::vector<float> got =
        infer(*request, test::random_tensor(compiled->inputs()[0].shape, -1, 1, 7));
    if (threads == 1) alone = got;
    EXPECT_EQ(std::memcmp(got.data(), alone.data(), got.size() * sizeof(float)), 0);
    const std::string wanted =
        threads == 1 ? "host" : "host, " + std::to_string(threads) + " threads";
    std::map<std::string, std::string> kernels;
    for (const StepProfile& row : compiled->profile()) kernels[row.layer] = row.kernel;
    EXPECT_EQ(kernels.at("invert"), wanted);
    EXPECT_EQ(kernels.at("negate").find("host"), std::string::npos) << kernels.at("negate");
  }
}

TEST(Requests, AgreeWithTheReference) {
  const auto compiled = compile(1);
  const auto request = compiled->create_request();
  const Tensor input = picture(compiled->inputs()[0].shape, 3);
  const std::vector<float> got = infer(*request, input);
  const std::vector<float> want =
      evaluate_graph(*read_ir(ball_model()).graph, std::vector<Tensor>{input})[0].to_floats();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-3) << i;
}

// A picture, rounded to integers, and their mean: large and small results, and integers.
std::string three_outputs(const TemporaryFolder& folder) {
  const Shape picture{1, 1, 64, 128}, mean{1, 1, 1, 1};
  test::SmallIr ir("three");
  const int exp = ir.add("Exp", 1, "", {ir.input(picture)}, picture, "exp");
  const int share = ir.add("SoftMax", 1, "axis=\"3\"", {exp}, picture, "share");
  const int pool = ir.add("AvgPool", 1,
                          "strides=\"64,128\" pads_begin=\"0,0\" pads_end=\"0,0\" "
                          "kernel=\"64,128\" exclude-pad=\"true\"",
                          {exp}, mean, "pool");
  const int whole = ir.add("Convert", 1, "destination_type=\"i32\"", {exp}, picture, "whole");
  for (const int output : {share, pool, whole}) ir.result(output);
  return ir.write(folder);
}

TEST(Requests, OutputsInHalvesAreThoseInFloats) {
  const TemporaryFolder folder;
  const auto model = Model::read(three_outputs(folder));
  for (const Precision precision : {Precision::f16, Precision::f32}) {
    Config config;
    config.precision = precision;
    config.persistent = Config::Persistent::no;  // which launches all at once
    const auto whole = CompiledModel::compile(model, config);
    config.half_outputs = true;
    const auto halved = CompiledModel::compile(model, config);
    const auto floats = whole->create_request(), halves = halved->create_request();
    const Tensor input = test::random_tensor({1, 1, 64, 128}, 0, 4, 7);
    for (const auto& request : {floats.get(), halves.get()}) {
      request->set_input(0, input);
      request->start();
      request->wait();
    }
    for (size_t i = 0; i < 3; ++i) {
      const Tensor &a = floats->output(i), &b = halves->output(i);
      ASSERT_EQ(a.shape(), b.shape());
      EXPECT_EQ(a.to_floats(), b.to_floats()) << i;
      EXPECT_EQ(a.type(), i == 2 ? ElementType::i32 : ElementType::f32);
      const bool half = i != 2 && precision == Precision::f16;
      EXPECT_EQ(b.type(), half ? ElementType::f16 : a.type()) << i;
    }
    EXPECT_EQ(halved->kernel_count() < whole->kernel_count(), precision == Precision::f16);
  }
}

// A new version may be copied over the file of a model in use.
TEST(Requests, WeightsAreThoseOfTheFileAsItWasRead) {
  const TemporaryFolder folder;
  const std::string xml = folder.write("ball.xml", read_file(ball_model()));
  const std::string weights = std::filesystem::path(ball_model()).replace_extension(".bin");
  folder.write("ball.bin", read_file(weights));
  const auto model = Model::read(xml);
  EXPECT_EQ(Model::read(xml), model) << "read once for all who use it";
  folder.write("ball.bin", "");
  EXPECT_THROW(Model::read(xml), Error);
  const auto request = CompiledModel::compile(model, {})->create_request();
  const Tensor input = picture(model->inputs()[0].shape, 3);
  EXPECT_EQ(infer(*request, input), infer(*compile(1)->create_request(), input));
}

TEST(Requests, InFlightOnSeveralStreamsDoNotMix) {
  const auto compiled = compile(2);
  const Shape& shape = compiled->inputs()[0].shape;
  std::vector<Tensor> inputs;
  std::vector<std::vector<float>> alone;
  const auto single = compiled->create_request();
  for (unsigned i = 0; i < 8; ++i) {
    inputs.push_back(picture(shape, i));
    alone.push_back(infer(*single, inputs.back()));
  }
  EXPECT_NE(alone[0], alone[1]) << "the pictures are too alike for this test";
  std::vector<std::unique_ptr<InferRequest>> requests;
  for (int i = 0; i < 4; ++i) requests.push_back(compiled->create_request());
  // Two threads with two requests each, always one in flight while the other is waited for.
  const auto work = [&](size_t first) {
    for (size_t round = 0; round < 20; ++round) {
      const size_t a = (round + first) % 8, b = (round * 3 + first + 1) % 8;
      requests[first]->set_input(0, inputs[a]);
      requests[first]->start();
      requests[first + 1]->set_input(0, inputs[b]);
      requests[first + 1]->start();
      requests[first]->wait();
      EXPECT_EQ(requests[first]->output(0).to_floats(), alone[a]);
      requests[first + 1]->wait();
      EXPECT_EQ(requests[first + 1]->output(0).to_floats(), alone[b]);
    }
  };
  std::thread other(work, 2);
  work(0);
  other.join();
}

TEST(Requests, BatchGivesEachImageItsOwnResult) {
  const auto one = compile(1), three = compile(1, 3);
  const Shape shape = three->inputs()[0].shape;
  ASSERT_EQ(shape[0], 3);
  Tensor batch = Tensor::allocate(ElementType::f32, shape);
  const auto single = one->create_request();
  std::vector<std::vector<float>> alone;
  const size_t image = static_cast<size_t>(batch.elements() / 3);
  for (unsigned i = 0; i < 3; ++i) {
    const Tensor input = picture(one->inputs()[0].shape, i);
    std::copy_n(input.data<float>(), image, batch.mutable_data<float>() + i * image);
    alone.push_back(infer(*single, input));
  }
  const auto request = three->create_request();
  const std::vector<float> together = infer(*request, batch);
  // Rows of 7: image, label, score, box; the best of each image is that of the image alone.
  for (size_t i = 0; i < 3; ++i) {
    size_t row = 0;
    while (row * 7 < together.size() && together[row * 7] != static_cast<float>(i)) ++row;
    ASSERT_LT(row * 7, together.size()) << "no detection in image " << i;
    for (size_t k = 1; k < 7; ++k) EXPECT_NEAR(together[row * 7 + k], alone[i][k], 1e-4);
  }
}

// All bits of the outputs of image `image`; of DetectionOutput its rows.
std::vector<float> of_image(const InferRequest& request, size_t image) {
  const Tensor& rows = request.output(0);
  std::vector<float> mine;
  for (int64_t i = 0; i + 7 <= rows.elements() && rows.data<float>()[i] >= 0; i += 7)
    if (rows.data<float>()[i] == static_cast<float>(image))
      mine.insert(mine.end(), rows.data<float>() + i, rows.data<float>() + i + 7);
  return mine;
}

TEST(Requests, PartOfABatchGivesTheSameBitsForLess) {
  Config config;
  config.batch = 8;
  config.partial_batches = true;
  config.streams = 2;
  const auto compiled = CompiledModel::compile(Model::read(ball_model()), config);
  const auto request = compiled->create_request(), other = compiled->create_request();
  const Shape shape = compiled->inputs()[0].shape;
  Tensor batch = Tensor::allocate(ElementType::f32, shape);
  const auto image = static_cast<size_t>(batch.elements() / 8);
  for (unsigned i = 0; i < 8; ++i)
    std::copy_n(picture({1, shape[1], shape[2], shape[3]}, i).data<float>(), image,
                batch.mutable_data<float>() + i * image);
  infer(*request, batch);
  std::vector<std::vector<float>> whole;
  for (size_t i = 0; i < 8; ++i) {
    whole.push_back(of_image(*request, i));
    ASSERT_FALSE(whole.back().empty());
  }
  const int64_t rows = request->output(0).elements();
  other->set_input(0, batch);
  std::map<size_t, double> best{{1, 1e9}, {4, 1e9}, {8, 1e9}};  // seconds by images
  const auto measure = [&] {
    for (auto& [images, seconds] : best) {
      const auto begin = std::chrono::steady_clock::now();
      request->start(images);
      request->wait();
      seconds = std::min(
          seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  };
  for (const size_t images : {1u, 8u, 3u, 2u, 5u, 0u, 4u, 1u}) {
    SCOPED_TRACE(std::to_string(images) + " images");
    other->start(images);
    request->start(images);
    for (InferRequest* each : {other.get(), request.get()}) {
      each->wait();
      for (size_t i = 0; i < (images ? images : 8); ++i) EXPECT_EQ(of_image(*each, i), whole[i]);
    }
  }
  EXPECT_EQ(request->output(0).elements(), rows / 8);
  const auto cheaper = [&] { return best[1] < best[8] / 2 && best[4] < best[8] * 0.8; };
  for (int k = 0; k < 200 && !cheaper(); ++k) measure();  // others use the machine, too
  EXPECT_TRUE(cheaper()) << best[1] << ", " << best[4] << ", " << best[8] << " s for 1, 4, 8";
}

// Two classes: eight images are a vector of SoftMax's kernel, which fewer do not fill.
TEST(Requests, PartOfABatchMayNeedAnotherPoint) {
  test::SmallIr ir("shares");
  ir.result(ir.add("SoftMax", 1, "axis=\"1\"", {ir.input({1, 2})}, {1, 2}, "share"));
  const TemporaryFolder folder;
  Config config;
  config.batch = 8;
  config.partial_batches = true;
  const auto compiled = CompiledModel::compile(Model::read(ir.write(folder)), config);
  const auto request = compiled->create_request();
  const std::vector<float> whole = infer(*request, test::random_tensor({8, 2}, -2, 2, 3));
  for (const size_t images : {1u, 2u, 4u, 8u, 1u}) {
    request->start(images);
    request->wait();
    const std::vector<float> part = request->output(0).to_floats();
    ASSERT_EQ(part.size(), 2 * images);
    for (size_t i = 0; i < part.size(); ++i) EXPECT_NEAR(part[i], whole[i], 1e-6) << images;
  }
}

// Measures this thread only: on a CPU the device's own threads are busy meanwhile. Of another device
// wait() asks again and again when the inference should be over, for some milliseconds at most, since
// drivers call back later than that; with a low throttle it sleeps there, too.
TEST(Requests, WaitingCostsNoTimeOfTheProcessor) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer's own time would count";
#endif
  const auto cpu_seconds = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  constexpr int kInferences = 20;
  constexpr double kAsking = 6e-3;  // seconds, of one inference
  for (const QueueHint throttle : {QueueHint::automatic, QueueHint::low})
    for (const bool timed : {false, true}) {
      Config config;
      config.batch = 8;
      config.throttle = throttle;
      const auto compiled = CompiledModel::compile(Model::read(ball_model()), config);
      const auto request = compiled->create_request();
      infer(*request, picture(compiled->inputs()[0].shape, 1));
      double waited = 0, busy = 0;
      for (int i = 0; i < kInferences; ++i) {
        request->start();
        const auto begin = std::chrono::steady_clock::now();
        const double before = cpu_seconds();
        if (timed)
          EXPECT_TRUE(request->wait(std::chrono::minutes(1)));
        else
          request->wait();
        busy += cpu_seconds() - before;
        waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      }
      const bool asks = throttle == QueueHint::automatic && !compiled->device().is_cpu;
      EXPECT_LT(busy, 0.3 * waited + (asks ? kInferences * kAsking : 0))
          << "of " << waited << " s, with reading out the results";
    }
  const auto compiled = compile(1, 8);
  const auto request = compiled->create_request();
  request->start();
  while (!request->wait(std::chrono::milliseconds(1))) {
  }
  EXPECT_FALSE(request->output(0).to_floats().empty());
}

TEST(Requests, CanBeDroppedWhileInFlight) {
  const auto compiled = compile(1);
  for (int i = 0; i < 20; ++i) compiled->create_request()->start();
}

TEST(Requests, RefuseMisuse) {
  const auto compiled = compile(1);
  const auto request = compiled->create_request();
  EXPECT_THROW(request->output(0), Error);
  EXPECT_THROW(request->set_input(0, test::random_tensor({1, 3, 4, 4})), Error);
  request->start();
  EXPECT_THROW(request->start(), Error);
  EXPECT_THROW(request->set_input(0, picture(compiled->inputs()[0].shape, 1)), Error);
  EXPECT_TRUE(request->wait());
  EXPECT_THROW(compiled->profile(), Error);
}

TEST(Requests, TakeFramesAsWellAsTensors) {
  const auto compiled = compile(1);
  const Shape& shape = compiled->inputs()[0].shape;
  const int width = static_cast<int>(shape[3]), height = static_cast<int>(shape[2]);
  Tensor planes = picture(shape, 5);
  const std::vector<float> values = planes.to_floats();
  std::vector<uint8_t> pixels(static_cast<size_t>(width * height * 3));
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < width * height; ++i) {
      const float value = std::floor(values[static_cast<size_t>(c * width * height + i)]);
      planes.mutable_data<float>()[c * width * height + i] = value;
      pixels[static_cast<size_t>(i * 3 + c)] = static_cast<uint8_t>(value);
    }
  const auto request = compiled->create_request();
  const std::vector<float> by_tensor = infer(*request, planes);
  Frame frame;
  frame.format = PixelFormat::bgr;
  frame.width = width;
  frame.height = height;
  frame.planes[0] = pixels.data();
  frame.strides[0] = width * 3;
  const Placement placement = request->set_frame(0, frame, {});
  EXPECT_FLOAT_EQ(placement.x_scale, 1);
  request->start();
  request->wait();
  const std::vector<float> by_frame = request->output(0).to_floats();
  ASSERT_EQ(by_frame.size(), by_tensor.size());
  for (size_t i = 0; i < by_frame.size(); ++i) EXPECT_NEAR(by_frame[i], by_tensor[i], 1e-4) << i;
}

// On what passes for an integrated GPU (tests/faults/gpu_layer.cpp): nothing is copied, unless the driver
// cannot map the frame.
TEST(Requests, TakeFramesWhereTheyAre) {
  if (std::getenv("CLINFER_INTEGRATED") == nullptr)
    GTEST_SKIP() << "no integrated GPU; integrated runs it on a stand-in";
  const auto compiled = compile(1);
  const auto request = compiled->create_request();
  void* const layer = dlopen(std::getenv("OPENCL_LAYERS"), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(layer, nullptr) << dlerror();
  const auto count = [&](const char* name) {
    return reinterpret_cast<size_t (*)()>(dlsym(layer, name))();
  };
  constexpr int kWidth = 322, kHeight = 242;
  // Planes that share pages, and planes far from each other, none at the start of a page.
  for (const size_t gap : {0, 20000}) {
    constexpr size_t kLuma = size_t{kWidth} * kHeight, kChroma = kLuma / 4;
    const Tensor noise =
        test::random_tensor({static_cast<int64_t>(kLuma + 2 * kChroma + 2 * gap + 99)}, 16, 235, 3)
            .convert(ElementType::u8);
    const uint8_t* const luma = noise.data<uint8_t>() + 99;
    const uint8_t* const chroma = luma + kLuma + gap;
    Frame frame;
    frame.format = PixelFormat::i420;
    frame.width = kWidth;
    frame.height = kHeight;
    frame.planes = {luma, chroma, chroma + kChroma + gap};
    frame.strides = {kWidth, kWidth / 2, kWidth / 2};
    const auto infer_frame = [&] {
      request->set_frame(0, frame, {});
      request->start();
      request->wait();
      return request->output(0).to_floats();
    };
    const size_t shared = count("clinfer_layer_shared"), written = count("clinfer_layer_written");
    const std::vector<float> in_place = infer_frame();
    EXPECT_EQ(count("clinfer_layer_shared") - shared, gap == 0 ? 1u : 3u);
    EXPECT_EQ(count("clinfer_layer_written"), written);
    setenv("CLINFER_REFUSE_HOST_MEMORY", "1", 1);
    EXPECT_EQ(infer_frame(), in_place);
    EXPECT_EQ(count("clinfer_layer_written") - written, kLuma + 2 * kChroma);
    unsetenv("CLINFER_REFUSE_HOST_MEMORY");
    EXPECT_EQ(infer_frame(), in_place);
    EXPECT_EQ(count("clinfer_layer_written") - written, kLuma + 2 * kChroma);
  }
  dlclose(layer);
}

// Frames that follow each other in one block of frame memory give the same results as frames
// elsewhere.
TEST(Requests, TakeFramesInFrameMemory) {
  const auto compiled = compile(1);
  const auto request = compiled->create_request();
  constexpr int kWidth = 320, kHeight = 240, kStride = 328;
  constexpr size_t kLuma = size_t{kStride} * kHeight, kFrame = kLuma * 3 / 2;
  const auto memory = compiled->allocate_frame_memory(2 * kFrame);
  ASSERT_GE(memory->bytes(), 2 * kFrame);
  ASSERT_TRUE(compiled->fetches_from(*memory));
  const Tensor noise =
      test::random_tensor({static_cast<int64_t>(2 * kFrame)}, 16, 235, 7).convert(ElementType::u8);
  std::memcpy(memory->data(), noise.raw(), 2 * kFrame);
  const auto frame_at = [&](const void* data, size_t number) {
    Frame frame;
    frame.width = kWidth;
    frame.height = kHeight;
    const uint8_t* luma = static_cast<const uint8_t*>(data) + number * kFrame;
    frame.planes = {luma, luma + kLuma, nullptr};
    frame.strides = {kStride, kStride, 0};
    return frame;
  };
  const auto result = [&](const Frame& frame, const FrameMemory* in) {
    request->set_frame(0, frame, {}, 0, in);
    request->start();
    request->wait();
    return request->output(0).to_floats();
  };
  for (const Rect& region : {Rect{}, Rect{17, 101, 200, 37}})
    for (size_t number : {0, 1, 0}) {
      Frame here = frame_at(memory->data(), number), elsewhere = frame_at(noise.raw(), number);
      here.region = elsewhere.region = region;
      EXPECT_EQ(result(here, memory.get()), result(elsewhere, nullptr)) << number;
    }

  const auto refusal = [&](const Frame& frame, const FrameMemory& in) -> std::string {
    try {
      request->set_frame(0, frame, {}, 0, &in);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_argument);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal(frame_at(noise.raw(), 0), *memory).find("plane 0"), std::string::npos);
  // The last row ends 8 bytes before its stride.
  const auto small = compiled->allocate_frame_memory(2 * kFrame - 9);
  EXPECT_EQ(refusal(frame_at(small->data(), 0), *small), "");
  EXPECT_NE(refusal(frame_at(small->data(), 1), *small).find("plane 1"), std::string::npos);
  // Models on one device know each other's.
  const auto others = compile(1)->allocate_frame_memory(kFrame);
  EXPECT_EQ(refusal(frame_at(others->data(), 0), *others), "");
  struct Unknown final : FrameMemory {
    std::byte* data() const override { return nullptr; }
    size_t bytes() const override { return 0; }
  } unknown;
  EXPECT_FALSE(compiled->fetches_from(unknown));
  EXPECT_NE(refusal(frame_at(noise.raw(), 0), unknown).find("driver"), std::string::npos);
}

// With NV12_TWO_INPUTS the picture is given as planes Y and UV, of any size.
TEST(Requests, TakeThePlanesOfAPicture) {
  Config config;
  config.set("GPU_NV12_TWO_INPUTS", "YES");
  config.batch = 2;
  const auto compiled = CompiledModel::compile(Model::read(ball_model()), config);
  ASSERT_EQ(compiled->inputs().size(), 2u);
  EXPECT_TRUE(compiled->inputs()[0].name.ends_with("_Y"));
  EXPECT_EQ(compiled->inputs()[0].shape, (Shape{2, 1, 192, 256}));
  EXPECT_EQ(compiled->inputs()[1].shape, (Shape{2, 2, 96, 128}));
  EXPECT_TRUE(compiled->inputs()[0].any_size && compiled->inputs()[1].type == ElementType::u8);
  const auto request = compiled->create_request();
  const auto alone = compile(1);
  const auto by_frame = alone->create_request();

  for (const auto& [width, height] : {std::pair{320, 240}, {642, 50}, {2, 2}, {33, 17}}) {
    const int half_w = (width + 1) / 2, half_h = (height + 1) / 2;
    const Tensor y =
        test::random_tensor({2, 1, height, width}, 16, 235, 1).convert(ElementType::u8);
    const Tensor uv =
        test::random_tensor({2, 2, half_h, half_w}, 16, 240, 2).convert(ElementType::u8);
    request->set_input(1, uv);
    request->set_input(0, y);
    request->start();
    request->wait();
    const std::vector<float> got = request->output(0).to_floats();

    for (int image = 0; image < 2; ++image) {
      std::vector<uint8_t> interleaved(static_cast<size_t>(2 * half_w * half_h));
      for (int c = 0; c < 2; ++c)
        for (int k = 0; k < half_w * half_h; ++k)
          interleaved[static_cast<size_t>(2 * k + c)] =
              uv.data<uint8_t>()[(2 * image + c) * half_w * half_h + k];
      Frame frame;
      frame.width = width;
      frame.height = height;
      frame.planes = {y.data<uint8_t>() + image * width * height, interleaved.data(), nullptr};
      frame.strides = {width, 2 * half_w, 0};
      by_frame->set_frame(0, frame, {});
      by_frame->start();
      by_frame->wait();
      // Rows of 7, the first value is the image's number; rows that hold nothing differ in number.
      const std::vector<float> want = by_frame->output(0).to_floats();
      std::vector<float> of_image, expected;
      for (size_t row = 0; row + 7 <= got.size(); row += 7)
        if (got[row] == static_cast<float>(image) && got[row + 2] > 0)
          of_image.insert(of_image.end(), got.begin() + static_cast<long>(row) + 1,
                          got.begin() + static_cast<long>(row) + 7);
      for (size_t row = 0; row + 7 <= want.size(); row += 7)
        if (want[row] == 0 && want[row + 2] > 0)
          expected.insert(expected.end(), want.begin() + static_cast<long>(row) + 1,
                          want.begin() + static_cast<long>(row) + 7);
      ASSERT_EQ(of_image.size(), expected.size()) << width << "x" << height;
      for (size_t k = 0; k < expected.size(); ++k)
        EXPECT_NEAR(of_image[k], expected[k], 1e-4) << width << "x" << height << ", " << k;
    }
  }
}

TEST(Requests, RefusePlanesThatAreNoPicture) {
  Config config;
  config.nv12_two_inputs = true;
  const auto compiled = CompiledModel::compile(Model::read(ball_model()), config);
  const auto request = compiled->create_request();
  const auto plane = [](Shape shape) {
    return Tensor::allocate(ElementType::u8, std::move(shape));
  };
  EXPECT_THROW(request->set_input(0, plane({1, 3, 48, 64})), Error);
  EXPECT_THROW(request->set_input(1, plane({1, 48, 64})), Error);
  EXPECT_THROW(request->set_input(0, plane({1, 1, 0, 64})), Error);
  EXPECT_THROW(request->set_input(2, plane({1, 1, 48, 64})), Error);
  request->set_input(0, plane({1, 1, 48, 64}));
  EXPECT_THROW(request->start(), Error);  // no UV
  request->set_input(1, plane({1, 2, 24, 31}));
  EXPECT_THROW(request->start(), Error);
  request->set_input(1, plane({1, 2, 24, 32}));
  request->start();
  EXPECT_TRUE(request->wait());
}

// With integers where the device has dot products of bytes.
TEST(Requests, QuantisedWeightsMayHaveAZeroPoint) {
  const std::string path = test_data("models/quantized.xml");
  Config config;
  config.perf_count = true;
  const auto compiled = CompiledModel::compile(Model::read(path), config);
  const Tensor input = test::random_tensor(compiled->inputs()[0].shape, -1, 1, 3);
  const std::vector<float> got = infer(*compiled->create_request(), input);
  const IrModel plain = read_ir(path);
  const std::vector<float> want =
      evaluate_graph(*plain.graph, std::vector<Tensor>{input})[0].to_floats();
  ASSERT_EQ(got.size(), want.size());
  const double tolerance = compiled->precision() == Precision::f16 ? 0.02 : 1e-4;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
  const auto profile = compiled->profile();
  EXPECT_EQ(std::any_of(profile.begin(), profile.end(),
                        [](const StepProfile& step) {
                          return step.kernel.starts_with("conv_int8") ||
                                 step.kernel.starts_with("conv_amx") ||
                                 step.kernel.starts_with("conv_mma");
                        }),
            test::device_traits().dot != DotProduct::none);
}

}  // namespace
}  // namespace clinfer
