// The element's interpretation of a model and of its properties.
#include "gst/infer/settings/network.h"

#include <gtest/gtest.h>

namespace clinfer {
namespace {

class FakeModel final : public Model {
 public:
  const std::string& path() const override { return path_; }
  const std::string& name() const override { return name_; }
  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  const std::map<std::string, std::string>& rt_info() const override { return rt_info_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  const std::string& output_op(size_t) const override { return op_; }
  const std::map<std::string, std::string>& output_op_attributes(size_t) const override {
    return attributes_;
  }
  const Graph& graph() const override { throw Error(ErrorCode::unsupported, "a fake model"); }

  std::string path_ = "m.xml", name_ = "m", op_ = "SoftMax";
  std::vector<Port> inputs_{{"data", ElementType::f32, {1, 3, 20, 30}, {}}};
  std::vector<Port> outputs_{{"prob", ElementType::f32, {1, 4}, {}}};
  std::map<std::string, std::string> rt_info_, attributes_;
  std::vector<std::string> notes_;
};

std::string error_of(std::shared_ptr<FakeModel> model, const Settings& settings = {}) {
  try {
    describe_network(model, settings);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Network, FindsTheImageInput) {
  auto model = std::make_shared<FakeModel>();
  Network network = describe_network(model, Settings{});
  EXPECT_EQ(network.width, 30);
  EXPECT_EQ(network.height, 20);
  EXPECT_FALSE(network.transform.nhwc);
  EXPECT_EQ(network.transform.color, ColorOrder::bgr);
  model->inputs_[0].shape = {1, 20, 30, 1};
  network = describe_network(model, Settings{});
  EXPECT_TRUE(network.transform.nhwc);
  EXPECT_EQ(network.channels, 1);
  EXPECT_EQ(network.transform.color, ColorOrder::gray);
  model->inputs_[0].shape = {1, 20, 30, 8};
  EXPECT_NE(error_of(model).find("data [1,20,30,8]"), std::string::npos) << error_of(model);
  model->inputs_.assign(2, {"eye", ElementType::f32, {1, 3, 60, 60}, {}});
  EXPECT_NE(error_of(model).find("more than one input"), std::string::npos) << error_of(model);
}

// A sequence indicator that begins with 0 would end the text before its first character.
TEST(Network, FeedsWholeSequencesToRecognisers) {
  auto model = std::make_shared<FakeModel>();
  model->inputs_.push_back({"seq_ind", ElementType::f32, {88, 1}, {}});
  const Network network = describe_network(model, Settings{});
  ASSERT_EQ(network.constants.size(), 1u);
  EXPECT_EQ(network.constants[0].second.to_floats(), std::vector<float>(88, 1.0f));
}

TEST(Network, FeedsThePictureSizeToDetectors) {
  auto model = std::make_shared<FakeModel>();
  model->inputs_.push_back({"im_info", ElementType::f32, {1, 6}, {}});
  const Network network = describe_network(model, Settings{});
  ASSERT_EQ(network.constants.size(), 1u);
  EXPECT_EQ(network.constants[0].second.to_floats(), (std::vector<float>{20, 30, 1, 1, 1, 1}));
  model->inputs_[1] = {"angles", ElementType::f32, {1, 3}, {}};
  EXPECT_NE(error_of(model).find("angles"), std::string::npos);
}

TEST(Network, FollowsModelInfo) {
  auto model = std::make_shared<FakeModel>();
  model->rt_info_ = {{"model_info/labels", "a b_c d e"},
                     {"model_info/mean_values", "1 2 3"},
                     {"model_info/scale_values", "[255.0]"},
                     {"model_info/reverse_input_channels", "True"},
                     {"model_info/resize_type", "fit_to_window_letterbox"},
                     {"model_info/pad_value", "7"},
                     {"model_info/confidence_threshold", "0.3"},
                     {"model_info/iou_threshold", "0.7"}};
  Settings settings;
  Network network = describe_network(model, settings);
  EXPECT_EQ(network.labels.size(), 4u);
  EXPECT_EQ(network.transform.mean, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(network.transform.scale, (std::vector<float>{255}));
  EXPECT_EQ(network.transform.color, ColorOrder::rgb);
  EXPECT_EQ(network.transform.resize, ResizeMode::letterbox);
  EXPECT_TRUE(network.transform.centered);
  EXPECT_EQ(network.transform.pad_value, std::vector<float>{7});
  EXPECT_FLOAT_EQ(decode_settings(network, settings).threshold, 0.3f);
  EXPECT_FLOAT_EQ(decode_settings(network, settings).iou_threshold, 0.7f);
  // Properties win.
  settings.threshold = 0.9;
  settings.mean = "5";
  settings.color_format = ColorChoice::bgr;
  settings.resize_mode = ResizeChoice::stretch;
  settings.labels = "w,x,y,z";
  network = describe_network(model, settings);
  EXPECT_EQ(network.labels[0], "w");
  EXPECT_EQ(network.transform.mean, (std::vector<float>{5}));
  EXPECT_EQ(network.transform.color, ColorOrder::bgr);
  EXPECT_EQ(network.transform.resize, ResizeMode::stretch);
  EXPECT_FLOAT_EQ(decode_settings(network, settings).threshold, 0.9f);
}

TEST(Network, DoesNotApplyTwiceWhatTheConverterBuiltIn) {
  auto model = std::make_shared<FakeModel>();
  model->rt_info_ = {{"model_info/mean_values", "1 2 3"},
                     {"model_info/reverse_input_channels", "YES"},
                     {"conversion_parameters/mean_values", "data[1.0,2.0,3.0]"},
                     {"conversion_parameters/reverse_input_channels", "True"},
                     {"conversion_parameters/scale_values", "()"}};
  const Network network = describe_network(model, Settings{});
  EXPECT_EQ(network.transform.mean, (std::vector<float>{0}));
  EXPECT_EQ(network.transform.color, ColorOrder::bgr);
}

TEST(Network, NamesWhatIsWrongWithAProperty) {
  auto model = std::make_shared<FakeModel>();
  Settings settings;
  settings.mean = "1,2";
  EXPECT_NE(error_of(model, settings).find("mean has 2 numbers"), std::string::npos);
  settings.mean = "1,x";
  EXPECT_NE(error_of(model, settings).find("'1,x'"), std::string::npos);
  settings = {};
  settings.scale = "0";
  EXPECT_NE(error_of(model, settings).find("scale"), std::string::npos);
  settings = {};
  settings.color_format = ColorChoice::gray;
  EXPECT_NE(error_of(model, settings).find("3 channels"), std::string::npos);
  settings = {};
  settings.post_process = "yolox";
  EXPECT_NE(error_of(model, settings).find("prob [1,4]"), std::string::npos);
  EXPECT_THROW(describe_network(Settings{}), Error);
}

}  // namespace
}  // namespace clinfer
