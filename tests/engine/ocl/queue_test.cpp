// Queue hints, exclusive models, and the measured number of streams.
#include "engine/ocl/queue.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "engine/runtime/compiled_model.h"
#include "tests/engine/test_files.h"

namespace clinfer {
namespace {

using ocl::QueueHints;

std::shared_ptr<CompiledModel> compile(const Config& config) {
  return CompiledModel::compile(
      Model::read(std::string(CLINFER_SOURCE_DIR) + "/pipelines/models/ball.xml"), config);
}

TEST(Queue, HintsBecomePropertiesWhereTheDeviceHasThem) {
  std::vector<std::string> warnings;
  const QueueHints wanted{QueueHint::high, QueueHint::low};
  const QueueHints both = ocl::applicable_hints(
      wanted, "dev", "cl_khr_fp16 cl_khr_throttle_hints cl_khr_priority_hints", warnings);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(ocl::queue_properties(both, true),
            (std::vector<cl_queue_properties>{
                CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PRIORITY_KHR,
                CL_QUEUE_PRIORITY_HIGH_KHR, CL_QUEUE_THROTTLE_KHR, CL_QUEUE_THROTTLE_LOW_KHR, 0}));
  EXPECT_EQ(
      ocl::queue_properties({QueueHint::automatic, QueueHint::medium}, false),
      (std::vector<cl_queue_properties>{CL_QUEUE_THROTTLE_KHR, CL_QUEUE_THROTTLE_MED_KHR, 0}));
  // A part of a longer word is not the extension.
  const QueueHints none =
      ocl::applicable_hints(wanted, "dev", "cl_khr_priority_hints_2 cl_khr_fp16", warnings);
  EXPECT_EQ(none.priority, QueueHint::automatic);
  EXPECT_EQ(none.throttle, QueueHint::automatic);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("dev does not offer cl_khr_priority_hints"), std::string::npos);
  EXPECT_NE(warnings[1].find("cl_khr_throttle_hints"), std::string::npos);
  EXPECT_EQ(ocl::queue_properties(none, false), std::vector<cl_queue_properties>{0});
}

TEST(Queue, AModelSaysWhichHintsAreInForceAndWorksSleeping) {
  Config config;
  config.device = list_devices().devices.at(0).id;
  config.priority = QueueHint::high;
  config.throttle = QueueHint::low;
  const auto compiled = compile(config);
  const std::string extensions =
      ocl::select_device("GPU").device.getInfo<CL_DEVICE_EXTENSIONS>() + " ";
  const auto offers = [&](const char* name) {
    return extensions.find(std::string(name) + " ") != std::string::npos;
  };
  EXPECT_EQ(compiled->priority(),
            offers("cl_khr_priority_hints") ? QueueHint::high : QueueHint::automatic);
  EXPECT_EQ(compiled->throttle(),
            offers("cl_khr_throttle_hints") ? QueueHint::low : QueueHint::automatic);
  EXPECT_EQ(compiled->warnings().size(),
            2u - offers("cl_khr_priority_hints") - offers("cl_khr_throttle_hints"));
  const auto request = compiled->create_request();
  request->start();
  EXPECT_TRUE(request->wait());
}

TEST(Queue, ExclusiveModelsShareOneAndTheOthersDoNot) {
  Config config;
  config.device = list_devices().devices.at(0).id;
  config.exclusive = true;
  const auto first = compile(config);
  config.streams = 3;
  const auto second = compile(config);
  config.exclusive = false;
  const auto other = compile(config);
  const auto queue = [](const std::shared_ptr<CompiledModel>& model, size_t stream) {
    return dynamic_cast<const DeviceModel&>(*model).network().stream(stream).queue();
  };
  EXPECT_EQ(queue(first, 0), queue(second, 0));
  EXPECT_NE(queue(first, 0), queue(other, 0));
  EXPECT_NE(queue(other, 0), queue(other, 1));
  EXPECT_EQ(second->streams(), 1u);
  ASSERT_EQ(second->warnings().size(), 1u);
  EXPECT_NE(second->warnings()[0].find("1 stream instead of 3"), std::string::npos);
  // Both at once, and both right.
  const auto a = first->create_request(), b = second->create_request();
  for (int i = 0; i < 5; ++i) {
    a->start();
    b->start();
    EXPECT_TRUE(b->wait());
    EXPECT_TRUE(a->wait());
    EXPECT_EQ(a->output(0).to_floats(), b->output(0).to_floats());
  }
}

TEST(Queue, StreamsAreMeasuredOnceAndKeptInTheCache) {
  namespace fs = std::filesystem;
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "cache";
  Config config;
  config.cache_dir = folder.string();
  config.persistent = Config::Persistent::no;  // cores that take one launch have one stream each
  const auto files = [&] {
    std::set<fs::path> names;
    std::error_code none;  // some drivers give no programs to keep
    for (const auto& entry : fs::directory_iterator(folder, none)) names.insert(entry.path());
    return names;
  };
  const auto model = Model::read(test_data("models/integers.xml"));
  CompiledModel::compile(model, config);
  const std::set<fs::path> programs = files();
  config.streams = 0;
  bool measured = false;
  const Progress watch = [&](const std::string& what, size_t, size_t) {
    measured |= what.find("measuring") != std::string::npos;
    return true;
  };
  const unsigned streams = CompiledModel::compile(model, config, watch)->streams();
  EXPECT_TRUE(measured);
  EXPECT_TRUE(streams == 1 || streams == 2 || streams == 4) << streams;
  std::set<fs::path> kept = files();
  for (const fs::path& program : programs) kept.erase(program);
  ASSERT_EQ(kept.size(), 1u);
  measured = false;
  EXPECT_EQ(CompiledModel::compile(model, config, watch)->streams(), streams);
  EXPECT_FALSE(measured);
  // It can be stopped.
  fs::remove(*kept.begin());
  const Progress stop = [](const std::string& what, size_t, size_t) {
    return what.find("measuring") == std::string::npos;
  };
  EXPECT_THROW(CompiledModel::compile(model, config, stop), Error);
}

}  // namespace
}  // namespace clinfer
