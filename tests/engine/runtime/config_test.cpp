// Configuration keys by the GPU plug-in's names.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/runtime/options.h"

namespace clinfer {
namespace {

std::string refusal(const std::string& key, const std::string& value) {
  Config config;
  try {
    config.set(key, value);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_argument);
    return error.what();
  }
  return "";
}

TEST(Config, TakesSeveralPairsAtOnce) {
  Config config;
  config.set_all(" GPU_THROUGHPUT_STREAMS=3,\n  PERF_COUNT = YES ,,TARGET_FALLBACK=CPU.1,CPU.0\n");
  EXPECT_EQ(config.streams, 3u);
  EXPECT_TRUE(config.perf_count);
  EXPECT_EQ(config.device_settings.at(0).value, "CPU.1,CPU.0");
  config.set_all("");
  for (const char* settings : {"PERF_COUNT", "=1", "PERF_COUNT=YES,CPU.0"}) {
    try {
      config.set_all(settings);
      ADD_FAILURE() << settings;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("is not KEY=VALUE"), std::string::npos);
    }
  }
}

TEST(Config, TakesEverySpelling) {
  for (const char* key : {"KEY_GPU_THROUGHPUT_STREAMS", "GPU_THROUGHPUT_STREAMS",
                          "CLDNN_THROUGHPUT_STREAMS", "THROUGHPUT_STREAMS"}) {
    Config config;
    config.set(key, "3");
    EXPECT_EQ(config.streams, 3u) << key;
  }
  for (const char* value : {"GPU_THROUGHPUT_AUTO", "KEY_GPU_THROUGHPUT_AUTO", "AUTO"}) {
    Config config;
    config.set("KEY_GPU_THROUGHPUT_STREAMS", value);
    EXPECT_EQ(config.streams, 0u) << value;
  }
}

TEST(Config, SetsValues) {
  Config config;
  config.set("GPU_THROUGHPUT_STREAMS", "GPU_THROUGHPUT_AUTO");
  config.set("PERF_COUNT", "YES");
  config.set("CACHE_DIR", "some where");
  config.set("INFERENCE_PRECISION", "f32");
  config.set("CLDNN_ENABLE_FP16_FOR_QUANTIZED_MODELS", "NO");
  config.set("LP_TRANSFORMS_MODE", "NO");
  config.set("CLDNN_PLUGIN_PRIORITY", "3");
  config.set("GPU_QUEUE_THROTTLE", "LOW");
  config.set("KEY_EXCLUSIVE_ASYNC_REQUESTS", "YES");
  EXPECT_EQ(config.streams, 0u);
  EXPECT_TRUE(config.perf_count);
  EXPECT_EQ(config.cache_dir, "some where");
  EXPECT_EQ(config.precision, Precision::f32);
  config.set("INFERENCE_PRECISION_HINT", "bf16");
  EXPECT_EQ(config.precision, Precision::bf16);
  EXPECT_FALSE(config.fp16_for_quantized_models);
  EXPECT_FALSE(config.quantized_in_integers);
  EXPECT_EQ(config.priority, QueueHint::high);
  EXPECT_EQ(config.throttle, QueueHint::low);
  EXPECT_TRUE(config.exclusive);
}

TEST(Config, TakesTheNamesOfToday) {
  Config config;
  config.set_all(
      "NUM_STREAMS=3,ENABLE_PROFILING=true,COMPILATION_NUM_THREADS=1,MODEL_PRIORITY=HIGH,"
      "QUEUE_THROTTLE=LOW,INFERENCE_PRECISION_HINT=f16,CACHE_MODE=OPTIMIZE_SIZE");
  EXPECT_EQ(config.streams, 3u);
  EXPECT_TRUE(config.perf_count);
  EXPECT_EQ(config.max_num_threads, 1u);
  EXPECT_EQ(config.priority, QueueHint::high);
  EXPECT_EQ(config.throttle, QueueHint::low);
  EXPECT_EQ(config.precision, Precision::f16);
  EXPECT_EQ(config.cache_mode, CacheMode::optimize_size);
  for (const char* value : {"NO", "false", "FALSE"}) {
    config.perf_count = true;
    config.set("PERF_COUNT", value);
    EXPECT_FALSE(config.perf_count) << value;
  }
  config.set("NUM_STREAMS", "-1");
  EXPECT_EQ(config.streams, 0u);
  config.set("INFERENCE_PRECISION_HINT", "dynamic");
  EXPECT_EQ(config.precision, Precision::automatic);
}

// Whichever comes first.
TEST(Config, HintsLeaveWhatIsStated) {
  const auto with = [](const std::string& settings) {
    Config config;
    config.set_all(settings);
    return config;
  };
  EXPECT_EQ(with("PERFORMANCE_HINT=THROUGHPUT").streams, 0u);
  EXPECT_EQ(with("PERFORMANCE_HINT=LATENCY").streams, 1u);
  EXPECT_EQ(with("PERFORMANCE_HINT=THROUGHPUT,PERFORMANCE_HINT=LATENCY").streams, 1u);
  for (const char* streams : {"1", "2"}) {
    const std::string stated = std::string("NUM_STREAMS=") + streams;
    EXPECT_EQ(with(stated + ",PERFORMANCE_HINT=THROUGHPUT").streams, std::stoul(streams));
    EXPECT_EQ(with("PERFORMANCE_HINT=THROUGHPUT," + stated).streams, std::stoul(streams));
  }
  Config by_member;
  by_member.streams = 2;
  by_member.set("PERFORMANCE_HINT", "THROUGHPUT");
  EXPECT_EQ(by_member.streams, 2u);
  EXPECT_EQ(with("EXECUTION_MODE_HINT=ACCURACY").precision, Precision::f32);
  EXPECT_TRUE(with("EXECUTION_MODE=accuracy").ordered_sums);
  EXPECT_FALSE(with("EXECUTION_MODE=accuracy,FIRST_TIER=YES").has_first_tier());
  EXPECT_FALSE(with("EXECUTION_MODE=accuracy,EXECUTION_MODE=performance").ordered_sums);
  EXPECT_EQ(with("EXECUTION_MODE_HINT=ACCURACY,EXECUTION_MODE=performance").precision,
            Precision::automatic);
  EXPECT_EQ(with("EXECUTION_MODE_HINT=ACCURACY,INFERENCE_PRECISION=f16").precision, Precision::f16);
  EXPECT_EQ(with("INFERENCE_PRECISION=f16,EXECUTION_MODE_HINT=ACCURACY").precision, Precision::f16);
  EXPECT_NE(refusal("PERFORMANCE_HINT", "FAST").find("LATENCY or THROUGHPUT"), std::string::npos);
  EXPECT_NE(refusal("CACHE_MODE", "SMALL").find("OPTIMIZE_SIZE"), std::string::npos);
}

TEST(Config, TakesAsManyThreadsAsThereAre) {
  Config config;
  config.set("GPU_MAX_NUM_THREADS", "1");
  EXPECT_EQ(config.max_num_threads, 1u);
  for (const char* value :
       {"-1", "-2", "-99999999999", "0", "4294967295", "99999999999999999999", "100000"}) {
    config.max_num_threads = 1;
    config.set("GPU_MAX_NUM_THREADS", value);
    EXPECT_EQ(config.max_num_threads, 0u) << value << ": 0 is all cores";
  }
  for (const char* value : {"-", "", "--1", "2x", "-2x", "-99999999999x"})
    EXPECT_NE(refusal("GPU_MAX_NUM_THREADS", value).find("-1 for all cores"), std::string::npos);
}

TEST(Config, TakesEachOptionByEachOfItsNames) {
  for (const Option& option : options()) {
    std::vector<std::string_view> names = option.aliases;
    names.push_back(option.name);
    for (const std::string_view name : names)
      EXPECT_EQ(refusal(std::string(name), "\n").find("unknown"), std::string::npos) << name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.allowed.empty()) << option.name;
  }
}

TEST(Config, RefusesWithWhatIsAllowed) {
  EXPECT_NE(refusal("PERF_COUNT", "maybe").find("YES or NO"), std::string::npos);
  EXPECT_NE(refusal("GPU_THROUGHPUT_STREAMS", "0").find("number"), std::string::npos);
  EXPECT_NE(refusal("GPU_THROUGHPUT_STREAMS", "-2").find("number"), std::string::npos);
  EXPECT_NE(refusal("GPU_THROUGHPUT_STREAMS", "2x").find("number"), std::string::npos);
  EXPECT_NE(refusal("GPU_PLUGIN_PRIORITY", "4").find("3 (HIGH)"), std::string::npos);
  EXPECT_NE(refusal("NO_SUCH_KEY", "1").find("PERF_COUNT"), std::string::npos);
}

}  // namespace
}  // namespace clinfer
