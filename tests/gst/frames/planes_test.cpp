// Networks whose graph begins with the conversion of planes (NV12toRGB and its kin): they take the
// picture, whatever the frames' format.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/gst/harness.h"

namespace clinfer {
namespace {

std::string port(int id, const char* precision, const std::vector<int>& shape) {
  std::string text = "<port id=\"" + std::to_string(id) + "\" precision=\"" + precision + "\">";
  for (const int d : shape) text += "<dim>" + std::to_string(d) + "</dim>";
  return text + "</port>";
}

// The mean of each channel of the picture of 24x16 that `conversion` makes of its planes.
std::string planes_model(const std::string& conversion,
                         const std::vector<std::vector<int>>& planes) {
  const long long axes[] = {1, 2};
  testing_models::write_file(conversion + ".bin",
                             std::string(reinterpret_cast<const char*>(axes), sizeof axes));
  std::string layers, edges, ports;
  int id = 0;
  const auto layer = [&](const std::string& name, const std::string& type, const std::string& data,
                         const std::string& in, const std::string& out) {
    layers += "<layer id=\"" + std::to_string(id) + "\" name=\"" + name + "\" type=\"" + type +
              "\" version=\"" + (type == conversion ? "opset8" : "opset1") + "\">" + data +
              (in.empty() ? "" : "<input>" + in + "</input>") +
              (out.empty() ? "" : "<output>" + out + "</output>") + "</layer>\n";
    return id++;
  };
  const auto edge = [&](int from, int from_port, int to, int to_port) {
    edges += "<edge from-layer=\"" + std::to_string(from) + "\" from-port=\"" +
             std::to_string(from_port) + "\" to-layer=\"" + std::to_string(to) + "\" to-port=\"" +
             std::to_string(to_port) + "\"/>\n";
  };
  for (const std::vector<int>& plane : planes) {
    std::string shape;
    for (const int d : plane) shape += (shape.empty() ? "" : ",") + std::to_string(d);
    layer("x/" + std::to_string(id), "Parameter",
          "<data element_type=\"u8\" shape=\"" + shape + "\"/>", "", port(0, "U8", plane));
    ports += port(id - 1, "U8", plane);
  }
  const int inputs = id;
  const std::vector<int> picture = {planes[0][0], 16, 24, 3}, mean = {planes[0][0], 3};
  const int rgb = layer("rgb", conversion, "", ports, port(inputs, "U8", picture));
  for (int i = 0; i < inputs; ++i) edge(i, 0, rgb, i);
  const int floats = layer("floats", "Convert", "<data destination_type=\"f32\"/>",
                           port(0, "U8", picture), port(1, "FP32", picture));
  edge(rgb, inputs, floats, 0);
  const int axes_id =
      layer("axes", "Const", "<data element_type=\"i64\" shape=\"2\" offset=\"0\" size=\"16\"/>",
            "", port(0, "I64", {2}));
  const int reduced = layer("mean", "ReduceMean", "<data keep_dims=\"false\"/>",
                            port(0, "FP32", picture) + port(1, "I64", {2}), port(2, "FP32", mean));
  edge(floats, 1, reduced, 0);
  edge(axes_id, 0, reduced, 1);
  const int result = layer("mean/sink", "Result", "", port(0, "FP32", mean), "");
  edge(reduced, 2, result, 0);
  return testing_models::write_file(conversion + ".xml",
                                    "<?xml version=\"1.0\"?>\n<net name=\"planes\" version=\"11\">"
                                    "<layers>\n" +
                                        layers + "</layers><edges>\n" + edges + "</edges></net>\n");
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
