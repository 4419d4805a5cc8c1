// Makes video frames of noise.
#include "engine/tools/measure/synthetic.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "engine/measure/noise.h"

namespace clinfer {

namespace {

struct FormatName {
  const char* name;
  PixelFormat format;
};
constexpr FormatName kFormats[] = {
    {"NV12", PixelFormat::nv12},      {"NV21", PixelFormat::nv21},
    {"I420", PixelFormat::i420},      {"YV12", PixelFormat::yv12},
    {"YUY2", PixelFormat::yuy2},      {"UYVY", PixelFormat::uyvy},
    {"RGB", PixelFormat::rgb},        {"BGR", PixelFormat::bgr},
    {"RGBX", PixelFormat::rgbx},      {"BGRX", PixelFormat::bgrx},
    {"XRGB", PixelFormat::xrgb},      {"XBGR", PixelFormat::xbgr},
    {"GRAY8", PixelFormat::gray8},    {"NV16", PixelFormat::nv16},
    {"Y42B", PixelFormat::y42b},      {"Y444", PixelFormat::y444},
    {"P010_10LE", PixelFormat::p010}, {"I420_10LE", PixelFormat::i420_10},
};

PixelFormat parse_format(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  std::string names;
  for (const FormatName& format : kFormats) {
    if (name == format.name) return format.format;
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  }
  throw Error(ErrorCode::bad_argument,
              "there is no frame format \"" + name + "\"; there are " + names);
}

int parse_size(const std::string& text, size_t begin, size_t end) {
  constexpr int kLargest = 16384;
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
  if (error != std::errc() || stop != text.data() + end || value < 1 || value > kLargest)
    throw Error(ErrorCode::bad_argument, "--frames " + text +
                                             ": WIDTHxHEIGHT:FORMAT with sizes up to " +
                                             std::to_string(kLargest) + " is needed");
  return value;
}

}  // namespace

SyntheticFrame::SyntheticFrame(const std::string& text) {
  const size_t by = text.find('x'), colon = std::min(text.find(':'), text.size());
  if (by == std::string::npos || by > colon)
    throw Error(ErrorCode::bad_argument, "--frames " + text + ": WIDTHxHEIGHT:FORMAT is needed");
  frame_.width = parse_size(text, 0, by);
  frame_.height = parse_size(text, by + 1, colon);
  frame_.format = parse_format(colon == text.size() ? "NV12" : text.substr(colon + 1));
  Noise noise;
  const auto sizes = plane_sizes(frame_);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].rows == 0) continue;
    planes_[i].resize(static_cast<size_t>(sizes[i].rows) * static_cast<size_t>(sizes[i].row_bytes));
    for (uint8_t& byte : planes_[i]) byte = static_cast<uint8_t>(noise.next());
    frame_.planes[i] = planes_[i].data();
    frame_.strides[i] = sizes[i].row_bytes;
  }
}

ImageInput find_image_input(const std::vector<Port>& inputs) {
  const auto is_color = [](int64_t channels) { return channels == 1 || channels == 3; };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    if (shape.size() != 4 || (!is_color(shape[1]) && !is_color(shape[3]))) continue;
    ImageInput input{i, static_cast<size_t>(shape[0]), {}};
    input.transform.nhwc = !is_color(shape[1]);
    if (shape[input.transform.nhwc ? 3 : 1] == 1) input.transform.color = ColorOrder::gray;
    return input;
  }
  throw Error(ErrorCode::bad_argument,
              "--frames: the model has no image input (rank 4 with 1 or 3 channels)");
}

}  // namespace clinfer
