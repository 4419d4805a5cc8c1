// Compares samples of brightness with a reference.
#include "gst/infer/motion/motion_detector.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

namespace clinfer {
namespace {

constexpr int kLevel = 16;                        // units of a sample in one level of brightness
constexpr int kColumns = 240, kRows = 160;        // approximate numbers of samples
constexpr int kBlockColumns = 2, kBlockRows = 3;  // samples in a block
// Least number of samples that change together in a window of a block's size.
constexpr int kTogether = 3;
// Samples in a tile. Changes of light are estimated for each tile.
constexpr int kTileColumns = 30, kTileRows = 18;
// Largest change of a sample by light, in levels: more means that an object covers it. For a tile,
// the change is relative to the whole picture's, and may be twice this value.
constexpr int kMostLight = 16, kMostLocalLight = 6;
// Gaussian noise exceeds this number of standard deviations in one of 700 samples.
constexpr double kDeviations = 3;
// The reference follows by one level in this number of frames.
constexpr uint64_t kFollow = 16;
// Up to this share of blocks, in thousandths, may have changes that are gone on the next frame.
constexpr int kStray = 1;
// If slightly more blocks have such changes, the threshold rises by half a level a frame. If many
// more have them, it rises by up to this factor faster, so that heavy rain is known after a few
// frames. Objects do not raise it, because their blocks lie together.
constexpr double kMostHaste = 8;
constexpr double kMostThreshold = 48;
// Number of changed blocks among 3x3 that is an object at once.
constexpr int kSolid = 6;

// The position of a pixel's brightness in the first plane.
struct Layout {
  int step;    // in bytes from pixel to pixel
  int offset;  // in bytes
  int shift;   // from a two-byte sample to eight bits; 0: samples have one byte
};

Layout layout_of(PixelFormat format) {
  switch (format) {
    case PixelFormat::yuy2:
      return {2, 0, 0};
    case PixelFormat::uyvy:
      return {2, 1, 0};
    case PixelFormat::rgb:
    case PixelFormat::bgr:
      return {3, 1, 0};  // green stands for brightness
    case PixelFormat::rgbx:
    case PixelFormat::bgrx:
      return {4, 1, 0};
    case PixelFormat::xrgb:
    case PixelFormat::xbgr:
      return {4, 2, 0};
    case PixelFormat::p010:
      return {2, 1, 0};
    case PixelFormat::i420_10:
      return {2, 0, 2};
    default:
      return {1, 0, 0};
  }
}

// Returns the sum of eight bytes.
unsigned sum_of_eight(const uint8_t* bytes) {
  constexpr uint64_t kEven = 0x00ff00ff00ff00ff;
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  word = (word & kEven) + ((word >> 8) & kEven);
  word += word >> 16;
  return static_cast<unsigned>(word + (word >> 32)) & 0xffff;
}

// Returns the sum of four bytes.
unsigned sum_of_four(const uint8_t* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  word = (word & 0x00ff00ff) + ((word >> 8) & 0x00ff00ff);
  return (word + (word >> 16)) & 0xffff;
}

// Returns a power of two from 4 to 16, such that about `wanted` samples fit into `width` pixels.
int pixels_for(int width, int wanted) {
  int pixels = 4;
  while (pixels < 16 && width / pixels > wanted * 5 / 4) pixels *= 2;
  return pixels;
}

int16_t middle_of(int16_t a, int16_t b, int16_t c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

}  // namespace

void MotionDetector::set(double threshold, std::vector<Rect> regions) {
  threshold_ = threshold;
  regions_ = std::move(regions);
  reset();
}

void MotionDetector::reset() {
  frames_ = 0;
  visible_ = {};
}

double MotionDetector::threshold_in_force() const {
  return std::min(std::max(threshold_, noise_) + weather_, std::max(kMostThreshold, threshold_));
}

void MotionDetector::fit(const Frame& frame, const Rect& visible) {
  format_ = frame.format;
  visible_ = visible;
  pixels_ = pixels_for(visible.width, kColumns);
  step_ = std::max(pixels_ / 2, (visible.height + kRows / 2) / kRows);
  columns_ = visible.width / pixels_;
  rows_ = visible.height / step_;
  block_columns_ = (columns_ + kBlockColumns - 1) / kBlockColumns;
  block_rows_ = (rows_ + kBlockRows - 1) / kBlockRows;
  const auto blocks = static_cast<size_t>(block_columns_) * static_cast<size_t>(block_rows_);
  const auto samples = static_cast<size_t>(columns_) * static_cast<size_t>(rows_);
  for (Samples& picture : pictures_) picture.assign(samples, 0);
  reference_.assign(samples, 0);
  const auto tile_rows = static_cast<size_t>((rows_ + kTileRows - 1) / kTileRows);
  light_.assign(tile_rows * static_cast<size_t>(columns_), 0);
  changed_.assign(blocks, 0);
  changed_before_.assign(blocks, 0);
  counts_.assign(blocks, regions_.empty());
  noise_ = weather_ = 0;
  frames_ = 0;
  const int width = pixels_ * kBlockColumns, height = step_ * kBlockRows;
  for (const Rect& region : regions_)
    for (int y = 0; y < block_rows_; ++y)
      for (int x = 0; x < block_columns_; ++x) {
        const int left = visible.x + x * width, top = visible.y + y * height;
        if (left < region.x + region.width && region.x < left + width &&
            top < region.y + region.height && region.y < top + height)
          counts_[static_cast<size_t>(y * block_columns_ + x)] = 1;
      }
}

void MotionDetector::sample(const Frame& frame, Samples& samples) const {
  const Layout layout = layout_of(frame.format);
  // Takes every second pixel if pixels are not adjacent bytes.
  const int apart = layout.step > 1 ? 2 : 1;
  const int scale = kLevel * apart / pixels_;
  int16_t* out = samples.data();
  for (int y = 0; y < rows_; ++y) {
    const uint8_t* at = frame.planes[0] +
                        static_cast<std::ptrdiff_t>(visible_.y + y * step_) * frame.strides[0] +
                        visible_.x * layout.step + layout.offset;
    if (layout.step == 1) {
      for (int x = 0; x < columns_; ++x, at += pixels_) {
        unsigned sum = pixels_ == 4 ? sum_of_four(at) : sum_of_eight(at);
        if (pixels_ == 16) sum += sum_of_eight(at + 8);
        *out++ = static_cast<int16_t>(sum * static_cast<unsigned>(scale));
      }
      continue;
    }
    for (int x = 0; x < columns_; ++x) {
      int sum = 0;
      for (int i = 0; i < pixels_; i += apart, at += layout.step * apart)
        sum += layout.shift == 0 ? at[0] : (at[0] | at[1] << 8) >> layout.shift;
      *out++ = static_cast<int16_t>(sum * scale);
    }
  }
}

// Estimates the deviation of a sample from frame to frame, from the median difference of
// neighbours, which light and most objects change together.
void MotionDetector::measure_noise() {
  const Samples &now = pictures_[frames_ % 3], &before = pictures_[(frames_ + 2) % 3];
  std::array<int, 1024> histogram{};
  int total = 0;
  for (int y = 0; y < rows_; y += 8) {
    const auto row = static_cast<size_t>(y * columns_);
    for (int x = 0; x + 1 < columns_; x += 2) {
      const size_t at = row + static_cast<size_t>(x);
      const int difference = (now[at] - before[at]) - (now[at + 1] - before[at + 1]);
      ++histogram[static_cast<size_t>(std::min(std::abs(difference), 1023))];
      ++total;
    }
  }
  int below = 0;
  size_t median = 0;
  while (median + 1 < histogram.size() && (below += histogram[median]) * 2 < total) ++median;
  // Corrects for two samples and two frames; the reference has less noise than one frame.
  const double deviation = static_cast<double>(median) / 0.6745 / std::sqrt(2.0);
  const double wanted = kDeviations * deviation / kLevel;
  noise_ = frames_ < 3 ? std::max(noise_, wanted) : noise_ + (wanted - noise_) / 4;
}

// Estimates how much lighter or darker the picture is than the reference: one factor for the whole
// picture, and then a factor for each tile, which may differ from it by less. A larger difference
// is an object, and gets little weight.
void MotionDetector::match_light() {
  const Samples& now = pictures_[frames_ % 3];
  // Returns the factor for samples that are initially `from` times lighter; no sample counts for
  // more than `most` levels.
  const auto factor_of = [&](int left, int right, int top, int bottom, int from, int most) {
    const auto limit = static_cast<int16_t>(most * kLevel);
    int changed = 0, all = 1;
    for (int y = top; y < bottom; y += 4) {
      const int16_t* a = now.data() + y * columns_;
      const int16_t* b = reference_.data() + y * columns_;
      for (int x = left; x < right; ++x) {
        const auto by_light = static_cast<int16_t>((b[x] * static_cast<int16_t>(from)) >> 16);
        const auto difference = static_cast<int16_t>(a[x] - b[x] - by_light);
        changed += std::clamp(difference, static_cast<int16_t>(-limit), limit);
        all += b[x];
      }
    }
    return static_cast<int>(
        std::clamp<int64_t>(from + int64_t{changed} * 65536 / all, -32768, 32767));
  };
  const int everywhere = factor_of(0, columns_, 0, rows_, 0, kMostLight);
  for (int top = 0, tile = 0; top < rows_; top += kTileRows, ++tile)
    for (int left = 0; left < columns_; left += kTileColumns) {
      const int right = std::min(left + kTileColumns, columns_);
      const int bottom = std::min(top + kTileRows, rows_);
      int factor = everywhere;
      for (int round = 0; round < 2; ++round)
        factor = factor_of(left, right, top, bottom, factor, kMostLocalLight);
      std::fill(light_.begin() + tile * columns_ + left, light_.begin() + tile * columns_ + right,
                static_cast<int16_t>(factor));
    }
}

// Finds blocks with a window whose samples have become lighter together, or darker together. Loops
// over 16-bit numbers, which the compiler turns into vector instructions.
void MotionDetector::find_changes(int16_t threshold) {
  std::swap(changed_, changed_before_);
  const auto columns = static_cast<size_t>(columns_);
  const Samples& now = pictures_[frames_ % 3];
  // The last rows' flags by column: the sample became lighter, or darker.
  std::vector<uint8_t> lighter(columns * kBlockRows), darker(columns * kBlockRows);
  std::vector<uint8_t> lighter_sum(columns + 1), darker_sum(columns + 1), found(columns + 1);
  for (size_t y = 0; y < static_cast<size_t>(rows_); ++y) {
    const int16_t* a = now.data() + y * columns;
    const int16_t* b = reference_.data() + y * columns;
    const int16_t* light = light_.data() + y / kTileRows * columns;
    uint8_t* up = lighter.data() + y % kBlockRows * columns;
    uint8_t* down = darker.data() + y % kBlockRows * columns;
    for (size_t x = 0; x < columns; ++x) {
      const auto by_light = static_cast<int16_t>((b[x] * light[x]) >> 16);
      const auto difference = static_cast<int16_t>(a[x] - b[x] - by_light);
      up[x] = difference > threshold;
      down[x] = difference < static_cast<int16_t>(-threshold);
    }
    const uint8_t* u = lighter.data();
    const uint8_t* d = darker.data();
    for (size_t x = 0; x < columns; ++x) {
      lighter_sum[x] = static_cast<uint8_t>(u[x] + u[columns + x] + u[2 * columns + x]);
      darker_sum[x] = static_cast<uint8_t>(d[x] + d[columns + x] + d[2 * columns + x]);
    }
    for (size_t x = 0; x < columns; ++x) {
      const auto together = std::max(static_cast<uint8_t>(lighter_sum[x] + lighter_sum[x + 1]),
                                     static_cast<uint8_t>(darker_sum[x] + darker_sum[x + 1]));
      found[x] |= static_cast<uint8_t>(together >= kTogether);
    }
    if ((y + 1) % kBlockRows != 0 && y + 1 != static_cast<size_t>(rows_)) continue;
    const size_t first = y / kBlockRows * static_cast<size_t>(block_columns_);
    for (size_t x = 0; x < static_cast<size_t>(block_columns_); ++x)
      changed_[first + x] = (found[2 * x] | found[2 * x + 1]) & counts_[first + x];
    std::fill(found.begin(), found.end(), uint8_t{0});
  }
}

// Returns whether the changed blocks are an object; otherwise they count as weather.
bool MotionDetector::judge() {
  bool object = false;
  int stray = 0;
  for (int y = 0; y < block_rows_; ++y)
    for (int x = 0; x < block_columns_; ++x) {
      const auto at = [&](int dy, int dx) {
        return static_cast<size_t>((y + dy) * block_columns_ + x + dx);
      };
      if (changed_[at(0, 0)] == 0) continue;
      int around = 0, around_before = 0;
      for (int dy = y > 0 ? -1 : 0; dy <= (y + 1 < block_rows_ ? 1 : 0); ++dy)
        for (int dx = x > 0 ? -1 : 0; dx <= (x + 1 < block_columns_ ? 1 : 0); ++dx) {
          around += changed_[at(dy, dx)];
          around_before += changed_before_[at(dy, dx)];
        }
      if (around >= kSolid || around_before != 0)
        object = true;
      else
        ++stray;
    }
  const double excess = stray * 1000.0 / (kStray * block_columns_ * block_rows_);
  if (excess > 1)
    weather_ = std::min(weather_ * 1.1 + 0.5 * std::min(excess, kMostHaste), kMostThreshold);
  else
    weather_ *= 0.99;
  return object;
}

void MotionDetector::follow() {
  const Samples& now = pictures_[frames_ % 3];
  for (auto y = static_cast<int>(frames_ % kFollow); y < rows_; y += kFollow) {
    const int16_t* a = now.data() + y * columns_;
    int16_t* b = reference_.data() + y * columns_;
    for (int x = 0; x < columns_; ++x)
      b[x] = static_cast<int16_t>(b[x] + std::clamp(a[x] - b[x], -kLevel, kLevel));
  }
}

bool MotionDetector::look(const Frame& frame, const Rect& visible) {
  if (frame.format != format_ || visible.x != visible_.x || visible.y != visible_.y ||
      visible.width != visible_.width || visible.height != visible_.height)
    fit(frame, visible);
  else
    ++frames_;
  sample(frame, pictures_[frames_ % 3]);
  if (frames_ == 0) {
    take_as_reference();
    return true;
  }
  if (frames_ < 4 || frames_ % 4 == 0) measure_noise();
  match_light();
  find_changes(static_cast<int16_t>(threshold_in_force() * kLevel));
  const bool changed = judge();
  follow();
  return changed;
}

// Takes the median of the last three pictures, which contains no rain.
void MotionDetector::take_as_reference() {
  if (frames_ < 2) {
    reference_ = pictures_[frames_ % 3];
    return;
  }
  const auto& [a, b, c] = pictures_;
  for (size_t i = 0; i < reference_.size(); ++i) reference_[i] = middle_of(a[i], b[i], c[i]);
}

}  // namespace clinfer
