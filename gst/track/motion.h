// Estimates where an object is and how it moves: a Kalman filter of constant velocity for the
// centre and the size of its box. The noise of the four values is independent, so each has a filter
// with two states; together they are the filter with eight states that SORT and ByteTrack use.
#pragma once

namespace clinfer {

// A box in any unit of length. Its corners are no integers, because fractions of pixels matter for
// small objects.
struct Box {
  double x_min = 0, y_min = 0, x_max = 0, y_max = 0;
  double width() const { return x_max - x_min; }
  double height() const { return y_max - y_min; }
};

// Returns the intersection over union; 0 without intersection.
double overlap(const Box& a, const Box& b);

// A value and its speed, with the covariance of both.
struct MovingValue {
  double value = 0, speed = 0;
  double value_variance = 0, covariance = 0, speed_variance = 0;

  void start(double at, double value_deviation, double speed_deviation);
  // Predicts the value after `time`. `value_noise`, `speed_noise`: the standard deviations that one
  // unit of time adds.
  void advance(double time, double value_noise, double speed_noise);
  void correct(double measured, double deviation);
  double distance(double measured, double deviation) const;
};

class Motion {
 public:
  Motion() = default;
  explicit Motion(const Box& box);
  // Predicts the box after `time` units. The noise fits units of a thirtieth of a second.
  void advance(double time);
  void correct(const Box& box);
  // Moves the expected box, because the camera turned.
  void move(double x, double y);
  // Sets the speed of the size to zero, for an object that is out of sight.
  void keep_size();
  // Returns how far a measured box is from the expected one, as the square of a number of standard
  // deviations (Mahalanobis).
  double distance(const Box& box) const;
  Box box() const;

 private:
  double width() const;
  double height() const;
  double size() const;

  MovingValue x_, y_, width_, height_;
};

}  // namespace clinfer
