// Values that depend on how many rows NonZero, NonMaxSuppression or a loop finds are computed for
// each inference, never from the most rows possible. own_cases.py compares more with ONNX Runtime.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/engine.h"
#include "engine/graph/evaluate.h"
#include "engine/runtime/model.h"
#include "tests/engine/onnx/onnx_builder.h"
#include "tests/engine/onnx/onnx_results.h"

namespace clinfer {
namespace {

using Values = std::vector<float>;

// x: six numbers; n: how many of them are not 0; f: x + 0.5.
OnnxBuilder counting() {
  OnnxBuilder b;
  b.input("x", {6});
  for (const auto& [name, value] : {std::pair{"zero", 0}, {"one", 1}, {"three", 3}})
    b.initialiser(OnnxBuilder::ints(name, {}, {value}));
  b.initialiser(OnnxBuilder::ints("first", {1}, {0}));
  b.initialiser(OnnxBuilder::floats("half", {}, {0.5f}));
  b.node("Add", {"x", "half"}, {"f"});
  b.node("NonZero", {"x"}, {"places"});
  b.node("Shape", {"places"}, {"sizes"});
  b.node("Gather", {"sizes", "one"}, {"n"});
  b.node("Unsqueeze", {"n", "first"}, {"as_list"});
  return b;
}

// An If whose branches compute one operation each of a value around it.
void add_if(OnnxBuilder& b, const std::string& condition, const std::string& then,
            const std::string& otherwise, const std::string& of) {
  auto& node = b.node("If", {condition}, {"y"});
  for (const auto& [name, type] : {std::pair{"then_branch", then}, {"else_branch", otherwise}}) {
    auto& graph = graph_of(node, name);
    OnnxBuilder::fill(*graph.add_node(), type, {of}, {std::string(name) + "_y"});
    graph.add_output()->set_name(std::string(name) + "_y");
  }
}

bool has(const OnnxModel& model, const std::string& type) {
  const auto& nodes = model.graph->nodes();
  return std::ranges::any_of(nodes, [&](const auto& node) { return node->is(type); });
}

// The first output, by the operations' plain C++ and on the device.
void expect_both(const OnnxBuilder& b, const Shape& shape, const Values& x,
                 const Shape& wanted_shape, const Values& wanted) {
  const Tensor input = floats(shape, x);
  const OnnxModel model = b.read();
  const Tensor on_host = evaluate_graph(*model.graph, std::vector{input})[0];
  EXPECT_EQ(on_host.shape(), wanted_shape);
  EXPECT_EQ(on_host.to_floats(), wanted);
  namespace fs = std::filesystem;
  const fs::path path =
      fs::path(::testing::TempDir()) / ("found_" + std::to_string(getpid()) + ".onnx");
  std::ofstream(path, std::ios::binary) << b.bytes();
  Config config;
  config.precision = Precision::f32;
  config.cache_dir = "";
  const auto compiled = CompiledModel::compile(Model::read(path.string()), config);
  fs::remove(path);
  const auto request = compiled->create_request();
  request->set_input(0, input);
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).shape(), wanted_shape);
  EXPECT_EQ(request->output(0).to_floats(), wanted);
}

const Values kNone(6, 0.f), kTwo = {0, -1, 0, 0, 2, 0}, kFive = {1, -1, 2, 0, -3, 4};

TEST(FoundRows, DecideWhichBranchRuns) {
  OnnxBuilder b = counting();
  b.node("Greater", {"n", "three"}, {"many"});
  add_if(b, "many", "Neg", "Identity", "f");
  b.output("y");
  expect_both(b, {6}, kNone, {6}, Values(6, 0.5f));
  expect_both(b, {6}, kFive, {6}, {-1.5f, 0.5f, -2.5f, -0.5f, 2.5f, -4.5f});
}

TEST(FoundRows, OfASuppressionDecideToo) {
  OnnxBuilder b;
  b.input("x", {1, 1, 4});
  b.initialiser(OnnxBuilder::floats("boxes", {1, 4, 4},
                                    {0, 0, 1, 1, 0, 0, 0.9f, 1,  //
                                     2, 2, 3, 3, 4, 4, 5, 5}));
  b.initialiser(OnnxBuilder::ints("most", {1}, {10}));
  b.initialiser(OnnxBuilder::floats("overlap", {1}, {0.5f}));
  b.initialiser(OnnxBuilder::floats("score", {1}, {0.3f}));
  for (const auto& [name, value] : {std::pair{"zero", 0}, {"one", 1}, {"two", 2}, {"three", 3}})
    b.initialiser(OnnxBuilder::ints(name, {}, {value}));
  b.node("NonMaxSuppression", {"boxes", "x", "most", "overlap", "score"}, {"rows"});
  b.node("Shape", {"rows"}, {"sizes"});
  b.node("Gather", {"sizes", "zero"}, {"n"});
  b.node("Greater", {"n", "two"}, {"many"});
  add_if(b, "many", "Neg", "Identity", "x");
  b.output("y");
  expect_both(b, {1, 1, 4}, {0.1f, 0.1f, 0, 0}, {1, 1, 4}, {0.1f, 0.1f, 0, 0});
  expect_both(b, {1, 1, 4}, {0.9f, 0.8f, 0.5f, 0}, {1, 1, 4}, {0.9f, 0.8f, 0.5f, 0});
  expect_both(b, {1, 1, 4}, {0.9f, 0.8f, 0.5f, 0.5f}, {1, 1, 4}, {-0.9f, -0.8f, -0.5f, -0.5f});
}

// A row of a suppression has three numbers whatever is found.
TEST(FoundRows, OtherSizesStayKnown) {
  for (const bool rows : {false, true}) {
    OnnxBuilder b = counting();
    b.node("Transpose", {"places"}, {"turned"});  // [found, 1]
    b.node("Shape", {"turned"}, {"turned_sizes"});
    b.node("Gather", {"turned_sizes", rows ? "zero" : "one"}, {"size"});
    b.node("Equal", {"size", "one"}, {"is_one"});
    add_if(b, "is_one", "Neg", "Identity", "f");
    b.output("y");
    EXPECT_EQ(has(b.read(), "If"), rows);
  }
}

// As torchvision's suppression by classes: nothing, or what was found.
TEST(FoundRows, BranchesMayDifferInSize) {
  OnnxBuilder b = counting();
  b.initialiser(OnnxBuilder::floats("nothing", {0}, {}));
  b.node("Gather", {"f", "places"}, {"found"});
  b.node("Squeeze", {"found", "first"}, {"list"});
  b.node("Greater", {"n", "three"}, {"many"});
  auto& node = b.node("If", {"many"}, {"z"});
  for (const auto& [name, of] : {std::pair{"then_branch", "list"}, {"else_branch", "nothing"}}) {
    auto& graph = graph_of(node, name);
    OnnxBuilder::fill(*graph.add_node(), "Identity", {of}, {std::string(name) + "_y"});
    graph.add_output()->set_name(std::string(name) + "_y");
  }
  b.node("Neg", {"z"}, {"y"});
  b.output("y");
  expect_both(b, {6}, kTwo, {0}, {});
  expect_both(b, {6}, kFive, {5}, {-1.5f, 0.5f, -2.5f, 2.5f, -4.5f});
}

TEST(FoundRows, AreBoundsOfSlices) {
  OnnxBuilder b = counting();
  b.initialiser(OnnxBuilder::ints("end", {1}, {100}));
  b.node("Slice", {"f", "as_list", "end", "first"}, {"y"});
  b.output("y");
  expect_both(b, {6}, Values(6, 1.f), {0}, {});
  expect_both(b, {6}, kTwo, {4}, {0.5f, 0.5f, 2.5f, 0.5f});
}

TEST(FoundRows, AreSizesAndCounts) {
  OnnxBuilder b = counting();
  b.node("TopK", {"f", "as_list"}, {"best", "which"});
  b.node("ConstantOfShape", {"as_list"}, {"zeros"});
  b.node("Add", {"best", "zeros"}, {"y"});
  b.output("y");
  expect_both(b, {6}, kTwo, {2}, {2.5f, 0.5f});
  expect_both(b, {6}, kFive, {5}, {4.5f, 2.5f, 1.5f, 0.5f, -0.5f});
}

// Rows are filled up to five, which is impossible with all six found.
TEST(FoundRows, MayMakeOtherSizesLarger) {
  OnnxBuilder b = counting();
  b.initialiser(OnnxBuilder::ints("five", {1}, {5}));
  b.node("Sub", {"five", "as_list"}, {"missing"});  // below 0 if all are found
  b.node("ConstantOfShape", {"missing"}, {"zeros"});
  b.node("Gather", {"f", "places"}, {"found"});
  b.node("Squeeze", {"found", "first"}, {"list"});
  set(b.node("Concat", {"list", "zeros"}, {"y"}), "axis", 0);
  b.output("y");
  expect_both(b, {6}, kTwo, {5}, {-0.5f, 2.5f, 0, 0, 0});
  expect_both(b, {6}, kFive, {5}, {1.5f, -0.5f, 2.5f, -2.5f, 4.5f});
}

TEST(FoundRows, LastOnesCountFromTheEnd) {
  OnnxBuilder b = counting();
  b.initialiser(OnnxBuilder::ints("last", {}, {-1}));
  set(b.node("Cast", {"places"}, {"numbers"}), "to", onnx::TensorProto::FLOAT);
  set(b.node("Gather", {"numbers", "last"}, {"y"}), "axis", 1);
  b.output("y");
  expect_both(b, {6}, kTwo, {1}, {4});
}

// The parts of a loop that its condition ends, and what is computed from them.
TEST(FoundRows, OfLoopsThatEndEarly) {
  OnnxBuilder b = counting();
  b.initialiser(OnnxBuilder::ints("ten", {}, {10}));
  auto& node = b.node("Loop", {"ten", "", "x"}, {"state", "parts"});
  auto& body = graph_of(node, "body");
  OnnxBuilder::describe(*body.add_input(), "i", {}, onnx::TensorProto::INT64);
  OnnxBuilder::describe(*body.add_input(), "go", {}, onnx::TensorProto::BOOL);
  OnnxBuilder::describe(*body.add_input(), "s", {6});
  OnnxBuilder::fill(*body.add_node(), "Less", {"i", "n"}, {"go_on"});
  OnnxBuilder::fill(*body.add_node(), "Neg", {"s"}, {"next"});
  OnnxBuilder::fill(*body.add_node(), "ReduceMax", {"next"}, {"part"});
  for (const char* name : {"go_on", "next", "part"}) body.add_output()->set_name(name);
  b.node("Neg", {"parts"}, {"y"});
  b.output("y");
  expect_both(b, {6}, kNone, {1, 1}, {0});
  expect_both(b, {6}, kTwo, {3, 1}, {-1, -2, -1});
}

// A state that grows: in its body no size of it is known.
TEST(FoundRows, SizesOfStatesThatGrow) {
  OnnxBuilder b = counting();
  b.initialiser(OnnxBuilder::ints("seven", {1}, {7}));
  b.initialiser(OnnxBuilder::floats("more", {1}, {1}));
  auto& node = b.node("Loop", {"three", "", "x"}, {"y"});
  auto& body = graph_of(node, "body");
  OnnxBuilder::describe(*body.add_input(), "i", {}, onnx::TensorProto::INT64);
  OnnxBuilder::describe(*body.add_input(), "go", {}, onnx::TensorProto::BOOL);
  OnnxBuilder::describe(*body.add_input(), "s", {-1});
  OnnxBuilder::fill(*body.add_node(), "Identity", {"go"}, {"go_on"});
  OnnxBuilder::fill(*body.add_node(), "Shape", {"s"}, {"size"});
  OnnxBuilder::fill(*body.add_node(), "Greater", {"size", "seven"}, {"large"});
  OnnxBuilder::fill(*body.add_node(), "Neg", {"s"}, {"negative"});
  OnnxBuilder::fill(*body.add_node(), "Where", {"large", "negative", "s"}, {"chosen"});
  set(OnnxBuilder::fill(*body.add_node(), "Concat", {"chosen", "more"}, {"next"}), "axis", 0);
  for (const char* name : {"go_on", "next"}) body.add_output()->set_name(name);
  b.output("y");
  expect_both(b, {6}, kTwo, {9}, {0, 1, 0, 0, -2, 0, -1, -1, 1});
}

TEST(FoundRows, ThatAReaderMustKnowAreRefusedByName) {
  OnnxBuilder b = counting();
  set(b.node("Concat", {"as_list", "as_list"}, {"square"}), "axis", 0);
  b.node("ConstantOfShape", {"square"}, {"zeros"});
  b.node("Trilu", {"zeros"}, {"y"});
  b.output("y");
  try {
    b.read();
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_NE(
        std::string(error.what())
            .find("node \"node_y\" (Trilu, opset 17): needs the size of dimension 0 of a value, "
                  "which depends on how many rows are found at run time"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace clinfer
