// Evidence that a network is fed as it was trained.
#include "engine/tools/commands/doctor/evidence.h"

#include <gtest/gtest.h>

#include <cmath>

namespace clinfer {
namespace {

PlacedObject object(double x, double confidence, double size = 0.2) {
  return {x, 0.3, x + size, 0.3 + size, confidence, 0, ""};
}

PictureResults with(std::vector<PlacedObject> objects) {
  PictureResults results;
  results.objects = std::move(objects);
  return results;
}

Copies copies(std::vector<PlacedObject> a, std::vector<PlacedObject> b,
              std::vector<PlacedObject> c) {
  return {with(std::move(a)), with(std::move(b)), with(std::move(c)), 0.85};
}

TEST(Evidence, IsMoreWhereCopiesAgree) {
  const auto sure = object(0.4, 0.9), moved = object(0.7, 0.9);
  const double agreed = evidence(copies({sure}, {sure}, {sure}), {});
  EXPECT_NEAR(agreed, 0.9, 1e-6);
  EXPECT_LT(evidence(copies({sure}, {moved}, {sure}), {}), agreed / 2);
  EXPECT_LT(evidence(copies({object(0.4, 0.5)}, {object(0.4, 0.5)}, {sure}), {}), agreed);
  EXPECT_EQ(evidence(copies({}, {}, {}), {}), 0);
}

TEST(Evidence, CountsNothingThatAnEmptyPictureHas) {
  const auto artefact = object(0.4, 0.9);
  EXPECT_EQ(evidence(copies({artefact}, {artefact}, {artefact}), with({artefact})), 0);
}

TEST(Evidence, CountsNoObjectThatIsTheWholePicture) {
  const PlacedObject all{0, 0, 1, 1, 0.9, 0, ""};
  EXPECT_EQ(evidence(copies({all}, {all}, {all}), {}), 0);
  PlacedObject middle = object(0.4, 0.9);
  middle.whole = true;  // of a network that sees the middle of the picture
  EXPECT_EQ(evidence(copies({middle}, {middle}, {middle}), {}), 0);
}

TEST(Evidence, ForgivesWhatAZoomedCopyCannotSee) {
  const auto middle = object(0.4, 0.9), edge = object(0.0, 0.9, 0.05);
  const double whole = evidence(copies({middle, edge}, {middle, edge}, {middle}), {});
  EXPECT_GT(whole, evidence(copies({middle}, {middle}, {middle}), {}));
}

TEST(Evidence, OfAnswersIsConfidenceThatAGreyPictureDoesNotHave) {
  PictureResults car, grey;
  car.answers = {{"type", 3, "car", 0.8f}};
  const Copies same{car, car, car, 0.85};
  EXPECT_NEAR(evidence(same, grey), 0.8, 1e-6);
  grey.answers = {{"type", 3, "car", 0.75f}};
  EXPECT_NEAR(evidence(same, grey), 0.2, 1e-6);
}

TEST(Evidence, OfMapsNeedsMoreThanOneClass) {
  PictureResults flat, shaped;
  flat.maps = {{"m", MapKind::classes, std::vector<float>(16, 0.f)}};
  shaped.maps = {{"m", MapKind::classes, {0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0}}};
  EXPECT_EQ(evidence({flat, flat, flat, 0.85}, flat), 0);
  EXPECT_NEAR(evidence({shaped, shaped, shaped, 0.85}, flat), 1, 1e-6);
}

TEST(Evidence, IsNeverNotANumber) {
  PictureResults wild;
  wild.objects = {object(0.4, NAN)};
  wild.embeddings = {{"e", {NAN, 1}}};
  EXPECT_TRUE(std::isfinite(evidence({wild, wild, wild, 0.85}, {})));
}

TEST(Evidence, PairsFrames) {
  const Paired difference = paired({1, 2, 3}, {0.9, 1.9, 2.9});
  EXPECT_NEAR(difference.mean, 0.1, 1e-9);
  EXPECT_NEAR(difference.error, 0, 1e-9);
  EXPECT_TRUE(std::isinf(paired({1}, {0}).error));
}

}  // namespace
}  // namespace clinfer
