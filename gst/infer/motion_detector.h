// Whether a picture has changed since the last one that the network got. Plain C++, without GStreamer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/frames/frame.h"

namespace clinfer {

// Compares brightness, sampled at about 240x160 places, with a reference: the picture that was last inferred,
// which then follows the scene slowly. Light that changes over a part of the picture by one factor is no change,
// nor is what single samples do, or what is gone on the next frame: noise, flicker, rain. The least difference that
// counts grows with noise and rain.
//
// For one thread.
class MotionDetector {
 public:
  // threshold: least difference in brightness, of 255. regions: parts of the frame where changes count, in its
  // pixels; empty: everywhere.
  void set(double threshold, std::vector<Rect> regions);
  // Forgets what it saw: the next picture has changed.
  void reset();
  // Whether the part `visible` of a frame has changed. A frame of another size has.
  bool look(const Frame& frame, const Rect& visible);
  // The picture that was looked at last is the reference from now on.
  void take_as_reference();

  // The least difference in brightness that counts now.
  double threshold_in_force() const;

 private:
  using Samples = std::vector<int16_t>;  // brightness in sixteenths, rows_ x columns_
  using Blocks = std::vector<uint8_t>;   // 1 where it changed

  void fit(const Frame& frame, const Rect& visible);
  void sample(const Frame& frame, Samples& samples) const;
  void measure_noise();
  void match_light();
  void find_changes(int16_t threshold);
  bool judge();
  void follow();

  double threshold_ = 8;
  std::vector<Rect> regions_;

  PixelFormat format_ = PixelFormat::nv12;
  Rect visible_;
  int pixels_ = 0, step_ = 0;  // of a sample: pixels wide; rows from one to the next
  int columns_ = 0, rows_ = 0, block_columns_ = 0, block_rows_ = 0;
  std::vector<uint8_t> counts_;  // by block: whether changes there count

  uint64_t frames_ = 0;              // since reset()
  std::array<Samples, 3> pictures_;  // of the last frames, frame n in n % 3
  Samples reference_;
  std::vector<int16_t>
      light_;  // by tile row and column of samples: change by light, in 1/65536 of the brightness
  Blocks changed_, changed_before_;
  double noise_ = 0, weather_ = 0;  // levels; how far they raise the threshold
};

}  // namespace clinfer
