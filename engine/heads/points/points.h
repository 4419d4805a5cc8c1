// Key points and rotated boxes: shapes, reading, geometry.
#pragma once

#include "engine/heads/base/common.h"

namespace clinfer {

struct PointShape {
  size_t count = 0;
  size_t dimensions = 3;  // 3: x, y and a confidence; 2: without confidence
  Skeleton skeleton = Skeleton::none;
  size_t elements() const { return count * dimensions; }
};

// Returns model_info's kpt_shape ("17,3"); a count of 0 if it is not stated.
PointShape stated_points(const ModelFacts& facts);

// Returns the stated shape, or else `elements` numbers as points with three each.
PointShape points_of(const ModelFacts& facts, size_t elements);

// Returns the skeleton with this number of points, if it is known.
Skeleton skeleton_for(size_t points);

// Adds points; column(k) returns number k of them. Some exporters convert boxes to shares of the
// picture and leave points in pixels: if a box is in shares (units above 1), numbers beyond 2 are
// pixels.
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
    // Treats a point without a valid place as missing.
    if (!std::isfinite(point.x) || !std::isfinite(point.y) || !std::isfinite(confidence))
      point = {};
    detection.keypoints.push_back(point);
  }
}

// Matches OpenSeeFace's points of a face: maps of scores and of offsets along rows and columns.
Match match_offset_maps(const ModelFacts& facts);

struct Hull {
  float x_min = 0, y_min = 0, x_max = 0, y_max = 0;
};
// Returns the enclosing box; it is inverted if width or height is not positive.
Hull hull_of(const OrientedBox& box);

// Returns the overlap of two rotated boxes, 0..1, by the distance of their Gaussians (probiou), as
// in the training of such networks.
float oriented_iou(const OrientedBox& a, const OrientedBox& b);

}  // namespace clinfer
