// Frames in memory of CUDA on the rig: cudaupload, of GStreamer itself, makes them on a stand-in for
// the driver. The network gets the same as from system memory; memory that can be exported is
// read where it lies, other memory is copied on the device, and the rest is mapped, with a reason.
#include <dlfcn.h>

#include "tests/rig/playing.h"

namespace clinfer {
namespace {

constexpr long kFrameBytes = 320 * 240 * 3 / 2;

RigCudaCounters cuda_counters() {
  RigCudaCounters counters{};
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return counters;
  reinterpret_cast<RigReadCudaCounters>(dlsym(driver, "rig_cuda_counters"))(&counters);
  dlclose(driver);
  return counters;
}

// An element between cudaupload and clinfer that keeps clinfer's pool from cudaupload.
constexpr const char* kOwnPool = " ! identity drop-allocation=true";

class CudaMemory : public testing::Test {
 protected:
  void SetUp() override {
    GstElementFactory* factory = gst_element_factory_find("cudaupload");
    if (factory == nullptr) GTEST_SKIP() << "GStreamer's nvcodec plug-in is not installed";
    gst_object_unref(factory);
  }
};

struct PlayedCuda : Played {
  long bytes_down = 0, bytes_inside = 0;
  std::vector<std::string> infos;
};

PlayedCuda play_cuda(const std::string& launch, const Prepare& prepare = {}) {
  const RigCudaCounters before = cuda_counters();
  PlayedCuda played;
  static_cast<Played&>(played) = play(launch, prepare);
  const RigCudaCounters after = cuda_counters();
  played.bytes_down = after.bytes_down - before.bytes_down;
  played.bytes_inside = after.bytes_inside - before.bytes_inside;
  EXPECT_EQ(after.device_syncs, before.device_syncs) << "only streams are waited for";
  return played;
}

TEST_F(CudaMemory, GivesWhatSystemMemoryGivesWithoutACopy) {
  for (const auto& [width, height, format] :
       std::vector<std::tuple<int, int, std::string>>{{320, 240, "NV12"},
                                                      {322, 242, "NV12"},
                                                      {1920, 1080, "NV12"},
                                                      {16, 2, "NV12"},
                                                      {322, 242, "P010_10LE"}}) {
    const std::string what = std::to_string(width) + "x" + std::to_string(height) + " " + format;
    const Played memory = play(source(width, height, "", 3, format) + net() + kSink);
    const PlayedCuda played =
        play_cuda(source(width, height, "", 3, format) + " ! cudaupload" + net() + kSink);
    EXPECT_EQ(played.path, "zero-copy") << what << ": " << played.reason;
    EXPECT_EQ(played.reason, "frames in CUDAMemory") << what;
    EXPECT_EQ(played.zero_copy, 3u) << what;
    EXPECT_EQ(played.bytes_inside, 0) << what;
    EXPECT_TRUE(played.warnings.empty()) << what << ": " << played.warnings[0];
    expect_same(played, memory, what);
    EXPECT_EQ(played.tensors, memory.tensors) << what << ": the same kernel";
  }
}

TEST_F(CudaMemory, ImportsAMemoryOnceAndMapsTheFirstFrameOnly) {
  const long before = cl_counters().buffers_imported;
  const PlayedCuda played =
      play_cuda(source(320, 240, "", 60) + " ! cudaupload" + net("nireq=2") + kSink);
  EXPECT_EQ(played.zero_copy, 60u);
  EXPECT_LT(cl_counters().buffers_imported - before, 20);
  EXPECT_LE(played.bytes_down, 2 * kFrameBytes) << "with the unused ends of rows";
  expect_same(played, play(source(320, 240, "", 60) + net() + kSink), "60 frames");
}

TEST_F(CudaMemory, IsCopiedOnTheDeviceWhereItCannotBeExported) {
  const long before = cl_counters().buffers_imported;
  const PlayedCuda played = play_cuda(source(320, 240, "", 60) + " ! cudaupload" + kOwnPool +
                                      net("batch-size=3") + kSink);
  EXPECT_EQ(played.path, "device copy") << played.reason;
  EXPECT_NE(played.reason.find("cannot be exported"), std::string::npos) << played.reason;
  EXPECT_EQ(played.zero_copy, 0u);
  EXPECT_TRUE(played.warnings.empty()) << played.warnings[0];
  EXPECT_EQ(played.bytes_inside, 60 * kFrameBytes);
  EXPECT_LE(played.bytes_down, 2 * kFrameBytes);
  EXPECT_LT(cl_counters().buffers_imported - before, 40) << "copies come from a pool";
  expect_same(played, play(source(320, 240, "", 60) + net() + kSink), "copies");
}

TEST_F(CudaMemory, FollowsCropAndResizing) {
  for (const char* properties : {"", "resize-mode=letterbox color-format=rgb"}) {
    const Played memory = play(source(200, 90, "", 2) + net(properties) + kSink, crop_frames);
    for (const char* pool : {"", kOwnPool})
      expect_same(
          play_cuda(source(200, 90, "", 2) + " ! cudaupload" + pool + net(properties) + kSink,
                    crop_frames),
          memory, std::string(properties) + pool);
  }
}

TEST_F(CudaMemory, FollowsTheCapsAndTellsMemoriesApart) {
  std::string frames = "concat name=c" + net() + kSink, memory = frames;
  for (const auto& [width, height] : {std::pair{320, 240}, {200, 100}, {322, 242}, {320, 240}}) {
    frames += " " + source(width, height) + " ! cudaupload ! c.";
    memory += " " + source(width, height) + " ! c.";
  }
  expect_same(play_cuda(frames), play(memory), "four pools");
  const std::string branch =
      " ! queue ! clinfer first-tier=false post-process=none model=" + echo_model();
  for (const char* pool : {"", kOwnPool})
    expect_same(play_cuda(source(320, 240, "", 30) + " ! cudaupload" + pool + " ! tee name=t t." +
                          branch + " ! fakesink t. ! queue" + net() + kSink),
                play(source(320, 240, "", 30) + net() + kSink), std::string("after a tee") + pool);
}

// A batch that waits for more frames than the pool has.
TEST_F(CudaMemory, GoesOnWithFewBuffers) {
  const auto limit = [](GstElement* pipeline) {
    GstElement* net = gst_bin_get_by_name(GST_BIN(pipeline), "net");
    GstPad* pad = gst_element_get_static_pad(net, "sink");
    gst_pad_add_probe(
        pad,
        static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM | GST_PAD_PROBE_TYPE_PULL),
        [](GstPad*, GstPadProbeInfo* info, gpointer) {
          GstQuery* query = GST_PAD_PROBE_INFO_QUERY(info);
          if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION &&
              gst_query_get_n_allocation_pools(query) > 0) {
            GstBufferPool* pool = nullptr;
            guint size = 0;
            gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, nullptr, nullptr);
            gst_query_set_nth_allocation_pool(query, 0, pool, size, 2, 2);
            if (pool != nullptr) gst_object_unref(pool);
          }
          return GST_PAD_PROBE_OK;
        },
        nullptr, nullptr);
    gst_object_unref(pad);
    gst_object_unref(net);
  };
  const PlayedCuda played =
      play_cuda(source(320, 240, "", 9) + " ! cudaupload" + net("batch-size=4") + kSink, limit);
  EXPECT_EQ(played.zero_copy, 9u) << played.reason;
  expect_same(played, play(source(320, 240, "", 9) + net() + kSink), "two buffers");
}

TEST_F(CudaMemory, GoesOnAfterAFlush) {
  for (const char* pool : {"", kOwnPool}) {
    {
      Pipeline pipeline(source(320, 240, "", -1) + " ! cudaupload" + pool + net("batch-size=2") +
                        kSink);
      GstElement* net = gst_bin_get_by_name(GST_BIN(pipeline.element), "net");
      const auto wait_for = [&](guint64 frames) {
        guint64 out = 0;
        for (int i = 0; i < 12000 && out < frames; ++i) {
          g_usleep(10000);
          GstStructure* stats = nullptr;
          g_object_get(net, "stats", &stats, nullptr);
          gst_structure_get_uint64(stats, "frames-out", &out);
          gst_structure_free(stats);
        }
        return out;
      };
      gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
      for (int round = 0; round < 5; ++round) {
        const guint64 before = wait_for(1);
        EXPECT_GE(wait_for(before + 5), before + 5) << "round " << round;
        EXPECT_TRUE(gst_element_seek_simple(pipeline.element, GST_FORMAT_TIME,
                                            static_cast<GstSeekFlags>(GST_SEEK_FLAG_FLUSH), 0));
      }
      gst_object_unref(net);
    }
    EXPECT_EQ(cl_counters().misuse, 0) << pool;
    EXPECT_EQ(cl_counters().buffers_alive, 0) << pool;
    EXPECT_EQ(cl_counters().acquired, cl_counters().released) << pool;
  }
}

// ---- memory that is refused ---------------------------------------------------------------------

void expect_mapped(const Played& played, const std::string& reason, size_t warnings) {
  EXPECT_EQ(played.path, "system memory");
  EXPECT_EQ(played.warnings.size(), warnings);
  for (const std::string& warning : played.warnings)
    EXPECT_NE(warning.find(reason), std::string::npos) << warning;
  if (warnings == 0) {
    EXPECT_NE(played.reason.find(reason), std::string::npos) << played.reason;
  }
  expect_same(played, play(source(322, 242, "", 6) + net() + kSink), reason);
}

std::string refused(const std::string& properties = "") {
  return source(322, 242, "", 6) + " ! cudaupload" + net(properties) + kSink;
}

TEST_F(CudaMemory, IsMappedWhereTheDeviceCannotImport) {
  const Setting hidden("RIG_HIDE", "1");
  expect_mapped(play(refused()), "does not offer cl_khr_external_memory", 0);
}

TEST_F(CudaMemory, IsMappedWhereTheFirstFrameReadsWrong) {
  const Setting corrupt("RIG_CORRUPT", "1");
  expect_mapped(play(refused()), "the first frame read wrong", 1);
}

TEST_F(CudaMemory, IsMappedWhereItIsTold) {
  expect_mapped(play(refused("nv12-two-inputs=false")), "nv12-two-inputs=false", 0);
}

TEST_F(CudaMemory, IsMappedWhereNothingIsExported) {
  const Setting failing("RIG_FAIL", "cuda-export:1");
  expect_mapped(play(refused()), "does not export a frame's memory", 1);
}

TEST_F(CudaMemory, IsMappedWhereThereIsNoMemoryToExport) {
  {
    const Setting failing("RIG_FAIL", "cuda-create:1");
    expect_mapped(play(refused()), "no memory that can be exported", 1);
  }
  const Setting without("RIG_NO_EXPORT", "1");
  expect_mapped(play(refused()), "no memory that can be exported", 1);
}

TEST_F(CudaMemory, IsMappedFrameByFrameWhereCopiesFail) {
  const Setting failing("RIG_FAIL", "cuda-copy:5");
  const PlayedCuda played =
      play_cuda(source(320, 240, "", 20) + " ! cudaupload" + kOwnPool + net() + kSink);
  EXPECT_EQ(played.warnings.size(), 1u);
  EXPECT_EQ(played.path, "device copy");
  expect_same(played, play(source(320, 240, "", 20) + net() + kSink), "some copies fail");
}

TEST_F(CudaMemory, IsMappedFrameByFrameWhereTheDeviceFails) {
  {
    const Setting failing("RIG_FAIL", "acquire:5");
    const PlayedCuda played = play_cuda(source(320, 240, "", 20) + " ! cudaupload" + net() + kSink);
    EXPECT_EQ(played.warnings.size(), 1u);
    EXPECT_GT(played.zero_copy, 0u);
    EXPECT_LT(played.zero_copy, 20u);
    expect_same(played, play(source(320, 240, "", 20) + net() + kSink), "some acquires fail");
  }
  const Setting failing("RIG_FAIL", "import:1");
  const Played played = play(refused());
  ASSERT_EQ(played.warnings.size(), 1u);
  EXPECT_NE(played.warnings[0].find("cannot be shared with OpenCL"), std::string::npos)
      << played.warnings[0];
  EXPECT_EQ(played.path, "system memory");
  expect_same(played, play(source(322, 242, "", 6) + net() + kSink), "all imports fail");
}

// The caps say memory of CUDA, and the buffers are of system memory.
TEST_F(CudaMemory, OfAnotherKindIsMapped) {
  const auto replace = [](GstElement* pipeline) {
    probe_frames(pipeline, [](GstPad*, GstPadProbeInfo* info, gpointer) {
      GstVideoInfo video;
      gst_video_info_set_format(&video, GST_VIDEO_FORMAT_NV12, 322, 242);
      GstBuffer* cuda = GST_PAD_PROBE_INFO_BUFFER(info);
      GstBuffer* plain = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&video), nullptr);
      GstVideoFrame from, to;
      EXPECT_TRUE(gst_video_frame_map(&from, &video, cuda, GST_MAP_READ));
      EXPECT_TRUE(gst_video_frame_map(&to, &video, plain, GST_MAP_WRITE));
      EXPECT_TRUE(gst_video_frame_copy(&to, &from));
      gst_video_frame_unmap(&from);
      gst_video_frame_unmap(&to);
      gst_buffer_unref(cuda);
      GST_PAD_PROBE_INFO_DATA(info) = plain;
      return GST_PAD_PROBE_OK;
    });
  };
  expect_mapped(play(refused(), replace), "memory of CUDA is none", 1);
}

}  // namespace
}  // namespace clinfer
