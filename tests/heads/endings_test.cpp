// Ends of networks that people export themselves: raw maps of faces, a lone sigmoid, a softmax in
// logarithms, anchors as an output, characters in steps, intermediate maps beside the answer.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/heads/files/beside.h"
#include "tests/heads/outputs_case.h"
#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

using test::OutputsCase;

// Three maps [1,3,h,w,16] of YOLO5Face with one face at the anchor of 73x105 in row 2, column 3 of
// the middle map.
OutputsCase faces_in_maps(bool squashed) {
  OutputsCase c(160, 160);
  const float low = squashed ? 0.0f : -9.0f, half = squashed ? 0.5f : 0.0f,
              high = squashed ? 1.0f : 9.0f;
  for (const int64_t side : {20, 10, 5}) {
    std::vector<float> values(static_cast<size_t>(3 * side * side * 16), low);
    if (side == 10) {
      float* cell = values.data() + ((2 * 10 + 2) * 10 + 3) * 16;
      for (size_t k = 0; k < 4; ++k) cell[k] = half;
      cell[4] = cell[15] = high;
      for (size_t k = 0; k < 10; ++k) cell[5 + k] = k % 2 ? -0.1f : 0.2f;
    }
    c.add("stride_" + std::to_string(160 / side), {1, 3, side, side, 16}, values, "Transpose");
  }
  return c;
}

TEST(Endings, FacesWithPointsInRawMaps) {
  for (const bool squashed : {false, true}) {
    const OutputsCase c = faces_in_maps(squashed);
    EXPECT_EQ(c.choose().name, "yolov5");
    EXPECT_EQ(c.choose().warnings.size(), 2u);  // the anchors, and the reading of 16 numbers
    const Results results = c.decode();
    ASSERT_EQ(results.detections.size(), 1u) << squashed;
    const Detection& face = results.detections[0];
    EXPECT_EQ(face.label_id, 0);
    EXPECT_NEAR((face.x_min + face.x_max) / 2, 3.5 * 16, 0.1);
    EXPECT_NEAR(face.x_max - face.x_min, 73, 0.5);
    ASSERT_EQ(face.landmarks.size(), 5u);
    EXPECT_NEAR(face.landmarks[4].x, 0.2 * 73 + 3 * 16, 0.1);
    EXPECT_NEAR(face.landmarks[4].y, -0.1 * 105 + 2 * 16, 0.1);
  }
}

// With as many labels, the numbers after the objectness are classes.
TEST(Endings, ElevenLabelsMakeClassesOfTheNumbersOfFaces) {
  OutputsCase c = faces_in_maps(false);
  for (int i = 0; i < 11; ++i) c.facts.labels.push_back("class " + std::to_string(i));
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 10);
  EXPECT_TRUE(results.detections[0].landmarks.empty());
}

TEST(Endings, OneNumberOfASigmoidTellsTwoClassesApart) {
  OutputsCase c(256, 256);
  c.facts.channels_last = true;
  c.add("dense_1", {1, 1}, {0.2f}, "Sigmoid");
  EXPECT_EQ(c.choose().name, "classification");
  EXPECT_EQ(c.choose().fit, Fit::possible);  // it may be a measure
  EXPECT_TRUE(c.choose().attach_tensors);
  Results results = c.decode();
  ASSERT_EQ(results.classifications.size(), 1u);
  EXPECT_EQ(results.classifications[0].label_id, 0);
  EXPECT_NEAR(results.classifications[0].confidence, 0.8, 1e-5);

  c.facts.labels = {"cat", "dog"};
  EXPECT_EQ(c.choose().fit, Fit::certain);
  c.tensors[0] = Tensor::of<float>(ElementType::f32, {1, 1}, std::vector<float>{0.9f});
  results = c.decode();
  ASSERT_EQ(results.classifications.size(), 1u);
  EXPECT_EQ(results.classifications[0].label, "dog");

  // The absence of the only class is no class.
  c.facts.labels = {"fire"};
  EXPECT_EQ(c.decode().classifications.at(0).label, "fire");
  c.tensors[0] = Tensor::of<float>(ElementType::f32, {1, 1}, std::vector<float>{0.2f});
  EXPECT_TRUE(c.decode().classifications.empty());

  c.tensors[0] = Tensor::of<float>(ElementType::f32, {1, 1}, std::vector<float>{3});
  EXPECT_FALSE(c.decode().contradiction.empty());
}

TEST(Endings, OneNumberWithoutASigmoidIsNoClass) {
  OutputsCase c(224, 224);
  c.add("score", {1, 1}, {0.2f});
  EXPECT_EQ(c.choose().name, "none");
}

TEST(Endings, LogarithmsOfASoftmaxAreClassScores) {
  OutputsCase c(224, 224);
  c.add("output", {1, 2}, {std::log(0.1f), std::log(0.9f)}, "LogSoftmax");
  EXPECT_EQ(c.choose().name, "classification");
  const Results results = c.decode();
  ASSERT_EQ(results.classifications.size(), 1u);
  EXPECT_EQ(results.classifications[0].label_id, 1);
  EXPECT_NEAR(results.classifications[0].confidence, 0.9, 1e-4);

  OutputsCase many(224, 224);
  many.add("output", {1, 512}, {}, "LogSoftmax");
  EXPECT_EQ(many.choose().name, "classification");
}

TEST(Endings, VectorsOfTorchvisionsSizesAreAGuess) {
  OutputsCase c(224, 224);
  c.add("output", {1, 15}, {}, "Add");
  EXPECT_EQ(c.choose().name, "classification");
  EXPECT_EQ(c.choose().fit, Fit::possible);
  EXPECT_TRUE(c.choose().attach_tensors);
  EXPECT_EQ(c.choose().picture->mean[0], 123.675f);
  EXPECT_FALSE(c.choose().picture->resize);  // people stretch or crop
  c.facts.channels = 1;
  EXPECT_EQ(c.choose().name, "none");
  c.facts.channels = 3;
  c.facts.width = c.facts.height = 112;
  EXPECT_EQ(c.choose().name, "none");
}

TEST(Endings, MapsOnTheWayToTheAnswerAreLeftOut) {
  OutputsCase c(28, 28);
  std::vector<float> scores(10, 0);
  scores[7] = 5;
  c.add("output", {1, 10}, scores);
  c.add("conv1", {1, 16, 28, 28}, {});
  c.add("pool1", {1, 16, 14, 14}, {});
  c.add("conv2", {1, 32, 7, 7}, {});
  EXPECT_EQ(c.choose().name, "classification");
  EXPECT_EQ(c.decode().classifications.at(0).label_id, 7);

  // Those of a detector are smaller than the picture.
  OutputsCase boxes(64, 64);
  boxes.add("vector", {1, 512}, {});
  for (const int64_t side : {8, 4, 2})
    boxes.add("map" + std::to_string(side), {1, 255, side, side}, {}, "Convolution");
  EXPECT_NE(boxes.choose().name, "embedding");

  // A map of classes beside a vector is an answer itself.
  OutputsCase map(64, 64);
  map.add("classes", {1, 10}, scores);
  map.add("map", {1, 21, 64, 64}, {}, "SoftMax");
  EXPECT_NE(map.choose().name, "classification");
}

TEST(Endings, AnchorsThatTheNetworkGives) {
  OutputsCase c(100, 200);
  c.add("classes_softmax", {1, 3, 2}, {0.9f, 0.1f, 0.2f, 0.8f, 0.7f, 0.3f}, "SoftMax");
  c.add("bboxes_concat", {1, 3, 4}, {0, 0, 0, 0, 0.1f, 0.2f, -0.1f, 0, 0, 0, 0, 0}, "Concat");
  c.add("anchors_concat", {1, 3, 4}, {0, 0, 1, 1, 0.2f, 0.2f, 0.6f, 0.7f, 0.5f, 0.5f, 1, 1},
        "Concat");
  EXPECT_EQ(c.choose().name, "ssd-anchors");
  const Results results = c.decode();
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_EQ(results.detections[0].label_id, 1);
  EXPECT_NEAR(results.detections[0].x_min, 24, 1e-3);
  EXPECT_NEAR(results.detections[0].y_min, 60, 1e-3);
  EXPECT_NEAR(results.detections[0].x_max, 56, 1e-3);
  EXPECT_NEAR(results.detections[0].y_max, 140, 1e-3);

  // How others move their anchors is not known, so that nothing is read as boxes.
  OutputsCase other(100, 200);
  other.add("scores", {1, 30, 2}, {}, "SoftMax");
  other.add("boxes", {1, 30, 4}, {});
  other.add("anchors", {1, 30, 4}, {});
  EXPECT_EQ(other.choose().name, "none");
}

// Priors of 64x64 by strides of 8, 16 and 32 from `least` pixels on, ten of which see one plate.
OutputsCase plate_by(float least) {
  constexpr float kX = 30, kY = 34, kWidth = 24, kHeight = 9;
  std::vector<float> loc, conf, points;
  int seen = 0;
  float side = least;
  for (const int stride : {8, 16, 32}) {
    for (int y = 0; y < 64 / stride; ++y)
      for (int x = 0; x < 64 / stride; ++x)
        for (const float prior : {side, 2 * side}) {
          const float px = (static_cast<float>(x) + 0.5f) * static_cast<float>(stride),
                      py = (static_cast<float>(y) + 0.5f) * static_cast<float>(stride);
          const bool near = std::fabs(px - kX) < 16 && std::fabs(py - kY) < 10 && seen < 10;
          seen += near;
          conf.insert(conf.end(), {near ? 0.1f : 0.9f, near ? 0.9f : 0.1f});
          for (const float v : {(kX - px) / prior * 10, (kY - py) / prior * 10,
                                std::log(kWidth / prior) * 5, std::log(kHeight / prior) * 5})
            loc.push_back(v);
          for (int k = 0; k < 4; ++k)
            points.insert(points.end(), {(kX - px) / prior * 10, (kY - py) / prior * 10});
        }
    side *= 4;
  }
  OutputsCase c(64, 64);
  c.add("loc", {1, 168, 4}, loc, "Concat");
  c.add("conf", {1, 168, 2}, conf, "SoftMax");
  c.add("landms", {1, 168, 8}, points, "Concat");
  return c;
}

TEST(Endings, SizesOfThePriorsOfPlates) {
  for (const float least : {16.0f, 24.0f, 12.0f}) {
    const OutputsCase c = plate_by(least);
    EXPECT_EQ(c.choose().name, "retinaface");
    EXPECT_TRUE(c.choose().attach_tensors);
    const Results results = c.decode();
    ASSERT_EQ(results.detections.size(), 1u) << least;
    EXPECT_NEAR(results.detections[0].x_min, 18, 0.1) << least;
    EXPECT_NEAR(results.detections[0].y_max, 38.5, 0.1) << least;
    EXPECT_NEAR(results.detections[0].landmarks.at(0).x, 30, 0.1) << least;
  }
}

TEST(Endings, StepsOfASoftmaxAreCharactersAndNoBoxes) {
  OutputsCase c(160, 60);
  c.add("output", {1, 40, 31}, {}, "SoftMax");
  EXPECT_EQ(c.choose().name, "none");
  EXPECT_NE(c.choose().reason.find("set labels-file to the dictionary"), std::string::npos);
  EXPECT_EQ(c.choose().reason.find("detr-rows reads"), std::string::npos);

  // So are those of lines of any width.
  OutputsCase line(448, 64);
  line.add("387", {56, 1, 8210}, {});
  EXPECT_EQ(line.choose().reason.find("set labels-file"), std::string::npos);
  line.facts.open_width = true;
  EXPECT_NE(line.choose().reason.find("set labels-file"), std::string::npos);
}

TEST(Endings, GrayLinesOfTextAreTakenAsCrnnDoes) {
  OutputsCase c(100, 32);
  c.add("output", {26, 1, 3}, {}, "SoftMax");
  c.facts.labels = {"a", "b"};
  c.facts.model_info["model_type"] = "text_recognition";
  c.facts.channels = 1;
  ASSERT_TRUE(c.choose("text-recognition").picture);
  EXPECT_EQ(c.choose("text-recognition").picture->mean, std::vector<float>{127.5f});
  EXPECT_TRUE(c.choose("text-recognition").picture->task);
  c.facts.channels_last = true;
  EXPECT_FALSE(c.choose("text-recognition").picture);
}

TEST(Endings, KerasHasTheBlankLast) {
  OutputsCase c(160, 60);
  c.facts.channels_last = true;
  std::vector<float> steps(40 * 4, 0);
  for (size_t i = 0; i < 40; ++i) steps[i * 4 + 3] = 1;
  steps[3] = 0, steps[0] = 1;                  // a
  steps[5 * 4 + 3] = 0, steps[5 * 4 + 2] = 1;  // c
  c.add("output", {1, 40, 4}, steps, "SoftMax");
  c.facts.labels = {"a", "b", "c"};
  Results results = c.decode();
  ASSERT_EQ(results.texts.size(), 1u);
  EXPECT_EQ(results.texts[0].text, "ac");
  EXPECT_FALSE(c.choose().warnings.empty());
  EXPECT_FALSE(c.choose().picture);  // PP-OCR's networks have the channels first

  // An empty name that is the first of all classes is the blank.
  c.facts.labels = {"", "x", "y", "z"};
  results = c.decode();
  ASSERT_EQ(results.texts.size(), 1u);
  EXPECT_EQ(results.texts[0].text, "zyz");
}

TEST(Endings, ChinasPlatesOfCrnnPlateRecognition) {
  OutputsCase c(168, 48);
  std::vector<float> steps(21 * 78, 0);
  for (size_t i = 0; i < 21; ++i) steps[i * 78] = 1;
  const size_t text[] = {12, 52, 42, 77};  // 浙 A 0 品
  for (size_t i = 0; i < std::size(text); ++i) steps[3 * i * 78 + text[i]] = 9;
  c.add("output", {1, 21, 78}, steps, "Transpose");
  EXPECT_EQ(c.choose().picture->family, "crnn_plate_recognition");
  EXPECT_FALSE(c.choose().warnings.empty());
  const Results results = c.decode();
  ASSERT_EQ(results.texts.size(), 1u);
  EXPECT_EQ(results.texts[0].text, "浙A0品");
}

TEST(Endings, FakeFacesOfMinivision) {
  OutputsCase c(80, 80);
  c.facts.name = "2.7_80x80_MiniFASNetV2";
  c.add("output", {1, 3}, {1, 4, 2});
  EXPECT_EQ(c.choose().picture->family, "Silent-Face-Anti-Spoofing");
  EXPECT_EQ(c.decode().classifications.at(0).label, "real");
  c.facts.name = "model";
  EXPECT_EQ(c.choose().name, "none");
}

TEST(Endings, DescriptorsAreNoForeground) {
  OutputsCase c(256, 256);
  c.add("descriptors", {1, 64, 32, 32}, {});
  c.add("keypoint_logits", {1, 65, 32, 32}, {});
  c.add("reliability", {1, 1, 32, 32}, {}, "Sigmoid");
  EXPECT_EQ(c.choose().name, "none");
  EXPECT_EQ(c.choose().sizes, Sizes::any);
}

TEST(Endings, TwoPlanesOfAGrayPictureMayBeColours) {
  OutputsCase c(256, 256);
  c.add("output", {1, 2, 256, 256}, {}, "Sigmoid");
  EXPECT_EQ(c.choose().fit, Fit::likely);
  c.facts.channels = 1;
  EXPECT_EQ(c.choose().fit, Fit::possible);
  EXPECT_TRUE(c.choose().attach_tensors);
}

TEST(Endings, NetworksOfVideoCallsBySize) {
  OutputsCase c(256, 144);
  c.facts.channels_last = true;
  c.add("segment_back", {1, 144, 256, 1}, {}, "Sigmoid");
  EXPECT_EQ(c.choose().picture->family, "MediaPipe's selfie segmentation");
  c.facts.channels_last = false;
  EXPECT_NE(c.choose().picture->family, "MediaPipe's selfie segmentation");
}

// mltu writes the characters of its recognisers beside them.
TEST(Endings, CharactersOfMltu) {
  const TemporaryFolder folder;
  const std::string model = folder.write("model.onnx", "x");
  folder.write("configs.yaml", "height: 32\nmax_text_length: 21\nvocab: r/,s#\"é:;g\nwidth: 128\n");
  const BesideFacts facts = read_beside(model, 128, 32);
  EXPECT_EQ(facts.labels, (std::vector<std::string>{"r", "/", ",", "s", "#", "\"", "é", ":", ";",
                                                    "g", "<blank>"}));
  EXPECT_EQ(facts.info.at("model_type"), "text_recognition");
  EXPECT_EQ(facts.info.at("color_space"), "BGR");
  // A file of that name without them is another's.
  folder.write("configs.yaml", "vocab: abc\n");
  EXPECT_TRUE(read_beside(model, 128, 32).labels.empty());
}

// Four classes are as many as the corners of a box, so that either output may be the scores.
TEST(Endings, BoxesOfFourClassesThatComeFirst) {
  for (const std::string op : {"Concat", "Sigmoid"}) {
    OutputsCase c(224, 224);
    std::vector<float> boxes(1029 * 4), scores(4 * 1029);
    for (size_t i = 0; i < 1029; ++i)
      for (size_t k = 0; k < 4; ++k) boxes[i * 4 + k] = k < 2 ? 20.0f : 80.0f;
    scores[2 * 1029 + 7] = 0.9f;
    c.add("concat_14.tmp_0", {1, 1029, 4}, boxes, "Multiply");
    c.add("tmp_16", {1, 4, 1029}, scores, op);
    const HeadChoice choice = c.choose();
    EXPECT_EQ(choice.name, "boxes-scores") << op;
    EXPECT_EQ(choice.attach_tensors, op == "Concat") << op;
    const Results results = c.decode();
    ASSERT_EQ(results.detections.size(), 1u) << op;
    EXPECT_EQ(results.detections[0].label_id, 2);
    // Boxes that lie alike are no scores of each other.
    c.facts.outputs[1].shape = {1, 1029, 4};
    EXPECT_NE(c.choose().name, "boxes-scores");
  }
}

}  // namespace
}  // namespace clinfer
