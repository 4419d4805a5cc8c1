// Implements the Kalman filter of a box.
#include "gst/track/motion.h"

#include <algorithm>
#include <cmath>

namespace clinfer {
namespace {

// Standard deviations as shares of the object's size: of its real and measured place, and of its
// speed per unit of time.
constexpr double kPlace = 1.0 / 20;
constexpr double kSpeed = 1.0 / 160;
constexpr double kLeastSize = 1e-6;

}  // namespace

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min),
               height = std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min);
  if (!(width > 0) || !(height > 0)) return 0;
  const double shared = width * height;
  return shared / (a.width() * a.height() + b.width() * b.height() - shared);
}

void MovingValue::start(double at, double value_deviation, double speed_deviation) {
  value = at;
  speed = covariance = 0;
  value_variance = value_deviation * value_deviation;
  speed_variance = speed_deviation * speed_deviation;
}

void MovingValue::advance(double time, double value_noise, double speed_noise) {
  value += speed * time;
  value_variance +=
      time * (2 * covariance + time * speed_variance) + value_noise * value_noise * time;
  covariance += time * speed_variance;
  speed_variance += speed_noise * speed_noise * time;
}

void MovingValue::correct(double measured, double deviation) {
  const double variance = value_variance + deviation * deviation;
  const double value_gain = value_variance / variance, speed_gain = covariance / variance;
  const double error = measured - value;
  value += value_gain * error;
  speed += speed_gain * error;
  speed_variance -= speed_gain * covariance;
  covariance -= speed_gain * value_variance;
  value_variance -= value_gain * value_variance;
}

double MovingValue::distance(double measured, double deviation) const {
  const double error = measured - value;
  return error * error / (value_variance + deviation * deviation);
}

double Motion::width() const { return std::max(width_.value, kLeastSize); }
double Motion::height() const { return std::max(height_.value, kLeastSize); }
// Averages both sides, because tall, narrow objects move sideways as fast as wide ones.
double Motion::size() const { return (width() + height()) / 2; }

Motion::Motion(const Box& box) {
  width_.value = box.width();
  height_.value = box.height();
  const auto start = [](MovingValue& to, double at, double size) {
    to.start(at, 2 * kPlace * size, 10 * kSpeed * size);
  };
  start(x_, (box.x_min + box.x_max) / 2, size());
  start(y_, (box.y_min + box.y_max) / 2, size());
  start(width_, width(), width());
  start(height_, height(), height());
}

void Motion::advance(double time) {
  const double by_width = width(), by_height = height(), by_size = size();
  x_.advance(time, kPlace * by_size, kSpeed * by_size);
  y_.advance(time, kPlace * by_size, kSpeed * by_size);
  width_.advance(time, kPlace * by_width, kSpeed * by_width);
  height_.advance(time, kPlace * by_height, kSpeed * by_height);
}

void Motion::correct(const Box& box) {
  const double by_width = width(), by_height = height(), by_size = size();
  x_.correct((box.x_min + box.x_max) / 2, kPlace * by_size);
  y_.correct((box.y_min + box.y_max) / 2, kPlace * by_size);
  width_.correct(box.width(), kPlace * by_width);
  height_.correct(box.height(), kPlace * by_height);
}

double Motion::distance(const Box& box) const {
  return x_.distance((box.x_min + box.x_max) / 2, kPlace * size()) +
         y_.distance((box.y_min + box.y_max) / 2, kPlace * size()) +
         width_.distance(box.width(), kPlace * width()) +
         height_.distance(box.height(), kPlace * height());
}

void Motion::move(double x, double y) {
  x_.value += x;
  y_.value += y;
}

void Motion::keep_size() { width_.speed = height_.speed = 0; }

Box Motion::box() const {
  return {x_.value - width() / 2, y_.value - height() / 2, x_.value + width() / 2,
          y_.value + height() / 2};
}

}  // namespace clinfer
