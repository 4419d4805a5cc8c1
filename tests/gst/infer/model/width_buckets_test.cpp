// Text recognition of lines whose widths differ.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "gst/infer/model/widths.h"
#include "tests/gst/harness.h"

namespace clinfer {
namespace {

std::string port(int id, const std::vector<int>& shape) {
  std::string text = "<port id=\"" + std::to_string(id) + "\" precision=\"FP32\">";
  for (const int d : shape) text += "<dim>" + std::to_string(d) + "</dim>";
  return text + "</port>";
}

// Lines of text of 32 rows and any width: each eight columns are a step, whose characters are blue
// (a), green (b) and red (c), and the blank where no colour covers most of it.
std::string line_reader() {
  const float blank = 0.2f;
  const int64_t axis = 2, order[] = {0, 2, 1}, before[] = {0, 0, 1}, after[] = {0, 0, 0};
  std::string weights;
  const auto put = [&](const void* data, size_t bytes) {
    weights.append(static_cast<const char*>(data), bytes);
  };
  put(&axis, 8);
  put(order, 24);
  put(before, 24);
  put(after, 24);
  put(&blank, 4);
  testing_models::write_file("line-reader.bin", weights);
  std::string layers;
  const auto layer = [&](int id, const char* name, const char* type, const char* opset,
                         const std::string& data, const std::string& in, const std::string& out) {
    layers += "<layer id=\"" + std::to_string(id) + "\" name=\"" + name + "\" type=\"" + type +
              "\" version=\"" + opset + "\">" + (data.empty() ? "" : "<data " + data + "/>") +
              (in.empty() ? "" : "<input>" + in + "</input>") +
              (out.empty() ? "" : "<output>" + out + "</output>") + "</layer>\n";
  };
  const auto ints = [](int id, int count) {
    return "<port id=\"" + std::to_string(id) + "\" precision=\"I64\">" +
           (count == 0 ? "" : "<dim>" + std::to_string(count) + "</dim>") + "</port>";
  };
  const auto constant = [&](int id, const char* name, const char* type, int count, int offset) {
    const bool is_float = std::strcmp(type, "f32") == 0;
    layer(id, name, "Const", "opset1",
          std::string("element_type=\"") + type + "\" shape=\"" +
              (count == 0 ? "" : std::to_string(count)) + "\" offset=\"" + std::to_string(offset) +
              "\" size=\"" + std::to_string(is_float ? 4 : 8 * std::max(count, 1)) + "\"",
          "", is_float ? "<port id=\"0\" precision=\"FP32\"></port>" : ints(0, count));
  };
  const std::vector<int> picture = {-1, 3, 32, -1}, pooled = {-1, 3, 1, -1}, flat = {-1, 3, -1},
                         steps = {-1, -1, 3}, scores = {-1, -1, 4};
  layer(0, "line", "Parameter", "opset1", "shape=\"?,3,32,?\" element_type=\"f32\"", "",
        port(0, picture));
  layer(1, "pooled", "AvgPool", "opset1",
        "kernel=\"32,8\" strides=\"32,8\" pads_begin=\"0,0\" pads_end=\"0,0\" "
        "exclude-pad=\"true\" rounding_type=\"floor\" auto_pad=\"explicit\"",
        port(0, picture), port(1, pooled));
  constant(2, "axis", "i64", 0, 0);
  layer(3, "flat", "Squeeze", "opset1", "", port(0, pooled) + ints(1, 0), port(2, flat));
  constant(4, "order", "i64", 3, 8);
  layer(5, "steps", "Transpose", "opset1", "", port(0, flat) + ints(1, 3), port(2, steps));
  constant(6, "before", "i64", 3, 32);
  constant(7, "after", "i64", 3, 56);
  constant(8, "blank", "f32", 0, 80);
  layer(9, "scores", "Pad", "opset1", "pad_mode=\"constant\"",
        port(0, steps) + ints(1, 3) + ints(2, 3) + "<port id=\"3\" precision=\"FP32\"></port>",
        port(4, scores));
  layer(10, "result", "Result", "opset1", "", port(0, scores), "");
  std::string edges;
  for (const auto& [from, from_port, to, to_port] : std::vector<std::array<int, 4>>{{0, 0, 1, 0},
                                                                                    {1, 1, 3, 0},
                                                                                    {2, 0, 3, 1},
                                                                                    {3, 2, 5, 0},
                                                                                    {4, 0, 5, 1},
                                                                                    {5, 2, 9, 0},
                                                                                    {6, 0, 9, 1},
                                                                                    {7, 0, 9, 2},
                                                                                    {8, 0, 9, 3},
                                                                                    {9, 4, 10, 0}})
    edges += "<edge from-layer=\"" + std::to_string(from) + "\" from-port=\"" +
             std::to_string(from_port) + "\" to-layer=\"" + std::to_string(to) + "\" to-port=\"" +
             std::to_string(to_port) + "\"/>\n";
  return testing_models::write_file(
      "line-reader.xml",
      "<?xml version=\"1.0\"?>\n<net name=\"line-reader\" version=\"11\"><layers>\n" + layers +
          "</layers><edges>\n" + edges + "</edges></net>\n");
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
    GstStructure* stats = nullptr;
    g_object_get(harness.clinfer(), "stats", &stats, nullptr);
    EXPECT_STREQ(gst_structure_get_string(stats, "widths"), "128,896");
    gst_structure_free(stats);
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
