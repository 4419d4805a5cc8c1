// Converts a video frame to a network's input: placement, the launch, and the reference
// implementation in plain C++ of the kernel in preprocess.cl.
#include "kernels/frames/preprocess.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace clinfer {

namespace {

constexpr int kMaxFrame = 32767, kMaxNetwork = 16384;  // 2 * network * frame stays below 2^31
constexpr int kMaxTurned = 1 << 20;                    // sides and distances of turned regions

// The positions of one component's samples in a plane.
struct Component {
  int plane = 0, offset = 0, step = 1;  // offset and step in bytes
};

struct Layout {
  bool yuv = false;
  int shift_x = 0, shift_y = 0;           // of the second and third component
  std::array<Component, 3> components{};  // Y, U, V or R, G, B
  int down = 0;                           // position of samples of 10 bits in two bytes
  int depth = 8;                          // bits of a sample
};

Layout layout_of(PixelFormat format) {
  switch (format) {
    case PixelFormat::nv12:
      return {true, 1, 1, {{{0, 0, 1}, {1, 0, 2}, {1, 1, 2}}}};
    case PixelFormat::nv21:
      return {true, 1, 1, {{{0, 0, 1}, {1, 1, 2}, {1, 0, 2}}}};
    case PixelFormat::i420:
      return {true, 1, 1, {{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}}}};
    case PixelFormat::yv12:
      return {true, 1, 1, {{{0, 0, 1}, {2, 0, 1}, {1, 0, 1}}}};
    case PixelFormat::yuy2:
      return {true, 1, 0, {{{0, 0, 2}, {0, 1, 4}, {0, 3, 4}}}};
    case PixelFormat::uyvy:
      return {true, 1, 0, {{{0, 1, 2}, {0, 0, 4}, {0, 2, 4}}}};
    case PixelFormat::rgb:
      return {false, 0, 0, {{{0, 0, 3}, {0, 1, 3}, {0, 2, 3}}}};
    case PixelFormat::bgr:
      return {false, 0, 0, {{{0, 2, 3}, {0, 1, 3}, {0, 0, 3}}}};
    case PixelFormat::rgbx:
      return {false, 0, 0, {{{0, 0, 4}, {0, 1, 4}, {0, 2, 4}}}};
    case PixelFormat::bgrx:
      return {false, 0, 0, {{{0, 2, 4}, {0, 1, 4}, {0, 0, 4}}}};
    case PixelFormat::xrgb:
      return {false, 0, 0, {{{0, 1, 4}, {0, 2, 4}, {0, 3, 4}}}};
    case PixelFormat::xbgr:
      return {false, 0, 0, {{{0, 3, 4}, {0, 2, 4}, {0, 1, 4}}}};
    case PixelFormat::gray8:
      return {false, 0, 0, {{{0, 0, 1}, {0, 0, 1}, {0, 0, 1}}}};
    case PixelFormat::nv16:
      return {true, 1, 0, {{{0, 0, 1}, {1, 0, 2}, {1, 1, 2}}}};
    case PixelFormat::y42b:
      return {true, 1, 0, {{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}}}};
    case PixelFormat::y444:
      return {true, 0, 0, {{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}}}};
    case PixelFormat::p010:
      return {true, 1, 1, {{{0, 0, 2}, {1, 0, 4}, {1, 2, 4}}}, 6, 10};
    case PixelFormat::i420_10:
      return {true, 1, 1, {{{0, 0, 2}, {1, 0, 2}, {2, 0, 2}}}, 0, 10};
  }
  return {};
}

// Returns the kernel's name for the type of the network's input; nullptr for unsupported types.
const char* stored_name(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "float";
    case ElementType::f16:
      return "half";
    case ElementType::u8:
      return "uchar";
    case ElementType::i8:
      return "char";
    case ElementType::i32:
      return "int";
    default:
      return nullptr;
  }
}

[[noreturn]] void refuse(const std::string& why, SourcePlace place = SourcePlace::here()) {
  throw Error(ErrorCode::bad_argument, "video frame: " + why, place);
}

// The part of the frame that is used, and its position in the network's input, which is turned like
// the stored frame: width and height are the input's, exchanged if the picture is transposed. A
// mirrored column or row counts from the input's other edge.
struct Fit {
  Rect from, to;
  int width, height;
  bool mirror_columns, mirror_rows, transposed;
};

[[noreturn]] void refuse_region(const Frame& frame) {
  const Rect& r = frame.region;
  refuse("region " + std::to_string(r.width) + "x" + std::to_string(r.height) + " at (" +
         std::to_string(r.x) + "," + std::to_string(r.y) + ") does not touch the picture of " +
         std::to_string(frame.width) + "x" + std::to_string(frame.height));
}

// Returns the visible part of the frame.
Rect picture_of(const Frame& frame) {
  const Rect whole{0, 0, frame.width, frame.height}, &v = frame.visible;
  if (v.width == 0) return whole;
  if (v.x < 0 || v.y < 0 || v.width < 1 || v.height < 1 || v.width > frame.width - v.x ||
      v.height > frame.height - v.y)
    refuse("the visible part of " + std::to_string(v.width) + "x" + std::to_string(v.height) +
           " at (" + std::to_string(v.x) + "," + std::to_string(v.y) + ") reaches beyond the " +
           std::to_string(frame.width) + "x" + std::to_string(frame.height) + " of the frame");
  return v;
}

// The map that turns points about a pivot, in pixels of `aspect` times their height.
PointMap turn_about(double x, double y, double angle, double aspect) {
  const double c = std::cos(angle), s = std::sin(angle);
  return {c, -s / aspect, x - c * x + s / aspect * y, s * aspect, c, y - s * aspect * x - c * y};
}

// Returns the map that turns the frame's region; that of a region which is not turned changes
// nothing.
PointMap turn_of(const Frame& frame, const Rect& region) {
  if (!frame.angle) return {};
  return turn_about(region.x + region.width / 2.0, region.y + region.height / 2.0, *frame.angle,
                    frame.pixel_aspect);
}

// The rows that a turned region touches, from the first to beyond the last.
std::pair<double, double> turned_rows(const Frame& frame, const Rect& region) {
  const PointMap map = turn_of(frame, region);
  double first = std::numeric_limits<double>::max(), last = -first;
  for (const int x : {region.x, region.x + region.width})
    for (const int y : {region.y, region.y + region.height}) {
      const double row = map.yx * x + map.yy * y + map.y0;
      first = std::min(first, row);
      last = std::max(last, row);
    }
  return {first, last};
}

// Returns a turned region, which may lie outside of the picture for a part.
Rect turned_region(const Frame& frame) {
  Rect r = frame.region;
  const Rect picture = picture_of(frame);
  if (r.width == 0) r = picture;
  const auto far = [](int v) { return v < -kMaxTurned || v > kMaxTurned; };
  if (!std::isfinite(*frame.angle) || r.width < 1 || r.height < 1 || far(r.x) || far(r.y) ||
      far(r.width) || far(r.height))
    refuse("a region of " + std::to_string(r.width) + "x" + std::to_string(r.height) + " at (" +
           std::to_string(r.x) + "," + std::to_string(r.y) + "), turned by " +
           std::to_string(*frame.angle) + " radians, is impossible");
  const PointMap map = turn_of(frame, r);
  double left = std::numeric_limits<double>::max(), right = -left;
  for (const int x : {r.x, r.x + r.width})
    for (const int y : {r.y, r.y + r.height}) {
      left = std::min(left, map.xx * x + map.xy * y + map.x0);
      right = std::max(right, map.xx * x + map.xy * y + map.x0);
    }
  const auto [top, bottom] = turned_rows(frame, r);
  if (right <= picture.x || bottom <= picture.y || left >= picture.x + picture.width ||
      top >= picture.y + picture.height)
    refuse_region(frame);
  return r;
}

// Returns the part of the region inside the picture.
Rect region_in_picture(const Frame& frame) {
  if (frame.angle) return turned_region(frame);
  const Rect& r = frame.region;
  if (r.width == 0) return {0, 0, frame.width, frame.height};
  const int64_t left = std::max(r.x, 0), top = std::max(r.y, 0);
  const int64_t right = std::min<int64_t>(int64_t{r.x} + r.width, frame.width);
  const int64_t bottom = std::min<int64_t>(int64_t{r.y} + r.height, frame.height);
  if (right <= left || bottom <= top) refuse_region(frame);
  return {static_cast<int>(left), static_cast<int>(top), static_cast<int>(right - left),
          static_cast<int>(bottom - top)};
}

Fit fit(const Frame& frame, const FrameTransform& transform, int width, int height) {
  if (frame.width < 1 || frame.height < 1 || frame.width > kMaxFrame || frame.height > kMaxFrame)
    refuse("size " + std::to_string(frame.width) + "x" + std::to_string(frame.height) +
           " is outside 1.." + std::to_string(kMaxFrame));
  if (!(frame.pixel_aspect >= 1.0 / kMaxFrame && frame.pixel_aspect <= kMaxFrame))
    refuse("a pixel's width over its height, " + std::to_string(frame.pixel_aspect) +
           ", is no ratio");
  if (width < 1 || height < 1 || width > kMaxNetwork || height > kMaxNetwork)
    refuse("the network's input of " + std::to_string(width) + "x" + std::to_string(height) +
           " is outside 1.." + std::to_string(kMaxNetwork));
  const Orientation turn = turned(frame.orientation, transform.turn);
  if (turn.transpose) std::swap(width, height);
  const bool mirror_columns = turn.transpose ? turn.mirror_y : turn.mirror_x;
  const bool mirror_rows = turn.transpose ? turn.mirror_x : turn.mirror_y;
  Rect from = region_in_picture(frame);
  Rect to{0, 0, width, height};
  const double shown_width = from.width * frame.pixel_aspect;
  const double x_ratio = width / shown_width;
  const double y_ratio = static_cast<double>(height) / from.height;
  const auto rounded = [](double size, int most) {
    return std::clamp(static_cast<int>(std::lround(size)), 1, most);
  };
  if (transform.resize == ResizeMode::letterbox) {
    const double ratio = std::min(x_ratio, y_ratio);
    to.width = rounded(shown_width * ratio, width);
    to.height = rounded(from.height * ratio, height);
    // Places the upright picture: if the border is odd, its larger part is on the right and below.
    const auto start = [&](int spare, bool mirrored) {
      const int before = transform.centered ? spare / 2 : 0;
      return mirrored ? spare - before : before;
    };
    to.x = start(width - to.width, mirror_columns);
    to.y = start(height - to.height, mirror_rows);
  } else if (transform.resize == ResizeMode::crop) {
    const double ratio = std::max(x_ratio, y_ratio);
    const int taken_width = rounded(width / ratio / frame.pixel_aspect, from.width);
    const int taken_height = rounded(height / ratio, from.height);
    from = {from.x + (from.width - taken_width) / 2, from.y + (from.height - taken_height) / 2,
            taken_width, taken_height};
  }
  return {from, to, width, height, mirror_columns, mirror_rows, turn.transpose};
}

// Coefficients that turn Y'CbCr into RGB in integers: Y; V to R; U to B; U to G; V to G.
struct ColorMatrix {
  std::array<int, 5> coefficient{};
  int black = 0, middle = 0, fraction_bits = 0;  // of exact colours
};

ColorMatrix color_matrix(const Frame& frame, int depth, ColorArithmetic arithmetic) {
  double kr = 0.299, kb = 0.114;
  if (frame.matrix == YuvMatrix::bt709) kr = 0.2126, kb = 0.0722;
  if (frame.matrix == YuvMatrix::bt2020) kr = 0.2627, kb = 0.0593;
  const double kg = 1 - kr - kb;
  // On 8-bit samples the coefficients are multiplied by 256, as videoconvert rounds them. For exact
  // colours they have as many bits of fraction as fit 32-bit integers; luma and chroma together
  // stay below 1.3e9.
  const bool exact = arithmetic == ColorArithmetic::exact;
  const int fraction_bits = exact ? depth + 11 : 8;
  const int unit = exact ? 1 << (depth - 8) : 1;  // samples are this much finer than 8 bits
  const double full = frame.full_range && exact ? (1 << depth) - 1 : 255;
  const double luma = (1 << fraction_bits) * 255.0 / (frame.full_range ? full : 219 * unit);
  const double chroma = (1 << fraction_bits) * 255.0 / (frame.full_range ? full : 224 * unit);
  const auto rounded = [](double v) { return static_cast<int>(std::rint(v)); };
  return {{rounded(luma), rounded(chroma * 2 * (1 - kr)), rounded(chroma * 2 * (1 - kb)),
           rounded(-chroma * 2 * (1 - kb) * kb / kg), rounded(-chroma * 2 * (1 - kr) * kr / kg)},
          frame.full_range ? 0 : 16 * unit,
          128 * unit,
          fraction_bits};
}

// Turns 8-bit R, G, B into the network's channels: combines colour order, mean and scale.
struct Mixing {
  std::array<float, 9> weight{};
  std::array<float, 3> bias{}, pad{};
};

Mixing mixing(const FrameTransform& transform, int channels) {
  if (channels != 1 && channels != 3)
    refuse("the network's input has " + std::to_string(channels) +
           " channels; a picture has 1 or 3");
  const auto fits = [&](const std::vector<float>& v) {
    return v.size() == 1 || v.size() == static_cast<size_t>(channels);
  };
  if (!fits(transform.mean) || !fits(transform.scale) || !fits(transform.pad_value))
    refuse("mean, scale and padding need 1 value or " + std::to_string(channels) +
           ", one per channel");
  Mixing m;
  for (int c = 0; c < channels; ++c) {
    const auto of_channel = [&](const std::vector<float>& v) { return v[v.size() == 1 ? 0 : c]; };
    const float mean = of_channel(transform.mean), scale = of_channel(transform.scale);
    if (!std::isfinite(mean) || !std::isfinite(scale) || scale == 0)
      refuse("mean must be finite, scale finite and not zero");
    std::array<float, 3> rgb{0.299f, 0.587f, 0.114f};
    if (channels == 3 && transform.color != ColorOrder::gray) {
      rgb = {0, 0, 0};
      rgb[transform.color == ColorOrder::rgb ? c : 2 - c] = 1;
    }
    for (int k = 0; k < 3; ++k) m.weight[3 * c + k] = rgb[k] / scale;
    m.bias[c] = -mean / scale;
    m.pad[c] = (of_channel(transform.pad_value) - mean) / scale;
  }
  return m;
}

struct DeviceArgs {
#include "kernels/frames/preprocess_args.cl"
};

int checked(int64_t value, const char* what) {
  if (value < 0 || value > std::numeric_limits<int>::max())
    refuse(std::string(what) + " does not fit into 31 bits");
  return static_cast<int>(value);
}

// The two source positions for position i of the resized axis, and their weights in units of
// 1/2048.
struct Tap {
  int first, second, weight_first, weight_second;
};

Tap tap(int i, int from, int from_size, int to_size) {
  const int numerator = std::max((2 * i + 1) * from_size - to_size, 0);
  const int whole = numerator / (2 * to_size);
  float share =
      static_cast<float>(numerator - whole * 2 * to_size) / static_cast<float>(2 * to_size);
  share = (static_cast<float>(whole) + share) - static_cast<float>(whole);
  return {from + whole, from + std::min(whole + 1, from_size - 1),
          static_cast<int>(std::rint((1 - share) * 2048)),
          static_cast<int>(std::rint(share * 2048))};
}

// Returns the place in the frame of each pixel of the fitted picture, for samples, whose places are
// those of their middles.
PointMap samples_of(const Frame& frame, const Fit& f) {
  const double x_scale = static_cast<double>(f.from.width) / f.to.width;
  const double y_scale = static_cast<double>(f.from.height) / f.to.height;
  const double x0 = f.from.x + x_scale / 2, y0 = f.from.y + y_scale / 2;
  const PointMap turn = turn_of(frame, region_in_picture(frame));
  return {turn.xx * x_scale, turn.xy * y_scale, turn.xx * x0 + turn.xy * y0 + turn.x0 - 0.5,
          turn.yx * x_scale, turn.yy * y_scale, turn.yx * x0 + turn.yy * y0 + turn.y0 - 0.5};
}

// The taps of one axis of a turned picture, around a place in samples. The picture has samples
// `from` to `from + size - 1`.
Tap tap_at(float place, int from, int size) {
  const int last = from + size - 1;
  const float inside = std::clamp(place, static_cast<float>(from), static_cast<float>(last));
  const int first = static_cast<int>(inside);
  const int weight = static_cast<int>(std::rint((inside - static_cast<float>(first)) * 2048));
  return {first, std::min(first + 1, last), 2048 - weight, weight};
}

// Reads R, G, B of single pixels of a frame.
class PixelReader {
 public:
  PixelReader(const Frame& frame, ColorArithmetic arithmetic)
      : frame_(frame),
        layout_(layout_of(frame.format)),
        exact_(arithmetic == ColorArithmetic::exact),
        matrix_(color_matrix(frame, layout_.depth, arithmetic)) {}

  std::array<int, 3> operator()(int x, int y) const {
    const int a = sample(0, x, y);
    const int b = sample(1, x >> layout_.shift_x, y >> layout_.shift_y);
    const int c = sample(2, x >> layout_.shift_x, y >> layout_.shift_y);
    if (!layout_.yuv) return {a, b, c};
    const std::array<int, 5>& k = matrix_.coefficient;
    if (exact_) {
      const int u = b - matrix_.middle, v = c - matrix_.middle;
      const int luma = (a - matrix_.black) * k[0] + (1 << (matrix_.fraction_bits - 1));
      const auto limited = [&](int value) {
        return std::clamp(value >> matrix_.fraction_bits, 0, 255);
      };
      return {limited(luma + v * k[1]), limited(luma + u * k[3] + v * k[4]),
              limited(luma + u * k[2])};
    }
    const auto scaled = [](int value, int k) {  // both bytes are value - 128, as videoconvert does
      const int centered = value - 128;
      return (((centered * 256) | (centered & 255)) * k) >> 16;
    };
    const auto limited = [](int value) { return std::clamp(value, -128, 127) + 128; };
    const int luma = scaled(a, k[0]);
    return {limited(luma + scaled(c, k[1])), limited(luma + scaled(b, k[3]) + scaled(c, k[4])),
            limited(luma + scaled(b, k[2]))};
  }

 private:
  int sample(int component, int x, int y) const {
    const Component& c = layout_.components[component];
    const uint8_t* at = frame_.planes[c.plane] + int64_t{y} * frame_.strides[c.plane] +
                        int64_t{x} * c.step + c.offset;
    if (layout_.depth == 8) return *at;
    const int value = ((at[0] | at[1] << 8) >> layout_.down) & 1023;
    return exact_ ? value : value >> 2;
  }

  const Frame& frame_;
  Layout layout_;
  bool exact_;
  ColorMatrix matrix_;
};

}  // namespace

Placement placement_of(const Frame& frame, const FrameTransform& transform, int width, int height) {
  const Fit f = fit(frame, transform, width, height);
  const auto axis = [](int from, int to, int size, int to_size, bool mirrored) {
    const float scale = static_cast<float>(from) / static_cast<float>(to_size);
    return mirrored ? std::pair(static_cast<float>(size - to), -scale)
                    : std::pair(static_cast<float>(to), scale);
  };
  const auto [left, x_scale] = axis(f.from.width, f.to.x, f.width, f.to.width, f.mirror_columns);
  const auto [top, y_scale] = axis(f.from.height, f.to.y, f.height, f.to.height, f.mirror_rows);
  Placement placement{left,
                      top,
                      x_scale,
                      y_scale,
                      static_cast<float>(f.from.x),
                      static_cast<float>(f.from.y),
                      f.transposed};
  const Rect region = region_in_picture(frame);
  placement.angle = frame.angle.value_or(0);
  placement.pivot_x = static_cast<float>(region.x) + static_cast<float>(region.width) / 2;
  placement.pivot_y = static_cast<float>(region.y) + static_cast<float>(region.height) / 2;
  placement.pixel_aspect = static_cast<float>(frame.pixel_aspect);
  return placement;
}

PointMap to_frame(const Placement& p) {
  const double x_scale = static_cast<double>(p.x_scale), y_scale = static_cast<double>(p.y_scale);
  const double x0 = static_cast<double>(p.origin_x) - static_cast<double>(p.left) * x_scale;
  const double y0 = static_cast<double>(p.origin_y) - static_cast<double>(p.top) * y_scale;
  const PointMap straight = p.transposed ? PointMap{0, x_scale, x0, y_scale, 0, y0}
                                         : PointMap{x_scale, 0, x0, 0, y_scale, y0};
  if (p.angle == 0) return straight;
  const PointMap t = turn_about(p.pivot_x, p.pivot_y, p.angle, p.pixel_aspect);
  return {t.xx * straight.xx + t.xy * straight.yx,
          t.xx * straight.xy + t.xy * straight.yy,
          t.xx * x0 + t.xy * y0 + t.x0,
          t.yx * straight.xx + t.yy * straight.yx,
          t.yx * straight.xy + t.yy * straight.yy,
          t.yx * x0 + t.yy * y0 + t.y0};
}

std::array<PlaneSize, 3> plane_sizes(const Frame& frame) {
  const int w = frame.width, h = frame.height, half_w = (w + 1) / 2, half_h = (h + 1) / 2;
  switch (frame.format) {
    case PixelFormat::nv12:
    case PixelFormat::nv21:
      return {{{h, w}, {half_h, 2 * half_w}, {}}};
    case PixelFormat::i420:
    case PixelFormat::yv12:
      return {{{h, w}, {half_h, half_w}, {half_h, half_w}}};
    case PixelFormat::yuy2:
    case PixelFormat::uyvy:
      return {{{h, 4 * half_w}, {}, {}}};
    case PixelFormat::rgb:
    case PixelFormat::bgr:
      return {{{h, 3 * w}, {}, {}}};
    case PixelFormat::rgbx:
    case PixelFormat::bgrx:
    case PixelFormat::xrgb:
    case PixelFormat::xbgr:
      return {{{h, 4 * w}, {}, {}}};
    case PixelFormat::gray8:
      return {{{h, w}, {}, {}}};
    case PixelFormat::nv16:
      return {{{h, w}, {h, 2 * half_w}, {}}};
    case PixelFormat::y42b:
      return {{{h, w}, {h, half_w}, {h, half_w}}};
    case PixelFormat::y444:
      return {{{h, w}, {h, w}, {h, w}}};
    case PixelFormat::p010:
      return {{{h, 2 * w}, {half_h, 4 * half_w}, {}}};
    case PixelFormat::i420_10:
      return {{{h, 2 * w}, {half_h, 2 * half_w}, {half_h, 2 * half_w}}};
  }
  return {};
}

std::array<PlaneRows, 3> rows_of_region(const Frame& frame) {
  const Rect region = region_in_picture(frame);
  int begin = region.y, end = region.y + region.height;
  if (frame.angle) {
    const auto [first, last] = turned_rows(frame, region);
    const Rect picture = picture_of(frame);
    const auto row = [&](double y) {
      return static_cast<int>(
          std::clamp<double>(y, picture.y, static_cast<double>(picture.y) + picture.height));
    };
    begin = std::min(row(std::floor(first) - 1), picture.y + picture.height - 1);
    end = std::max(row(std::ceil(last) + 1), begin + 1);
  }
  std::array<PlaneRows, 3> rows;
  const std::array<PlaneSize, 3> sizes = plane_sizes(frame);
  for (size_t p = 0; p < rows.size(); ++p) {
    if (sizes[p].rows == 0) continue;
    const int step = sizes[p].rows < frame.height ? 2 : 1;  // rows of the picture per row of chroma
    rows[p].first = begin / step;
    rows[p].count = (end + step - 1) / step - rows[p].first;
  }
  return rows;
}

// Planes are in buffers, or in images if `planes` is null.
static KernelPlan make_plan(const Frame& frame, const std::array<DevicePlane, 3>* planes,
                            const FrameTransform& transform, const TensorDesc& out, int image,
                            const TuningPoint& point) {
  if (out.shape.size() != 4 || image < 0 || image >= out.shape[0])
    refuse("image " + std::to_string(image) + " of a network input of shape " +
           to_string(out.shape));
  const int c_dim = transform.nhwc ? 3 : 1, y_dim = transform.nhwc ? 1 : 2, x_dim = y_dim + 1;
  const int width = checked(out.shape[x_dim], "the width"),
            height = checked(out.shape[y_dim], "the height");
  const int channels = checked(out.shape[c_dim], "the number of channels");
  const Fit f = fit(frame, transform, width, height);
  const Mixing m = mixing(transform, channels);
  const Layout layout = layout_of(frame.format);
  const std::array<PlaneSize, 3> sizes = plane_sizes(frame);
  const char* type = stored_name(out.type);
  if (type == nullptr) refuse("a network input of type " + std::string(name_of(out.type)));

  DeviceArgs args{};
  KernelPlan plan;
  KernelSpec& spec = plan.launches.emplace_back();
  for (int i = 0; planes != nullptr && i < 3; ++i) {
    const Component& c = layout.components[i];
    const DevicePlane& plane = (*planes)[c.plane];
    if (plane.stride < sizes[c.plane].row_bytes)
      refuse("a stride of " + std::to_string(plane.stride) + " bytes is too small for rows of " +
             std::to_string(sizes[c.plane].row_bytes));
    checked(plane.offset + int64_t{plane.stride} * sizes[c.plane].rows, "the size of a plane");
    args.component_offset[i] = plane.offset + c.offset;
    args.row_stride[i] = plane.stride;
    args.step[i] = c.step;
    spec.arguments.push_back(Argument::input(c.plane, 1));
  }
  if (planes == nullptr) spec.arguments = {Argument::image(0), Argument::image(1)};
  args.shift_x = layout.shift_x;
  args.shift_y = layout.shift_y;
  args.from_x = f.from.x;
  args.from_y = f.from.y;
  args.from_width = f.from.width;
  args.from_height = f.from.height;
  if (frame.angle) {
    const Rect picture = picture_of(frame);
    args.from_x = picture.x;
    args.from_y = picture.y;
    args.from_width = picture.width;
    args.from_height = picture.height;
    const PointMap map = samples_of(frame, f);
    const double turn[] = {map.xx, map.xy, map.x0, map.yx, map.yy, map.y0};
    std::transform(std::begin(turn), std::end(turn), args.turn,
                   [](double v) { return static_cast<float>(v); });
  }
  args.to_x = f.to.x;
  args.to_y = f.to.y;
  args.to_width = f.to.width;
  args.to_height = f.to.height;
  args.width = f.width;
  args.height = f.height;
  args.channels = channels;
  // Stores columns and rows of the stored picture where those of the upright one belong.
  args.stride_x = checked(out.strides[x_dim], "a stride of the network's input");
  args.stride_y = checked(out.strides[y_dim], "a stride of the network's input");
  if (f.transposed) std::swap(args.stride_x, args.stride_y);
  args.stride_c = checked(out.strides[c_dim], "a stride of the network's input");
  args.out_offset = checked(out.strides[0] * image, "the place of an image in the network's input");
  checked(out.offset + out.span(), "the size of the network's input");
  if (f.mirror_columns) {
    args.out_offset += args.stride_x * (f.width - 1);
    args.stride_x = -args.stride_x;
  }
  if (f.mirror_rows) {
    args.out_offset += args.stride_y * (f.height - 1);
    args.stride_y = -args.stride_y;
  }
  const ColorMatrix matrix = color_matrix(frame, layout.depth, transform.color_arithmetic);
  std::copy_n(matrix.coefficient.begin(), 5, args.coefficient);
  args.down = layout.down;
  args.black = matrix.black;
  args.middle = matrix.middle;
  args.fraction_bits = matrix.fraction_bits;
  std::copy_n(m.weight.begin(), 9, args.weight);
  std::copy_n(m.bias.begin(), 3, args.bias);
  std::copy_n(m.pad.begin(), 3, args.pad);

  const int vector = point["V"], rows = point["ROWS"];
  spec.source = "preprocess.cl";
  spec.local = {static_cast<size_t>(point["GROUP_X"]), static_cast<size_t>(point["GROUP_Y"]), 1};
  for (const auto& [name, value] : point.values)
    spec.defines.emplace_back(name, std::to_string(value));
  spec.defines.emplace_back("YUV", layout.yuv ? "1" : "0");
  spec.defines.emplace_back("EXACT",
                            transform.color_arithmetic == ColorArithmetic::exact ? "1" : "0");
  spec.defines.emplace_back("SAMPLE_BYTES", layout.depth == 8 ? "1" : "2");
  spec.defines.emplace_back("IMAGES", planes == nullptr ? "1" : "0");
  spec.defines.emplace_back("TURNED", frame.angle ? "1" : "0");
  spec.defines.emplace_back("OUT_T", type);
  const auto covered = [](int size, int step, size_t group) {
    const size_t items = (static_cast<size_t>(size) + step - 1) / step;
    return (items + group - 1) / group * group;
  };
  spec.global = {covered(f.width, vector, spec.local[0]), covered(f.height, rows, spec.local[1]),
                 1};
  spec.arguments.push_back(Argument::output(0, size_of(out.type)));
  spec.arguments.push_back(Argument::value(args));
  return plan;
}

KernelPlan plan_preprocess(const Frame& frame, const std::array<DevicePlane, 3>& planes,
                           const FrameTransform& transform, const TensorDesc& out, int image,
                           const TuningPoint& point) {
  return make_plan(frame, &planes, transform, out, image, point);
}

KernelPlan plan_surface_preprocess(const Frame& frame, const FrameTransform& transform,
                                   const TensorDesc& out, int image, const TuningPoint& point) {
  if (frame.format != PixelFormat::nv12 && frame.format != PixelFormat::p010)
    refuse("only surfaces of NV12 and P010 can be read on the device");
  return make_plan(frame, nullptr, transform, out, image, point);
}

// ---- tuning ------------------------------------------------------------------------------------

namespace {

constexpr const char* kKindNames[] = {"yuv", "rgb", "surface"};

bool is_channels(int64_t size) { return size == 1 || size == 3; }

// Returns whether to use vectors over pixels, as on a CPU; a GPU computes one or a few pixels per
// work-item.
bool is_wide(const DeviceTraits& traits) { return traits.is_cpu || traits.vector_width > 1; }

TuningPoint point_of(int vector, int rows, int group_x, int group_y) {
  return {{{"V", vector}, {"ROWS", rows}, {"GROUP_X", group_x}, {"GROUP_Y", group_y}}};
}

TuningPoint preprocess_heuristic(const OpDesc&, const DeviceTraits& traits) {
  if (traits.is_cpu && traits.vector_width < 16) return point_of(16, 4, 1, 1);
  if (is_wide(traits))
    return point_of(traits.vector_width >= 16 ? 16 : 8, 8, traits.max_work_group >= 4 ? 4 : 1, 1);
  return traits.max_work_group >= 128 ? point_of(1, 1, 32, 4) : point_of(1, 1, 1, 1);
}

std::vector<TuningPoint> preprocess_space(const OpDesc& desc, const DeviceTraits& traits) {
  std::vector<TuningPoint> space{preprocess_heuristic(desc, traits)};
  const auto add = [&](const TuningPoint& point) {
    if (static_cast<size_t>(point["GROUP_X"] * point["GROUP_Y"]) <= traits.max_work_group &&
        std::find(space.begin(), space.end(), point) == space.end())
      space.push_back(point);
  };
  for (const int vector : is_wide(traits) ? std::vector{8, 16, 4} : std::vector{1, 4})
    for (const int rows : is_wide(traits) ? std::vector{4, 1, 8} : std::vector{1, 2, 4})
      for (const auto& [x, y] : is_wide(traits)
                                    ? std::vector<std::pair<int, int>>{{4, 1}, {1, 1}, {16, 1}}
                                    : std::vector<std::pair<int, int>>{
                                          {32, 4}, {64, 4}, {32, 8}, {16, 8}, {64, 2}, {128, 1}})
        add(point_of(vector, rows, x, y));
  return space;
}

std::string preprocess_reject(const OpDesc&, const DeviceTraits&) { return ""; }

KernelPlan preprocess_plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  const PictureKind kind = kind_of(desc);
  const TensorDesc& out = desc.outputs[0];
  const Frame frame = typical_picture(kind);
  std::array<DevicePlane, 3> planes;
  for (size_t p = 0; p < planes.size(); ++p) planes[p].stride = frame.strides[p];
  FrameTransform transform;
  transform.nhwc = !is_channels(out.shape[1]);
  return make_plan(frame, kind == PictureKind::surface ? nullptr : &planes, transform, out, 0,
                   point);
}

}  // namespace

PictureKind kind_of(PixelFormat format) {
  return layout_of(format).yuv ? PictureKind::yuv : PictureKind::rgb;
}

PictureKind kind_of(const OpDesc& desc) {
  const std::string name = desc.attributes.get_string("picture");
  const auto* found = std::find(std::begin(kKindNames), std::end(kKindNames), name);
  return static_cast<PictureKind>(found - std::begin(kKindNames));
}

Frame typical_picture(PictureKind kind) {
  Frame frame{kind == PictureKind::rgb ? PixelFormat::bgrx : PixelFormat::nv12, 1920, 1080};
  const auto sizes = plane_sizes(frame);
  for (size_t p = 0; p < sizes.size(); ++p) frame.strides[p] = sizes[p].row_bytes;
  return frame;
}

std::optional<OpDesc> preprocess_op(PictureKind kind, const TensorDesc& out) {
  const Shape& shape = out.shape;
  if (shape.size() != 4 || out.elements() == 0 ||
      (!is_channels(shape[1]) && !is_channels(shape[3])) || stored_name(out.type) == nullptr)
    return {};
  OpDesc desc;
  desc.name = std::string("frames (") + kKindNames[static_cast<size_t>(kind)] + ")";
  desc.type = "preprocess";
  desc.attributes.set("picture", kKindNames[static_cast<size_t>(kind)]);
  desc.outputs = {out};
  desc.outputs[0].shape[0] = 1;  // a launch fills one image of a batch
  return desc;
}

const KernelFamily kPreprocessFamily{
    "preprocess", 1, preprocess_reject, preprocess_space, preprocess_heuristic, preprocess_plan};

Tensor evaluate_preprocess(const Frame& frame, const FrameTransform& transform, int width,
                           int height, int channels) {
  const Fit f = fit(frame, transform, width, height);
  const Mixing m = mixing(transform, channels);
  const PixelReader pixel(frame, transform.color_arithmetic);
  Tensor out =
      Tensor::allocate(ElementType::f32, transform.nhwc ? Shape{1, height, width, channels}
                                                        : Shape{1, channels, height, width});
  float* values = out.mutable_data<float>();
  const bool is_turned = frame.angle.has_value();
  const PointMap map = is_turned ? samples_of(frame, f) : PointMap{};
  const Rect picture = picture_of(frame);
  const auto place = [](double by_x, double by_y, double at, int x, int y) {
    return static_cast<float>(x) * static_cast<float>(by_x) +
           static_cast<float>(y) * static_cast<float>(by_y) + static_cast<float>(at);
  };
  for (int row = 0; row < f.height; ++row)
    for (int column = 0; column < f.width; ++column) {
      const int x = column - f.to.x, y = row - f.to.y;
      const bool in_picture = x >= 0 && y >= 0 && x < f.to.width && y < f.to.height;
      std::array<float, 3> rgb{};
      if (in_picture) {
        const Tap h = is_turned
                          ? tap_at(place(map.xx, map.xy, map.x0, x, y), picture.x, picture.width)
                          : tap(x, f.from.x, f.from.width, f.to.width);
        const Tap v = is_turned
                          ? tap_at(place(map.yx, map.yy, map.y0, x, y), picture.y, picture.height)
                          : tap(y, f.from.y, f.from.height, f.to.height);
        const auto a = pixel(h.first, v.first), b = pixel(h.second, v.first);
        const auto c = pixel(h.first, v.second), d = pixel(h.second, v.second);
        for (int k = 0; k < 3; ++k) {  // fixed point as in OpenCV's resize of 8-bit images
          const int top = a[k] * h.weight_first + b[k] * h.weight_second;
          const int bottom = c[k] * h.weight_first + d[k] * h.weight_second;
          rgb[k] = static_cast<float>((((v.weight_first * (top >> 4)) >> 16) +
                                       ((v.weight_second * (bottom >> 4)) >> 16) + 2) >>
                                      2);
        }
      }
      for (int c = 0; c < channels; ++c) {
        const float value = in_picture ? rgb[0] * m.weight[3 * c] + rgb[1] * m.weight[3 * c + 1] +
                                             rgb[2] * m.weight[3 * c + 2] + m.bias[c]
                                       : m.pad[c];
        int to_x = f.mirror_columns ? f.width - 1 - column : column;
        int to_y = f.mirror_rows ? f.height - 1 - row : row;
        if (f.transposed) std::swap(to_x, to_y);
        const size_t pixel_at = static_cast<size_t>(to_y) * width + to_x;
        values[transform.nhwc ? pixel_at * channels + c
                              : static_cast<size_t>(c) * height * width + pixel_at] = value;
      }
    }
  return out;
}

}  // namespace clinfer
