// clinfer while its kernels are compiled: the host computes its frames, and the device takes over
// between two of them.
#include "tests/gst/first_tier.h"

#include <filesystem>
#include <set>
#include <thread>

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing_models::blocks_model;

// Pushes frames and expects all of them to be answered, until the full tier runs; gives the tiers
// that stats named meanwhile.
std::set<std::string> push_until_full(Harness& harness, int& number) {
  std::set<std::string> tiers;
  const auto until = Clock::now() + 300s;
  do {
    EXPECT_EQ(harness.push(number % 2 ? kRed : kBlue, number), GST_FLOW_OK);
    EXPECT_EQ(answer_of(harness.pull().get()), number % 2 ? "red" : "blue") << number;
    ++number;
    tiers.insert(text_of(harness.clinfer(), "tier"));
  } while (!tiers.contains("full") && Clock::now() < until && !testing::Test::HasFailure());
  return tiers;
}

TEST(ElementFirstTier, ComputesFramesUntilTheDeviceTakesOver) {
  const ColdCaches cold;
  Harness harness(Harness::clinfer_launch(cold.properties()));
  harness.set_caps("NV12", 64, 48);
  int number = 0;
  EXPECT_EQ(push_until_full(harness, number), (std::set<std::string>{"first", "full"}));
  EXPECT_GT(number, 1);
  // The device's own frames.
  for (int i = 0; i < 3; ++i, ++number) {
    ASSERT_EQ(harness.push(kGreen, number), GST_FLOW_OK);
    EXPECT_EQ(answer_of(harness.pull().get()), "green");
  }
  EXPECT_EQ(text_of(harness.clinfer(), "tier"), "full");
  std::vector<std::string> texts;
  const auto until = Clock::now() + 300s;
  do {  // the last one is posted after the device has taken over
    for (std::string& text : progress_of(harness.bus())) texts.push_back(std::move(text));
    std::this_thread::sleep_for(10ms);
  } while (index_of(texts, "Compiled ") == texts.size() && Clock::now() < until);
  const size_t first = index_of(texts, "The host computes"), last = index_of(texts, "Compiled ");
  EXPECT_LT(first, last);
  EXPECT_LT(last, texts.size());
}

TEST(ElementFirstTier, ComputesBatchesImageByImage) {
  const ColdCaches cold;
  Harness harness(Harness::clinfer_launch(cold.properties() + " batch-size=4 batch-timeout=0"));
  harness.set_caps("I420", 65, 47);
  int number = 0;
  EXPECT_EQ(push_until_full(harness, number), (std::set<std::string>{"first", "full"}));
}

TEST(ElementFirstTier, IsOffWhereTheUserWantsEqualBits) {
  const ColdCaches cold;
  Harness harness(Harness::clinfer_launch(cold.properties() + " first-tier=false"));
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);  // waits for the device
  EXPECT_EQ(text_of(harness.clinfer(), "tier"), "full");
  EXPECT_EQ(answer_of(harness.pull().get()), "red");
}

TEST(ElementFirstTier, InfersFramesOfLiveSources) {
  const ColdCaches cold;
  Harness harness(Harness::clinfer_launch(cold.properties() + " overload-policy=skip-inference"));
  gst_harness_set_live(harness.get(), TRUE);
  harness.set_caps("NV12", 64, 48);
  int number = 0, inferred = 0;
  gst_harness_query_latency(harness.get());
  while (text_of(harness.clinfer(), "tier") != "full" && number < 30000) {
    const bool first = text_of(harness.clinfer(), "tier") == "first";
    ASSERT_EQ(harness.push(kRed, number++), GST_FLOW_OK);
    const std::string answer = answer_of(harness.pull().get());
    EXPECT_TRUE(answer == "red" || answer == "skipped") << answer;
    inferred += first && answer == "red";
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_GT(inferred, 0) << "of " << number;
}

TEST(ElementFirstTier, StopsWithinASecond) {
  const ColdCaches cold;
  Pipeline pipeline("videotestsrc ! video/x-raw,format=NV12,width=64,height=48 ! " +
                    Harness::clinfer_launch(cold.properties() + " name=c") + " ! fakesink");
  const Handle<GstElement> clinfer = pipeline.find("c");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  const auto until = Clock::now() + 60s;
  while (text_of(clinfer.get(), "tier") == "" && Clock::now() < until)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(text_of(clinfer.get(), "tier"), "first");
  const auto begin = Clock::now();
  gst_element_set_state(pipeline.element, GST_STATE_NULL);
  EXPECT_LT(Clock::now() - begin, 30s);  // one on an idle machine
  // The next start begins with the first tier again, and ends with the full one.
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  const auto patience = Clock::now() + 300s;
  while (text_of(clinfer.get(), "tier") != "full" && Clock::now() < patience)
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(text_of(clinfer.get(), "tier"), "full");
}

TEST(ElementFirstTier, ServesAModelThatIsSetWhilePlaying) {
  const ColdCaches cold;
  Harness harness(Harness::clinfer_launch(cold.properties()));
  harness.set_caps("NV12", 64, 48);
  int number = 0;
  push_until_full(harness, number);
  // It has other kernels.
  g_object_set(harness.clinfer(), "model", blocks_model().c_str(), nullptr);
  const std::string name = std::filesystem::path(blocks_model()).stem();
  std::vector<std::string> tiers;  // of the new model
  const auto until = Clock::now() + 300s;
  do {
    ASSERT_EQ(harness.push(kGreen, number++), GST_FLOW_OK);
    const Handle<GstBuffer> out = harness.pull();
    const auto results = read_results(out.get());
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].outcome, Outcome::run);
    const std::string tier = text_of(harness.clinfer(), "tier");
    if (text_of(harness.clinfer(), "model") == name && (tiers.empty() || tiers.back() != tier))
      tiers.push_back(tier);
  } while ((tiers.empty() || tiers.back() != "full") && Clock::now() < until);
  // A model this small can be compiled before the next frame comes.
  ASSERT_FALSE(tiers.empty());
  EXPECT_EQ(tiers.back(), "full");
  if (tiers.size() > 1) {
    EXPECT_EQ(tiers, (std::vector<std::string>{"first", "full"}));
  }
}

TEST(ElementFirstTier, IsSharedAsTheModelIs) {
  const ColdCaches cold;
  const std::string launch =
      Harness::clinfer_launch(cold.properties() + " model-instance-id=shared");
  Harness one(launch), other(launch);
  for (Harness* harness : {&one, &other}) {
    harness->set_caps("NV12", 64, 48);
    ASSERT_EQ(harness->push(kRed, 0), GST_FLOW_OK);
    EXPECT_EQ(answer_of(harness->pull().get()), "red");
    EXPECT_EQ(text_of(harness->clinfer(), "tier"), "first");
  }
  int number = 1;
  push_until_full(one, number);
  push_until_full(other, number);
}

}  // namespace
}  // namespace clinfer
