// The detector of motion on generated scenes with noise, flicker, rain and changing daylight, and objects in them.
#include "gst/infer/motion/motion_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace clinfer {
namespace {

constexpr int kStreetWidth = 640, kStreetHeight = 360;

// A street with texture at all scales; what happens to it is added frame by frame.
class Street {
 public:
  Street()
      : background_(kStreetWidth * kStreetHeight), picture_(background_.size()), noise_(99'991) {
    std::vector<float> cells(41 * 23);
    for (float& cell : cells) cell = static_cast<float>(40 + random_() % 130);
    for (int y = 0; y < kStreetHeight; ++y)
      for (int x = 0; x < kStreetWidth; ++x)
        at(background_, x, y) =
            cells[static_cast<size_t>(y / 16 * 41 + x / 16)] +
            12 * std::sin(static_cast<float>(x) * 0.7f) * std::sin(static_cast<float>(y) * 0.5f);
    std::normal_distribution<float> normal;
    for (float& value : noise_) value = normal(random_);
  }
  void box(int left, int top, int size, float level) {
    for (int y = top; y < std::min(kStreetHeight, top + size); ++y)
      for (int x = left; x < std::min(kStreetWidth, left + size); ++x) at(picture_, x, y) = level;
  }
  void noise(float deviation) {
    size_t from = random_() % noise_.size();
    for (float& pixel : picture_) {
      pixel += deviation * noise_[from];
      if (++from == noise_.size()) from = 0;
    }
  }
  void light(float factor, int top = 0, int bottom = kStreetHeight) {
    for (int y = top; y < bottom; ++y)
      for (int x = 0; x < kStreetWidth; ++x) at(picture_, x, y) *= factor;
  }
  // Streaks of a pixel or two, slanted by the wind, at new places in each frame.
  void rain(int drops) {
    for (int i = 0; i < drops; ++i) {
      const auto left = static_cast<int>(random_() % kStreetWidth);
      const auto top = static_cast<int>(random_() % kStreetHeight);
      const auto length = 6 + static_cast<int>(random_() % 14);
      const auto width = 1 + static_cast<int>(random_() % 2);
      for (int k = 0; k < length; ++k)
        for (int x = left + k / 6; x < left + k / 6 + width; ++x)
          if (x < kStreetWidth && top + k < kStreetHeight) at(picture_, x, top + k) += 40;
    }
  }
  // The numbers of those frames, of `frames`, that the detector calls changed. `happens` paints each.
  std::vector<int> look(MotionDetector& detector, int frames,
                        const std::function<void(Street&, int)>& happens) {
    std::vector<int> changed;
    std::vector<uint8_t> bytes(picture_.size());
    for (int n = 0; n < frames; ++n) {
      picture_ = background_;
      happens(*this, n);
      std::transform(picture_.begin(), picture_.end(), bytes.begin(), [](float pixel) {
        return static_cast<uint8_t>(std::clamp(pixel, 0.f, 255.f));
      });
      Frame frame;
      frame.format = PixelFormat::gray8;
      frame.width = kStreetWidth;
      frame.height = kStreetHeight;
      frame.planes[0] = bytes.data();
      frame.strides[0] = kStreetWidth;
      if (!detector.look(frame, {0, 0, kStreetWidth, kStreetHeight})) continue;
      detector.take_as_reference();
      changed.push_back(n);
    }
    return changed;
  }

 private:
  static float& at(std::vector<float>& pixels, int x, int y) {
    return pixels[static_cast<size_t>(y * kStreetWidth + x)];
  }
  std::minstd_rand random_{7};
  std::vector<float> background_, picture_, noise_;
};

struct Weather {
  std::string name;
  std::function<void(Street&, int)> happens;
};

std::vector<Weather> weathers() {
  const auto wave = [](double phase) { return static_cast<float>(std::sin(phase)); };
  return {{"nothing", [](Street&, int) {}},
          {"noise", [](Street& s, int) { s.noise(4); }},
          {"strong noise", [](Street& s, int) { s.noise(12); }},
          {"lamps", [=](Street& s, int n) { s.light(1 + 0.1f * wave(n * 1.9)), s.noise(3); }},
          {"lamps line by line",
           [=](Street& s, int n) {
             for (int y = 0; y < kStreetHeight; y += 12)
               s.light(1 + 0.06f * wave(n * 2.1 + y * 0.02), y, y + 12);
             s.noise(3);
           }},
          {"drizzle", [](Street& s, int) { s.rain(60), s.noise(3); }},
          {"rain", [](Street& s, int) { s.rain(400), s.noise(4); }},
          {"downpour", [](Street& s, int) { s.rain(900), s.noise(4); }},
          {"dusk", [](Street& s, int n) {
             s.light(1 - 0.8f * static_cast<float>(n) / 120);
             s.noise(3);
           }}};
}

TEST(MotionDetector, WeatherIsNoMotion) {
  for (const Weather& weather : weathers()) {
    Street scene;
    MotionDetector detector;
    const std::vector<int> changed = scene.look(detector, 60, weather.happens);
    EXPECT_LE(changed.size(), 12u) << weather.name;
    ASSERT_FALSE(changed.empty());
    EXPECT_EQ(changed[0], 0);
  }
}

struct Object {
  int size, speed;  // pixels, and of them a frame
  float level;
};

// Small and large ones, that stand still, crawl and run.
TEST(MotionDetector, ObjectsAreSeenOnTheirSecondFrame) {
  constexpr int kComes = 30;
  for (const Weather& weather : weathers())
    for (const Object& object : {Object{12, 0, 230}, {12, 2, 230}, {20, 5, 10}, {60, 13, 200}}) {
      Street scene;
      MotionDetector detector;
      const std::vector<int> changed = scene.look(detector, kComes + 5, [&](Street& s, int n) {
        if (n >= kComes) s.box(333 + object.speed * (n - kComes), 187, object.size, object.level);
        weather.happens(s, n);
      });
      const auto first = std::lower_bound(changed.begin(), changed.end(), kComes);
      ASSERT_NE(first, changed.end()) << weather.name << ", " << object.size;
      EXPECT_LE(*first, kComes + 1) << weather.name << ", " << object.size;
    }
}

}  // namespace
}  // namespace clinfer
