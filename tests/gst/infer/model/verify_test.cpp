// The property verify: faults of the device that it tells of, and streams without faults, of which it
// tells nothing.
#include <sys/resource.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "gst/infer/model/pace.h"
#include "tests/faults/wrong_device.h"
#include "tests/gst/first_tier.h"
#include "tests/gst/infer/model/planted_files.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kMostSamples = 100;

uint64_t stat(GstElement* clinfer, const char* name) {
  const Handle<GstStructure> stats = stats_of(clinfer);
  guint64 value = 0;
  gst_structure_get_uint64(stats.get(), name, &value);
  return value;
}

// Messages clinfer-verify since the last call.
std::vector<Handle<GstStructure>> findings_on(GstBus* bus) {
  std::vector<Handle<GstStructure>> findings;
  while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ELEMENT)) {
    const GstStructure* said = gst_message_get_structure(message);
    if (gst_structure_has_name(said, "clinfer-verify"))
      findings.emplace_back(gst_structure_copy(said));
    gst_message_unref(message);
  }
  return findings;
}

std::string field(const GstStructure* structure, const char* name) {
  const char* text = gst_structure_get_string(structure, name);
  return text != nullptr ? text : "";
}

// A moving ball through a small detector, or through the network that the properties name, in real
// time.
class Playing {
 public:
  explicit Playing(const std::string& properties, const std::string& source = "pattern=ball")
      : pipeline_("videotestsrc is-live=true " + source +
                  " ! video/x-raw,format=NV12,width=320,height=240,framerate=20/1 ! clinfer name=c "
                  "first-tier=false model=" CLINFER_SOURCE_DIR "/pipelines/models/ball.xml " +
                  properties + " ! fakesink"),
        clinfer_(pipeline_.find("c")),
        bus_(gst_element_get_bus(pipeline_.element)) {}
  ~Playing() { gst_object_unref(bus_); }
  Playing(const Playing&) = delete;
  Playing& operator=(const Playing&) = delete;
  void play() { gst_element_set_state(pipeline_.element, GST_STATE_PLAYING); }
  // Waits until `done` or so many samples were checked.
  void wait(const std::function<bool()>& done, uint64_t samples) {
    const auto until = Clock::now() + 300s;
    while (!done() && checked() < samples && Clock::now() < until) {
      for (auto& finding : findings_on(bus_)) findings.push_back(std::move(finding));
      if (GstMessage* error = gst_bus_pop_filtered(bus_, GST_MESSAGE_ERROR)) {
        gst_message_unref(error);
        ADD_FAILURE() << "an error of the pipeline";
        return;
      }
      std::this_thread::sleep_for(5ms);
    }
    for (auto& finding : findings_on(bus_)) findings.push_back(std::move(finding));
  }
  uint64_t checked() { return stat(clinfer_.get(), "verify-checked"); }
  GstElement* clinfer() { return clinfer_.get(); }

  std::vector<Handle<GstStructure>> findings;

 private:
  Pipeline pipeline_;
  const Handle<GstElement> clinfer_;
  GstBus* const bus_;
};

struct Fault {
  const char* name;
  Wrong what = Wrong::nothing;
  int which = 1;
  bool from_start = true;  // false: a sample is right before
  // Writes files with the fault, and returns properties with which it takes effect.
  std::function<std::string(const TemporaryFolder&)> files = {};
  // Makes the fault in frames.
  std::function<void(GstElement*)> in_frames = {};
};
std::ostream& operator<<(std::ostream& out, const Fault& fault) { return out << fault.name; }

Fault while_playing(const char* name, Wrong what, int which) { return {name, what, which, false}; }
Fault from_start(const char* name, Wrong what, int which) { return {name, what, which, true}; }
Fault in_files(const char* name, std::function<std::string(const TemporaryFolder&)> files) {
  return {name, Wrong::nothing, 1, true, std::move(files)};
}

// Overwrites each frame when the next one comes, as a source that ignores who still reads it.
void overwrite_frames(GstElement* clinfer) {
  using Memory = std::shared_ptr<GstMemory>;
  const auto look = [](GstPad*, GstPadProbeInfo* info, gpointer data) {
    auto& last = *static_cast<Memory*>(data);
    GstMapInfo to;
    if (last != nullptr && gst_memory_map(last.get(), &to, GST_MAP_READ)) {
      std::fill_n(const_cast<guint8*>(to.data), to.size, guint8{200});
      gst_memory_unmap(last.get(), &to);
    }
    last = Memory(gst_buffer_get_memory(GST_PAD_PROBE_INFO_BUFFER(info), 0),
                  [](GstMemory* memory) { gst_memory_unref(memory); });
    return GST_PAD_PROBE_OK;
  };
  const Handle<GstPad> pad(gst_element_get_static_pad(clinfer, "sink"));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, look, new Memory,
                    [](gpointer last) { delete static_cast<Memory*>(last); });
}

class VerifyFinds : public testing::TestWithParam<Fault> {
 protected:
  ~VerifyFinds() override {
    make_wrong(Wrong::nothing, 1);
    planted::forget_compiler();
  }
};

TEST_P(VerifyFinds, AFaultOfTheDevice) {
  const Fault& fault = GetParam();
  const TemporaryFolder folder;
  std::string properties = "verify=1 ";
  properties += fault.files ? fault.files(folder) : "cache-dir=\"\" config=PERSISTENT_KERNEL=NO";
  if (fault.from_start) make_wrong(fault.what, fault.which);
  Playing playing(properties);
  if (fault.in_frames) fault.in_frames(playing.clinfer());
  playing.play();
  if (!fault.from_start) {
    playing.wait([&] { return playing.checked() != 0; }, kMostSamples);
    EXPECT_EQ(playing.findings.size(), 0u);
    make_wrong(fault.what, fault.which);
  }
  playing.wait([&] { return !playing.findings.empty(); }, kMostSamples);
  EXPECT_TRUE(fault.what == Wrong::nothing || wrong_so_far() > 0) << "no fault was made";
  ASSERT_FALSE(playing.findings.empty())
      << "of " << playing.checked() << text_of(playing.clinfer(), "verify-problem");
  EXPECT_NE(field(playing.findings[0].get(), "what"), "");
  EXPECT_GT(stat(playing.clinfer(), "verify-differing"), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Planted, VerifyFinds,
    testing::Values(
        while_playing("EachLaunchDropped", Wrong::dropped, 1),
        while_playing("SecondLaunchDropped", Wrong::dropped, 2),
        while_playing("ThirdLaunchDropped", Wrong::dropped, 3),
        while_playing("FifthLaunchDropped", Wrong::dropped, 5),
        while_playing("HalfOfEachLaunch", Wrong::half, 1),
        while_playing("HalfOfSecondLaunch", Wrong::half, 2),
        while_playing("HalfOfThirdLaunch", Wrong::half, 3),
        from_start("ArgumentZero", Wrong::argument, 0),
        from_start("ArgumentOne", Wrong::argument, 1),
        from_start("ArgumentTwo", Wrong::argument, 2),
        from_start("ArgumentThree", Wrong::argument, 3),
        from_start("EachWeight", Wrong::weights, 1), from_start("TenthWeight", Wrong::weights, 10),
        from_start("HundredthWeight", Wrong::weights, 100),
        while_playing("NanInResults", Wrong::nan, 7),
        while_playing("InfinityInResults", Wrong::infinite, 5),
        while_playing("ScaledResults", Wrong::scaled, 3),
        while_playing("ShiftedResults", Wrong::shifted, 4),
        in_files("OverflowInF16", planted::overflow_in_f16),
        in_files("OtherWeightsInTheCache", planted::cached_graph),
        in_files("OtherProgramsInTheCache", planted::cached_programs),
        in_files("WrongCustomLayer",
                 [](const TemporaryFolder& folder) { return planted::custom_layer(folder, true); }),
        in_files("WrongKernelOfATuningRecord", planted::tuned_kernel),
        Fault{"FrameOverwrittenWhileInUse", Wrong::nothing, 1, true,
              [](const TemporaryFolder&) {
                return std::string("batch-size=2 batch-timeout=3600000");
              },
              overwrite_frames}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Verify, NamesTheLayerOnTheNextSample) {
  make_wrong(Wrong::weights, 10);
  Playing playing("verify=1 cache-dir=\"\" config=PERSISTENT_KERNEL=NO");
  playing.play();
  playing.wait([&] { return text_of(playing.clinfer(), "verify-layer") != ""; }, kMostSamples);
  make_wrong(Wrong::nothing, 1);
  EXPECT_NE(text_of(playing.clinfer(), "verify-layer"), "");
}

TEST(Verify, NamesACustomLayer) {
  const TemporaryFolder folder;
  Playing playing("verify=1 " + planted::custom_layer(folder, true));
  playing.play();
  playing.wait([&] { return text_of(playing.clinfer(), "verify-layer") != ""; }, kMostSamples);
  EXPECT_EQ(text_of(playing.clinfer(), "verify-layer"), "blocks")
      << text_of(playing.clinfer(), "verify-problem");
}

TEST(Verify, TellsNothingOfADeviceThatIsRight) {
  for (const char* properties :
       {"verify=1", "verify=2 batch-size=2", "verify=1 tiles=2x1", "verify=1 inference-when=motion",
        "verify=1 throughput-streams=2", "verify=1 regions=\"0.1,0.1,0.8,0.8\"",
        "verify=1 config=INFERENCE_PRECISION=f16"}) {
    Playing playing(properties);
    playing.play();
    playing.wait([] { return false; }, 8);
    EXPECT_GE(playing.checked(), 8u) << properties;
    EXPECT_EQ(stat(playing.clinfer(), "verify-differing"), 0u) << properties;
    for (const auto& finding : playing.findings)
      ADD_FAILURE() << properties << ": " << field(finding.get(), "what");
  }
}

// The host computes the operation that the user's kernel replaces.
TEST(Verify, ChecksCustomLayersOfKnownOperations) {
  const TemporaryFolder folder;
  Playing playing("verify=1 " + planted::custom_layer(folder, false));
  playing.play();
  playing.wait([] { return false; }, 3);
  EXPECT_GE(playing.checked(), 3u) << text_of(playing.clinfer(), "verify-problem");
  EXPECT_EQ(playing.findings.size(), 0u);
}

TEST(Verify, IsOffUnlessWanted) {
  Harness harness;
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "red");
  const Handle<GstStructure> stats = stats_of(harness.clinfer());
  EXPECT_FALSE(gst_structure_has_field(stats.get(), "verify-checked"));
}

// Waits for so many samples, while frames are pushed, and returns what was found.
std::vector<Handle<GstStructure>> found_on(Harness& harness, Rgb color, uint64_t samples,
                                           int number = 1000) {
  std::vector<Handle<GstStructure>> findings;
  const auto until = Clock::now() + 120s;
  bool last = false;
  do {
    last = stat(harness.clinfer(), "verify-checked") >= samples;
    EXPECT_EQ(harness.push(color, number++), GST_FLOW_OK);
    harness.pull();
    for (auto& finding : findings_on(harness.bus())) findings.push_back(std::move(finding));
    std::this_thread::sleep_for(5ms);
  } while (!last && Clock::now() < until);
  return findings;
}

// The first frame waits in the batch while its memory gets another picture.
TEST(Verify, FindsAFrameThatWasOverwritten) {
  Harness harness(Harness::clinfer_launch("verify=1 batch-size=2 batch-timeout=3600000"));
  harness.set_caps("NV12", 64, 48);
  GstBuffer* const frame = frame_of(harness.info(), kRed, 0);
  GstMemory* const memory = gst_buffer_get_memory(frame, 0);
  ASSERT_EQ(gst_harness_push(harness.get(), frame), GST_FLOW_OK);
  {
    const Handle<GstBuffer> other(frame_of(harness.info(), kBlue, 0));
    GstMapInfo from;
    ASSERT_TRUE(gst_buffer_map(other.get(), &from, GST_MAP_READ));
    // A writer that ignores who still reads the memory.
    GstMapInfo to;
    ASSERT_TRUE(gst_memory_map(memory, &to, GST_MAP_READ));
    std::copy_n(from.data, to.size, const_cast<guint8*>(to.data));
    gst_memory_unmap(memory, &to);
    gst_buffer_unmap(other.get(), &from);
  }
  gst_memory_unref(memory);
  ASSERT_EQ(harness.push(kBlue, 1), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "blue");
  harness.pull();
  std::vector<Handle<GstStructure>> findings;
  const auto until = Clock::now() + 120s;
  for (int number = 2; findings.empty() && Clock::now() < until; number += 2) {
    for (int i = 0; i < 2; ++i) ASSERT_EQ(harness.push(kBlue, number + i), GST_FLOW_OK);
    for (int i = 0; i < 2; ++i) harness.pull();
    findings = findings_on(harness.bus());
    std::this_thread::sleep_for(5ms);
  }
  ASSERT_FALSE(findings.empty());
  guint64 timestamp = 1;
  EXPECT_TRUE(gst_structure_get_uint64(findings[0].get(), "timestamp", &timestamp));
  EXPECT_EQ(timestamp, 0u);
}

TEST(Verify, WorksWithASharedModelAndCountsForEachElement) {
  const std::string launch = Harness::clinfer_launch("model-instance-id=verified verify=1");
  Harness one(launch), other(launch);
  for (Harness* harness : {&one, &other}) {
    harness->set_caps("NV12", 64, 48);
    EXPECT_TRUE(found_on(*harness, kGreen, 3).empty());
    EXPECT_GE(stat(harness->clinfer(), "verify-checked"), 3u);
    EXPECT_EQ(stat(harness->clinfer(), "verify-differing"), 0u);
  }
}

TEST(Verify, BeginsWithTheFullTier) {
  const ColdCaches cold;
  Harness harness(Harness::clinfer_launch(cold.properties() + " verify=1"));
  harness.set_caps("NV12", 64, 48);
  const auto until = Clock::now() + 300s;
  int number = 0;
  while (text_of(harness.clinfer(), "tier") != "full" && Clock::now() < until) {
    ASSERT_EQ(harness.push(kRed, number++), GST_FLOW_OK);
    harness.pull();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(found_on(harness, kRed, 2, number).empty());
  EXPECT_EQ(stat(harness.clinfer(), "verify-differing"), 0u);
}

TEST(Verify, StopsWithinASecond) {
  Playing playing("verify=1");
  playing.play();
  playing.wait([&] { return playing.checked() != 0; }, kMostSamples);
  const auto begun = Clock::now();
  g_object_set(playing.clinfer(), "verify", 0, nullptr);
  gst_element_set_state(playing.clinfer(), GST_STATE_READY);
  EXPECT_LT(Clock::now() - begun, 30s);  // one on an idle machine
}

TEST(Verify, KeepsToItsShareOfACore) {
  const auto processor_time = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return Pace::Seconds(std::chrono::seconds(time.tv_sec) +
                         std::chrono::nanoseconds(time.tv_nsec));
  };
  Pace pace(0.05, 10ms);
  pace.begin();
  std::stop_source stop;
  const auto before = processor_time();
  const auto begun = Clock::now();
  volatile unsigned work = 0;
  while (Clock::now() - begun < 2s) {
    for (int i = 0; i < 100000; ++i) work = work + 1;
    pace.wait(stop.get_token());
  }
  const Pace::Seconds used = processor_time() - before, passed = Clock::now() - begun;
  EXPECT_LT(used.count(), 0.05 * passed.count() + 0.03);
  stop.request_stop();
  EXPECT_THROW(pace.wait(stop.get_token()), Error);
}

}  // namespace
}  // namespace clinfer
