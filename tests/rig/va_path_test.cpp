// Frames that are VA surfaces, on the rig: what the network gets is what it gets from system
// memory, no byte of a frame goes through the host, every misuse of the OpenCL extension fails, and
// what cannot be shared is copied, with a reason.
#include <functional>
#include <random>
#include <vector>

#include "gst/infer/clinfer.h"
#include "tests/rig/playing.h"
#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;

// ---- pictures -----------------------------------------------------------------------------------

// The three frames of `from` as surfaces give what they give in system memory, without a copy.
void expect_same_without_a_copy(const std::string& from, const std::string& upload,
                                const std::string& properties, const std::string& what) {
  const Played memory = play(from + net(properties) + kSink);
  EXPECT_EQ(memory.path, "system memory");
  const Played surfaces = play(from + " ! vatestupload " + upload + net(properties) + kSink);
  EXPECT_EQ(surfaces.path, "zero-copy") << what << ": " << surfaces.reason;
  EXPECT_EQ(surfaces.zero_copy, 3u) << what;
  EXPECT_TRUE(surfaces.warnings.empty()) << what << ": " << surfaces.warnings[0];
  expect_same(surfaces, memory, what);
}

TEST(VaPath, GivesWhatSystemMemoryGivesAtEverySizeWithoutACopy) {
  const RigVaCounters before = va_counters();
  for (const auto& [width, height, upload] :
       std::vector<std::tuple<int, int, std::string>>{{322, 242, ""},
                                                      {321, 241, ""},
                                                      {321, 241, "padding=16"},
                                                      {640, 480, ""},
                                                      {1920, 1080, "padding=16"},
                                                      {1366, 768, ""},
                                                      {720, 575, ""},
                                                      {719, 576, ""},
                                                      {16, 16, ""},
                                                      {17, 5, ""},
                                                      {3, 3, ""},
                                                      {2, 2, ""},
                                                      {1000, 40, ""}}) {
    const std::string what = std::to_string(width) + "x" + std::to_string(height) + " " + upload;
    expect_same_without_a_copy(source(width, height), upload, "", what);
  }
  EXPECT_EQ(va_counters().frame_maps, before.frame_maps);
  EXPECT_EQ(va_counters().frame_gets, before.frame_gets);
}

// H.265 Main10 and others; sizes with an odd side are read through a second surface.
TEST(VaPath, GivesOfTenBitsWhatSystemMemoryGivesWithoutACopy) {
  const RigVaCounters before = va_counters();
  for (const auto& [width, height, upload] :
       std::vector<std::tuple<int, int, std::string>>{{322, 242, ""},
                                                      {321, 241, ""},
                                                      {321, 241, "padding=16"},
                                                      {1920, 1080, "padding=16 border=6"},
                                                      {17, 5, ""},
                                                      {2, 2, ""}})
    for (const char* properties : {"", "color-arithmetic=videoconvert resize-mode=letterbox"}) {
      const std::string what =
          std::to_string(width) + "x" + std::to_string(height) + " " + upload + " " + properties;
      expect_same_without_a_copy(source(width, height, "", 3, "P010_10LE"), upload, properties,
                                 what);
    }
  EXPECT_EQ(va_counters().frame_maps, before.frame_maps);
  EXPECT_EQ(va_counters().frame_gets, before.frame_gets);
}

TEST(VaPath, CopiesTenBitsThatReadWrongAndSaysSo) {
  const std::string from = source(322, 242, "", 3, "P010_10LE");
  const Played memory = play(from + net() + kSink);
  const Setting wrong("RIG_CORRUPT_DEEP", "1");
  const Played surfaces = play(from + " ! vatestupload" + net() + kSink);
  EXPECT_EQ(surfaces.path, "system memory");
  ASSERT_EQ(surfaces.warnings.size(), 1u);
  EXPECT_NE(surfaces.warnings[0].find("the self-test read a wrong picture"), std::string::npos)
      << surfaces.warnings[0];
  expect_same(surfaces, memory, "mapped");
}

TEST(VaPath, FollowsCropColoursAndResizing) {
  for (const char* colorimetry : {"bt601", "bt709", "2:4:16:3"})
    for (const char* properties :
         {"", "resize-mode=letterbox color-format=rgb", "resize-mode=crop"}) {
      const std::string what = std::string(colorimetry) + " " + properties;
      const std::string from = source(200, 90, std::string(",colorimetry=") + colorimetry, 1);
      const Played memory = play(from + net(properties) + kSink);
      const Played surfaces =
          play(from + " ! vatestupload border=6 padding=32" + net(properties) + kSink);
      EXPECT_EQ(surfaces.path, "zero-copy") << what;
      expect_same(surfaces, memory, what);
    }
}

// The second and third pool's surfaces have the first one's ids.
TEST(VaPath, ForgetsSurfacesThatAreGone) {
  std::string surfaces = "concat name=c" + net() + kSink, memory = surfaces;
  for (const auto& [width, height] : {std::pair{320, 240}, {200, 100}, {321, 241}, {320, 240}}) {
    surfaces += " " + source(width, height) + " ! vatestupload ! c.";
    memory += " " + source(width, height) + " ! c.";
  }
  const long created = va_counters().surfaces_created;
  expect_same(play(surfaces), play(memory), "four pools");
  EXPECT_GT(va_counters().surfaces_created, created + 4);
}

TEST(VaPath, MakesImagesOnceForASurface) {
  const long before = cl_counters().imported;
  const Played surfaces =
      play(source(320, 240, "", 40) + " ! vatestupload" + net("nireq=2") + kSink);
  EXPECT_EQ(surfaces.zero_copy, 40u);
  EXPECT_LT(cl_counters().imported - before, 40)
      << "two for each of a few surfaces, and the self-test's";
}

TEST(VaPath, PoisonedWhereItIsNotAcquired) {
  const Setting shadow("RIG_SHADOW", "1");
  expect_same(
      play(source(322, 242, "", 20) + " ! vatestupload" + net("throughput-streams=2") + kSink),
      play(source(322, 242, "", 20) + net() + kSink), "both planes are shadows");
}

// ---- failures -----------------------------------------------------------------------------------

// ---- displays and devices -----------------------------------------------------------------------

TEST(VaPath, FollowsFramesToAnotherDisplay) {
  const std::string tail = net() + kSink;
  const Played surfaces =
      play("concat name=c" + tail + " " + source(320, 240) + " ! vatestupload ! c. " +
           source(200, 100) + " ! vatestupload display=1 ! c.");
  const Played memory =
      play("concat name=c" + tail + " " + source(320, 240) + " ! c. " + source(200, 100) + " ! c.");
  expect_same(surfaces, memory, "two displays");
  EXPECT_EQ(surfaces.path, "zero-copy");
}

TEST(VaPath, TakesTheDisplayFromTheFrameWhereNobodyNamesIt) {
  const auto silence = [](GstElement* pipeline) {
    GstElement* net = gst_bin_get_by_name(GST_BIN(pipeline), "net");
    GstPad* pad = gst_element_get_static_pad(net, "sink");
    GstPad* peer = gst_pad_get_peer(pad);
    gst_pad_add_probe(
        peer, GST_PAD_PROBE_TYPE_QUERY_UPSTREAM,
        [](GstPad*, GstPadProbeInfo* info, gpointer) {
          return GST_QUERY_TYPE(GST_PAD_PROBE_INFO_QUERY(info)) == GST_QUERY_CONTEXT
                     ? GST_PAD_PROBE_DROP
                     : GST_PAD_PROBE_OK;
        },
        nullptr, nullptr);
    gst_object_unref(peer);
    gst_object_unref(pad);
    gst_object_unref(net);
  };
  const Played surfaces =
      play(source(320, 240) + " ! vatestupload ! queue" + net() + kSink, silence);
  EXPECT_EQ(surfaces.path, "zero-copy") << surfaces.reason;
  expect_same(surfaces, play(source(320, 240) + net() + kSink), "no context");
}

TEST(VaPath, NamesBothWhenTheDeviceIsNotTheDisplays) {
  const Played other = play(source(320, 240) + " ! vatestupload" + net("device=CPU.1") + kSink);
  EXPECT_NE(other.error.find("clinfer test rig"), std::string::npos) << other.error;
  EXPECT_NE(other.error.find("(CPU.0)"), std::string::npos) << other.error;
  EXPECT_NE(other.error.find("(CPU.1)"), std::string::npos) << other.error;
  EXPECT_EQ(play(source(320, 240) + " ! vatestupload" + net("device=CPU") + kSink).path,
            "zero-copy");
}

TEST(VaPath, TwoElementsReadOneSurface) {
  const std::string branch = " ! queue ! clinfer post-process=none model=" + echo_model();
  const Played surfaces = play(source(320, 240, "", 30) + " ! vatestupload ! tee name=t t." +
                               branch + " ! fakesink t. ! queue" + net() + kSink);
  expect_same(surfaces, play(source(320, 240, "", 30) + net() + kSink), "behind a tee");
  EXPECT_EQ(surfaces.zero_copy, 30u);
}

// ---- surfaces that cannot be shared -------------------------------------------------------------

// The frames are copied, one warning and the statistics say why, the results are the same.
void expect_copied(const Played& surfaces, const std::string& reason) {
  EXPECT_EQ(surfaces.path, "system memory");
  ASSERT_EQ(surfaces.warnings.size(), 1u);
  EXPECT_NE(surfaces.warnings[0].find(reason), std::string::npos) << surfaces.warnings[0];
  EXPECT_NE(surfaces.reason.find(reason), std::string::npos) << surfaces.reason;
  expect_same(surfaces, play(source(321, 242, "", 6) + net() + kSink), reason);
}

TEST(VaPath, CopiesWhereTheDriverCannotShare) {
  const Setting hidden("RIG_HIDE", "1");
  expect_copied(play(source(321, 242, "", 6) + " ! vatestupload" + net() + kSink),
                "cl_intel_va_api_media_sharing");
}

// Until all devices are ready, one of them computes frames that are mapped for it.
TEST(VaPath, SeveralDevicesGetCopies) {
  const Played multi =
      play(source(321, 242, "", 6) + " ! vatestupload" + net("device=MULTI:CPU.0,CPU.1") + kSink);
  EXPECT_EQ(multi.path, "system memory");
  EXPECT_LE(multi.warnings.size(), 1u);
  for (const std::string& warning : multi.warnings)
    EXPECT_NE(warning.find("several devices read frames from system memory"), std::string::npos)
        << warning;
  const Played plain = play(source(321, 242, "", 6) + net() + kSink);
  expect_same(multi, plain, "MULTI");
  // With AUTO the first device reads them where they lie as soon as it is ready.
  const Played automatic =
      play(source(321, 242, "", 6) + " ! vatestupload" + net("device=AUTO:CPU.0,CPU.1") + kSink);
  EXPECT_TRUE(automatic.warnings.empty());
  expect_same(automatic, plain, "AUTO");
}

TEST(VaPath, CopiesWhereTheSelfTestReadsSomethingElse) {
  const Setting corrupt("RIG_CORRUPT", "1");
  expect_copied(play(source(321, 242, "", 6) + " ! vatestupload" + net() + kSink),
                "self-test read a wrong picture");
}

TEST(VaPath, CopiesWhereTheSelfTestFails) {
  const Setting failing("RIG_FAIL", "import:1");
  expect_copied(play(source(321, 242, "", 6) + " ! vatestupload" + net() + kSink),
                "cannot be shared with OpenCL");
}

TEST(VaPath, CopiesWhereItIsTold) {
  const RigVaCounters before = va_counters();
  const Played surfaces =
      play(source(321, 242, "", 6) + " ! vatestupload" + net("nv12-two-inputs=false") + kSink);
  EXPECT_EQ(surfaces.path, "system memory");
  EXPECT_TRUE(surfaces.warnings.empty());
  EXPECT_EQ(va_counters().frame_maps - before.frame_maps, 6);
  expect_same(surfaces, play(source(321, 242, "", 6) + net() + kSink), "nv12-two-inputs=false");
  EXPECT_EQ(
      play(source(320, 240) + " ! vatestupload" + net("config=NV12_TWO_INPUTS=NO") + kSink).path,
      "system memory");
}

TEST(VaPath, TunesOnSurfacesAndUsesThat) {
  const TemporaryFolder folder;
  const std::string file = folder / "tuning.json";
  const Played memory = play(source(322, 242) + net() + kSink);
  for (const char* mode : {"create", "use-existing"}) {
    const bool creates = std::string(mode) == "create";
    const RigVaCounters before = va_counters();
    const Played surfaces =
        play(source(322, 242) + " ! vatestupload" +
             net("tuning-mode=" + std::string(mode) + " tuning-file=" + file) + kSink);
    EXPECT_EQ(surfaces.path, "zero-copy") << mode << ": " << surfaces.reason;
    EXPECT_EQ(surfaces.zero_copy, 3u) << mode;
    EXPECT_TRUE(surfaces.warnings.empty()) << mode << ": " << surfaces.warnings[0];
    EXPECT_EQ(surfaces.tuning_measured > 0, creates);
    EXPECT_EQ(surfaces.tuning_hits > 0, !creates);
    EXPECT_EQ(va_counters().frame_maps, before.frame_maps) << mode;
    expect_same(surfaces, memory, mode);
  }
  EXPECT_NE(read_file(file).find("surface"), std::string::npos) << "frames of surfaces are tuned";
}

TEST(VaPath, LeavesUntunedWhatCannotBeTried) {
  const TemporaryFolder folder;
  const Setting without("RIG_NO_RG", "1");
  const Played surfaces =
      play(source(322, 242) + " ! vatestupload" +
           net("tuning-mode=create tuning-file=" + (folder / "t.json")) + kSink);
  EXPECT_EQ(surfaces.path, "zero-copy") << surfaces.reason;
  EXPECT_GT(surfaces.tuning_measured, 0u) << "all others are tuned";
  ASSERT_EQ(surfaces.warnings.size(), 1u);
  EXPECT_NE(surfaces.warnings[0].find("stays untuned"), std::string::npos) << surfaces.warnings[0];
  EXPECT_NE(surfaces.warnings[0].find("cannot be set up: clCreateImage gave"), std::string::npos)
      << surfaces.warnings[0];
  expect_same(surfaces, play(source(322, 242) + net() + kSink), "untuned");
}

TEST(VaPath, CopiesTheFramesThatFail) {
  for (const char* fault : {"acquire:5", "import:7"}) {
    const Setting failing("RIG_FAIL", fault);
    const Played surfaces = play(source(320, 240, "", 20) + " ! vatestupload" + net() + kSink);
    EXPECT_EQ(surfaces.warnings.size(), 1u) << fault;
    EXPECT_GT(surfaces.zero_copy, 0u) << fault;
    EXPECT_LT(surfaces.zero_copy, 20u) << fault;
    expect_same(surfaces, play(source(320, 240, "", 20) + net() + kSink), fault);
  }
}

TEST(VaPath, FailsOnceWhenTheDeviceFails) {
  const Setting failing("RIG_FAIL", "enqueue:40");
  const Played surfaces = play(source(320, 240, "", 100) + " ! vatestupload" + net() + kSink);
  EXPECT_NE(surfaces.error.find("CL_OUT_OF_RESOURCES"), std::string::npos) << surfaces.error;
}

// While frames flow; when the first few fail, GStreamer 1.22 loses the others itself.
TEST(VaPath, SurvivesWhenSurfacesRunOut) {
  for (const char* fault : {"surface:7", "surface:8", "surface:9"}) {
    const Setting failing("RIG_FAIL", fault);
    const Played surfaces = play(source(320, 240, "", 20) + " ! vatestupload" + net("nireq=1") +
                                 " ! queue ! identity sleep-time=20000" + kSink);
    // The element before it fails, and the source says so.
    EXPECT_NE(surfaces.error.find("data stream error"), std::string::npos) << surfaces.error;
  }
}

TEST(VaPath, RefusesInterlacedFrames) {
  const std::string deinterlace = "put a deinterlacer before clinfer";
  const std::string upload = " ! vatestupload" + net() + kSink;
  const Played caps =
      play(source(320, 240) +
           " ! capssetter caps=video/x-raw,interlace-mode=interleaved,field-order=top-field-first" +
           upload);
  EXPECT_NE(caps.error.find(deinterlace), std::string::npos) << caps.error;
  const auto flag_frames = [](GstElement* pipeline) {
    GstElement* net = gst_bin_get_by_name(GST_BIN(pipeline), "net");
    GstPad* pad = gst_element_get_static_pad(net, "sink");
    gst_pad_add_probe(
        pad, GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad*, GstPadProbeInfo* info, gpointer) {
          GST_BUFFER_FLAG_SET(GST_PAD_PROBE_INFO_BUFFER(info), GST_VIDEO_BUFFER_FLAG_INTERLACED);
          return GST_PAD_PROBE_OK;
        },
        nullptr, nullptr);
    gst_object_unref(pad);
    gst_object_unref(net);
  };
  const std::string mixed =
      source(320, 240) + " ! capssetter caps=video/x-raw,interlace-mode=mixed" + upload;
  EXPECT_EQ(play(mixed).error, "");
  EXPECT_NE(play(mixed, flag_frames).error.find(deinterlace), std::string::npos);
}

TEST(VaPath, RefusesBuffersThatAreNoSurfaces) {
  Harness harness;
  GstVideoInfo info;
  gst_video_info_set_format(&info, GST_VIDEO_FORMAT_NV12, 64, 48);
  gst_harness_set_src_caps_str(
      harness.get(), "video/x-raw(memory:VAMemory),format=NV12,width=64,height=48,framerate=25/1");
  EXPECT_EQ(gst_harness_push(harness.get(), frame_of(info, kRed, 0)), GST_FLOW_ERROR);
}

// ---- neighbours ---------------------------------------------------------------------------------

TEST(VaPath, OverlayAndPublisherTakeSurfaces) {
  for (const std::string format : {"NV12", "P010_10LE"}) {
    const std::string file = testing_models::folder() / "va-" + format + ".json";
    const Played surfaces =
        play("videotestsrc num-buffers=4 ! video/x-raw,width=322,height=242,format=" + format +
             " ! vatestupload ! clinfer name=net first-tier=false labels=blue,green,red model=" +
             testing_models::color_model() + " ! cloverlay ! clpublish file-path=" + file + kSink);
    EXPECT_EQ(surfaces.error, "") << format;
    EXPECT_EQ(surfaces.path, "zero-copy") << format;
    std::FILE* lines = std::fopen(file.c_str(), "r");
    ASSERT_NE(lines, nullptr);
    int count = 0;
    for (int c; (c = std::fgetc(lines)) != EOF;) count += c == '\n';
    std::fclose(lines);
    EXPECT_EQ(count, 4) << format;
  }
}

TEST(VaPath, SystemMemoryNeedsNoDisplay) {
  const long syncs = va_counters().syncs, imported = cl_counters().imported;
  EXPECT_EQ(play(source(320, 240) + net() + kSink).error, "");
  EXPECT_EQ(va_counters().syncs, syncs);
  EXPECT_EQ(cl_counters().imported, imported);
}

}  // namespace
}  // namespace clinfer
