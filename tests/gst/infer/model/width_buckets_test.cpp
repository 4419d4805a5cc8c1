// Text recognition of lines whose widths differ.
#include <gtest/gtest.h>

#include "gst/infer/model/widths.h"
#include "tests/gst/harness.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

// Lines of text of 32 rows and any width: each eight columns are a step, whose characters are blue
// (a), green (b) and red (c), and the blank where no colour covers most of it.
std::string line_reader() {
  test::SmallIr ir("line-reader");
  const int line = ir.input({-1, 3, 32, -1}, "line");
  const int pooled = ir.add("AvgPool", 1,
                            "kernel=\"32,8\" strides=\"32,8\" pads_begin=\"0,0\" pads_end=\"0,0\" "
                            "exclude-pad=\"true\" rounding_type=\"floor\" auto_pad=\"explicit\"",
                            {line}, {-1, 3, 1, -1}, "pooled");
  const int flat = ir.add("Squeeze", 1, "", {pooled, ir.integers({2})}, {-1, 3, -1}, "flat");
  const int steps =
      ir.add("Transpose", 1, "", {flat, ir.integers({0, 2, 1})}, {-1, -1, 3}, "steps");
  const int before = ir.integers({0, 0, 1}), after = ir.integers({0, 0, 0});
  const int blank = ir.constant({}, {0.2f});
  ir.result(ir.add("Pad", 1, "pad_mode=\"constant\"", {steps, before, after, blank}, {-1, -1, 4},
                   "scores"));
  return ir.write(testing_models::folder());
}

const std::string kLong = "aabccabbacbcaabbccabcacb", kShort = "ca";

// A frame with a line of 800x32 at the top and one of 64x32 below it, as regions of interest.
GstBuffer* page(const GstVideoInfo& info) {
  GstBuffer* buffer = frame_of(info, {0, 0, 0}, 0);
  {
    GstVideoFrame frame;
    EXPECT_TRUE(gst_video_frame_map(&frame, &info, buffer, GST_MAP_WRITE));
    const Rgb colors[] = {{0, 0, 255}, {0, 255, 0}, {255, 0, 0}};
    Canvas canvas(&frame, 0, 0, GST_VIDEO_FRAME_WIDTH(&frame), GST_VIDEO_FRAME_HEIGHT(&frame));
    for (size_t i = 0; i < kLong.size(); ++i)
      canvas.fill(8 + 32 * static_cast<int>(i), 0, 16, 32, colors[kLong[i] - 'a']);
    for (size_t i = 0; i < kShort.size(); ++i)
      canvas.fill(8 + 32 * static_cast<int>(i), 32, 16, 32, colors[kShort[i] - 'a']);
    gst_video_frame_unmap(&frame);
  }
  gst_buffer_add_video_region_of_interest_meta(buffer, "text", 0, 0, 800, 32);
  gst_buffer_add_video_region_of_interest_meta(buffer, "text", 0, 32, 64, 32);
  return buffer;
}

// The text of each region; "" where there is none.
std::vector<std::string> texts_of(GstBuffer* buffer) {
  std::vector<std::string> texts;
  for (const RegionView& region : read_regions(buffer, 832, 64))
    texts.push_back(region.texts.empty() ? "" : region.texts[0].text);
  return texts;
}

std::string line_pipeline(const std::string& more) {
  return "clinfer model=" + line_reader() +
         " labels=a,b,c threshold=0.1 inference-region=roi-list " + more;
}

TEST(WidthBuckets, AreFewAndHoldTheLine) {
  EXPECT_EQ(bucket_widths(320), (std::vector<int>{160, 320, 480, 640, 960, 1280, 1920, 2560}));
  EXPECT_EQ(bucket_widths(224), (std::vector<int>{128, 224, 352, 448, 672, 896, 1344, 1792}));
  const std::vector<int> widths = bucket_widths(320);
  EXPECT_EQ(bucket_for(widths, 48, 100, 48), 160);
  EXPECT_EQ(bucket_for(widths, 48, 320, 96), 160);
  EXPECT_EQ(bucket_for(widths, 48, 176, 48), 160);
  EXPECT_EQ(bucket_for(widths, 48, 177, 48), 320);
  EXPECT_EQ(bucket_for(widths, 48, 320, 24), 640);
  EXPECT_EQ(bucket_for(widths, 48, 454, 31), 640);
  EXPECT_EQ(bucket_for(widths, 48, 100000, 48), 2560);
  EXPECT_EQ(bucket_for(widths, 48, 1, 0), 160);
}

TEST(WidthBuckets, EachLineGoesToItsWidth) {
  for (const char* batch : {"", "batch-size=2"}) {
    Harness harness(line_pipeline(batch));
    harness.set_caps("BGR", 832, 64);
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(gst_harness_push(harness.get(), page(harness.info())), GST_FLOW_OK);
    gst_harness_push_event(harness.get(), gst_event_new_eos());
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(texts_of(harness.pull().get()), (std::vector<std::string>{kLong, kShort})) << batch;
    const Handle<GstStructure> stats = stats_of(harness.clinfer());
    EXPECT_STREQ(gst_structure_get_string(stats.get(), "widths"), "128,896");
  }
}

TEST(WidthBuckets, ReshapeWins) {
  Harness harness(line_pipeline("reshape=224x32"));
  harness.set_caps("BGR", 832, 64);
  ASSERT_EQ(gst_harness_push(harness.get(), page(harness.info())), GST_FLOW_OK);
  const std::vector<std::string> texts = texts_of(harness.pull().get());
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_NE(texts[0], kLong) << "the long line is squeezed into 224 columns";
  EXPECT_EQ(texts[1], kShort);
}

// A live stream does not wait: the long line is read right once its width is compiled.
TEST(WidthBuckets, ALiveStreamGoesOnMeanwhile) {
  Harness harness(line_pipeline("overload-policy=skip-inference"));
  harness.set_caps("BGR", 832, 64);
  const gint64 end = g_get_monotonic_time() + static_cast<gint64>(kPatience / 1000);
  std::vector<std::string> texts;
  while (g_get_monotonic_time() < end && texts != std::vector<std::string>{kLong, kShort}) {
    ASSERT_EQ(gst_harness_push(harness.get(), page(harness.info())), GST_FLOW_OK);
    texts = texts_of(harness.pull().get());
    g_usleep(10000);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{kLong, kShort}));
}

// An open width without a dictionary, or with outputs that are no text.
TEST(WidthBuckets, NeedText) {
  Pipeline pipeline("videotestsrc num-buffers=1 ! clinfer model=" + line_reader() + " ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  const std::string error = error_on(pipeline.element);
  EXPECT_NE(error.find("open in its width"), std::string::npos) << error;
  EXPECT_NE(error.find("reshape=WIDTHxHEIGHT"), std::string::npos) << error;
}

}  // namespace
}  // namespace clinfer
