// Frames in memory:DMABuf on the rig: what the network gets is what it gets from system memory, no
// frame but the first is mapped, every misuse of the OpenCL extension fails, and what cannot be
// imported is mapped, with a reason.
#include <gst/allocators/gstdmabuf.h>
#include <gst/video/video.h>

#include <algorithm>

#include "tests/rig/playing.h"

namespace clinfer {
namespace {

// Plays, and counts how often frames were mapped.
Played play_counting(const std::string& launch, unsigned& maps, const Prepare& prepare = {}) {
  GstElement* upload = gst_element_factory_make("dmabuftestupload", nullptr);
  const auto count = [&] {
    guint value = 0;
    g_object_get(upload, "maps", &value, nullptr);
    return value;
  };
  const unsigned before = count();
  Played played = play(launch, prepare);
  maps = count() - before;
  gst_object_unref(upload);
  return played;
}

TEST(Dmabuf, GivesWhatSystemMemoryGivesWithoutAMap) {
  for (const auto& [width, height, upload] :
       std::vector<std::tuple<int, int, std::string>>{{322, 242, ""},
                                                      {321, 241, ""},
                                                      {321, 241, "padding=64"},
                                                      {640, 480, "gap=4096"},
                                                      {641, 479, "gap=333 padding=16"},
                                                      {322, 242, "split=true"},
                                                      {641, 479, "split=true gap=333 padding=16"},
                                                      {1920, 1080, "padding=128"},
                                                      {17, 5, ""},
                                                      {2, 2, ""}}) {
    const std::string what = std::to_string(width) + "x" + std::to_string(height) + " " + upload;
    const Played memory = play(source(width, height) + net() + kSink);
    unsigned maps = 0;
    const Played played = play_counting(
        source(width, height) + " ! dmabuftestupload " + upload + net() + kSink, maps);
    EXPECT_EQ(played.path, "zero-copy") << what << ": " << played.reason;
    EXPECT_EQ(played.reason, "frames in DMABuf") << what;
    EXPECT_EQ(played.zero_copy, 3u) << what;
    EXPECT_TRUE(played.warnings.empty()) << what << ": " << played.warnings[0];
    EXPECT_EQ(maps, 2u) << what << ": both planes of the first frame, which is compared";
    expect_same(played, memory, what);
    EXPECT_EQ(played.tensors, memory.tensors) << what << ": the same kernel";
  }
}

TEST(Dmabuf, FollowsCropFormatAndResizing) {
  for (const char* format : {"NV12", "BGRx"})
    for (const char* properties :
         {"", "resize-mode=letterbox color-format=rgb", "resize-mode=crop"}) {
      const std::string what = std::string(format) + " " + properties;
      const std::string from =
          source(200, 90, "", 2) + " ! videoconvert ! video/x-raw,format=" + format;
      const Played memory = play(from + net(properties) + kSink, crop_frames);
      const Played played =
          play(from + " ! dmabuftestupload padding=32" + net(properties) + kSink, crop_frames);
      EXPECT_EQ(played.path, "zero-copy") << what << ": " << played.reason;
      expect_same(played, memory, what);
      expect_same(
          play(from + " ! dmabuftestupload split=true" + net(properties) + kSink, crop_frames),
          memory, what + ", planes apart");
    }
}

TEST(Dmabuf, ImportsAMemoryOnceAndForgetsItWithTheMemory) {
  const long before = cl_counters().buffers_imported;
  const Played played =
      play(source(320, 240, "", 60) + " ! dmabuftestupload" + net("nireq=2") + kSink);
  EXPECT_EQ(played.zero_copy, 60u);
  EXPECT_LT(cl_counters().buffers_imported - before, 20);
  // Others come under the descriptors' numbers.
  std::string frames = "concat name=c" + net() + kSink, memory = frames;
  for (const auto& [width, height] : {std::pair{320, 240}, {200, 100}, {321, 241}, {320, 240}}) {
    frames += " " + source(width, height) + " ! dmabuftestupload ! c.";
    memory += " " + source(width, height) + " ! c.";
  }
  expect_same(play(frames), play(memory), "four pools");
  for (const std::string upload : {"gap=64", "split=true"})
    expect_same(play(source(320, 240, "", 40) + " ! dmabuftestupload " + upload +
                     net("throughput-streams=2 batch-size=3") + kSink),
                play(source(320, 240, "", 40) + net() + kSink),
                "new memories for each frame, " + upload);
}

TEST(Dmabuf, TwoElementsReadOneMemory) {
  const std::string branch =
      " ! queue ! clinfer first-tier=false post-process=none model=" + echo_model();
  for (const std::string upload : {"", "split=true"}) {
    const Played played =
        play(source(320, 240, "", 30) + " ! dmabuftestupload " + upload + " ! tee name=t t." +
             branch + " ! fakesink t. ! queue" + net() + kSink);
    expect_same(played, play(source(320, 240, "", 30) + net() + kSink), "behind a tee, " + upload);
    EXPECT_EQ(played.zero_copy, 30u) << upload;
  }
}

// ---- DMA-BUFs that are refused ------------------------------------------------------------------

void expect_mapped(const Played& played, const std::string& reason, size_t warnings) {
  EXPECT_EQ(played.path, "system memory");
  EXPECT_EQ(played.warnings.size(), warnings);
  for (const std::string& warning : played.warnings)
    EXPECT_NE(warning.find(reason), std::string::npos) << warning;
  EXPECT_NE(played.reason.find(reason), std::string::npos) << played.reason;
  expect_same(played, play(source(321, 242, "", 6) + net() + kSink), reason);
}

TEST(Dmabuf, MapsWhereTheDeviceCannotImport) {
  const Setting hidden("RIG_HIDE", "1");
  expect_mapped(play(source(321, 242, "", 6) + " ! dmabuftestupload" + net() + kSink),
                "does not offer cl_khr_external_memory", 0);
}

TEST(Dmabuf, MapsWhereTheFirstFrameReadsWrong) {
  const Setting corrupt("RIG_CORRUPT", "1");
  expect_mapped(play(source(321, 242, "", 6) + " ! dmabuftestupload" + net() + kSink),
                "the first frame read wrong", 1);
}

TEST(Dmabuf, TellsEachElementWhyItMaps) {
  const Setting corrupt("RIG_CORRUPT", "1");
  const std::string shared = net("model-instance-id=pair");
  std::string other = shared;
  other.erase(other.find("name=net"), 8);
  const Played played =
      play(source(320, 240, "", 6) + " ! dmabuftestupload ! tee name=t t. ! queue" + other +
           " ! fakesink t. ! queue" + shared + kSink);
  ASSERT_EQ(played.warnings.size(), 2u);
  for (const std::string& warning : played.warnings)
    EXPECT_NE(warning.find("the first frame read wrong"), std::string::npos) << warning;
}

TEST(Dmabuf, MapsWhereItIsTold) {
  unsigned maps = 0;
  expect_mapped(play_counting(source(321, 242, "", 6) + " ! dmabuftestupload" +
                                  net("nv12-two-inputs=false") + kSink,
                              maps),
                "nv12-two-inputs=false", 0);
  EXPECT_EQ(maps, 12u);
}

TEST(Dmabuf, MapsTheFramesThatFail) {
  for (const auto& [fault, upload] :
       std::vector<std::pair<const char*, std::string>>{{"acquire:5", "gap=16"},
                                                        {"import:7", "gap=16"},
                                                        {"acquire:5", "split=true"},
                                                        {"acquire:6", "split=true"},
                                                        {"import:8", "split=true"}}) {
    const Setting failing("RIG_FAIL", fault);
    const Played played =
        play(source(320, 240, "", 20) + " ! dmabuftestupload " + upload + net() + kSink);
    EXPECT_EQ(played.warnings.size(), 1u) << fault;
    EXPECT_GT(played.zero_copy, 0u) << fault;
    EXPECT_LT(played.zero_copy, 20u) << fault;
    expect_same(played, play(source(320, 240, "", 20) + net() + kSink), fault);
  }
}

TEST(Dmabuf, FailsOnceWhenTheDeviceFails) {
  for (const char* fault : {"enqueue:40", "device:40"}) {
    const Setting failing("RIG_FAIL", fault);
    const Played played = play(source(320, 240, "", 100) + " ! dmabuftestupload" + net() + kSink);
    EXPECT_NE(played.error.find("CL_OUT_OF_RESOURCES"), std::string::npos) << played.error;
  }
}

// A meta may describe planes beyond the memory: the device must not read there.
TEST(Dmabuf, RefusesMetasThatLie) {
  const char* const refusals[] = {
      "does not hold a frame of NV12 320x240",
      "with stride 2147483647 in plane 0 does not fit its memory",
      "has a GstVideoMeta of NV12 320x4294967295",
  };
  for (const int lie : {0, 1, 2}) {
    const auto tell = [&](GstElement* pipeline) {
      GstElement* net = gst_bin_get_by_name(GST_BIN(pipeline), "net");
      GstPad* pad = gst_element_get_static_pad(net, "sink");
      gst_pad_add_probe(
          pad, GST_PAD_PROBE_TYPE_BUFFER,
          [](GstPad*, GstPadProbeInfo* info, gpointer data) {
            GstVideoMeta* meta = gst_buffer_get_video_meta(GST_PAD_PROBE_INFO_BUFFER(info));
            switch (GPOINTER_TO_INT(data)) {
              case 0:
                meta->offset[1] = static_cast<gsize>(-64);
                break;
              case 1:
                meta->stride[0] = G_MAXINT;
                break;
              default:
                meta->height = G_MAXUINT;
            }
            return GST_PAD_PROBE_OK;
          },
          GINT_TO_POINTER(lie), nullptr);
      gst_object_unref(pad);
      gst_object_unref(net);
    };
    const Played played =
        play(source(320, 240, "", 2) + " ! dmabuftestupload" + net() + kSink, tell);
    EXPECT_EQ(played.error, "") << lie;
    EXPECT_TRUE(std::ranges::any_of(played.warnings, [&](const std::string& warning) {
      return warning.find(refusals[lie]) != std::string::npos;
    })) << refusals[lie];
    EXPECT_EQ(played.zero_copy, 0u) << lie;
  }
}

}  // namespace
}  // namespace clinfer
