// Forms in which exporters leave outputs: before suppression, with a background or without one, in other
// units, and points of a thing that fills the picture.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/heads/outputs_case.h"

namespace clinfer {
namespace {

using test::OutputsCase;

// A score of 1 may come out larger by half a step where it shares the scale of boxes.
TEST(Forms, ScoresInTheStepsOfBoxes) {
  constexpr int64_t kRows = 40 * 40 + 20 * 20 + 10 * 10;
  std::vector<float> rows(7 * kRows, 0);
  const float row[] = {100, 80, 90, 60, 0, 0, 1.39f};
  for (size_t k = 0; k < 7; ++k) rows[k * kRows + 40] = row[k];
  OutputsCase c(320, 320);
  c.facts.model_info = {{"task", "detect"}};
  c.add("output0", {1, 7, kRows}, rows);
  EXPECT_NE(c.decode().contradiction, "");
  c.facts.outputs[0].attributes["output_step"] = "1.39";
  ASSERT_EQ(c.decode().detections.size(), 1u);
  EXPECT_EQ(c.decode().detections[0].label_id, 2);
  EXPECT_EQ(c.decode().detections[0].confidence, 1);
  // More than half a step above 1 is no score.
  c.facts.outputs[0].attributes["output_step"] = "0.5";
  EXPECT_NE(c.decode().contradiction, "");
}

// The steps of boxes say nothing of scores that have an output of their own.
TEST(Forms, StepsOfBoxesAreNotThoseOfOtherScores) {
  OutputsCase c(320, 320);
  c.add("boxes", {1, 60, 4}, std::vector<float>(240, 0.5f));
  c.add("scores", {1, 60}, std::vector<float>(60, 1.39f));
  c.add("labels", {1, 60}, std::vector<float>(60, 1));
  c.facts.outputs[0].attributes["output_step"] = "1.39";
  EXPECT_EQ(c.choose().name, "boxes-scores-labels");
  EXPECT_NE(c.decode().contradiction, "");
}

constexpr int64_t kCellsOfLevels = 8 * 8 + 4 * 4 + 2 * 2;  // of 64x64

// One object that three rows of kCellsOfLevels find, as DeepStream-Yolo's exporters leave it.
OutputsCase rows_of_cells() {
  OutputsCase c(64, 64);
  std::vector<float> rows;
  for (int64_t i = 0; i < kCellsOfLevels; ++i) {
    const float x = static_cast<float>(i % 40),
                score = i < 3 ? 0.9f - 0.01f * static_cast<float>(i) : 0.01f;
    const std::vector<float> row =
        i < 3 ? std::vector<float>{10, 12, 30, 40, score, 7}
              : std::vector<float>{x, x, x + 9, x + 5, score, static_cast<float>(i % 9)};
    rows.insert(rows.end(), row.begin(), row.end());
  }
  c.add("output", {1, kCellsOfLevels, 6}, rows);
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
  OutputsCase c(64, 64);
  std::vector<float> rows(static_cast<size_t>(6 * kCellsOfLevels), 0.01f);
  for (size_t i = 0; i < static_cast<size_t>(kCellsOfLevels); ++i)
    rows[6 * i] = rows[6 * i + 1] = 30, rows[6 * i + 2] = rows[6 * i + 3] = 12;
  rows[4] = 0.9f, rows[5] = 0.95f;
  c.add("output", {1, kCellsOfLevels, 6}, rows);
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 0);
  EXPECT_FLOAT_EQ(results.detections[0].x_min, 24);
  EXPECT_NEAR(results.detections[0].confidence, 0.9f * 0.95f, 1e-6);
}

// Two alike boxes of a detector that counts its objects are two objects, unless the user says otherwise.
TEST(Forms, SuppressedBoxesAreSuppressedWhereTheUserSaysSo) {
  OutputsCase c(64, 64);
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
  OutputsCase c(64, 64);
  std::vector<float> boxes, scores(23, 0.01f), labels(23, 1);
  for (int i = 0; i < 23; ++i) boxes.insert(boxes.end(), {10, 10, 40, 40});
  scores[3] = scores[4] = 0.9f;
  boxes[4 * 4] = 14;
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

OutputsCase with_background(size_t place) {
  OutputsCase c(64, 64);
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
    OutputsCase c = with_background(place);
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
  OutputsCase c(64, 64);
  std::vector<float> cells(static_cast<size_t>(7 * kCellsOfLevels), 0.02f);
  for (int64_t i = 0; i < 4 * kCellsOfLevels; ++i) cells[static_cast<size_t>(i)] = 20;
  cells[static_cast<size_t>(5 * kCellsOfLevels + 9)] = 0.9f;
  c.add("output0", {1, 7, kCellsOfLevels}, cells);
  c.facts.labels = {"background", "cat", "dog", "cow"};
  c.facts.own_labels = false;
  const Results results = c.decode({}, "yolov8");
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 1);
  EXPECT_EQ(results.detections[0].label, "dog");
}

TEST(Forms, ClassesOfPicturesMayCountABackground) {
  OutputsCase c(224, 224);
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
  OutputsCase c(65, 65);
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
  OutputsCase c(64, 64);
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
  OutputsCase c(64, 64);
  std::vector<float> cells(static_cast<size_t>(56 * kCellsOfLevels), 0.01f);
  const auto at = [&](int64_t column) -> float& {
    return cells[static_cast<size_t>(column * kCellsOfLevels + 9)];
  };
  at(0) = at(1) = 0.5f, at(2) = at(3) = 0.4f, at(4) = 0.9f;
  for (int64_t k = 0; k < 17; ++k) at(5 + 3 * k) = 30, at(6 + 3 * k) = 40, at(7 + 3 * k) = 0.8f;
  c.add("output0", {1, 56, kCellsOfLevels}, cells);
  c.facts.model_info["task"] = "pose";
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_FLOAT_EQ(results.detections[0].x_max, 0.7f * 64);
  EXPECT_FLOAT_EQ(results.detections[0].keypoints[3].x, 30);
  EXPECT_FLOAT_EQ(results.detections[0].keypoints[3].y, 40);
}

// A doubt about a reading is said beside it, and does not make it another one.
TEST(Forms, DoubtIsSaidWithTheReading) {
  OutputsCase c(96, 96);
  c.add("out", {1, 196}, std::vector<float>(196, 0.5f));
  const HeadChoice choice = c.choose();
  const auto landmarks = std::find_if(choice.considered.begin(), choice.considered.end(),
                                      [](const HeadFit& fit) { return fit.name == "landmarks"; });
  ASSERT_NE(landmarks, choice.considered.end());
  EXPECT_EQ(landmarks->reason, "98 points as x, y, which nothing says (a name with \"landmark\")");
}

// Faces of 112x112, whose points have no name.
TEST(Forms, PointsOfFacesByTheirNumberAndThePicture) {
  for (const size_t points : {68u, 98u, 106u, 64u}) {
    OutputsCase c(112, 112);
    c.add("out", {1, static_cast<int64_t>(2 * points)}, std::vector<float>(2 * points, 0.5f));
    const HeadChoice choice = c.choose();
    if (points == 64) {
      EXPECT_NE(choice.name, "landmarks");
      continue;
    }
    EXPECT_EQ(choice.name, "landmarks") << points;
    ASSERT_EQ(choice.warnings.size(), 1u);
    EXPECT_NE(choice.warnings[0].find("are read as points of a face"), std::string::npos);
    const Results results = c.decode();
    ASSERT_EQ(results.detections.size(), 1u);
    ASSERT_EQ(results.detections[0].landmarks.size(), points);
    EXPECT_FLOAT_EQ(results.detections[0].landmarks[0].x, 56);
  }
}

// Peppa-Facial-Landmark: 68 points as shares, then three angles and four states.
TEST(Forms, PointsOfFacesBeforeTheirAngles) {
  std::vector<float> row(143, 30);
  std::fill_n(row.begin(), 136, 0.25f);
  OutputsCase c(160, 160);
  c.add("output1", {1, 143}, row);
  const HeadChoice choice = c.choose();
  EXPECT_EQ(choice.name, "landmarks");
  ASSERT_TRUE(choice.picture);
  EXPECT_EQ(choice.picture->mean, std::vector<float>{127});
  ASSERT_EQ(choice.warnings.size(), 1u);
  EXPECT_NE(choice.warnings[0].find("Peppa-Facial-Landmark"), std::string::npos);
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  ASSERT_EQ(results.detections[0].landmarks.size(), 68u);
  EXPECT_FLOAT_EQ(results.detections[0].landmarks[67].y, 40);
  // As many classes, or another picture, are no points.
  c.facts.labels.assign(143, "a class");
  EXPECT_NE(c.choose().name, "landmarks");
  OutputsCase other(224, 224);
  other.add("output1", {1, 143}, row);
  EXPECT_NE(other.choose().name, "landmarks");
}

// OpenSeeFace: the peak of a point's map, moved by logits down and to the right.
TEST(Forms, MapsOfPointsAndTheirOffsets) {
  constexpr size_t kPoints = 66, kSide = 28, kCells = kSide * kSide;
  OutputsCase c(224, 224);
  std::vector<float> maps(3 * kPoints * kCells, 0.5f);
  std::fill_n(maps.begin(), kPoints * kCells, 0.1f);
  for (size_t k = 0; k < kPoints; ++k) maps[k * kCells + 9 * kSide + 18] = 0.9f;
  const float down = 1 / (1 + std::exp(-16 * 0.01f)), left = 1 / (1 + std::exp(16 * 0.02f));
  maps[kPoints * kCells + 9 * kSide + 18] = down;
  maps[2 * kPoints * kCells + 9 * kSide + 18] = left;
  c.add("out", {1, 198, 28, 28}, maps);
  EXPECT_EQ(c.choose().name, "landmarks");
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_NEAR(results.detections[0].confidence, 0.9f, 1e-4f);
  ASSERT_EQ(results.detections[0].landmarks.size(), kPoints);
  EXPECT_NEAR(results.detections[0].landmarks[0].x, 223 * (18 / 27.f - 0.02f), 1e-2f);
  EXPECT_NEAR(results.detections[0].landmarks[0].y, 223 * (9 / 27.f + 0.01f), 1e-2f);
  EXPECT_NEAR(results.detections[0].landmarks[1].x, 223 * 18 / 27.f, 1e-2f);
}

// FastestDet with its last step in the graph, and NanoDet's distances before theirs.
TEST(Forms, RowsOfCells) {
  OutputsCase fastest(96, 96);
  std::vector<float> rows(36 * 85, 0);
  const std::vector<float> object{32, 24, 20, 10, 0.9f};
  std::copy(object.begin(), object.end(), rows.begin() + 5 * 85);
  rows[5 * 85 + 5 + 16] = 0.8f;
  fastest.add("output", {1, 36, 85}, rows);
  EXPECT_EQ(fastest.choose().name, "fastestdet");
  Results results = fastest.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 16);
  EXPECT_NEAR(results.detections[0].confidence, 0.72f, 1e-5f);
  EXPECT_FLOAT_EQ(results.detections[0].x_min, 22);
  EXPECT_FLOAT_EQ(results.detections[0].y_max, 29);

  OutputsCase distances(96, 96);
  std::vector<float> cells(189 * 5, 0);
  const std::vector<float> sides{1, 2, 3, 0.5f, 0.7f};  // of the cell in column 3, row 1, in steps
  std::copy(sides.begin(), sides.end(), cells.begin() + 15 * 5);
  distances.add("rows", {1, 189, 5}, cells);
  distances.facts.outputs[0].op = "Concat";
  distances.facts.outputs[0].attributes["axis"] = "1";
  EXPECT_EQ(distances.choose().name, "nanodet");
  results = distances.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_FLOAT_EQ(results.detections[0].x_min, 28 - 8);
  EXPECT_FLOAT_EQ(results.detections[0].y_min, 12 - 16);
  EXPECT_FLOAT_EQ(results.detections[0].x_max, 28 + 24);
  EXPECT_FLOAT_EQ(results.detections[0].y_max, 12 + 4);
}

// Maps of 7x7 are no rows of seven, and the sums of the scores are no scores.
TEST(Forms, SumsOfScoresInAnyOrder) {
  for (const bool sums_first : {false, true}) {
    OutputsCase c(224, 224);
    for (const int64_t side : {28, 14, 7}) {
      const auto cells = static_cast<size_t>(side * side);
      std::vector<float> scores(2 * cells, 0.01f), sides(64 * cells, 0);
      if (side == 7) {
        scores[cells + 3 * 7 + 4] = 0.9f;
        for (size_t k = 0; k < 4; ++k) sides[(16 * k + 1) * cells + 3 * 7 + 4] = 30;  // one step
      }
      const auto add = [&](const char* name, int64_t channels, const std::vector<float>& values) {
        c.add(name + std::to_string(side), {1, channels, side, side}, values);
      };
      if (sums_first) add("sums", 1, std::vector<float>(cells, 0.1f));
      add("scores", 2, scores);
      add("sides", 64, sides);
      if (!sums_first) add("sums", 1, std::vector<float>(cells, 0.1f));
    }
    EXPECT_EQ(c.choose().name, "yolov8-maps");
    const Results results = c.decode();
    ASSERT_EQ(results.detections.size(), 1u);
    EXPECT_EQ(results.detections[0].label_id, 1);
    EXPECT_NEAR(results.detections[0].x_min, 32 * 3.5f, 0.1f);
    EXPECT_NEAR(results.detections[0].y_max, 32 * 4.5f, 0.1f);
  }
}

TEST(Forms, ALoneAgeIsANumberOfYears) {
  OutputsCase c(64, 64);
  c.add("age", {1}, {36.45f});
  EXPECT_EQ(c.choose().name, "classification");
  ASSERT_TRUE(c.choose().picture);
  EXPECT_EQ(c.choose().picture->color, ColorOrder::bgr);
  const Results results = c.decode();
  ASSERT_EQ(results.classifications.size(), 1u);
  EXPECT_EQ(results.classifications[0].label, "36.5");
  OutputsCase other(64, 64);
  other.add("age_conv3", {1, 1}, {0.3f});
  EXPECT_EQ(other.choose().name, "none");
}

TEST(Forms, FacesHaveANameWithoutLabels) {
  OutputsCase c(64, 64);
  for (const auto& [stride, cells] : {std::pair{8, 64}, {16, 16}, {32, 4}}) {
    const auto n = static_cast<size_t>(2 * cells);
    const std::string name = std::to_string(stride);
    c.add("score_" + name, {static_cast<int64_t>(n), 1}, std::vector<float>(n, 0.01f));
    c.add("bbox_" + name, {static_cast<int64_t>(n), 4}, std::vector<float>(4 * n, 1));
  }
  EXPECT_EQ(c.choose().name, "scrfd");
  EXPECT_EQ(c.choose().class_names, std::vector<std::string>{"face"});
}

// PINTO's model zoo names the columns of its rows.
TEST(Forms, RowsAreReadAsTheirNameListsThem) {
  OutputsCase c(64, 64);
  c.add("batchno_classid_score_x1y1x2y2", {2, 7},
        {0, 3, 0.9f, 10, 12, 30, 40, 0, 1, 0.8f, 5, 6, 20, 21});
  Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 2u);
  EXPECT_EQ(results.detections[0].label_id, 3);
  EXPECT_FLOAT_EQ(results.detections[0].confidence, 0.9f);
  EXPECT_FLOAT_EQ(results.detections[0].x_max, 30);
  EXPECT_EQ(c.choose().warnings, std::vector<std::string>{});
  OutputsCase y_first(64, 64);
  y_first.add("batchno_classid_y1x1y2x2_score_landms", {2, 9},
              {0, 3, 12, 10, 40, 30, 0.9f, 15, 16, 0, 1, 6, 5, 21, 20, 0.2f, 0, 0});
  results = y_first.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_FLOAT_EQ(results.detections[0].x_max, 30);
  ASSERT_EQ(results.detections[0].landmarks.size(), 1u);
  EXPECT_FLOAT_EQ(results.detections[0].landmarks[0].y, 16);
}

// LSTR: a straight lane from the bottom up, and one that is none.
TEST(Forms, LanesAsCurves) {
  OutputsCase c(64, 64);
  c.add("pred_logits", {1, 2, 2}, {-2, 2, 2, -2});
  // k, f, m, n, b, c: x = n + b y - c.
  c.add("pred_curves", {1, 2, 8},
        {0.25f, 0.75f, 0, 2, 0, 0.5f, 0.5f, 0.25f, 0, 1, 0, 2, 0, 0, 0, 0});
  const Results results = c.decode();
  EXPECT_EQ(c.choose().name, "lanes");
  ASSERT_EQ(results.detections.size(), 1u);
  const Detection& lane = results.detections[0];
  ASSERT_EQ(lane.landmarks.size(), 50u);
  EXPECT_NEAR(lane.landmarks[0].y, 16, 1e-3);
  EXPECT_NEAR(lane.landmarks[0].x, 24, 1e-3);
  EXPECT_NEAR(lane.landmarks[49].x, 40, 1e-3);
  EXPECT_NEAR(lane.confidence, 1 / (1 + std::exp(-4.0f)), 1e-6);
}

// UltraFace's priors with a second class, corners as shares.
TEST(Forms, FacesWithMasksAreOfUltraFace) {
  OutputsCase c(64, 64);
  std::vector<float> boxes, scores;
  for (int i = 0; i < 235; ++i) {
    boxes.insert(boxes.end(), {0.25f, 0.25f, 0.5f, 0.5f});
    const std::vector<float> row =
        i == 9 ? std::vector<float>{0.05f, 0.05f, 0.9f} : std::vector<float>{0.98f, 0.01f, 0.01f};
    scores.insert(scores.end(), row.begin(), row.end());
  }
  c.add("scores", {1, 235, 3}, scores, "Softmax");
  c.add("boxes", {1, 235, 4}, boxes);
  const HeadChoice choice = c.choose();
  EXPECT_EQ(choice.name, "ultraface") << choice.reason;
  EXPECT_EQ(choice.picture->family, "UltraFace");
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 2);
  EXPECT_FLOAT_EQ(results.detections[0].x_min, 16);
}

// YuNet of 2021 halves its maps by rounding down: 120x160 has 1076 priors.
TEST(Forms, FirstYuNetOfAnySize) {
  OutputsCase c(160, 120);
  std::vector<float> loc(1076 * 14, 0), conf(1076 * 2, 0), iou(1076, 0);
  conf[2 * 900 + 1] = 1, iou[900] = 1;  // the first prior of stride 16
  c.add("loc", {1076, 14}, loc);
  c.add("conf", {1076, 2}, conf, "Softmax");
  c.add("iou", {1076, 1}, iou);
  const Results results = c.decode();
  EXPECT_EQ(c.choose().picture->family, "YuNet of 2021");
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_FLOAT_EQ(results.detections[0].x_min, 8 - 16);
  EXPECT_FLOAT_EQ(results.detections[0].x_max, 8 + 16);
}

// YOLO-FastestV2's two maps as one table of cells.
TEST(Forms, FastestV2AsOneTable) {
  OutputsCase c(64, 64);
  constexpr int64_t kRows = 16 + 4, kColumns = 95;
  std::vector<float> values(static_cast<size_t>(kRows * kColumns), 0.01f);
  float* row = values.data() + 16 * kColumns;  // the first cell of stride 32
  row[0] = row[1] = row[2] = row[3] = 0.5f;
  row[12] = 0.9f;
  row[15 + 7] = 0.95f;
  c.add("out", {kRows, kColumns}, values, "Concat");
  EXPECT_EQ(c.choose().name, "yolo-fastestv2");
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 7);
  EXPECT_NEAR((results.detections[0].x_min + results.detections[0].x_max) / 2, 16, 1e-3);
}

// Several maps joined in one output are no scores of classes.
TEST(Forms, JoinedMapsAreNoSegmentation) {
  OutputsCase c(16, 16);
  c.add("out", {1, 16, 16, 10}, std::vector<float>(2560, 0.5f), "Concat");
  EXPECT_EQ(c.choose().name, "none");
}

// A box that is there twice is no other object, also where rows are known to be objects.
TEST(Forms, SameBoxTwiceIsOneObject) {
  OutputsCase c(64, 64);
  c.facts.input_names = {"images", "orig_target_sizes"};
  c.add("boxes", {1, 3, 4}, {10, 10, 40, 40, 10, 10, 40, 40, 10, 10, 40, 40});
  c.add("scores", {1, 3}, {0.9f, 0.8f, 0.7f});
  c.add("labels", {1, 3}, {1, 1, 2}, "Add", ElementType::i64);
  EXPECT_EQ(c.decode().detections.size(), 2u);
}

std::map<std::string, std::string> answers_of(const Results& results) {
  std::map<std::string, std::string> answers;
  for (const Classification& answer : results.classifications)
    answers[answer.attribute] = answer.label;
  return answers;
}

TEST(Forms, AnglesOfAHead) {
  const std::map<std::string, std::string> right = {
      {"yaw", "30.0"}, {"pitch", "-10.0"}, {"roll", "5.0"}};
  OutputsCase vector(64, 64);
  vector.facts.name = "fsanet-1x1-iter-688590";
  vector.add("output", {1, 3}, {30, -10, 5});
  EXPECT_EQ(answers_of(vector.decode()), right);
  EXPECT_EQ(vector.choose().picture->family, "FSA-Net");

  // Turned about x by the pitch, then about y, then about z.
  constexpr double kRadians = 3.14159265358979 / 180;
  const double p = -10 * kRadians, y = 30 * kRadians, r = 5 * kRadians;
  const auto cp = std::cos(p), sp = std::sin(p), cy = std::cos(y), sy = std::sin(y),
             cr = std::cos(r), sr = std::sin(r);
  const std::vector<double> rotation = {cr * cy,
                                        cr * sy * sp - sr * cp,
                                        cr * sy * cp + sr * sp,
                                        sr * cy,
                                        sr * sy * sp + cr * cp,
                                        sr * sy * cp - cr * sp,
                                        -sy,
                                        cy * sp,
                                        cy * cp};
  OutputsCase matrix(224, 224);
  matrix.facts.name = "6DRepNet_300W_LP_AFLW2000";
  matrix.add("output", {1, 3, 3}, std::vector<float>(rotation.begin(), rotation.end()));
  EXPECT_EQ(answers_of(matrix.decode()), right);
  EXPECT_EQ(matrix.choose().picture->resize, ResizeMode::crop);

  OutputsCase bins(224, 224);
  bins.facts.name = "hopenet_lite";
  for (const auto& [name, degrees] : {std::pair{"yaw", 30}, {"pitch", -9}, {"roll", 6}}) {
    std::vector<float> logits(66, 0);
    logits[static_cast<size_t>((degrees + 99) / 3)] = 1000;
    bins.add(name, {1, 66}, logits);
  }
  EXPECT_EQ(answers_of(bins.decode()), (std::map<std::string, std::string>{
                                           {"yaw", "30.0"}, {"pitch", "-9.0"}, {"roll", "6.0"}}));
}

// model-proc's converter "text" multiplies what the network gives.
TEST(Forms, AgeIsANumber) {
  OutputsCase c(62, 62);
  c.facts.model_info["number_scale/age_conv3"] = "100";
  c.facts.model_info["attribute_name/age_conv3"] = "age";
  c.add("age_conv3", {1, 1, 1, 1}, {0.345f});
  c.add("prob", {1, 2, 1, 1}, {0.1f, 0.9f}, "SoftMax");
  EXPECT_EQ(answers_of(c.decode())["age"], "34.5");
}

}  // namespace
}  // namespace clinfer
