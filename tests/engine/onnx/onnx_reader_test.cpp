// The reader of ONNX models: values, shapes, and its refusals.
#include "engine/onnx/onnx_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/graph/evaluate.h"
#include "engine/runtime/model.h"
#include "tests/engine/onnx/onnx_builder.h"
#include "tests/engine/onnx/onnx_results.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;
using T = onnx::TensorProto;

std::vector<float> first_result(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  return evaluate_graph(*model.graph, inputs).at(0).to_floats();
}

InputShapes named(const std::string& name, const Shape& shape) {
  InputShapes shapes;
  shapes.inputs.emplace_back(name, shape);
  return shapes;
}

size_t count_of(const Graph& graph, std::string_view type) {
  return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                           [&](const auto& node) { return node->is(type); }));
}

// y = relu(x * w + b) of rows of 2.
OnnxBuilder perceptron(int64_t batch = 1) {
  OnnxBuilder b;
  b.input("x", {batch, 2});
  b.initialiser(OnnxBuilder::floats("w", {2, 2}, {1, 2, 3, 4}));
  b.initialiser(OnnxBuilder::floats("b", {2}, {-10, 1}));
  b.node("Gemm", {"x", "w", "b"}, {"h"});
  b.node("Relu", {"h"}, {"y"});
  b.output("y");
  return b;
}

void say(OnnxBuilder& b, const std::string& key, const std::string& value) {
  auto* prop = b.model().add_metadata_props();
  prop->set_key(key);
  prop->set_value(value);
}

using Texts = std::vector<std::pair<std::string, std::string>>;

// The model information that the reader makes of this metadata.
std::map<std::string, std::string> info_of(const Texts& metadata) {
  OnnxBuilder b = perceptron();
  for (const auto& [key, value] : metadata) say(b, key, value);
  return b.read().rt_info;
}

// A layer with several outputs, one that several outputs read, and an input that is an output.
TEST(OnnxReader, EachOutputHasItsOwnName) {
  OnnxBuilder b;
  b.input("x", {1, 2});
  b.node("Split", {"x"}, {"boxes", "scores"});
  b.node("Relu", {"x"}, {"r"});
  b.node("Identity", {"r"}, {"same"});
  b.node("Identity", {"x"}, {"through"});
  b.node("Abs", {"x"}, {"alone"});
  const std::vector<std::string> names{"boxes", "scores", "r", "same", "through", "alone"};
  for (const std::string& name : names) b.output(name);
  const std::vector<Port> ports = output_ports(*b.read().graph);
  ASSERT_EQ(ports.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(ports[i].name, names[i]);
    EXPECT_EQ(ports[i].tensor_names, std::vector<std::string>{names[i]});
  }
}

// GStreamer, JSON and drawings take UTF-8 only.
TEST(OnnxReader, MakesTextValidUtf8) {
  OnnxBuilder b;
  b.input("x\xff", {1, 2});
  b.node("Relu", {"x\xff"}, {"caf\xe9"});
  b.output("caf\xe9");
  const OnnxModel model = b.read();
  EXPECT_EQ(model.graph->parameters[0]->name, "x\xef\xbf\xbd");
  EXPECT_EQ(model.graph->results[0]->inputs[0].node->name, "caf\xef\xbf\xbd");
  EXPECT_EQ(first_result(model, {floats({1, 2}, {-1, 2})}), (std::vector<float>{0, 2}));
}

TEST(OnnxReader, ComputesAndKeepsNames) {
  const OnnxModel model = perceptron().read();
  EXPECT_EQ(first_result(model, {floats({1, 2}, {1, 2})}), (std::vector<float>{0, 11}));
  EXPECT_EQ(model.graph->parameters.at(0)->name, "x");
  EXPECT_EQ(model.graph->parameters.at(0)->attributes.get_string("element_type"), "f32");
  const Edge from = model.graph->results.at(0)->inputs[0];
  EXPECT_EQ(from.node->outputs[from.port].names, std::vector<std::string>{"y"});
}

TEST(OnnxReader, AnOpenBatchIsOneAndSaysSo) {
  const OnnxModel model = perceptron(-1).read();
  EXPECT_EQ(model.graph->parameters[0]->shape(), (Shape{1, 2}));
  ASSERT_EQ(model.notes.size(), 1u);
  EXPECT_NE(model.notes[0].find("the open batch is 1 unless batch-size (--batch)"),
            std::string::npos)
      << model.notes[0];
  const OnnxModel three = perceptron(-1).read(named("x", {3, 2}));
  EXPECT_EQ(three.graph->results[0]->inputs[0].node->shape(), (Shape{3, 2}));
}

TEST(OnnxReader, OtherOpenDimensionsNeedAShape) {
  OnnxBuilder b;
  b.input("x", {1, 3, -1, -1});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  EXPECT_NE(refusal(b).find("--reshape WIDTHxHEIGHT"), std::string::npos) << refusal(b);
  EXPECT_EQ(b.read(named("x", {1, 3, 4, 6})).graph->parameters[0]->shape(), (Shape{1, 3, 4, 6}));
  InputShapes size;
  size.add("6x4");
  EXPECT_EQ(b.read(size).graph->parameters[0]->shape(), (Shape{1, 3, 4, 6}));
  EXPECT_NE(refusal(b, named("x", {1, 3})).find("another number"), std::string::npos);
  EXPECT_NE(refusal(b, named("z", {1})).find("no input \"z\""), std::string::npos);
  // Ultralytics' exporter says what size the model was made for.
  auto* prop = b.model().add_metadata_props();
  prop->set_key("imgsz");
  prop->set_value("[32, 64]");
  EXPECT_EQ(b.read().graph->parameters[0]->shape(), (Shape{1, 3, 32, 64}));
}

// A chain of shapes in front of a Reshape follows the batch.
TEST(OnnxReader, ShapesAreComputedThrough) {
  OnnxBuilder b;
  b.input("x", {-1, 2, 3});
  b.initialiser(OnnxBuilder::ints("zero", {}, {0}));
  b.initialiser(OnnxBuilder::ints("axes", {1}, {0}));
  b.initialiser(OnnxBuilder::ints("rest", {1}, {-1}));
  b.node("Shape", {"x"}, {"s"});
  set(b.node("Gather", {"s", "zero"}, {"n"}), "axis", 0);
  b.node("Unsqueeze", {"n", "axes"}, {"m"});
  set(b.node("Concat", {"m", "rest"}, {"to"}), "axis", 0);
  b.node("Reshape", {"x", "to"}, {"y"});
  b.output("y");
  EXPECT_EQ(b.read().graph->results[0]->inputs[0].node->shape(), (Shape{1, 6}));
  EXPECT_EQ(b.read(named("x", {4, 2, 3})).graph->results[0]->inputs[0].node->shape(),
            (Shape{4, 6}));
}

TEST(OnnxReader, NamesAllUnsupportedOperationsAtOnce) {
  OnnxBuilder b;
  b.input("x", {1, 2});
  b.node("Frobnicate", {"x"}, {"a"});
  b.node("Frobnicate", {"a"}, {"c"});
  b.node("Twiddle", {"c"}, {"y"}, "com.example");
  b.output("y");
  const std::string why = refusal(b);
  EXPECT_NE(why.find("test.onnx: 2 operations are not supported"), std::string::npos) << why;
  EXPECT_NE(why.find("Frobnicate (opset 17, node \"node_a\" and 1 more)"), std::string::npos)
      << why;
  EXPECT_NE(why.find("Twiddle (com.example opset not stated, node \"node_y\")"), std::string::npos)
      << why;
}

TEST(OnnxReader, ErrorsSayNodeOperationAndOpset) {
  OnnxBuilder b;
  b.input("x", {1, 3, 8, 8});
  b.initialiser(OnnxBuilder::floats("w", {1, 4, 1, 1}, {1, 2, 3, 4}));
  b.node("Conv", {"x", "w"}, {"y"});
  b.output("y");
  const std::string why = refusal(b);
  EXPECT_NE(why.find("test.onnx: node \"node_y\" (Conv, opset 17): "), std::string::npos) << why;
}

TEST(OnnxReader, RefusesWhatContradictsItself) {
  OnnxBuilder unknown = perceptron();
  unknown.node("Add", {"y", "nowhere"}, {"z"});
  EXPECT_NE(refusal(unknown).find("gives the value \"nowhere\""), std::string::npos);
  OnnxBuilder twice = perceptron();
  twice.node("Relu", {"h"}, {"y"});
  EXPECT_NE(refusal(twice).find("two values have the name \"y\""), std::string::npos);
  OnnxBuilder short_data = perceptron();
  short_data.graph().mutable_initializer(0)->clear_float_data();
  EXPECT_NE(refusal(short_data).find("initialiser \"w\""), std::string::npos);
  OnnxBuilder no_output = perceptron();
  no_output.graph().clear_output();
  EXPECT_NE(refusal(no_output).find("has no outputs"), std::string::npos);
  OnnxBuilder newer(99);
  newer.input("x", {1});
  newer.output("x");
  EXPECT_NE(refusal(newer).find("opset 99"), std::string::npos);
}

TEST(OnnxReader, RefusesWhatIsNoModel) {
  for (const std::string& text : {std::string(), std::string("<?xml version=\"1.0\"?><net/>"),
                                  std::string("\x08\x08"), perceptron().bytes().substr(0, 50)})
    EXPECT_THROW(read_onnx(std::as_bytes(std::span(text.data(), text.size())), "test.onnx"), Error)
        << text;
}

TEST(OnnxReader, TensorsOfAllKinds) {
  struct Case {
    int type;
    std::string raw;
    std::vector<float> values;
  };
  const auto text = [](std::initializer_list<unsigned> bytes) {
    std::string raw;
    for (unsigned byte : bytes) raw += static_cast<char>(byte);
    return raw;
  };
  const std::vector<Case> cases = {
      {T::FLOAT16, text({0x00, 0x3c, 0x00, 0xc0}), {1, -2}},
      {T::BFLOAT16, text({0x80, 0x3f, 0x00, 0xc0}), {1, -2}},
      {T::DOUBLE, text({0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0}), {1, -2}},
      {T::INT8, text({1, 0xfe}), {1, -2}},
      {T::UINT8, text({1, 0xfe}), {1, 254}},
      {T::INT16, text({1, 0, 0xfe, 0xff}), {1, -2}},
      {T::BOOL, text({0, 7}), {0, 1}},
      {22, text({0xe1}), {1, -2}},  // int4
      {21, text({0xe1}), {1, 14}},  // uint4
  };
  for (const Case& c : cases) {
    OnnxBuilder b;
    onnx::TensorProto tensor = OnnxBuilder::of("t", {2}, c.type);
    tensor.set_raw_data(c.raw);
    b.initialiser(tensor);
    b.input("x", {2});
    b.node("CastLike", {"t", "x"}, {"f"});
    b.node("Add", {"f", "x"}, {"y"});
    b.output("y");
    EXPECT_EQ(first_result(b.read(), {floats({2}, {0, 0})}), c.values) << c.type;
  }
  OnnxBuilder strings;
  strings.input("x", {1});
  strings.initialiser(OnnxBuilder::of("t", {1}, T::STRING));
  strings.node("Identity", {"t"}, {"y"});
  strings.output("y");
  EXPECT_NE(refusal(strings).find("strings are not supported"), std::string::npos);
}

TEST(OnnxReader, SparseInitialisers) {
  OnnxBuilder b;
  b.input("x", {2, 3});
  auto* sparse = b.graph().add_sparse_initializer();
  *sparse->mutable_values() = OnnxBuilder::floats("t", {2}, {5, 7});
  *sparse->mutable_indices() = OnnxBuilder::ints("", {2, 2}, {0, 1, 1, 2});
  sparse->add_dims(2);
  sparse->add_dims(3);
  b.node("Add", {"x", "t"}, {"y"});
  b.output("y");
  EXPECT_EQ(first_result(b.read(), {floats({2, 3}, {0, 0, 0, 0, 0, 0})}),
            (std::vector<float>{0, 5, 0, 0, 0, 7}));
  sparse->mutable_indices()->set_int64_data(3, 3);
  EXPECT_NE(refusal(b).find("index out of range"), std::string::npos);
}

// A few bytes each ask for 64 MiB: one is read, many are refused instead of filling the memory.
TEST(OnnxReader, TablesThatNodesAskForAreLimitedTogether) {
  OnnxBuilder b;
  b.input("x", {4096, 4096});
  const auto eye = [&] {
    const std::string name = "eye" + std::to_string(b.graph().node_size());
    b.node("EyeLike", {"x"}, {name});
    b.output(name);
  };
  eye();
  EXPECT_EQ(refusal(b), "nothing was refused");
  for (int i = 0; i < 4; ++i) eye();
  EXPECT_NE(refusal(b).find("tables that the model's operations need"), std::string::npos)
      << refusal(b);

  OnnxBuilder sparse;
  sparse.input("x", {1});
  for (const auto& [name, size] : {std::pair{"most", int64_t{1} << 26}, {"more", 1}}) {
    auto* added = sparse.graph().add_sparse_initializer();
    *added->mutable_values() = OnnxBuilder::of(name, {1}, T::INT8);
    added->mutable_values()->add_int32_data(1);
    *added->mutable_indices() = OnnxBuilder::ints("", {1}, {0});
    added->add_dims(size);
    sparse.node("Identity", {name}, {std::string(name) + "_out"});
    sparse.output(std::string(name) + "_out");
    if (size > 1) {
      EXPECT_EQ(refusal(sparse), "nothing was refused");
    }
  }
  EXPECT_NE(refusal(sparse).find("sparse tensors would have more than"), std::string::npos)
      << refusal(sparse);
}

// ---- external data ------------------------------------------------------------------------------

class OnnxExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("onnx_external_" + std::to_string(getpid()));
    fs::create_directories(folder_ / "inside");
    write(folder_ / "inside" / "w.bin", std::string(8, 'x') + data());
    write(folder_ / "outside.bin", std::string(8, 'x') + data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string data() {
    const std::vector<float> values{1, 2, 3, 4};
    return {reinterpret_cast<const char*>(values.data()), 16};
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  std::string read(const std::string& location, const std::string& offset = "8",
                   const std::string& length = "16") {
    OnnxBuilder b = perceptron();
    auto* w = b.graph().mutable_initializer(0);
    w->clear_float_data();
    w->set_data_location(T::EXTERNAL);
    for (const auto& [key, value] : {std::pair{"location", location}, std::pair{"offset", offset},
                                     std::pair{"length", length}}) {
      auto* entry = w->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    const fs::path path = folder_ / "inside" / "model.onnx";
    write(path, b.bytes());
    try {
      const OnnxModel model = read_onnx(path.string());
      EXPECT_EQ(first_result(model, {floats({1, 2}, {1, 2})}), (std::vector<float>{0, 11}));
      EXPECT_EQ(model.files.size(), 1u);
    } catch (const Error& error) {
      return error.what();
    }
    return "read";
  }

  fs::path folder_;
};

TEST_F(OnnxExternalData, LieInTheModelsFolder) {
  EXPECT_EQ(read("w.bin"), "read");
  EXPECT_NE(read("missing.bin").find("is needed beside the model"), std::string::npos);
  EXPECT_NE(read("../outside.bin").find("not a file in the model's folder"), std::string::npos);
  EXPECT_NE(read((folder_ / "outside.bin").string()).find("not a file in the model's folder"),
            std::string::npos);
  EXPECT_NE(read("").find("not a file in the model's folder"), std::string::npos);
  fs::create_symlink(folder_ / "outside.bin", folder_ / "inside" / "link.bin");
  EXPECT_NE(read("link.bin").find("leads out of the model's folder"), std::string::npos);
  fs::create_symlink(folder_ / "inside" / "w.bin", folder_ / "inside" / "same.bin");
  EXPECT_EQ(read("same.bin"), "read");
}

// As onnx.save writes them with one file a tensor, or large ones in one file and others in another.
TEST_F(OnnxExternalData, SeveralTensorsLieInSeveralFiles) {
  OnnxBuilder b;
  b.input("x", {1, 2});
  const std::vector<float> first{1, 2, 3, 4, 10, 20}, second{100, 200};
  const auto bytes = [](const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  };
  fs::create_directories(folder_ / "inside" / "deeper");
  write(folder_ / "inside" / "a.data", bytes(first));
  write(folder_ / "inside" / "deeper" / "b.data", bytes(second));
  const auto place = [&](const std::string& name, const Shape& shape, const char* file,
                         const char* offset) {
    T tensor = OnnxBuilder::of(name, shape, T::FLOAT);
    tensor.set_data_location(T::EXTERNAL);
    for (const auto& [key, value] : {std::pair{"location", file}, std::pair{"offset", offset}}) {
      if (*value == '\0') continue;  // offset and length may be left out
      auto* entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    b.initialiser(tensor);
  };
  place("w", {2, 2}, "a.data", "0");
  place("b", {2}, "a.data", "16");
  place("c", {2}, "deeper/b.data", "");
  b.node("Gemm", {"x", "w", "b"}, {"h"});
  b.node("Add", {"h", "c"}, {"y"});
  b.output("y");
  const fs::path path = folder_ / "inside" / "several.onnx";
  write(path, b.bytes());
  const OnnxModel model = read_onnx(path.string());
  EXPECT_EQ(first_result(model, {floats({1, 2}, {1, 2})}), (std::vector<float>{117, 230}));
  EXPECT_EQ(model.files.size(), 2u);
}

TEST_F(OnnxExternalData, StayInsideTheirFile) {
  EXPECT_NE(read("w.bin", "9").find("leave"), std::string::npos);
  EXPECT_NE(read("w.bin", "8", "12").find("size says 12"), std::string::npos);
  EXPECT_NE(read("w.bin", "-8").find("offset"), std::string::npos);
}

TEST(OnnxReader, ExternalDataOfAModelInMemoryAreRefused) {
  OnnxBuilder b = perceptron();
  auto* w = b.graph().mutable_initializer(0);
  w->clear_float_data();
  w->set_data_location(T::EXTERNAL);
  auto* entry = w->add_external_data();
  entry->set_key("location");
  entry->set_value("w.bin");
  EXPECT_NE(refusal(b).find("is not a file"), std::string::npos) << refusal(b);
}

// ---- on a device --------------------------------------------------------------------------------

// Choices made for the user reach the user.
TEST(OnnxReader, ModelsTellWhatWasChosen) {
  const fs::path path =
      fs::path(::testing::TempDir()) / ("open_" + std::to_string(getpid()) + ".ONNX");
  OnnxBuilder b;
  b.input("x", {-1, 3, -1, -1});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  say(b, "imgsz", "[32, 64]");
  std::ofstream(path, std::ios::binary) << b.bytes();
  const auto notes = Model::read(path.string())->notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("taken as 64x32"), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("reshape=WIDTHxHEIGHT"), std::string::npos) << notes[0];
  EXPECT_NE(notes[1].find("batch-size"), std::string::npos) << notes[1];
  fs::remove(path);
}

// PP-OCR's recognisers bring their dictionary along, and leave height and width open.
TEST(OnnxReader, ADictionaryMakesALineOfText) {
  const fs::path path =
      fs::path(::testing::TempDir()) / ("line_" + std::to_string(getpid()) + ".onnx");
  OnnxBuilder b;
  b.input("x", {-1, 3, -1, -1});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  say(b, "character", "a\nb\r\n \n\u597d");
  std::ofstream(path, std::ios::binary) << b.bytes();
  InputShapes text;
  text.open_width = true;
  const auto model = Model::read(path.string(), text);
  EXPECT_EQ(model->inputs()[0].shape, (Shape{1, 3, 48, 320}));
  EXPECT_TRUE(model->inputs()[0].open_width);
  EXPECT_EQ(model->rt_info().at("model_info/labels"), "a b <space> \u597d");
  EXPECT_EQ(model->rt_info().at("model_info/model_type"), "text_recognition");
  fs::remove(path);
}

TEST(OnnxReader, RunsOnADeviceWithAnyBatch) {
  const fs::path path =
      fs::path(::testing::TempDir()) / ("perceptron_" + std::to_string(getpid()) + ".onnx");
  std::ofstream(path, std::ios::binary) << perceptron(-1).bytes();
  Config config;
  config.precision = Precision::f32;
  config.cache_dir = "";
  config.batch = 2;
  const auto model = Model::read(path.string());
  EXPECT_EQ(Model::read(path.string()), model);  // read once while somebody holds it
  const auto compiled = CompiledModel::compile(model, config);
  EXPECT_EQ(compiled->inputs().at(0).name, "x");
  EXPECT_EQ(compiled->outputs().at(0).name, "y");
  const auto request = compiled->create_request();
  request->set_input(0, floats({2, 2}, {1, 2, 5, 0}));
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), (std::vector<float>{0, 11, 0, 11}));
  fs::remove(path);
}

// ---- graphs in graphs ---------------------------------------------------------------------------

TEST(OnnxReader, FunctionsAreWrittenInPlace) {
  OnnxBuilder b;
  b.import("local", 1);
  b.input("x", {2});
  set(b.node("Scaled", {"x"}, {"y"}, "local"), "by", 1);
  b.output("y");
  auto* function = b.model().add_functions();
  function->set_domain("local");
  function->set_name("Scaled");
  function->add_input("a");
  function->add_output("r");
  function->add_attribute("by");
  auto* import = function->add_opset_import();
  import->set_domain("");
  import->set_version(17);
  auto& cast = OnnxBuilder::fill(*function->add_node(), "Cast", {"a"}, {"c"});
  auto* to = cast.add_attribute();  // the type is the call's attribute
  to->set_name("to");
  to->set_type(onnx::AttributeProto::INT);
  to->set_ref_attr_name("by");
  OnnxBuilder::fill(*function->add_node(), "Add", {"c", "c"}, {"r"});
  EXPECT_EQ(first_result(b.read(), {floats({2}, {1, 2})}), (std::vector<float>{2, 4}));
}

TEST(OnnxReader, AFunctionThatCallsItselfEnds) {
  OnnxBuilder b;
  b.import("local", 1);
  b.input("x", {2});
  b.node("Again", {"x"}, {"y"}, "local");
  b.output("y");
  auto* function = b.model().add_functions();
  function->set_domain("local");
  function->set_name("Again");
  function->add_input("a");
  function->add_output("r");
  auto* import = function->add_opset_import();
  import->set_domain("local");
  import->set_version(1);
  OnnxBuilder::fill(*function->add_node(), "Again", {"a"}, {"r"}, "local");
  EXPECT_NE(refusal(b).find("nested too deeply"), std::string::npos) << refusal(b);
}

// then: x + 1, else: x * 2; both see x from outside.
OnnxBuilder branches(bool constant, int64_t condition) {
  OnnxBuilder b;
  b.input("x", {2});
  if (constant) {
    onnx::TensorProto c = OnnxBuilder::of("c", {}, T::BOOL);
    c.add_int32_data(static_cast<int32_t>(condition));
    b.initialiser(c);
  } else {
    b.input("c", {}, T::BOOL);
  }
  auto& node = b.node("If", {"c"}, {"y"});
  onnx::GraphProto& then = graph_of(node, "then_branch");
  *then.add_initializer() = OnnxBuilder::floats("one", {}, {1});
  OnnxBuilder::fill(*then.add_node(), "Add", {"x", "one"}, {"t"});
  OnnxBuilder::describe(*then.add_output(), "t", {2});
  onnx::GraphProto& other = graph_of(node, "else_branch");
  OnnxBuilder::fill(*other.add_node(), "Add", {"x", "x"}, {"e"});
  OnnxBuilder::describe(*other.add_output(), "e", {2});
  b.output("y");
  return b;
}

TEST(OnnxReader, BranchesThatAreKnownAreWrittenInPlace) {
  const OnnxModel yes = branches(true, 1).read(), no = branches(true, 0).read();
  EXPECT_EQ(count_of(*yes.graph, "If"), 0u);
  EXPECT_EQ(first_result(yes, {floats({2}, {1, 3})}), (std::vector<float>{2, 4}));
  EXPECT_EQ(first_result(no, {floats({2}, {1, 3})}), (std::vector<float>{2, 6}));
  const OnnxModel open = branches(false, 0).read();
  EXPECT_EQ(count_of(*open.graph, "If"), 1u);
  const auto chosen = [](int64_t c) {
    return Tensor::of(ElementType::boolean, {}, std::vector<int64_t>{c});
  };
  EXPECT_EQ(first_result(open, {floats({2}, {1, 3}), chosen(1)}), (std::vector<float>{2, 4}));
  EXPECT_EQ(first_result(open, {floats({2}, {1, 3}), chosen(0)}), (std::vector<float>{2, 6}));
}

// Three times: state = state + x; all states are put together.
TEST(OnnxReader, LoopsPutTheirOutputsTogether) {
  OnnxBuilder b;
  b.input("x", {2});
  b.initialiser(OnnxBuilder::ints("trips", {}, {3}));
  auto& node = b.node("Loop", {"trips", "", "x"}, {"last", "all"});
  onnx::GraphProto& body = graph_of(node, "body");
  OnnxBuilder::describe(*body.add_input(), "i", {}, T::INT64);
  OnnxBuilder::describe(*body.add_input(), "go", {}, T::BOOL);
  OnnxBuilder::describe(*body.add_input(), "s", {2});
  OnnxBuilder::fill(*body.add_node(), "Add", {"s", "x"}, {"n"});
  OnnxBuilder::fill(*body.add_node(), "Identity", {"go"}, {"on"});
  for (const char* name : {"on", "n", "n"}) body.add_output()->set_name(name);
  b.output("all");
  b.output("last");
  const OnnxModel model = b.read();
  const auto results = evaluate_graph(*model.graph, std::vector<Tensor>{floats({2}, {1, 2})});
  EXPECT_EQ(results[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(results[0].to_floats(), (std::vector<float>{2, 4, 3, 6, 4, 8}));
  EXPECT_EQ(results[1].to_floats(), (std::vector<float>{4, 8}));
}

// ---- quantised ----------------------------------------------------------------------------------

TEST(OnnxReader, QuantizeAndDequantizeAreOneFakeQuantize) {
  OnnxBuilder b;
  b.input("x", {1, 2});
  b.initialiser(OnnxBuilder::floats("scale", {}, {0.5f}));
  onnx::TensorProto zero = OnnxBuilder::of("zero", {}, T::UINT8);
  zero.add_int32_data(128);
  b.initialiser(zero);
  b.node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
  b.node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
  b.output("y");
  const OnnxModel both = b.read();
  EXPECT_EQ(count_of(*both.graph, "FakeQuantize"), 1u);
  EXPECT_EQ(count_of(*both.graph, "Round"), 0u);
  EXPECT_EQ(first_result(both, {floats({1, 2}, {0.7f, -1000})}), (std::vector<float>{0.5f, -64}));
  b.output("q");  // the integers are wanted too
  const OnnxModel model = b.read();
  const auto results =
      evaluate_graph(*model.graph, std::vector<Tensor>{floats({1, 2}, {0.7f, -1000})});
  EXPECT_EQ(results[1].type(), ElementType::u8);
  EXPECT_EQ(results[1].to_floats(), (std::vector<float>{129, 0}));
}

// ---- metadata -----------------------------------------------------------------------------------

// As OpenVINO's training extensions write them for OpenMMLab's models: the path's parts with spaces.
TEST(OnnxReader, ModelInfoMayStandInTheMetadata) {
  const auto info = info_of({{"model_info model_type", "ssd"},
                             {"model_info labels", "cat dog"},
                             {"model_info/mean_values", "123.675 116.28 103.53"},
                             {"classes", "['other', 'names']"}});
  EXPECT_EQ(info.at("model_info/model_type"), "ssd");
  EXPECT_EQ(info.at("model_info/labels"), "cat dog");
  EXPECT_EQ(info.at("model_info/mean_values"), "123.675 116.28 103.53");
}

TEST(OnnxReader, NamesOfClassesInTheMetadataAreLabels) {
  for (const char* key : {"names", "classes", "CLASSES", "class_names", "labels"}) {
    const auto info = info_of({{key, R"(["fire truck", "bus"])"}});
    EXPECT_EQ(info.at("model_info/labels"), "fire_truck bus") << key;
  }
  EXPECT_FALSE(info_of({{"classes", "80"}}).contains("model_info/labels"));
}

TEST(OnnxReader, UltralyticsMetadataAreModelInfo) {
  const auto info = info_of({{"task", "detect"},
                             {"stride", "32"},
                             {"imgsz", "[640, 640]"},
                             {"names", "{0: 'person', 1: \"driver's seat\"}"}});
  EXPECT_EQ(info.at("model_info/model_type"), "YOLO");
  EXPECT_EQ(info.at("model_info/labels"), "person driver's_seat");
  EXPECT_EQ(info.at("model_info/resize_type"), "fit_to_window_letterbox");
  EXPECT_EQ(info.at("metadata_props/task"), "detect");
  // The task settles how the picture is fitted.
  for (const auto& [task, head, fit] : {std::tuple{"classify", "Classify", "crop"},
                                        {"detect", "RTDETRDecoder", "standard"},
                                        {"pose", "Pose", "fit_to_window_letterbox"}}) {
    const auto other =
        info_of({{"task", task}, {"stride", "32"}, {"head", head}, {"kpt_shape", "[17, 3]"}});
    EXPECT_EQ(other.at("model_info/resize_type"), fit) << task;
    EXPECT_EQ(other.at("model_info/kpt_shape"), "[17, 3]");
  }
  EXPECT_FALSE(info_of({{"task", "anything"}}).contains("model_info/model_type"));
}

// Returns the attributes of the operation that makes the only output.
std::map<std::string, std::string> output_attributes(const OnnxBuilder& b) {
  const std::string file = b.bytes();
  return Model::read_bytes(std::as_bytes(std::span(file)), {}, "ends.onnx", {}, {})
      ->output_op_attributes(0);
}

TEST(OnnxReader, SoftmaxInPartsIsSeen) {
  for (const bool of_itself : {true, false}) {
    OnnxBuilder b(11);
    b.input("x", {1, 2, 1, 1});
    b.node("Exp", {"x"}, {"e"});
    set(b.node("ReduceSum", {of_itself ? "e" : "x"}, {"sum"}), "axes", std::vector<int64_t>{1});
    b.node("Div", {"e", "sum"}, {"y"});
    b.output("y");
    EXPECT_EQ(output_attributes(b).count("softmax"), of_itself ? 1u : 0u);
  }
}

TEST(OnnxReader, OutputsOfTheLastConvolutionsAreSeen) {
  for (const bool limited : {false, true}) {
    OnnxBuilder b;
    b.input("x", {1, 1, 4, 4});
    b.initialiser(OnnxBuilder::floats("w", {1, 1, 1, 1}, {2}));
    b.initialiser(OnnxBuilder::floats("bias", {1}, {3}));
    b.initialiser(OnnxBuilder::ints("rows", {3}, {1, 2, 16}));
    b.node("Conv", {"x", "w", "bias"}, {"boxes"});
    b.node("Conv", {"x", "w"}, {"scores"});
    if (limited) b.node("Sigmoid", {"scores"}, {"shares"});
    set(b.node("Concat", {"boxes", limited ? "shares" : "scores"}, {"joined"}), "axis", 1);
    b.node("Reshape", {"joined", "rows"}, {"table"});
    b.node("Transpose", {"table"}, {"y"});
    b.output("y");
    EXPECT_EQ(output_attributes(b).count("linear"), limited ? 0u : 1u);
  }
}

}  // namespace
}  // namespace clinfer
