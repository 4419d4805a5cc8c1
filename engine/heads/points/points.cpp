// Handles key points and rotated boxes: shapes, reading, geometry.
#include "engine/heads/points/points.h"

#include <algorithm>
#include <charconv>

namespace clinfer {

Skeleton skeleton_for(size_t points) {
  switch (points) {
    case 5:
      return Skeleton::face5;
    case 17:
      return Skeleton::coco17;
    case 18:
      return Skeleton::body18;
    case 21:
      return Skeleton::hand21;
    case 25:
      return Skeleton::body25;
    case 33:
      return Skeleton::body33;
    default:
      return Skeleton::other;
  }
}

PointShape stated_points(const ModelFacts& facts) {
  std::vector<size_t> numbers;
  const std::string text = info(facts, "kpt_shape");
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    size_t value = 0;
    const auto parsed = std::from_chars(at, end, value);
    if (parsed.ec == std::errc()) numbers.push_back(value);
    at = parsed.ec == std::errc() ? parsed.ptr : at + 1;
  }
  if (numbers.size() != 2 || numbers[0] < 1 || numbers[0] > 10000 ||
      (numbers[1] != 2 && numbers[1] != 3))
    return {};
  return {numbers[0], numbers[1], skeleton_for(numbers[0])};
}

PointShape points_of(const ModelFacts& facts, size_t elements) {
  const PointShape stated = stated_points(facts);
  if (stated.count != 0 && stated.elements() == elements) return stated;
  return {elements / 3, 3, skeleton_for(elements / 3)};
}

Hull hull_of(const OrientedBox& box) {
  const float c = std::fabs(std::cos(box.rotation)), s = std::fabs(std::sin(box.rotation));
  const bool positive = box.width > 0 && box.height > 0;
  const float half_w = positive ? (box.width * c + box.height * s) / 2 : -1;
  const float half_h = positive ? (box.width * s + box.height * c) / 2 : -1;
  return {box.x_center - half_w, box.y_center - half_h, box.x_center + half_w,
          box.y_center + half_h};
}

float oriented_iou(const OrientedBox& a, const OrientedBox& b) {
  // Computes the Hellinger distance of Gaussians with the boxes' second moments (Llerena et al.,
  // "Gaussian Bounding Boxes and Probabilistic Intersection-over-Union").
  struct Moments {
    double xx, yy, xy;
  };
  const auto moments = [](const OrientedBox& box) {
    const double w = static_cast<double>(box.width) * box.width / 12;
    const double h = static_cast<double>(box.height) * box.height / 12;
    const double c = std::cos(box.rotation), s = std::sin(box.rotation);
    return Moments{w * c * c + h * s * s, w * s * s + h * c * c, (w - h) * c * s};
  };
  constexpr double kTiny = 1e-7;
  const Moments p = moments(a), q = moments(b);
  const double xx = p.xx + q.xx, yy = p.yy + q.yy, xy = p.xy + q.xy;
  const double dx = static_cast<double>(a.x_center) - b.x_center;
  const double dy = static_cast<double>(a.y_center) - b.y_center;
  const double determinant = xx * yy - xy * xy;
  const double apart = (yy * dx * dx + xx * dy * dy - 2 * xy * dx * dy) / (determinant + kTiny) / 4;
  const double own = std::sqrt(std::max(p.xx * p.yy - p.xy * p.xy, 0.0) *
                               std::max(q.xx * q.yy - q.xy * q.xy, 0.0));
  const double spread = std::log(determinant / (4 * own + kTiny) + kTiny) / 2;
  const double distance = std::clamp(apart + spread, kTiny, 100.0);
  const double result = 1 - std::sqrt(1 - std::exp(-distance) + kTiny);
  return std::isfinite(result) ? static_cast<float>(result) : 0;
}

}  // namespace clinfer
