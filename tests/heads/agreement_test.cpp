// Agreement of two networks' results on a picture.
#include "engine/heads/results/agreement.h"

#include <gtest/gtest.h>

#include <cmath>

namespace clinfer {
namespace {

PlacedObject object(double x, double confidence, int label = 0) {
  return {x, 0.2, x + 0.2, 0.6, confidence, label, ""};
}

TEST(Agreement, CountsObjectsOfBothNearAndAlone) {
  PictureResults a, b;
  a.objects = {object(0.1, 0.9), object(0.5, 0.55), object(0.8, 0.7, 1), object(0.3, 0.45)};
  b.objects = {object(0.11, 0.8), object(0.5, 0.42), object(0.8, 0.7, 2)};
  const Agreement result = agreement(a, b, 0.5);
  EXPECT_EQ(result.both, 1u);
  EXPECT_EQ(result.near, 1u);    // the second one is just below the threshold in b
  EXPECT_EQ(result.only_a, 1u);  // of another class in b
  EXPECT_EQ(result.only_b, 1u);
  EXPECT_EQ(result.objects_a, 3u);  // the last one is below the threshold
  EXPECT_EQ(result.objects_b, 2u);
  EXPECT_DOUBLE_EQ(result.share_of_objects(), 0.25);
  EXPECT_DOUBLE_EQ(result.share_of_objects_or_near(), 0.5);
  EXPECT_NEAR(result.confidence.most, 0.13, 1e-6);
}

TEST(Agreement, MatchesTheBestOverlapsFirst) {
  const std::vector<PlacedObject> a = {object(0.10, 0.9), object(0.14, 0.8)};
  const std::vector<PlacedObject> b = {object(0.14, 0.9)};
  const std::vector<Pair> pairs = matched(a, b);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].a, 1u);
}

TEST(Agreement, ComparesTheBestAnswerOfEachAttribute) {
  PictureResults a, b;
  a.answers = {{"colour", 3, "red", 0.8f}, {"colour", 1, "blue", 0.1f}, {"type", 0, "car", 0.9f}};
  b.answers = {{"colour", 3, "red", 0.5f}, {"type", 2, "bus", 0.9f}};
  const Agreement result = agreement(a, b, 0.5);
  EXPECT_EQ(result.answers, 2u);
  EXPECT_EQ(result.same_answers, 1u);
  EXPECT_NEAR(result.confidence.most, 0.3, 1e-6);
}

TEST(Agreement, ComparesMapsPointByPoint) {
  PictureResults a, b;
  a.maps = {{"classes", MapKind::classes, {0, 1, 1, NAN}}};
  b.maps = {{"classes", MapKind::classes, {0, 1, 2, 0}}};
  const Agreement result = agreement(a, b, 0.5);
  EXPECT_EQ(result.cells, 3u);
  EXPECT_EQ(result.same_cells, 2u);
}

TEST(Agreement, TakesNotANumberForInfinitelyFar) {
  PictureResults a, b;
  a.tensors = {Tensor::of<float>(ElementType::f32, {2}, {1, 2})};
  b.tensors = {Tensor::of<float>(ElementType::f32, {2}, {1, NAN})};
  EXPECT_TRUE(std::isinf(agreement(a, b, 0.5).values.most));
}

TEST(Agreement, IsCompleteWhereNeitherFindsAnything) {
  EXPECT_DOUBLE_EQ(agreement({}, {}, 0.5).share(), 1);
}

TEST(PictureResults, AreInSharesOfTheStoredPicture) {
  Results results;
  results.detections.push_back({});
  results.detections[0].x_min = 10;
  results.detections[0].x_max = 30;
  results.detections[0].y_min = 0;
  results.detections[0].y_max = 50;
  // The network's 100 columns are the picture's 200, turned left to right.
  const Placement mirrored{0, 0, -2, 2, 200, 0, false};
  const PlacedObject found = place(results, mirrored, 200, 200).objects.at(0);
  EXPECT_NEAR(found.x_min, 0.7, 1e-6);
  EXPECT_NEAR(found.x_max, 0.9, 1e-6);
  EXPECT_NEAR(found.y_max, 0.5, 1e-6);
}

TEST(PictureResults, SampleMapsOverThePicture) {
  Results results;
  results.maps.push_back({"m", MapKind::classes, 2, 1, 0, 0, 100, 100, {4, 7}, {}, {}});
  const Placement letterboxed{0, 25, 2, 2, 0, 0, false};  // the picture lies in rows 25 to 75
  const PlacedMap map = place(results, letterboxed, 200, 100).maps.at(0);
  EXPECT_EQ(map.values.front(), 4);
  EXPECT_EQ(map.values.back(), 7);
}

}  // namespace
}  // namespace clinfer
