// Inferences as graphs of CUDA, by a stand-in for its driver: results are the queue's bit by bit, whatever
// splits a plan, comes between two graphs or fails.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "engine/cuda/memory.h"
#include "engine/cuda/stream.h"
#include "engine/engine.h"
#include "engine/opencl.h"
#include "engine/runtime/requests/infer_request.h"
#include "engine/runtime/requests/left_work.h"
#include "kernels/base/no_answer.h"
#include "tests/engine/ball_model.h"
#include "tests/engine/cuda/stand_in.h"
#include "tests/engine/cuda/stand_in_device.h"
#include "tests/engine/loop_model.h"
#include "tests/engine/relu_model.h"
#include "tests/engine/test_files.h"
#include "tests/host_layer_model.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Launch = Config::Launch;

// A test leaves the stand-in as it found it.
class GraphLaunch : public testing::Test {
 protected:
  ~GraphLaunch() override {
    stand_in_fail(nullptr, 0);
    stand_in_corrupt(false);
    stand_in_hold(false);
    EXPECT_STREQ(stand_in_mistake(), "");
  }

  Config config(Launch launch) const {
    Config config;
    config.launch = launch;
    config.cache_dir = folder_ / "cache";
    config.streams = 1;
    return config;
  }
  std::shared_ptr<CompiledModel> compile(const std::string& model, Launch launch) const {
    return CompiledModel::compile(Model::read(model), config(launch));
  }

  const TemporaryFolder folder_;
};

Tensor picture(const CompiledModel& model, int seed) {
  return test::random_tensor(model.inputs()[0].shape, 0, 255, seed);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// All results of an inference that was started.
std::vector<Tensor> results_of(const CompiledModel& model, InferRequest& request) {
  request.wait();
  std::vector<Tensor> results;
  for (size_t i = 0; i < model.outputs().size(); ++i) results.push_back(request.output(i));
  return results;
}

void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << i;
}

// The first test: a process opens the driver once, and tries again where that failed.
TEST_F(GraphLaunch, ADriverThatDoesNotStartLeavesTheQueue) {
  const std::string model = test::relu_model(folder_, {1, 3, 16, 16}).string();
  for (const std::string function : {"cuInit", "cuDeviceGetCount", "cuDeviceGet",
                                     "cuDeviceGetUuid_v2", "cuDevicePrimaryCtxRetain"}) {
    stand_in_fail(function.c_str(), 0);
    const auto compiled = compile(model, Launch::graph);
    stand_in_fail(nullptr, 0);
    EXPECT_EQ(compiled->launch(), "queue (" + function + " gave CUDA_ERROR_UNKNOWN)");
    EXPECT_EQ(compiled->warnings().size(), 1u);
  }
  EXPECT_EQ(compile(model, Launch::automatic)->launch(), "graph");
}

TEST_F(GraphLaunch, ResultsAreThoseOfTheQueue) {
  const auto queue = compile(test::ball_model(), Launch::queue);
  const auto graph = compile(test::ball_model(), Launch::graph);
  EXPECT_EQ(queue->launch(), "queue");
  EXPECT_EQ(graph->launch(), "graph");
  EXPECT_TRUE(graph->warnings().empty());
  const auto reference = queue->create_request();
  const auto one = graph->create_request(), other = graph->create_request();
  stand_in_reset();
  for (int round = 0; round < 5; ++round) {  // two in flight on one stream
    std::vector<std::vector<Tensor>> expected;
    for (const int seed : {2 * round, 2 * round + 1}) {
      reference->set_input(0, picture(*queue, seed));
      reference->start();
      expected.push_back(results_of(*queue, *reference));
    }
    one->set_input(0, picture(*graph, 2 * round));
    one->start();
    other->set_input(0, picture(*graph, 2 * round + 1));
    other->start();
    expect_same(results_of(*graph, *one), expected[0]);
    expect_same(results_of(*graph, *other), expected[1]);
  }
  EXPECT_EQ(stand_in_calls("cuGraphLaunch"), 10);
}

// Code that was compiled for CUDA is kept, as programs are.
TEST_F(GraphLaunch, KernelsAreCompiledOnce) {
  for (const long compiled : {1, 0}) {
    stand_in_reset();
    const auto model = compile(test::relu_model(folder_, {1, 3, 16, 16}).string(), Launch::graph);
    EXPECT_EQ(model->launch(), "graph");
    EXPECT_EQ(stand_in_calls("cuLinkComplete"), compiled);
    EXPECT_EQ(stand_in_calls("cuModuleLoadData"), 1);
  }
}

// Kernels are measured by themselves, and the tuned network as a graph beside the untuned one.
TEST_F(GraphLaunch, TuningComparesNetworksAsTheyRun) {
  const std::string path = test::relu_model(folder_, {1, 3, 16, 16}).string();
  const auto queue = compile(path, Launch::queue);
  Config measuring = config(Launch::graph);
  measuring.tuning_mode = TuningMode::create;
  measuring.tuning_file = folder_ / "tuning.json";
  stand_in_reset();
  const auto graph = CompiledModel::compile(Model::read(path), measuring);
  EXPECT_EQ(graph->launch(), "graph");
  EXPECT_TRUE(graph->warnings().empty());
  EXPECT_GT(graph->tuning().measured, 0u);
  const auto one = graph->create_request(), reference = queue->create_request();
  EXPECT_EQ(test::infer(*one, picture(*graph, 1)), test::infer(*reference, picture(*queue, 1)));
}

TEST_F(GraphLaunch, IsTheDefault) {
  EXPECT_EQ(Config().launch, Launch::automatic);
  const auto compiled = compile(test::ball_model(), Launch::automatic);
  EXPECT_EQ(compiled->launch(), "graph");
  EXPECT_TRUE(compiled->warnings().empty());
}

// By default nothing is said where a model has no graphs, and one warning where they ought to work.
TEST_F(GraphLaunch, TheDefaultWarnsOnlyOfWhatFails) {
  Config with_loop = config(Launch::automatic);
  with_loop.unroll_loops = false;
  folder_.write("loop.bin", "");
  const auto loop =
      CompiledModel::compile(Model::read(folder_.write("loop.xml", test::loop_model())), with_loop);
  EXPECT_NE(loop->launch().find("is a loop on the device"), std::string::npos) << loop->launch();
  EXPECT_TRUE(loop->warnings().empty());
  stand_in_fail("cuModuleLoadData", 0);
  const auto not_loaded = compile(test::ball_model(), Launch::automatic);
  stand_in_fail("cuGraphLaunch", 0);
  const auto not_launched = compile(test::ball_model(), Launch::automatic);
  stand_in_fail(nullptr, 0);
  EXPECT_EQ(not_loaded->launch().find("queue (CUDA does not load kernel"), 0u)
      << not_loaded->launch();
  EXPECT_TRUE(not_loaded->warnings().empty());
  EXPECT_EQ(not_launched->launch(), "queue (cuGraphLaunch gave CUDA_ERROR_UNKNOWN)");
  EXPECT_EQ(not_launched->warnings(),
            std::vector<std::string>{"kernels are launched one by one, by OpenCL: cuGraphLaunch "
                                     "gave CUDA_ERROR_UNKNOWN"});
}

// Layers in a chain are launched before the one in front is over, and wait for it by themselves: the stand-in
// notes those that do not.
TEST_F(GraphLaunch, LayersInAChainAreLaunchedEarly) {
  const auto graph = compile(test::ball_model(), Launch::graph);
  stand_in_reset();
  const auto request = graph->create_request();
  EXPECT_GE(stand_in_calls("cuGraphAddDependencies_v2"), 3);
  EXPECT_LT(stand_in_calls("cuGraphAddDependencies_v2"), stand_in_calls("cuGraphAddKernelNode_v2"));
  stand_in_fail("cuGraphAddDependencies_v2", 0);
  const auto queue = compile(test::ball_model(), Launch::graph);
  stand_in_fail(nullptr, 0);
  EXPECT_EQ(queue->launch(), "queue (cuGraphAddDependencies_v2 gave CUDA_ERROR_UNKNOWN)");
}

TEST_F(GraphLaunch, PartsOfABatchHaveGraphsOfTheirOwn) {
  Config by_graph = config(Launch::graph), by_queue = config(Launch::queue);
  by_graph.batch = by_queue.batch = 4;
  by_graph.partial_batches = by_queue.partial_batches = true;
  const auto model = Model::read(test::ball_model());
  const auto graph = CompiledModel::compile(model, by_graph),
             queue = CompiledModel::compile(model, by_queue);
  ASSERT_EQ(graph->launch(), "graph");
  const auto one = graph->create_request(), reference = queue->create_request();
  for (const size_t images : {4, 1, 2, 3, 4}) {
    for (InferRequest* request : {one.get(), reference.get()}) {
      request->set_input(0, picture(*graph, static_cast<int>(images)));
      request->start(images);
    }
    expect_same(results_of(*graph, *one), results_of(*queue, *reference));
  }
}

TEST_F(GraphLaunch, LayersOnTheHostSplitIt) {
  const std::string model = test::host_layer_model(folder_);
  const auto queue = compile(model, Launch::queue), graph = compile(model, Launch::graph);
  ASSERT_EQ(graph->launch(), "graph");
  const auto one = graph->create_request(), reference = queue->create_request();
  for (int round = 0; round < 3; ++round) {
    for (InferRequest* request : {one.get(), reference.get()}) {
      for (size_t i = 0; i < graph->inputs().size(); ++i)
        request->set_input(i, test::random_tensor(graph->inputs()[i].shape, 0, 1, round)
                                  .convert(graph->inputs()[i].type));
      request->start();
    }
    expect_same(results_of(*graph, *one), results_of(*queue, *reference));
  }
}

Frame frame_of(const Tensor& pixels) {
  Frame frame;
  frame.format = PixelFormat::bgr;
  frame.height = static_cast<int>(pixels.shape()[0]);
  frame.width = static_cast<int>(pixels.shape()[1]);
  frame.planes[0] = static_cast<const uint8_t*>(pixels.raw());
  frame.strides[0] = frame.width * 3;
  return frame;
}

// One image, and a batch, whose frames are copied on a stream of their own.
TEST_F(GraphLaunch, FramesAreConvertedBeforeIt) {
  for (const unsigned batch : {1u, 2u}) {
    Config by_graph = config(Launch::graph), by_queue = config(Launch::queue);
    by_graph.batch = by_queue.batch = batch;
    const auto model = Model::read(test::ball_model());
    const auto graph = CompiledModel::compile(model, by_graph),
               queue = CompiledModel::compile(model, by_queue);
    const auto one = graph->create_request(), other = graph->create_request(),
               reference = queue->create_request();
    for (int round = 0; round < 4; ++round) {
      const Tensor pixels =
          test::random_tensor({130 + 10 * round, 200, 3}, 0, 255, round).convert(ElementType::u8);
      stand_in_reset();
      for (InferRequest* request : {one.get(), other.get(), reference.get()}) {
        for (size_t n = 0; n < batch; ++n) request->set_frame(0, frame_of(pixels), {}, n);
        request->start();
      }
      EXPECT_EQ(stand_in_calls("cuLaunchKernel"), 2 * batch);
      EXPECT_EQ(stand_in_calls("cuGraphLaunch"), 2);
      const std::vector<Tensor> expected = results_of(*queue, *reference);
      expect_same(results_of(*graph, *one), expected);
      expect_same(results_of(*graph, *other), expected);
    }
  }
}

// Where CUDA does not load a frame's kernel, OpenCL launches that inference, and a message says so once.
TEST_F(GraphLaunch, FramesWhoseKernelIsNotLoadedGoToTheQueue) {
  const auto graph = compile(test::ball_model(), Launch::graph),
             queue = compile(test::ball_model(), Launch::queue);
  const auto one = graph->create_request(), reference = queue->create_request();
  for (int round = 0; round < 2; ++round) {
    const Tensor pixels =
        test::random_tensor({130 + 10 * round, 200, 3}, 0, 255, round).convert(ElementType::u8);
    stand_in_reset();
    stand_in_fail("cuModuleLoadData", 0);
    one->set_frame(0, frame_of(pixels), {});
    stand_in_fail(nullptr, 0);
    reference->set_frame(0, frame_of(pixels), {});
    for (InferRequest* request : {one.get(), reference.get()}) request->start();
    expect_same(results_of(*graph, *one), results_of(*queue, *reference));
    EXPECT_EQ(stand_in_calls("cuGraphLaunch"), 0);
    const std::vector<std::string> problems = graph->take_problems();
    ASSERT_EQ(problems.size(), round == 0 ? 1u : 0u);
    if (round == 0) {
      EXPECT_NE(problems[0].find("CUDA does not load kernel"), std::string::npos) << problems[0];
    }
  }
  for (InferRequest* request : {one.get(), reference.get()}) {
    request->set_input(0, picture(*graph, 1));
    request->start();
  }
  expect_same(results_of(*graph, *one), results_of(*queue, *reference));
  EXPECT_EQ(stand_in_calls("cuGraphLaunch"), 1);
}

TEST_F(GraphLaunch, InputsAreUploadedOnceOrAgain) {
  const auto graph = compile(test::ball_model(), Launch::graph);
  const auto request = graph->create_request();
  const std::vector<float> expected = test::infer(*request, picture(*graph, 1));
  stand_in_reset();
  for (const long uploads : {0, 1, 2}) {
    auto& own = dynamic_cast<DeviceRequest&>(*request);
    if (uploads != 0) own.upload_again();
    request->start();
    EXPECT_THROW(own.upload_again(), Error);
    request->wait();
    EXPECT_EQ(stand_in_calls("cuMemcpyHtoDAsync_v2"), uploads);
    EXPECT_EQ(request->output(0).to_floats(), expected);
  }
}

TEST_F(GraphLaunch, FramesInFrameMemoryAreReadThere) {
  const auto graph = compile(test::ball_model(), Launch::graph),
             queue = compile(test::ball_model(), Launch::queue);
  const Tensor pixels = test::random_tensor({130, 200, 3}, 0, 255, 1).convert(ElementType::u8);
  std::vector<std::vector<Tensor>> results;
  for (const auto& model : {graph, queue}) {
    const auto memory = model->allocate_frame_memory(pixels.bytes());
    std::memcpy(memory->data(), pixels.raw(), pixels.bytes());
    Frame frame = frame_of(pixels);
    frame.planes[0] = reinterpret_cast<const uint8_t*>(memory->data());
    const auto request = model->create_request();
    request->set_frame(0, frame, {}, 0, memory.get());
    request->start();
    results.push_back(results_of(*model, *request));
  }
  expect_same(results[0], results[1]);
}

// Memory of the application goes to OpenCL's queue, for that inference alone; the next one is a graph again.
TEST_F(GraphLaunch, BuffersOfTheApplicationAreReadInTurn) {
  const auto graph = compile(test::ball_model(), Launch::graph),
             queue = compile(test::ball_model(), Launch::queue);
  const auto one = graph->create_request(), other = graph->create_request(),
             reference = queue->create_request();
  const auto* const context = opencl::context_of(*graph);
  for (int round = 0; round < 6; ++round) {
    const Tensor pixels = picture(*graph, round);
    reference->set_input(0, pixels);
    reference->start();
    const std::vector<Tensor> expected = results_of(*queue, *reference);
    cl_int status = CL_SUCCESS;
    const cl_mem buffer = clCreateBuffer(
        const_cast<cl_context>(context), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, pixels.bytes(),
        const_cast<void*>(static_cast<const void*>(pixels.raw())), &status);
    ASSERT_EQ(status, CL_SUCCESS);
    opencl::set_input(*one, 0, buffer);
    other->set_input(0, pixels);
    stand_in_reset();
    other->start();  // in flight as a graph on the same stream
    one->start();
    expect_same(results_of(*graph, *one), expected);
    expect_same(results_of(*graph, *other), expected);
    EXPECT_EQ(stand_in_calls("cuGraphLaunch"), 1);
    one->set_input(0, pixels);
    one->start();
    expect_same(results_of(*graph, *one), expected);
    EXPECT_EQ(stand_in_calls("cuGraphLaunch"), 2);
    clReleaseMemObject(buffer);
  }
}

// A picture in memory that another user of CUDA exported, as a decoder does.
class ExportedPicture {
 public:
  explicit ExportedPicture(const Tensor& pixels)
      : device_(test::stand_in_device()), memory_(device_, pixels.bytes()) {
    const cuda::Stream stream(device_);
    stream.write(memory_.address(), pixels.raw(), pixels.bytes());
    stream.finish();
  }
  std::shared_ptr<ImportedMemory> import(CompiledModel& model, size_t bytes) const {
    const int descriptor = memory_.export_descriptor();
    auto imported = model.import_memory(MemoryHandle::opaque, descriptor, bytes);
    close(descriptor);
    return imported;
  }

 private:
  const std::shared_ptr<const cuda::Device> device_;
  const cuda::Memory memory_;
};

TEST_F(GraphLaunch, DecodersMemoryIsReadByIt) {
  const auto graph = compile(test::ball_model(), Launch::graph),
             queue = compile(test::ball_model(), Launch::queue);
  const auto one = graph->create_request(), other = graph->create_request(),
             reference = queue->create_request();
  for (int round = 0; round < 4; ++round) {
    const Tensor pixels =
        test::random_tensor({130, 200, 3}, 0, 255, round).convert(ElementType::u8);
    const ExportedPicture exported(pixels);
    const auto imported = exported.import(*graph, pixels.bytes());
    Frame frame = frame_of(pixels);
    reference->set_frame(0, frame, {});
    reference->start();
    const std::vector<Tensor> expected = results_of(*queue, *reference);
    frame.planes = {};
    stand_in_reset();
    for (InferRequest* request : {one.get(), other.get()}) {
      request->set_memory(0, {{imported}, {}}, frame, {});
      request->start();
    }
    EXPECT_EQ(stand_in_calls("cuLaunchKernel"), 2);
    EXPECT_EQ(stand_in_calls("cuGraphLaunch"), 2);
    imported->wait();
    expect_same(results_of(*graph, *one), expected);
    expect_same(results_of(*graph, *other), expected);
    one->start();  // the picture stays set
    expect_same(results_of(*graph, *one), expected);
    EXPECT_EQ(stand_in_calls("cuGraphLaunch"), 3);
  }
}

// Waiting for the memory is waiting for all that reads it; a model may go before.
TEST_F(GraphLaunch, DecodersMemoryIsWaitedFor) {
  auto graph = compile(test::ball_model(), Launch::graph);
  auto request = graph->create_request();
  const Tensor pixels = test::random_tensor({130, 200, 3}, 0, 255, 1).convert(ElementType::u8);
  const ExportedPicture exported(pixels);
  auto imported = exported.import(*graph, pixels.bytes());
  Frame frame = frame_of(pixels);
  frame.planes = {};
  request->set_memory(0, {{imported}, {}}, frame, {});
  request->start();
  request->wait();
  const std::vector<float> expected = request->output(0).to_floats();
  stand_in_hold(true);
  request->set_memory(0, {{imported}, {}}, frame, {});
  request->start();
  std::atomic<bool> waited{false};
  std::jthread waits([&] {
    imported->wait();
    waited = true;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(waited);
  stand_in_hold(false);
  waits.join();
  imported.reset();  // before the results are there
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), expected);
}

// A picture that was set and never inferred: its kernels end before what they use is released.
TEST_F(GraphLaunch, DecodersMemoryIsKeptWhileItIsRead) {
  const auto graph = compile(test::ball_model(), Launch::graph);
  auto request = graph->create_request();
  const Tensor pixels = test::random_tensor({130, 200, 3}, 0, 255, 1).convert(ElementType::u8);
  Frame frame = frame_of(pixels);
  frame.planes = {};
  {
    const ExportedPicture exported(pixels);
    stand_in_hold(true);
    auto imported = exported.import(*graph, pixels.bytes());
    request->set_memory(0, {{imported}, {}}, frame, {});
  }
  std::jthread later([] {
    std::this_thread::sleep_for(50ms);
    stand_in_hold(false);
  });
  request.reset();  // without a wait the kernel would find its memory gone
}

// Where CUDA does not import it, OpenCL reads it. A launch that fails is that frame's error alone.
TEST_F(GraphLaunch, DecodersMemoryThatCudaDoesNotImportGoesToTheQueue) {
  const auto graph = compile(test::ball_model(), Launch::graph);
  const auto request = graph->create_request();
  const Tensor pixels = test::random_tensor({130, 200, 3}, 0, 255, 1).convert(ElementType::u8);
  Frame frame = frame_of(pixels);
  request->set_frame(0, frame, {});
  request->start();
  request->wait();
  const std::vector<float> expected = request->output(0).to_floats();
  const ExportedPicture exported(pixels);
  stand_in_fail("cuMemImportFromShareableHandle", 0);
  const auto imported = exported.import(*graph, pixels.bytes());
  stand_in_fail(nullptr, 0);
  frame.planes = {};
  stand_in_reset();
  request->set_memory(0, {{imported}, {}}, frame, {});
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), expected);
  EXPECT_EQ(stand_in_calls("cuGraphLaunch"), 0);
  const auto shared = exported.import(*graph, pixels.bytes());
  stand_in_fail("cuLaunchKernel", 0);
  EXPECT_THROW(request->set_memory(0, {{shared}, {}}, frame, {}), Error);
  stand_in_fail(nullptr, 0);
  request->set_memory(0, {{shared}, {}}, frame, {});
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), expected);
  EXPECT_EQ(stand_in_calls("cuGraphLaunch"), 1);
}

// Regions of a frame, as second stages give them.
TEST_F(GraphLaunch, RegionsOfAFrameAreConvertedBeforeIt) {
  const auto graph = compile(test::ball_model(), Launch::graph),
             queue = compile(test::ball_model(), Launch::queue);
  const auto one = graph->create_request(), reference = queue->create_request();
  const Tensor pixels = test::random_tensor({130, 200, 3}, 0, 255, 1).convert(ElementType::u8);
  for (const Rect& region : {Rect{}, Rect{7, 11, 100, 37}, Rect{150, 90, 50, 40}}) {
    Frame frame = frame_of(pixels);
    frame.region = region;
    for (InferRequest* request : {one.get(), reference.get()}) {
      request->set_frame(0, frame, {});
      request->start();
    }
    expect_same(results_of(*graph, *one), results_of(*queue, *reference));
  }
}

// Models with several streams each, whose requests are in flight at the same time.
TEST_F(GraphLaunch, SeveralModelsAndStreamsRunBesideEachOther) {
  constexpr int kRounds = 20;
  constexpr size_t kRequests = 4;
  const std::string models[] = {test::ball_model(), test::host_layer_model(folder_)};
  std::vector<std::jthread> threads;
  std::vector<std::shared_ptr<CompiledModel>> compiled;
  for (const std::string& path : models) {
    Config several = config(Launch::graph);
    several.streams = 2;
    compiled.push_back(CompiledModel::compile(Model::read(path), several));
    ASSERT_EQ(compiled.back()->launch(), "graph");
  }
  for (const auto& model : compiled)
    threads.emplace_back([model] {
      const auto set = [&](InferRequest& request, int seed) {
        for (size_t i = 0; i < model->inputs().size(); ++i)
          request.set_input(i, test::random_tensor(model->inputs()[i].shape, 0, 1, seed)
                                   .convert(model->inputs()[i].type));
      };
      std::vector<std::unique_ptr<InferRequest>> requests;
      std::vector<std::vector<Tensor>> expected;
      for (size_t r = 0; r < kRequests; ++r) {
        requests.push_back(model->create_request());
        set(*requests.back(), static_cast<int>(r));
        requests.back()->start();
        expected.push_back(results_of(*model, *requests.back()));
      }
      for (int round = 0; round < kRounds; ++round) {
        for (size_t r = 0; r < kRequests; ++r) {
          set(*requests[r], static_cast<int>((r + static_cast<size_t>(round)) % kRequests));
          requests[r]->start();
        }
        for (size_t r = 0; r < kRequests; ++r)
          expect_same(results_of(*model, *requests[r]),
                      expected[(r + static_cast<size_t>(round)) % kRequests]);
      }
    });
}

// Plans without graphs run by OpenCL, and each one's reason is told.
TEST_F(GraphLaunch, LoopsOnTheDeviceGoToTheQueue) {
  Config with_loop = config(Launch::graph);
  with_loop.unroll_loops = false;
  folder_.write("loop.bin", "");
  const auto model = Model::read(folder_.write("loop.xml", test::loop_model()));
  const auto compiled = CompiledModel::compile(model, with_loop);
  EXPECT_EQ(compiled->launch(),
            "queue (layer \"loop\" (DeviceLoop, opset1, id 8) is a loop on the device)");
  ASSERT_EQ(compiled->warnings().size(), 1u);
  EXPECT_NE(compiled->warnings()[0].find("is a loop on the device"), std::string::npos);
}

TEST_F(GraphLaunch, WhatLooksAtLayersGoesToTheQueue) {
  Config timed = config(Launch::graph);
  timed.perf_count = true;
  EXPECT_EQ(CompiledModel::compile(Model::read(test::ball_model()), timed)->launch(),
            "queue (layers are timed)");
  Config shared = config(Launch::graph);
  shared.exclusive = true;
  EXPECT_EQ(CompiledModel::compile(Model::read(test::ball_model()), shared)->launch(),
            "queue (the queue is shared)");
}

TEST_F(GraphLaunch, ADifferentBitIsSeenAtLoad) {
  stand_in_corrupt(true);
  const auto compiled = compile(test::ball_model(), Launch::graph);
  stand_in_corrupt(false);
  EXPECT_EQ(compiled->launch().find("queue (a graph's results differ"), 0u) << compiled->launch();
  ASSERT_EQ(compiled->warnings().size(), 1u);
  EXPECT_NE(compiled->warnings()[0].find("launched one by one"), std::string::npos);
}

// An application may give up a load whose device hangs while it compares.
TEST_F(GraphLaunch, ALoadOnADeviceThatHangsIsCancelled) {
  const auto progress = [](const std::string& what, size_t, size_t) {
    stand_in_hold(true);  // the weights are there
    return what.find("first") == std::string::npos;
  };
  try {
    CompiledModel::compile(Model::read(test::ball_model()), config(Launch::graph), progress);
    ADD_FAILURE() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  }
  stand_in_hold(false);
  EXPECT_TRUE(left_work_is_over(10s));
}

// Each call of CUDA fails, with each of its uses while a model is loaded.
TEST_F(GraphLaunch, WhatFailsAtLoadLeavesTheQueue) {
  const std::string model =
      test::relu_model(folder_, {1, 3, 16, 16}).string();  // few calls of each
  const auto queue = compile(model, Launch::queue);
  const auto reference = queue->create_request();
  const std::vector<float> expected = test::infer(*reference, picture(*queue, 1));
  for (const char* function : {"cuCtxPushCurrent_v2",
                               "cuMemGetAllocationGranularity",
                               "cuMemCreate",
                               "cuMemAddressReserve",
                               "cuMemMap",
                               "cuMemSetAccess",
                               "cuMemExportToShareableHandle",
                               "cuMemcpyHtoDAsync_v2",
                               "cuMemcpyDtoHAsync_v2",
                               "cuLinkCreate_v2",
                               "cuLinkAddData_v2",
                               "cuLinkComplete",
                               "cuModuleLoadData",
                               "cuModuleGetFunction",
                               "cuStreamCreate",
                               "cuEventCreate",
                               "cuEventRecord",
                               "cuEventQuery",
                               "cuGraphCreate",
                               "cuGraphAddKernelNode_v2",
                               "cuGraphInstantiateWithFlags",
                               "cuGraphLaunch"}) {
    Config graph = config(Launch::graph);
    if (std::string_view(function).starts_with("cuLink")) graph.cache_dir = "";  // has the code
    stand_in_reset();
    CompiledModel::compile(Model::read(model), graph);
    const long calls = stand_in_calls(function);
    EXPECT_GT(calls, 0) << function;
    for (const long skip : {0L, calls / 2, calls - 1}) {
      if (skip < 0 || skip >= calls) continue;
      // Without a context nothing that is in flight can be waited for.
      if (skip > 0 && std::string_view(function) == "cuCtxPushCurrent_v2") continue;
      SCOPED_TRACE(function);
      stand_in_fail(function, static_cast<int>(skip));
      const auto compiled = CompiledModel::compile(Model::read(model), graph);
      stand_in_fail(nullptr, 0);
      // A query that fails is followed by a wait, which succeeds.
      if (std::string_view(function) != "cuEventQuery") {
        EXPECT_EQ(compiled->launch().find("queue ("), 0u) << function << " " << compiled->launch();
      }
      const auto request = compiled->create_request();
      EXPECT_EQ(test::infer(*request, picture(*queue, 1)), expected) << function;
    }
  }
}

// Uses up what was pinned before, because a model that finds it pins nothing.
TEST_F(GraphLaunch, MemoryThatIsNotPinnedLeavesTheQueue) {
  const auto device = test::stand_in_device();
  std::vector<std::shared_ptr<std::byte>> used;
  stand_in_fail("cuMemHostAlloc", 0);
  EXPECT_THROW(for (;;) used.push_back(device->pinned_memory(1)), Error);
  const auto compiled =
      compile(test::relu_model(folder_, {1, 3, 16, 16}).string(), Launch::automatic);
  EXPECT_EQ(compiled->launch(), "queue (cuMemHostAlloc gave CUDA_ERROR_UNKNOWN)");
}

// A call that fails during an inference fails that one alone.
TEST_F(GraphLaunch, WhatFailsInAnInferenceIsAnError) {
  const auto graph = compile(test::ball_model(), Launch::graph);
  const auto request = graph->create_request();
  const std::vector<float> expected = test::infer(*request, picture(*graph, 1));
  for (const char* function : {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuGraphLaunch",
                               "cuEventRecord", "cuEventSynchronize"}) {
    stand_in_fail(function, 0);
    try {
      test::infer(*request, picture(*graph, 2));
      ADD_FAILURE() << function;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device_failed);
      EXPECT_EQ(error.what(), std::string(function) + " gave CUDA_ERROR_UNKNOWN");
    }
    stand_in_fail(nullptr, 0);
    EXPECT_EQ(test::infer(*request, picture(*graph, 1)), expected) << function;
  }
}

TEST_F(GraphLaunch, WaitingEndsInTimeAndSleeps) {
  const auto graph = compile(test::ball_model(), Launch::graph);
  const auto request = graph->create_request();
  const std::vector<float> expected = test::infer(*request, picture(*graph, 1));
  stand_in_hold(true);
  request->set_input(0, picture(*graph, 1));
  request->start();
  EXPECT_FALSE(request->wait(1ms));
  EXPECT_FALSE(request->wait(20ms));
  std::jthread later([] {
    std::this_thread::sleep_for(100ms);
    stand_in_hold(false);
  });
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), expected);
}

// A device that does not answer, and a request that is destroyed then: its memory is kept until the end.
TEST_F(GraphLaunch, ADeviceThatDoesNotAnswerIsGivenUp) {
  Config short_time = config(Launch::graph);
  short_time.device_timeout = 300ms;
  auto graph = CompiledModel::compile(Model::read(test::ball_model()), short_time);
  auto request = graph->create_request();
  test::infer(*request, picture(*graph, 1));
  stand_in_hold(true);
  request->start();
  EXPECT_THROW(request->wait(), NoAnswer);
  request.reset();
  graph.reset();
  EXPECT_FALSE(left_work_is_over(0ms));
  stand_in_hold(false);
  EXPECT_TRUE(left_work_is_over(10s));
}

}  // namespace
}  // namespace clinfer
