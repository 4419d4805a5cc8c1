// clinferfilter: pictures out of networks.
#include <cmath>
#include <fstream>

#include "gst/filter/picture_model.h"
#include "tests/gst/first_tier.h"

namespace clinfer {
namespace {

using testing_models::same_picture;
using namespace std::chrono_literals;

FilterSettings settings_for(const std::string& model) {
  FilterSettings settings;
  settings.model = model;
  settings.device = "CPU";
  settings.cache_dir = "";
  settings.config = "INFERENCE_PRECISION=f32,FIRST_TIER=NO";
  return settings;
}

struct Picture {
  std::vector<uint8_t> rgb;
  Frame frame;

  Picture(int width, int height, int brightest = 255)
      : rgb(static_cast<size_t>(3 * width * height)) {
    for (size_t i = 0; i < rgb.size(); ++i)
      rgb[i] = static_cast<uint8_t>((i * 53 + i / 7) % static_cast<size_t>(brightest + 1));
    frame.format = PixelFormat::rgb;
    frame.width = width;
    frame.height = height;
    frame.planes[0] = rgb.data();
    frame.strides[0] = 3 * width;
  }
};

// Rows further apart than they are long, as a GstVideoFrame may have them.
std::vector<uint8_t> run(PictureModel& model, const Picture& picture) {
  const PictureSize size = model.output();
  const int stride = 3 * size.width + 5;
  std::vector<uint8_t> rows(static_cast<size_t>(stride * size.height)), dense;
  model.run(picture.frame, rows.data(), stride);
  for (int y = 0; y < size.height; ++y)
    dense.insert(dense.end(), rows.begin() + y * stride,
                 rows.begin() + y * stride + 3 * size.width);
  return dense;
}

TEST(PictureModel, GivesWhatTheNetworkMakes) {
  const std::string path = same_picture(3, 6, 8);
  const Picture picture(8, 6);
  for (const char* scale : {"", "255", "127.5"})
    for (const ColorChoice color : {ColorChoice::automatic, ColorChoice::rgb}) {
      FilterSettings settings = settings_for(path);
      settings.scale = scale;
      settings.mean = std::string(scale) == "127.5" ? "127.5" : "";
      settings.color_format = color;
      PictureModel model(settings, {});
      EXPECT_EQ(model.output().width, 8);
      EXPECT_EQ(model.output().height, 6);
      model.compile();
      model.take_notices();
      EXPECT_EQ(run(model, picture), picture.rgb) << scale;
      EXPECT_EQ(model.take_notices().size(), 1u) << "the range of values is a guess";
      run(model, picture);
      EXPECT_TRUE(model.take_notices().empty()) << "said once";
    }
}

TEST(PictureModel, FollowsTheFrame) {
  FilterSettings settings = settings_for(same_picture(3, 6, 8));
  settings.reshape = "frame";
  settings.output_range = OutputRange::byte;
  PictureModel model(settings, {10, 4});
  EXPECT_EQ(model.output().width, 10);
  model.compile();
  const Picture picture(10, 4);
  EXPECT_EQ(run(model, picture), picture.rgb);
}

// A dark picture must not decide that values go to 1.
TEST(PictureModel, DecidesByAPictureThatIsNotBlack) {
  PictureModel model(settings_for(same_picture(3, 6, 8)), {});
  model.compile();
  model.take_notices();
  run(model, Picture(8, 6, 0));
  EXPECT_TRUE(model.take_notices().empty());
  const Picture picture(8, 6);
  EXPECT_EQ(run(model, picture), picture.rgb);
}

TEST(PictureModel, KeepsTheColoursAroundALuma) {
  FilterSettings settings = settings_for(same_picture(1, 6, 8));
  settings.output_range = OutputRange::byte;
  PictureModel model(settings, {});
  model.compile();
  const Picture picture(8, 6);
  const std::vector<uint8_t> out = run(model, picture);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], picture.rgb[i], 1) << i;
}

TEST(PictureModel, RefusesOtherNetworks) {
  try {
    PictureModel(settings_for(testing_models::color_model()), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no output is a picture"), std::string::npos)
        << error.what();
  }
}

TEST(ClinferFilter, MakesVideoOfTheNetworksSize) {
  Pipeline pipeline(
      "videotestsrc num-buffers=3 ! video/x-raw,format=NV12,width=64,height=48,framerate=30/1 ! "
      "clinferfilter device=CPU cache-dir=\"\" config=FIRST_TIER=NO output-range=byte model=" +
      same_picture(3, 6, 8) +
      " ! video/x-raw,format=RGB,width=8,height=6,framerate=30/1 ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  EXPECT_EQ(error_on(pipeline.element, 60000ms), "");
}

// Caps behind the element are asked for before anybody hears why there are none.
TEST(ClinferFilter, LinksWithAModelThatCannotBeRead) {
  const std::pair<std::string, const char*> refusals[] = {
      {"/no/such.onnx", "/no/such.onnx: No such file"},
      {"/no/such.onnx reshape=frame", "/no/such.onnx: No such file"},
      {same_picture(3, 6, 8) + " reshape=frame config=NO_KEY=1", "unknown config key NO_KEY"}};
  for (const auto& [properties, why] : refusals) {
    Pipeline pipeline(
        "videotestsrc num-buffers=3 ! video/x-raw,width=8,height=6 ! clinferfilter model=" +
        properties + " ! video/x-raw ! fakesink");
    gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
    const std::string error = error_on(pipeline.element, 60000ms);
    EXPECT_NE(error.find(why), std::string::npos) << error;
  }
}

// The host makes pictures until the device takes over between two of them.
TEST(ClinferFilter, MakesPicturesWhileItCompiles) {
  const ColdCaches cold;
  Harness harness("clinferfilter device=CPU output-range=byte cache-dir=" + cold.folder() +
                  " model=" + same_picture(3, 6, 8));
  harness.set_caps("RGB", 8, 6);
  std::vector<std::string> texts;
  const auto until = std::chrono::steady_clock::now() + 300s;
  for (int number = 0;
       index_of(texts, "Compiled ") == texts.size() && std::chrono::steady_clock::now() < until;
       ++number) {
    ASSERT_EQ(harness.push(number % 2 ? kRed : kBlue, number), GST_FLOW_OK);
    const Handle<GstBuffer> out = harness.pull();
    guint8 pixel[3] = {};
    ASSERT_EQ(gst_buffer_extract(out.get(), 0, pixel, 3), 3u);
    const Rgb wanted = number % 2 ? kRed : kBlue;
    EXPECT_TRUE(pixel[0] == wanted.r && pixel[1] == wanted.g && pixel[2] == wanted.b) << number;
    for (std::string& text : progress_of(harness.bus())) texts.push_back(std::move(text));
  }
  EXPECT_EQ(index_of(texts, "Compiling same"), 0u);
  EXPECT_EQ(index_of(texts, "Compiled same"), texts.size() - 1);
  // A model this small can be compiled before the first picture.
  if (texts.size() > 2) {
    EXPECT_EQ(index_of(texts, "The host computes same"), 1u);
  }
}

// A stop does not wait for compilers; the next start begins anew.
TEST(ClinferFilter, StopsWhileItCompiles) {
  const ColdCaches cold;
  Pipeline pipeline(
      "videotestsrc ! video/x-raw,format=NV12,width=64,height=48 ! clinferfilter device=CPU "
      "output-range=byte cache-dir=" +
      cold.folder() + " model=" + same_picture(3, 6, 8) + " ! fakesink");
  for (int i = 0; i < 3; ++i) {
    gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
    EXPECT_EQ(gst_element_get_state(pipeline.element, nullptr, nullptr, kPatience),
              GST_STATE_CHANGE_SUCCESS);
    gst_element_set_state(pipeline.element, GST_STATE_NULL);
  }
}

}  // namespace
}  // namespace clinfer
