// Facts about a model besides its outputs: files beside it, model-proc, and their precedence.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/heads/base/conventions.h"
#include "engine/heads/files/beside.h"
#include "engine/heads/files/labels.h"
#include "engine/heads/files/yaml.h"
#include "engine/heads/network.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

class FakeModel final : public Model {
 public:
  const std::string& path() const override { return path_; }
  const std::string& name() const override { return path_; }
  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  const std::map<std::string, std::string>& rt_info() const override { return rt_info_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  const std::string& output_op(size_t) const override { return op_; }
  const std::map<std::string, std::string>& output_op_attributes(size_t) const override {
    return attributes_;
  }
  const Graph& graph() const override { throw Error(ErrorCode::unsupported, "a fake model"); }

  std::string path_ = "m.xml", op_ = "Add";
  std::vector<Port> inputs_{{"images", ElementType::f32, {1, 3, 64, 64}, {}}};
  std::vector<Port> outputs_{{"output0", ElementType::f32, {1, 84, 84}, {}}};
  std::map<std::string, std::string> rt_info_, attributes_;
  std::vector<std::string> notes_;
};

TEST(Beside, DictionariesHaveFoldersOfTheirOwn) {
  const TemporaryFolder folder;
  for (const char* name : {"models", "models/dict", "char_dicts", "other", "old_dict"})
    std::filesystem::create_directories(folder / name);
  folder.write("models/keys.txt", "a");
  folder.write("models/dict/my_dict.txt", "a");
  folder.write("char_dicts/plate_dict.txt", "a");
  folder.write("char_dicts/readme.txt", "a");
  folder.write("other/other_dict.txt", "a");
  std::vector<std::string> names;
  for (const std::string& path : dictionaries_beside(folder / "models/rec.onnx"))
    names.push_back(std::filesystem::path(path).filename().string());
  EXPECT_EQ(names, (std::vector<std::string>{"keys.txt", "my_dict.txt", "plate_dict.txt"}));
  folder.write("old_dict/my_dict.txt", "a");  // the model's own folder counts once
  EXPECT_EQ(dictionaries_beside(folder / "old_dict/rec.onnx").size(), 2u);
}

TEST(ModelFile, IsTheOneModelOfAFolder) {
  const TemporaryFolder folder;
  const auto refusal = [&] {
    try {
      return model_file(folder / "");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_NE(refusal().find("without a model (.xml or .onnx)"), std::string::npos) << refusal();
  const std::string onnx = folder.write("a.onnx", "");
  folder.write("metadata.yaml", "");
  EXPECT_EQ(model_file(folder / ""), onnx);
  EXPECT_EQ(model_file(onnx), onnx);
  // One model in several precisions is the plain one.
  folder.write("a_fp16.onnx", "");
  folder.write("a_q4f16.onnx", "");
  EXPECT_EQ(model_file(folder / ""), onnx);
  // Perhaps one network twice: which file is meant is not guessed.
  folder.write("b.xml", "");
  EXPECT_NE(refusal().find("4 models, among them b.xml and a.onnx; name one"), std::string::npos)
      << refusal();
}

TEST(ModelFile, MayLieInAFolderOfItsRepository) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "onnx");
  folder.write("config.json", R"({"model_type": "vit", "id2label": {"0": "cat"}})");
  const std::string onnx = folder.write("onnx/model.onnx", "");
  folder.write("onnx/model_quantized.onnx", "");
  EXPECT_EQ(model_file(folder / ""), onnx);
  EXPECT_EQ(read_beside(onnx).labels, std::vector<std::string>{"cat"});
  EXPECT_EQ(read_beside(folder / "onnx/model_quantized.onnx").labels.size(), 1u);
}

TEST(Yaml, ReadsWhatExportersWrite) {
  const YamlNode root = parse_yaml(
      "# comment\n---\ntask: pose\nimgsz:\n- 640\n- 640\nnames:\n  0: person\n  1: 'it''s: a # "
      "car'\n"
      "kpt_shape: [17, 3]\nargs: {nms: false, note: \"a, b\"}\ndescription: a long text that\n"
      "  goes on\nsteps:\n- type: Resize\n  size:\n  - 1\n- type: Pad\nempty:\n");
  EXPECT_EQ(root.text_of("task"), "pose");
  ASSERT_NE(root.find("imgsz"), nullptr);
  EXPECT_EQ(root.find("imgsz")->items.size(), 2u);
  EXPECT_EQ(root.find("names")->text_of("1"), "it's: a # car");
  EXPECT_EQ(root.find("kpt_shape")->items.at(1).text, "3");
  EXPECT_EQ(root.find("args")->text_of("note"), "a, b");
  EXPECT_EQ(root.text_of("description"), "a long text that goes on");
  EXPECT_EQ(root.find("steps")->items.at(1).text_of("type"), "Pad");
  EXPECT_EQ(root.find("steps")->items.at(0).find("size")->items.size(), 1u);
  EXPECT_EQ(root.text_of("empty"), "");
}

TEST(Yaml, RefusesTheRestWithItsLine) {
  for (const char* text : {"a: &x 1\n", "a: [1, 2\n", "a\n", "a: 1\n   b: 2\nc", "\tb: 1\n",
                           "a: {b\n", "a: 'x\n", "- 1\nb: 2\n"}) {
    try {
      parse_yaml(text);
      // Text without an error here is read as a string; it must not be read as more.
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_argument) << text;
      EXPECT_NE(std::string(error.what()).find("line "), std::string::npos) << text;
    }
  }
  EXPECT_THROW(parse_yaml("a: &x 1\n"), Error);
  EXPECT_THROW(parse_yaml("a: [1, 2\n"), Error);
  EXPECT_THROW(parse_yaml("a: 1\nb: *x\n"), Error);
  EXPECT_THROW(parse_yaml(std::string(100, '[') + "\n"), Error);
  EXPECT_THROW(parse_yaml(std::string(100000, '[') + "\n"), Error);
}

TEST(Yaml, RefusesWhatIsNoText) {
  for (const auto& [text, why] :
       {std::pair<std::string, const char*>{"names:\n  0: caf\xe9\n", "line 2 is not UTF-8 text"},
        {std::string("a: b\0c\n", 7), "line 1 is not UTF-8 text"},
        {"a: 1\nb: \"x\\0\"\n", "line 2 has a zero character"},
        {"\"x\\0\": 1\n", "line 1 has a zero character"}})
    EXPECT_EQ(test::error_of([&text = text] { parse_yaml(text); }), why);
}

TEST(Yaml, ReadsTextsOfLinesAndCharactersOfDictionaries) {
  const YamlNode root = parse_yaml(
      "download: |\n  a\n    b\ncharacter_dict:\n- '!'\n- \"\\u3000\"\n- ''''\n- '~'\n- '#'\n");
  EXPECT_EQ(root.text_of("download"), "a\n  b\n");
  std::vector<std::string> characters;
  for (const YamlNode& item : root.find("character_dict")->items) characters.push_back(item.text);
  EXPECT_EQ(characters, (std::vector<std::string>{"!", "\u3000", "'", "~", "#"}));
}

TEST(Beside, UltralyticsSettlesTaskLabelsAndPicture) {
  const TemporaryFolder folder;
  folder.write("m.xml", "");
  folder.write("metadata.yaml",
               "task: pose\nnames:\n  0: person\nkpt_shape:\n- 21\n- 2\nend2end: false\n");
  const BesideFacts facts = read_beside(folder / "m.xml");
  EXPECT_EQ(facts.info.at("task"), "pose");
  EXPECT_EQ(facts.info.at("kpt_shape"), "21,2");
  EXPECT_EQ(facts.info.at("resize_type"), "fit_to_window_letterbox");
  EXPECT_EQ(facts.labels, std::vector<std::string>{"person"});
  EXPECT_TRUE(facts.sure_labels);
}

TEST(Beside, HuggingFacesPictureIsInPixels) {
  const TemporaryFolder folder;
  folder.write("m.xml", "");
  folder.write("config.json", R"({"model_type": "detr", "id2label": {"0": "N/A", "2": "car"}})");
  folder.write(
      "preprocessor_config.json",
      R"({"do_normalize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25]})");
  const BesideFacts facts = read_beside(folder / "m.xml");
  EXPECT_EQ(facts.labels, (std::vector<std::string>{"N/A", "", "car"}));
  EXPECT_EQ(facts.info.at("mean_values"), "127.5,127.5,127.5");
  EXPECT_EQ(facts.info.at("scale_values"), "63.75,63.75,63.75");
  EXPECT_EQ(facts.info.at("model_type"), "detr");
}

TEST(Beside, OthersAreReadToo) {
  const TemporaryFolder folder;
  folder.write("m.xml", "");
  folder.write(
      "infer_cfg.yml",
      "arch: YOLO\nPreprocess:\n- type: Resize\n  keep_ratio: false\n- type: NormalizeImage\n  "
      "is_scale: "
      "true\n  mean: [0.5, 0.5, 0.5]\n  std: [0.5, 0.5, 0.5]\nlabel_list:\n- person\n- car\n");
  BesideFacts facts = read_beside(folder / "m.xml");
  EXPECT_EQ(facts.info.at("model_type"), "paddle");
  EXPECT_EQ(facts.info.at("mean_values").substr(0, 5), "127.5");
  EXPECT_EQ(facts.labels.size(), 2u);
  const TemporaryFolder deploy;
  deploy.write("m.xml", "");
  deploy.write("pipeline.json",
               R"({"pipeline": {"tasks": [{"transforms": [{"type": "Resize", "keep_ratio": true},
                  {"type": "Normalize", "mean": [1, 2, 3], "std": [4, 5, 6], "to_rgb": true}]}]}})");
  deploy.write(
      "m.pbtxt",
      "item {\n  id: 1\n  name: 'n1'\n  display_name: \"person\"\n}\nitem { id: 3 name: 'car' }\n");
  deploy.write("m.modelinfo", "[input]\ndir=input\nranges=-1.0,1.0\n");
  facts = read_beside(deploy / "m.xml");
  EXPECT_EQ(facts.info.at("resize_type"), "fit_to_window");
  EXPECT_EQ(facts.labels, (std::vector<std::string>{"", "person", "", "car"}));
  EXPECT_EQ(facts.info.at("mean_values"), "127.5");  // .modelinfo has the model's name
}

// The last task of MMDeploy's pipelines says what the outputs are.
TEST(Beside, ComponentsOfMMDeployAreTypes) {
  const auto read = [](const std::string& component) {
    const TemporaryFolder folder;
    folder.write("end2end.onnx", "");
    folder.write("pipeline.json",
                 R"({"pipeline": {"input": ["img"], "tasks": [
                     {"type": "Task", "module": "Transform", "transforms": [{"type": "LoadImageFromFile"},
                      {"type": "TopDownAffine", "image_size": [192, 256]}]},
                     {"type": "Task", "module": "Net", "input_map": {"img": "input"}, "output_map": {}},
                     {"type": "Task", "module": "mmpose", "component": ")" +
                     component + R"(", "params": {"score_thr": 0.3}}]}})");
    return read_beside(folder / "end2end.onnx");
  };
  for (const auto& [component, type] : {std::pair{"ResizeBBox", "boxes_labels"},
                                        {"ResizeRBBox", "rotated_detection"},
                                        {"LinearClsHead", "classification"},
                                        {"SimCCLabelDecode", "keypoint_detection"}}) {
    const BesideFacts facts = read(component);
    EXPECT_EQ(facts.info.at("model_type"), type);
    EXPECT_EQ(facts.info.at("resize_type"), "fit_to_window_letterbox");
    EXPECT_EQ(facts.info.at("confidence_threshold"), "0.3");
    EXPECT_TRUE(facts.warnings.empty());
  }
  EXPECT_EQ(read("TensorToImg").info.count("model_type"), 0u);
  const BesideFacts other = read("SomethingNew");
  EXPECT_EQ(other.info.count("model_type"), 0u);
  ASSERT_EQ(other.warnings.size(), 1u);
  EXPECT_NE(other.warnings[0].find("SomethingNew is not known"), std::string::npos);
}

TEST(Beside, WhatCannotBeReadIsAWarning) {
  const TemporaryFolder folder;
  folder.write("m.xml", "");
  folder.write("metadata.yaml", "task: [\n");
  folder.write("config.json", "{");
  const BesideFacts facts = read_beside(folder / "m.xml");
  ASSERT_EQ(facts.warnings.size(), 2u);
  EXPECT_NE(facts.warnings[0].find("metadata.yaml: line 2"), std::string::npos)
      << facts.warnings[0];
  // A folder of several models: whose are its files?
  folder.write("n.xml", "");
  EXPECT_TRUE(read_beside(folder / "m.xml").warnings.empty());
}

TEST(Beside, AFolderIsItsModel) {
  const TemporaryFolder folder;
  EXPECT_THROW(model_file(folder / ""), Error);
  const std::string model = folder.write("yolov8n.xml", "");
  EXPECT_EQ(model_file(folder / ""), model);
  EXPECT_EQ(model_file(model), model);
  folder.write("other.xml", "");
  EXPECT_THROW(model_file(folder / ""), Error);
}

TEST(ModelProc, DescribesPictureHeadAndLabels) {
  const TemporaryFolder folder;
  const std::string path = folder.write("proc.json", R"({"json_schema_version": "2.2.0",
      "input_preproc": [{"format": "image", "params": {"resize": "aspect-ratio", "color_space": "RGB",
                         "range": [0.0, 1.0], "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}}],
      "output_postproc": [{"converter": "label", "layer_name": "output0", "attribute_name": "emotion",
                           "labels": ["sad", "glad"]}]})");
  const BesideFacts facts = read_model_proc(path);
  EXPECT_EQ(facts.info.at("mean_values").substr(0, 5), "127.5");
  EXPECT_EQ(facts.info.at("scale_values").substr(0, 5), "63.75");
  EXPECT_EQ(facts.info.at("model_type"), "label");
  auto model = std::make_shared<FakeModel>();
  model->outputs_ = {{"output0", ElementType::f32, {1, 2}, {}}};
  ModelOptions options;
  options.model_proc = path;
  const Network network = describe_network(model, options);
  EXPECT_EQ(network.head.name, "classification");
  EXPECT_EQ(network.transform.color, ColorOrder::rgb);
  EXPECT_EQ(network.transform.resize, ResizeMode::letterbox);
  Results results;
  read_outputs(network, std::vector{Tensor::of<float>(ElementType::f32, {1, 2}, {0.1f, 0.9f})}, {},
               false, results);
  ASSERT_EQ(results.classifications.size(), 1u);
  EXPECT_EQ(results.classifications[0].attribute, "emotion");
  EXPECT_EQ(results.classifications[0].label, "glad");
  const std::vector<Tensor> nan{Tensor::of<float>(ElementType::f32, {1, 2}, {std::nanf(""), 0.9f})};
  const auto said = read_outputs(network, nan, {}, false, results);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].substr(0, 42), "1 of the 2 values of the output output0 ar");
  EXPECT_NE(said[0].find("set config=INFERENCE_PRECISION=f32"), std::string::npos);
  ASSERT_EQ(results.classifications.size(), 1u);
  EXPECT_EQ(results.classifications[0].label, "glad");
  EXPECT_TRUE(read_outputs(network, nan, {}, false, results).empty());
  EXPECT_THROW(read_model_proc(folder.write("bad.json", "{}")), Error);
  EXPECT_THROW(read_model_proc(folder / "none.json"), Error);
}

TEST(Picture, ThePropertyWinsThenTheModelThenFilesThenTheFamily) {
  const TemporaryFolder folder;
  auto model = std::make_shared<FakeModel>();
  model->path_ = folder.write("m.xml", "");
  ModelOptions options;
  Network network = describe_network(model, options);
  EXPECT_EQ(network.head.name, "yolov8");
  EXPECT_EQ(network.transform.scale, std::vector<float>{255});
  EXPECT_EQ(network.transform.resize, ResizeMode::letterbox);
  ASSERT_EQ(network.warnings.size(), 1u);  // the family is said
  EXPECT_NE(network.warnings[0].find("YOLO"), std::string::npos) << network.warnings[0];
  folder.write("preprocessor_config.json", R"({"rescale_factor": 0.5, "size": 64})");
  network = describe_network(model, options);
  EXPECT_EQ(network.transform.scale, std::vector<float>{2});
  EXPECT_EQ(network.transform.resize, ResizeMode::stretch);
  EXPECT_TRUE(network.warnings.empty());
  model->rt_info_["model_info/scale_values"] = "3";
  EXPECT_EQ(describe_network(model, options).transform.scale, std::vector<float>{3});
  options.scale = "4";
  network = describe_network(model, options);
  EXPECT_EQ(network.transform.scale, std::vector<float>{4});
  EXPECT_NE(explain(network).find("scale               4 (property)"), std::string::npos)
      << explain(network);
}

// A converter that put one fact into the graph says nothing of the others: they stay the family's, and
// are said.
TEST(Picture, AFactThatIsStatedLeavesTheOthersToTheFamily) {
  auto model = std::make_shared<FakeModel>();
  const auto network = [&](std::map<std::string, std::string> rt_info, ModelOptions options = {}) {
    model->rt_info_ = std::move(rt_info);
    return describe_network(model, options);
  };
  Network n = network({{"conversion_parameters/scale_values", "[255.0]"}});
  EXPECT_EQ(n.transform.scale, std::vector<float>{1});
  EXPECT_EQ(n.transform.color, ColorOrder::rgb);
  EXPECT_EQ(n.transform.resize, ResizeMode::letterbox);
  EXPECT_EQ(n.transform.pad_value, std::vector<float>{114});
  ASSERT_EQ(n.warnings.size(), 1u);
  EXPECT_EQ(
      n.warnings[0],
      "nothing states how the model takes pictures (the resize, the order of colours); "
      "letterboxed, RGB is assumed, as YOLO takes them; set resize-mode and color-format where "
      "it is otherwise");
  n = network({{"model_info/scale_values", "255"}});
  EXPECT_EQ(n.transform.scale, std::vector<float>{255});
  EXPECT_EQ(n.transform.resize, ResizeMode::letterbox);
  EXPECT_EQ(n.transform.color, ColorOrder::rgb);
  // The graph turns the colours into those of the family.
  n = network({{"conversion_parameters/reverse_input_channels", "True"}});
  EXPECT_EQ(n.transform.color, ColorOrder::bgr);
  EXPECT_EQ(n.transform.scale, std::vector<float>{255});
  EXPECT_EQ(n.transform.resize, ResizeMode::letterbox);
  // A property is such a statement, too.
  ModelOptions options;
  options.color_format = ColorChoice::bgr;
  n = network({}, options);
  EXPECT_EQ(n.transform.color, ColorOrder::bgr);
  EXPECT_EQ(n.transform.scale, std::vector<float>{255});
  options.mean = options.scale = "1";
  options.resize_mode = ResizeChoice::stretch;
  EXPECT_TRUE(network({}, options).warnings.empty());
}

// Open Model Zoo says how its networks take pictures after their conversion, which turned the
// colours already.
TEST(Picture, ColoursOfOpenModelZooAreThoseAfterTheConversion) {
  auto model = std::make_shared<FakeModel>();
  model->path_ = "landmarks-regression-retail-0009.xml";
  model->inputs_ = {{"data", ElementType::f32, {1, 3, 48, 48}, {}}};
  model->outputs_ = {{"95", ElementType::f32, {1, 10, 1, 1}, {}}};
  for (const char* reversed : {"True", "False"}) {
    model->rt_info_["conversion_parameters/reverse_input_channels"] = reversed;
    EXPECT_EQ(describe_network(model, ModelOptions{}).transform.color, ColorOrder::bgr) << reversed;
  }
}

// The first operations of a graph on its picture settle the range, and nothing else.
TEST(Picture, FirstOperationsOfTheGraphTellTheRange) {
  auto model = std::make_shared<FakeModel>();
  const auto network = [&](std::map<std::string, std::string> rt_info) {
    model->rt_info_ = std::move(rt_info);
    return describe_network(model, ModelOptions{});
  };
  Network n = network({{"range_of_picture", "255"}});
  EXPECT_EQ(n.transform.scale, std::vector<float>{1});
  EXPECT_EQ(n.transform.mean, std::vector<float>{0});
  EXPECT_EQ(n.transform.resize, ResizeMode::letterbox);
  ASSERT_EQ(n.warnings.size(), 1u);
  EXPECT_EQ(n.warnings[0].find("scale"), std::string::npos) << n.warnings[0];
  EXPECT_EQ(network({{"range_of_picture", "1"}}).transform.scale, std::vector<float>{255});
  // A file that states numbers precedes.
  n = network({{"range_of_picture", "255"}, {"model_info/scale_values", "3"}});
  EXPECT_EQ(n.transform.scale, std::vector<float>{3});
}

TEST(Picture, MeanFollowsTheOrderOfColoursAndItsOtherHalf) {
  auto model = std::make_shared<FakeModel>();
  model->outputs_ = {{"logits", ElementType::f32, {1, 100, 92}, {}},
                     {"pred_boxes", ElementType::f32, {1, 100, 4}, {}}};
  const auto transform = [&](std::map<std::string, std::string> rt_info) {
    model->rt_info_ = std::move(rt_info);
    return describe_network(model, ModelOptions{}).transform;
  };
  EXPECT_EQ(transform({}).mean, (std::vector<float>{123.675f, 116.28f, 103.53f}));
  EXPECT_EQ(transform({{"model_info/color_space", "BGR"}}).mean,
            (std::vector<float>{103.53f, 116.28f, 123.675f}));
  // Half of the family's range is the family's; another half says that there is nothing more.
  EXPECT_EQ(transform({{"model_info/color_space", "RGB"},
                       {"model_info/mean_values", "123.7,116.3,103.5"}})
                .scale,
            (std::vector<float>{58.395f, 57.12f, 57.375f}));
  EXPECT_EQ(transform({{"model_info/scale_values", "255"}}).mean, std::vector<float>{0});
}

TEST(Picture, AMaskOfItIsNoSecondPicture) {
  auto model = std::make_shared<FakeModel>();
  model->inputs_ = {{"input_mask", ElementType::f32, {1, 1, 64, 64}, {}},
                    {"input_rgb", ElementType::f32, {1, 3, 64, 64}, {}}};
  const Network network = describe_network(model, ModelOptions{});
  EXPECT_EQ(network.image_input, 1u);
  ASSERT_EQ(network.constants.size(), 1u);
  EXPECT_EQ(network.constants[0].second.to_floats(), std::vector<float>(64 * 64, 0.0f));
  model->inputs_[0].name = "other";
  EXPECT_THROW(describe_network(model, ModelOptions{}), Error);
}

TEST(Picture, PaddingFollowsItsProperties) {
  auto model = std::make_shared<FakeModel>();  // YOLO: 114, centred
  ModelOptions options;
  options.pad_value = "0";
  Network network = describe_network(model, options);
  EXPECT_EQ(network.transform.pad_value, std::vector<float>{0});
  EXPECT_TRUE(network.transform.centered);
  EXPECT_NE(explain(network).find("padding             0, centred (property)"), std::string::npos)
      << explain(network);
  options.pad_value = "1,2.5,255";
  options.pad_place = PadPlace::top_left;
  network = describe_network(model, options);
  EXPECT_EQ(network.transform.pad_value, (std::vector<float>{1, 2.5f, 255}));
  EXPECT_FALSE(network.transform.centered);
  model->rt_info_ = {{"model_info/resize_type", "fit_to_window"},
                     {"model_info/pad_value", "7 8 9"}};
  options = {};
  network = describe_network(model, options);
  EXPECT_EQ(network.transform.pad_value, (std::vector<float>{7, 8, 9}));
  EXPECT_FALSE(network.transform.centered);
  options.pad_place = PadPlace::centered;
  EXPECT_TRUE(describe_network(model, options).transform.centered);
  for (const char* wrong : {"300", "-1", "1,2", "red"}) {
    options.pad_value = wrong;
    EXPECT_THROW(describe_network(model, options), Error) << wrong;
  }
  options.pad_value = "3";
  options.resize_mode = ResizeChoice::stretch;
  network = describe_network(model, options);
  ASSERT_FALSE(network.warnings.empty());
  EXPECT_EQ(network.warnings[0],
            "pad-value and pad-place have no effect: the picture is stretched; set "
            "resize-mode=letterbox");
}

TEST(Picture, PaddingFollowsTheFilesBeside) {
  const auto padding = [](const char* file, const std::string& text) {
    const TemporaryFolder folder;
    auto model = std::make_shared<FakeModel>();
    model->path_ = folder.write("m.xml", "");
    folder.write(file, text);
    const FrameTransform transform = describe_network(model, ModelOptions{}).transform;
    EXPECT_EQ(transform.resize, ResizeMode::letterbox) << text;
    return std::pair(transform.pad_value, transform.centered);
  };
  using Padding = std::pair<std::vector<float>, bool>;
  EXPECT_EQ(padding("preprocessor_config.json",
                    R"({"image_processor_type": "Owlv2ImageProcessor", "size": {"height": 64,
                        "width": 64}, "do_rescale": true})"),
            (Padding{{127.5f}, false}));
  EXPECT_EQ(padding("preprocessor_config.json",
                    R"({"image_processor_type": "JanusImageProcessor", "size": {"height": 64,
                        "width": 64}, "background_color": [122, 116, 104]})"),
            (Padding{{122, 116, 104}, true}));
  EXPECT_EQ(padding("open_clip_config.json",
                    R"({"preprocess_cfg": {"size": 64, "resize_mode": "longest",
                        "fill_color": [10, 20, 30]}})"),
            (Padding{{10, 20, 30}, true}));
  const auto pipeline = [](const std::string& transforms) {
    return R"({"pipeline": {"tasks": [{"transforms": [{"type": "Resize", "size": [64, 64],
               "keep_ratio": true}, )" +
           transforms + "]}]}}";
  };
  const std::string normalize =
      R"({"type": "Normalize", "mean": [100, 110, 120], "std": [50, 60, 70], "to_rgb": true})";
  // Before the order of colours is turned, and after the mean is subtracted.
  EXPECT_EQ(padding("pipeline.json",
                    pipeline(R"({"type": "Pad", "pad_val": {"img": [1, 2, 3]}}, )" + normalize))
                .first,
            (std::vector<float>{3, 2, 1}));
  EXPECT_EQ(padding("pipeline.json", pipeline(normalize + R"(, {"type": "Pad"})")).first,
            (std::vector<float>{100, 110, 120}));
}

TEST(Picture, AShareOfTheMiddleIsFed) {
  const TemporaryFolder folder;
  auto model = std::make_shared<FakeModel>();
  model->path_ = folder.write("m.xml", "");
  folder.write("preprocessor_config.json",
               R"({"size": {"shortest_edge": 80}, "do_center_crop": true, "crop_size": 64})");
  ModelOptions options;
  Network network = describe_network(model, options);
  EXPECT_EQ(network.transform.resize, ResizeMode::crop);
  EXPECT_FLOAT_EQ(network.crop_share, 0.8f);
  const Rect part = fed_part({10, 20, 100, 50}, network);
  EXPECT_EQ(part.x, 20);
  EXPECT_EQ(part.y, 25);
  EXPECT_EQ(part.width, 80);
  EXPECT_EQ(part.height, 40);
  options.crop_share = 0.5;
  EXPECT_FLOAT_EQ(describe_network(model, options).crop_share, 0.5f);
  // Another resize than the file's has no share of the file's.
  options = {};
  options.resize_mode = ResizeChoice::stretch;
  EXPECT_FLOAT_EQ(describe_network(model, options).crop_share, 1);
}

TEST(Conventions, AreComplete) {
  for (const Convention& row : conventions()) {
    EXPECT_NE(std::string(row.source), "");
    EXPECT_EQ(picture_of(row.family).family, row.name);
  }
  EXPECT_FALSE(picture_of(Family::scrfd).centered);
  EXPECT_EQ(picture_of(Family::yolox).resize, ResizeMode::letterbox);
  EXPECT_EQ(picture_of(Family::nanodet).resize, ResizeMode::letterbox);
  EXPECT_EQ(picture_of(Family::nanodet_plus).resize, ResizeMode::stretch);
  EXPECT_EQ(picture_of(Family::fsa_net).color, ColorOrder::bgr);
}

// Heads treat a box and another one just beside it as the table says.
TEST(Conventions, OverlapsAreRemovedByWhomTheTableSays) {
  const auto boxes_of = [](ModelFacts facts, const std::vector<Tensor>& outputs) {
    facts.width = facts.height = 64;
    const HeadChoice head = choose_head(facts, "auto");
    EXPECT_TRUE(head.picture) << head.reason;
    Results results;
    run_head(head, facts, outputs, {}, false, results);
    return std::pair{head.picture ? head.picture->family : "", results.detections.size()};
  };
  const auto facts_of =
      [](const std::vector<std::tuple<std::string, ElementType, Shape>>& outputs) {
        ModelFacts facts;
        for (const auto& [name, type, shape] : outputs)
          facts.outputs.push_back({name, {}, type, shape, "Add", {}});
        return facts;
      };
  const auto floats = [](Shape shape, std::vector<float> values) {
    return Tensor::of<float>(ElementType::f32, std::move(shape), values);
  };
  const auto size_of = [](Family family) {
    return convention_of(family).overlaps == Overlaps::element ? size_t{1} : size_t{2};
  };
  std::vector<float> cells(84 * 7, 0.01f), rows(6 * 30, 0);
  for (const size_t row : {0, 1}) {
    const auto at = static_cast<float>(10 + row);
    for (const auto& [k, v] : {std::pair{0, at}, {1, 20.f}, {2, 16.f}, {3, 16.f}, {4, 0.9f}})
      cells[84 * static_cast<size_t>(k) + row] = v;
    const std::vector<float> object = {at, 10, at + 20, 40, 0.9f, 1};
    std::copy(object.begin(), object.end(), rows.begin() + static_cast<std::ptrdiff_t>(6 * row));
  }
  EXPECT_EQ(
      boxes_of(facts_of({{"out", ElementType::f32, {1, 7, 84}}}), {floats({1, 7, 84}, cells)}),
      (std::pair{picture_of(Family::yolo).family, size_of(Family::yolo)}));
  EXPECT_EQ(boxes_of(facts_of({{"out", ElementType::f32, {1, 30, 6}}}), {floats({1, 30, 6}, rows)}),
            (std::pair{picture_of(Family::end_to_end).family, size_of(Family::end_to_end)}));
}

TEST(Labels, OfAnyFileThatPeopleHave) {
  using Names = std::vector<std::string>;
  const Names names = {"cat", "red fox", "dog"};
  for (const auto& [text, file] : std::vector<std::pair<std::string, std::string>>{
           {"cat\r\nred fox\r\ndog\r\n\r\n", "a.txt"},
           {"0 cat\n1: red fox\n2, dog\n", "a.txt"},
           {"cat;red fox;dog;\n", "a.txt"},
           {"{0: 'cat', 1: 'red fox', 2: 'dog'}\n", "a.txt"},
           {"names: [cat, red fox, dog]\nnc: 3\n", "a.yaml"},
           {"names:\n  0: cat\n  2: dog\n  1: red fox\n", "a.yml"},
           {"- cat\n- red fox\n- dog\n", "a.yaml"},
           {R"(["cat", "red fox", "dog"])", "a.json"},
           {R"({"0": "cat", "1": "red fox", "2": "dog"})", "a.json"},
           {R"({"cat": 0, "red fox": 1, "dog": 2})", "a.json"},
           {R"({"id2label": {"0": "cat", "1": "red fox", "2": "dog"}})", "a.json"},
           {R"({"0": ["n1", "cat"], "1": ["n2", "red fox"], "2": ["n3", "dog"]})", "a.json"}})
    EXPECT_EQ(labels_of_text(text, file), names) << text;
  EXPECT_EQ(labels_of_text(R"({"categories": [{"id": 1, "name": "a"}, {"id": 3, "name": "b"}]})",
                           "a.json"),
            (Names{"", "a", "", "b"}));
  EXPECT_EQ(labels_of_text("item {\n  id: 2\n  name: 'dog'\n}\n", "a.txt"), (Names{"", "", "dog"}));
  // Numbers may be names, and names may begin with numbers.
  EXPECT_EQ(labels_of_text("0\n1\n2\n", "a.txt"), (Names{"0", "1", "2"}));
  EXPECT_EQ(labels_of_text("2 wheels\n4 wheels\n", "a.txt"), (Names{"2 wheels", "4 wheels"}));
  // The space of a dictionary is a name.
  EXPECT_EQ(labels_of_text("blank\na\n \n", "a.txt"), (Names{"blank", "a", " "}));
  EXPECT_THROW(labels_of_text("{", "a.json"), Error);
  EXPECT_THROW(labels_of_text("\xff\n", "a.txt"), Error);
  // Five million of them took a minute and 1.4 GB.
  std::string lines;
  for (int i = 0; i < 1000001; ++i) lines += "a\n";
  EXPECT_THROW(labels_of_text(lines, "a.txt"), Error);
}

TEST(Picture, LabelsOfAnotherModelAreSaidAndDropNoClass) {
  auto model = std::make_shared<FakeModel>();
  ModelOptions options;
  options.labels = "a,b,c";
  const Network network = describe_network(model, options);
  EXPECT_EQ(network.head.name, "yolov8");
  ASSERT_FALSE(network.warnings.empty());
  EXPECT_NE(network.warnings[0].find("3 labels, but the outputs tell 80 classes"),
            std::string::npos)
      << network.warnings[0];
  std::vector<float> values(84 * 84, 0.0f);
  const float row[] = {30, 30, 20, 20};
  for (size_t k = 0; k < 4; ++k) values[k * 84 + 5] = row[k];
  values[(4 + 77) * 84 + 5] = 0.9f;
  Results results;
  read_outputs(network, std::vector{Tensor::of<float>(ElementType::f32, {1, 84, 84}, values)}, {},
               false, results);
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 77);
}

TEST(Picture, ABackgroundThatIsNoClassShiftsNoName) {
  auto model = std::make_shared<FakeModel>();
  ModelOptions options;
  options.labels = "background";
  for (int i = 0; i < 80; ++i) options.labels += ",class" + std::to_string(i);
  const Network network = describe_network(model, options);
  std::vector<float> values(84 * 84, 0.0f);
  const float row[] = {30, 30, 20, 20};
  for (size_t k = 0; k < 4; ++k) values[k * 84 + 5] = row[k];
  values[(4 + 77) * 84 + 5] = 0.9f;
  Results results;
  read_outputs(network, std::vector{Tensor::of<float>(ElementType::f32, {1, 84, 84}, values)}, {},
               false, results);
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 77);
  EXPECT_EQ(results.detections[0].label, "class77");
}

TEST(Picture, AClassWithoutANameIsSaidOnce) {
  auto model = std::make_shared<FakeModel>();
  model->outputs_ = {{"rows", ElementType::f32, {1, 1, 1, 7}, {}}};
  ModelOptions options;
  options.labels = "a";
  const Network network = describe_network(model, options);
  EXPECT_EQ(network.head.name, "ssd");
  const auto said = [&](float label) {
    Results results;
    const std::vector<std::string> lines =
        read_outputs(network,
                     std::vector{Tensor::of<float>(ElementType::f32, {1, 1, 1, 7},
                                                   {0, label, 0.9f, 0.1f, 0.1f, 0.5f, 0.5f})},
                     {}, false, results);
    EXPECT_EQ(results.detections.size(), 1u);
    return lines.empty() ? std::string() : lines.front();
  };
  EXPECT_EQ(said(0), "");
  EXPECT_EQ(said(1),
            "the network found class 1, which has no name: the last of the labels is that of class "
            "0; set labels or labels-file to those of the model");
  EXPECT_EQ(said(1), "");
}

TEST(Choice, PriorsAreSaid) {
  auto model = std::make_shared<FakeModel>();
  const auto choose = [&](int64_t columns) {
    model->outputs_ = {{"logits", ElementType::f32, {1, 100, columns}, {}},
                       {"pred_boxes", ElementType::f32, {1, 100, 4}, {}}};
    return describe_network(model, ModelOptions{}).head;
  };
  EXPECT_EQ(choose(92).name, "detr");
  EXPECT_EQ(choose(91).name, "rtdetr");
  EXPECT_EQ(choose(80).name, "rtdetr");
  ASSERT_FALSE(choose(92).warnings.empty());
  EXPECT_NE(choose(92).warnings[0].find("post-process=rtdetr"), std::string::npos);
  model->outputs_ = {{"output0", ElementType::f32, {1, 56, 84}, {}}};
  EXPECT_EQ(describe_network(model, ModelOptions{}).head.name, "yolov8-pose");
  // Vectors are no classes unless something says so.
  model->outputs_ = {{"logits_of_what", ElementType::f32, {1, 7}, {}}};
  EXPECT_EQ(describe_network(model, ModelOptions{}).head.name, "none");
}

}  // namespace
}  // namespace clinfer
