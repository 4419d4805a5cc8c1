// The choice of a head, which must not guess, and trees of classes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/heads/base/decoder.h"
#include "engine/heads/classes/hierarchy.h"

namespace clinfer {
namespace {

struct Case {
  ModelFacts facts;
  std::vector<Tensor> tensors;

  explicit Case(int size) { facts.width = facts.height = size; }
  void add(const std::string& name, Shape shape, const std::vector<float>& values,
           const std::string& op = "Add") {
    facts.outputs.push_back({name, {}, ElementType::f32, shape, op, {}});
    tensors.push_back(Tensor::of<float>(ElementType::f32, shape, values));
  }
  void add(const std::string& name, Shape shape, float value = 0.01f) {
    add(name, shape, std::vector<float>(static_cast<size_t>(count(shape)), value));
  }
  HeadChoice choose() const { return choose_head(facts, "auto"); }
  Results decode() const {
    Results results;
    run_head(choose(), facts, tensors, {}, false, results);
    return results;
  }
};

TEST(Choice, FeatureMapsAreNoClassesOfPixels) {
  Case c(64);
  c.add("a", {1, 32, 16, 16});
  c.add("b", {1, 64, 8, 8});
  EXPECT_EQ(c.choose().name, "none");
  Case flow(64);
  flow.add("flow", {1, 2, 64, 64});
  EXPECT_EQ(flow.choose().name, "none");
}

// TensorFlow's pictures have their channels last, and their segmentation takes -1..1.
TEST(Choice, SegmentationTakesPicturesAsItsFrameworkDoes) {
  Case c(64);
  c.add("seg", {1, 64, 64, 21});
  ASSERT_TRUE(c.choose().picture);
  EXPECT_EQ(c.choose().picture->mean, (std::vector<float>{123.675f, 116.28f, 103.53f}));
  c.facts.channels_last = true;
  EXPECT_EQ(c.choose().picture->mean, std::vector<float>{127.5f});
  EXPECT_EQ(c.choose().picture->scale, std::vector<float>{127.5f});
}

TEST(Choice, RoadsAndLanesAreTwoMaps) {
  std::vector<float> road(2 * 64 * 64, 0), lane = road;
  road[64 * 64 + 5] = 1;
  lane[64 * 64 + 9] = 1;
  Case c(64);
  c.add("424", {1, 2, 64, 64}, road, "PReLU");
  c.add("436", {1, 2, 64, 64}, lane, "PReLU");
  EXPECT_EQ(c.choose().name, "segmentation");
  EXPECT_TRUE(c.choose().warnings.empty());
  EXPECT_EQ(c.choose().picture->family, "TwinLiteNet");
  const Results results = c.decode();
  ASSERT_EQ(results.maps.size(), 2u);
  EXPECT_EQ(results.maps[0].classes[5], 1);
  EXPECT_EQ(results.maps[0].labels, (std::vector<std::string>{"background", "drivable area"}));
  EXPECT_EQ(results.maps[1].classes[5], 0);
  EXPECT_EQ(results.maps[1].classes[9], 1);
  c.facts.outputs[1].op = "Convolution";
  EXPECT_EQ(c.decode().maps.size(), 1u);
}

// Three numbers for each pixel may be a picture, but not where they were just enlarged.
TEST(Choice, EnlargedValuesAreNoPicture) {
  Case c(64);
  c.add("out", {1, 3, 64, 64});
  EXPECT_EQ(c.choose().name, "none");
  c.facts.outputs[0].attributes["enlarged"] = "1";
  EXPECT_EQ(c.choose().name, "segmentation");
}

// Classes of a sigmoid each may all be absent, those of a softmax not.
TEST(Choice, ClassesThatStandAloneMayBeAbsent) {
  for (const bool last : {false, true})
    for (const std::string op : {"Sigmoid", "SoftMax"}) {
      std::vector<float> values(2 * 16 * 16, 0.2f);
      values[last ? 2 * 5 + 1 : 16 * 16 + 5] = 0.7f;
      Case c(16);
      c.add("seg", last ? Shape{1, 16, 16, 2} : Shape{1, 2, 16, 16}, values, op);
      const Results results = c.decode();
      ASSERT_EQ(results.maps.size(), 1u);
      const PictureMap& map = results.maps[0];
      EXPECT_EQ(map.classes[5], 1);
      EXPECT_EQ(map.classes[6], op == "Sigmoid" ? 2 : 0);
      EXPECT_EQ(map.labels.size() == 3 && map.labels[2] == "background", op == "Sigmoid");
    }
}

TEST(Choice, NumbersOfSmallPicturesAreClasses) {
  for (const auto& [side, numbers, name] : {std::tuple(28, 10, "classification"),
                                            {32, 43, "classification"},
                                            {32, 4, "none"},
                                            {48, 10, "none"}}) {
    Case c(side);
    c.add("Plus214_Output_0", {1, numbers});
    EXPECT_EQ(c.choose().name, name) << side << ", " << numbers;
    EXPECT_NE(c.choose().warnings.empty(), c.choose().name == "classification");
  }
}

TEST(Choice, LprnetReadsThePlatesThatItWasPublishedFor) {
  Case c(94);
  c.facts.height = 24;
  std::vector<float> steps(68 * 18, 0);
  const auto set = [&](size_t step, size_t character) { steps[character * 18 + step] = 9; };
  for (size_t step = 0; step < 18; ++step) set(step, 67);
  const size_t text[] = {11, 41, 41, 67, 31, 64};  // 浙 A A - 0 Z
  for (size_t step = 0; step < std::size(text); ++step) {
    steps[67 * 18 + step] = 0;
    set(step, text[step]);
  }
  c.add("126", {68, 18}, steps);
  const HeadChoice head = c.choose();
  EXPECT_EQ(head.name, "text-recognition");
  EXPECT_FALSE(head.warnings.empty());
  const Results results = c.decode();
  ASSERT_EQ(results.texts.size(), 1u);
  EXPECT_EQ(results.texts[0].text, "浙A0Z");
  // Other numbers of characters are other plates'.
  Case other(94);
  other.facts.height = 24;
  other.add("126", {37, 18});
  EXPECT_NE(other.choose().name, "text-recognition");
}

TEST(Choice, AnglesOfAHeadAreReadByTheirNamesOrWithAWord) {
  for (const int64_t size : {int64_t{1}, int64_t{66}}) {
    Case c(224);
    c.add("features", {1, 512});
    for (const char* name : {"roll", "yaw", "pitch"}) c.add(name, {1, size});
    EXPECT_EQ(c.choose().name, "head-pose") << size;
  }
  Case unnamed(224);
  unnamed.facts.name = "hopenet";
  for (const char* name : {"100", "107", "114"}) unnamed.add(name, {1, 66});
  const HeadChoice head = unnamed.choose();
  EXPECT_EQ(head.name, "head-pose");
  EXPECT_TRUE(head.attach_tensors);
  EXPECT_FALSE(head.warnings.empty());
}

TEST(Choice, FeaturesOfRegionsAreNoScores) {
  Case c(64);
  c.add("rois", {50, 4});
  c.add("roi_feats", {50, 128});
  EXPECT_EQ(c.choose().name, "none");
}

// 56 columns that are all probabilities are 52 classes, not points of persons.
TEST(Choice, ClassesAreNoPoints) {
  const auto cells = static_cast<size_t>(8 * 8 + 4 * 4 + 2 * 2);
  std::vector<float> rows(56 * cells, 0.02f);
  for (size_t i = 0; i < 4 * cells; ++i) rows[i] = 20;
  Case c(64);
  c.add("out", {1, 56, static_cast<int64_t>(cells)}, rows);
  EXPECT_EQ(c.choose().name, "yolov8-pose");
  EXPECT_EQ(c.decode().contradiction,
            "no key point lies inside the picture: the columns are rather those of 52 classes "
            "(post-process=yolov8)");
  for (size_t i = 5 * cells; i < 56 * cells; ++i) rows[i] = 30;
  Case pose(64);
  pose.add("out", {1, 56, static_cast<int64_t>(cells)}, rows);
  EXPECT_EQ(pose.decode().contradiction, "");
}

TEST(Choice, VectorsBesideAnswersAreNoAnswer) {
  Case c(64);
  c.add("logits", {1, 1000});
  c.add("feat", {1, 512});
  EXPECT_EQ(c.choose().name, "classification");
}

constexpr size_t kCells = 12 * 12 + 6 * 6 + 3 * 3;  // of 96x96

std::vector<float> cells_of(size_t columns, size_t column, float value) {
  std::vector<float> table(columns * kCells, 0.02f);
  for (size_t i = 0; i < 4 * kCells; ++i) table[i] = 20;
  if (column != 0) table[column * kCells + 5] = value;
  return table;
}

bool says(const HeadChoice& choice, const std::string& words) {
  return std::any_of(
      choice.warnings.begin(), choice.warnings.end(),
      [&](const std::string& warning) { return warning.find(words) != std::string::npos; });
}

// YOLO v9's main and auxiliary head: nothing but their order tells them apart.
TEST(Choice, AlikeOutputsAreSaidAndCanBeNamed) {
  Case c(96);
  c.add("1298", {1, 84, 189}, cells_of(84, 10, 0.7f));
  c.add("1301", {1, 84, 189}, cells_of(84, 11, 0.9f));
  const HeadChoice guess = c.choose();
  EXPECT_EQ(guess.name, "yolov8");
  EXPECT_TRUE(guess.attach_tensors);
  EXPECT_TRUE(says(guess, "set outputs=1301 (or outputs=1298, if these are right)"));
  const Results first = c.decode();
  ASSERT_EQ(first.detections.size(), 1u);
  EXPECT_EQ(first.detections[0].label_id, 6);
  EXPECT_EQ(first.tensors.size(), 2u);

  const HeadChoice named = choose_head(c.facts, "auto", {"1301"});
  EXPECT_TRUE(named.warnings.empty());
  Results second;
  run_head(named, c.facts, c.tensors, {}, false, second);
  ASSERT_EQ(second.detections.size(), 1u);
  EXPECT_EQ(second.detections[0].label_id, 7);
  EXPECT_TRUE(second.tensors.empty());
  EXPECT_THROW(choose_head(c.facts, "auto", {"1302"}), Error);
}

// A model's file may state any number of outputs.
TEST(Choice, ThousandsOfOutputsAreNotComparedWithEachOther) {
  Case c(96);
  for (int i = 0; i < 3000; ++i)
    c.facts.outputs.push_back(
        {"output" + std::to_string(3000 - i), {}, ElementType::f32, {1, 84, 189}, "Add", {}});
  EXPECT_EQ(c.choose().name, "yolov8");
}

TEST(Choice, NumbersInNamesAreTheOrder) {
  Case c(96);
  c.add("output1", {1, 84, 189}, cells_of(84, 11, 0.9f));
  c.add("output0", {1, 84, 189}, cells_of(84, 10, 0.7f));
  EXPECT_TRUE(says(c.choose(), "as well as output0"));
  ASSERT_EQ(c.decode().detections.size(), 1u);
  EXPECT_EQ(c.decode().detections[0].label_id, 6);
}

// DETR without names: no-object leads in the softmax of most queries.
// Without their batch axis, prototypes of masks look like as many classes of pixels.
TEST(Choice, AStatedTypeIsNotOutvotedByLabels) {
  Case c(96);
  c.facts.model_info = {{"model_type", "YOLO"}};
  for (int i = 0; i < 32; ++i) c.facts.labels.push_back("class" + std::to_string(i));
  c.add("output0", {68, 189});
  c.add("output1", {32, 24, 24});
  EXPECT_EQ(c.choose().name, "yolov8-seg");
  Case other(96);
  other.facts = c.facts;
  other.facts.outputs.clear();
  other.add("output1", {1, 32, 24, 24});
  EXPECT_TRUE(other.choose().attach_tensors) << "a guess against the stated type";
}

// MMRotate's rows end in a score; end-to-end YOLO's in a class.
TEST(Choice, RowsOfSixWithLabelsAreTurnedBoxes) {
  Case c(320);
  c.add("dets", {1, 2, 6}, {100, 120, 60, 30, 0.5f, 0.9f, 0, 0, 0, 0, 0, 0});
  c.add("labels", {1, 2}, {3, 0});
  ASSERT_EQ(c.choose().name, "boxes-labels");
  EXPECT_TRUE(c.choose().warnings.empty());
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  ASSERT_TRUE(results.detections[0].oriented_box);
  EXPECT_EQ(results.detections[0].oriented_box->rotation, 0.5f);
  EXPECT_EQ(results.detections[0].label_id, 3);
  // Other names say nothing of an angle.
  c.facts.outputs[0].name = "output0";
  EXPECT_EQ(c.choose().name, "yolov10");
  c.facts.model_info["model_type"] = "rotated_detection";
  EXPECT_EQ(c.choose().name, "boxes-labels");
}

TEST(Choice, BoxesThatAreAllObjectsContradict) {
  std::vector<float> logits(60 * 22, -3);
  for (size_t i = 0; i < 60; ++i) logits[i * 22 + 10] = 9;
  Case c(96);
  c.add("100", {1, 60, 22}, logits);
  c.add("107", {1, 60, 4}, 0.3f);
  EXPECT_EQ(c.choose().name, "boxes-scores");
  EXPECT_EQ(c.decode().contradiction, "60 of 60 boxes are objects");
}

TEST(Choice, AMapBesideIsNoMaskOfObjects) {
  for (const Shape& shape : {Shape{1, 64, 40, 40}, Shape{64, 40, 40}}) {
    Case c(160);
    c.add("p3", shape);
    c.add("boxes", {1, 64, 4}, 0.5f);
    c.add("scores", {1, 64});
    c.add("labels", {1, 64}, 1);
    EXPECT_EQ(c.choose().name, "boxes-scores-labels");
    EXPECT_EQ(c.choose().reason.find("masks"), std::string::npos) << to_string(shape);
  }
}

TEST(Choice, OutputsOfAuxiliaryHeadsAreLeftOutByName) {
  Case c(96);
  c.add("aux_output", {1, 84, 189}, cells_of(84, 11, 0.9f));
  c.add("output", {1, 84, 189}, cells_of(84, 10, 0.7f));
  EXPECT_TRUE(c.choose().warnings.empty());
  ASSERT_EQ(c.decode().detections.size(), 1u);
  EXPECT_EQ(c.decode().detections[0].label_id, 6);
}

TEST(Choice, ASecondDetectorIsSaid) {
  Case c(96);
  c.add("output", {1, 84, 189}, cells_of(84, 10, 0.7f));
  c.add("second_out", {1, 1, 200, 7}, -1);
  const HeadChoice choice = c.choose();
  EXPECT_TRUE(choice.attach_tensors);
  EXPECT_TRUE(says(choice, "may be of two heads")) << choice.name;
  EXPECT_EQ(choose_head(c.facts, "auto", {"output"}).name, "yolov8");
  Case tracker(64);
  tracker.add("detections", {1, 1, 200, 7}, -1);
  tracker.add("embedding", {1, 512});
  EXPECT_TRUE(says(tracker.choose(), "embedding could be read as embedding"));
}

// A hand has 63 coordinates; here they are scores, since the boxes have a column for each.
TEST(Choice, NumbersForEachOf63AreNoHand) {
  for (const Shape& beside : {Shape{1, 4, 63}, Shape{1, 63, 4}}) {
    Case c(96);
    c.add("boxes", beside);
    c.add("scores", {1, 63});
    EXPECT_NE(c.choose().name, "landmarks");
  }
  Case hand(224);
  hand.add("landmarks", {1, 63});
  hand.add("score", {1, 1});
  hand.add("handedness", {1, 1});
  hand.add("points", {1, 63});
  EXPECT_EQ(hand.choose().name, "landmarks");
}

TEST(Choice, MasksInAnUnknownLayoutAreSaid) {
  Case c(96);
  c.add("boxes", {1, 50, 4});
  c.add("scores", {1, 50});
  c.add("labels", {1, 50}, 1);
  c.add("masks", {1, 28, 28, 50});
  EXPECT_EQ(c.choose().name, "boxes-scores-labels");
  EXPECT_TRUE(says(c.choose(), "masks may belong to the objects"));
}

// A map that no head knows is no reason to read nothing.
TEST(Choice, LeavesOutAMapAndSaysIt) {
  Case c(96);
  c.add("p3", {1, 64, 40, 40});
  c.add("537", {1, 1, 24, 24});
  c.add("538", {1, 2, 24, 24});
  c.add("539", {1, 2, 24, 24});
  c.add("540", {1, 10, 24, 24});
  EXPECT_EQ(c.choose().name, "centerface");
  EXPECT_TRUE(says(c.choose(), "without p3"));
}

TEST(Choice, LeavesOutTheVectorRatherThanTheMap) {
  Case c(416);
  c.add("100", {1, 125, 13, 13});
  c.add("107", {1, 512});
  EXPECT_EQ(c.choose().name, "yolov3");
  EXPECT_TRUE(says(c.choose(), "without 107"));
}

TEST(Choice, SqueezedMapsBesideRowsAreLeftOut) {
  Case c(96);
  c.add("backbone", {96, 20, 20});
  for (const int64_t cells : {144, 36, 9})
    for (const char* part : {"cls", "obj"})
      c.add(part + std::string("_") + std::to_string(cells), {cells, 1});
  for (const int64_t cells : {144, 36, 9}) c.add("bbox_" + std::to_string(cells), {cells, 4});
  EXPECT_EQ(c.choose().name, "yunet");
}

// YOLOX and v6 whose axes a converter has swapped.
TEST(Choice, RowsWithAnObjectnessMayBeTurned) {
  std::vector<float> table = cells_of(85, 14, 0.9f);
  table[4 * kCells + 5] = 0.9f;
  Case c(96);
  c.add("output", {1, 85, 189}, table);
  EXPECT_EQ(c.choose().name, "yolox");
  EXPECT_TRUE(says(c.choose(), "yolox, yolov8"));
  ASSERT_EQ(c.decode().detections.size(), 1u);
  EXPECT_EQ(c.decode().detections[0].label_id, 9);
}

// Where the last convolutions make the table, its scores are logits, as in bubbliiiing's YOLOX.
TEST(Choice, ScoresOfTheLastConvolutionsAreLogits) {
  for (const bool linear : {false, true}) {
    std::vector<float> table(85 * kCells, 0);
    for (size_t i = 0; i < kCells; ++i)
      for (size_t k = 4; k < 85; ++k) table[i * 85 + k] = linear ? -9.0f : 0.0001f;
    float* const row = table.data() + (144 + 7) * 85;  // row 1, column 1 of cells of 16 pixels
    row[0] = row[1] = 0.5f;
    row[2] = row[3] = std::log(2.0f);
    row[4] = linear ? 4.0f : 0.982f;
    row[5 + 9] = linear ? 2.0f : 0.8808f;
    Case c(96);
    c.add("output", {1, 189, 85}, table, "Concat");
    if (linear) c.facts.outputs[0].attributes["linear"] = "1";
    EXPECT_EQ(c.choose().name, "yolox");
    EXPECT_EQ(c.choose().picture->family, linear ? "bubbliiiing's YOLOX" : "YOLOX");
    EXPECT_EQ(c.choose().picture->color, linear ? ColorOrder::rgb : ColorOrder::bgr);
    const Results results = c.decode();
    EXPECT_EQ(results.contradiction, "");
    ASSERT_EQ(results.detections.size(), 1u) << linear;
    EXPECT_EQ(results.detections[0].label_id, 9);
    EXPECT_NEAR(results.detections[0].confidence, 0.865, 0.001);
    EXPECT_NEAR(results.detections[0].x_min, 8, 0.01);
    EXPECT_NEAR(results.detections[0].y_max, 40, 0.01);
  }
}

TEST(Choice, MapsOfTheLastConvolutionsAreCellsOfLogits) {
  const auto with = [](size_t columns, bool linear) {
    Case c(96);
    for (const int side : {12, 6, 3}) {
      const auto cells = static_cast<size_t>(side * side);
      std::vector<float> map(columns * cells, -9);
      if (side == 6) {
        const float row[] = {0.5f, 0.5f, std::log(2.0f), std::log(2.0f), 4};
        for (size_t k = 0; k < 5; ++k) map[k * cells + 7] = row[k];
        map[6 * cells + 7] = 2;
      }
      c.add("level" + std::to_string(side), {1, static_cast<int64_t>(columns), side, side}, map,
            "Convolution");
      if (linear) c.facts.outputs.back().attributes["linear"] = "1";
    }
    return c;
  };
  for (const size_t columns : {7, 85}) {
    const Case c = with(columns, true);
    EXPECT_EQ(c.choose().name, "yolox") << columns;
    const Results results = c.decode();
    ASSERT_EQ(results.detections.size(), 1u) << columns;
    EXPECT_EQ(results.detections[0].label_id, 1);
    EXPECT_NEAR(results.detections[0].confidence, 0.865, 0.001);
    EXPECT_NEAR(results.detections[0].x_min, 8, 0.01);
  }
  EXPECT_NE(with(85, false).choose().name, "yolox");
  EXPECT_NE(with(24, true).choose().name, "yolox");   // three anchors of three classes
  EXPECT_NE(with(144, true).choose().name, "yolox");  // 64 numbers for the sides
}

TEST(Choice, AnObjectnessIsNoClass) {
  std::vector<float> table = cells_of(25, 14, 0.9f);
  Case c(96);
  c.add("output", {1, 25, 189}, table);
  EXPECT_EQ(c.choose().name, "yolov8");
  EXPECT_EQ(c.decode().contradiction, "");
  table[4 * kCells + 5] = 0.9f;  // the first class is high where the tenth is
  Case turned(96);
  turned.add("output", {1, 25, 189}, table);
  EXPECT_NE(turned.decode().contradiction.find("the head is rather yolox"), std::string::npos);
  for (size_t i = 0; i < kCells; ++i) table[4 * kCells + i] = 1;  // v6's
  Case constant(96);
  constant.add("output", {1, 25, 189}, table);
  EXPECT_NE(constant.decode().contradiction.find("in most cells"), std::string::npos);
}

// Corners, score and number of a class, as DeepStream-Yolo's exporters write them, with swapped axes.
TEST(Choice, CornersWithTheNumberOfAClassAreNoTwoClasses) {
  std::vector<float> table(6 * kCells, 0);
  const auto cell = [&](size_t i, std::initializer_list<float> values) {
    size_t k = 0;
    for (const float value : values) table[k++ * kCells + i] = value;
  };
  for (size_t i = 0; i < kCells; ++i) cell(i, {4, 5, 30, 40, 0.01f, 0});
  cell(7, {20, 30, 60, 90, 0.9f, 0});
  Case c(96);
  c.add("output", {1, 6, 189}, table);
  EXPECT_EQ(c.choose().name, "yolov8");
  EXPECT_NE(c.decode().contradiction.find("post-process=yolox reads them"), std::string::npos);
  Results read;
  run_head(choose_head(c.facts, "yolox"), c.facts, c.tensors, {}, false, read);
  EXPECT_EQ(read.contradiction, "");
  ASSERT_EQ(read.detections.size(), 1u);
  EXPECT_FLOAT_EQ(read.detections[0].x_min, 20);
  EXPECT_FLOAT_EQ(read.detections[0].y_max, 90);
  EXPECT_EQ(read.detections[0].label_id, 0);
  // Two classes, of which one is in no cell, are two classes where a size is below a centre.
  cell(7, {60, 50, 30, 20, 0.9f, 0});
  Case two(96);
  two.add("output", {1, 6, 189}, table);
  EXPECT_EQ(two.decode().contradiction, "");
  EXPECT_EQ(two.decode().detections.size(), 1u);
}

TEST(Choice, ASwappedTableIsNoPoseOfManyPoints) {
  Case c(96);
  c.facts.model_info = {{"model_type", "YOLO"}};
  c.facts.labels = {"a", "b"};
  c.add("output0", {1, 7, 300});
  EXPECT_EQ(c.choose().name, "none");
}

TEST(Choice, ANamedHeadSaysAlikeOutputs) {
  Case c(64);
  for (const char* name : {"1", "2"})
    c.add(name, {1, 1, 64, 64}, std::vector<float>(64 * 64, 0.01f), "Sigmoid");
  EXPECT_TRUE(says(choose_head(c.facts, "text-detection"), "set outputs=2"));
}

// The last of OpenPose's stages counts.
TEST(Choice, TheLastStageIsRead) {
  Case c(64);
  for (const float level : {0.9f, 0.0f}) {
    c.add("heat" + std::to_string(level), {1, 19, 8, 8}, level);
    c.add("paf" + std::to_string(level), {1, 38, 8, 8}, level);
  }
  EXPECT_EQ(c.choose().name, "openpose");
  EXPECT_TRUE(c.decode().detections.empty());
}

// YOLOP: rows of boxes and classes of pixels.
TEST(Choice, ReadsBoxesAndMapsOfOneNetwork) {
  const auto rows = static_cast<size_t>(3 * (8 * 8 + 4 * 4 + 2 * 2));
  std::vector<float> boxes(6 * rows, 0.01f);
  const float object[] = {32, 24, 20, 10, 0.9f, 0.9f};
  std::copy(std::begin(object), std::end(object), boxes.begin() + 60);
  Case c(64);
  c.add("det_out", {1, static_cast<int64_t>(rows), 6}, boxes);
  std::vector<float> classes(2 * 64 * 64, 0.2f);
  std::fill(classes.begin() + 64 * 64 + 64 * 32, classes.end(), 0.8f);
  c.add("drive_area_seg", {1, 2, 64, 64}, classes);
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u) << c.choose().name;
  EXPECT_NEAR(results.detections[0].confidence, 0.81f, 1e-5f);
  ASSERT_EQ(results.maps.size(), 1u);
  EXPECT_EQ(results.maps[0].classes[0], 0);
  EXPECT_EQ(results.maps[0].classes[64 * 40], 1);
  ASSERT_TRUE(c.choose().picture);
  EXPECT_EQ(c.choose().picture->resize, ResizeMode::letterbox);
}

// PP-OCR's English networks have 95 characters, the blank before them and a space after them.
TEST(Choice, EnglishLinesAreReadWithoutADictionary) {
  constexpr int64_t kSteps = 20, kClasses = 97;
  std::vector<float> scores(kSteps * kClasses, 0);
  const size_t text[] = {18, 11, 0, 11, 95, 80, 93, 96};  // A : : space ! . space
  for (size_t step = 0; step < kSteps; ++step)
    scores[step * kClasses + (step < std::size(text) ? text[step] : 0)] = 1;
  Case c(320);
  c.facts.height = 32;
  c.add("softmax_2.tmp_0", {1, kSteps, kClasses}, scores, "Softmax");
  EXPECT_EQ(c.choose().name, "text-recognition");
  ASSERT_EQ(c.choose().warnings.size(), 1u);
  EXPECT_NE(c.choose().warnings[0].find("PP-OCR's English"), std::string::npos);
  ASSERT_EQ(c.decode().texts.size(), 1u);
  EXPECT_EQ(c.decode().texts[0].text, "A:: !. ");
  // Other converters' outputs of as many classes are of other alphabets.
  Case other(320);
  other.facts.height = 32;
  other.add("logits", {1, kSteps, kClasses}, scores);
  EXPECT_NE(other.choose().name, "text-recognition");
}

// The sides of a picture tell persons and faces, whose networks PyTorch's libraries train.
TEST(Choice, VectorsOfPersonsAndFacesTakeTheirLibrariesPictures) {
  const std::vector<float> imagenet = {123.675f, 116.28f, 103.53f};
  for (const auto& [width, height, mean] : {std::tuple(128, 256, imagenet),
                                            {64, 128, imagenet},
                                            {128, 64, imagenet},
                                            {128, 384, imagenet},
                                            {112, 112, std::vector<float>{127.5f}},
                                            {160, 160, std::vector<float>{127.5f}}}) {
    Case c(width);
    c.facts.height = height;
    c.add("output", {1, 512});
    const HeadChoice choice = c.choose();
    EXPECT_EQ(choice.name, "embedding");
    ASSERT_TRUE(choice.picture) << width << "x" << height;
    EXPECT_EQ(choice.picture->mean, mean) << width << "x" << height;
    EXPECT_EQ(choice.picture->color, ColorOrder::rgb);
  }
  Case square(208);
  square.add("output", {1, 512});
  EXPECT_FALSE(square.choose().picture);
}

// Keras' classifiers end in a softmax, and take shares of 255.
TEST(Choice, KerasClassesTakeSharesOfWhite) {
  Case c(50);
  c.facts.channels_last = true;
  c.add("digit_0", {1, 10}, std::vector<float>(10, 0.1f), "Softmax");
  c.add("digit_1", {1, 10}, std::vector<float>(10, 0.1f), "Softmax");
  ASSERT_TRUE(c.choose().picture);
  EXPECT_EQ(c.choose().picture->scale, std::vector<float>{255});
  EXPECT_TRUE(c.choose().picture->task);
  c.facts.channels_last = false;
  EXPECT_FALSE(c.choose().picture);
}

// Face-AntiSpoofing's files have its name, and their outputs no softmax.
TEST(Choice, SpoofsAreToldByTheNameOfTheFile) {
  for (const auto& [name, classes, label] : {std::tuple("AntiSpoofing_bin_1.5_128", 2, "spoof"),
                                             {"AntiSpoofing_print-replay_128", 3, "replay"}}) {
    Case c(128);
    c.facts.name = name;
    std::vector<float> logits(static_cast<size_t>(classes), 0);
    logits.back() = 4;
    c.add("output", {1, classes}, logits);
    EXPECT_EQ(c.choose().name, "classification");
    ASSERT_TRUE(c.choose().picture);
    EXPECT_EQ(c.choose().picture->resize, ResizeMode::letterbox);
    ASSERT_EQ(c.decode().classifications.size(), 1u);
    EXPECT_EQ(c.decode().classifications[0].label, label);
    c.facts.name = "model";
    EXPECT_EQ(c.choose().name, "none");
  }
}

TEST(Choice, AsksForTheDictionary) {
  Case c(94);
  c.add("decode", {1, 88, 1, 1}, std::vector<float>(88, -1), "CTCGreedyDecoder");
  const HeadChoice choice = c.choose();
  EXPECT_EQ(choice.name, "none");
  EXPECT_NE(choice.reason.find("labels-file"), std::string::npos) << choice.reason;
}

TEST(Choice, NamesOfClassScoresSuffice) {
  Case c(64);
  c.add("logits", {1, 7}, {0, 0, 6, 0, 0, 0, 0});
  EXPECT_EQ(c.choose().name, "classification");
  ASSERT_EQ(c.decode().classifications.size(), 1u);
  EXPECT_EQ(c.decode().classifications[0].label_id, 2);
}

TEST(Choice, TheBestAnswersOfAClassifierAreAsManyAsItStates) {
  Case c(64);
  c.facts.model_info = {{"model_type", "Classification"}, {"topk", "3"}};
  c.add("logits", {1, 5}, {1, 4, 0, 3, 2});
  const auto found = c.decode().classifications;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].label_id, 1);
  EXPECT_EQ(found[1].label_id, 3);
  EXPECT_EQ(found[2].label_id, 4);
  EXPECT_GT(found[1].confidence, found[2].confidence);
}

const char* const kTree =
    R"({"cls_heads_info": {"num_multiclass_heads": 2, "num_multilabel_classes": 2,
  "all_groups": [["animal", "vehicle"], ["cat", "dog"], ["dirty"], ["wet"]],
  "label_to_idx": {"animal": 0, "vehicle": 1, "cat": 2, "dog": 3, "dirty": 4, "wet": 5}},
  "label_tree_edges": [["cat", "animal"], ["dog", "animal"], ["wet", "dirty"]]})";

Case tree_of(const std::vector<float>& logits) {
  Case c(64);
  c.facts.model_info = {
      {"model_type", "Classification"}, {"hierarchical", "True"}, {"hierarchical_config", kTree}};
  c.add("logits", {1, 6}, logits);
  return c;
}

TEST(ClassTree, EachGroupAnswersBelowItsParent) {
  const Case c = tree_of({3, 0, -1, 4, 2, -5});
  EXPECT_EQ(c.choose().name, "classification");
  const auto found = c.decode().classifications;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].label, "animal");
  EXPECT_EQ(found[0].attribute, "logits");
  EXPECT_NEAR(found[0].confidence, 1 / (1 + std::exp(-3.0)), 1e-5);
  EXPECT_EQ(found[1].label, "dog");
  EXPECT_EQ(found[1].attribute, "animal");
  EXPECT_EQ(found[1].label_id, 3);
  EXPECT_EQ(found[2].label, "dirty");
}

TEST(ClassTree, LeavesOutWhatLacksItsParent) {
  const auto found = tree_of({0, 3, -1, 4, -5, 5}).decode().classifications;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].label, "vehicle");
}

TEST(ClassTree, RefusesWhatCannotBe) {
  for (const char* text :
       {"no json", "{}", "[]", R"({"cls_heads_info": {"num_multiclass_heads": 9}})",
        R"({"cls_heads_info": {"num_multiclass_heads": 1, "all_groups": [[]],
                               "label_to_idx": {}}})"}) {
    ModelFacts facts;
    facts.model_info = {{"hierarchical", "True"}, {"hierarchical_config", text}};
    EXPECT_THROW(class_tree(facts), Error) << text;
  }
}

}  // namespace
}  // namespace clinfer
