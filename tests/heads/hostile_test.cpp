// Every head on outputs that hold anything: nothing worse than no objects comes of it, and values
// that contradict a head are not taken for objects.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "engine/heads/base/decoder.h"

namespace clinfer {
namespace {

OutputFacts output(std::string name, Shape shape, ElementType type = ElementType::f32,
                   std::string op = "Add") {
  return {std::move(name), {}, type, std::move(shape), std::move(op), {}};
}

ModelFacts facts_of(int width, int height, std::vector<OutputFacts> outputs) {
  ModelFacts facts;
  facts.width = width;
  facts.height = height;
  facts.outputs = std::move(outputs);
  return facts;
}

// Outputs that each head takes, at least when it is named.
std::vector<std::pair<std::string, ModelFacts>> every_head() {
  const auto levels = [](std::initializer_list<std::pair<const char*, int64_t>> kinds,
                         int per_cell) {
    std::vector<OutputFacts> outputs;
    for (const auto& [kind, columns] : kinds)
      for (const int64_t side : {8, 4, 2})
        outputs.push_back(
            output(kind + std::to_string(64 / side), {1, side * side * per_cell, columns}));
    return outputs;
  };
  OutputFacts region = output("region", {1, 21, 2, 2}, ElementType::f32, "RegionYolo");
  region.attributes = {
      {"anchors", "10,13,16,30,33,23"}, {"mask", "0,1,2"}, {"classes", "2"}, {"do_softmax", "0"}};
  const auto maps = [](int64_t channels) {
    return std::vector<OutputFacts>{output("a", {1, channels, 8, 8}),
                                    output("b", {1, channels, 4, 4}),
                                    output("c", {1, channels, 2, 2})};
  };
  std::vector<OutputFacts> fcos;
  for (const auto& [kind, channels] :
       std::vector<std::pair<const char*, int64_t>>{{"cls_", 3}, {"reg_", 4}, {"ctr_", 1}})
    for (const int64_t side : {8, 4, 2})
      fcos.push_back(output(kind + std::to_string(side), {1, channels, side, side}));
  const OutputFacts proto = output("proto", {1, 8, 16, 16});
  ModelFacts text = facts_of(320, 48, {output("out", {1, 40, 97}, ElementType::f32, "SoftMax")});
  text.labels.assign(95, "a");
  return {
      {"ssd", facts_of(64, 64, {output("out", {1, 1, 9, 7}, ElementType::f32, "DetectionOutput")})},
      {"boxes-scores",
       facts_of(64, 64, {output("boxes", {1, 40, 4}), output("scores", {1, 40, 5})})},
      {"boxes-picked", facts_of(64, 64,
                                {output("boxes", {1, 40, 4}), output("scores", {1, 3, 40}),
                                 output("picked", {30, 3}, ElementType::i64)})},
      {"boxes-labels",
       facts_of(64, 64, {output("boxes", {40, 5}), output("labels", {40}, ElementType::i64)})},
      {"yolov3", facts_of(64, 64, {region})},
      {"yolov4", facts_of(64, 64, maps(21))},
      {"yolov5", facts_of(64, 64, {output("out", {1, 252, 57})})},
      {"yolov8", facts_of(64, 64, {output("out", {1, 9, 84})})},
      {"yolov10", facts_of(64, 64, {output("out", {1, 30, 6})})},
      {"yolox", facts_of(64, 64, {output("out", {1, 84, 9})})},
      {"nanodet", facts_of(64, 64, levels({{"cls", 3}, {"dis", 32}}, 1))},
      {"yunet", facts_of(64, 64, levels({{"cls", 1}, {"obj", 1}, {"bbox", 4}, {"kps", 10}}, 1))},
      {"yolov8-pose", facts_of(64, 64, {output("out", {1, 56, 84})})},
      {"yolov8-seg", facts_of(64, 64, {output("out", {1, 15, 84}), proto})},
      {"yolov8-obb", facts_of(64, 64, {output("out", {1, 9, 84})})},
      {"yolov8-maps", facts_of(64, 64, maps(67))},
      {"yolov10-pose", facts_of(64, 64, {output("out", {1, 30, 57})})},
      {"yolov10-seg", facts_of(64, 64, {output("out", {1, 30, 14}), proto})},
      {"yolov10-obb", facts_of(64, 64, {output("out", {1, 30, 7})})},
      {"yolov7-rows", facts_of(64, 64, {output("out", {30, 7})})},
      {"named-rows", facts_of(64, 64, {output("batchno_classid_score_x1y1x2y2_landms", {30, 17})})},
      {"yolo-nas-rows", facts_of(64, 64, {output("out", {30, 7})})},
      {"paddle-rows",
       facts_of(64, 64, {output("out", {30, 6}), output("n", {1}, ElementType::i32)})},
      {"paddle-rows",
       facts_of(64, 64, {output("out", {30, 10}), output("n", {1}, ElementType::i32)})},
      {"boxes-scores-labels",
       facts_of(64, 64,
                {output("boxes", {1, 30, 4}), output("scores", {1, 30}),
                 output("labels", {1, 30}, ElementType::i64),
                 output("num", {1, 1}, ElementType::i32), output("masks", {30, 1, 28, 28})})},
      {"boxes-scores-labels",
       facts_of(64, 64,
                {output("a", {1, 30, 4}), output("b", {1, 30}), output("c", {1, 30}),
                 output("d", {1}), output("keypoints", {30, 17, 3})})},
      {"detr", facts_of(64, 64, {output("logits", {1, 60, 9}), output("pred_boxes", {1, 60, 4})})},
      {"rtdetr", facts_of(64, 64,
                          {output("labels", {1, 60, 9}), output("dets", {1, 60, 4}),
                           output("masks", {1, 60, 16, 16})})},
      {"detr-rows", facts_of(64, 64, {output("out", {1, 300, 84})})},
      {"scrfd", facts_of(64, 64, levels({{"score", 1}, {"bbox", 4}, {"kps", 10}}, 2))},
      {"retinaface", facts_of(64, 64,
                              {output("loc", {1, 168, 4}), output("conf", {1, 168, 2}),
                               output("landms", {1, 168, 10})})},
      {"ultraface",
       facts_of(64, 64, {output("boxes", {1, 235, 4}), output("scores", {1, 235, 2})})},
      {"centerface", facts_of(64, 64,
                              {output("a", {1, 1, 16, 16}), output("b", {1, 2, 16, 16}),
                               output("c", {1, 2, 16, 16}), output("d", {1, 10, 16, 16})})},
      {"blazeface", facts_of(128, 128, {output("r", {1, 896, 16}), output("c", {1, 896, 1})})},
      {"fcos", facts_of(64, 64, fcos)},
      {"fcos", facts_of(64, 64,
                        {output("cls_logits", {1, 84, 5}), output("bbox_regression", {1, 84, 4}),
                         output("bbox_ctrness", {1, 84, 1})})},
      {"centernet", facts_of(64, 64,
                             {output("hm", {1, 3, 16, 16}), output("wh", {1, 2, 16, 16}),
                              output("reg", {1, 2, 16, 16})})},
      {"ssd-anchors",
       facts_of(300, 300, {output("loc", {1, 8732, 4}), output("conf", {1, 8732, 21})})},
      {"retinanet",
       facts_of(128, 128,
                {output("regression", {1, 3069, 4}), output("classification", {1, 3069, 3})})},
      {"efficientdet",
       facts_of(128, 128,
                {output("regression", {1, 3069, 4}), output("classification", {1, 3069, 90})})},
      {"detectnet",
       facts_of(64, 64,
                {output("output_cov", {1, 3, 4, 4}), output("output_bbox", {1, 12, 4, 4})})},
      {"ssd-anchors",
       facts_of(260, 260, {output("loc", {1, 5972, 4}), output("conf", {1, 5972, 2})})},
      {"dbface", facts_of(64, 64,
                          {output("hm", {1, 1, 16, 16}), output("tlrb", {1, 4, 16, 16}),
                           output("landmark", {1, 10, 16, 16})})},
      {"fastestdet", facts_of(64, 64, {output("out", {1, 85, 4, 4})})},
      {"yolo-fastestv2",
       facts_of(64, 64, {output("a", {1, 4, 4, 95}), output("b", {1, 2, 2, 95})})},
      {"lanes", facts_of(800, 288, {output("out", {1, 101, 56, 4})})},
      {"head-pose", facts_of(60, 60,
                             {output("angle_y_fc", {1, 1}), output("angle_p_fc", {1, 1}),
                              output("angle_r_fc", {1, 1})})},
      {"segmentation", facts_of(64, 64, {output("out", {1, 5, 64, 64})})},
      {"saliency", facts_of(64, 64, {output("saliency", {1, 1, 64, 64})})},
      {"depth", facts_of(64, 64, {output("predicted_depth", {1, 64, 64})})},
      {"anomaly", facts_of(64, 64, {output("anomaly_map", {1, 1, 64, 64})})},
      {"openpose", facts_of(64, 64, {output("a", {1, 38, 8, 8}), output("b", {1, 19, 8, 8})})},
      {"heatmaps", facts_of(64, 64, {output("out", {1, 17, 16, 16})})},
      {"simcc",
       facts_of(64, 64, {output("simcc_x", {1, 17, 128}), output("simcc_y", {1, 17, 128})})},
      {"movenet", facts_of(192, 192, {output("out", {1, 1, 17, 3})})},
      {"landmarks", facts_of(64, 64, {output("landmarks", {1, 10})})},
      {"mtcnn", facts_of(48, 48,
                         {output("box", {1, 4}), output("points", {1, 10}),
                          output("prob", {1, 2}, ElementType::f32, "SoftMax")})},
      {"mtcnn-proposals",
       facts_of(64, 64, {output("prob", {1, 2, 27, 27}), output("box", {1, 4, 27, 27})})},
      {"text-detection", facts_of(64, 64, {output("out", {1, 1, 64, 64})})},
      {"text-recognition", text},
      {"embedding", facts_of(64, 64, {output("embedding", {1, 256})})},
      {"classification", facts_of(64, 64, {output("p", {1, 9}, ElementType::f32, "SoftMax")})},
  };
}

Tensor tensor(Shape shape, const std::vector<float>& values) {
  return Tensor::of<float>(ElementType::f32, std::move(shape), values);
}

// Numbers of any kind; `kind` makes them more and more reasonable, so that they get further.
Tensor hostile(const OutputFacts& facts, std::mt19937& random, int kind) {
  Tensor floats = Tensor::allocate(ElementType::f32, facts.shape);
  auto* to = floats.mutable_data<float>();
  for (int64_t i = 0; i < floats.elements(); ++i) {
    const auto bits = static_cast<uint32_t>(random());
    if (kind == 0)
      std::memcpy(to + i, &bits, 4);
    else if (kind == 1)
      to[i] = bits % 7 == 0 ? std::numeric_limits<float>::quiet_NaN()
                            : static_cast<float>(bits % 2000) - 1000;
    else if (kind == 2)
      to[i] = static_cast<float>(bits % 1001) / 1000;
    else
      to[i] = bits % 11 == 0 ? std::numeric_limits<float>::infinity()
                             : static_cast<float>(bits % 101) / 100;
  }
  return facts.type == ElementType::f32 ? floats : floats.convert(facts.type);
}

void expect_sane(const Results& results) {
  for (const Detection& d : results.detections) {
    EXPECT_TRUE(std::isfinite(d.x_min) && std::isfinite(d.y_min) && d.x_max > d.x_min &&
                d.y_max > d.y_min);
    EXPECT_TRUE(d.confidence >= 0.5f && d.confidence <= 1.0f && d.label_id >= 0);
    if (d.mask != nullptr) {
      EXPECT_EQ(d.mask->values.size(),
                static_cast<size_t>(d.mask->columns) * static_cast<size_t>(d.mask->rows));
    }
  }
  if (!results.contradiction.empty()) {
    EXPECT_TRUE(results.detections.empty());
    EXPECT_FALSE(results.tensors.empty());
  }
}

TEST(HostileOutputs, NoHeadTakesThemForMoreThanTheyAre) {
  std::mt19937 random(11);
  for (const auto& [name, facts] : every_head()) {
    const HeadChoice head = choose_head(facts, name);
    for (int round = 0; round < 12; ++round) {
      std::vector<Tensor> outputs;
      for (const OutputFacts& of : facts.outputs) outputs.push_back(hostile(of, random, round % 4));
      Results results;
      run_head(head, facts, outputs, {}, false, results);
      SCOPED_TRACE(name);
      expect_sane(results);
    }
  }
}

TEST(HostileOutputs, AWrongNumberOfElementsIsAnErrorOrNothing) {
  std::mt19937 random(12);
  for (const auto& [name, facts] : every_head()) {
    const HeadChoice head = choose_head(facts, name);
    std::vector<Tensor> short_ones, none;
    for (const OutputFacts& of : facts.outputs) {
      OutputFacts shorter = of;
      shorter.shape.assign(of.shape.size(), 1);
      short_ones.push_back(hostile(shorter, random, 2));
    }
    for (const auto* outputs : {&short_ones, &none}) {
      Results results;
      try {
        run_head(head, facts, *outputs, {}, false, results);
        expect_sane(results);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::device_failed) << name;
      }
    }
  }
}

// Of numbers that are none nothing is concluded, and it is said where a head reads them.
TEST(HostileOutputs, NanIsNoObjectAndNoAnswer) {
  for (const auto& [name, facts] : every_head()) {
    const HeadChoice head = choose_head(facts, name);
    for (const ElementType type : {ElementType::f32, ElementType::f16}) {
      std::vector<Tensor> outputs;
      for (const OutputFacts& of : facts.outputs) {
        const auto elements = static_cast<size_t>(count(of.shape));
        const bool counts = !is_float(of.type);
        const std::vector<float> values(elements, counts ? 1 : std::nanf(""));
        outputs.push_back(tensor(of.shape, values).convert(counts ? of.type : type));
      }
      Results results;
      run_head(head, facts, outputs, {}, false, results);
      EXPECT_TRUE(results.detections.empty()) << name;
      EXPECT_TRUE(results.classifications.empty()) << name;
      EXPECT_TRUE(results.texts.empty()) << name;
      EXPECT_TRUE(results.embeddings.empty()) << name;
      EXPECT_NE(not_numbers(facts, outputs).find(" are NaN"), std::string::npos) << name;
    }
  }
}

TEST(HostileOutputs, ANanLeavesTheOtherClassesAsTheyAre) {
  const auto answer = [](const std::vector<float>& values) {
    const ModelFacts facts = facts_of(64, 64, {output("p", {1, 4})});
    Results results;
    run_head(choose_head(facts, "classification"), facts, std::vector{tensor({1, 4}, values)}, {},
             false, results);
    return results.classifications.at(0);
  };
  EXPECT_EQ(answer({std::nanf(""), 0.2f, 0.6f, 0.1f}).label_id, 2);
  EXPECT_FLOAT_EQ(answer({std::nanf(""), 0.2f, 0.6f, 0.1f}).confidence, 0.6f);
  EXPECT_FLOAT_EQ(answer({-200, 5, 5, std::nanf("")}).confidence, 0.5f);
}

TEST(HostileOutputs, EveryHeadIsAmongThem) {
  std::set<std::string> missing;
  for (const Head& head : heads()) missing.insert(head.name);
  for (const auto& [name, facts] : every_head()) missing.erase(name);
  EXPECT_TRUE(missing.empty()) << *missing.begin();
}

TEST(Contradiction, ScoresBeyondOneGiveTensorsInsteadOfObjects) {
  const ModelFacts facts = facts_of(64, 64, {output("out", {1, 3, 6})});
  const HeadChoice head = choose_head(facts, "auto");
  ASSERT_EQ(head.name, "yolov10");
  Results results;
  run_head(
      head, facts,
      std::vector{tensor({1, 3, 6}, {1, 1, 9, 9, 7, 0, 2, 2, 9, 9, 0.9f, 1, 0, 0, 0, 0, 0, 0})}, {},
      false, results);
  EXPECT_NE(results.contradiction.find("a score is 7"), std::string::npos) << results.contradiction;
  EXPECT_TRUE(results.detections.empty());
  ASSERT_EQ(results.tensors.size(), 1u);
  EXPECT_EQ(results.tensors[0].name, "out");
}

TEST(Contradiction, BoxesInsideOutAndBrokenClassNumbersAreSaid) {
  const ModelFacts facts = facts_of(64, 64, {output("out", {1, 2, 6})});
  const auto said = [&](const std::vector<float>& values) {
    Results results;
    run_head(choose_head(facts, "auto"), facts, std::vector{tensor({1, 2, 6}, values)}, {}, false,
             results);
    return results.contradiction;
  };
  EXPECT_NE(said({30, 30, 9, 9, 0.9f, 0, 40, 40, 9, 9, 0.9f, 0}).find("2 of 2 boxes"),
            std::string::npos);
  EXPECT_NE(said({1, 1, 9, 9, 0.9f, 0.5f, 1, 1, 9, 9, 0.8f, 0.25f}).find("class numbers"),
            std::string::npos);
  EXPECT_EQ(said({1, 1, 9, 9, 0.9f, 1, 30, 30, 9, 9, 0.9f, 1}), "");  // one of two
}

TEST(Contradiction, AHeadThatTenInferencesContradictIsDropped) {
  HeadTrust trust;
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(trust.note(true));
  EXPECT_FALSE(trust.dropped());
  EXPECT_TRUE(trust.note(true));
  EXPECT_TRUE(trust.dropped());
  EXPECT_EQ(trust.contradictions(), 10u);
  HeadTrust agreed;
  agreed.note(false);
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(agreed.note(true));
  EXPECT_FALSE(agreed.dropped());
}

TEST(Decisions, UnitsAreThoseOfTheFirstInferenceThatTells) {
  const ModelFacts facts = facts_of(100, 100, {output("out", {1, 2, 6})});
  const HeadChoice head = choose_head(facts, "auto");
  const auto run = [&](const std::vector<float>& values) {
    Results results;
    run_head(head, facts, std::vector{tensor({1, 2, 6}, values)}, {}, false, results);
    return results;
  };
  EXPECT_EQ(run({10, 10, 60, 60, 0.9f, 0, 20, 20, 40, 40, 0.8f, 0}).detections.size(), 2u);
  // Pixels from then on: a box of one pixel is no share of the picture.
  const Results tiny = run({0.5f, 0.5f, 1.5f, 1.5f, 0.9f, 0, 0, 0, 0, 0, 0, 0});
  ASSERT_EQ(tiny.detections.size(), 1u);
  EXPECT_FLOAT_EQ(tiny.detections[0].x_max, 1.5f);
}

// Planes of halves and of floats are scanned as integers, rows of floats one by one.
TEST(Yolov8, FindsTheSameInHalvesInFloatsAndInRows) {
  constexpr size_t kCells = 84, kColumns = 9;
  ModelFacts planes = facts_of(64, 64, {output("out", {1, kColumns, kCells})}),
             rows = facts_of(64, 64, {output("out", {1, kCells, kColumns})});
  planes.labels = rows.labels = {"a", "b", "c", "d", "e"};
  std::mt19937 random(13);
  for (int round = 0; round < 20; ++round) {
    std::vector<float> by_plane(kCells * kColumns), by_row(kCells * kColumns);
    for (size_t i = 0; i < kCells; ++i)
      for (size_t k = 0; k < kColumns; ++k) {
        const auto number = static_cast<float>(random() % 1024);  // exact in 16 bits
        float value = k < 4 ? number / 16 : number / 1024;
        if (random() % 16 == 0)
          value = k < 4 || random() % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -0.0f;
        by_plane[k * kCells + i] = by_row[i * kColumns + k] = value;
      }
    const auto found = [&](const ModelFacts& facts, const Tensor& values) {
      Results results;
      run_head(choose_head(facts, "yolov8"), facts, std::vector{values}, {}, false, results);
      EXPECT_EQ(results.contradiction, "");
      std::vector<std::array<float, 6>> all;
      for (const Detection& one : results.detections)
        all.push_back({one.x_min, one.y_min, one.x_max, one.y_max, one.confidence,
                       static_cast<float>(one.label_id)});
      return all;
    };
    const Tensor floats = tensor({1, kColumns, kCells}, by_plane);
    const auto want = found(planes, floats);
    EXPECT_GT(want.size(), 3u);
    EXPECT_EQ(found(planes, floats.convert(ElementType::f16)), want);
    EXPECT_EQ(found(rows, tensor({1, kCells, kColumns}, by_row)), want);
  }
}

TEST(Labels, CountFromOneWhereTheModelDoes) {
  ModelFacts facts =
      facts_of(64, 64,
               {output("detection_boxes", {1, 2, 4}), output("detection_scores", {1, 2}),
                output("detection_classes", {1, 2}), output("num_detections", {1})});
  facts.labels = {"person", "car"};
  facts.own_labels = false;
  const auto first = [&] {
    Results results;
    run_head(choose_head(facts, "auto"), facts,
             std::vector{tensor({1, 2, 4}, {0.1f, 0.2f, 0.5f, 0.8f, 0, 0, 0, 0}),
                         tensor({1, 2}, {0.9f, 0}), tensor({1, 2}, {1, 0}), tensor({1}, {1})},
             {}, false, results);
    return results.detections.at(0);
  };
  EXPECT_EQ(first().label_id, 1);
  EXPECT_EQ(first().label, "person");
  EXPECT_FLOAT_EQ(first().x_min, 12.8f);  // y comes first
  EXPECT_FLOAT_EQ(first().y_min, 6.4f);
  facts.labels = {"background", "person", "car"};
  EXPECT_EQ(first().label, "person");
}

// SSD's class 0 is the background.
TEST(Labels, OfRowsOfSevenMayLeaveOutTheBackground) {
  ModelFacts facts =
      facts_of(64, 64, {output("out", {1, 1, 2, 7}, ElementType::f32, "DetectionOutput")});
  facts.outputs[0].attributes = {{"num_classes", "3"}};
  const auto label_of_one = [&](std::vector<std::string> labels, size_t warnings) {
    facts.labels = std::move(labels);
    const HeadChoice head = choose_head(facts, "auto");
    EXPECT_EQ(head.name, "ssd");
    EXPECT_EQ(head.warnings.size(), warnings);
    Results results;
    run_head(head, facts,
             std::vector{tensor({1, 1, 2, 7}, {0, 1, 0.9f, 0.1f, 0.1f, 0.5f, 0.5f,  //
                                               -1, 0, 0, 0, 0, 0, 0})},
             {}, false, results);
    return results.detections.at(0).label;
  };
  EXPECT_EQ(label_of_one({"person", "car"}, 0), "person");
  EXPECT_EQ(label_of_one({"", "person", "car"}, 0), "person");
  EXPECT_EQ(label_of_one({"person"}, 1), "") << "they may be another model's";
  facts.outputs[0].attributes["background_label_id"] = "2";
  EXPECT_EQ(label_of_one({"person", "car"}, 0), "car") << "the background is last";
}

}  // namespace
}  // namespace clinfer
