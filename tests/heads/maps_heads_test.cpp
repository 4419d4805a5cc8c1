// Heads of points, maps, texts and vectors: what is drawn at random is encoded as each family's
// networks give it, and must come back, by the head that the choice falls on.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "engine/heads/base/decoder.h"
#include "engine/heads/classes/gallery.h"
#include "tests/engine/test_files.h"

namespace clinfer {
namespace {

constexpr unsigned kSeeds = 5;

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  float between(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(engine_);
  }
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }

 private:
  std::mt19937 engine_;
};

struct Case {
  ModelFacts facts;
  std::vector<Tensor> tensors;

  Case(int width, int height, std::string name = "model") {
    facts.width = width;
    facts.height = height;
    facts.name = std::move(name);
  }
  void add(const std::string& name, Shape shape, const std::vector<float>& values,
           const std::string& op = "Convolution", ElementType type = ElementType::f32) {
    facts.outputs.push_back({name, {}, type, shape, op, {}});
    tensors.push_back(Tensor::of<float>(type, shape, values));
  }
  Results decode(const std::string& head, float threshold = 0.3f) const {
    const HeadChoice choice = choose_head(facts, "auto");
    EXPECT_EQ(choice.name, head) << choice.reason;
    DecodeSettings settings;
    settings.threshold = threshold;
    Results results;
    run_head(choice, facts, tensors, settings, false, results);
    EXPECT_EQ(results.contradiction, "");
    return results;
  }
};

size_t cells(const Shape& shape) { return static_cast<size_t>(count(shape)); }

// ---- maps ---------------------------------------------------------------------------------------

TEST(MapHeads, ClassesOfPixels) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed)
    for (const bool channels_last : {false, true}) {
      Draw draw(seed);
      const int w = 8 * draw.number(4, 12), h = 8 * draw.number(4, 12),
                classes = draw.number(4, 30);
      Case c(w, h);
      const auto size = static_cast<size_t>(w * h);
      std::vector<float> scores(size * static_cast<size_t>(classes));
      std::vector<uint16_t> right(size);
      for (size_t i = 0; i < size; ++i) {
        right[i] = static_cast<uint16_t>(draw.number(0, classes - 1));
        for (int k = 0; k < classes; ++k) {
          const auto n = static_cast<size_t>(k);
          scores[channels_last ? i * static_cast<size_t>(classes) + n : n * size + i] =
              draw.between(-3, 3) + (k == right[i] ? 7.0f : 0.0f);
        }
      }
      c.add("out", channels_last ? Shape{1, h, w, classes} : Shape{1, classes, h, w}, scores);
      const Results results = c.decode("segmentation");
      ASSERT_EQ(results.maps.size(), 1u);
      EXPECT_EQ(results.maps[0].kind, MapKind::classes);
      EXPECT_EQ(results.maps[0].columns, w);
      EXPECT_EQ(results.maps[0].rows, h);
      EXPECT_EQ(results.maps[0].x_max, static_cast<float>(w));
      EXPECT_EQ(results.maps[0].classes, right);
    }
}

TEST(MapHeads, ClassNumbers) {
  Case c(32, 16);
  std::vector<float> numbers;
  for (int i = 0; i < 32 * 16; ++i) numbers.push_back(static_cast<float>(i % 19));
  c.add("out", {1, 1, 16, 32}, numbers, "Convert", ElementType::i32);
  c.facts.labels = {"road", "sidewalk"};
  const Results results = c.decode("segmentation");
  ASSERT_EQ(results.maps.size(), 1u);
  EXPECT_EQ(results.maps[0].classes[20], 1);
  EXPECT_EQ(results.maps[0].labels.size(), 2u);
  numbers[5] = -1;
  c.tensors[0] = Tensor::of<float>(ElementType::i32, {1, 1, 16, 32}, numbers);
  Results wrong;
  run_head(choose_head(c.facts, "auto"), c.facts, c.tensors, {}, false, wrong);
  EXPECT_EQ(wrong.contradiction, "values of a map of class numbers are no whole numbers from 0");
  EXPECT_TRUE(wrong.maps.empty());
}

// Four heads look at one number for each pixel: names tell them apart.
TEST(MapHeads, OneNumberForEachPixel) {
  const std::vector<float> shares(32 * 32, 0.25f);
  const auto head_of = [&](const std::string& file, const std::string& output,
                           const std::string& op) {
    Case c(32, 32, file);
    c.add(output, {1, 1, 32, 32}, shares, op);
    return choose_head(c.facts, "auto");
  };
  EXPECT_EQ(head_of("model", "predicted_depth", "ReLU").name, "depth");
  EXPECT_EQ(head_of("midas_v21_small_256", "out", "ReLU").name, "depth");
  EXPECT_EQ(head_of("model", "anomaly_map", "Interpolate").name, "anomaly");
  EXPECT_EQ(head_of("u2netp", "1959", "Sigmoid").name, "saliency");
  EXPECT_EQ(head_of("modnet", "pha", "Sigmoid").name, "saliency");
  EXPECT_EQ(head_of("ch_PP-OCRv4_det_infer", "sigmoid_0.tmp_0", "Sigmoid").name, "text-detection");
  const HeadChoice open = head_of("model", "out", "Sigmoid");
  ASSERT_EQ(open.warnings.size(), 1u) << "nothing says which it is";
  EXPECT_NE(open.warnings[0].find("saliency"), std::string::npos) << open.warnings[0];
  EXPECT_NE(open.warnings[0].find("text-detection"), std::string::npos) << open.warnings[0];
  EXPECT_TRUE(open.attach_tensors);
}

TEST(MapHeads, ValuesThatAreNoSharesContradict) {
  Case c(32, 32, "u2net");
  c.add("out", {1, 1, 32, 32}, std::vector<float>(32 * 32, 12.0f), "Sigmoid");
  Results results;
  run_head(choose_head(c.facts, "auto"), c.facts, c.tensors, {}, false, results);
  EXPECT_EQ(results.contradiction, "1024 of 1024 values of a map are not from 0 to 1");
  EXPECT_TRUE(results.maps.empty());
}

// ---- points of one person -----------------------------------------------------------------------

TEST(PointHeads, HeatMaps) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    Draw draw(seed);
    Case c(192, 256);
    const Shape shape{1, 17, 64, 48};
    std::vector<float> heat(cells(shape));
    std::vector<Point> right;
    for (int k = 0; k < 17; ++k) {
      const float x = draw.between(12, 180), y = draw.between(12, 240);
      right.push_back({x, y});
      for (int row = 0; row < 64; ++row)
        for (int column = 0; column < 48; ++column) {
          const float dx = static_cast<float>(column) - x / 4, dy = static_cast<float>(row) - y / 4;
          heat[static_cast<size_t>((k * 64 + row) * 48 + column)] =
              0.9f * std::exp(-(dx * dx + dy * dy) / 8);
        }
    }
    c.add("output", shape, heat);
    const Results results = c.decode("heatmaps");
    ASSERT_EQ(results.detections.size(), 1u);
    const Detection& person = results.detections[0];
    EXPECT_EQ(person.skeleton, Skeleton::coco17);
    EXPECT_EQ(person.x_max, 192);
    ASSERT_EQ(person.keypoints.size(), 17u);
    for (size_t k = 0; k < 17; ++k) {
      EXPECT_NEAR(person.keypoints[k].x, right[k].x, 2);
      EXPECT_NEAR(person.keypoints[k].y, right[k].y, 2);
      EXPECT_GT(person.keypoints[k].confidence, 0.8f);
    }
  }
}

TEST(PointHeads, AnAxisEach) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed)
    for (const bool turned : {false, true}) {
      Draw draw(seed);
      Case c(192, 256);
      std::vector<float> x(17 * 384), y(17 * 512);
      std::vector<KeyPoint> right;
      for (size_t k = 0; k < 17; ++k) {
        const int column = draw.number(0, 383), row = draw.number(0, 511);
        x[k * 384 + static_cast<size_t>(column)] = 0.7f;
        y[k * 512 + static_cast<size_t>(row)] = 0.6f;
        right.push_back(
            {static_cast<float>(column) / 2 + 0.5f, static_cast<float>(row) / 2 + 0.5f, 0.6f});
      }
      if (turned) c.add("b", {1, 17, 512}, y);
      c.add("a", {1, 17, 384}, x);
      if (!turned) c.add("b", {1, 17, 512}, y);
      const Results results = c.decode("simcc");
      ASSERT_EQ(results.detections.size(), 1u);
      for (size_t k = 0; k < 17; ++k) {
        EXPECT_NEAR(results.detections[0].keypoints[k].x, right[k].x, 0.01);
        EXPECT_NEAR(results.detections[0].keypoints[k].y, right[k].y, 0.01);
        EXPECT_NEAR(results.detections[0].keypoints[k].confidence, 0.6, 1e-4);
      }
    }
}

TEST(PointHeads, MoveNet) {
  Draw draw(3);
  std::vector<float> values;
  for (int k = 0; k < 51; ++k) values.push_back(draw.between(0, 1));
  Case c(192, 192);
  c.add("output_0", {1, 1, 17, 3}, values);
  const Results results = c.decode("movenet");
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_NEAR(results.detections[0].keypoints[4].x, values[13] * 192, 1e-3);
  EXPECT_NEAR(results.detections[0].keypoints[4].y, values[12] * 192, 1e-3);
  EXPECT_NEAR(results.detections[0].keypoints[4].confidence, values[14], 1e-5);

  std::vector<float> persons;
  for (int p = 0; p < 6; ++p) {
    persons.insert(persons.end(), values.begin(), values.end());
    persons.insert(persons.end(), {0.1f, 0.2f, 0.5f, 0.9f, p == 2 ? 0.8f : 0.01f});
  }
  Case several(256, 256);
  several.add("output_0", {1, 6, 56}, persons);
  const Results found = several.decode("movenet");
  ASSERT_EQ(found.detections.size(), 1u);
  EXPECT_NEAR(found.detections[0].x_min, 0.2f * 256, 1e-3);
  EXPECT_NEAR(found.detections[0].y_max, 0.5f * 256, 1e-3);
  EXPECT_NEAR(found.detections[0].confidence, 0.8, 1e-5);
}

// ---- points of several persons ------------------------------------------------------------------

// Draws heat and fields of persons side by side, each upright: bones as the networks draw them.
TEST(PointHeads, PartFields) {
  static constexpr std::pair<int, int> kBones[] = {
      {1, 8}, {8, 9}, {9, 10}, {1, 11}, {11, 12}, {12, 13}, {1, 2},  {2, 3},   {3, 4},  {2, 16},
      {1, 5}, {5, 6}, {6, 7},  {5, 17}, {1, 0},   {0, 14},  {0, 15}, {14, 16}, {15, 17}};
  static constexpr float kAt[18][2] = {{0, -8}, {0, -6},        {-3, -6},     {-4, -3}, {-4, 0},
                                       {3, -6}, {4, -3},        {4, 0},       {-2, 0},  {-2, 4},
                                       {-2, 8}, {2, 0},         {2, 4},       {2, 8},   {-1, -9},
                                       {1, -9}, {-2.5f, -8.5f}, {2.5f, -8.5f}};
  const int columns = 60, rows = 32;
  for (const size_t persons : {size_t{0}, size_t{1}, size_t{3}}) {
    std::vector<float> heat(static_cast<size_t>(19 * rows * columns)),
        fields(static_cast<size_t>(38 * rows * columns));
    for (size_t p = 0; p < persons; ++p) {
      const float x0 = 10 + 18 * static_cast<float>(p), y0 = 15;
      for (int k = 0; k < 18; ++k)
        for (int row = 0; row < rows; ++row)
          for (int column = 0; column < columns; ++column) {
            const float dx = static_cast<float>(column) - x0 - kAt[k][0],
                        dy = static_cast<float>(row) - y0 - kAt[k][1];
            float& value = heat[static_cast<size_t>((k * rows + row) * columns + column)];
            value = std::max(value, 0.9f * std::exp(-(dx * dx + dy * dy)));
          }
      for (int b = 0; b < 19; ++b) {
        const float ax = x0 + kAt[kBones[b].first][0], ay = y0 + kAt[kBones[b].first][1],
                    bx = x0 + kAt[kBones[b].second][0], by = y0 + kAt[kBones[b].second][1];
        const float length = std::hypot(bx - ax, by - ay), ux = (bx - ax) / length,
                    uy = (by - ay) / length;
        for (int row = 0; row < rows; ++row)
          for (int column = 0; column < columns; ++column) {
            const float dx = static_cast<float>(column) - ax, dy = static_cast<float>(row) - ay;
            const float along = dx * ux + dy * uy, across = std::fabs(dx * uy - dy * ux);
            if (along < -0.8f || along > length + 0.8f || across > 1.2f) continue;
            const auto at = static_cast<size_t>((2 * b * rows + row) * columns + column);
            fields[at] = ux;
            fields[at + static_cast<size_t>(rows * columns)] = uy;
          }
      }
    }
    Case c(480, 256);
    c.add("pafs", {1, 38, rows, columns}, fields);
    c.add("heatmaps", {1, 19, rows, columns}, heat);
    const Results results = c.decode("openpose");
    ASSERT_EQ(results.detections.size(), persons);
    std::vector<bool> seen(persons);
    for (const Detection& person : results.detections) {
      EXPECT_EQ(person.skeleton, Skeleton::body18);
      const auto p = static_cast<size_t>(std::lround((person.keypoints[1].x / 8 - 10.5f) / 18));
      ASSERT_LT(p, persons);
      EXPECT_FALSE(seen[p]);
      seen[p] = true;
      for (size_t k = 0; k < 18; ++k) {
        EXPECT_NEAR(person.keypoints[k].x, 8 * (10.5f + 18 * static_cast<float>(p) + kAt[k][0]), 4)
            << k;
        EXPECT_NEAR(person.keypoints[k].y, 8 * (15.5f + kAt[k][1]), 4) << k;
      }
    }
  }
}

// ---- points of a face, a hand, a body -----------------------------------------------------------

TEST(PointHeads, Landmarks) {
  Draw draw(1);
  std::vector<float> five;
  for (int i = 0; i < 10; ++i) five.push_back(draw.between(0.1f, 0.9f));
  Case face(48, 48, "landmarks-regression-retail-0009");
  face.add("95", {1, 10, 1, 1}, five, "Sigmoid");
  const Results of_face = face.decode("landmarks");
  ASSERT_EQ(of_face.detections.size(), 1u);
  EXPECT_EQ(of_face.detections[0].skeleton, Skeleton::face5);
  EXPECT_NEAR(of_face.detections[0].landmarks[3].y, five[7] * 48, 1e-3);

  std::vector<float> mesh;
  for (int i = 0; i < 1404; ++i) mesh.push_back(draw.between(0, 192));
  for (const float logit : {4.0f, -4.0f}) {
    Case c(192, 192);
    c.add("a", {1, 1, 1, 1404}, mesh);
    c.add("b", {1, 1, 1, 1}, {logit});
    const Results results = c.decode("landmarks");
    ASSERT_EQ(results.detections.size(), logit > 0 ? 1u : 0u) << "the score is a logit";
    if (logit < 0) continue;
    EXPECT_NEAR(results.detections[0].confidence, 0.982, 1e-3);
    ASSERT_EQ(results.detections[0].landmarks.size(), 468u);
    EXPECT_EQ(results.detections[0].landmarks[100].x, mesh[300]);
    EXPECT_EQ(results.detections[0].landmarks[100].y, mesh[301]);
  }
}

TEST(PointHeads, SecondStagesOfMtcnn) {
  Case c(48, 48);
  c.add("offsets", {1, 4}, {-0.1f, 0.05f, 0.1f, -0.2f});
  c.add("points", {1, 10}, {0.3f, 0.7f, 0.5f, 0.35f, 0.65f, 0.3f, 0.31f, 0.5f, 0.7f, 0.71f});
  c.add("prob", {1, 2}, {0.1f, 0.9f}, "SoftMax");
  const Results results = c.decode("mtcnn");
  ASSERT_EQ(results.detections.size(), 1u);
  const Detection& found = results.detections[0];
  EXPECT_NEAR(found.x_min, -4.8, 1e-3);
  EXPECT_NEAR(found.y_max, 38.4, 1e-3);
  EXPECT_NEAR(found.confidence, 0.9, 1e-5);
  ASSERT_EQ(found.landmarks.size(), 5u);
  EXPECT_NEAR(found.landmarks[1].x, 0.7f * 48, 1e-3);
  EXPECT_NEAR(found.landmarks[1].y, 0.31f * 48, 1e-3);
}

// The authors' networks count columns first, as names of Caffe's layers or TensorFlow's pictures say.
TEST(PointHeads, MtcnnTakesPicturesAsItsAuthorsDo) {
  const auto refined = [](const std::string& name, bool channels_last) {
    Case c(48, 48);
    c.facts.channels_last = channels_last;
    c.add(name, {1, 4}, {-0.1f, 0.05f, 0.1f, -0.2f});
    c.add("points", {1, 10}, {0.3f, 0.7f, 0.5f, 0.35f, 0.65f, 0.3f, 0.31f, 0.5f, 0.7f, 0.71f});
    c.add("prob1", {1, 2}, {0.1f, 0.9f}, "SoftMax");
    const HeadChoice head = choose_head(c.facts, "mtcnn");
    EXPECT_TRUE(head.picture);
    const Results results = c.decode("mtcnn");
    EXPECT_EQ(results.detections.size(), 1u);
    const Detection& found = results.detections.at(0);
    return std::tuple(head.picture->transposed, found.x_min, found.y_max, found.landmarks.at(1).x);
  };
  const std::tuple as_it_is(false, -4.8f, 38.4f, 0.7f * 48),
      turned(true, 0.05f * 48, 52.8f, 0.31f * 48);
  for (const auto& [name, last, wanted] : {std::tuple("offsets", false, as_it_is),
                                           {"conv6-2", false, turned},
                                           {"dense_5", true, turned},
                                           {"onet/conv6-2/conv6-2:0", true, turned},
                                           {"conv6-2", true, as_it_is}}) {
    const auto [transposed, x_min, y_max, x] = refined(name, last);
    EXPECT_EQ(transposed, std::get<0>(wanted)) << name;
    EXPECT_NEAR(x_min, std::get<1>(wanted), 1e-3) << name;
    EXPECT_NEAR(y_max, std::get<2>(wanted), 1e-3) << name;
    EXPECT_NEAR(x, std::get<3>(wanted), 1e-3) << name;
  }
}

TEST(PointHeads, ProposalsOfMtcnn) {
  constexpr size_t kRows = 21, kColumns = 31;  // of 72 x 51 pixels
  for (const bool last : {false, true}) {
    std::vector<float> scores(2 * kRows * kColumns), moves(4 * kRows * kColumns);
    const auto at = [&](size_t k, size_t channels, size_t row, size_t column) {
      const size_t cell = row * kColumns + column;
      return last ? cell * channels + k : k * kRows * kColumns + cell;
    };
    for (size_t row = 0; row < kRows; ++row)
      for (size_t column = 0; column < kColumns; ++column) scores[at(0, 2, row, column)] = 1;
    const auto set = [&](size_t row, size_t column, float score) {
      scores[at(0, 2, row, column)] = 1 - score;
      scores[at(1, 2, row, column)] = score;
      const float move[] = {-0.25f, 0.5f, 0.125f, 0};
      for (size_t k = 0; k < 4; ++k) moves[at(k, 4, row, column)] = move[k];
    };
    set(5, 8, 0.9f);
    set(5, 9, 0.8f);  // overlaps
    set(15, 20, 0.7f);
    Case c(72, 51);
    c.facts.channels_last = last;
    const auto shape = [&](int64_t channels) {
      return last ? Shape{1, kRows, kColumns, channels} : Shape{1, channels, kRows, kColumns};
    };
    c.add("boxes", shape(4), moves);
    c.add("probabilities", shape(2), scores, "Softmax");
    const HeadChoice head = choose_head(c.facts, "auto");
    ASSERT_EQ(head.name, "mtcnn-proposals") << head.reason;
    EXPECT_EQ(head.sizes, Sizes::any);
    const Results results = c.decode("mtcnn-proposals");
    ASSERT_EQ(results.detections.size(), 2u);
    const Detection& found = results.detections[0];
    // TensorFlow's x is the network's y.
    EXPECT_NEAR(found.x_min, last ? 22 : 13, 1e-3);
    EXPECT_NEAR(found.y_min, last ? 7 : 16, 1e-3);
    EXPECT_NEAR(found.x_max, last ? 28 : 29.5, 1e-3);
    EXPECT_NEAR(found.y_max, last ? 23.5 : 22, 1e-3);
    EXPECT_NEAR(found.confidence, 0.9, 1e-5);
  }
}

// ---- text ---------------------------------------------------------------------------------------

TEST(TextHeads, RegionsOfText) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    Draw draw(seed);
    const int w = 320, h = 224;
    Case c(w, h, "det");
    std::vector<float> map(static_cast<size_t>(w * h));
    std::vector<OrientedBox> right;
    for (int i = 0; i < 3; ++i) {
      const OrientedBox text{draw.between(90, 230), 40.0f + 70 * static_cast<float>(i),
                             draw.between(80, 120), draw.between(14, 24),
                             draw.between(-0.3f, 0.3f)};
      right.push_back(text);
      // As it is trained: shrunk by what growth makes good.
      float grown = text.height / 4;
      for (float step = text.height / 8; step > 1e-3f; step /= 2) {
        const float w_left = text.width - 2 * grown, h_left = text.height - 2 * grown;
        grown += w_left * h_left * 1.5f / (2 * (w_left + h_left)) > grown ? step : -step;
      }
      for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x) {
          const float dx = static_cast<float>(x) + 0.5f - text.x_center,
                      dy = static_cast<float>(y) + 0.5f - text.y_center;
          const float along = dx * std::cos(text.rotation) + dy * std::sin(text.rotation),
                      across = dy * std::cos(text.rotation) - dx * std::sin(text.rotation);
          if (std::fabs(along) <= text.width / 2 - grown &&
              std::fabs(across) <= text.height / 2 - grown)
            map[static_cast<size_t>(y * w + x)] = 0.8f;
        }
    }
    c.add("out", {1, 1, h, w}, map, "Sigmoid");
    const Results results = c.decode("text-detection");
    ASSERT_EQ(results.detections.size(), 3u);
    for (const Detection& found : results.detections) {
      const OrientedBox& box = *found.oriented_box;
      const auto& truth = *std::min_element(right.begin(), right.end(), [&](auto& a, auto& b) {
        return std::fabs(a.y_center - box.y_center) < std::fabs(b.y_center - box.y_center);
      });
      EXPECT_EQ(found.label, "text");
      EXPECT_NEAR(found.confidence, 0.8, 1e-3);
      EXPECT_NEAR(box.x_center, truth.x_center, 2);
      EXPECT_NEAR(box.y_center, truth.y_center, 2);
      EXPECT_NEAR(box.width, truth.width, 5);
      EXPECT_NEAR(box.height, truth.height, 5);
      EXPECT_NEAR(box.rotation, truth.rotation, 0.06);
    }
  }
}

// PP-OCR drops what is fewer than three cells from centre to centre.
TEST(TextHeads, SpotsOfFewCellsAreNoText) {
  const int w = 64, h = 64;
  Case c(w, h, "det");
  std::vector<float> map(static_cast<size_t>(w * h));
  const auto fill = [&](int left, int top, int columns, int rows) {
    for (int y = top; y < top + rows; ++y)
      for (int x = left; x < left + columns; ++x) map[static_cast<size_t>(y * w + x)] = 0.9f;
  };
  fill(4, 4, 3, 3);
  fill(20, 4, 30, 3);
  fill(20, 30, 30, 4);
  c.add("out", {1, 1, h, w}, map, "Sigmoid");
  const Results results = c.decode("text-detection");
  ASSERT_EQ(results.detections.size(), 1u);
  EXPECT_NEAR(results.detections[0].oriented_box->y_center, 32, 1e-3);
}

TEST(TextHeads, Characters) {
  std::vector<std::string> characters;
  for (char ch = 'a'; ch <= 'z'; ++ch) characters.emplace_back(1, ch);
  for (unsigned seed = 1; seed <= kSeeds; ++seed)
    for (const int form : {0, 1, 2}) {  // probabilities, logits, the blank last
      Draw draw(seed);
      Case c(160, 48, "rec");
      c.facts.labels = characters;
      const size_t classes = 27, steps = 40, blank = form == 2 ? 26 : 0;
      if (form == 2) c.facts.labels.push_back("<blank>");
      std::string right;
      std::vector<size_t> path;
      while (path.size() + 4 < steps) {
        const auto letter = static_cast<size_t>(draw.number(0, 25));
        if (!right.empty() && right.back() == static_cast<char>('a' + letter))
          path.push_back(blank);
        right += static_cast<char>('a' + letter);
        for (int repeat = draw.number(1, 3); repeat > 0; --repeat)
          path.push_back(letter + (form == 2 ? 0 : 1));
      }
      path.resize(steps, blank);
      std::vector<float> scores;
      for (const size_t best : path)
        for (size_t k = 0; k < classes; ++k)
          scores.push_back(form == 1 ? (k == best ? 9.0f : -1.0f) : (k == best ? 0.74f : 0.01f));
      c.add("out", {1, static_cast<int64_t>(steps), static_cast<int64_t>(classes)}, scores,
            form == 1 ? "Add" : "SoftMax");
      const Results results = c.decode("text-recognition");
      ASSERT_EQ(results.texts.size(), 1u);
      EXPECT_EQ(results.texts[0].text, right);
      EXPECT_NEAR(results.texts[0].confidence, form == 1 ? 0.9988 : 0.74, 1e-3);
    }
}

TEST(TextHeads, CharactersThatTheGraphPicked) {
  Case c(94, 24);
  c.facts.labels = {"0", "1", "<Hebei>", "A"};
  c.add("decode", {1, 8, 1, 1}, {2, 3, 0, 0, 1, -1, -1, -1}, "CTCGreedyDecoder");
  const Results results = c.decode("text-recognition");
  ASSERT_EQ(results.texts.size(), 1u);
  EXPECT_EQ(results.texts[0].text, "<Hebei>A001");
  c.tensors[0] = Tensor::of<float>(ElementType::f32, {1, 8, 1, 1}, {9, 0, 0, 0, 0, 0, 0, 0});
  Results wrong;
  run_head(choose_head(c.facts, "auto"), c.facts, c.tensors, {}, false, wrong);
  EXPECT_NE(wrong.contradiction.find("name a character that the dictionary of 4"),
            std::string::npos)
      << wrong.contradiction;
}

// ---- vectors ------------------------------------------------------------------------------------

TEST(VectorHeads, Embeddings) {
  Draw draw(1);
  std::vector<float> values;
  for (int i = 0; i < 256; ++i) values.push_back(draw.between(-1, 1));
  Case c(64, 128);
  c.add("output", {1, 256}, values, "MatMul");
  const Results results = c.decode("embedding");
  ASSERT_EQ(results.embeddings.size(), 1u);
  EXPECT_EQ(results.embeddings[0].values, values);
  c.facts.outputs[0].op = "SoftMax";
  EXPECT_EQ(choose_head(c.facts, "auto").name, "classification");
}

TEST(VectorHeads, NearestOfAGallery) {
  const TemporaryFolder folder;
  const Gallery gallery(folder.write(
      "people.json", R"({"Ada": [[1, 0, 0], [0, 2, 0]], "Grace": [0, 0, 3], "Kim": [[1, 1]]})"));
  EXPECT_TRUE(gallery.has_vectors_of(3));
  EXPECT_FALSE(gallery.has_vectors_of(4));
  const auto near = gallery.nearest({0.1f, 0.9f, 0.2f});
  ASSERT_TRUE(near);
  EXPECT_EQ(near->name, "Ada");
  EXPECT_NEAR(near->cosine, 0.9 / std::sqrt(0.01 + 0.81 + 0.04), 1e-6);
  EXPECT_EQ(gallery.nearest({-1, -1, 0.1f})->name, "Grace");
  EXPECT_FALSE(gallery.nearest({0, 0, 0}));
  EXPECT_FALSE(gallery.nearest({1, 2, 3, 4}));
  for (const char* text :
       {"", "[]", "{}", R"({"a": 1})", R"({"a": [["x"]]})", R"({"a": [[0, 0]]})", R"({"a": [[]]})"})
    EXPECT_THROW(Gallery(folder.write("bad.json", text)), Error) << text;
  try {
    Gallery("/nowhere/people.json");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "gallery /nowhere/people.json: No such file or directory");
  }
}

}  // namespace
}  // namespace clinfer
