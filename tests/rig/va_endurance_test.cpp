// Endurance on the rig: pipelines of VA surfaces and DMA-BUFs that share models, with seeks,
// pauses, changes of caps and of properties at random, while the rig makes surfaces, imports,
// acquires and launches fail, and takes the device away. Each frame carries its number, which the
// network reads back. A frame that fails is copied with one warning, or ends its pipeline with one
// error, and the pipeline starts again.
#include <gst/base/gstbasesrc.h>

#include <atomic>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "gst/infer/clinfer.h"
#include "tests/gst/watermark.h"
#include "tests/rig/counters.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kLastSeek = 60000;  // numbers have 16 bits

// A pipeline that plays until `frames` frames came out, however often it has to be started for
// that.
class Played {
 public:
  Played(unsigned seed, const std::string& upload, const std::string& properties, bool steady)
      : pipeline_("appsrc name=src format=time stream-type=seekable max-buffers=2 ! " + upload +
                  " ! clinfer name=net first-tier=false post-process=none color-format=gray "
                  "resize-mode=stretch mean=0 scale=1 model=" +
                  testing_models::blocks_model() + " " + properties +
                  " ! fakesink name=sink sync=false enable-last-sample=false"),
        random_(seed),
        steady_(steady) {
    source_ = gst_bin_get_by_name(GST_BIN(pipeline_.element), "src");
    net_ = gst_bin_get_by_name(GST_BIN(pipeline_.element), "net");
    GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline_.element), "sink");
    GstPad* pad = gst_element_get_static_pad(sink, "sink");
    gst_pad_add_probe(
        pad,
        static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_BOTH |
                                     GST_PAD_PROBE_TYPE_EVENT_FLUSH),
        check, this, nullptr);
    gst_object_unref(pad);
    gst_object_unref(sink);
    g_signal_connect_swapped(source_, "need-data", G_CALLBACK(feed), this);
    g_signal_connect_swapped(source_, "seek-data", G_CALLBACK(seek), this);
  }
  ~Played() {
    gst_element_set_state(pipeline_.element, GST_STATE_NULL);
    gst_object_unref(net_);
    gst_object_unref(source_);
  }

  // Returns the number of starts after which the pipeline had come to its end; more than `most`
  // when it never did.
  int run(int frames, int most) {
    wanted_ = frames;
    for (int start = 1; start <= most; ++start) {
      new_caps(random_);
      gst_element_set_state(pipeline_.element, GST_STATE_PLAYING);
      const bool ended = follow();
      // The compiled model goes in NULL only.
      gst_element_set_state(pipeline_.element, GST_STATE_READY);
      expect_no_more();
      if (random_() % 2) gst_element_set_state(pipeline_.element, GST_STATE_NULL);
      if (ended) return start;
    }
    return most + 1;
  }

  guint64 copied() const { return copied_; }

  std::atomic<int> right{0}, wrong{0}, uninferred{0}, out_of_order{0};
  std::vector<std::string> errors, warnings;  // of clinfer
  std::vector<std::string> other_errors;      // of the elements before it, where they were first

 private:
  // ---- the source's threads ---------------------------------------------------------------------
  static void feed(Played* self) {
    const std::lock_guard lock(self->mutex_);
    GstFlowReturn flow = GST_FLOW_OK;
    if (self->right + self->wrong + self->uninferred >= self->wanted_) {
      g_signal_emit_by_name(self->source_, "end-of-stream", &flow);
      return;
    }
    ++self->made_;
    if (!self->steady_ && self->made_ % 97 == 0) self->new_caps(self->feed_random_);
    GstBuffer* buffer = watermarked(self->info_, self->next_++);
    g_signal_emit_by_name(self->source_, "push-buffer", buffer, &flow);
    gst_buffer_unref(buffer);
  }
  static gboolean seek(Played* self, guint64 position) {
    const std::lock_guard lock(self->mutex_);
    self->next_ = static_cast<unsigned>(position / GST_MSECOND);
    return TRUE;
  }
  void new_caps(std::mt19937& random) {
    // Odd sizes have an alias over each surface.
    const int width = steady_ ? 61 : 32 + static_cast<int>(random() % 160);
    const int height = steady_ ? 47 : 32 + static_cast<int>(random() % 160);
    gst_video_info_set_format(&info_, GST_VIDEO_FORMAT_NV12, static_cast<guint>(width),
                              static_cast<guint>(height));
    GST_VIDEO_INFO_FPS_N(&info_) = 25;
    GstCaps* caps = gst_video_info_to_caps(&info_);
    g_object_set(source_, "caps", caps, nullptr);
    gst_caps_unref(caps);
  }

  // ---- the sink's -------------------------------------------------------------------------------
  static GstPadProbeReturn check(GstPad*, GstPadProbeInfo* info, gpointer data) {
    auto* self = static_cast<Played*>(data);
    if ((GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) == 0) {
      const GstEventType type = GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info));
      if (type == GST_EVENT_FLUSH_STOP || type == GST_EVENT_SEGMENT) self->last_ = -1;
      return GST_PAD_PROBE_OK;
    }
    GstBuffer* buffer = gst_pad_probe_info_get_buffer(info);
    const auto number = static_cast<int>(GST_BUFFER_PTS(buffer) / GST_MSECOND);
    const int seen = number_in(buffer);
    if (seen < 0)
      ++self->uninferred;
    else
      ++(seen == (number & 0xffff) ? self->right : self->wrong);
    if (number <= self->last_.exchange(number)) ++self->out_of_order;
    return GST_PAD_PROBE_OK;
  }

  // ---- the application's ------------------------------------------------------------------------
  // Until the end (true) or an error, with something done to the pipeline now and then.
  bool follow() {
    GstBus* bus = gst_element_get_bus(pipeline_.element);
    const auto kinds =
        static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS | GST_MESSAGE_WARNING);
    bool ended = false, failed = false;
    told_anew_ = false;
    auto quiet_since = std::chrono::steady_clock::now();
    int seen = right + uninferred;
    while (!ended && !failed) {
      GstMessage* message =
          gst_bus_timed_pop_filtered(bus, (1 + random_() % 8) * GST_MSECOND, kinds);
      if (message == nullptr) {
        told_anew_ = !steady_ && disturb();
        const int now_seen = right + uninferred;
        if (std::exchange(seen, now_seen) != now_seen)
          quiet_since = std::chrono::steady_clock::now();
        if (std::chrono::steady_clock::now() - quiet_since > 60s) {
          errors.emplace_back("nothing happened for a minute");
          failed = true;
        }
        continue;
      }
      ended = GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
      GError* error = nullptr;
      if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_WARNING) {
        gst_message_parse_warning(message, &error, nullptr);
        if (std::string(error->message).rfind("there is no GPU: ", 0) != 0)
          warnings.emplace_back(error->message);
      } else if (!ended) {
        failed = true;
        gst_message_parse_error(message, &error, nullptr);
        if (GST_MESSAGE_SRC(message) == GST_OBJECT(net_))
          errors.emplace_back(error->message);
        else
          other_errors.emplace_back(std::string(GST_MESSAGE_SRC_NAME(message)) + ": " +
                                    error->message);
      }
      g_clear_error(&error);
      gst_message_unref(message);
    }
    count_copies();
    gst_object_unref(bus);
    return ended;
  }

  // clinfer posts only the first of several errors of one failure; but it posts again after a
  // flush, which may have come between the error and this reading of the bus.
  void expect_no_more() {
    GstBus* bus = gst_element_get_bus(pipeline_.element);
    while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR)) {
      if (GST_MESSAGE_SRC(message) == GST_OBJECT(net_) && !std::exchange(told_anew_, false)) {
        GError* error = nullptr;
        gst_message_parse_error(message, &error, nullptr);
        errors.emplace_back(std::string("one more: ") + error->message);
        g_error_free(error);
      }
      gst_message_unref(message);
    }
    gst_object_unref(bus);
  }

  // Whether it has flushed.
  bool disturb() {
    const unsigned what = random_() % 16;
    bool flushed = false;
    GstState state = GST_STATE_NULL;
    // One that does not flush waits for the frame under way, and that for the state change.
    const bool playing =
        gst_element_get_state(pipeline_.element, &state, nullptr, 0) == GST_STATE_CHANGE_SUCCESS &&
        state == GST_STATE_PLAYING;
    if (what < 3) {
      const auto flags = what == 0 && playing ? GST_SEEK_FLAG_NONE : GST_SEEK_FLAG_FLUSH;
      flushed = flags == GST_SEEK_FLAG_FLUSH;
      gst_element_seek(pipeline_.element, 1, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET,
                       static_cast<gint64>(random_() % kLastSeek * GST_MSECOND), GST_SEEK_TYPE_NONE,
                       0);
    } else if (what < 6) {
      g_object_set(net_, "inference-interval", 1 + random_() % 3, "batch-timeout",
                   static_cast<int>(random_() % 4), "qos", static_cast<gboolean>(random_() % 2),
                   "threshold", 0.5, nullptr);
    } else if (what == 6) {
      gst_element_set_state(pipeline_.element, GST_STATE_PAUSED);
      gst_element_set_state(pipeline_.element, GST_STATE_PLAYING);
    } else if (what == 7) {
      gst_element_send_event(source_, gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM,
                                                           gst_structure_new_empty("mark")));
    }
    return flushed;
  }

  void count_copies() {
    GstStructure* stats = nullptr;
    g_object_get(net_, "stats", &stats, nullptr);
    guint64 inferred = 0, zero_copy = 0;
    gst_structure_get_uint64(stats, "inferred", &inferred);
    gst_structure_get_uint64(stats, "zero-copy-frames", &zero_copy);
    copied_ += inferred - std::min(inferred, zero_copy);
    gst_structure_free(stats);
  }

  Pipeline pipeline_;
  GstElement *source_, *net_;
  std::mt19937 random_, feed_random_{7};
  const bool steady_;
  bool told_anew_ = false;  // an error before the last flush, read after it, may be followed by one

  std::mutex mutex_;
  GstVideoInfo info_;
  int wanted_ = 0, made_ = 0;
  unsigned next_ = 0;
  std::atomic<int> last_{-1};
  guint64 copied_ = 0;
};

struct Fault {
  const char* what;  // as in RIG_FAIL; "" for none
  enum class Ends { never, with_clinfers_error, with_any_error } ends;
  unsigned least, spread;  // every how manieth fails
};

struct Totals {
  int frames = 0, errors = 0, warnings = 0;
  guint64 copied = 0;
};

// Plays pipelines under one fault.
void endure(const Fault& fault, unsigned seed, int frames, Totals& totals) {
  std::mt19937 random(seed);
  const bool steady = std::string(fault.what) == "surface";
  const std::string setting =
      std::string(fault.what) + ":" + std::to_string(fault.least + random() % fault.spread);
  const Setting failing("RIG_FAIL", *fault.what != '\0' ? setting.c_str() : "");
  // GStreamer 1.22 loses surfaces when a pool cannot make its first ones: one pipeline only, left
  // in peace, of whose surfaces the aliases fail.
  const unsigned count = steady ? 1 : 4;
  std::vector<std::unique_ptr<Played>> pipelines;
  for (unsigned i = 0; i < count; ++i)
    pipelines.push_back(std::make_unique<Played>(
        seed * 10 + i, i == 2 ? "dmabuftestupload padding=16" : "vatestupload",
        i % 4 == 3 ? "nireq=2 throughput-streams=2"
        : steady   ? "nireq=1"
                   : "model-instance-id=rig batch-size=3 nireq=2 batch-timeout=2",
        steady));
  std::vector<int> starts(count);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      starts[i] = pipelines[i]->run(frames / static_cast<int>(count), steady ? 1 : 1000);
    });
  for (std::thread& thread : threads) thread.join();
  for (unsigned i = 0; i < count; ++i) {
    const Played& played = *pipelines[i];
    const std::string what = setting + ", pipeline " + std::to_string(i);
    EXPECT_EQ(played.wrong, 0) << what;
    EXPECT_EQ(played.out_of_order, 0) << what;
    EXPECT_GT(played.right, 0) << what;
    totals.frames += played.right + played.uninferred;
    totals.errors += static_cast<int>(played.errors.size() + played.other_errors.size());
    totals.warnings += static_cast<int>(played.warnings.size());
    totals.copied += played.copied();
    if (fault.ends != Fault::Ends::with_any_error) {
      EXPECT_TRUE(played.other_errors.empty())
          << what << ": clinfer's own comes first, not " << played.other_errors[0];
      EXPECT_EQ(static_cast<int>(played.errors.size()), starts[i] - 1) << what;
      EXPECT_LE(starts[i], 1000) << what;
    }
    if (fault.ends == Fault::Ends::never) {
      EXPECT_EQ(starts[i], 1) << what;
      EXPECT_LE(played.warnings.size(), 1u) << what;
      EXPECT_EQ(played.copied() > 0, !played.warnings.empty()) << what;
    }
    EXPECT_TRUE(*fault.what != '\0' || played.copied() == 0) << what;
    for (const std::string& error : played.errors)
      EXPECT_TRUE(error.find("CL_") != std::string::npos && !error.starts_with("one more"))
          << what << ": " << error;
    for (const std::string& warning : played.warnings)
      EXPECT_NE(warning.find("copied through system memory"), std::string::npos)
          << what << ": " << warning;
  }
}

TEST(VaEndurance, FaultsAreTellableAndPass) {
  using Ends = Fault::Ends;
  const Fault faults[] = {{"", Ends::never, 1, 1},
                          {"import", Ends::never, 3, 20},
                          {"acquire", Ends::never, 3, 60},
                          {"surface", Ends::with_any_error, 8, 2},
                          {"enqueue", Ends::with_clinfers_error, 60, 120},
                          {"device", Ends::with_clinfers_error, 60, 120}};
  constexpr int kFaults = static_cast<int>(std::size(faults));
  const int frames = frames_wanted();
  const int rounds = std::max(1, frames / 10000) * kFaults;
  Totals totals;
  std::vector<long> resident, allocated, files;
  for (int round = 0; round < rounds; ++round) {
    endure(faults[round % kFaults], static_cast<unsigned>(round), frames / rounds, totals);
    EXPECT_EQ(va_counters().surfaces_alive, 0);
    EXPECT_EQ(cl_counters().images_alive, 0);
    EXPECT_EQ(cl_counters().buffers_alive, 0);
    EXPECT_EQ(cl_counters().acquired, cl_counters().released);
    EXPECT_EQ(va_counters().misuse + cl_counters().misuse, 0);
    if (round % kFaults != kFaults - 1) continue;
    resident.push_back(resident_kib());
    allocated.push_back(allocated_kib());
    files.push_back(open_files());
  }
  std::printf("%d frames in %d rounds: %d errors, %d warnings, %lu frames copied\n", totals.frames,
              rounds, totals.errors, totals.warnings, static_cast<unsigned long>(totals.copied));
  std::printf("KiB after all faults in turn, allocated (resident):");
  for (size_t i = 0; i < resident.size(); ++i) std::printf(" %ld (%ld)", allocated[i], resident[i]);
  std::printf("; open files: %ld, %ld at the end\n", files.front(), files.back());
  EXPECT_EQ(files.back(), files.front());
  // The first rounds fill what is kept: programs, types, GLib's slices.
  if (allocated.size() >= 8) {
    EXPECT_LT(allocated.back(), allocated[allocated.size() / 2] + 1024);
  }
}

}  // namespace
}  // namespace clinfer
