// How far two networks, or one in two ways, say the same of the same pictures.
#pragma once

#include <string>
#include <vector>

#include "engine/tools/picture_results.h"

namespace clinfer {

constexpr double kSameBox = 0.5;  // intersection over union of boxes that are one object
// Just below the threshold: a partner there is the same object, whose confidence moved.
constexpr double kNear = 0.1;

struct Pair {
  size_t a = 0, b = 0;
  double overlap = 0;
};
// Objects of the same class that overlap by kSameBox at least, best overlaps first, each used once.
std::vector<Pair> matched(const std::vector<PlacedObject>& a, const std::vector<PlacedObject>& b);

// Of two vectors of equal length.
double cosine(const std::vector<float>& a, const std::vector<float>& b);

struct Difference {
  double sum = 0, most = 0;
  size_t count = 0;
  void add(double difference);
  void add(const Difference& other);
  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

// Of one frame, or of several added up.
struct Agreement {
  // Objects at or above the threshold: found by both, by one of them where the other has it within
  // kNear below the threshold, by one of them alone.
  size_t both = 0, near = 0, only_a = 0, only_b = 0;
  size_t objects_a = 0, objects_b = 0;
  size_t answers = 0, same_answers = 0;  // best classes, and recognised texts
  size_t cells = 0, same_cells = 0;      // of maps of classes
  Difference confidence;                 // of objects that both have, and of equal answers
  Difference values;                     // of other maps; of vectors 1 - cosine; of raw tensors,
                                         // as shares of the largest value

  void add(const Agreement& other);
  size_t objects() const { return both + near + only_a + only_b; }
  // Shares of all that either says: objects, answers and cells together for `share`; 1 where neither
  // says anything.
  double share_of_objects() const;
  double share_of_objects_or_near() const;
  double share() const;
};

// The results have objects from `threshold` - kNear on.
Agreement agreement(const PictureResults& a, const PictureResults& b, double threshold);

}  // namespace clinfer
