// Endurance: streams that share a model, with flushes, seeks, changes of caps and of properties at
// random. Each frame carries its number as a pattern that the network reads back, so that no frame
// can get another's result unseen.
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/gst/watermark.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;

// One stream: what comes out, checked on the way.
class Endured {
 public:
  Endured(unsigned seed, const std::string& properties)
      : harness_("clinfer post-process=none color-format=gray model=" +
                 testing_models::blocks_model() + " " + properties),
        random_(seed) {
    gst_pad_set_element_private(harness_.get()->sinkpad, this);
    gst_pad_set_chain_function(harness_.get()->sinkpad, check);
  }

  void run(int frames) {
    new_caps();
    for (int i = 0; i < frames; ++i) {
      const unsigned what = random_() % 200;
      if (what < 3)
        flush();
      else if (what < 8)
        new_caps();
      else if (what < 12)
        change_properties();
      else if (what < 20)
        gst_harness_push_event(
            harness_.get(),
            gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty("mark")));
      else if (what < 22)
        gst_harness_push_event(harness_.get(), gst_event_new_gap(0, GST_MSECOND));
      ASSERT_EQ(
          gst_harness_push(harness_.get(), watermarked(harness_.info(), next_++ % (1u << kBits))),
          GST_FLOW_OK);
    }
    gst_harness_push_event(harness_.get(), gst_event_new_eos());
    while (GstEvent* event = gst_harness_pull_event(harness_.get())) {
      const bool eos = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
      gst_event_unref(event);
      if (eos) return;
    }
    FAIL() << "no end of stream";
  }

  std::atomic<int> right{0}, wrong{0}, uninferred{0}, out_of_order{0};

 private:
  static GstFlowReturn check(GstPad* pad, GstObject*, GstBuffer* buffer) {
    auto* self = static_cast<Endured*>(GST_PAD_ELEMENT_PRIVATE(pad));
    const auto number = static_cast<int>(GST_BUFFER_PTS(buffer) / GST_MSECOND);
    const int seen = number_in(buffer);
    if (seen < 0)
      ++self->uninferred;
    else
      ++(seen == number ? self->right : self->wrong);
    if (number <= self->last_.exchange(number)) ++self->out_of_order;
    gst_buffer_unref(buffer);
    return GST_FLOW_OK;
  }

  // As a seek does it: flush, then a new segment; now and then a flush while frames are pushed.
  void flush() {
    gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
    if (random_() % 2) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 1500));
    gst_harness_push_event(harness_.get(), gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness_.get(), gst_event_new_segment(&segment));
  }

  void new_caps() {
    static const char* const kFormats[] = {"NV12", "I420", "RGB", "GRAY8", "BGRx", "YUY2"};
    harness_.set_caps(kFormats[random_() % 6], 32 + 4 * static_cast<int>(random_() % 40),
                      32 + 4 * static_cast<int>(random_() % 40));
  }

  void change_properties() {
    GstElement* net = harness_.clinfer();
    g_object_set(net, "inference-interval", 1 + random_() % 3, "batch-timeout",
                 static_cast<int>(random_() % 4), "qos", static_cast<gboolean>(random_() % 2),
                 "threshold", 0.5, nullptr);
  }

  Harness harness_;
  std::mt19937 random_;
  unsigned next_ = 0;
  std::atomic<int> last_{-1};
};

TEST(Endurance, NoFrameGetsTheResultOfAnother) {
  const int frames = frames_wanted();
  constexpr int kStreams = 4;
  const auto round = [&](int number, int count) {
    std::vector<std::unique_ptr<Endured>> streams;
    for (int s = 0; s < kStreams; ++s)
      streams.push_back(std::make_unique<Endured>(
          static_cast<unsigned>(number * 100 + s),
          s == 3 ? "nireq=2"  // one by itself
                 : "model-instance-id=endurance batch-size=3 nireq=2 batch-timeout=2"));
    std::vector<std::thread> threads;
    for (auto& stream : streams) threads.emplace_back([&] { stream->run(count / kStreams); });
    for (std::thread& thread : threads) thread.join();
    int right = 0;
    for (auto& stream : streams) {
      EXPECT_EQ(stream->wrong, 0);
      EXPECT_EQ(stream->out_of_order, 0);
      right += stream->right;
    }
    EXPECT_GT(right, count / 5);
  };
  // Rounds of new pipelines, so that starting and stopping is in it; the first ones settle memory.
  const int rounds = std::max(4, frames / 10000);
  std::vector<long> allocated, resident;
  for (int i = 0; i < rounds; ++i) {
    round(i, frames / rounds);
    allocated.push_back(allocated_kib());
    resident.push_back(resident_kib());
  }
  std::printf("%d frames; KiB after each round, allocated (resident):", frames);
  for (size_t i = 0; i < allocated.size(); ++i)
    std::printf(" %ld (%ld)", allocated[i], resident[i]);
  std::printf("\n");
  if (rounds >= 8) {
    EXPECT_LT(allocated.back(), allocated[allocated.size() / 2] + 1024);
  }
}

}  // namespace
}  // namespace clinfer
