// clinfer through GstHarness: results, order, flushes, end of stream, flow, queries and messages.
#include <gst/allocators/gstdmabuf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "gst/frames/mapped_frame.h"
#include "tests/gst/harness.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using testing_models::color_model;

// ---- results ------------------------------------------------------------------------------------

TEST(Clinfer, SeesTheSameInEveryFormatAndSize) {
  const Handle<GstCaps> caps(
      gst_caps_from_string("video/x-raw, format=(string)" CLINFER_VIDEO_FORMATS));
  const GValue* formats = gst_structure_get_value(gst_caps_get_structure(caps.get(), 0), "format");
  Harness harness;
  for (guint i = 0; i < gst_value_list_get_size(formats); ++i) {
    const std::string format = g_value_get_string(gst_value_list_get_value(formats, i));
    const int width = 33 + static_cast<int>(i), height = 17 + static_cast<int>(i % 3);
    harness.set_caps(format.c_str(), width, height);
    for (const auto& [color, name] : {std::pair{kBlue, "blue"}, {kGreen, "green"}, {kRed, "red"}}) {
      ASSERT_EQ(harness.push(color, 0), GST_FLOW_OK);
      const auto out = harness.pull();
      if (format == "GRAY8")  // no colour: all channels are the same
        EXPECT_NEAR(read_results(out.get())[0].classifications[0].confidence, 1.0 / 3, 1e-3);
      else
        EXPECT_EQ(answer_of(out.get()), name) << format << " " << width << "x" << height;
    }
  }
}

TEST(Clinfer, FollowsStridesOffsetsAndCrop) {
  Harness harness;
  harness.set_caps("BGR", 20, 10);
  // A larger frame: green inside the crop, red outside.
  GstVideoInfo big;
  gst_video_info_set_format(&big, GST_VIDEO_FORMAT_BGR, 60, 40);
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 40 * 200 + 17, nullptr);
  gsize offsets[4] = {17};
  gint strides[4] = {200};
  gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_BGR, 60, 40, 1,
                                 offsets, strides);
  GstVideoFrame frame;
  ASSERT_TRUE(gst_video_frame_map(&frame, &big, buffer, GST_MAP_WRITE));
  Canvas canvas(&frame, 0, 0, 60, 40);
  canvas.fill(0, 0, 60, 40, kRed);
  canvas.fill(13, 9, 20, 10, kGreen);
  gst_video_frame_unmap(&frame);
  GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(buffer);
  crop->x = 13, crop->y = 9, crop->width = 20, crop->height = 10;
  ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  const auto out = harness.pull();
  EXPECT_EQ(answer_of(out.get()), "green");
  EXPECT_NEAR(static_cast<double>(read_results(out.get())[0].classifications[0].confidence), 1,
              1e-3);
}

// A frame of one colour in memory of a driver, here a memfd: padded as decoders pad.
Handle<GstBuffer> dmabuf_of(GstAllocator* allocator, const GstVideoInfo& info, Rgb color) {
  gint strides[4] = {256, 256};
  gsize offsets[4] = {512, 512 + 256 * 64};
  const gsize size = offsets[1] + 256 * 32;
  const int fd = memfd_create("dmabuf", MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(size)), 0);
  Handle<GstBuffer> buffer(gst_buffer_new());
  gst_buffer_append_memory(buffer.get(), gst_dmabuf_allocator_alloc(allocator, fd, size));
  gst_buffer_add_video_meta_full(buffer.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12,
                                 static_cast<guint>(GST_VIDEO_INFO_WIDTH(&info)),
                                 static_cast<guint>(GST_VIDEO_INFO_HEIGHT(&info)), 2, offsets,
                                 strides);
  GstVideoFrame frame;
  EXPECT_TRUE(gst_video_frame_map(&frame, &info, buffer.get(), GST_MAP_WRITE));
  Canvas(&frame, 0, 0, GST_VIDEO_FRAME_WIDTH(&frame), GST_VIDEO_FRAME_HEIGHT(&frame))
      .fill(0, 0, 1 << 20, 1 << 20, color);
  gst_video_frame_unmap(&frame);
  return buffer;
}

TEST(Clinfer, TakesLinearFramesOfDmabufAndSaysThatItMapsThem) {
  std::vector<std::string> kinds = {"format=NV12"};
#if GST_CHECK_VERSION(1, 24, 0)
  kinds.push_back("format=DMA_DRM,drm-format=NV12");
#endif
  GstAllocator* allocator = gst_dmabuf_allocator_new();
  GstVideoInfo info;
  gst_video_info_set_format(&info, GST_VIDEO_FORMAT_NV12, 200, 50);
  for (const std::string& kind : kinds) {
    Harness harness(Harness::clinfer_launch() + " ! cloverlay");
    const std::string caps =
        "video/x-raw(memory:DMABuf)," + kind + ",width=200,height=50,framerate=25/1";
    gst_harness_set_src_caps_str(harness.get(), caps.c_str());
    for (const auto& [color, name] : {std::pair{kBlue, "blue"}, {kGreen, "green"}, {kRed, "red"}}) {
      ASSERT_EQ(gst_harness_push(harness.get(), dmabuf_of(allocator, info, color).release()),
                GST_FLOW_OK);
      EXPECT_EQ(answer_of(harness.pull().get()), name) << kind;
    }
    const Handle<GstStructure> stats = stats_of(harness.clinfer());
    EXPECT_STREQ(gst_structure_get_string(stats.get(), "path"), "system memory");
    EXPECT_NE(std::string(gst_structure_get_string(stats.get(), "path-reason")).find("DMABuf"),
              std::string::npos);
  }
  gst_object_unref(allocator);
}

// A decoder that could leave its frames in memory of CUDA gives a build that does not take it system
// memory.
TEST(Clinfer, SaysThatItIsBuiltWithoutMemoryOfCuda) {
  Harness harness(Harness::clinfer_launch());
  GstPad* sink = gst_element_get_static_pad(harness.clinfer(), "sink");
  const Handle<GstCaps> taken(gst_pad_get_pad_template_caps(sink));
  const Handle<char> names(gst_caps_to_string(taken.get()));
  if (std::string(names.get()).find("memory:CUDAMemory") != std::string::npos) {
    gst_object_unref(sink);
    GTEST_SKIP() << "this build takes it";
  }
  GstPad* decoder = gst_pad_get_peer(sink);
  gst_pad_add_probe(
      decoder, GST_PAD_PROBE_TYPE_QUERY_UPSTREAM,
      [](GstPad*, GstPadProbeInfo* info, gpointer) {
        GstQuery* query = GST_PAD_PROBE_INFO_QUERY(info);
        if (GST_QUERY_TYPE(query) != GST_QUERY_CAPS) return GST_PAD_PROBE_OK;
        const Handle<GstCaps> caps(
            gst_caps_from_string("video/x-raw(memory:CUDAMemory),format=NV12;video/x-raw"));
        gst_query_set_caps_result(query, caps.get());
        return GST_PAD_PROBE_HANDLED;
      },
      nullptr, nullptr);
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "red");
  const Handle<GstStructure> stats = stats_of(harness.clinfer());
  EXPECT_STREQ(gst_structure_get_string(stats.get(), "path"), "system memory");
  EXPECT_NE(
      std::string(gst_structure_get_string(stats.get(), "path-reason")).find("GStreamer 1.24"),
      std::string::npos);
  gst_object_unref(decoder);
  gst_object_unref(sink);
}

TEST(Clinfer, RunsEveryNthFrame) {
  Harness harness(Harness::clinfer_launch("inference-interval=3"));
  harness.set_caps("NV12", 64, 48);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    const auto out = harness.pull();
    EXPECT_EQ(answer_of(out.get()), i % 3 == 0 ? "red" : "skipped") << i;
  }
  const Handle<GstStructure> stats = stats_of(harness.clinfer());
  guint64 in = 0, out = 0, inferred = 0, skipped = 0;
  gst_structure_get(stats.get(), "frames-in", G_TYPE_UINT64, &in, "frames-out", G_TYPE_UINT64, &out,
                    "inferred", G_TYPE_UINT64, &inferred, "skipped", G_TYPE_UINT64, &skipped,
                    nullptr);
  EXPECT_EQ(in, 10u);
  EXPECT_EQ(out, 10u);
  EXPECT_EQ(inferred, 4u);
  EXPECT_EQ(skipped, 6u);
  // As `clinfer heads` prints it.
  EXPECT_NE(std::string(gst_structure_get_string(stats.get(), "interpretation")).find("\nhead "),
            std::string::npos);
  gdouble p50 = 0;
  EXPECT_TRUE(gst_structure_get_double(stats.get(), "infer-p50-ms", &p50));
  EXPECT_GT(p50, 0);
}

TEST(Clinfer, LeavesSharedBuffersAlone) {
  Harness harness;
  harness.set_caps("NV12", 64, 48);
  const Handle<GstBuffer> shared(frame_of(harness.info(), kBlue, 0));
  ASSERT_EQ(gst_harness_push(harness.get(), gst_buffer_ref(shared.get())), GST_FLOW_OK);
  const auto out = harness.pull();
  EXPECT_NE(out.get(), shared.get());
  EXPECT_EQ(answer_of(out.get()), "blue");
  EXPECT_EQ(answer_of(shared.get()), "no result");
  EXPECT_EQ(gst_buffer_peek_memory(out.get(), 0), gst_buffer_peek_memory(shared.get(), 0));
  const GstParentBufferMeta* parent = gst_buffer_get_parent_buffer_meta(out.get());
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(parent->buffer, shared.get());
}

TEST(Clinfer, TwoInARowEachAddTheirs) {
  Harness harness(Harness::clinfer_launch("name=first") +
                  " ! clinfer name=second model=" + color_model("other", 8) + " labels=b,g,r");
  harness.set_caps("RGB", 31, 21);
  ASSERT_EQ(harness.push(kGreen, 0), GST_FLOW_OK);
  const auto out = harness.pull();
  const auto results = read_results(out.get());
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].classifications[0].label, "green");
  EXPECT_EQ(results[1].classifications[0].label, "g");
  EXPECT_EQ(results[1].model, "other");
}

// How many of the warnings on the bus hold `part`; takes them.
int warnings_with(GstBus* bus, const char* part) {
  int told = 0;
  while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_WARNING)) {
    GError* error = nullptr;
    gst_message_parse_warning(message, &error, nullptr);
    told += std::string(error->message).find(part) != std::string::npos;
    g_error_free(error);
    gst_message_unref(message);
  }
  return told;
}

TEST(Clinfer, RegionsOutsideOfTheFrameAreTold) {
  Harness harness(Harness::clinfer_launch("regions=0,0,16,16;60,40,10,10"));
  const auto told_after = [&](int width, int height) {
    harness.set_caps("BGR", width, height);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    for (int i = 0; i < 2; ++i) harness.pull();
    return warnings_with(harness.bus(), "60,40,10,10 lies outside of frames of");
  };
  EXPECT_EQ(told_after(64, 48), 0);
  EXPECT_EQ(told_after(32, 32), 1);
  EXPECT_EQ(told_after(30, 30), 1);
}

TEST(Clinfer, FixedRegionsGetResultsOfTheirOwn) {
  Harness harness(Harness::clinfer_launch("regions=0.0,0.0,0.5,1.0;32,0,32,48"));
  harness.set_caps("BGR", 64, 48);
  GstBuffer* buffer = frame_of(harness.info(), kRed, 0);
  GstVideoFrame frame;
  ASSERT_TRUE(gst_video_frame_map(&frame, &harness.info(), buffer, GST_MAP_WRITE));
  Canvas(&frame, 0, 0, 64, 48).fill(32, 0, 32, 48, kBlue);
  gst_video_frame_unmap(&frame);
  ASSERT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
  const auto out = harness.pull();
  const auto regions = read_regions(out.get(), 64, 48);
  ASSERT_EQ(regions.size(), 2u);
  ASSERT_EQ(regions[0].classifications.size(), 1u);
  EXPECT_EQ(regions[0].classifications[0].label, "red");
  EXPECT_EQ(regions[1].classifications[0].label, "blue");
  EXPECT_EQ(regions[1].x, 32);
  EXPECT_EQ(regions[1].width, 32);
  // Another value takes effect with the next frame; one that cannot be read changes nothing.
  g_object_set(harness.clinfer(), "regions", "0,0,16,16", nullptr);
  g_object_set(harness.clinfer(), "regions", "0,0", nullptr);
  ASSERT_EQ(harness.push(kGreen, 1), GST_FLOW_OK);
  const auto next = read_regions(harness.pull().get(), 64, 48);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].width, 16);
}

// A ball of 40 pixels in a picture of 1920x1440 is 3 pixels high in the network's input.
TEST(Clinfer, TilesFindWhatIsTooSmallInTheWholePicture) {
  const auto balls = [](const std::string& properties) {
    Pipeline pipeline(
        "videotestsrc pattern=ball num-buffers=12 ! video/x-raw,format=NV12,width=1920,height=1440 "
        "! clinfer device-timeout=0 model=" CLINFER_SOURCE_DIR "/pipelines/models/ball.xml " +
        properties + " ! appsink name=sink sync=false wait-on-eos=false");
    gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
    EXPECT_EQ(error_on(pipeline.element, std::chrono::minutes(2)), "");
    const Handle<GstElement> sink = pipeline.find("sink");
    std::vector<size_t> counts;
    for (int i = 0; i < 12; ++i) {
      GstSample* sample = nullptr;
      g_signal_emit_by_name(sink.get(), "pull-sample", &sample);
      if (sample == nullptr) break;
      counts.push_back(read_regions(gst_sample_get_buffer(sample), 1920, 1440).size());
      gst_sample_unref(sample);
    }
    return counts;
  };
  EXPECT_EQ(balls("tiles=4x3"), std::vector<size_t>(12, 1));
  EXPECT_EQ(balls("tiles=4x3 classes=other"), std::vector<size_t>(12, 0));
}

// 4:2:2, 4:4:4 and 10 bits show the same ball as 8 bits of 4:2:0.
TEST(Clinfer, FindsTheBallInEveryLayoutOfSamples) {
  const auto ball_in = [](const std::string& format) {
    Pipeline pipeline("videotestsrc pattern=ball num-buffers=1 ! video/x-raw,format=" + format +
                      ",width=322,height=242 ! clinfer model=" CLINFER_SOURCE_DIR
                      "/pipelines/models/ball.xml ! appsink name=sink sync=false "
                      "wait-on-eos=false");
    gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
    EXPECT_EQ(error_on(pipeline.element, std::chrono::minutes(2)), "") << format;
    const Handle<GstElement> sink = pipeline.find("sink");
    GstSample* sample = nullptr;
    g_signal_emit_by_name(sink.get(), "pull-sample", &sample);
    if (sample == nullptr) return std::vector<RegionView>{};
    const auto regions = read_regions(gst_sample_get_buffer(sample), 322, 242);
    gst_sample_unref(sample);
    return regions;
  };
  const auto expected = ball_in("NV12");
  ASSERT_EQ(expected.size(), 1u);
  for (const char* format : {"NV16", "Y42B", "Y444", "P010_10LE", "I420_10LE"}) {
    const auto found = ball_in(format);
    ASSERT_EQ(found.size(), 1u) << format;
    EXPECT_EQ(found[0].label, "ball") << format;
    EXPECT_NEAR(found[0].x, expected[0].x, 2) << format;
    EXPECT_NEAR(found[0].y, expected[0].y, 2) << format;
    EXPECT_NEAR(found[0].width, expected[0].width, 2) << format;
    EXPECT_NEAR(found[0].height, expected[0].height, 2) << format;
  }
}

// The colour model's tensor is a tenth of the mean blue, green and red.
std::vector<float> colour_seen(Harness& harness) {
  const auto out = harness.pull();
  const auto results = read_results(out.get());
  if (results.size() != 1 || results[0].tensors.size() != 1) return {};
  gsize bytes = 0;
  const auto* data =
      static_cast<const float*>(g_bytes_get_data(results[0].tensors[0].data.get(), &bytes));
  std::vector<float> values(data, data + bytes / sizeof(float));
  for (float& value : values) value = std::round(value * 100) / 10;
  return values;
}

// White is 235 in limited range.
TEST(Clinfer, ColoursAreExactOrVideoconverts) {
  const auto white = [](const std::string& properties) {
    Harness harness("clinfer post-process=none model=" + color_model() + " " + properties);
    harness.set_caps("I420", 16, 16);
    EXPECT_EQ(harness.push({255, 255, 255}, 0), GST_FLOW_OK);
    return colour_seen(harness);
  };
  EXPECT_EQ(white(""), (std::vector<float>{255, 255, 255}));
  EXPECT_EQ(white("color-arithmetic=videoconvert"), (std::vector<float>{253, 253, 253}));
}

GstBuffer* flat_frame(const GstVideoInfo& info, const std::array<guint8, 3>& yuv) {
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
  GstVideoFrame frame;
  EXPECT_TRUE(gst_video_frame_map(&frame, &info, buffer, GST_MAP_WRITE));
  for (guint c = 0; c < 3; ++c)
    for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&frame, c); ++y)
      for (gint x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH(&frame, c); ++x)
        static_cast<guint8*>(GST_VIDEO_FRAME_COMP_DATA(
            &frame, c))[y * GST_VIDEO_FRAME_COMP_STRIDE(&frame, c) +
                        x * GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, c)] = yuv[c];
  gst_video_frame_unmap(&frame);
  GST_BUFFER_PTS(buffer) = 0;
  GST_BUFFER_DURATION(buffer) = 40 * GST_MSECOND;
  return buffer;
}

// By the caps' matrix and range; BT.601 of limited range where they say nothing, whatever the size.
TEST(Clinfer, ColoursFollowTheCaps) {
  const struct {
    const char* caps;
    std::array<guint8, 3> yuv;
    std::vector<float> bgr;
  } cases[] = {{"", {235, 128, 128}, {255, 255, 255}},
               {"", {200, 128, 128}, {214, 214, 214}},
               {"", {128, 90, 160}, {54, 119, 181}},
               {",colorimetry=bt601", {128, 90, 160}, {54, 119, 181}},
               {",colorimetry=bt709", {128, 90, 160}, {50, 121, 188}},
               {",colorimetry=1:4:16:4", {128, 90, 160}, {61, 118, 173}}};
  for (const char* properties : {"", "nv12-two-inputs=false", "batch-size=2 batch-timeout=0"}) {
    Harness harness("clinfer first-tier=false post-process=none model=" + color_model() + " " +
                    properties);
    for (const char* format : {"NV12", "I420"})
      for (const auto& [width, height] : {std::pair{16, 16}, {1280, 720}})
        for (const auto& c : cases) {
          harness.set_caps(format, width, height, c.caps);
          ASSERT_EQ(gst_harness_push(harness.get(), flat_frame(harness.info(), c.yuv)),
                    GST_FLOW_OK);
          EXPECT_EQ(colour_seen(harness), c.bgr)
              << properties << " " << format << " " << width << c.caps;
        }
  }
}

TEST(Clinfer, InterlacedFramesAreToldOnce) {
  Harness harness;
  for (int i = 0; i < 2; ++i) {
    harness.set_caps("NV12", 64, 48 + 2 * i, ",interlace-mode=interleaved");
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    EXPECT_EQ(answer_of(harness.pull().get()), "red");
  }
  EXPECT_EQ(warnings_with(harness.bus(), "interlaced"), 1);
}

TEST(Clinfer, RawTensorsAreAttached) {
  Harness harness("clinfer post-process=none model=" + color_model());
  harness.set_caps("RGB", 16, 16);
  ASSERT_EQ(harness.push({255, 0, 0}, 0), GST_FLOW_OK);
  const auto out = harness.pull();
  const auto results = read_results(out.get());
  ASSERT_EQ(results.size(), 1u);
  ASSERT_EQ(results[0].tensors.size(), 1u);
  EXPECT_EQ(results[0].tensors[0].name, "color");
  EXPECT_EQ(results[0].tensors[0].dims, (std::vector<int>{1, 3}));
}

TEST(Clinfer, LogsEachFrame) {
  struct Counts {
    std::atomic<int> in = 0, out = 0, caps = 0;
    static void take(GstDebugCategory* category, GstDebugLevel, const char*, const char*, int,
                     GObject*, GstDebugMessage* message, gpointer user) {
      if (std::string(gst_debug_category_get_name(category)) != "clinfer-streaming") return;
      auto& counts = *static_cast<Counts*>(user);
      const std::string text = gst_debug_message_get(message);
      counts.in += text.rfind("frame in: 0:00:0", 0) == 0;
      counts.out += text.rfind("frame out: 0:00:0", 0) == 0 && text.find(", run") != text.npos;
      counts.caps += text.rfind("event: caps", 0) == 0;
    }
  } counts;
  gst_debug_add_log_function(Counts::take, &counts, nullptr);
  gst_debug_set_active(TRUE);
  gst_debug_set_threshold_for_name("clinfer-streaming", GST_LEVEL_LOG);
  {
    Harness harness;
    harness.set_caps("NV12", 64, 48);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(harness.push(kGreen, i), GST_FLOW_OK);
      harness.pull();
    }
  }
  gst_debug_unset_threshold_for_name("clinfer-streaming");
  gst_debug_remove_log_function_by_data(&counts);
  EXPECT_EQ(counts.in, 3);
  EXPECT_EQ(counts.out, 3);
  EXPECT_EQ(counts.caps, 1);
}

// ---- order, flushes, end of stream --------------------------------------------------------------

// Output of the source pad, in order: PTS of buffers as numbers, names of serialised events.
struct Record {
  static GstPadProbeReturn probe(GstPad*, GstPadProbeInfo* info, gpointer user) {
    auto* record = static_cast<Record*>(user);
    const std::lock_guard lock(record->mutex);
    if (GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) {
      record->seen.push_back(
          std::to_string(GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)) / (40 * GST_MSECOND)));
    } else {
      GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
      if (GST_EVENT_TYPE(event) == GST_EVENT_CUSTOM_DOWNSTREAM)
        record->seen.push_back(gst_structure_get_name(gst_event_get_structure(event)));
      else if (GST_EVENT_TYPE(event) == GST_EVENT_EOS)
        record->seen.push_back("eos");
      else if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS)
        record->seen.push_back("caps");
      else if (GST_EVENT_TYPE(event) == GST_EVENT_GAP)
        record->seen.push_back("gap");
      else if (GST_EVENT_TYPE(event) == GST_EVENT_TAG)
        record->seen.push_back("tag");
    }
    return GST_PAD_PROBE_OK;
  }
  void watch(GstElement* element) {
    GstPad* pad = gst_element_get_static_pad(element, "src");
    gst_pad_add_probe(pad,
                      static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER |
                                                   GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
                      probe, this, nullptr);
    gst_object_unref(pad);
  }
  std::mutex mutex;
  std::vector<std::string> seen;
};

void wait_for_eos(GstHarness* harness) {
  for (;;) {
    GstEvent* event = gst_harness_pull_event(harness);
    ASSERT_NE(event, nullptr) << "no end of stream";
    const bool eos = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
    gst_event_unref(event);
    if (eos) return;
  }
}

TEST(Clinfer, KeepsFramesEventsAndCapsInOrder) {
  Harness harness(Harness::clinfer_launch("nireq=4 throughput-streams=2"));
  Record record;
  record.watch(harness.get()->element);
  std::vector<std::string> expected;
  for (int i = 0; i < 60; ++i) {
    if (i % 10 == 0) {
      harness.set_caps("NV12", 32 + i, 24 + i % 20);
      expected.push_back("caps");
    }
    ASSERT_EQ(harness.push(i % 2 ? kRed : kBlue, i), GST_FLOW_OK);
    expected.push_back(std::to_string(i));
    if (i % 11 == 3) {
      gst_harness_push_event(harness.get(), gst_event_new_gap(0, 40 * GST_MSECOND));
      expected.push_back("gap");
    }
    if (i % 13 == 5) {
      gst_harness_push_event(
          harness.get(), gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "a title", nullptr)));
      expected.push_back("tag");
    }
    if (i % 7 == 0) {
      const std::string name = "mark" + std::to_string(i);
      gst_harness_push_event(
          harness.get(),
          gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty(name.c_str())));
      expected.push_back(name);
    }
  }
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  expected.push_back("eos");
  wait_for_eos(harness.get());
  EXPECT_EQ(record.seen, expected);
  for (int i = 0; i < 60; ++i) {
    const auto out = harness.pull();
    EXPECT_EQ(answer_of(out.get()), i % 2 ? "red" : "blue") << i;
  }
}

TEST(Clinfer, EndOfStreamWithAnyNumberInFlight) {
  for (const int frames : {0, 1, 2, 5}) {
    Harness harness;
    harness.set_caps("NV12", 64, 48);
    for (int i = 0; i < frames; ++i) ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    gst_harness_push_event(harness.get(), gst_event_new_eos());
    wait_for_eos(harness.get());
    EXPECT_EQ(gst_harness_buffers_in_queue(harness.get()), static_cast<guint>(frames));
  }
}

TEST(Clinfer, SurvivesAStormOfFlushes) {
  Harness harness(Harness::clinfer_launch("nireq=3"));
  harness.set_caps("NV12", 64, 48);
  gst_harness_set_drop_buffers(harness.get(), TRUE);
  std::atomic<bool> stop{false};
  GstPad* sink = gst_element_get_static_pad(harness.get()->element, "sink");
  // As in an upstream element: the segment comes before the first frame after a flush.
  std::mutex streaming;
  std::thread producer([&] {
    for (int i = 0; !stop; ++i) {
      std::unique_lock lock(streaming);
      const bool fine = harness.push(kRed, i) == GST_FLOW_OK;
      lock.unlock();
      // Sleep without the lock: a thread that waits for it to flush would not get it otherwise.
      std::this_thread::sleep_for(fine ? 20us : 200us);
    }
  });
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    gst_pad_send_event(sink, gst_event_new_flush_start());
    if (i % 2) std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    const std::unique_lock lock(streaming);
    gst_pad_send_event(sink, gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_pad_send_event(sink, gst_event_new_segment(&segment));
  }
  stop = true;
  producer.join();
  gst_object_unref(sink);
  // The data before the last flush are gone; later data pass.
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  wait_for_eos(harness.get());
}

TEST(Clinfer, AFlushDropsWhatWasBeforeIt) {
  Harness harness(Harness::clinfer_launch("nireq=3"));
  Record record;
  record.watch(harness.get()->element);
  harness.set_caps("NV12", 64, 48);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    GstPad* sink = gst_element_get_static_pad(harness.get()->element, "sink");
    gst_pad_send_event(sink, gst_event_new_flush_start());
    gst_pad_send_event(sink, gst_event_new_flush_stop(TRUE));
    {
      const std::lock_guard lock(record.mutex);
      record.seen.clear();
    }
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_pad_send_event(sink, gst_event_new_segment(&segment));
    gst_object_unref(sink);
    for (int i = 100; i < 103; ++i) ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    gst_harness_push_event(harness.get(), gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM,
                                                               gst_structure_new_empty("end")));
    for (int tries = 0; tries < 2000; ++tries) {
      std::this_thread::sleep_for(1ms);
      const std::lock_guard lock(record.mutex);
      if (!record.seen.empty() && record.seen.back() == "end") break;
    }
    const std::lock_guard lock(record.mutex);
    EXPECT_EQ(record.seen, (std::vector<std::string>{"100", "101", "102", "end"}));
  }
}

TEST(Clinfer, AFlushKeepsCapsThatWereOnTheirWay) {
  Harness harness;
  harness.set_caps("NV12", 64, 48);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    harness.set_caps("NV12", 64 + 2 * i, 48);
    gst_harness_push_event(harness.get(), gst_event_new_flush_start());
    gst_harness_push_event(harness.get(), gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
    while (GstBuffer* old = gst_harness_try_pull(harness.get())) gst_buffer_unref(old);
    ASSERT_EQ(harness.push(kBlue, i), GST_FLOW_OK);
    EXPECT_EQ(answer_of(harness.pull().get()), "blue");
    const Handle<GstCaps> caps(gst_pad_get_current_caps(harness.get()->sinkpad));
    ASSERT_NE(caps, nullptr);
    int width = 0;
    gst_structure_get_int(gst_caps_get_structure(caps.get(), 0), "width", &width);
    ASSERT_EQ(width, 64 + 2 * i);
  }
}

// ---- flow ---------------------------------------------------------------------------------------

GstFlowReturn refuse(GstPad*, GstObject* parent, GstBuffer* buffer) {
  (void)parent;
  gst_buffer_unref(buffer);
  return GST_FLOW_CUSTOM_ERROR;
}

GstFlowReturn end_of_stream(GstPad*, GstObject*, GstBuffer* buffer) {
  gst_buffer_unref(buffer);
  return GST_FLOW_EOS;
}

GstFlowReturn push_until_it_fails(Harness& harness) {
  for (int i = 0; i < 500; ++i) {
    const GstFlowReturn flow = harness.push(kRed, i);
    if (flow != GST_FLOW_OK) return flow;
    std::this_thread::sleep_for(1ms);
  }
  return GST_FLOW_OK;
}

TEST(Clinfer, TellsUpstreamWhatDownstreamSays) {
  for (const auto& [function, flow] :
       {std::pair{&refuse, GST_FLOW_CUSTOM_ERROR}, {&end_of_stream, GST_FLOW_EOS}}) {
    Harness harness;
    harness.set_caps("NV12", 64, 48);
    gst_pad_set_chain_function(harness.get()->sinkpad, function);
    EXPECT_EQ(push_until_it_fails(harness), flow);
  }
}

TEST(Clinfer, GoesOnWithANewSegmentAfterDownstreamEnded) {
  Harness harness;
  harness.set_caps("NV12", 64, 48);
  GstPad* sinkpad = harness.get()->sinkpad;
  const GstPadChainFunction normal = GST_PAD_CHAINFUNC(sinkpad);
  gst_pad_set_chain_function(sinkpad, end_of_stream);
  EXPECT_EQ(push_until_it_fails(harness), GST_FLOW_EOS);
  gst_pad_set_chain_function(sinkpad, normal);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
  ASSERT_EQ(harness.push(kBlue, 7), GST_FLOW_OK);
  const auto out = harness.pull();
  EXPECT_EQ(answer_of(out.get()), "blue");
}

// ---- queries and messages -----------------------------------------------------------------------

// Cameras that share a model in batches would hold seconds of pictures each, if a pool had a frame
// for each place in the queue.
TEST(Clinfer, AsksForEnoughBuffers) {
  const std::map<std::string, guint> wanted = {
      {"nireq=5 inference-interval=2", 13},
      {"nireq=2 overload-policy=skip-inference", 25},
      {"nireq=2 overload-policy=skip-inference batch-size=4", 25},
      {"nireq=2 inference-when=motion batch-size=4", 25},
      {"nireq=2 overload-policy=skip-inference batch-size=16", 49},
      {"nireq=2 inference-interval=8 batch-size=4", 97}};
  for (const auto& [settings, frames] : wanted) {
    Harness harness(Harness::clinfer_launch(settings));
    harness.set_caps("NV12", 64, 48);
    GstQuery* query =
        gst_query_new_allocation(gst_pad_get_current_caps(harness.get()->srcpad), TRUE);
    ASSERT_TRUE(gst_pad_peer_query(harness.get()->srcpad, query));
    ASSERT_GE(gst_query_get_n_allocation_pools(query), 1u);
    guint size = 0, least = 0, most = 0;
    gst_query_parse_nth_allocation_pool(query, 0, nullptr, &size, &least, &most);
    EXPECT_EQ(least, frames) << settings;
    EXPECT_EQ(most, 0u);
    EXPECT_EQ(size, GST_VIDEO_INFO_SIZE(&harness.info()));
    GstCaps* caps = nullptr;
    gst_query_parse_allocation(query, &caps, nullptr);
    gst_caps_unref(caps);
    gst_query_unref(query);
  }
}

TEST(Clinfer, ReportsItsLatencyWhenLive) {
  Harness harness;
  gst_harness_set_live(harness.get(), TRUE);
  harness.set_caps("NV12", 64, 48);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    harness.pull();
  }
  GstQuery* query = gst_query_new_latency();
  ASSERT_TRUE(gst_pad_peer_query(harness.get()->sinkpad, query));
  gboolean live = FALSE;
  GstClockTime least = 0, most = 0;
  gst_query_parse_latency(query, &live, &least, &most);
  gst_query_unref(query);
  EXPECT_TRUE(live);
  EXPECT_GT(least, 0u);
  EXPECT_LT(least, 10 * GST_SECOND);
  EXPECT_GE(most, least);
}

TEST(Clinfer, PassesLateFramesUninferredAndSaysSo) {
  Harness harness;
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "red");
  // The sink got frame 0 200 ms late.
  gst_harness_push_upstream_event(
      harness.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, 200 * GST_MSECOND, 0));
  for (int i = 1; i < 13; ++i) {
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    EXPECT_EQ(answer_of(harness.pull().get()), i <= 10 ? "late" : "red") << i;
  }
  int told = 0;
  while (GstMessage* message = gst_bus_pop_filtered(harness.bus(), GST_MESSAGE_QOS)) {
    guint64 dropped = 0;
    GstFormat format;
    gst_message_parse_qos_stats(message, &format, nullptr, &dropped);
    EXPECT_EQ(dropped, static_cast<guint64>(++told));
    gst_message_unref(message);
  }
  EXPECT_EQ(told, 10);
  g_object_set(harness.clinfer(), "qos", FALSE, nullptr);
  gst_harness_push_upstream_event(
      harness.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, 20 * GST_SECOND, 0));
  ASSERT_EQ(harness.push(kRed, 20), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "red");
}

}  // namespace
}  // namespace clinfer
