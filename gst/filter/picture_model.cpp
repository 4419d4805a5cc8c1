// Computes the network's picture from a frame.
#include "gst/filter/picture_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "gst/infer/settings/network.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {
namespace {

uint8_t to_byte(float value) {
  return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f)));
}

constexpr std::chrono::milliseconds kPictureWait{50};

const char* text_of(OutputRange range) {
  return range == OutputRange::byte ? "0..255" : range == OutputRange::unit ? "0..1" : "-1..1";
}

}  // namespace

PictureModel::PictureModel(const FilterSettings& settings, PictureSize frame)
    : settings_(settings), range_(settings.output_range) {
  ModelOptions options = settings;
  settle_config_file(settings.config, options);
  options.post_process = "none";
  if (follows_frame(settings))
    options.reshape = std::to_string(frame.width) + "x" + std::to_string(frame.height);
  network_ = describe_network(options);
  notices_ = network_.warnings;
  find_output();
}

// Finds the largest output of rank 4 with one or three channels.
void PictureModel::find_output() {
  const std::vector<Port>& outputs = network_.model->outputs();
  std::string list;
  int64_t most = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Shape& s = outputs[i].shape;
    list += (i ? ", " : "") + outputs[i].name + " " + to_string(s);
    const auto is_channels = [](int64_t d) { return d == 1 || d == 3; };
    if (s.size() != 4 || s[0] != 1 || count(s) <= most) continue;
    if (!is_channels(s[1]) && !is_channels(s[3])) continue;
    channels_last_ = !is_channels(s[1]);
    channels_ = static_cast<int>(s[channels_last_ ? 3 : 1]);
    output_ = {static_cast<int>(s[channels_last_ ? 2 : 3]),
               static_cast<int>(s[channels_last_ ? 1 : 2])};
    output_index_ = i;
    most = count(s);
  }
  if (most == 0)
    throw Error{ErrorCode::unsupported,
                network_.model->path() +
                    ": no output is a picture ([1,3,H,W] or [1,H,W,3], 1 or 3 channels); outputs "
                    "are " +
                    list + "; clinfer reads other networks"};
}

std::vector<std::string> PictureModel::take_notices() { return std::exchange(notices_, {}); }

void PictureModel::compile(const GoOn& go_on) {
  Config config;
  config.device = settings_.device;
  config.cache_dir = settings_.cache_dir;
  config.set_all(settings_.config);
  build_ = CompiledModel::begin(network_.model, config);
  while (!take_newest()) {
    build_->wait_for_change(nullptr, kPictureWait);
    if (go_on != nullptr && !go_on()) throw Error{ErrorCode::cancelled, "compiling was stopped"};
  }
}

bool PictureModel::take_newest() {
  if (build_ == nullptr) return false;
  const bool is_last = build_->is_over();
  std::shared_ptr<CompiledModel> newest = build_->newest();
  if (is_last) build_.reset();
  if (newest == compiled_) return false;
  auto request = newest->create_request();
  for (const auto& [index, value] : network_.constants) request->set_input(index, value);
  request_ = std::move(request);
  compiled_ = std::move(newest);
  for (const std::string& warning : compiled_->warnings()) notices_.push_back(warning);
  return true;
}

std::pair<float, float> PictureModel::scaling(const float* values, size_t count) {
  if (range_ == OutputRange::automatic) {
    float low = 0, high = 0;
    for (size_t i = 0; i < count; ++i)
      if (std::isfinite(values[i])) {
        low = std::min(low, values[i]);
        high = std::max(high, values[i]);
      }
    // Determines the range by the first picture that is not black.
    if (high <= 0.02f && low >= -0.02f) return {1, 0};
    range_ = high > 2      ? OutputRange::byte
             : low < -0.5f ? OutputRange::signed_unit
                           : OutputRange::unit;
    notices_.push_back(std::string("the network's picture is taken to have values ") +
                       text_of(range_) +
                       ", by the first one; set output-range where it is otherwise");
  }
  if (range_ == OutputRange::byte) return {1, 0};
  if (range_ == OutputRange::unit) return {255, 0};
  return {127.5f, 127.5f};
}

void PictureModel::run(const Frame& frame, uint8_t* rows, int stride, const GoOn& go_on) {
  request_->set_frame(network_.image_input, frame, network_.transform);
  request_->start();
  while (!request_->wait(kPictureWait))
    if (go_on != nullptr && !go_on()) request_->cancel();
  const Tensor& tensor = request_->output(output_index_);
  const std::vector<float> values = tensor.to_floats();
  const size_t pixels = static_cast<size_t>(output_.width) * static_cast<size_t>(output_.height);
  if (values.size() != pixels * static_cast<size_t>(channels_))
    throw Error{ErrorCode::device_failed, "the inference gave " + to_string(tensor.shape())};
  const auto [factor, summand] = scaling(values.data(), values.size());

  if (channels_ == 3) {
    const bool rgb = network_.transform.color == ColorOrder::rgb;
    for (int y = 0; y < output_.height; ++y) {
      uint8_t* row = rows + static_cast<ptrdiff_t>(y) * stride;
      for (int x = 0; x < output_.width; ++x) {
        const size_t at =
            static_cast<size_t>(y) * static_cast<size_t>(output_.width) + static_cast<size_t>(x);
        for (size_t c = 0; c < 3; ++c) {
          const size_t from = rgb ? c : 2 - c;
          const float v = values[channels_last_ ? at * 3 + from : from * pixels + at];
          row[3 * x + static_cast<int>(c)] = to_byte(v * factor + summand);
        }
      }
    }
    return;
  }
  // Converts the frame to this size, and replaces its luma by the network's.
  FrameTransform plain;
  plain.resize = network_.transform.resize;
  plain.color = ColorOrder::rgb;
  plain.color_arithmetic = network_.transform.color_arithmetic;
  plain.nhwc = true;
  const bool keeps_colors = network_.channels == 1 && frame.format != PixelFormat::gray8;
  Tensor colors;
  if (keeps_colors) colors = evaluate_preprocess(frame, plain, output_.width, output_.height, 3);
  for (int y = 0; y < output_.height; ++y) {
    uint8_t* row = rows + static_cast<ptrdiff_t>(y) * stride;
    for (int x = 0; x < output_.width; ++x) {
      const size_t at =
          static_cast<size_t>(y) * static_cast<size_t>(output_.width) + static_cast<size_t>(x);
      const float luma = values[at] * factor + summand;
      const float* rgb = keeps_colors ? colors.data<float>() + 3 * at : nullptr;
      const float change = rgb ? luma - (0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2]) : 0;
      for (int c = 0; c < 3; ++c) row[3 * x + c] = to_byte(rgb ? rgb[c] + change : luma);
    }
  }
}

}  // namespace clinfer
