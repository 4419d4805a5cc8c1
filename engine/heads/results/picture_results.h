// A network's results on a picture, in shares of the picture, so that they can be compared with
// those of another network, or of the same one fed in another way.
#pragma once

#include <string>
#include <vector>

#include "engine/heads/base/decoder.h"

namespace clinfer {

struct PlacedObject {
  double x_min = 0, y_min = 0, x_max = 0, y_max = 0;  // in shares of the picture, clipped to it
  double confidence = 0;
  int label_id = 0;
  std::string label;
  // True for a result about everything that the network saw, which has no box of its own.
  bool whole = false;

  double area() const { return (x_max - x_min) * (y_max - y_min); }
};
// Intersection over union of the boxes.
double overlap(const PlacedObject& a, const PlacedObject& b);

// A map sampled at a grid over the picture, row by row; NaN where the map has no value.
struct PlacedMap {
  static constexpr int kSide = 48;
  std::string name;
  MapKind kind = MapKind::classes;
  std::vector<float> values;  // kSide x kSide
};

struct PictureResults {
  std::vector<PlacedObject> objects;  // including results about the whole picture
  std::vector<Classification> answers;
  std::vector<PlacedMap> maps;
  std::vector<RecognizedText> texts;
  std::vector<Embedding> embeddings;
  std::vector<Tensor> tensors;  // set if no head reads the outputs
  std::string contradiction;
};

// Converts results of a network, in pixels of its input, to a picture of width x height.
PictureResults place(const Results& results, const Placement& placement, int width, int height);

}  // namespace clinfer
