// How much results look like those of a network that is fed as it was trained: by what the results
// themselves say, without a truth to compare with.
#pragma once

#include <vector>

#include "engine/tools/picture_results.h"

namespace clinfer {

// A network that sees what it was trained for finds the same in copies of a picture, with high
// confidence, and nothing in an empty one.
struct Copies {
  PictureResults original, mirrored, zoomed;
  // The part of the picture that `zoomed` saw, in shares of each side about the middle.
  double zoom = 1;
};

// Evidence of one frame, 0 or more. Of objects: the mass of confidence that copies agree on, times its
// share of all mass; objects that an empty picture has as well, or that fill the picture, count for
// nothing. Of answers: the confidence of the best class where copies agree. Of maps: how alike those of
// copies are, less how alike those of the empty picture are. Vectors and points of the one thing that
// fills the picture say nothing: they are alike however the network is fed. `empty` is what the network
// says of a grey picture.
double evidence(const Copies& copies, const PictureResults& empty);

// Of candidates that saw the same frames.
struct Paired {
  double mean = 0;   // of the differences a - b
  double error = 0;  // standard error of that mean
};
Paired paired(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace clinfer
