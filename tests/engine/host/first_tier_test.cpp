// The first tier of a model that is being compiled: when there is one, what it computes, and how it
// ends.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "engine/engine.h"
#include "tests/engine/ball_model.h"
#include "tests/engine/test_files.h"
#include "tests/engine/watched_compilation.h"
#include "tests/kernels/op_test.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

using test::ball_model;

Tensor picture(const CompiledModel& compiled) {
  return test::random_tensor(compiled.inputs()[0].shape, 0, 255, 5);
}

std::vector<float> infer(CompiledModel& compiled, const Tensor& input) {
  const auto request = compiled.create_request();
  request->set_input(0, input);
  request->start();
  EXPECT_TRUE(request->wait());
  return request->output(0).to_floats();
}

void expect_close(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 2e-3) << i;
}

// A thousandfold wider convolution than an inference on the host may have.
std::string large_model(const TemporaryFolder& folder) {
  const Shape picture{1, 1, 6000, 6000}, window{1, 1, 129, 129};
  test::SmallIr ir("large");
  const int weights = ir.constant(window, std::vector<float>(129 * 129));
  ir.result(ir.add("Convolution", 1,
                   "strides=\"1,1\" dilations=\"1,1\" pads_begin=\"64,64\" pads_end=\"64,64\"",
                   {ir.input(picture), weights}, picture, "conv"));
  return ir.write(folder);
}

// ---- when there is one --------------------------------------------------------------------------

TEST(FirstTier, ComputesUntilTheKernelsAreCompiled) {
  const TemporaryFolder cache;
  const auto model = Model::read(ball_model());
  Config config;
  config.cache_dir = cache / "cache";
  std::vector<float> first_result;
  std::shared_ptr<CompiledModel> first;
  size_t calls = 0;
  const auto take = [&](const std::shared_ptr<CompiledModel>& compiled) {
    ++calls;
    first = compiled;
    first_result = infer(*first, picture(*first));
  };
  const auto compiled = test::compile_watched(model, config, take);
  ASSERT_EQ(calls, 1u);
  EXPECT_EQ(compiled->tier(), Tier::full);
  EXPECT_EQ(first->tier(), Tier::first);
  ASSERT_EQ(first->inputs()[0].shape, compiled->inputs()[0].shape);
  expect_close(infer(*compiled, picture(*compiled)), first_result);
  // It stays usable beside the other one.
  expect_close(infer(*first, picture(*first)), first_result);
  // The second time nothing is compiled.
  test::compile_watched(model, config, take);
  EXPECT_EQ(calls, 1u);
}

TEST(FirstTier, IsNotMadeWhereItIsNotWanted) {
  const TemporaryFolder cache;
  const auto model = Model::read(ball_model());
  size_t calls = 0;
  const auto take = [&](const std::shared_ptr<CompiledModel>&) { ++calls; };
  Config config;
  config.cache_dir = cache / "a";
  config.set("FIRST_TIER", "NO");
  test::compile_watched(model, config, take);
  config.set("FIRST_TIER", "YES");
  config.cache_dir = cache / "b";
  config.perf_count = true;  // layers are timed
  test::compile_watched(model, config, take);
  EXPECT_EQ(calls, 0u);
}

TEST(FirstTier, IsRefusedWhereItWouldTakeTooLong) {
  const TemporaryFolder folder;
  const auto model = Model::read(large_model(folder));
  try {
    CompiledModel::compile_first_tier(model, {});
    FAIL() << "6 * 10^11 multiply-adds on the host";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("layer \"conv\""), std::string::npos) << error.what();
  }
}

// The time that a device has to answer is not the host's: no host infers 64 pictures in a
// millisecond.
TEST(FirstTier, HasNoDeadline) {
  Config config;
  config.batch = 64;
  config.device_timeout = std::chrono::milliseconds(1);
  const auto first = CompiledModel::compile_first_tier(Model::read(ball_model()), config);
  EXPECT_FALSE(infer(*first, picture(*first)).empty());
}

// Three rows are added up one after the other.
std::string loop_model(const TemporaryFolder& folder) {
  const auto port = [](int id, int rows) {
    return "<port id='" + std::to_string(id) + "' precision='FP32'><dim>" + std::to_string(rows) +
           "</dim><dim>2</dim></port>";
  };
  const auto parameter = [&](int id, int rows) {
    return "<layer id='" + std::to_string(id) + "' name='p" + std::to_string(id) +
           std::to_string(rows) +
           "' type='Parameter' version='opset1'><data element_type='f32' shape='" +
           std::to_string(rows) + ",2'/><output>" + port(0, rows) + "</output></layer>";
  };
  const std::string result = "<layer id='3' name='r' type='Result' version='opset1'><input>" +
                             port(0, 1) + "</input></layer>";
  const std::string edges =
      "<edges><edge from-layer='0' from-port='0' to-layer='2' to-port='0'/>"
      "<edge from-layer='1' from-port='0' to-layer='2' to-port='1'/>"
      "<edge from-layer='2' from-port='2' to-layer='3' to-port='0'/></edges>";
  folder.write("loop.bin", "");
  return folder.write(
      "loop.xml", "<net name='loop' version='11'><layers>" + parameter(0, 3) + parameter(1, 1) +
                      "<layer id='2' name='sum' type='TensorIterator' version='opset1'><port_map>"
                      "<input external_port_id='0' internal_layer_id='0' axis='0' start='0' "
                      "end='-1' stride='1' "
                      "part_size='1'/><input external_port_id='1' internal_layer_id='1'/>"
                      "<output external_port_id='2' internal_layer_id='3'/></port_map>"
                      "<back_edges><edge from-layer='3' to-layer='1'/></back_edges><input>" +
                      port(0, 3) + port(1, 1) + "</input><output>" + port(2, 1) +
                      "</output><body><layers>" + parameter(0, 1) + parameter(1, 1) +
                      "<layer id='2' name='add' type='Add' version='opset1'><input>" + port(0, 1) +
                      port(1, 1) + "</input><output>" + port(2, 1) + "</output></layer>" + result +
                      "</layers>" + edges + "</body></layer>" + result + "</layers>" + edges +
                      "</net>");
}

// It could take any time, and nothing but a stop would end it.
TEST(FirstTier, IsRefusedWhereALoopStays) {
  const TemporaryFolder folder;
  const auto model = Model::read(loop_model(folder));
  Config config;
  EXPECT_EQ(CompiledModel::compile_first_tier(model, config)->tier(), Tier::first);
  config.unroll_loops = false;
  try {
    CompiledModel::compile_first_tier(model, config);
    FAIL() << "a loop";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("layer \"sum\""), std::string::npos) << error.what();
  }
}

TEST(FirstTier, StaysUsableAfterTheCompilationWasCancelled) {
  const TemporaryFolder cache;
  Config config;
  config.cache_dir = cache / "cache";
  const auto task = CompiledModel::begin(Model::read(ball_model()), config);
  task->wait_for_change(nullptr);
  const auto first = task->newest();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->tier(), Tier::first);
  EXPECT_EQ(task->progress().what, "building kernels");
  EXPECT_GT(task->progress().of, 0u);
  const auto begin = std::chrono::steady_clock::now();
  task->cancel();
  try {
    task->wait();
    FAIL() << "it was compiled before it could be cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_TRUE(task->is_over());
  EXPECT_THROW(task->newest(), Error);
  EXPECT_FALSE(infer(*first, picture(*first)).empty());
}

TEST(CompileTask, GivesTheFailure) {
  Config config;
  config.device = "GPU.99";
  const auto task = CompiledModel::begin(Model::read(ball_model()), config);
  try {
    task->wait();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_device) << error.what();
  }
  EXPECT_THROW(task->newest(), Error);
}

TEST(CompileTask, ItsEndCancelsWhatIsUnderWay) {
  const TemporaryFolder cache;
  Config config;
  config.cache_dir = cache / "cache";
  const auto model = Model::read(ball_model());
  for (const int milliseconds : {0, 1, 20, 100}) {
    auto task = CompiledModel::begin(model, config);
    task->wait_for_change(nullptr, std::chrono::milliseconds(milliseconds));
    const auto begin = std::chrono::steady_clock::now();
    task.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << milliseconds;
  }
}

// ---- frames -------------------------------------------------------------------------------------

struct Case {
  const char* name;
  PixelFormat format;
  ResizeMode resize;
  ColorOrder color;
  Rect region;
};

class FirstTierFrames : public testing::TestWithParam<Case> {};

TEST_P(FirstTierFrames, AreThoseOfTheDevice) {
  const Case& c = GetParam();
  const auto model = Model::read(ball_model());
  Config config;
  config.batch = 2;
  const auto first = CompiledModel::compile_first_tier(model, config);
  const auto full = CompiledModel::compile(model, config);
  Frame frame;
  frame.format = c.format;
  frame.width = 331;
  frame.height = 245;
  frame.region = c.region;
  const auto sizes = plane_sizes(frame);
  std::vector<std::vector<uint8_t>> planes;
  for (size_t p = 0; p < 3; ++p) {
    frame.strides[p] = sizes[p].row_bytes + 5;
    planes.emplace_back(static_cast<size_t>(frame.strides[p]) * static_cast<size_t>(sizes[p].rows));
    for (size_t i = 0; i < planes[p].size(); ++i)
      planes[p][i] = static_cast<uint8_t>((i * 7 + p * 50 + i / 300) % 253);
    if (sizes[p].rows) frame.planes[p] = planes[p].data();
  }
  FrameTransform transform;
  transform.resize = c.resize;
  transform.color = c.color;
  transform.mean = {10, 20, 30};
  transform.scale = {2};
  transform.pad_value = {114};
  std::vector<std::vector<float>> results;
  for (const auto& compiled : {first, full}) {
    const auto request = compiled->create_request();
    // One image by a frame, the other one as it was set before.
    request->set_input(0, picture(*compiled));
    const Placement placement = request->set_frame(0, frame, transform, 1);
    EXPECT_GT(placement.x_scale, 0);
    request->start();
    request->wait();
    results.push_back(request->output(0).to_floats());
    // A second inference on the same frame gives the same result.
    request->set_frame(0, frame, transform, 1);
    request->start();
    request->wait();
    expect_close(request->output(0).to_floats(), results.back());
  }
  expect_close(results[0], results[1]);
}

INSTANTIATE_TEST_SUITE_P(
    , FirstTierFrames,
    testing::Values(
        Case{"nv12", PixelFormat::nv12, ResizeMode::stretch, ColorOrder::bgr, {}},
        Case{"i420_letterbox", PixelFormat::i420, ResizeMode::letterbox, ColorOrder::rgb, {}},
        Case{"rgb_region",
             PixelFormat::rgb,
             ResizeMode::stretch,
             ColorOrder::bgr,
             {40, 31, 120, 99}},
        Case{"bgrx_crop", PixelFormat::bgrx, ResizeMode::crop, ColorOrder::rgb, {}}),
    [](const auto& info) { return info.param.name; });

TEST(FirstTier, TakesTheTwoPlanesOfAPicture) {
  const auto model = Model::read(ball_model());
  Config config;
  config.nv12_two_inputs = true;
  std::vector<std::vector<float>> results;
  for (const auto& compiled :
       {CompiledModel::compile_first_tier(model, config), CompiledModel::compile(model, config)}) {
    ASSERT_EQ(compiled->inputs().size(), 2u);
    const auto request = compiled->create_request();
    request->set_input(0,
                       test::random_tensor({1, 1, 90, 120}, 16, 235, 1).convert(ElementType::u8));
    request->set_input(1, test::random_tensor({1, 2, 45, 60}, 16, 235, 2).convert(ElementType::u8));
    request->start();
    request->wait();
    results.push_back(request->output(0).to_floats());
  }
  expect_close(results[0], results[1]);
}

TEST(FirstTier, RefusesWhatADeviceRefuses) {
  const auto first = CompiledModel::compile_first_tier(Model::read(ball_model()), {});
  const auto request = first->create_request();
  EXPECT_THROW(request->set_input(1, picture(*first)), Error);
  EXPECT_THROW(request->set_input(0, test::random_tensor({1, 3, 2, 2}, 0, 1, 1)), Error);
  EXPECT_THROW(request->output(0), Error);
  const uint8_t pixels[12] = {};
  Frame frame;
  frame.format = PixelFormat::bgr;
  frame.width = frame.height = 2;
  frame.planes[0] = pixels;
  frame.strides[0] = 6;
  FrameTransform flat;
  flat.scale = {0};
  EXPECT_THROW(request->set_frame(0, frame, flat), Error);
  EXPECT_THROW(request->set_frame(0, frame, {}, 1), Error);
  frame.region = {5, 5, 2, 2};
  EXPECT_THROW(request->set_frame(0, frame, {}), Error);
  EXPECT_THROW(first->import_memory(MemoryHandle::dmabuf, 0, 1), Error);
  request->start();
  EXPECT_THROW(request->start(), Error);
  EXPECT_TRUE(request->wait());
  EXPECT_FALSE(request->output(0).empty());
}

// ---- the end ------------------------------------------------------------------------------------

TEST(FirstTier, CanBeCancelledWhileInFlight) {
  const auto first = CompiledModel::compile_first_tier(Model::read(ball_model()), {});
  const auto one = first->create_request(), other = first->create_request();
  one->start();
  other->start();
  other->cancel();  // it waits for its turn, or has just begun
  try {
    other->wait();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  EXPECT_TRUE(one->wait());
  other->start();
  EXPECT_TRUE(other->wait());
  EXPECT_FALSE(other->output(0).empty());
}

TEST(FirstTier, CanBeDroppedWhileInFlight) {
  const auto first = CompiledModel::compile_first_tier(Model::read(ball_model()), {});
  for (int i = 0; i < 5; ++i) {
    const auto one = first->create_request(), other = first->create_request();
    one->start();
    other->start();
    other->wait(std::chrono::milliseconds(0));  // may be over where this thread stood still
  }
}

}  // namespace
}  // namespace clinfer
