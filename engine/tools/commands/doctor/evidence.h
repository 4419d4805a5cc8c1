// Estimates whether results look like those of a network that is fed as it was trained. It uses the
// results alone, without ground truth.
#pragma once

#include <vector>

#include "engine/heads/results/picture_results.h"

namespace clinfer {

// Results for copies of a picture. A network that is fed as it was trained finds the same in all
// copies, with high confidence, and nothing in an empty picture.
struct Copies {
  PictureResults original, mirrored, zoomed;
  // The part of the picture that `zoomed` shows, as a share of each side around the centre.
  double zoom = 1;
};

// Returns the evidence of one frame, 0 or more. Objects: the sum of confidences on which copies
// agree, times its share of all confidence; objects that an empty picture has as well, or that fill
// the picture, count for nothing. Answers: the confidence of the best class where copies agree.
// Maps: the likeness of maps of copies, minus their likeness to the empty picture's. Vectors and
// points for the whole picture say nothing, because they are alike however the network is fed.
// `empty`: the results for a grey picture.
double evidence(const Copies& copies, const PictureResults& empty);

// Comparison of two ways a and b that saw the same frames.
struct Paired {
  double mean = 0;   // of the differences a - b
  double error = 0;  // standard error of the mean
};
Paired paired(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace clinfer
