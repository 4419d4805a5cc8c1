// The reader: sound models of both versions, every kind of damage, and what lies beside the
// network.
#include "engine/ir/ir_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "engine/graph/evaluate.h"
#include "engine/ir/ir_text.h"
#include "kernels/base/text.h"
#include "tests/engine/loop_model.h"
#include "tests/engine/test_files.h"

namespace clinfer {
namespace {

std::string error_of_ir(const std::string& path, ErrorCode* code = nullptr) {
  try {
    read_ir(path);
  } catch (const Error& error) {
    if (code) *code = error.code();
    return error.what();
  }
  return "";
}

TEST(IrReader, ReadsVersionElevenAndTen) {
  for (const char* name : {"models/reshape.xml", "models/reshape_v10.xml"}) {
    const IrModel model = read_ir(test_data(name));
    const Graph& graph = *model.graph;
    EXPECT_EQ(graph.name, "reshape");
    ASSERT_EQ(graph.parameters.size(), 1u);
    EXPECT_EQ(graph.parameters[0]->name, "data");
    EXPECT_EQ(graph.parameters[0]->shape(), (Shape{2, 6}));
    ASSERT_EQ(graph.results.size(), 2u);
    const Edge turned = graph.results[0]->inputs[0];
    EXPECT_EQ(turned.node->name, "turned");
    EXPECT_EQ(turned.node->shape(), (Shape{2, 3, 2}));
    EXPECT_EQ(turned.node->outputs[0].names, (std::vector<std::string>{"turned_tensor"}));

    std::vector<float> data(12);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
    const auto outputs =
        evaluate_graph(graph, std::vector<Tensor>{Tensor::of(ElementType::f32, {2, 6}, data)});
    EXPECT_EQ(outputs[0].to_floats(), (std::vector<float>{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));
    EXPECT_EQ(outputs[1].type(), ElementType::f32);
    EXPECT_EQ(outputs[1].to_floats(), (std::vector<float>{0.5, -2}));
  }
  EXPECT_EQ(read_ir(test_data("models/reshape.xml")).version, 11);
  EXPECT_EQ(read_ir(test_data("models/reshape_v10.xml")).version, 10);
}

TEST(IrReader, ReadsWhatTheFileSaysBesideTheNetwork) {
  const auto info = read_ir(test_data("models/reshape.xml")).rt_info;
  EXPECT_EQ(info.at("model_info/labels"), "background face");
  EXPECT_EQ(info.at("model_info/confidence_threshold"), "0.5");
  EXPECT_EQ(info.at("a key"), "a value");
  const auto old = read_ir(test_data("models/reshape_v10.xml")).rt_info;
  EXPECT_EQ(old.at("cli_parameters/data_type"), "FP32");
}

// GStreamer, JSON and Graphviz take UTF-8 only.
TEST(IrReader, MakesTextValidUtf8) {
  std::string xml = read_file(test_data("models/reshape.xml"));
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(xml.find(from), std::string::npos) << from;
    for (size_t at = 0; (at = xml.find(from, at)) != std::string::npos; at += to.size())
      xml.replace(at, from.size(), to);
  };
  replace("background face", "caf\xe9 &#xD800; \xf0\x9f\x98\x80");
  replace("turned_tensor", "t\xff");
  replace("name=\"data\"", "name=\"d\xc0\xaf\"");
  const TemporaryFolder folder;
  std::filesystem::copy_file(test_data("models/reshape.bin"), folder / "m.bin");
  const IrModel model = read_ir(folder.write("m.xml", xml));
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(model.rt_info.at("model_info/labels"),
            "caf" + r + " " + r + r + r + " \xf0\x9f\x98\x80");
  EXPECT_EQ(model.graph->results[0]->inputs[0].node->outputs[0].names,
            (std::vector<std::string>{"t" + r}));
  EXPECT_EQ(model.graph->parameters[0]->name, "d" + r + r);
  EXPECT_TRUE(is_utf8(to_dot(*model.graph)));
  model.graph->parameters[0]->name = std::string(199, 'x') + "\xc3\xa9";  // cut in a drawing
  EXPECT_TRUE(is_utf8(to_dot(*model.graph)));
}

TEST(IrReader, BoundsItsMessages) {
  std::string xml = read_file(test_data("models/reshape.xml"));
  std::string dims;
  for (int i = 0; i < 100000; ++i) dims += "<dim>1</dim>";
  const size_t at = xml.find("<dim>");
  ASSERT_NE(at, std::string::npos);
  xml.insert(at, dims);
  const TemporaryFolder folder;
  std::filesystem::copy_file(test_data("models/reshape.bin"), folder / "m.bin");
  const std::string what = error_of_ir(folder.write("m.xml", xml));
  EXPECT_NE(what.find("output 0 has the shape [2,6], the file states [1,1,"), std::string::npos);
  EXPECT_LE(what.size(), 5000u);
}

TEST(IrReader, TakesAnOpenBatchAsOne) {
  const IrModel model = read_ir(test_data("models/reshape_open_batch.xml"));
  EXPECT_EQ(model.graph->parameters[0]->shape(), (Shape{1, 6}));
  ASSERT_EQ(model.notes.size(), 1u);
  EXPECT_NE(model.notes[0].find("\"data\""), std::string::npos);
}

// Quantisation tools write such files.
TEST(IrReader, TakesTheTypeThatTheOperationGives) {
  const TemporaryFolder folder;
  std::string xml = read_file(test_data("models/reshape.xml"));
  const std::string port = "<output><port id=\"1\" precision=\"";
  xml.replace(xml.find(port) + port.size(), 3, "FP16");
  folder.write("m.bin", read_file(test_data("models/reshape.bin")));
  const IrModel model = read_ir(folder.write("m.xml", xml));
  const auto& nodes = model.graph->nodes();
  const auto shape = std::find_if(nodes.begin(), nodes.end(),
                                  [](const auto& node) { return node->is("ShapeOf"); });
  ASSERT_NE(shape, nodes.end());
  EXPECT_EQ((*shape)->outputs[0].type, ElementType::i64);
}

TEST(IrReader, CanBeReadWithAnotherBatch) {
  const IrModel model = read_ir(test_data("models/reshape.xml"));
  model.graph->parameters[0]->outputs[0].shape = {5, 6};
  infer_shapes(*model.graph);
  EXPECT_EQ(model.graph->results[0]->inputs[0].node->shape(), (Shape{5, 3, 2}));
}

TEST(IrReader, RefusesEveryCorruptModelWithItsReason) {
  std::ifstream list(test_data("corrupt/expected.txt"));
  size_t number = 0;
  for (std::string line; std::getline(list, line); ++number) {
    const std::string name = line.substr(0, line.find('\t')),
                      part = line.substr(line.find('\t') + 1);
    const std::string path = test_data("corrupt/" + name + ".xml");
    const std::string what = error_of_ir(path);
    EXPECT_TRUE(what.starts_with(path + ": ")) << name << ": " << what;
    EXPECT_NE(what.find(part), std::string::npos) << name << ": " << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << name;
  }
  EXPECT_GT(number, 35u);
}

TEST(IrReader, NamesLayerTypeAndId) {
  const std::string what = error_of_ir(test_data("corrupt/stated_shape_differs.xml"));
  EXPECT_NE(what.find("layer \"turned\" (Transpose, opset1, id 10): output 0 has the shape "
                      "[2,3,2], the file states [2,2,3]"),
            std::string::npos)
      << what;
}

TEST(IrReader, NamesAllUnsupportedLayersAtOnce) {
  const TemporaryFolder folder;
  std::string xml = read_file(test_data("models/reshape.xml"));
  for (const std::string type : {"Transpose", "Concat"})
    xml.replace(xml.find("\"" + type) + 1, type.size(), "Odd" + type);
  ErrorCode code{};
  const std::string what = error_of_ir(folder.write("m.xml", xml), &code);
  EXPECT_EQ(code, ErrorCode::unsupported);
  EXPECT_NE(what.find("2 layers are not supported: \"target\" (OddConcat, opset1), \"turned\" "
                      "(OddTranspose, opset1)"),
            std::string::npos)
      << what;
}

TEST(IrReader, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  ErrorCode code{};
  EXPECT_NE(error_of_ir(folder / "none.xml", &code).find("none.xml: No such file"),
            std::string::npos);
  EXPECT_EQ(code, ErrorCode::not_found);
  EXPECT_NE(error_of_ir(folder / "").find("folder"), std::string::npos);
  ASSERT_EQ(mkfifo((folder / "pipe.xml").c_str(), 0600), 0);
  // Does not wait for a writer either.
  EXPECT_NE(error_of_ir(folder / "pipe.xml").find("not a regular file"), std::string::npos);
}

TEST(IrReader, ReadsMisalignedConstants) {
  const TemporaryFolder folder;
  std::string xml = read_file(test_data("models/reshape.xml"));
  // All constants move by one byte.
  for (size_t at = xml.find("offset=\""); at != std::string::npos;
       at = xml.find("offset=\"", at + 1)) {
    const size_t begin = at + 8, end = xml.find('"', begin);
    xml.replace(begin, end - begin, std::to_string(std::stoi(xml.substr(begin, end - begin)) + 1));
  }
  folder.write("m.bin", "x" + read_file(test_data("models/reshape.bin")));
  const IrModel model = read_ir(folder.write("m.xml", xml));
  EXPECT_EQ(model.graph->results[0]->inputs[0].node->shape(), (Shape{2, 3, 2}));
}

// A model of one constant that is its result.
std::string constant_model(const std::string& type, const std::string& precision, int elements,
                           int size) {
  const std::string dims = "<dim>" + std::to_string(elements) + "</dim>";
  return R"(<net name="c" version="11"><layers>
    <layer id="0" name="c" type="Const" version="opset1"><data element_type=")" +
         type + "\" shape=\"" + std::to_string(elements) + "\" offset=\"0\" size=\"" +
         std::to_string(size) + R"("/><output><port id="0" precision=")" + precision + "\">" +
         dims + R"(</port></output></layer>
    <layer id="1" name="r" type="Result" version="opset1"><input><port id="0">)" +
         dims + R"(</port></input></layer>
    </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>)";
}

std::vector<int64_t> constant_values(const std::string& type, const std::string& precision,
                                     int elements, const std::vector<uint8_t>& bytes) {
  const IrModel model =
      read_ir(constant_model(type, precision, elements, static_cast<int>(bytes.size())),
              std::as_bytes(std::span(bytes)), "m.xml");
  return model.graph->results[0]->inputs[0].node->constant.to_ints();
}

TEST(IrReader, UnpacksNormalFloats) {
  const std::vector<uint8_t> bytes{0x70, 0xf8, 0x01};
  const IrModel model = read_ir(constant_model("nf4", "NF4", 5, static_cast<int>(bytes.size())),
                                std::as_bytes(std::span(bytes)), "m.xml");
  const Tensor& value = model.graph->results[0]->inputs[0].node->constant;
  EXPECT_EQ(value.type(), ElementType::f32);
  EXPECT_EQ(value.to_floats(), (std::vector<float>{-1, 0, 0.0795803f, 1, -0.6961928f}));
}

TEST(IrReader, UnpacksElementsOfFewBits) {
  EXPECT_EQ(constant_values("u1", "BIN", 10, {0xa0, 0x02}),
            (std::vector<int64_t>{0, 0, 0, 0, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(constant_values("u4", "U4", 3, {0xf1, 0x02}), (std::vector<int64_t>{1, 15, 2}));
  EXPECT_EQ(constant_values("i4", "I4", 3, {0xf1, 0x08}), (std::vector<int64_t>{1, -1, -8}));
  EXPECT_EQ(constant_values("f64", "FP64", 1, {0, 0, 0, 0, 0, 0, 0, 0x40}),
            (std::vector<int64_t>{2}));
  EXPECT_EQ(constant_values("u16", "U16", 1, {0x01, 0x80}), (std::vector<int64_t>{0x8001}));
}

TEST(IrReader, ReadsFloatsOfEightBits) {
  const auto floats_of = [](const char* type, const char* precision) {
    const std::vector<uint8_t> bytes{0x00, 0x01, 0x3c, 0x7e, 0xb9, 0xff};
    const IrModel model =
        read_ir(constant_model(type, precision, 6, 6), std::as_bytes(std::span(bytes)), "m.xml");
    return model.graph->results[0]->inputs[0].node->constant.to_floats();
  };
  std::vector<float> values = floats_of("f8e4m3", "F8E4M3");
  EXPECT_TRUE(std::isnan(values.back()));
  values.pop_back();
  EXPECT_EQ(values, (std::vector<float>{0, 0.001953125f, 1.5f, 448, -1.125f}));
  values = floats_of("f8e5m2", "F8E5M2");
  EXPECT_TRUE(std::isnan(values[3]) && std::isnan(values[5]));
  EXPECT_EQ(values[2], 1);
  EXPECT_EQ(values[4], -0.625f);
}

TEST(IrText, ParsesIntegersAndShapesStrictly) {
  EXPECT_EQ(parse_int(" 12 "), 12);
  EXPECT_EQ(parse_int("-3"), -3);
  for (const char* text : {"", " ", "1x", "0x10", "1.0", "99999999999999999999"})
    EXPECT_FALSE(parse_int(text)) << text;
  EXPECT_EQ(parse_shape("1, 3,300 ,2"), (Shape{1, 3, 300, 2}));
  EXPECT_EQ(parse_shape(""), Shape{});
  EXPECT_EQ(parse_shape("?,1..8,-1,3"), (Shape{-1, -1, -1, 3}));
  for (const char* text : {",", "1,", "-2", "1..x", "1 2"}) EXPECT_FALSE(parse_shape(text)) << text;
  EXPECT_EQ(parse_names("a,b\\,c,,d"), (std::vector<std::string>{"a", "b,c", "d"}));
  EXPECT_EQ(parse_opset("opset13"), 13);
  for (const char* text : {"", "opset", "opset0", "opset-1", "extension"})
    EXPECT_FALSE(parse_opset(text)) << text;
}

TEST(IrReader, ReadsBodies) {
  const IrModel model = read_ir(test::loop_model(), {}, "m.xml");
  const std::vector<Tensor> out = evaluate_graph(
      *model.graph, std::vector<Tensor>{
                        Tensor::of(ElementType::f32, {3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6}),
                        Tensor::of(ElementType::f32, {1, 2}, std::vector<float>{100, 200})});
  EXPECT_EQ(out[0].to_floats(), (std::vector<float>{109, 212}));
}

TEST(IrReader, RefusesBodiesThatDoNotFit) {
  const auto refusal = [](const std::string& part, const std::string& change) -> std::string {
    try {
      read_ir(test::loop_model(part, change), {}, "m.xml");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto expect = [&](const char* part, const char* change, const char* reason) {
    const std::string what = refusal(part, change);
    EXPECT_NE(what.find(reason), std::string::npos) << part << " -> " << change << ": " << what;
  };
  expect("internal_layer_id='3'", "internal_layer_id='9'", "no Result with the id 9");
  expect("external_port_id='2'", "external_port_id='7'", "names port 7, which does not exist");
  expect("axis='0'", "axis='5'", "axis");
  expect("stride='1'", "stride='0'", "by 0");
  expect("part_size='1'", "part_size='-1'", "at a time");
  expect("start='0'", "start='99999999999999'", "start");
  expect("to-layer='1'/></back_edges>", "to-layer='5'/></back_edges>",
         "no Parameter with the id 5");
  expect("<input external_port_id='1' internal_layer_id='1'/>", "", "tied to no input");
  expect("type='Add'", "type='Odd'", "1 layer is not supported: \"sum\" (Odd, opset1)");
}

}  // namespace
}  // namespace clinfer
