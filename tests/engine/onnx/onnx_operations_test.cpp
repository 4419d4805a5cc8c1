// Operations that are written out by steps of their own, against values computed by hand or by
// ONNX's reference implementation. tests/engine/onnx/backend.py runs ONNX's own cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <span>

#include "tests/engine/onnx/onnx_results.h"

namespace clinfer {
namespace {

std::vector<float> counted(size_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// A slice whose end is the iteration: no operation with a body can have such shapes.
TEST(OnnxOperations, LoopsWhoseShapesChangeAreWrittenOut) {
  OnnxBuilder b;
  b.input("x", {5});
  b.initialiser(OnnxBuilder::ints("trips", {}, {5}));
  b.initialiser(OnnxBuilder::ints("one", {1}, {1}));
  b.initialiser(OnnxBuilder::ints("zero", {1}, {0}));
  b.initialiser(OnnxBuilder::floats("start", {1}, {-2}));
  auto& loop = b.node("Loop", {"trips", "", "start"}, {"last", "all"});
  onnx::GraphProto& body = graph_of(loop, "body");
  for (const char* name : {"i", "go", "sum"}) body.add_input()->set_name(name);
  OnnxBuilder::fill(*body.add_node(), "Add", {"i", "one"}, {"end"});
  OnnxBuilder::fill(*body.add_node(), "Slice", {"x", "zero", "end"}, {"part"});
  OnnxBuilder::fill(*body.add_node(), "ReduceSum", {"part", "zero"}, {"more"});
  OnnxBuilder::fill(*body.add_node(), "Add", {"sum", "more"}, {"next"});
  OnnxBuilder::fill(*body.add_node(), "Identity", {"go"}, {"on"});
  for (const char* name : {"on", "next", "next"}) body.add_output()->set_name(name);
  b.output("last");
  b.output("all");
  const auto got = results(b, {floats({5}, {1, 2, 3, 4, 5})});
  expect_near(got[0], {-2 + 1 + 3 + 6 + 10 + 15});
  EXPECT_EQ(got[1].shape(), (Shape{5, 1}));
  expect_near(got[1], {-1, 2, 8, 18, 33});
}

// The first version of Scan has a batch in front.
TEST(OnnxOperations, ScanOfOpset8) {
  OnnxBuilder b(8);
  b.input("start", {2, 1});
  b.input("x", {2, 3, 1});
  auto& scan = b.node("Scan", {"", "start", "x"}, {"last", "all"});
  set(scan, "num_scan_inputs", 1);
  onnx::GraphProto& body = graph_of(scan, "body");
  for (const char* name : {"sum", "next"}) body.add_input()->set_name(name);
  OnnxBuilder::fill(*body.add_node(), "Add", {"sum", "next"}, {"out"});
  OnnxBuilder::fill(*body.add_node(), "Identity", {"out"}, {"part"});
  for (const char* name : {"out", "part"}) body.add_output()->set_name(name);
  b.output("last");
  b.output("all");
  const auto got = results(b, {floats({2, 1}, {0, 100}), floats({2, 3, 1}, counted(6, 1))});
  expect_near(got[0], {6, 115});
  EXPECT_EQ(got[1].shape(), (Shape{2, 3, 1}));
  expect_near(got[1], {1, 3, 6, 104, 109, 115});
}

TEST(OnnxOperations, RemaindersHaveTheSignOfTheDivisor) {
  OnnxBuilder b(13);
  b.input("x", {6});
  b.input("y", {6});
  set(b.node("Mod", {"x", "y"}, {"z"}), "fmod", 0);
  b.output("z");
  const float inf = std::numeric_limits<float>::infinity();
  const auto got =
      results(b, {floats({6}, {5, -5, 5, -5, -3, 3}), floats({6}, {3, 3, -3, -3, inf, inf})});
  EXPECT_EQ(got[0].to_floats(), (std::vector<float>{2, 1, -1, -2, inf, 3}));
}

// One step, weights of 0.1: sigmoid and tanh of sums that are easily written down.
TEST(OnnxOperations, LstmWithPeepholes) {
  OnnxBuilder b(14);
  b.input("x", {1, 2, 4});
  b.initialiser(OnnxBuilder::floats("w", {1, 12, 4}, std::vector<float>(48, 0.1f)));
  b.initialiser(OnnxBuilder::floats("r", {1, 12, 3}, std::vector<float>(36, 0.1f)));
  b.initialiser(OnnxBuilder::floats("p", {1, 9}, std::vector<float>(9, 0.1f)));
  set(b.node("LSTM", {"x", "w", "r", "", "", "", "", "p"}, {"", "h", "c"}), "hidden_size", 3);
  b.output("h");
  b.output("c");
  const auto got = results(b, {floats({1, 2, 4}, counted(8, 1))});
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  std::vector<float> h, c;
  for (const double sum : {1.0, 2.6}) {  // of a row of x, times 0.1
    const double cell = sigmoid(sum) * std::tanh(sum);
    for (int i = 0; i < 3; ++i) {
      c.push_back(static_cast<float>(cell));
      h.push_back(static_cast<float>(sigmoid(sum + 0.1 * cell) * std::tanh(cell)));
    }
  }
  expect_near(got[0], h);
  expect_near(got[1], c);
}

TEST(OnnxOperations, BlocksOfThreeDimensionsToAnImage) {
  OnnxBuilder b(18);
  b.input("x", {1, 4, 3});  // blocks of 1x1x2 of two channels, three of them in a row
  b.initialiser(OnnxBuilder::ints("size", {3}, {1, 1, 4}));
  b.initialiser(OnnxBuilder::ints("block", {3}, {1, 1, 2}));
  b.node("Col2Im", {"x", "size", "block"}, {"y"});
  b.output("y");
  const auto got = results(b, {floats({1, 4, 3}, counted(12, 1))});
  EXPECT_EQ(got[0].shape(), (Shape{1, 2, 1, 1, 4}));
  expect_near(got[0], {1, 2 + 4, 3 + 5, 6, 7, 8 + 10, 9 + 11, 12});
}

TEST(OnnxOperations, GridsOverVolumes) {
  for (const char* mode : {"nearest", "bilinear"}) {
    OnnxBuilder b(20);
    b.input("x", {1, 1, 2, 2, 2});
    b.input("grid", {1, 1, 1, 3, 3});
    auto& sample = b.node("GridSample", {"x", "grid"}, {"y"});
    set(sample, "mode", std::string(mode));
    set(sample, "align_corners", 1);
    b.output("y");
    // A corner (x, y, z = 1, -1, 1), the middle, and a place far outside.
    const auto got = results(b, {floats({1, 1, 2, 2, 2}, counted(8)),
                                 floats({1, 1, 1, 3, 3}, {1, -1, 1, 0, 0, 0, 9, 9, 9})});
    EXPECT_EQ(got[0].shape(), (Shape{1, 1, 1, 1, 3}));
    const bool nearest = std::string(mode) == "nearest";  // halves to the even index, 0
    expect_near(got[0], {5, nearest ? 0.f : 3.5f, 0});
  }
}

// Each pixel counts by its own weight, and the largest of these products is taken.
TEST(OnnxOperations, RegionsOfTheLargestPixel) {
  OnnxBuilder b(16);
  b.input("x", {1, 1, 2, 2});
  b.input("rois", {1, 4});
  b.initialiser(OnnxBuilder::ints("image", {1}, {0}));
  auto& align = b.node("RoiAlign", {"x", "rois", "image"}, {"y"});
  set(align, "mode", std::string("max"));
  set(align, "coordinate_transformation_mode", std::string("output_half_pixel"));
  set(align, "output_height", 1);
  set(align, "output_width", 1);
  set(align, "sampling_ratio", 1);
  b.output("y");
  // The one sample is at 0.5, 0.5: a quarter of each pixel.
  const auto got = results(b, {floats({1, 1, 2, 2}, {1, 2, 3, 4}), floats({1, 4}, {0, 0, 1, 1})});
  expect_near(got[0], {1});
}

// Indices below 0 count from the end, without an operation more.
TEST(OnnxOperations, IndicesMayCountFromTheEnd) {
  for (const bool found : {true, false}) {
    OnnxBuilder b;
    b.input("x", {1, 4});
    b.input("given", {1, 2}, onnx::TensorProto::INT64);
    b.initialiser(OnnxBuilder::ints("k", {1}, {2}));
    b.node("TopK", {"x", "k"}, {"best", "places"});
    b.node("GatherElements", {"x", found ? "places" : "given"}, {"y"});
    set(*b.graph().mutable_node(1), "axis", 1);
    b.output("y");
    const OnnxModel model = b.read();
    const auto& nodes = model.graph->nodes();
    EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(),
                            [](const auto& node) { return node->is("Less"); }),
              0);
    const Tensor given = Tensor::of(ElementType::i64, {1, 2}, std::vector<int64_t>{-1, 0});
    const auto got = evaluate_graph(*model.graph, std::vector{floats({1, 4}, {3, 9, 1, 5}), given});
    expect_near(got[0], found ? std::vector<float>{9, 5} : std::vector<float>{5, 3});
  }
}

// PyTorch's floor division of found indices corrects those below 0: there are none.
TEST(OnnxOperations, FoundIndicesAreDividedWithoutCorrection) {
  OnnxBuilder b;
  b.input("x", {1, 6});
  b.initialiser(OnnxBuilder::ints("k", {1}, {2}));
  for (const auto& [name, value] : {std::pair{"zero", 0}, {"one", 1}, {"two", 2}})
    b.initialiser(OnnxBuilder::ints(name, {}, {value}));
  auto no = OnnxBuilder::of("no", {}, onnx::TensorProto::BOOL);
  no.add_int32_data(0);
  b.initialiser(no);
  b.node("TopK", {"x", "k"}, {"best", "places"});
  b.node("Div", {"places", "two"}, {"quotient"});
  b.node("Sub", {"quotient", "one"}, {"lower"});
  b.node("Less", {"places", "zero"}, {"below"});
  b.node("Xor", {"below", "no"}, {"signs_differ"});
  b.node("Mod", {"places", "two"}, {"rest"});
  b.node("Equal", {"rest", "zero"}, {"even"});
  b.node("Not", {"even"}, {"odd"});
  b.node("And", {"signs_differ", "odd"}, {"corrected"});
  b.node("Where", {"corrected", "lower", "quotient"}, {"rows"});
  set(b.node("GatherElements", {"x", "rows"}, {"y"}), "axis", 1);
  b.output("y");
  const OnnxModel model = b.read();
  for (const auto& node : model.graph->nodes())
    for (const char* type : {"Less", "Select", "Subtract", "Add"}) EXPECT_FALSE(node->is(type));
  const auto got = evaluate_graph(*model.graph, std::vector{floats({1, 6}, {3, 9, 1, 5, 0, 8})});
  expect_near(got[0], {3, 1});  // the places 1 and 5, divided by 2
}

// As Ultralytics' exporter fills up what a suppression leaves: rows of zeros up to a fixed number.
TEST(OnnxOperations, PadsThatDependOnWhatIsFound) {
  OnnxBuilder b;
  b.input("x", {4});
  b.initialiser(OnnxBuilder::ints("four", {1}, {4}));
  b.initialiser(OnnxBuilder::ints("none", {3}, {0, 0, 0}));
  b.initialiser(OnnxBuilder::ints("one", {1}, {1}));
  b.node("NonZero", {"x"}, {"places"});  // [1, found]
  b.node("Shape", {"places"}, {"size"});
  set(b.node("Gather", {"size", "one"}, {"found"}), "axis", 0);
  b.node("Sub", {"four", "found"}, {"missing"});
  set(b.node("Concat", {"none", "missing"}, {"pads"}), "axis", 0);
  b.node("Pad", {"places", "pads"}, {"y"});
  b.output("y");
  for (const auto& [x, wanted] :
       {std::pair{std::vector<float>{0, 1, 0, 2}, std::vector<int64_t>{1, 3, 0, 0}},
        {{0, 0, 0, 0}, {0, 0, 0, 0}},
        {{1, 1, 1, 1}, {0, 1, 2, 3}}}) {
    const auto got = results(b, {floats({4}, x)});
    EXPECT_EQ(got[0].shape(), (Shape{1, 4}));
    EXPECT_EQ(got[0].to_ints(), wanted);
  }
}

// TensorRT's plug-in node, which exporters of detectors end with.
TEST(OnnxOperations, EfficientNms) {
  for (const std::string domain : {"", "TRT"}) {
    OnnxBuilder b;
    if (!domain.empty()) b.import(domain, 1);
    b.input("boxes", {1, 3, 4});
    b.input("scores", {1, 3, 2});
    auto& nms = b.node("EfficientNMS_TRT", {"boxes", "scores"}, {"num", "b", "s", "c"}, domain);
    set(nms, "max_output_boxes", 3);
    set(nms, "box_coding", 0);
    for (const char* name : {"num", "b", "s", "c"}) b.output(name);
    const auto got = results(b, {floats({1, 3, 4}, {0, 0, 10, 10, 1, 1, 10, 10, 20, 20, 30, 30}),
                                 floats({1, 3, 2}, {0.9f, 0, 0.7f, 0.1f, 0, 0.8f})});
    EXPECT_EQ(got[0].to_ints(), std::vector<int64_t>{2});
    ASSERT_GE(got[1].shape().at(1), 2);
    const auto boxes = got[1].to_floats(), scores = got[2].to_floats(),
               classes = got[3].to_floats();
    EXPECT_EQ(std::vector<float>(boxes.begin(), boxes.begin() + 8),
              (std::vector<float>{0, 0, 10, 10, 20, 20, 30, 30}));
    EXPECT_EQ(std::vector<float>(scores.begin(), scores.begin() + 2),
              (std::vector<float>{0.9f, 0.8f}));
    EXPECT_EQ(std::vector<float>(classes.begin(), classes.begin() + 2), (std::vector<float>{0, 1}));
  }
}

// With ceil_mode the last window may reach past the pads: what lies there does not count, though the
// pads may. Windows of four, pads included: -1..2, 2..5, 5..6 of places 0..5 and a pad at each end.
TEST(OnnxOperations, AveragesDoNotCountWhatLiesPastThePads) {
  for (const auto& [pads_count, wanted] :
       {std::pair{0, std::vector<float>{2, 4.5f, 6}}, {1, {1.5f, 4.5f, 3}}}) {
    OnnxBuilder b;
    b.input("x", {1, 1, 6});
    auto& node = b.node("AveragePool", {"x"}, {"y"});
    set(node, "kernel_shape", std::vector<int64_t>{4});
    set(node, "strides", std::vector<int64_t>{3});
    set(node, "pads", std::vector<int64_t>{1, 1});
    set(node, "ceil_mode", 1);
    set(node, "count_include_pad", pads_count);
    b.output("y");
    expect_near(results(b, {floats({1, 1, 6}, {1, 2, 3, 4, 5, 6})})[0], wanted);
  }
}

// Values of any rank may reach any operation: found by fuzzing.
// Where number `i` of `out` lies among `n`, as ONNX states it.
double place_of(const std::string& coordinates, double i, double n, double out, double scale) {
  if (coordinates == "asymmetric") return i / scale;
  if (coordinates == "align_corners") return out > 1 ? i * (n - 1) / (out - 1) : 0;
  if (coordinates == "pytorch_half_pixel" && out <= 1) return 0;
  return (i + 0.5) / scale - 0.5;
}

float resized(std::span<const float> row, const std::string& mode, const std::string& nearest,
              double x, double scale) {
  const auto n = static_cast<double>(row.size());
  const auto at = [&](double k) { return row[static_cast<size_t>(std::clamp(k, 0., n - 1))]; };
  if (mode == "nearest")
    return at(nearest == "floor"                ? std::floor(x)
              : nearest == "ceil"               ? std::ceil(x)
              : nearest == "round_prefer_floor" ? std::ceil(x - 0.5)
                                                : std::floor(x + 0.5));
  if (scale >= 1) {  // without antialiasing
    const double low = std::floor(x), share = x - low;
    return static_cast<float>((1 - share) * at(low) + share * at(low + 1));
  }
  double sum = 0, weights = 0;
  for (double k = -n; k < 2 * n; ++k) {  // the edge goes on outside
    const double weight = std::max(0., 1 - std::fabs(k - x) * scale);
    sum += weight * at(k);
    weights += weight;
  }
  return static_cast<float>(sum / weights);
}

TEST(OnnxOperations, ResizeInEachWay) {
  const std::vector<float> values{3, -1, 4, 1, -5, 9, 2, 6, -5, 3, 5, 8};
  for (const std::string mode : {"nearest", "linear"})
    for (const std::string coordinates :
         {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"})
      for (const std::string nearest : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})
        for (const float scale : {2.f, 1.5f, 0.5f}) {
          if (mode == "linear" && nearest != "floor") continue;
          SCOPED_TRACE(mode + " " + coordinates + " " + nearest + " " + std::to_string(scale));
          OnnxBuilder b(18);
          b.input("x", {1, 1, 2, 6});
          b.initialiser(OnnxBuilder::floats("scales", {4}, {1, 1, 1, scale}));
          auto& resize = b.node("Resize", {"x", "", "scales"}, {"y"});
          set(resize, "mode", mode);
          set(resize, "coordinate_transformation_mode", coordinates);
          set(resize, "nearest_mode", nearest);
          if (mode == "linear" && scale < 1) set(resize, "antialias", 1);
          b.output("y");
          const double out = std::floor(6 * scale);
          std::vector<float> wanted;
          for (size_t row = 0; row < 2; ++row)
            for (double i = 0; i < out; ++i)
              wanted.push_back(resized(std::span(values).subspan(6 * row, 6), mode, nearest,
                                       place_of(coordinates, i, 6, out, scale), scale));
          expect_near(results(b, {floats({1, 1, 2, 6}, values)})[0], wanted);
        }
}

// The window is cut from the picture, and what lies outside of it gets the extrapolation value.
TEST(OnnxOperations, WindowsOfAnySize) {
  const std::map<std::string, std::array<double, 3>> types{
      {"HannWindow", {0.5, 0.5, 0}},
      {"HammingWindow", {25.0 / 46, 1 - 25.0 / 46, 0}},
      {"BlackmanWindow", {0.42, 0.5, 0.08}}};
  for (const auto& [type, a] : types)
    for (const int64_t periodic : {0, 1})
      for (const int64_t size : {0, 1, 2, 5, 6}) {
        OnnxBuilder b(17);
        b.initialiser(OnnxBuilder::ints("size", {}, {size}));
        set(b.node(type, {"size"}, {"y"}), "periodic", periodic);
        b.output("y");
        std::vector<float> want;
        for (int64_t i = 0; i < size; ++i) {
          const double turn = 2 * std::numbers::pi * static_cast<double>(i) /
                              static_cast<double>(periodic ? size : size - 1);
          want.push_back(
              static_cast<float>(a[0] - a[1] * std::cos(turn) + a[2] * std::cos(2 * turn)));
        }
        if (size == 1 && !periodic) want = {1};  // as in SciPy; the formula has 0 / 0
        expect_near(results(b, {})[0], want);
      }
}

TEST(OnnxOperations, ResizeCropsAWindow) {
  OnnxBuilder b(13);
  b.input("x", {1, 1, 1, 5});
  b.initialiser(OnnxBuilder::floats("roi", {8}, {0, 0, 0, 0.5f, 1, 1, 1, 1.25f}));
  b.initialiser(OnnxBuilder::ints("sizes", {4}, {1, 1, 1, 4}));
  auto& resize = b.node("Resize", {"x", "roi", "", "sizes"}, {"y"});
  set(resize, "mode", std::string("linear"));
  set(resize, "coordinate_transformation_mode", std::string("tf_crop_and_resize"));
  auto* outside = resize.add_attribute();
  outside->set_name("extrapolation_value");
  outside->set_type(onnx::AttributeProto::FLOAT);
  outside->set_f(-7);
  b.output("y");
  // From 0.5 * 4 to 1.25 * 4: 2, 3, 4 and 5, where the last pixel is number 4.
  expect_near(results(b, {floats({1, 1, 1, 5}, {1, 2, 4, 8, 16})})[0], {4, 8, 16, -7});
}

// Of a window that ends nowhere no position is a number.
TEST(OnnxOperations, ResizeRefusesWindowsAndScalesThatAreNoNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float number : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()})
    for (const std::string mode : {"nearest", "linear", "cubic"}) {
      OnnxBuilder window(13);
      window.input("x", {1, 1, 1, 5});
      window.initialiser(OnnxBuilder::floats("roi", {8}, {0, 0, 0, 0.5f, 1, 1, 1, number}));
      window.initialiser(OnnxBuilder::ints("sizes", {4}, {1, 1, 1, 4}));
      auto& crop = window.node("Resize", {"x", "roi", "", "sizes"}, {"y"});
      set(crop, "mode", mode);
      set(crop, "coordinate_transformation_mode", std::string("tf_crop_and_resize"));
      window.output("y");
      EXPECT_NE(refusal(window).find("the region has infinite numbers"), std::string::npos)
          << refusal(window);
      OnnxBuilder scaled(13);
      scaled.input("x", {1, 1, 1, 5});
      scaled.initialiser(OnnxBuilder::floats("scales", {4}, {1, 1, 1, number}));
      set(scaled.node("Resize", {"x", "", "scales"}, {"y"}), "mode", mode);
      scaled.output("y");
      EXPECT_NE(refusal(scaled).find("a scale is"), std::string::npos) << refusal(scaled);
    }
}

TEST(OnnxOperations, UpsampleIsAnOldResize) {
  OnnxBuilder b(9);
  b.input("x", {1, 1, 1, 2});
  b.initialiser(OnnxBuilder::floats("scales", {4}, {1, 1, 2, 2}));
  b.node("Upsample", {"x", "scales"}, {"y"});
  b.output("y");
  expect_near(results(b, {floats({1, 1, 1, 2}, {1, 2})})[0], {1, 1, 2, 2, 1, 1, 2, 2});
}

TEST(OnnxOperations, TooFewDimensionsAreRefused) {
  const auto with_input = [](const std::string& type, const Shape& shape, size_t inputs, int opset,
                             const std::string& domain = "") {
    OnnxBuilder b(opset);
    if (!domain.empty()) b.import(domain, 1);
    std::vector<std::string> names;
    for (size_t i = 0; i < inputs; ++i) {
      names.push_back("x" + std::to_string(i));
      b.input(names.back(), shape);
    }
    auto& node = b.node(type, names, {"y"}, domain);
    for (const char* name : {"q_num_heads", "kv_num_heads", "num_heads", "num_groups"})
      set(node, name, 1);
    b.output("y");
    return refusal(b);
  };
  for (const Shape& shape : {Shape{}, Shape{4}, Shape{4, 4}})
    for (const auto& [type, inputs, opset] : {std::tuple{"Attention", 3u, 23},
                                              {"RotaryEmbedding", 3u, 23},
                                              {"ConvTranspose", 2u, 17},
                                              {"Conv", 2u, 17},
                                              {"InstanceNormalization", 3u, 17},
                                              {"GroupNormalization", 3u, 21},
                                              {"LSTM", 3u, 14},
                                              {"GridSample", 2u, 20},
                                              {"RoiAlign", 3u, 16},
                                              {"STFT", 2u, 17}}) {
      const std::string why = with_input(type, shape, inputs, opset);
      EXPECT_NE(why, "nothing was refused") << type << " of rank " << shape.size();
    }
  for (const char* type : {"MultiHeadAttention", "Attention", "SkipLayerNormalization"})
    EXPECT_NE(with_input(type, {}, 3, 17, "com.microsoft"), "nothing was refused") << type;
  // Lists for a dimension that the value does not have.
  OnnxBuilder convolution(10);
  for (const auto& [name, shape] :
       {std::pair{"x", Shape{1, 17, 3, 3}}, {"w", Shape{}}, {"zero", Shape{}}, {"zeros", Shape{2}}})
    convolution.input(name, shape, onnx::TensorProto::UINT8);
  convolution.node("ConvInteger", {"x", "w", "zero", "zeros"}, {"y"});
  convolution.output("y");
  EXPECT_NE(refusal(convolution).find("is for dimension 0 of a value of 0 dimensions"),
            std::string::npos)
      << refusal(convolution);
  for (const Shape& shape : {Shape{}, Shape{4}}) {
    OnnxBuilder normalization(15);
    normalization.input("x", shape);
    for (const char* name : {"scale", "bias", "mean", "variance"})
      normalization.initialiser(OnnxBuilder::floats(name, {4}, {1, 1, 1, 1}));
    normalization.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"y"});
    normalization.output("y");
    EXPECT_NE(refusal(normalization), "nothing was refused") << shape.size();
    OnnxBuilder slopes(16);
    slopes.input("x", shape);
    slopes.initialiser(OnnxBuilder::floats("slope", {3}, {1, 2, 3}));
    slopes.node("PRelu", {"x", "slope"}, {"y"});
    slopes.output("y");
    EXPECT_NE(refusal(slopes), "nothing was refused") << shape.size();
  }
}

}  // namespace
}  // namespace clinfer
