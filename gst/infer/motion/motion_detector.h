// Detects whether a picture has changed since the last one that the network got. Plain C++, without
// GStreamer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/frames/frame.h"

namespace clinfer {

// Compares brightness, sampled at about 240x160 places, with a reference: the picture that was last
// inferred, which then follows the scene slowly. Ignores light that changes over a part of the
// picture by one factor, changes of single samples, and changes that are gone on the next frame:
// noise, flicker, rain. The least difference that counts grows with noise and rain.
//
// Not thread-safe.
class MotionDetector {
 public:
  // `threshold`: least difference in brightness that counts, of 255. `regions`: parts of the frame
  // where changes count, in its pixels; empty: everywhere.
  void set(double threshold, std::vector<Rect> regions);
  // Forgets all pictures, so that the next picture counts as changed.
  void reset();
  // Returns whether the part `visible` of a frame has changed. A frame of another size has.
  bool look(const Frame& frame, const Rect& visible);
  // Makes the picture that was looked at last the reference.
  void take_as_reference();

  // Returns the least difference in brightness that counts at present.
  double threshold_in_force() const;

 private:
  using Samples = std::vector<int16_t>;  // brightness in sixteenths, rows_ x columns_
  using Blocks = std::vector<uint8_t>;   // 1 for a changed block

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
  int pixels_ = 0, step_ = 0;  // of a sample: width in pixels; rows from one sample to the next
  int columns_ = 0, rows_ = 0, block_columns_ = 0, block_rows_ = 0;
  std::vector<uint8_t> counts_;  // by block: 1 if changes there count

  uint64_t frames_ = 0;              // since reset()
  std::array<Samples, 3> pictures_;  // of the last frames; frame n is at n % 3
  Samples reference_;
  std::vector<int16_t>
      light_;  // by tile row and column of samples: change by light, in 1/65536 of the brightness
  Blocks changed_, changed_before_;
  // Levels of noise; how far noise and weather raise the threshold.
  double noise_ = 0, weather_ = 0;
};

}  // namespace clinfer
