// Batches and other shapes of a model's inputs.
#include "engine/runtime/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "engine/graph/evaluate.h"
#include "engine/ir/ir_reader.h"
#include "engine/ir/model_file.h"
#include "tests/engine/graph/graph_builder.h"
#include "tests/engine/test_files.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

// A sequence [time, batch] stands before the picture, as in models that read number plates.
std::unique_ptr<Graph> two_inputs() {
  test::GraphBuilder b;
  const Edge mask = b.parameter({5, 1}), picture = b.parameter({1, 2, 4, 4});
  b.result(
      b.op("Reshape", 1,
           {picture, b.constant(Tensor::of(ElementType::i64, {2}, std::vector<int64_t>{1, 32}))},
           {{"special_zero", "false"}}));
  b.result(b.op("Abs", 1, {mask}));
  return b.finish();
}

// As OpenVINO writes them: a layer has the name of its last tensor, a Result that of its own. The
// first layer is of a file that names no tensors.
TEST(Model, OutputsOfOneLayerAreToldApart) {
  test::GraphBuilder b;
  const Edge x = b.parameter({1, 4});
  const auto split = [&] {
    return b
        .op("Split", 1, {x, b.constant(Tensor::of(ElementType::i64, {}, std::vector<int64_t>{1}))},
            {{"num_splits", "2"}}, 2)
        .node;
  };
  Node* const old = split();
  old->name = "old";
  Node* const layer = split();
  layer->name = "scores";
  layer->outputs[0].names = {"boxes"};
  layer->outputs[1].names = {"any", "scores"};
  for (Node* node : {old, layer})
    for (const int port : {0, 1}) b.result({node, port});
  b.graph().results[2]->name = "Result_1";
  b.graph().results[3]->name = "scores/sink_port_0";
  std::vector<std::string> names;
  for (const Port& port : output_ports(b.graph())) names.push_back(port.name);
  EXPECT_EQ(names, (std::vector<std::string>{"old.0", "old.1", "boxes", "scores"}));
}

// A list of all names for each of them would take quadratic memory.
TEST(Model, ResultsOfOneTensorDoNotRepeatItsNames) {
  test::GraphBuilder b;
  const Edge x = b.op("ReLU", 1, {b.parameter({1, 4})});
  x.node->outputs[0].names = {"first", "second", "third"};
  for (int i = 0; i < 3; ++i) b.result(x);
  b.graph().results[1]->name = "second";
  std::vector<std::vector<std::string>> names;
  for (const Port& port : output_ports(b.graph())) names.push_back(port.tensor_names);
  EXPECT_EQ(names, (std::vector<std::vector<std::string>>{
                       {"first", "second", "third"}, {"second"}, {"first"}}));
}

TEST(Model, BatchOfPicturesAndSequences) {
  auto graph = two_inputs();
  set_batch(*graph, 3);
  EXPECT_EQ(graph->parameters[0]->shape(), (Shape{5, 3}));
  EXPECT_EQ(graph->parameters[1]->shape(), (Shape{3, 2, 4, 4}));
  EXPECT_EQ(graph->results[0]->inputs[0].node->shape(), (Shape{3, 32}));
}

// Constants of a model of one image that say so, where they are not patterns of a Reshape.
TEST(Model, BatchThatConstantsState) {
  test::GraphBuilder b;
  const auto ints = [&](const std::vector<int64_t>& values) {
    return b.constant(Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
  };
  const Edge x = b.parameter({1, 2, 4, 4});
  const std::map<std::string, std::string> nearest = {
      {"mode", "nearest"},
      {"shape_calculation_mode", "sizes"},
      {"coordinate_transformation_mode", "asymmetric"},
      {"nearest_mode", "floor"}};
  const Edge scales = b.constant(Tensor::of<float>(ElementType::f32, {2}, {2, 1}));
  b.result(b.op("Interpolate", 11, {x, ints({1, 2, 8, 8})}, nearest));
  b.result(b.op("Interpolate", 4, {x, ints({8, 1}), scales, ints({2, 0})}, nearest));
  b.result(b.op("Broadcast", 3,
                {b.op("ReduceMax", 1, {x, ints({2})}, {{"keep_dims", "true"}}), ints({1, 2, 7, 4})},
                {{"mode", "numpy"}}));
  b.result(b.op("Slice", 8, {x, ints({1, 0}), ints({3, 1}), ints({1, 1}), ints({3, -4})}));
  b.result(b.op("StridedSlice", 1, {x, ints({0, 1}), ints({1, 2}), ints({1, 1})}));
  const auto graph = b.finish();
  const Tensor picture = test::random_tensor({1, 2, 4, 4});
  const std::vector<Tensor> alone = evaluate_graph(*graph, std::vector<Tensor>{picture});
  set_batch(*graph, 3);
  const std::vector<float> image = picture.to_floats();
  std::vector<float> images;
  for (int k = 0; k < 3; ++k) images.insert(images.end(), image.begin(), image.end());
  const std::vector<Tensor> together = evaluate_graph(
      *graph, std::vector<Tensor>{Tensor::of(ElementType::f32, {3, 2, 4, 4}, images)});
  for (size_t i = 0; i < alone.size(); ++i) {
    const std::vector<float> one = alone[i].to_floats(), all = together[i].to_floats();
    ASSERT_EQ(all.size(), 3 * one.size()) << "output " << i;
    for (size_t k = 0; k < 3; ++k)
      EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + k * one.size()))
          << "output " << i << ", image " << k;
  }
}

#ifdef CLINFER_WITHOUT_ONNX
TEST(Model, SaysWhereItIsBuiltWithoutOnnx) {
  try {
    Model::read("network.onnx");
    FAIL() << "an ONNX model was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    const std::string what = error.what();
    EXPECT_NE(what.find("network.onnx: built without ONNX"), std::string::npos) << what;
    EXPECT_NE(what.find("libonnx-dev"), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
}
#endif

TEST(Model, OtherShapes) {
  auto graph = two_inputs();
  reshape(*graph, {{7, 1}, {2, 2, 4, 4}});
  EXPECT_EQ(graph->results[0]->inputs[0].node->shape(), (Shape{2, 32}));
  EXPECT_EQ(graph->results[1]->inputs[0].node->shape(), (Shape{7, 1}));
  graph = two_inputs();
  EXPECT_THROW(reshape(*graph, {{7, 1}, {2, 2, 4}}), Error);
  EXPECT_THROW(reshape(*graph, {{7, 1}, {1, 2, 4, 5}}), Error);  // the fixed pattern does not fit
}

// Converters give all models the same name inside.
TEST(Model, DrawingsAreNamedAfterTheFile) {
  const TemporaryFolder folder;
  const std::string path = std::string(CLINFER_SOURCE_DIR) + "/pipelines/models/ball.xml";
  std::vector<std::shared_ptr<const Model>> models;
  for (const char* name : {"a", "b", "b/c"}) {
    std::filesystem::create_directories(folder / name);
    std::filesystem::copy_file(weights_path(path), folder / (std::string(name) + "/detector.bin"));
    std::filesystem::copy_file(path, folder / (std::string(name) + "/detector.xml"));
    models.push_back(Model::read(folder / (std::string(name) + "/detector.xml")));
  }
  EXPECT_EQ(title_of(*models[0]), "detector");
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(drawing_name(*models[0], folder / "one"), "detector");
    EXPECT_EQ(drawing_name(*models[1], folder / "one"), "detector-2");
    EXPECT_EQ(drawing_name(*models[2], folder / "one"), "detector-3");
  }
  EXPECT_EQ(drawing_name(*models[2], folder / "other"), "detector");
  auto part = models[0]->graph().clone();
  part->name += std::string(kPartName) + "1";
  EXPECT_EQ(title_of(ReadModel(*models[0], std::move(part))), "detector subgraph1");
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string refusal_of_bytes(const std::string& model, const std::string& weights) {
  try {
    Model::read_bytes(bytes_of(model), bytes_of(weights), "mine");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Model, IsReadFromMemory) {
  const std::string path = std::string(CLINFER_SOURCE_DIR) + "/pipelines/models/ball.xml";
  const std::string xml = read_text_file(path), weights = read_text_file(weights_path(path));
  const auto file = Model::read(path);
  InputShapes shapes;
  shapes.add("image=2,3,192,256");
  const auto model = Model::read_bytes(bytes_of(xml), bytes_of(weights), "mine", shapes);
  EXPECT_TRUE(model->is_from_memory());
  EXPECT_FALSE(file->is_from_memory());
  EXPECT_EQ(model->path(), "mine");
  EXPECT_EQ(model->rt_info(), file->rt_info());
  EXPECT_EQ(model->inputs()[0].shape, (Shape{2, 3, 192, 256}));
  EXPECT_EQ(Model::read_bytes(bytes_of("\xef\xbb\xbf\n" + xml), bytes_of(weights), "mine")
                ->outputs()[0]
                .shape,
            file->outputs()[0].shape);
}

std::shared_ptr<const Model> pooling(const std::string& dilations) {
  const std::string ports = "<dim>1</dim><dim>1</dim><dim>4</dim><dim>4</dim></port>";
  const std::string halves = "<dim>1</dim><dim>1</dim><dim>2</dim><dim>2</dim></port>";
  const std::string xml =
      R"(<net name="n" version="11"><layers>
      <layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,1,4,4" element_type="f32"/>
      <output><port id="0" precision="FP32">)" +
      ports + R"(</output></layer>
      <layer id="1" name="y" type="MaxPool" version="opset1"><data kernel="2,2" strides="2,2"
      pads_begin="0,0" pads_end="0,0" rounding_type="floor" auto_pad="explicit" dilations=")" +
      dilations + R"("/><input><port id="0">)" + ports +
      R"(</input><output><port id="1" precision="FP32">)" + halves + R"(</output></layer>
      <layer id="2" name="r" type="Result" version="opset1"><input><port id="0">)" +
      halves + R"(</input></layer></layers><edges>
      <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
      <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>)";
  return Model::read_bytes(bytes_of(xml), {}, "mine");
}

// The quantiser of 2021 wrote them so.
TEST(Model, IntegersMayBeWrittenAsFloats) {
  for (const char* dilations : {"1,1", "1.0,1.0", "1.,1.00"})
    EXPECT_EQ(pooling(dilations)->outputs()[0].shape, (Shape{1, 1, 2, 2})) << dilations;
  for (const char* dilations : {"1.5,1", ".0,1", "1.0.0,1"})
    EXPECT_THROW(pooling(dilations), Error) << dilations;
}

TEST(Model, FromMemoryIsRefusedByItsName) {
  const std::string path = std::string(CLINFER_SOURCE_DIR) + "/pipelines/models/ball.xml";
  const std::string xml = read_text_file(path), weights = read_text_file(weights_path(path));
  EXPECT_NE(refusal_of_bytes("", "").find("mine: a model of no bytes"), std::string::npos);
  EXPECT_NE(refusal_of_bytes(xml, "").find("mine: "), std::string::npos);
  EXPECT_NE(refusal_of_bytes(xml, weights.substr(1)).find("cut short"), std::string::npos);
  EXPECT_NE(refusal_of_bytes(xml.substr(0, xml.size() / 2), weights).find("mine: "),
            std::string::npos);
  EXPECT_NE(refusal_of_bytes("no model", "").find("mine: "), std::string::npos);
  EXPECT_NE(refusal_of_bytes("no model", weights).find("belong to an OpenVINO IR"),
            std::string::npos);
}

}  // namespace
}  // namespace clinfer
