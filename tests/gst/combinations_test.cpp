// Features together: formats, crops, batches, regions, tiles, held results, privacy, chains.
#include <algorithm>
#include <vector>

#include "tests/gst/harness.h"

namespace clinfer {
namespace {

constexpr char kBall[] = "clinfer model=" CLINFER_SOURCE_DIR "/pipelines/models/ball.xml ";

struct Shown {
  FrameView view;
  long bright = 0;  // pixels of a GRAY8 picture
};

// The results for GStreamer's moving ball, 322x242, in 6 frames.
std::vector<Shown> ball_through(const std::string& elements, const std::string& format = "GRAY8") {
  Pipeline pipeline("videotestsrc pattern=ball num-buffers=6 ! video/x-raw,format=" + format +
                    ",width=322,height=242,framerate=30/1 ! " + elements +
                    " ! appsink name=sink sync=false wait-on-eos=false");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  EXPECT_EQ(error_on(pipeline.element, std::chrono::minutes(2)), "") << elements;
  const Handle<GstElement> sink = pipeline.find("sink");
  std::vector<Shown> frames;
  for (;;) {
    GstSample* sample = nullptr;
    g_signal_emit_by_name(sink.get(), "try-pull-sample", GstClockTime{0}, &sample);
    if (sample == nullptr) break;
    GstBuffer* buffer = gst_sample_get_buffer(sample);
    Shown& shown = frames.emplace_back();
    shown.view = read_frame(buffer, 322, 242);
    GstMapInfo map;
    if (gst_buffer_map(buffer, &map, GST_MAP_READ)) {
      // Rows of GRAY8 end with two bytes of padding.
      for (size_t at = 0; at < map.size; ++at) shown.bright += at % 324 < 322 && map.data[at] > 100;
      gst_buffer_unmap(buffer, &map);
    }
    gst_sample_unref(sample);
  }
  EXPECT_EQ(frames.size(), 6u) << elements;
  return frames;
}

const RegionView* ball_in(const FrameView& frame) {
  for (const RegionView& region : frame.regions)
    if (region.label == "ball") return &region;
  return nullptr;
}

void expect_same_balls(const std::vector<Shown>& a, const std::vector<Shown>& b,
                       const std::string& what, int tolerance = 3) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    const RegionView *p = ball_in(a[i].view), *q = ball_in(b[i].view);
    ASSERT_NE(p, nullptr) << what << " frame " << i;
    ASSERT_NE(q, nullptr) << what << " frame " << i;
    EXPECT_NEAR(p->x, q->x, tolerance) << what << " frame " << i;
    EXPECT_NEAR(p->y, q->y, tolerance) << what << " frame " << i;
    EXPECT_NEAR(p->width, q->width, tolerance) << what << " frame " << i;
    EXPECT_NEAR(p->height, q->height, tolerance) << what << " frame " << i;
  }
}

TEST(Combinations, EveryFormatLetterboxedInBatchesAndInRegions) {
  for (const std::string& ways :
       {std::string(kBall) + "resize-mode=letterbox", std::string(kBall) + "batch-size=4",
        std::string(kBall) + "tiles=2x1,0.5",
        std::string(kBall) + "regions=0,0,322,242 batch-size=2"}) {
    const auto expected = ball_through(ways, "NV12");
    for (const char* format : {"NV16", "Y42B", "Y444", "P010_10LE", "I420_10LE", "YUY2", "BGRx"})
      expect_same_balls(ball_through(ways, format), expected, ways + " " + format);
  }
}

TEST(Combinations, BatchesOfRegionsStayWithTheirFrames) {
  const auto expected = ball_through(kBall);
  const auto found =
      ball_through(std::string(kBall) + "batch-size=5 regions=\"0,0,322,242;0,0,40,40\"");
  expect_same_balls(found, expected, "regions");
  for (const Shown& frame : found) {
    const RegionView* ball = ball_in(frame.view);
    ASSERT_NE(ball, nullptr);
    // It is part of the region that holds the whole picture.
    const auto parent =
        std::find_if(frame.view.regions.begin(), frame.view.regions.end(),
                     [&](const RegionView& region) { return region.id == ball->parent_id; });
    ASSERT_NE(parent, frame.view.regions.end());
    EXPECT_EQ(parent->width, 322);
  }
}

// Each filter of objects with each way to infer: it lets the ball pass where it should, as without
// the filter, and takes it away on every frame where it should not.
TEST(Combinations, EachFilterWithEachWayToInfer) {
  const std::string second = std::string(kBall) + "regions=0,0,322,242 post-process=none ! " +
                             kBall + "inference-region=roi-list object-class=region ";
  const std::pair<const char*, std::string> kWays[] = {
      {"whole frames", kBall},
      {"batches", std::string(kBall) + "batch-size=4 "},
      {"tiles", std::string(kBall) + "tiles=2x1,0.5 "},
      {"tiles in batches", std::string(kBall) + "tiles=2x2,0.5 batch-size=3 "},
      {"regions", std::string(kBall) + "regions=\"0,0,322,242;0,0,30,30\" "},
      {"a second stage", second},
      {"a second stage in batches", second + "batch-size=3 "},
      {"held results", std::string(kBall) + "inference-interval=3 hold-results=1 "},
      {"a turned picture", std::string(kBall) + "video-direction=90r "},
      {"tiles of a mirrored picture, held",
       std::string(kBall) +
           "tiles=2x1,0.5 video-direction=horiz inference-interval=2 hold-results=1 "}};
  const char* kPass[] = {"classes=ball thresholds=ball=0.6 min-size=5x5 max-size=0.5x0.5"};
  const char* kRefuse[] = {"classes=background", "thresholds=ball=1", "min-size=0.9x0.9",
                           "max-size=4x4"};
  const auto outcomes = [](const std::vector<Shown>& frames) {
    std::vector<Outcome> all;
    for (const Shown& frame : frames)
      for (const ResultView& result : frame.view.results) all.push_back(result.outcome);
    return all;
  };
  for (const auto& [name, way] : kWays) {
    const std::vector<Shown> plain = ball_through(way);
    for (const char* filter : kPass) {
      const std::vector<Shown> frames = ball_through(way + filter);
      const std::string what = std::string(name) + ", " + filter;
      EXPECT_EQ(outcomes(frames), outcomes(plain)) << what;
      ASSERT_EQ(frames.size(), plain.size()) << what;
      for (size_t i = 0; i < frames.size(); ++i) {
        const RegionView *before = ball_in(plain[i].view), *now = ball_in(frames[i].view);
        ASSERT_EQ(now != nullptr, before != nullptr) << what << " frame " << i;
        if (now == nullptr) continue;
        EXPECT_EQ(now->x, before->x) << what << " frame " << i;
        EXPECT_EQ(now->width, before->width) << what << " frame " << i;
      }
      EXPECT_NE(ball_in(frames[0].view), nullptr) << what;
    }
    for (const char* filter : kRefuse) {
      const std::vector<Shown> frames = ball_through(way + filter);
      const std::string what = std::string(name) + ", " + filter;
      EXPECT_EQ(outcomes(frames), outcomes(plain)) << what;
      for (const Shown& frame : frames) EXPECT_EQ(ball_in(frame.view), nullptr) << what;
    }
  }
}

TEST(Combinations, ObjectsOfTilesAreHeld) {
  const auto frames =
      ball_through(std::string(kBall) + "tiles=2x1,0.5 inference-interval=3 hold-results=1");
  ASSERT_EQ(frames.size(), 6u);
  for (size_t i = 0; i < frames.size(); ++i) {
    const FrameView& view = frames[i].view;
    ASSERT_EQ(view.results.size(), 1u);
    const Outcome expected = i % 3 == 0   ? Outcome::run
                             : i % 3 == 1 ? Outcome::held
                                          : Outcome::skipped;
    EXPECT_EQ(view.results[0].outcome, expected) << i;
    EXPECT_EQ(ball_in(view) != nullptr, i % 3 != 2) << i;
    if (i % 3 == 1) {
      EXPECT_EQ(ball_in(view)->x, ball_in(frames[i - 1].view)->x);
    }
  }
}

// The ball is white. Its rim may lie a pixel outside of its box.
TEST(Combinations, PrivacyHidesTheBallOnFramesWithoutInference) {
  const std::string chain = std::string(kBall) +
                            "inference-interval=4 ! cloverlay show-boxes=false show-labels=false "
                            "show-scores=false privacy=";
  const auto plain = ball_through(chain + "none"), hidden = ball_through(chain + "fill");
  ASSERT_EQ(plain.size(), hidden.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_GT(plain[i].bright, 300) << i;
    EXPECT_LT(hidden[i].bright, plain[i].bright / 20) << i;
  }
}

TEST(Combinations, TwoInAChainWithBatchesAndHeldResults) {
  const auto frames = ball_through(std::string(kBall) +
                                   "batch-size=3 ! clinfer model=" + testing_models::color_model() +
                                   " labels=blue,green,red inference-region=roi-list "
                                   "object-class=ball batch-size=4 name=second");
  for (const Shown& frame : frames) {
    ASSERT_NE(ball_in(frame.view), nullptr);
    EXPECT_EQ(frame.view.regions.size(), 1u);
    EXPECT_EQ(ball_in(frame.view)->classifications.size(), 1u);
    EXPECT_EQ(frame.view.results.size(), 2u);
  }
}

// The network of the second stage is exchanged while frames pass: each answer names its network.
TEST(Combinations, TheModelOfASecondStageChanges) {
  const std::string other = testing_models::color_model("colour_too", 16);
  Harness harness(std::string("identity ! ") + Harness::clinfer_launch("regions=0,0,32,32") +
                  " ! clinfer name=second labels=blue,green,red inference-region=roi-list model=" +
                  testing_models::color_model());
  harness.set_caps("RGB", 64, 64);
  const Handle<GstElement> second(gst_bin_get_by_name(GST_BIN(harness.get()->element), "second"));
  std::vector<std::string> models;
  for (int i = 0; i < 400; ++i) {
    ASSERT_EQ(harness.push(kRed, i), GST_FLOW_OK);
    const auto buffer = harness.pull();
    const auto regions = read_regions(buffer.get(), 64, 64);
    ASSERT_EQ(regions.size(), 1u);
    ASSERT_EQ(regions[0].classifications.size(), 2u);
    EXPECT_EQ(regions[0].classifications[1].label, "red");
    models.push_back(regions[0].classifications[1].model);
    if (i == 2) g_object_set(second.get(), "model", other.c_str(), nullptr);
    if (models.back() == "colour_too") break;
    g_usleep(i < 3 ? 0 : 50000);
  }
  EXPECT_EQ(models.front(), "color");
  EXPECT_EQ(models.back(), "colour_too");
}

}  // namespace
}  // namespace clinfer
