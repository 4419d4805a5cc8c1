// Helpers of the heads.
#include "engine/heads/common.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>

namespace clinfer {
namespace {

constexpr size_t kMaxCandidates = 4096;  // bounds the quadratic suppression on hostile outputs

}  // namespace

Floats::Floats(const Tensor& tensor) {
  size_ = static_cast<size_t>(tensor.elements());
  if (tensor.type() == ElementType::f32) {
    data_ = tensor.data<float>();
  } else if (tensor.type() == ElementType::f16) {
    halves_ = tensor.data<uint16_t>();
  } else {
    converted_ = tensor.to_floats();
    data_ = converted_.data();
  }
}

const float* Floats::run(size_t first, size_t n, std::vector<float>& buffer) const {
  if (data_) return data_ + first;
  buffer.resize(n);
  std::transform(halves_ + first, halves_ + first + n, buffer.begin(), half_to_float);
  return buffer.data();
}

const float* Floats::data() {
  if (!data_) data_ = run(0, size_, converted_);
  return data_;
}

const Tensor& output_of(std::span<const Tensor> outputs, size_t index, size_t expected) {
  if (index >= outputs.size() || outputs[index].empty() ||
      static_cast<size_t>(outputs[index].elements()) != expected) {
    throw Error{ErrorCode::device_failed,
                "output " + std::to_string(index) + " has " +
                    (index < outputs.size() ? to_string(outputs[index].shape()) : "no value") +
                    " where " + std::to_string(expected) + " elements are expected"};
  }
  return outputs[index];
}

Shape squeeze_front(const Shape& shape) {
  size_t first = 0;
  while (first < shape.size() && shape[first] == 1) ++first;
  return Shape(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end());
}

bool is_float_output(const OutputFacts& output) { return is_float(output.type); }

std::string describe(const ModelFacts& facts) {
  std::string text;
  for (const OutputFacts& output : facts.outputs)
    text += (text.empty() ? "" : ", ") + output.name + " " + to_string(output.shape);
  return text.empty() ? "none" : text;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool name_has(const OutputFacts& output, std::initializer_list<const char*> words) {
  auto has = [&](const std::string& name) {
    const std::string text = lower(name);
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return text.find(word) != std::string::npos; });
  };
  return has(output.name) || std::any_of(output.aliases.begin(), output.aliases.end(), has);
}

std::string info(const ModelFacts& facts, const std::string& key) {
  const auto found = facts.model_info.find(key);
  return found == facts.model_info.end() ? std::string() : found->second;
}

void add_detection(const DecodeSettings& settings, float x_min, float y_min, float x_max,
                   float y_max, float score, int64_t label, std::vector<Detection>& to) {
  if (!(score >= settings.threshold) || !std::isfinite(score) || label < 0 || label > INT32_MAX)
    return;
  if (!std::isfinite(x_min) || !std::isfinite(y_min) || !std::isfinite(x_max) ||
      !std::isfinite(y_max) || !(x_max > x_min) || !(y_max > y_min))
    return;
  Detection& found = to.emplace_back();
  found.x_min = x_min;
  found.y_min = y_min;
  found.x_max = x_max;
  found.y_max = y_max;
  found.confidence = std::min(score, 1.0f);
  found.label_id = static_cast<int>(label);
}

float iou(const Detection& a, const Detection& b) {
  // In double: the product of two huge but finite sides does not overflow.
  const double width = std::min<double>(a.x_max, b.x_max) - std::max<double>(a.x_min, b.x_min);
  const double height = std::min<double>(a.y_max, b.y_max) - std::max<double>(a.y_min, b.y_min);
  if (width <= 0 || height <= 0) return 0;
  auto area = [](const Detection& d) {
    return (static_cast<double>(d.x_max) - d.x_min) * (static_cast<double>(d.y_max) - d.y_min);
  };
  const double common = width * height;
  return static_cast<float>(common / (area(a) + area(b) - common));
}

void finish_detections(const DecodeSettings& settings, bool suppress,
                       std::vector<Detection>& candidates, Results& results) {
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Detection& a, const Detection& b) { return a.confidence > b.confidence; });
  if (candidates.size() > kMaxCandidates) candidates.resize(kMaxCandidates);
  std::vector<Detection> kept;
  for (const Detection& candidate : candidates) {
    if (settings.max_detections != 0 && kept.size() >= settings.max_detections) break;
    const bool covered =
        suppress && std::any_of(kept.begin(), kept.end(), [&](const Detection& better) {
          return better.label_id == candidate.label_id &&
                 iou(better, candidate) > settings.iou_threshold;
        });
    if (!covered) kept.push_back(candidate);
  }
  results.detections.insert(results.detections.end(), kept.begin(), kept.end());
}

std::optional<std::vector<GridLevel>> grid_levels(const ModelFacts& facts, int64_t rows,
                                                  int per_cell) {
  static const std::vector<std::vector<int>> kStrideSets = {
      {8, 16, 32}, {8, 16, 32, 64}, {16, 32}, {4, 8, 16, 32}, {8, 16, 32, 64, 128}};
  for (const std::vector<int>& strides : kStrideSets) {
    std::vector<GridLevel> levels;
    int64_t total = 0;
    for (int stride : strides) {
      const int columns = (facts.width + stride - 1) / stride;
      const int level_rows = (facts.height + stride - 1) / stride;
      levels.push_back(
          {columns, level_rows, static_cast<float>(stride), static_cast<float>(stride)});
      total += static_cast<int64_t>(columns) * level_rows * per_cell;
    }
    if (total == rows) return levels;
  }
  return std::nullopt;
}

namespace {

float as_float(float value) { return value; }
float as_float(uint16_t half) { return half_to_float(half); }

// Of one sign, floats of either format are in the order of their bits.
uint32_t magnitude(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }
uint16_t magnitude(uint16_t half) { return half & 0x7fffu; }
bool is_finite(float value) { return magnitude(value) < 0x7f800000u; }
bool is_finite(uint16_t half) { return magnitude(half) < 0x7c00u; }

template <typename T>
RowScan scan(const T* elements, size_t rows, size_t width, float threshold) {
  auto first_reach = magnitude(T{0}), reach = first_reach;
  const auto farther = [=](auto so_far, T value) {
    return is_finite(value) ? std::max(so_far, magnitude(value)) : so_far;
  };
  // What a device has written is in no cache. Lines that follow one another come several times as
  // fast as lines apart, so where rows are short, all of them are fetched.
  constexpr size_t kLine = 64, kShortRow = 6 * kLine, kAhead = 4096;  // bytes
  const size_t row_bytes = width * sizeof(T);
  const size_t step = row_bytes <= kShortRow ? kLine : row_bytes;
  const size_t ahead = std::max(kAhead, 16 * step);
  const auto* bytes = reinterpret_cast<const std::byte*>(elements);
  size_t next = 0;
  RowScan scan;
  for (size_t i = 0; i < rows; ++i) {
    const T* row = elements + i * width;
    for (; next < std::min(i * row_bytes + ahead, rows * row_bytes); next += step)
      __builtin_prefetch(bytes + next);
    first_reach = farther(first_reach, row[0]);
    for (size_t column = 1; column < 4; ++column) reach = farther(reach, row[column]);
    if (as_float(row[4]) >= threshold) scan.likely.push_back(i);
  }
  scan.first_reach = as_float(std::bit_cast<T>(first_reach));
  scan.reach = as_float(std::bit_cast<T>(std::max(reach, first_reach)));
  return scan;
}

}  // namespace

RowScan scan_rows(const Floats& values, size_t rows, size_t width, float threshold) {
  std::vector<float> all;
  return values.halves() ? scan(values.halves(), rows, width, threshold)
                         : scan(values.run(0, rows * width, all), rows, width, threshold);
}

}  // namespace clinfer
