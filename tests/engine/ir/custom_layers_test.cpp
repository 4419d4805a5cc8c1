// Operations with kernels of the user's own: their description, formats and macros, what goes
// wrong, and networks around them.
#include "engine/ir/custom_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "engine/engine.h"
#include "engine/ir/ir_reader.h"
#include "tests/engine/passes/pass_counter.h"
#include "tests/engine/test_files.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;

std::string dims(const Shape& shape) {
  std::string text;
  for (const int64_t d : shape) text += "<dim>" + std::to_string(d) + "</dim>";
  return text;
}

std::string listed(const Shape& shape) {
  std::string text;
  for (const int64_t d : shape) text += (text.empty() ? "" : ",") + std::to_string(d);
  return text;
}

// A network of one layer.
std::string net(const std::string& type, const Shape& in, const Shape& out,
                const std::string& attributes = "", const std::string& version = "mine",
                const std::string& precision = "FP32") {
  return R"(<net name="n" version="11"><layers>
<layer id="0" name="in" type="Parameter" version="opset1"><data shape=")" +
         listed(in) + R"(" element_type="f32"/><output><port id="0" precision="FP32">)" + dims(in) +
         R"(</port></output></layer>
<layer id="1" name="mine" type=")" +
         type + R"(" version=")" + version + R"("><data )" + attributes +
         R"(/><input><port id="0" precision="FP32">)" + dims(in) +
         R"(</port></input><output><port id="1" precision=")" + precision + R"(">)" + dims(out) +
         R"(</port></output></layer>
<layer id="2" name="out" type="Result" version="opset1"><input><port id="0">)" +
         dims(out) + R"(</port></input></layer></layers>
<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>)";
}

// A <CustomLayer> of one kernel "k" in k.cl.
std::string layer(const std::string& type, const std::string& in_format = "BFYX",
                  const std::string& out_format = "BFYX", const std::string& more = "",
                  const std::string& defines = "") {
  return "<CustomLayer name=\"" + type + "\" type=\"SimpleGPU\" version=\"1\">\n" +
         "<Kernel entry=\"k\"><Source filename=\"k.cl\"/>" + defines + "</Kernel>\n<Buffers>" +
         "<Tensor arg-index=\"0\" type=\"input\" port-index=\"0\" format=\"" + in_format + "\"/>" +
         "<Tensor arg-index=\"1\" type=\"output\" port-index=\"0\" format=\"" + out_format +
         "\"/></Buffers>\n" + more + "</CustomLayer>\n";
}

constexpr const char* kSignature =
    "__kernel void k(const __global INPUT0_TYPE* in, __global OUTPUT0_TYPE* out) {\n"
    "  const size_t i = get_global_id(0);\n";

class CustomLayersOfNetworks : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    return folder_.write(name, text);
  }
  // Writes the model, its description and its kernel.
  void set(const std::string& model, const std::string& description, const std::string& kernel) {
    model_ = write("m.xml", model);
    config_file_ = write("c.xml", description);
    write("k.cl", kernel);
  }
  Config config() const {
    Config config;
    config.cache_dir = folder_ / "cache";
    config.precision = Precision::f32;
    return config;
  }
  std::shared_ptr<CompiledModel> compile(const Config& config, const InputShapes& shapes = {}) {
    return CompiledModel::compile(Model::read(model_, shapes, config_file_), config);
  }
  static std::vector<float> infer(CompiledModel& compiled, const Tensor& input) {
    const auto request = compiled.create_request();
    request->set_input(0, input);
    request->start();
    request->wait();
    return request->output(0).to_floats();
  }
  std::vector<float> run(const Tensor& input) { return infer(*compile(config()), input); }
  std::string refusal(const InputShapes& shapes = {}) {
    try {
      compile(config(), shapes);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was refused";
  }

  TemporaryFolder folder_;
  std::string model_, config_file_;
};

Tensor counted(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::of(ElementType::f32, shape, values);
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

TEST(CustomLayers, WorkSizesAreExpressions) {
  const std::array<int64_t, 4> sizes{2, 3, 5, 7};
  for (const auto& [text, value] :
       std::vector<std::pair<std::string, int64_t>>{{"B*F*Y*X", 210},
                                                    {"(x + 15) / 16 * 16", 16},
                                                    {"Y % 3 - -4", 6},
                                                    {"2*(b+f)", 10},
                                                    {" 64 ", 64},
                                                    {"7-2-1", 4}})
    EXPECT_EQ(evaluate_size(text, sizes), value) << text;
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "is expected at character 1"},
           {"X Y", "unexpected 'Y' at character 3"},
           {"(X", "')' is missing"},
           {"X/(Y-5)", "division by zero"},
           {"99999999999999999999", "too large"},
           {"9223372036854775807*2", "too large"},
           {"Z", "is expected"},
           {std::string(1000, '('), "too many parentheses"}})
    try {
      evaluate_size(text, sizes);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      expect_part(error.what(), part);
    }
  check_size("X/(Y-5)");  // for other sizes
}

TEST(CustomLayers, NamesOfFilesMayHaveSpaces) {
  TemporaryFolder folder;
  fs::create_directory(folder / "with spaces");
  const std::string one = folder.write("with spaces/one.xml", ""),
                    two = folder.write("two.xml", "");
  const std::vector<std::string> both{one, two};
  EXPECT_EQ(split_config_files(one), std::vector{one});
  EXPECT_EQ(split_config_files(one + " " + two), both);
  EXPECT_EQ(split_config_files("\"" + one + "\"  \"" + two + "\""), both);
  EXPECT_EQ(split_config_files("not there.xml"), (std::vector<std::string>{"not", "there.xml"}));
  EXPECT_TRUE(split_config_files("").empty());
  EXPECT_THROW(split_config_files("\"a"), Error);
}

// Each place that a description can be wrong in is named, with its line.
TEST(CustomLayers, DescriptionsAreChecked) {
  const std::string good = layer("A");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"<CustomLayer", "c.xml:1: not well-formed XML"},
      {"<Layer/>", "c.xml:1: <Layer>: a <CustomLayer> is expected"},
      {with("name=\"A\" ", ""), "c.xml:1: <CustomLayer>: the attribute name is missing"},
      {with("SimpleGPU", "GPU"), "<CustomLayer type=\"GPU\">: allowed is SimpleGPU"},
      {with("version=\"1\"", "version=\"2\""), "<CustomLayer version=\"2\">: allowed is 1"},
      {with("version=\"1\"", "version=\"1\" colour=\"red\""), "no such attribute"},
      {with("name=\"A\"", "name=\"Const\""), "no kernel can take the place of it"},
      {with(" entry=\"k\"", ""), "c.xml:2: <Kernel>: the attribute entry is missing"},
      {with("entry=\"k\"", "entry=\"k()\""), "<Kernel entry=\"k()\">: this is not the name"},
      {with("<Source filename=\"k.cl\"/>", ""), "c.xml:2: <Kernel>: <Source> is missing"},
      {with("k.cl", "none.cl"), "c.xml:2: <Source filename=\"none.cl\">: "},
      {with("<Source", "<Define name=\"a b\n\"/><Source"), ""},
      {with("<Source", "<Define name=\"2\"/><Source"), "is not the name of a macro"},
      {with("<Source", "<Define name=\"A\" type=\"double\"/><Source"), "allowed is int, float"},
      {with("type=\"input\"", "type=\"in\""), "c.xml:3: <Tensor type=\"in\">: allowed is input"},
      {with("arg-index=\"1\"", "arg-index=\"0\""), "another buffer is the same argument"},
      {with("arg-index=\"1\"", "arg-index=\"2\""), "not numbered without gaps"},
      {with("arg-index=\"1\"", "arg-index=\"-1\""), "a number from 0 to 63"},
      {with("arg-index=\"1\"", "arg-index=\"99999999999999999999\""), "a number from 0 to 63"},
      {with("format=\"BFYX\"", "format=\"Bfyx\""), "<Tensor format=\"Bfyx\">: allowed is BFYX"},
      {with("type=\"output\"", "type=\"input\""), "c.xml:3: <Buffers>: there is no <Tensor"},
      {with("</Buffers>", "</Buffers><WorkSizes global=\"X,,Y\"/>"), "c.xml:3: <WorkSizes global"},
      {with("</Buffers>", "</Buffers><WorkSizes global=\"1,1,1,1\"/>"), "1 to 3 sizes"},
      {with("</Buffers>", "</Buffers><WorkSizes global=\"X\" local=\"1,1\"/>"), "1 dimensions"},
      {with("</Buffers>", "</Buffers><WorkSizes dim=\"input,x\"/>"), "allowed is output, or input"},
      {with("</Buffers>", "</Buffers><Buffers/>"), "<CustomLayer> has another one"},
      {with("</Buffers>", "</Buffers>\n<Speed/>"), "c.xml:4: <Speed>: there is no such element"},
      {good + good, "c.xml:5: <CustomLayer name=\"A\">: another one is at c.xml:1"},
  };
  for (const auto& [text, part] : cases) {
    CustomLayers layers;
    try {
      layers.add(text, "c.xml", [](const std::string& path) -> std::string {
        if (path == "k.cl") return "";
        throw Error(ErrorCode::not_found, path + " is not there");
      });
      EXPECT_TRUE(part.empty()) << text;
    } catch (const Error& error) {
      expect_part(error.what(), part);
    }
  }
}

// Elements lie in memory in the order of the format.
TEST_F(CustomLayersOfNetworks, AreCompiledAtEachLoad) {
  set(net("Twice", {1, 2, 3, 4}, {1, 2, 3, 4}), layer("Twice"),
      std::string(kSignature) + "  out[i] = 2 * in[i];\n}");
  test::PassCounter counter;
  for (int load = 0; load < 2; ++load) {
    compile(config());
    EXPECT_EQ(counter.take_runs("assign_layouts"), 1u);
  }
}

TEST_F(CustomLayersOfNetworks, FormatsOrderTheDimensions) {
  const Shape shape{2, 3, 4, 5};
  const auto place = [&](const std::string& format, size_t at) {  // of BFYX element `at`
    std::array<size_t, 4> index{at / 60, at / 20 % 3, at / 5 % 4, at % 5};
    size_t where = 0;
    for (const char letter : format) {
      const size_t d = std::string("BFYX").find(letter);
      where = where * static_cast<size_t>(shape[d]) + index[d];
    }
    return static_cast<float>(where);
  };
  const Tensor input = counted(shape);
  for (const std::string format : {"BFYX", "BYXF", "YXFB", "FYXB"}) {
    // The output's element at each place is that place.
    set(net("Mine", shape, shape), layer("Mine", "BFYX", format),
        kSignature + std::string("out[i] = i; }"));
    const std::vector<float> places = run(input);
    // The input's element at each place of memory.
    set(net("Mine", shape, shape), layer("Mine", format, "BFYX"),
        kSignature + std::string("out[i] = in[i]; }"));
    const std::vector<float> moved = run(input);
    for (size_t i = 0; i < places.size(); ++i) {
      ASSERT_EQ(places[i], place(format, i)) << format << " " << i;
      ASSERT_EQ(moved[static_cast<size_t>(place(format, i))], static_cast<float>(i)) << format;
    }
  }
  // ANY is what the engine has; pitches say which.
  std::string lower =
      layer("Mine", "any", "any", "<WorkSizes global=\"B*F*Y*X\" dim=\"input 0\"/>");
  set(net("Mine", shape, shape), lower,
      kSignature +
          std::string("const size_t b = i / 60, f = i / 20 % 3, y = i / 5 % 4, x = i % 5;\n"
                      "#if !defined(INPUT0_FORMAT_BYXF) || !defined(OUTPUT0_FORMAT_BYXF)\n"
                      "#error other formats\n#endif\n"
                      "#define AT(T) (b * T##_PITCHES[0] + f * T##_PITCHES[1] + y * "
                      "T##_PITCHES[2] + x * T##_PITCHES[3] + T##_OFFSET)\n"
                      "out[AT(OUTPUT0)] = in[AT(INPUT0)] + 1; }"));
  const std::vector<float> more = run(input);
  for (size_t i = 0; i < more.size(); ++i) ASSERT_EQ(more[i], static_cast<float>(i + 1));
}

TEST_F(CustomLayersOfNetworks, KernelsGetTheMacros) {
  const std::string defines =
      "<Define name=\"COUNT\" param=\"count\" type=\"int\"/>"
      "<Define name=\"SLOPE\" param=\"slope\" type=\"float\"/>"
      "<Define name=\"SIZES\" param=\"sizes\" type=\"int[]\"/>"
      "<Define name=\"WEIGHTS\" param=\"weights\" type=\"float[]\"/>"
      "<Define name=\"FLAG\" param=\"flag\" type=\"int\"/>"
      "<Define name=\"ABSENT\" param=\"absent\" default=\"17\"/>"
      "<Define name=\"NUMBER 23\"/>"
      "<Define name=\"TWICE(v)\" default=\"((v) * 2)\"/>";
  const std::string kernel = R"(
#if !defined(INPUT0_FORMAT_BFYX) || !defined(OUTPUT0_FORMAT_YXFB) || defined(OUTPUT0_FORMAT_BFYX)
#error formats
#endif
__kernel void k(const __global INPUT0_TYPE* in, __global OUTPUT0_TYPE* out) {
  const float values[] = {
      NUM_INPUTS, INPUT0_DIMS[0], INPUT0_DIMS[1], INPUT0_DIMS[2], INPUT0_DIMS[3], INPUT0_DIMS_SIZE,
      INPUT0_PITCHES[0], INPUT0_PITCHES[3], INPUT0_PITCHES_SIZE, INPUT0_OFFSET,
      INPUT0_LOWER_PADDING[2], INPUT0_LOWER_PADDING_SIZE, INPUT0_UPPER_PADDING[1],
      INPUT0_UPPER_PADDING_SIZE, OUTPUT0_DIMS[1], OUTPUT0_PITCHES[0], OUTPUT0_PITCHES[2],
      OUTPUT0_OFFSET, GLOBAL_WORKSIZE[0], GLOBAL_WORKSIZE[1], GLOBAL_WORKSIZE_SIZE,
      LOCAL_WORKSIZE[0], LOCAL_WORKSIZE[1], LOCAL_WORKSIZE_SIZE, COUNT, SLOPE, SIZES[1],
      WEIGHTS[2], FLAG, ABSENT, NUMBER, TWICE(COUNT), sizeof(INPUT0_TYPE), sizeof(OUTPUT0_TYPE),
      get_global_size(1), get_local_size(0), ON_THE_LINE};
  const size_t n = sizeof(values) / sizeof(*values);
  if (get_global_id(0) + get_global_id(1) == 0)
    for (size_t i = 0; i < n; ++i) out[i % 3 * OUTPUT0_PITCHES[3] + i / 3 * OUTPUT0_PITCHES[2]] = values[i];
}
)";
  const std::string more =
      "<CompilerOptions options=\"-DON_THE_LINE=5 -cl-fast-relaxed-math\"/>"
      "<WorkSizes global=\"X*2,F\" local=\"2,1\" dim=\"input,0\"/>";
  set(net("Mine", {1, 2, 3, 4}, {1, 1, 13, 3},
          "count=\"-7\" slope=\"0.1\" sizes=\"4, 5,6\" weights=\"1,2,-3.5\" flag=\"true\""),
      layer("Mine", "BFYX", "YXFB", more, defines), kernel);
  const std::vector<float> want = {1, 1,     2, 3,  4,  4,   24, 1, 4, 0, 0, 4,  0,
                                   4, 1,     1, 3,  0,  8,   2,  2, 2, 1, 2, -7, 0.1f,
                                   5, -3.5f, 1, 17, 23, -14, 4,  4, 2, 2, 5};
  std::vector<float> got = run(counted({1, 2, 3, 4}));
  got.resize(want.size());
  EXPECT_EQ(got, want);
}

// The type of an output comes from the model's file.
TEST_F(CustomLayersOfNetworks, TypesAreThoseOfTheFile) {
  set(net("Mine", {1, 2, 3, 4}, {1, 2, 3, 4}, "", "mine", "I32"), layer("Mine"),
      kSignature + std::string("out[i] = (OUTPUT0_TYPE)in[i] * 2; }"));
  const auto compiled = compile(config());
  EXPECT_EQ(compiled->outputs()[0].type, ElementType::i32);
  EXPECT_EQ(infer(*compiled, counted({1, 2, 3, 4}))[5], 10);
}

// A user's kernel replaces an operation of the engine; the shapes stay those of the operation.
TEST_F(CustomLayersOfNetworks, BuiltInOperationsCanBeReplaced) {
  set(net("ReLU", {1, 2, 3, 4}, {1, 2, 3, 4}, "", "opset1"), layer("ReLU"),
      kSignature + std::string("out[i] = in[i] * 3; }"));
  EXPECT_EQ(run(counted({1, 2, 3, 4}))[7], 21);
  InputShapes larger;
  larger.add("0=1,2,8,9");
  EXPECT_EQ(infer(*compile(config(), larger), counted({1, 2, 8, 9}))[100], 300);
}

TEST_F(CustomLayersOfNetworks, ShapesFollowTheBatchAndTheInput) {
  const std::string mean = R"(
__kernel void k(const __global INPUT0_TYPE* in, __global OUTPUT0_TYPE* out) {
  const size_t i = get_global_id(0), plane = INPUT0_DIMS[2] * INPUT0_DIMS[3];
  float sum = 0;
  for (size_t p = 0; p < plane; ++p) sum += in[i * plane + p];
  out[i] = sum / plane;
})";
  set(net("Mean", {1, 2, 2, 2}, {1, 2, 1, 1}), layer("Mean"), mean);
  EXPECT_EQ(run(counted({1, 2, 2, 2})), (std::vector<float>{1.5f, 5.5f}));
  Config batch = config();
  batch.batch = 3;
  EXPECT_EQ(infer(*compile(batch), counted({3, 2, 2, 2})),
            (std::vector<float>{1.5f, 5.5f, 9.5f, 13.5f, 17.5f, 21.5f}));
  InputShapes larger;
  larger.add("0=1,2,4,4");
  expect_part(refusal(larger), "is not known, because a custom layer's output follows only");
  // Two dimensions are batch and feature.
  set(net("Twice", {2, 5}, {2, 5}), layer("Twice", "YXFB", "FYXB"),
      kSignature + std::string("const size_t f = i % INPUT0_DIMS[1], b = i / INPUT0_DIMS[1];\n"
                               "out[b * OUTPUT0_PITCHES[0] + f * OUTPUT0_PITCHES[1]] = 2 * in[b * "
                               "INPUT0_PITCHES[0] + f * INPUT0_PITCHES[1]]; }"));
  const std::vector<float> twice = run(counted({2, 5}));
  for (size_t i = 0; i < twice.size(); ++i) EXPECT_EQ(twice[i], static_cast<float>(2 * i));
  set(net("Twice", {1, 1, 1, 1, 5}, {1, 1, 1, 1, 5}), layer("Twice"),
      kSignature + std::string("}"));
  expect_part(refusal(), "5 dimensions; a custom layer takes up to 4");
}

TEST_F(CustomLayersOfNetworks, ErrorsNameFileLineAndAttribute) {
  const std::string description = layer("Mine");
  const std::string model = net("Mine", {1, 2, 3, 4}, {1, 2, 3, 4});
  // The compiler's log has the lines of the user's file.
  set(model, description, "// one\n// two\n__kernel void k(__global float* a) { nonsense; }\n");
  const std::string log = refusal();
  expect_part(log, "c.xml:1: custom layer Mine: building kernel k");
  expect_part(log, "k.cl:3");
  expect_part(log, "nonsense");
  set(model, description, "__kernel void other(__global float* a) { a[0] = 1; }");
  expect_part(refusal(), "its sources have no kernel of that name (entry)");
  set(model, description, "__kernel void k(__global float* a) { a[0] = 1; }");
  expect_part(refusal(), "the kernel k takes 1 arguments, <Buffers> lists 2");
  set(model, description,
      "__attribute__((reqd_work_group_size(3,1,1)))\n" +
          (kSignature + std::string("out[i] = 1; }")));
  expect_part(refusal(), "is compiled for work-groups of 3,1,1");
  set(model, layer("Mine", "BFYX", "BFYX", "<WorkSizes global=\"X\" local=\"3\"/>"),
      kSignature + std::string("}"));
  expect_part(refusal(), "c.xml:4: <WorkSizes>: global is 4 in dimension 0, which is no multiple");
  set(model, layer("Mine", "BFYX", "BFYX", "<WorkSizes global=\"X-4\"/>"), "");
  expect_part(refusal(), "c.xml:4: <WorkSizes global>: \"X-4\" is 0");
  set(model, layer("Mine", "BFYX", "BFYX", "<WorkSizes global=\"X\" dim=\"input,1\"/>"), "");
  expect_part(refusal(), "the layer has 1 inputs");
  set(model, layer("Mine", "BFYX", "BFYX", "", "<Define name=\"A\" param=\"a\"/>"), "");
  expect_part(refusal(),
              "c.xml:2: <Define name=\"A\" param=\"a\">: the layer has no such attribute");
  set(net("Mine", {1, 2, 3, 4}, {1, 2, 3, 4}, "a=\"3; x\""),
      layer("Mine", "BFYX", "BFYX", "", "<Define name=\"A\" param=\"a\" type=\"int\"/>"), "");
  expect_part(refusal(), "the layer's \"3; x\" is no number, list or word");
  set(net("Mine", {1, 2, 3, 4}, {1, 2, 3, 4}, "a=\"3 x\""),
      layer("Mine", "BFYX", "BFYX", "", "<Define name=\"A\" param=\"a\" type=\"int\"/>"), "");
  expect_part(refusal(), "\"3 x\" is not an integer");
  set(model, layer("Mine", "BFYX", "BFYX", "<CompilerOptions options=\"-no-such-option\"/>"),
      kSignature + std::string("}"));
  expect_part(refusal(), "building kernel k");
  // Without a description, the message says that there could be one.
  config_file_ = "";
  expect_part(refusal(), "config-file, CONFIG_FILE");
  config_file_ = folder_ / "not there.xml";
  expect_part(refusal(), "CONFIG_FILE=" + config_file_ + ": ");
}

TEST_F(CustomLayersOfNetworks, DataAreConstantInputs) {
  const std::string xml = R"(<net name="n" version="11"><layers>
<layer id="0" name="in" type="Parameter" version="opset1"><data shape="1,2,1,3" element_type="f32"/><output><port id="0" precision="FP32"><dim>1</dim><dim>2</dim><dim>1</dim><dim>3</dim></port></output></layer>
<layer id="1" name="net/bias" type="Const" version="opset1"><data element_type="f32" shape="1,2" offset="0" size="8"/><output><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="2" name="mine" type="Mine" version="mine"><input><port id="0"><dim>1</dim><dim>2</dim><dim>1</dim><dim>3</dim></port><port id="1"><dim>1</dim><dim>2</dim></port></input><output><port id="2" precision="FP32"><dim>1</dim><dim>2</dim><dim>1</dim><dim>3</dim></port></output></layer>
<layer id="3" name="out" type="Result" version="opset1"><input><port id="0"><dim>1</dim><dim>2</dim><dim>1</dim><dim>3</dim></port></input></layer></layers>
<edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/><edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>)";
  const auto description = [](const std::string& second) {
    return "<CustomLayer name=\"Mine\" type=\"SimpleGPU\" version=\"1\"><Kernel entry=\"k\">"
           "<Source filename=\"k.cl\"/></Kernel><Buffers>"
           "<Tensor arg-index=\"0\" type=\"input\" port-index=\"0\"/>" +
           second +
           "<Tensor arg-index=\"1\" type=\"output\" port-index=\"0\"/></Buffers>"
           "</CustomLayer>";
  };
  const std::string kernel =
      "__kernel void k(const __global float* in, __global float* out, const __global float* bias) "
      "{\n"
      "  const size_t i = get_global_id(0);\n  out[i] = in[i] + bias[i / 3];\n}";
  const float bias[] = {100, 200};
  folder_.write("m.bin", std::string(reinterpret_cast<const char*>(bias), sizeof bias));
  for (const std::string second :
       {"<Tensor arg-index=\"2\" type=\"input\" port-index=\"1\"/>",
        "<Data name=\"bias\" arg-index=\"2\"/>", "<Data name=\"weights\" arg-index=\"2\"/>"}) {
    set(xml, description(second), kernel);
    EXPECT_EQ(run(counted({1, 2, 1, 3})), (std::vector<float>{100, 101, 102, 203, 204, 205}))
        << second;
  }
  set(xml, description("<Data name=\"biases\" arg-index=\"2\"/>"), kernel);
  expect_part(refusal(), "no such constant input; it has net/bias");
}

// The host has no version of it, so frames wait for the device.
TEST_F(CustomLayersOfNetworks, TheFirstTierSaysWhy) {
  set(net("Mine", {1, 2, 3, 4}, {1, 2, 3, 4}), layer("Mine"),
      kSignature + std::string("out[i] = in[i]; }"));
  try {
    CompiledModel::compile_first_tier(Model::read(model_, {}, config_file_), config());
    ADD_FAILURE();
  } catch (const Error& error) {
    expect_part(error.what(), "\"mine\" (custom Mine");
  }
}

// The files are read again when they have changed.
TEST_F(CustomLayersOfNetworks, ChangedFilesCount) {
  const std::string model = net("Mine", {1, 2, 3, 4}, {1, 2, 3, 4});
  set(model, layer("Mine"), kSignature + std::string("out[i] = 1; }"));
  const auto first = Model::read(model_, {}, config_file_);
  EXPECT_EQ(Model::read(model_, {}, config_file_), first);
  EXPECT_EQ(infer(*CompiledModel::compile(first, config()), counted({1, 2, 3, 4}))[0], 1);
  fs::remove(folder_ / "k.cl");
  write("k.cl", kSignature + std::string("out[i] = 2; }"));
  EXPECT_EQ(run(counted({1, 2, 3, 4}))[0], 2);
}

// The worked example between convolutions, with its ReLU replaced, too: fused tails, batches and
// parts of them, streams and tuning.
TEST_F(CustomLayersOfNetworks, NetworksAroundThemStayWhatTheyAre) {
  const std::string model = test_data("posterize.xml"),
                    example = CLINFER_SOURCE_DIR "/pipelines/custom-layer/posterize.xml";
  const std::string file = write("c.xml", layer("ReLU", "ANY", "ANY"));
  write("k.cl", kSignature + std::string("out[i] = fmax(in[i], (INPUT0_TYPE)0); }"));
  Config config = this->config();
  config.batch = 4;
  const auto plain = CompiledModel::compile(Model::read(model, {}, example), config);
  const Tensor input = test::random_tensor(plain->inputs()[0].shape, 0, 255, 5);
  const std::vector<float> want = infer(*plain, input);
  for (const float level : want)
    ASSERT_NEAR(level / 85, std::round(level / 85), 1e-3) << "one of four levels";
  config.partial_batches = true;
  config.streams = 2;
  config.tuning_mode = TuningMode::create;
  config.tuning_file = folder_ / "tuned.json";
  config.tuning_seconds = 1;
  const auto custom = CompiledModel::compile(Model::read(model, {}, file + " " + example), config);
  // And on a device whose convolutions have other layouts a reorder beside it.
  EXPECT_GT(custom->kernel_count(), plain->kernel_count()) << "the ReLU is a launch of its own";
  for (int r = 0; r < 2; ++r) {
    const auto request = custom->create_request();
    for (const size_t images : {0, 1, 2, 4}) {
      request->set_input(0, input);
      request->start(images);
      request->wait();
      const std::vector<float> got = request->output(0).to_floats();
      ASSERT_EQ(got.size(), images == 0 ? want.size() : want.size() / 4 * images);
      // Rounded up or down where a tuned kernel adds in another order.
      size_t different = 0;
      for (size_t i = 0; i < got.size(); ++i) different += std::abs(got[i] - want[i]) > 1e-3;
      ASSERT_LE(different, got.size() / 1000) << images;
    }
  }
}

// Every layer is listed once by its own name, and the rows add up to the time of a request.
TEST_F(CustomLayersOfNetworks, CountersListAllLayers) {
  const std::string example = CLINFER_SOURCE_DIR "/pipelines/custom-layer/posterize.xml";
  Config config = this->config();
  config.perf_count = true;
  const auto model = Model::read(test_data("posterize.xml"), {}, example);
  using Status = StepProfile::Status;
  std::map<std::string, std::vector<StepProfile>> rows;
  // A busy machine may stop this thread between two inferences, so that rows are less than half of
  // the time: then again.
  double total = 0, measured = 0;
  for (int attempt = 0; attempt < 100 && (attempt == 0 || total < measured * 0.5); ++attempt) {
    const auto compiled = CompiledModel::compile(model, config);
    const auto request = compiled->create_request();
    const auto begin = std::chrono::steady_clock::now();
    constexpr int kTimes = 20;
    for (int i = 0; i < kTimes; ++i) {
      request->start();
      request->wait();
    }
    measured = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                   .count() /
               kTimes;
    total = 0;
    rows.clear();
    for (const StepProfile& row : compiled->profile()) {
      rows[row.layer].push_back(row);
      total += row.device_us + row.host_us;
      EXPECT_EQ(row.kernel.empty(), row.status != Status::executed || row.type == "Transfer");
    }
    EXPECT_LE(total, measured * 1.01);
  }
  EXPECT_GE(total, measured * 0.5);
  for (const auto& node : model->graph().nodes())
    EXPECT_EQ(std::count_if(rows[node->name].begin(), rows[node->name].end(),
                            [](const StepProfile& row) { return row.type != "Reorder"; }),
              1)
        << node->name;
  EXPECT_EQ(rows["posterize6"][0].type, "Posterize");
  EXPECT_EQ(rows["posterize6"][0].status, Status::executed);
  for (const std::string fused : {"multiply2", "relu5"}) {
    EXPECT_EQ(rows[fused][0].status, Status::optimized_out);
    EXPECT_EQ(rows[fused][0].fused_into, "convolution4");
  }
  EXPECT_EQ(rows["const3"][0].status, Status::not_run);
  for (const std::string row : {"(download)", "(gaps)"}) EXPECT_EQ(rows[row].size(), 1u) << row;
}

// f16 is for devices that compute it; others say that they take f32.
TEST_F(CustomLayersOfNetworks, HalfWhereTheDeviceComputesIt) {
  set(net("Mine", {1, 2, 3, 4}, {1, 2, 3, 4}), layer("Mine"),
      kSignature + std::string("out[i] = in[i] * 2; }"));
  Config half = config();
  half.precision = Precision::f16;
  const auto compiled = compile(half);
  EXPECT_EQ(infer(*compiled, counted({1, 2, 3, 4}))[5], 10);
  const auto& warnings = compiled->warnings();
  EXPECT_EQ(compiled->precision() == Precision::f32,
            std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
              return warning.find("no f16 arithmetic for the model's custom layers") !=
                     std::string::npos;
            }));
}

}  // namespace
}  // namespace clinfer
