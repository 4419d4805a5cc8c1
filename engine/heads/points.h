// Key points and rotated boxes: shapes, reading, geometry.
#pragma once

#include "engine/heads/common.h"

namespace clinfer {

struct PointShape {
  size_t count = 0;
  size_t dimensions = 3;  // x, y and a confidence, or without it
  Skeleton skeleton = Skeleton::none;
  size_t elements() const { return count * dimensions; }
};

// model_info's kpt_shape ("17,3"); count 0 where nothing is stated.
PointShape stated_points(const ModelFacts& facts);

// The stated shape, else `elements` numbers as points of three.
PointShape points_of(const ModelFacts& facts, size_t elements);

// The skeleton that so many points mean, where it is known.
Skeleton skeleton_for(size_t points);

// column(k): number k of the points. Some exporters turn boxes into shares of the picture and leave points
// in pixels: where a box is in shares (units above 1), numbers beyond 2 are pixels.
template <typename Column>
void add_points(const PointShape& shape, const Column& column, float x_unit, float y_unit,
                Detection& detection) {
  detection.skeleton = shape.skeleton;
  bool pixels = false;
  for (size_t i = 0; i < shape.count; ++i)
    for (size_t axis = 0; axis < 2; ++axis) {
      const float v = column(i * shape.dimensions + axis);
      pixels = pixels || (std::isfinite(v) && unit_seen(std::fabs(v)) == Decided::second);
    }
  if (pixels) x_unit = y_unit = 1;
  for (size_t i = 0; i < shape.count; ++i) {
    const size_t at = i * shape.dimensions;
    const float confidence = shape.dimensions == 3 ? column(at + 2) : 1.0f;
    KeyPoint point{column(at) * x_unit, column(at + 1) * y_unit, confidence};
    // A point that is nowhere is not there.
    if (!std::isfinite(point.x) || !std::isfinite(point.y) || !std::isfinite(confidence))
      point = {};
    detection.keypoints.push_back(point);
  }
}

struct Hull {
  float x_min = 0, y_min = 0, x_max = 0, y_max = 0;
};
// Inside out where width or height is not positive.
Hull hull_of(const OrientedBox& box);

// Returns how much two rotated boxes overlap, by the distance of their Gaussians (probiou), as
// those who train such networks measure it. 0..1.
float oriented_iou(const OrientedBox& a, const OrientedBox& b);

}  // namespace clinfer
