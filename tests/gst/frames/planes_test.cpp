// Networks whose graph begins with the conversion of planes (NV12toRGB and its kin): they take the
// picture, whatever the frames' format.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/gst/harness.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

// The mean of each channel of the picture of 24x16 that `conversion` makes of its planes.
std::string planes_model(const std::string& conversion, const std::vector<Shape>& planes) {
  const Shape picture{planes[0][0], 16, 24, 3};
  test::SmallIr ir(conversion);
  std::vector<int> inputs;
  for (const Shape& plane : planes)
    inputs.push_back(ir.input(plane, "x/" + std::to_string(inputs.size()), "u8"));
  const int rgb = ir.add(conversion, 8, "", inputs, picture, "rgb");
  const int floats = ir.add("Convert", 1, "destination_type=\"f32\"", {rgb}, picture, "floats");
  ir.result(ir.add("ReduceMean", 1, "keep_dims=\"false\"", {floats, ir.integers({1, 2})},
                   {planes[0][0], 3}, "mean"));
  return ir.write(testing_models::folder());
}

std::vector<float> floats_of(const TensorView& tensor) {
  gsize size = 0;
  const void* data = g_bytes_get_data(tensor.data.get(), &size);
  std::vector<float> values(size / sizeof(float));
  std::memcpy(values.data(), data, size);
  return values;
}

// The means of a frame, and of its left half where there are regions.
void expect_colors(const std::string& properties, const std::string& model, bool bgr,
                   const char* format) {
  Harness harness("clinfer model=" + model + " post-process=none " + properties);
  harness.set_caps(format, 48, 32);
  const std::vector<Rgb> colors = {kBlue, kGreen, kRed, kBlue};
  for (size_t i = 0; i < colors.size(); ++i)
    ASSERT_EQ(harness.push(colors[i], static_cast<int>(i)), GST_FLOW_OK);
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  for (const Rgb& color : colors) {
    const auto results = read_results(harness.pull().get());
    ASSERT_EQ(results.size(), 1u);
    ASSERT_EQ(results[0].tensors.size(), 1u);
    const std::vector<float> means = floats_of(results[0].tensors[0]);
    ASSERT_EQ(means.size(), 3u);
    EXPECT_NEAR(means[bgr ? 2 : 0], color.r, 3) << model << " " << format;
    EXPECT_NEAR(means[1], color.g, 3) << model << " " << format;
    EXPECT_NEAR(means[bgr ? 0 : 2], color.b, 3) << model << " " << format;
  }
}

TEST(Planes, AreGivenAsTheirPicture) {
  const std::string two = planes_model("NV12toRGB", {{1, 16, 24, 1}, {1, 8, 12, 2}}),
                    one = planes_model("NV12toBGR", {{1, 24, 24, 1}}),
                    three =
                        planes_model("I420toRGB", {{1, 16, 24, 1}, {1, 8, 12, 1}, {1, 8, 12, 1}}),
                    joined = planes_model("I420toBGR", {{1, 24, 24, 1}});
  for (const char* format : {"NV12", "BGR", "I420"}) {
    expect_colors("", two, false, format);
    expect_colors("", one, true, format);
  }
  expect_colors("", three, false, "NV12");
  expect_colors("", joined, true, "NV12");
  expect_colors("batch-size=2", two, false, "NV12");
}

// A region has its own picture; as planes it would begin on odd pixels.
TEST(Planes, OfRegions) {
  const std::string model = planes_model("NV12toRGB", {{1, 16, 24, 1}, {1, 8, 12, 2}});
  Harness harness("clinfer model=" + model + " post-process=none regions=\"1,1,13,15;24,0,24,32\"");
  harness.set_caps("NV12", 48, 32);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  const Handle<GstBuffer> buffer = harness.pull();
  const std::vector<RegionView> regions = read_regions(buffer.get(), 48, 32);
  ASSERT_EQ(regions.size(), 2u);
  for (const RegionView& region : regions) {
    ASSERT_EQ(region.tensors.size(), 1u);
    const std::vector<float> means = floats_of(region.tensors[0]);
    EXPECT_NEAR(means[0], kRed.r, 3);
    EXPECT_NEAR(means[2], kRed.b, 3);
  }
}

TEST(Planes, RefuseOtherColors) {
  const std::string model = planes_model("NV12toRGB", {{1, 16, 24, 1}, {1, 8, 12, 2}});
  Pipeline pipeline("videotestsrc num-buffers=1 ! video/x-raw,format=NV12 ! clinfer model=" +
                    model + " post-process=none color-format=bgr ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  EXPECT_NE(error_on(pipeline.element).find("turns its planes into rgb"), std::string::npos);
}

}  // namespace
}  // namespace clinfer
