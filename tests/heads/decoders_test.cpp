// Heads: known tensors give known boxes, hostile ones give nothing worse than no boxes, and the
// choice falls on the right head.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "engine/heads/base/decoder.h"

namespace clinfer {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

OutputFacts output(std::string name, Shape shape, std::string op = "Concat",
                   std::map<std::string, std::string> attributes = {}) {
  return {std::move(name),      {}, ElementType::f32, std::move(shape), std::move(op),
          std::move(attributes)};
}

ModelFacts facts_of(int width, int height, std::vector<OutputFacts> outputs) {
  ModelFacts facts;
  facts.width = width;
  facts.height = height;
  facts.outputs = std::move(outputs);
  return facts;
}

Tensor tensor(Shape shape, const std::vector<float>& values) {
  return Tensor::of<float>(ElementType::f32, std::move(shape), values);
}

Tensor filled(Shape shape, float value) {
  return tensor(shape, std::vector<float>(static_cast<size_t>(count(shape)), value));
}

void expect_same(const Results& a, const Results& b) {
  const auto numbers = [](const Results& results) {
    std::vector<float> all;
    for (const Detection& d : results.detections)
      all.insert(all.end(), {d.x_min, d.y_min, d.x_max, d.y_max, d.confidence,
                             static_cast<float>(d.label_id)});
    for (const Classification& c : results.classifications)
      all.insert(all.end(), {static_cast<float>(c.label_id), c.confidence});
    return all;
  };
  EXPECT_EQ(numbers(a), numbers(b));
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const Tensor &x = a.tensors[i].value, &y = b.tensors[i].value;
    ASSERT_EQ(x.type(), y.type());
    ASSERT_EQ(x.bytes(), y.bytes());
    EXPECT_EQ(std::memcmp(x.raw(), y.raw(), x.bytes()), 0);
  }
}

// Sees to it that halves give what floats of the same values give.
Results decode(const ModelFacts& facts, const std::vector<Tensor>& outputs,
               const std::string& head = "auto", DecodeSettings settings = {}) {
  const HeadChoice choice = choose_head(facts, head);
  std::vector<Tensor> halves, widened;
  for (const Tensor& output : outputs) {
    halves.push_back(is_float(output.type()) ? output.convert(ElementType::f16) : output);
    widened.push_back(is_float(output.type()) ? halves.back().convert(ElementType::f32) : output);
  }
  Results of_halves, of_widened, results;
  choice.decode(halves, settings, of_halves);
  choice.decode(widened, settings, of_widened);
  expect_same(of_halves, of_widened);
  choice.decode(outputs, settings, results);
  return results;
}

void expect_box(const Detection& d, float x_min, float y_min, float x_max, float y_max, float score,
                int label) {
  EXPECT_NEAR(d.x_min, x_min, 1e-3);
  EXPECT_NEAR(d.y_min, y_min, 1e-3);
  EXPECT_NEAR(d.x_max, x_max, 1e-3);
  EXPECT_NEAR(d.y_max, y_max, 1e-3);
  EXPECT_NEAR(d.confidence, score, 1e-5);
  EXPECT_EQ(d.label_id, label);
}

TEST(DetectionOutput, ReadsRowsUntilTheNegativeImageNumber) {
  const ModelFacts facts = facts_of(300, 200, {output("out", {1, 1, 5, 7}, "DetectionOutput")});
  const Tensor rows =
      tensor({1, 1, 5, 7}, {0,  1, 0.6f,  0.1f, 0.2f, 0.3f, 0.4f,  //
                            0,  2, 0.9f,  0.5f, 0.5f, 1.2f, 0.9f,  //
                            0,  1, 0.2f,  0,    0,    1,    1,     // below the threshold
                            -1, 0, 0,     0,    0,    0,    0,     // the end
                            0,  1, 0.99f, 0,    0,    1,    1});
  const Results results = decode(facts, {rows});
  ASSERT_EQ(results.detections.size(), 2u);
  expect_box(results.detections[0], 150, 100, 360, 180, 0.9f, 2);
  expect_box(results.detections[1], 30, 40, 90, 80, 0.6f, 1);
}

TEST(DetectionOutput, DoesNotSuppressWhatTheGraphKept) {
  const ModelFacts facts = facts_of(100, 100, {output("out", {1, 1, 2, 7}, "DetectionOutput")});
  const Tensor rows =
      tensor({1, 1, 2, 7}, {0, 1, 0.9f, 0, 0, 0.5f, 0.5f, 0, 1, 0.8f, 0, 0, 0.5f, 0.49f});
  EXPECT_EQ(decode(facts, {rows}).detections.size(), 2u);
}

TEST(DetectionOutput, SurvivesNonsense) {
  const ModelFacts facts = facts_of(100, 100, {output("out", {1, 1, 4, 7}, "DetectionOutput")});
  const Tensor rows = tensor({1, 1, 4, 7}, {0, kNan,  0.9f,      0,    0, 1,         1,  //
                                            0, 1e30f, 0.9f,      0,    0, 1,         1,  //
                                            0, 1,     kInfinity, 0,    0, 1,         1,  //
                                            0, 1,     0.9f,      kNan, 0, kInfinity, 1});
  EXPECT_TRUE(decode(facts, {rows}).detections.empty());
}

TEST(BoxesScores, SoftmaxedScoresHaveABackground) {
  const ModelFacts facts =
      facts_of(320, 240, {output("scores", {1, 3, 2}), output("boxes", {1, 3, 4})});
  const Results results = decode(
      facts, {tensor({1, 3, 2}, {0.1f, 0.9f, 0.3f, 0.7f, 0.95f, 0.05f}),
              tensor({1, 3, 4}, {0.1f, 0.1f, 0.2f, 0.2f, 0.5f, 0.5f, 0.75f, 1.0f, 0, 0, 1, 1})});
  ASSERT_EQ(results.detections.size(), 2u);
  expect_box(results.detections[0], 32, 24, 64, 48, 0.9f, 1);
  expect_box(results.detections[1], 160, 120, 240, 240, 0.7f, 1);
}

TEST(BoxesScores, SigmoidScoresHaveNoneAndPixelsStayPixels) {
  const ModelFacts facts =
      facts_of(320, 240, {output("boxes", {1, 2, 4}), output("scores", {1, 2, 3})});
  const Results results = decode(facts, {tensor({1, 2, 4}, {10, 20, 110, 120, 11, 21, 111, 121}),
                                         tensor({1, 2, 3}, {0.9f, 0.1f, 0.8f, 0, 0, 0.85f})});
  // One class a row, the best; the second box is of another class, so it is another object.
  ASSERT_EQ(results.detections.size(), 2u);
  expect_box(results.detections[0], 10, 20, 110, 120, 0.9f, 0);
  expect_box(results.detections[1], 11, 21, 111, 121, 0.85f, 2);
}

TEST(BoxesScores, CentresAreToldFromCornersAndLogitsAreSquashed) {
  const ModelFacts facts =
      facts_of(100, 100, {output("boxes", {1, 4, 4}), output("logits", {1, 4, 1})});
  const Results results =
      decode(facts, {tensor({1, 4, 4}, {0.5f, 0.5f, 0.2f, 0.4f, 0.9f, 0.9f, 0.1f, 0.1f, 0.8f, 0.2f,
                                        0.1f, 0.1f, 0.7f, 0.7f, 0.1f, 0.1f}),
                     tensor({1, 4, 1}, {2.0f, -5, -5, -5})});
  ASSERT_EQ(results.detections.size(), 1u);
  expect_box(results.detections[0], 40, 30, 60, 70, 1 / (1 + std::exp(-2.0f)), 0);
}

TEST(Yolox, DecodesCells) {
  // 64x32: 8x4 + 4x2 + 2x1 = 42 cells of 5 + 2 numbers.
  ModelFacts facts = facts_of(64, 32, {output("out", {1, 42, 7})});
  facts.labels = {"a", "b"};
  std::vector<float> values(42 * 7, 0.0f);
  const auto set = [&](size_t cell, std::vector<float> row) {
    std::copy(row.begin(), row.end(), values.begin() + static_cast<long>(cell * 7));
  };
  set(8 * 2 + 3, {0.5f, 0.25f, std::log(2.0f), 0, 0.9f, 0.1f, 0.8f});  // stride 8, column 3, row 2
  set(32 + 8 + 1, {0, 0, 0, 0, 0.8f, 1.0f, 0.2f});                     // stride 32, column 1
  const Results results = decode(facts, {tensor({1, 42, 7}, values)});
  ASSERT_EQ(results.detections.size(), 2u);
  expect_box(results.detections[0], 16, -16, 48, 16, 0.8f, 0);
  expect_box(results.detections[1], 20, 14, 36, 22, 0.72f, 1);
}

TEST(Yolox, LeavesDecodedRowsAlone) {
  ModelFacts facts = facts_of(64, 32, {output("out", {1, 42, 7})});
  facts.labels = {"a", "b"};
  std::vector<float> values(42 * 7, 0.0f);
  const float row[] = {40, 16, 20, 8, 0.9f, 0.9f, 0.1f};
  std::copy(row, row + 7, values.begin() + 70);
  const Results results = decode(facts, {tensor({1, 42, 7}, values)});
  ASSERT_EQ(results.detections.size(), 1u);
  expect_box(results.detections[0], 30, 12, 50, 20, 0.81f, 0);
}

TEST(Yolov5, DecodesRowsOfThreeAnchors) {
  const ModelFacts facts = facts_of(64, 32, {output("out", {1, 126, 7})});
  std::vector<float> values(126 * 7, 0.0f);
  const float row[] = {40, 16, 20, 8, 0.9f, 0.1f, 0.9f};
  std::copy(row, row + 7, values.begin() + 70);
  const Results results = decode(facts, {tensor({1, 126, 7}, values)});
  ASSERT_EQ(results.detections.size(), 1u);
  expect_box(results.detections[0], 30, 12, 50, 20, 0.81f, 1);
}

TEST(Yolov8, DecodesClassMajorAndTransposed) {
  ModelFacts facts = facts_of(64, 32, {output("out", {1, 6, 42})});
  std::vector<float> major(6 * 42, 0.0f), rows(42 * 6, 0.0f);
  const float row[] = {40, 16, 20, 8, 0.3f, 0.7f};
  for (size_t k = 0; k < 6; ++k) {
    major[k * 42 + 10] = row[k];
    rows[10 * 6 + k] = row[k];
  }
  const Results results = decode(facts, {tensor({1, 6, 42}, major)});
  ASSERT_EQ(results.detections.size(), 1u);
  expect_box(results.detections[0], 30, 12, 50, 20, 0.7f, 1);

  facts.outputs = {output("out", {1, 42, 6})};
  const Results transposed = decode(facts, {tensor({1, 42, 6}, rows)}, "yolov8");
  ASSERT_EQ(transposed.detections.size(), 1u);
  expect_box(transposed.detections[0], 30, 12, 50, 20, 0.7f, 1);
}

TEST(Yolov8, IgnoresMaskCoefficients) {
  const ModelFacts facts =
      facts_of(64, 32, {output("out", {1, 38, 42}), output("protos", {1, 32, 8, 16})});
  std::vector<float> values(38 * 42, 5.0f);  // coefficients larger than any score
  for (size_t k = 0; k < 6; ++k)
    for (size_t i = 0; i < 42; ++i) values[k * 42 + i] = 0;
  const float row[] = {40, 16, 20, 8, 0.7f, 0.3f};
  for (size_t k = 0; k < 6; ++k) values[k * 42 + 10] = row[k];
  const Results results = decode(facts, {tensor({1, 38, 42}, values), filled({1, 32, 8, 16}, 0)});
  ASSERT_EQ(results.detections.size(), 1u);
  expect_box(results.detections[0], 30, 12, 50, 20, 0.7f, 0);
}

TEST(Yolov3, RegionYoloUsesItsAttributes) {
  const ModelFacts facts = facts_of(64, 64,
                                    {output("region", {1, 21, 2, 2}, "RegionYolo",
                                            {{"anchors", "10,13,16,30,33,23"},
                                             {"mask", "0,1,2"},
                                             {"classes", "2"},
                                             {"coords", "4"},
                                             {"num", "3"},
                                             {"do_softmax", "false"}})});
  std::vector<float> values(84, 0.0f);
  const auto set = [&](size_t anchor, size_t k, size_t cell, float v) {
    values[(anchor * 7 + k) * 4 + cell] = v;
  };
  // Anchor 1 (16x30) at row 1, column 0.
  set(1, 0, 2, 0.5f), set(1, 1, 2, 0.5f), set(1, 2, 2, std::log(2.0f)), set(1, 3, 2, 0);
  set(1, 4, 2, 0.9f), set(1, 5, 2, 0.1f), set(1, 6, 2, 1.0f);
  const Results results = decode(facts, {tensor({1, 21, 2, 2}, values)});
  ASSERT_EQ(results.detections.size(), 1u);
  expect_box(results.detections[0], 16 - 16, 48 - 15, 16 + 16, 48 + 15, 0.9f, 1);
}

TEST(Yolov3, RawMapsAreAmbiguousAndCanBeNamed) {
  ModelFacts facts = facts_of(
      64, 64, {output("a", {1, 21, 2, 2}), output("b", {1, 21, 4, 4}), output("c", {1, 21, 8, 8})});
  // Darknet's v3 has its coarsest map first, so that this order speaks for it.
  EXPECT_EQ(choose_head(facts, "auto").name, "yolov3");
  std::swap(facts.outputs[0], facts.outputs[2]);
  const HeadChoice guess = choose_head(facts, "auto");
  EXPECT_EQ(guess.name, "yolov5");
  EXPECT_TRUE(guess.attach_tensors);
  ASSERT_FALSE(guess.warnings.empty());
  EXPECT_NE(guess.warnings[0].find("yolov3, yolov4"), std::string::npos) << guess.warnings[0];
  std::swap(facts.outputs[0], facts.outputs[2]);
  std::vector<float> values(84, -20.0f);
  // Anchor 0 of the coarsest map is 116x90 in v3; logits 0 mean the middle of the cell and the
  // anchor's own size.
  for (size_t k : {0u, 1u, 2u, 3u}) values[k * 4] = 0;
  values[4 * 4] = 20, values[6 * 4] = 20;
  const std::vector<Tensor> outputs = {tensor({1, 21, 2, 2}, values), filled({1, 21, 4, 4}, -20),
                                       filled({1, 21, 8, 8}, -20)};
  const Results results = decode(facts, outputs, "yolov3");
  ASSERT_EQ(results.detections.size(), 1u);
  expect_box(results.detections[0], 16 - 58, 16 - 45, 16 + 58, 16 + 45, 1, 1);
  facts.model_info["model_type"] = "yolov4";
  EXPECT_EQ(choose_head(facts, "auto").name, "yolov4");
}

TEST(EndToEnd, ReadsCorners) {
  const ModelFacts facts = facts_of(640, 640, {output("out", {1, 300, 6})});
  std::vector<float> values(1800, 0.0f);
  const float rows[] = {10, 20, 110, 220, 0.9f, 7, 12, 22, 112, 222, 0.8f, 7};
  std::copy(rows, rows + 12, values.begin());
  EXPECT_EQ(choose_head(facts, "auto").name, "yolov10");
  const Results results = decode(facts, {tensor({1, 300, 6}, values)});
  ASSERT_EQ(results.detections.size(), 2u);  // the network suppressed already
  expect_box(results.detections[0], 10, 20, 110, 220, 0.9f, 7);
}

TEST(Nanodet, DecodesDistributions) {
  // 64x64, strides 16 and 32: 16 and 4 cells; 3 classes, 8 bins a side.
  const ModelFacts facts = facts_of(64, 64,
                                    {output("c0", {1, 16, 3}), output("c1", {1, 4, 3}),
                                     output("d0", {1, 16, 32}), output("d1", {1, 4, 32})});
  std::vector<float> scores(48, 0.0f), distances(512, 0.0f);
  scores[5 * 3 + 2] = 0.8f;  // column 1, row 1: reference point (24, 24)
  for (size_t side = 0; side < 4; ++side)
    distances[5 * 32 + side * 8 + side] = 50;  // 0, 1, 2, 3 steps
  const Results results = decode(facts, {tensor({1, 16, 3}, scores), filled({1, 4, 3}, 0),
                                         tensor({1, 16, 32}, distances), filled({1, 4, 32}, 0)});
  ASSERT_EQ(results.detections.size(), 1u);
  expect_box(results.detections[0], 24, 24 - 16, 24 + 32, 24 + 48, 0.8f, 2);
}

TEST(Yunet, CombinesClassAndObject) {
  const ModelFacts facts = facts_of(64, 64,
                                    {output("cls_32", {1, 4, 1}), output("obj_32", {1, 4, 1}),
                                     output("bbox_32", {1, 4, 4}), output("kps_32", {1, 4, 10})});
  std::vector<float> boxes(16, 0.0f);
  boxes[8] = 0.5f, boxes[9] = 0.5f;
  const Results results =
      decode(facts, {tensor({1, 4, 1}, {0, 0, 1.0f, 0}), tensor({1, 4, 1}, {0, 0, 0.64f, 0}),
                     tensor({1, 4, 4}, boxes), filled({1, 4, 10}, 0)});
  ASSERT_EQ(results.detections.size(), 1u);
  expect_box(results.detections[0], 0, 32, 32, 64, 0.8f, 0);
}

TEST(Classification, TakesProbabilitiesAndLogits) {
  ModelFacts facts = facts_of(32, 32, {output("prob", {1, 3, 1, 1}, "SoftMax")});
  facts.labels = {"x", "y", "z"};
  Results results = decode(facts, {tensor({1, 3, 1, 1}, {0.2f, 0.7f, 0.1f})});
  ASSERT_EQ(results.classifications.size(), 1u);
  EXPECT_EQ(results.classifications[0].label, "y");
  EXPECT_FLOAT_EQ(results.classifications[0].confidence, 0.7f);

  facts.outputs = {output("logits", {1, 3}, "MatMul")};
  results = decode(facts, {tensor({1, 3}, {0, 0, std::log(2.0f)})});
  ASSERT_EQ(results.classifications.size(), 1u);
  EXPECT_EQ(results.classifications[0].label, "z");
  EXPECT_NEAR(results.classifications[0].confidence, 0.5, 1e-6);
}

TEST(Classification, LabelGroupsFollowTheOutputsNames) {
  ModelFacts facts = facts_of(
      72, 72, {output("type", {1, 2, 1, 1}, "SoftMax"), output("color", {1, 3, 1, 1}, "SoftMax")});
  facts.labels = {"color: white", "gray", "red", "type: car", "bus"};
  const Results results =
      decode(facts, {tensor({1, 2, 1, 1}, {0.1f, 0.9f}), tensor({1, 3, 1, 1}, {0.1f, 0.1f, 0.8f})});
  ASSERT_EQ(results.classifications.size(), 2u);
  EXPECT_EQ(results.classifications[0].attribute, "type");
  EXPECT_EQ(results.classifications[0].label, "bus");
  EXPECT_EQ(results.classifications[1].label, "red");
}

TEST(Classification, SigmoidWithLabelsGivesAllThatHold) {
  ModelFacts facts = facts_of(
      80, 160, {output("453", {1, 3, 1, 1}, "Sigmoid"), output("459", {1, 2, 1, 1}, "Sigmoid")});
  facts.labels = {"hat", "bag", "coat"};
  const Results results =
      decode(facts, {tensor({1, 3, 1, 1}, {0.9f, 0.2f, 0.6f}), tensor({1, 2, 1, 1}, {0.1f, 0.2f})});
  ASSERT_EQ(results.classifications.size(), 2u);
  EXPECT_EQ(results.classifications[0].label, "hat");
  EXPECT_EQ(results.classifications[1].label, "coat");
  ASSERT_EQ(results.tensors.size(), 1u);
  EXPECT_EQ(results.tensors[0].name, "459");
}

TEST(Classification, SurvivesNonsense) {
  const ModelFacts facts =
      facts_of(32, 32, {output("prob", {1, 3}, "SoftMax"), output("x", {1, 1000}, "MatMul")});
  std::vector<float> wild(1000, kNan);
  wild[3] = kInfinity;
  const Results results =
      decode(facts, {tensor({1, 3}, {kNan, kInfinity, -kInfinity}), tensor({1, 1000}, wild)});
  ASSERT_EQ(results.classifications.size(), 2u);
  for (const Classification& answer : results.classifications)
    EXPECT_TRUE(answer.confidence >= 0 && answer.confidence <= 1);
}

TEST(Suppression, KeepsOtherLabelsAndRespectsTheLimit) {
  const ModelFacts facts =
      facts_of(100, 100, {output("boxes", {1, 3, 4}), output("scores", {1, 3, 2})});
  const std::vector<Tensor> outputs = {
      tensor({1, 3, 4}, {10, 10, 50, 50, 12, 10, 52, 50, 60, 60, 90, 90}),
      tensor({1, 3, 2}, {0.9f, 0.6f, 0.8f, 0, 0.7f, 0})};
  EXPECT_EQ(decode(facts, outputs).detections.size(), 2u);
  EXPECT_EQ(decode(facts, outputs, "auto", {0.5f, 0.99f, 0}).detections.size(), 3u);
  EXPECT_EQ(decode(facts, outputs, "auto", {0.5f, 0.45f, 1}).detections.size(), 1u);
  EXPECT_EQ(decode(facts, outputs, "auto", {0.75f, 0.45f, 0}).detections.size(), 1u);
}

TEST(Suppression, IsBoundedWhenEverythingIsAnObject) {
  const ModelFacts facts = facts_of(640, 640, {output("out", {1, 25200, 6})});
  std::vector<float> values(25200 * 6);
  std::mt19937 random(1);
  for (size_t i = 0; i < 25200; ++i) {
    float* row = values.data() + i * 6;
    row[0] = static_cast<float>(random() % 640), row[1] = static_cast<float>(random() % 640);
    row[2] = row[3] = 2, row[4] = row[5] = 1;
  }
  EXPECT_LE(decode(facts, {tensor({1, 25200, 6}, values)}, "yolov5").detections.size(), 4096u);
}

TEST(AllHeads, SurviveRandomBits) {
  const std::vector<ModelFacts> models = {
      facts_of(64, 32, {output("out", {1, 1, 20, 7}, "DetectionOutput")}),
      facts_of(64, 32, {output("boxes", {1, 42, 4}), output("scores", {1, 42, 5})}),
      facts_of(64, 32, {output("boxes", {42, 5}), output("labels", {42})}),
      facts_of(64, 32, {output("out", {1, 42, 85})}),
      facts_of(64, 32, {output("out", {1, 126, 85})}),
      facts_of(64, 32, {output("out", {1, 84, 42})}),
      facts_of(64, 32, {output("out", {1, 30, 6})}),
      facts_of(64, 64,
               {output("r", {1, 21, 2, 2}, "RegionYolo",
                       {{"anchors", "1,1,2,2,3,3"},
                        {"mask", "0,1,2"},
                        {"classes", "2"},
                        {"do_softmax", "0"}})}),
      facts_of(64, 64,
               {output("c0", {1, 16, 3}), output("c1", {1, 4, 3}), output("d0", {1, 16, 32}),
                output("d1", {1, 4, 32})}),
      facts_of(64, 64,
               {output("cls", {1, 4, 1}), output("obj", {1, 4, 1}), output("bbox", {1, 4, 4})}),
      facts_of(64, 64, {output("p", {1, 9}, "SoftMax")}),
  };
  std::mt19937 random(7);
  for (const ModelFacts& facts : models) {
    const HeadChoice head = choose_head(facts, "auto");
    EXPECT_NE(head.name, "none");
    for (int round = 0; round < 50; ++round) {
      std::vector<Tensor> outputs;
      for (const OutputFacts& out : facts.outputs) {
        Tensor t = Tensor::allocate(ElementType::f32, out.shape);
        for (size_t i = 0; i < t.bytes(); i += 4) {
          const uint32_t bits = static_cast<uint32_t>(random());
          std::memcpy(static_cast<char*>(t.raw_mutable()) + i, &bits, 4);
        }
        outputs.push_back(t);
      }
      Results results;
      head.decode(outputs, {}, results);
      for (const Detection& d : results.detections) {
        EXPECT_TRUE(std::isfinite(d.x_min + d.y_min) && d.x_max > d.x_min && d.y_max > d.y_min);
        EXPECT_TRUE(d.confidence >= 0.5f && d.confidence <= 1.0f && d.label_id >= 0);
      }
    }
  }
}

TEST(Choice, FitsKnownModels) {
  struct Case {
    const char* what;
    ModelFacts facts;
    const char* head;
  };
  std::vector<OutputFacts> yunet;
  for (const auto& [name, columns] : std::vector<std::pair<std::string, int64_t>>{
           {"cls", 1}, {"obj", 1}, {"bbox", 4}, {"kps", 10}})
    for (const auto& [stride, cells] :
         std::vector<std::pair<std::string, int64_t>>{{"_8", 6400}, {"_16", 1600}, {"_32", 400}})
      yunet.push_back(output(name + stride, {1, cells, columns}));
  const std::vector<Case> cases = {
      {"SSD", facts_of(300, 300, {output("detection_out", {1, 1, 200, 7}, "DetectionOutput")}),
       "ssd"},
      {"ultraface",
       facts_of(320, 240,
                {output("scores", {1, 4420, 2}, "Reshape"), output("boxes", {1, 4420, 4})}),
       "ultraface"},
      {"yolox-nano", facts_of(416, 416, {output("output", {1, 3549, 85}, "Transpose")}), "yolox"},
      {"yolov5", facts_of(640, 640, {output("output", {1, 25200, 85})}), "yolov5"},
      {"yolov8", facts_of(640, 640, {output("output0", {1, 84, 8400})}), "yolov8"},
      {"yolov8 of one class", facts_of(640, 640, {output("output0", {1, 5, 8400})}), "yolov8"},
      {"nanodet",
       facts_of(416, 416,
                {output("792", {1, 2704, 80}), output("814", {1, 676, 80}),
                 output("836", {1, 169, 80}), output("795", {1, 2704, 32}),
                 output("817", {1, 676, 32}), output("839", {1, 169, 32})}),
       "nanodet"},
      {"nanodet-plus", facts_of(320, 320, {output("output", {1, 2125, 112})}), "nanodet"},
      {"yunet", facts_of(640, 640, yunet), "yunet"},
      {"boxes and labels", facts_of(256, 256, {output("boxes", {100, 5}), output("labels", {100})}),
       "boxes-labels"},
      {"emotions", facts_of(64, 64, {output("prob_emotion", {1, 5, 1, 1}, "SoftMax")}),
       "classification"},
      {"age and gender",
       facts_of(
           62, 62,
           {output("prob", {1, 2, 1, 1}, "SoftMax"), output("age_conv3", {1, 1, 1, 1}, "Add")}),
       "classification"},
      {"imagenet logits", facts_of(224, 224, {output("out", {1, 1000}, "MatMul")}),
       "classification"},
      {"segmentation", facts_of(257, 257, {output("69", {1, 257, 257, 21}, "Interpolate")}),
       "segmentation"},
      {"head pose",
       facts_of(
           60, 60,
           {output("y", {1, 1}, "Add"), output("p", {1, 1}, "Add"), output("r", {1, 1}, "Add")}),
       "none"},
      {"blazeface", facts_of(128, 128, {output("89", {1, 896, 16}), output("88", {1, 896, 1})}),
       "blazeface"},
  };
  for (const Case& c : cases) EXPECT_EQ(choose_head(c.facts, "auto").name, c.head) << c.what;
}

TEST(Choice, SaysWhatElseThereIs) {
  const ModelFacts vector = facts_of(128, 128, {output("658", {1, 23, 1, 1}, "Convolution")});
  const HeadChoice unsaid = choose_head(vector, "auto");
  EXPECT_EQ(unsaid.name, "none");
  EXPECT_NE(unsaid.reason.find("post-process=classification"), std::string::npos) << unsaid.reason;
  Results results;
  unsaid.decode(std::vector<Tensor>{filled({1, 23, 1, 1}, 0.5f)}, {}, results);
  EXPECT_TRUE(results.classifications.empty());
  ASSERT_EQ(results.tensors.size(), 1u);
  EXPECT_EQ(results.tensors[0].value.elements(), 23);
  EXPECT_EQ(choose_head(vector, "none").name, "none");
  EXPECT_EQ(choose_head(vector, "classification").name, "classification");
  try {
    choose_head(vector, "ssd");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[1,23,1,1]"), std::string::npos) << error.what();
  }
}

TEST(Choice, RowsOfFiveOrFourNeedALabelCount) {
  ModelFacts facts = facts_of(640, 640, {output("out", {1, 8400, 12})});
  const HeadChoice guess = choose_head(facts, "auto");
  EXPECT_TRUE(guess.attach_tensors);
  ASSERT_FALSE(guess.warnings.empty());
  EXPECT_NE(guess.warnings[0].find("yolox, yolov8"), std::string::npos) << guess.warnings[0];
  facts.labels.assign(7, "x");
  EXPECT_EQ(choose_head(facts, "auto").name, "yolox");
  EXPECT_TRUE(choose_head(facts, "auto").warnings.empty());
  facts.labels.assign(8, "x");
  EXPECT_EQ(choose_head(facts, "auto").name, "yolov8");
  facts.labels.assign(3, "x");  // neither of them: labels that are wrong settle nothing
  const HeadChoice neither = choose_head(facts, "auto");
  EXPECT_TRUE(neither.attach_tensors);
  EXPECT_NE(neither.warnings.back().find("3 labels"), std::string::npos) << neither.warnings.back();
  EXPECT_EQ(choose_head(facts, "yolox").name, "yolox");
}

}  // namespace
}  // namespace clinfer
