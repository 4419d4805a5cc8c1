// Measures how far two networks, or one network in two ways, give the same results for the same
// pictures.
#pragma once

#include <string>
#include <vector>

#include "engine/heads/results/picture_results.h"

namespace clinfer {

constexpr double kSameBox = 0.5;  // least intersection over union of boxes that are the same object
// The range below the threshold in which a matching object counts as the same one with another
// confidence.
constexpr double kNear = 0.1;

struct Pair {
  size_t a = 0, b = 0;
  double overlap = 0;
};
// Returns pairs of objects of the same class that overlap by at least kSameBox; the best overlaps
// first, each object used once.
std::vector<Pair> matched(const std::vector<PlacedObject>& a, const std::vector<PlacedObject>& b);

// Returns the cosine of the angle between two vectors of equal length.
double cosine(const std::vector<float>& a, const std::vector<float>& b);

struct Difference {
  double sum = 0, most = 0;
  size_t count = 0;
  void add(double difference);
  void add(const Difference& other);
  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

// The agreement on one frame, or on several added up.
struct Agreement {
  // Numbers of objects at or above the threshold: found by both; found by one, while the other has
  // it within kNear below the threshold; found by one alone.
  size_t both = 0, near = 0, only_a = 0, only_b = 0;
  size_t objects_a = 0, objects_b = 0;
  size_t answers = 0, same_answers = 0;  // best classes and recognised texts
  size_t cells = 0, same_cells = 0;      // elements of maps of classes
  Difference confidence;  // between objects that both found, and between equal answers
  // Differences of other maps; 1 - cosine for vectors; shares of the largest value for raw tensors.
  Difference values;

  void add(const Agreement& other);
  size_t objects() const { return both + near + only_a + only_b; }
  // Return which share of all that either found is the same: of objects alone, with those within
  // kNear, or of objects, answers and cells together. 1 if neither found anything.
  double share_of_objects() const;
  double share_of_objects_or_near() const;
  double share() const;
};

// The results must contain objects from `threshold` - kNear on.
Agreement agreement(const PictureResults& a, const PictureResults& b, double threshold);

}  // namespace clinfer
