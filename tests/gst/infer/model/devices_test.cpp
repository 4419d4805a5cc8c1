// clinfer on several devices: MULTI, AUTO and HETERO on PoCL's two drivers of the CPU.
#include <map>
#include <thread>

#include "tests/faults/lost_device.h"
#include "tests/gst/harness.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLong = 120s;  // longer than any machine takes for what is waited for

std::map<std::string, uint64_t> inferences(GstElement* clinfer) {
  const Handle<GstStructure> stats = stats_of(clinfer);
  std::map<std::string, uint64_t> counts;
  const GValue* devices = gst_structure_get_value(stats.get(), "devices");
  for (guint i = 0; devices != nullptr && i < gst_value_list_get_size(devices); ++i) {
    const GstStructure* device = gst_value_get_structure(gst_value_list_get_value(devices, i));
    guint64 count = 0;
    gst_structure_get_uint64(device, "inferences", &count);
    counts[gst_structure_get_string(device, "id")] = count;
  }
  return counts;
}

std::string device_of(GstElement* clinfer) {
  const Handle<GstStructure> stats = stats_of(clinfer);
  const char* text = gst_structure_get_string(stats.get(), "device");
  return text != nullptr ? text : "";
}

// But for what is guessed about the model.
std::vector<std::string> warnings_on(GstBus* bus) {
  std::vector<std::string> texts;
  while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_WARNING)) {
    GError* error = nullptr;
    gst_message_parse_warning(message, &error, nullptr);
    if (std::string(error->message).find("nothing states how the model") == std::string::npos)
      texts.push_back(error->message);
    g_error_free(error);
    gst_message_unref(message);
  }
  return texts;
}

Rgb color_of(int number) { return number % 3 == 0 ? kRed : number % 3 == 1 ? kBlue : kGreen; }
std::string answer_for(int number) {
  return number % 3 == 0 ? "red" : number % 3 == 1 ? "blue" : "green";
}

// Pushes frames [from, to) while another thread pulls them, and expects each with its answer, in
// order.
void play(Harness& harness, int from, int to) {
  std::jthread pusher([&] {
    for (int i = from; i < to; ++i) EXPECT_EQ(harness.push(color_of(i), i), GST_FLOW_OK);
  });
  for (int i = from; i < to; ++i) {
    const Handle<GstBuffer> frame = harness.pull();
    ASSERT_NE(frame.get(), nullptr) << i;
    EXPECT_EQ(GST_BUFFER_PTS(frame.get()), static_cast<GstClockTime>(i) * 40 * GST_MSECOND);
    EXPECT_EQ(answer_of(frame.get()), answer_for(i)) << i;
  }
}

// Plays from frame 0 until CPU.0 and CPU.1 have both inferred. The number of frames.
int play_until_both_infer(Harness& harness) {
  int number = 0;
  std::map<std::string, uint64_t> counts;
  const auto until = Clock::now() + kLong;
  do {
    play(harness, number, number + 40);
    number += 40;
    counts = inferences(harness.clinfer());
  } while ((counts["CPU.0"] == 0 || counts["CPU.1"] == 0) && Clock::now() < until &&
           !testing::Test::HasFailure());
  EXPECT_GT(counts["CPU.0"], 0u);
  EXPECT_GT(counts["CPU.1"], 0u);
  return number;
}

class ElementDevices : public testing::Test {
 protected:
  void TearDown() override {
    lose_device(nullptr, 0);
    hold_device(nullptr);
  }
};

TEST_F(ElementDevices, MultiUsesBothInOrder) {
  for (const char* more : {"", " batch-size=4 batch-timeout=0"}) {
    Harness harness(Harness::clinfer_launch(std::string("device=MULTI:CPU.0,CPU.1") + more));
    harness.set_caps("NV12", 64, 48);
    const int number = play_until_both_infer(harness);
    auto counts = inferences(harness.clinfer());
    if (*more == '\0') {
      EXPECT_EQ(counts["CPU.0"] + counts["CPU.1"], static_cast<uint64_t>(number));
    }
    EXPECT_EQ(warnings_on(harness.bus()), std::vector<std::string>());
  }
}

TEST_F(ElementDevices, FramesOfALostDeviceAreDoneByTheOther) {
  Harness harness(Harness::clinfer_launch("device=MULTI:CPU.0,CPU.1"));
  harness.set_caps("I420", 64, 48);
  int number = play_until_both_infer(harness);
  lose_device("pthread", 0);
  std::vector<std::string> warnings;
  const auto until = Clock::now() + kLong;
  while (warnings.empty() && Clock::now() < until && !HasFailure()) {  // until one is for CPU.1
    play(harness, number, number + 40);
    number += 40;
    warnings = warnings_on(harness.bus());
  }
  play(harness, number, number + 40);
  number += 40;
  for (const std::string& later : warnings_on(harness.bus())) warnings.push_back(later);
  const auto counts = inferences(harness.clinfer());
  EXPECT_EQ(counts.at("CPU.0") + counts.at("CPU.1"), static_cast<uint64_t>(number));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("CPU.1 (pthread"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("the other devices go on"), std::string::npos) << warnings[0];
}

TEST_F(ElementDevices, WithoutAnyDeviceItIsAnError) {
  Harness harness(Harness::clinfer_launch("device=MULTI:CPU.0,CPU.1"));
  harness.set_caps("I420", 64, 48);
  play(harness, 0, 2);
  lose_device("*", 0);
  harness.push(kRed, 2);
  GstMessage* message = gst_bus_timed_pop_filtered(harness.bus(), kPatience, GST_MESSAGE_ERROR);
  ASSERT_NE(message, nullptr);
  gst_message_unref(message);
}

TEST_F(ElementDevices, AutoMovesWithoutLosingAFrame) {
  hold_device("pthread");  // CPU.1 is not ready before CPU.0 has inferred
  Harness harness(Harness::clinfer_launch("device=AUTO:CPU.1,CPU.0"));
  harness.set_caps("NV12", 64, 48);
  play(harness, 0, 10);
  EXPECT_NE(device_of(harness.clinfer()).find("basic"), std::string::npos);
  EXPECT_EQ(inferences(harness.clinfer()).at("CPU.0"), 10u);
  hold_device(nullptr);
  int number = 10;
  const auto until = Clock::now() + kLong;
  while (device_of(harness.clinfer()).find("pthread") == std::string::npos &&
         Clock::now() < until && !HasFailure()) {
    play(harness, number, number + 5);
    number += 5;
  }
  play(harness, number, number + 10);
  number += 10;
  const auto counts = inferences(harness.clinfer());
  EXPECT_GE(counts.at("CPU.1"), 10u);
  EXPECT_EQ(counts.at("CPU.0") + counts.at("CPU.1"), static_cast<uint64_t>(number));
  EXPECT_EQ(warnings_on(harness.bus()), std::vector<std::string>());
}

TEST_F(ElementDevices, HeteroInTheElement) {
  for (const char* devices :
       {"device=HETERO:CPU.1,CPU.0", "device=HETERO config=\"TARGET_FALLBACK=CPU.1,CPU.0\"",
        "config=\"PERF_COUNT=NO, TARGET_FALLBACK=CPU.1, CPU.0,FIRST_TIER=NO\" device=HETERO"}) {
    Harness harness(Harness::clinfer_launch(devices));
    harness.set_caps("I420", 64, 48);
    play(harness, 0, 20);
    EXPECT_EQ(inferences(harness.clinfer()).at("CPU.1"), 20u) << devices;
  }
}

TEST_F(ElementDevices, LiveSourcesSkipOnSeveralDevices) {
  Harness harness(
      Harness::clinfer_launch("device=MULTI:CPU.0,CPU.1 overload-policy=skip-inference"));
  gst_harness_set_live(harness.get(), TRUE);
  harness.set_caps("NV12", 64, 48);
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(harness.push(color_of(i), i), GST_FLOW_OK);
    const std::string answer = answer_of(harness.pull().get());
    EXPECT_TRUE(answer == answer_for(i) || answer == "skipped" || answer == "not ready") << answer;
  }
}

TEST_F(ElementDevices, NullWhileOneDeviceStillCompiles) {
  hold_device("pthread");
  for (const char* device : {"AUTO:CPU.1,CPU.0", "MULTI:CPU.1,CPU.0"}) {
    Pipeline pipeline(std::string("videotestsrc num-buffers=5 ! "
                                  "video/x-raw,format=NV12,width=64,height=48 ! ") +
                      Harness::clinfer_launch(std::string("device=") + device) + " ! fakesink");
    ASSERT_NE(gst_element_set_state(pipeline.element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
    EXPECT_EQ(error_on(pipeline.element, kLong), "");  // EOS, by the device that is ready
    std::jthread release([] {
      std::this_thread::sleep_for(300ms);  // the launch that is held belongs to the driver
      hold_device(nullptr);
    });
    gst_element_set_state(pipeline.element, GST_STATE_NULL);
    release.join();
    hold_device("pthread");
  }
}

TEST_F(ElementDevices, AModelChangesWhilePlaying) {
  Harness harness(Harness::clinfer_launch("device=MULTI:CPU.0,CPU.1"));
  harness.set_caps("I420", 64, 48);
  play(harness, 0, 10);
  g_object_set(harness.clinfer(), "model", testing_models::color_model("other", 24).c_str(),
               nullptr);
  GstMessage* message = nullptr;
  int number = 10;
  const auto until = Clock::now() + kLong;
  while (message == nullptr && Clock::now() < until && !HasFailure()) {
    play(harness, number, number + 5);
    number += 5;
    while (GstMessage* next = gst_bus_pop_filtered(harness.bus(), GST_MESSAGE_ELEMENT)) {
      if (gst_message_has_name(next, "clinfer-model")) message = gst_message_ref(next);
      gst_message_unref(next);
    }
  }
  ASSERT_NE(message, nullptr);
  gst_message_unref(message);
  play(harness, number, number + 20);
  auto counts = inferences(harness.clinfer());  // perhaps of one device, while the other compiles
  EXPECT_EQ(counts["CPU.0"] + counts["CPU.1"], static_cast<uint64_t>(number + 20));
}

TEST_F(ElementDevices, TuningIsRefused) {
  Pipeline pipeline("videotestsrc num-buffers=1 ! video/x-raw,format=NV12,width=64,height=48 ! " +
                    Harness::clinfer_launch("device=MULTI:CPU.0,CPU.1 tuning-mode=create "
                                            "tuning-file=" +
                                            testing_models::folder() / "t.json") +
                    " ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  EXPECT_NE(error_on(pipeline.element, kLong).find("tune each with device="), std::string::npos);
}

TEST_F(ElementDevices, WithoutAGpuACpuTakesItsPlaceWithOneWarning) {
  std::vector<std::string> warnings;
  for (const char* device : {"GPU", "GPU.0"}) {
    Harness harness(Harness::clinfer_launch(std::string("device=") + device));
    harness.set_caps("NV12", 64, 48);
    play(harness, 0, 3);
    EXPECT_EQ(inferences(harness.clinfer()).at("CPU.0"), 3u);
    for (const std::string& warning : warnings_on(harness.bus())) warnings.push_back(warning);
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find("there is no GPU: CPU.0, basic"), 0u) << warnings[0];
}

TEST_F(ElementDevices, ADeviceThatIsNotThereIsAnErrorThatListsThem) {
  for (const char* device : {"GPU.7", "MULTI:CPU.0,GPU.7"}) {
    Pipeline pipeline("videotestsrc num-buffers=1 ! video/x-raw,format=NV12,width=64,height=48 ! " +
                      Harness::clinfer_launch(std::string("device=") + device) + " ! fakesink");
    gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
    const std::string error = error_on(pipeline.element, kLong);
    EXPECT_NE(error.find("no OpenCL device \"GPU.7\": found CPU.0 = basic"), std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace clinfer
