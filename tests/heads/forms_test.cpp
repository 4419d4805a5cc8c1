// Forms in which exporters leave outputs: before suppression, with a background or without one, in other
// units, and points of a thing that fills the picture.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/heads/decoder.h"

namespace clinfer {
namespace {

struct Case {
  ModelFacts facts;
  std::vector<Tensor> tensors;

  Case(int width, int height) { facts.width = width, facts.height = height; }
  void add(const std::string& name, Shape shape, const std::vector<float>& values,
           const std::string& op = "Add", ElementType type = ElementType::f32) {
    facts.outputs.push_back({name, {}, type, shape, op, {}});
    tensors.push_back(Tensor::of<float>(type, shape, values));
  }
  HeadChoice choose(const std::string& post_process = "auto") const {
    return choose_head(facts, post_process);
  }
  Results decode(const DecodeSettings& settings = {},
                 const std::string& post_process = "auto") const {
    Results results;
    run_head(choose(post_process), facts, tensors, settings, false, results);
    return results;
  }
};

constexpr int64_t kCells = 8 * 8 + 4 * 4 + 2 * 2;  // of 64x64

// One object that three rows of kCells find, as DeepStream-Yolo's exporters leave it.
Case rows_of_cells() {
  Case c(64, 64);
  std::vector<float> rows;
  for (int64_t i = 0; i < kCells; ++i) {
    const float x = static_cast<float>(i % 40),
                score = i < 3 ? 0.9f - 0.01f * static_cast<float>(i) : 0.01f;
    const std::vector<float> row =
        i < 3 ? std::vector<float>{10, 12, 30, 40, score, 7}
              : std::vector<float>{x, x, x + 9, x + 5, score, static_cast<float>(i % 9)};
    rows.insert(rows.end(), row.begin(), row.end());
  }
  c.add("output", {1, kCells, 6}, rows);
  return c;
}

TEST(Forms, RowsOfCellsAreSuppressed) {
  const Results results = rows_of_cells().decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 7);
  EXPECT_FLOAT_EQ(results.detections[0].x_max, 30);
  // 1 is above every overlap.
  DecodeSettings all;
  all.iou_threshold = 1;
  EXPECT_EQ(rows_of_cells().decode(all).detections.size(), 3u);
}

// A class score is no class number: rows of six are YOLOX's of one class.
TEST(Forms, RowsOfOneClassStayRowsOfOneClass) {
  Case c(64, 64);
  std::vector<float> rows(static_cast<size_t>(6 * kCells), 0.01f);
  for (size_t i = 0; i < static_cast<size_t>(kCells); ++i)
    rows[6 * i] = rows[6 * i + 1] = 30, rows[6 * i + 2] = rows[6 * i + 3] = 12;
  rows[4] = 0.9f, rows[5] = 0.95f;
  c.add("output", {1, kCells, 6}, rows);
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 0);
  EXPECT_FLOAT_EQ(results.detections[0].x_min, 24);
  EXPECT_NEAR(results.detections[0].confidence, 0.9f * 0.95f, 1e-6);
}

// Two alike boxes of a detector that counts its objects are two objects, unless the user says otherwise.
TEST(Forms, SuppressedBoxesAreSuppressedWhereTheUserSaysSo) {
  Case c(64, 64);
  c.add("num_dets", {1, 1}, {2}, "Add", ElementType::i32);
  c.add("boxes", {1, 2, 4}, {10, 10, 40, 40, 11, 10, 40, 40});
  c.add("scores", {1, 2}, {0.9f, 0.8f});
  c.add("labels", {1, 2}, {1, 1}, "Add", ElementType::i32);
  EXPECT_EQ(c.decode().detections.size(), 2u);
  DecodeSettings set;
  set.suppress_all = true;
  EXPECT_EQ(c.decode(set).detections.size(), 1u);
}

// Nothing says whether they are suppressed: it is assumed that they are not, and said.
TEST(Forms, BoxesOfUnknownOriginAreSuppressedAndThatIsSaid) {
  Case c(64, 64);
  std::vector<float> boxes, scores(23, 0.01f), labels(23, 1);
  for (int i = 0; i < 23; ++i) boxes.insert(boxes.end(), {10, 10, 40, 40});
  scores[3] = scores[4] = 0.9f;
  c.add("boxes", {1, 23, 4}, boxes);
  c.add("scores", {1, 23, 1}, scores);
  c.add("classes", {1, 23, 1}, labels);
  EXPECT_EQ(c.decode().detections.size(), 1u);
  const HeadChoice choice = c.choose();
  EXPECT_EQ(choice.name, "boxes-scores-labels") << choice.reason;
  EXPECT_TRUE(
      std::any_of(choice.warnings.begin(), choice.warnings.end(), [](const std::string& warning) {
        return warning.find("iou-threshold=1 keeps them all") != std::string::npos;
      }));
  c.facts.input_names = {"images", "orig_target_sizes"};
  EXPECT_EQ(c.decode().detections.size(), 2u);
  EXPECT_EQ(c.choose().warnings, std::vector<std::string>{});
}

Case with_background(size_t place) {
  Case c(64, 64);
  std::vector<float> boxes, scores;
  for (int i = 0; i < 60; ++i) {
    boxes.insert(boxes.end(), {0.1f, 0.1f, 0.5f, 0.5f});
    std::vector<float> row(3, 0.01f);
    row[place] = 0.98f;
    if (i == 7)
      row =
          place == 0 ? std::vector<float>{0.1f, 0.1f, 0.8f} : std::vector<float>{0.1f, 0.8f, 0.1f};
    scores.insert(scores.end(), row.begin(), row.end());
  }
  c.add("boxes", {1, 60, 4}, boxes);
  c.add("scores", {1, 60, 3}, scores);
  return c;
}

TEST(Forms, TheBackgroundIsFirstOrLast) {
  for (const size_t place : {size_t{0}, size_t{2}}) {
    Case c = with_background(place);
    Results results = c.decode();
    ASSERT_EQ(results.detections.size(), 1u);
    EXPECT_EQ(results.detections[0].label_id, place == 0 ? 2 : 1);
    // Labels without the background.
    c.facts.labels = {"cat", "dog"};
    results = c.decode();
    ASSERT_EQ(results.detections.size(), 1u);
    EXPECT_EQ(results.detections[0].label, "dog");
    EXPECT_EQ(c.choose().warnings, std::vector<std::string>{});
  }
}

TEST(Forms, LabelsMayNameABackgroundThatTheOutputsDoNotCount) {
  Case c(64, 64);
  std::vector<float> cells(static_cast<size_t>(7 * kCells), 0.02f);
  for (int64_t i = 0; i < 4 * kCells; ++i) cells[static_cast<size_t>(i)] = 20;
  cells[static_cast<size_t>(5 * kCells + 9)] = 0.9f;
  c.add("output0", {1, 7, kCells}, cells);
  c.facts.labels = {"background", "cat", "dog", "cow"};
  c.facts.own_labels = false;
  const Results results = c.decode({}, "yolov8");
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 1);
  EXPECT_EQ(results.detections[0].label, "dog");
}

TEST(Forms, ClassesOfPicturesMayCountABackground) {
  Case c(224, 224);
  std::vector<float> logits(1001, 0);
  logits[5] = 20;
  c.add("logits", {1, 1001}, logits);
  for (int i = 0; i < 1000; ++i) c.facts.labels.push_back("class " + std::to_string(i));
  const Results results = c.decode();
  ASSERT_EQ(results.classifications.size(), 1u);
  EXPECT_EQ(results.classifications[0].label, "class 4");
  EXPECT_EQ(c.choose().warnings, std::vector<std::string>{});
}

// PoseNet with its sigmoid in the graph: a point's confidence is squashed once.
TEST(Forms, HeatMapsMayBeSquashed) {
  Case c(65, 65);
  std::vector<float> heats(17 * 25, 0.01f);
  for (size_t k = 0; k < 17; ++k) heats[k * 25 + 12] = 0.9f;
  c.add("heatmaps", {1, 17, 5, 5}, heats);
  c.add("offsets", {1, 34, 5, 5}, std::vector<float>(34 * 25, 0));
  Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_NEAR(results.detections[0].keypoints[0].confidence, 0.9f, 1e-6);
  // A picture with nobody.
  c.tensors[0] =
      Tensor::of<float>(ElementType::f32, {1, 17, 5, 5}, std::vector<float>(17 * 25, 0.01f));
  EXPECT_TRUE(c.decode().detections.empty());
  // Logits.
  std::vector<float> raw(17 * 25, -5);
  for (size_t k = 0; k < 17; ++k) raw[k * 25 + 12] = 3;
  c.tensors[0] = Tensor::of<float>(ElementType::f32, {1, 17, 5, 5}, raw);
  results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_NEAR(results.detections[0].keypoints[0].confidence, 1 / (1 + std::exp(-3.0f)), 1e-6);
}

TEST(Forms, TheIrisFollowsTheContourOfTheEye) {
  Case c(64, 64);
  c.add("output_eyes_contours_and_brows", {1, 213}, std::vector<float>(213, 20));
  c.add("output_iris", {1, 15}, std::vector<float>(15, 31));
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  ASSERT_EQ(results.detections[0].landmarks.size(), 76u);
  EXPECT_FLOAT_EQ(results.detections[0].landmarks[75].x, 31);
  EXPECT_EQ(results.detections[0].subject, Subject::whole);
}

// Boxes as shares of the picture, points in its pixels.
TEST(Forms, PointsMayBePixelsWhereBoxesAreShares) {
  Case c(64, 64);
  std::vector<float> cells(static_cast<size_t>(56 * kCells), 0.01f);
  const auto at = [&](int64_t column) -> float& {
    return cells[static_cast<size_t>(column * kCells + 9)];
  };
  at(0) = at(1) = 0.5f, at(2) = at(3) = 0.4f, at(4) = 0.9f;
  for (int64_t k = 0; k < 17; ++k) at(5 + 3 * k) = 30, at(6 + 3 * k) = 40, at(7 + 3 * k) = 0.8f;
  c.add("output0", {1, 56, kCells}, cells);
  c.facts.model_info["task"] = "pose";
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_FLOAT_EQ(results.detections[0].x_max, 0.7f * 64);
  EXPECT_FLOAT_EQ(results.detections[0].keypoints[3].x, 30);
  EXPECT_FLOAT_EQ(results.detections[0].keypoints[3].y, 40);
}

// A doubt about a reading is said beside it, and does not make it another one.
TEST(Forms, DoubtIsSaidWithTheReading) {
  Case c(112, 112);
  c.add("out", {1, 196}, std::vector<float>(196, 0.5f));
  const HeadChoice choice = c.choose();
  const auto landmarks = std::find_if(choice.considered.begin(), choice.considered.end(),
                                      [](const HeadFit& fit) { return fit.name == "landmarks"; });
  ASSERT_NE(landmarks, choice.considered.end());
  EXPECT_EQ(landmarks->reason, "98 points as x, y, which nothing says (a name with \"landmark\")");
}

TEST(Forms, FacesHaveANameWithoutLabels) {
  Case c(64, 64);
  for (const auto& [stride, cells] : {std::pair{8, 64}, {16, 16}, {32, 4}}) {
    const auto n = static_cast<size_t>(2 * cells);
    const std::string name = std::to_string(stride);
    c.add("score_" + name, {static_cast<int64_t>(n), 1}, std::vector<float>(n, 0.01f));
    c.add("bbox_" + name, {static_cast<int64_t>(n), 4}, std::vector<float>(4 * n, 1));
  }
  EXPECT_EQ(c.choose().name, "scrfd");
  EXPECT_EQ(c.choose().class_names, std::vector<std::string>{"face"});
}

}  // namespace
}  // namespace clinfer
