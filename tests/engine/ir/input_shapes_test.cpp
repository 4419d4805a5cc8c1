// Shapes of inputs: what a file leaves open, and what a user asks for instead.
#include "engine/ir/input_shapes.h"

#include <gtest/gtest.h>

#include "engine/runtime/model.h"
#include "tests/engine/test_files.h"

namespace clinfer {
namespace {

InputShapes wanted(std::initializer_list<const char*> texts) {
  InputShapes shapes;
  for (const char* text : texts) shapes.add(text);
  return shapes;
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A picture that is resized to half its size, and flattened by a shape that is computed.
std::string open_model(const std::string& shape, const std::string& layout = "") {
  const std::string open = "<dim>-1</dim><dim>3</dim><dim>-1</dim><dim>-1</dim>";
  const std::string info = layout.empty()
                               ? ""
                               : R"(<rt_info><attribute name="layout" version="0" layout=")" +
                                     layout + R"("/></rt_info>)";
  return R"(<net name="open" version="11"><layers>
    <layer id="0" name="picture" type="Parameter" version="opset1"><data shape=")" +
         shape + R"(" element_type="f32"/><output><port id="0" precision="FP32" names="image">)" +
         open + info + R"(</port></output></layer>
    <layer id="1" name="pool" type="MaxPool" version="opset1"><data strides="2,2" pads_begin="0,0"
      pads_end="0,0" kernel="2,2" rounding_type="floor" auto_pad="explicit"/>
      <input><port id="0">)" +
         open + R"(</port></input><output><port id="1" precision="FP32">)" + open +
         R"(</port></output></layer>
    <layer id="2" name="shape" type="ShapeOf" version="opset3"><data output_type="i64"/>
      <input><port id="0">)" +
         open + R"(</port></input>
      <output><port id="1" precision="I64"><dim>4</dim></port></output></layer>
    <layer id="3" name="reshaped" type="Reshape" version="opset1"><data special_zero="false"/>
      <input><port id="0">)" +
         open + R"(</port><port id="1"><dim>4</dim></port></input>
      <output><port id="2" precision="FP32">)" +
         open + R"(</port></output></layer>
    <layer id="4" name="out" type="Result" version="opset1"><input><port id="0">)" +
         open + R"(</port></input></layer></layers><edges>
    <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
    <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
    <edge from-layer="1" from-port="1" to-layer="3" to-port="0"/>
    <edge from-layer="2" from-port="1" to-layer="3" to-port="1"/>
    <edge from-layer="3" from-port="2" to-layer="4" to-port="0"/></edges></net>)";
}

TEST(InputShapes, OpenSizesAreSet) {
  const TemporaryFolder folder;
  const std::string path = folder.write("m.xml", open_model("?,3,?,1..64"));
  const auto model = Model::read(path, wanted({"40x24"}));
  EXPECT_EQ(model->inputs()[0].shape, (Shape{1, 3, 24, 40}));
  EXPECT_EQ(model->outputs()[0].shape, (Shape{1, 3, 12, 20}));
  EXPECT_EQ(Model::read(path, wanted({"image=2,3,8,6"}))->outputs()[0].shape, (Shape{2, 3, 4, 3}));
  EXPECT_NE(Model::read(path, wanted({"8x8"})), model);
  EXPECT_EQ(Model::read(path, wanted({"40x24"})), model) << "read once for each size";
  EXPECT_NE(refusal([&] { Model::read(path); })
                .find("input \"picture\" is open in its shape [?,3,?,?]; set "
                      "reshape=WIDTHxHEIGHT (--reshape WIDTHxHEIGHT)"),
            std::string::npos)
      << refusal([&] { Model::read(path); });
}

// A line of text: about 7 times as wide as high, in multiples of 32.
TEST(InputShapes, OpenWidthsAreThoseOfText) {
  const TemporaryFolder folder;
  const std::string path = folder.write("m.xml", open_model("?,3,48,?"));
  InputShapes text;
  text.open_width = true;
  const auto model = Model::read(path, text);
  EXPECT_EQ(model->inputs()[0].shape, (Shape{1, 3, 48, 320}));
  EXPECT_TRUE(model->inputs()[0].open_width);
  EXPECT_NE(model->notes().front().find("the open width is 320"), std::string::npos);
  const auto fixed = Model::read(path, wanted({"640x48"}));
  EXPECT_EQ(fixed->inputs()[0].shape, (Shape{1, 3, 48, 640}));
  EXPECT_FALSE(fixed->inputs()[0].open_width);
  const std::string both = folder.write("both.xml", open_model("?,3,?,?"));
  EXPECT_EQ(Model::read(both, wanted({"?x32"}))->inputs()[0].shape, (Shape{1, 3, 32, 224}));
  EXPECT_NE(refusal([&] { Model::read(both, text); }).find("is open in its shape [?,3,?,?]"),
            std::string::npos)
      << "nothing says the height";
  const std::string closed = folder.write("closed.xml", open_model("1,3,48,100"));
  EXPECT_EQ(Model::read(closed, text)->inputs()[0].shape, (Shape{1, 3, 48, 100}));
  EXPECT_FALSE(Model::read(closed, text)->inputs()[0].open_width);
}

TEST(InputShapes, StatedSizesAreReplaced) {
  const TemporaryFolder folder;
  const std::string path = folder.write("m.xml", open_model("1,3,16,16"));
  EXPECT_EQ(Model::read(path)->outputs()[0].shape, (Shape{1, 3, 8, 8}));
  EXPECT_EQ(Model::read(path, wanted({"6x10"}))->outputs()[0].shape, (Shape{1, 3, 5, 3}));
  EXPECT_NE(refusal([&] { Model::read(path, wanted({"1x1"})); }).find("does not allow"),
            std::string::npos);
}

// Shapes without channels of a picture say nothing; a layout does.
TEST(InputShapes, LayoutsSayWhereHeightAndWidthAre) {
  std::vector<std::string> notes;
  const StatedInput open{"x", {}, "", {-1, -1, -1, -1}},
      told{"x", {}, "[N,H,W,C]", {-1, -1, -1, 4}};
  EXPECT_EQ(fill_open(std::vector{told}, wanted({"6x10"}), notes)[0], (Shape{1, 10, 6, 4}));
  EXPECT_EQ(notes.size(), 1u);
  EXPECT_NE(refusal([&] {
              fill_open(std::vector{open}, wanted({"6x10"}), notes);
            }).find("no input takes a picture"),
            std::string::npos);
  EXPECT_NE(refusal([&] { fill_open(std::vector{open}, {}, notes); }).find("reshape=0=D,D,..."),
            std::string::npos);
  const StatedInput long_clip{"x", {}, "", {1, -1, 20, 30, 3}};
  EXPECT_EQ(fill_open(std::vector{long_clip}, wanted({"frames=8"}), notes)[0],
            (Shape{1, 8, 20, 30, 3}));
  const StatedInput clip{"x", {}, "", {1, 3, 16, -1, -1}};
  EXPECT_EQ(fill_open(std::vector{clip}, wanted({"6x10"}), notes)[0], (Shape{1, 3, 16, 10, 6}));
}

TEST(InputShapes, RefuseWhatIsNoSize) {
  for (const char* text : {"", "x", "3x", "x3", "0x4", "-1x4", "4x4x4", "40000x4", "a=", "a=1,",
                           "a=1,0", "a=b", "640"})
    EXPECT_NE(refusal([&] { wanted({text}); }).find("reshape"), std::string::npos) << text;
  const StatedInput input{"x=1", {}, "", {1, 3, 4, 4}};
  EXPECT_EQ(with_wanted(std::vector{input}, {{1, 3, 4, 4}}, wanted({"x=1=1,3,2,2"}))[0],
            (Shape{1, 3, 2, 2}))
      << "names may hold '='";
  for (const char* text : {"9=1,2", "y=1,2"})
    EXPECT_NE(refusal([&] {
                with_wanted(std::vector{input}, {{1, 3, 4, 4}}, wanted({text}));
              }).find("has no input"),
              std::string::npos);
}

}  // namespace
}  // namespace clinfer
