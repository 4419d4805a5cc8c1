// Implements helpers of the heads.
#include "engine/heads/base/common.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <numeric>
#include <set>

#include "kernels/base/host_type.h"

namespace clinfer {
namespace {

constexpr size_t kMaxCandidates = 4096;  // limits the quadratic suppression on hostile outputs
constexpr float kDuplicateBox = 0.99f;   // intersection over union

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

bool is_softmax(const OutputFacts& output) {
  return output.op == "SoftMax" || output.op == "Softmax" ||
         attribute_of(output, "softmax", 0) != 0;
}

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

bool is_background(const std::string& label) {
  const std::string name = lower(label);
  static const auto& kNames = *new const std::set<std::string>{
      "", "n/a", "unlabeled", "unlabelled", "bg", "no-object", "no_object", "???"};
  return kNames.count(name) != 0 || name.find("background") != std::string::npos;
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

bool file_says(const ModelFacts& facts, const char* word) {
  return lower(facts.name).find(word) != std::string::npos ||
         lower(info(facts, "model_type")).find(word) != std::string::npos;
}

bool is_called_scores(const OutputFacts& output) {
  static const auto& kNames =
      *new const std::set<std::string>{"logits", "prob", "probs", "probabilities", "softmax"};
  return kNames.count(lower(output.name)) != 0 ||
         std::any_of(output.aliases.begin(), output.aliases.end(),
                     [](const std::string& alias) { return kNames.count(lower(alias)) != 0; });
}

bool has_word(const OutputFacts& output, std::initializer_list<const char*> words) {
  const auto matches = [&](const std::string& name) {
    const std::string text = lower(name);
    const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
    for (const char* word : words) {
      const std::string wanted = word;
      for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
        const size_t end = at + wanted.size();
        if ((at == 0 || !is_letter(text[at - 1])) && (end == text.size() || !is_letter(text[end])))
          return true;
      }
    }
    return false;
  };
  return matches(output.name) || std::any_of(output.aliases.begin(), output.aliases.end(), matches);
}

std::optional<uint64_t> number_of(const std::string& name) {
  uint64_t value = 0;
  const char* const last = name.data() + name.size();
  const auto end = std::from_chars(name.data(), last, value);
  if (end.ec != std::errc() || end.ptr != last) return std::nullopt;
  return value;
}

float step_of(const ModelFacts& facts) {
  if (facts.outputs.size() != 1) return 0;
  const auto& attributes = facts.outputs[0].attributes;
  const auto found = attributes.find("output_step");
  if (found == attributes.end()) return 0;
  float step = 0;
  const char* const text = found->second.data();
  const bool read = std::from_chars(text, text + found->second.size(), step).ec == std::errc();
  return read && std::isfinite(step) ? step : 0;
}

int64_t attribute_of(const OutputFacts& output, const std::string& key, int64_t otherwise) {
  const auto found = output.attributes.find(key);
  int64_t value = otherwise;
  if (found != output.attributes.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return value;
}

std::optional<float> info_number(const ModelFacts& facts, const std::string& key) {
  const std::string text = info(facts, key);
  float value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

void Candidates::add(float x_min, float y_min, float x_max, float y_max, float score, double label,
                     size_t row) {
  if (!(score >= settings_.threshold) || !std::isfinite(score)) return;
  ++likely_;
  if (!(label >= 0) || label > 1e6 || label != std::floor(label)) {
    ++odd_labels_;
    return;
  }
  if (!std::isfinite(x_min) || !std::isfinite(y_min) || !std::isfinite(x_max) ||
      !std::isfinite(y_max))
    return;
  if (!(x_max > x_min) || !(y_max > y_min)) {
    ++inside_out_;
    return;
  }
  if (settings_.step > 0) score = std::min(score, 1.0f);
  found_.push_back({x_min, y_min, x_max, y_max, score, static_cast<int>(label), row});
}

std::string Candidates::contradiction() const {
  // Rounding in f16 and 8 bits takes a probability slightly beyond 1.
  constexpr float kSlack = 0.01f;
  const auto number = [](float value) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4);
    return std::string(text, end.ptr);
  };
  if (lowest_ < -kSlack) return "a score is " + number(lowest_) + ", not within 0..1";
  if (highest_ > 1 + kSlack + settings_.step / 2)
    return "a score is " + number(highest_) + ", not within 0..1";
  if (inside_out_ * 2 > likely_)
    return std::to_string(inside_out_) + " of " + std::to_string(likely_) +
           " boxes have no width or height";
  if (odd_labels_ * 2 > likely_)
    return std::to_string(odd_labels_) + " of " + std::to_string(likely_) +
           " class numbers are no numbers of classes";
  return {};
}

bool from_paddle(const ModelFacts& facts, const OutputFacts& output) {
  const auto fed = [&](const char* name) {
    return std::find(facts.input_names.begin(), facts.input_names.end(), name) !=
           facts.input_names.end();
  };
  return fed("scale_factor") || fed("im_shape") ||
         name_has(output, {"multiclass_nms", "tmp_", "save_infer_model", "fetch_name"}) ||
         lower(info(facts, "model_type")) == "paddle";
}

float iou(const Candidate& a, const Candidate& b) {
  // Computes in double, so that the product of two huge but finite sides does not overflow.
  const double width = std::min<double>(a.x_max, b.x_max) - std::max<double>(a.x_min, b.x_min);
  const double height = std::min<double>(a.y_max, b.y_max) - std::max<double>(a.y_min, b.y_min);
  if (width <= 0 || height <= 0) return 0;
  const auto area = [](const Candidate& d) {
    return (static_cast<double>(d.x_max) - d.x_min) * (static_cast<double>(d.y_max) - d.y_min);
  };
  const double common = width * height;
  return static_cast<float>(common / (area(a) + area(b) - common));
}

std::vector<Candidate> keep_best(const DecodeSettings& settings, Suppression suppression,
                                 std::vector<Candidate>& candidates, const Overlap& overlap) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  if (candidates.size() > kMaxCandidates) candidates.resize(kMaxCandidates);
  std::vector<Candidate> kept;
  for (const Candidate& candidate : candidates) {
    if (settings.max_detections != 0 && kept.size() >= settings.max_detections) break;
    // If overlaps are not suppressed, removes only repetitions of the same box.
    const float most = suppression == Suppression::none ? kDuplicateBox : settings.iou_threshold;
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](const Candidate& better) {
      if (suppression != Suppression::across_classes && better.label != candidate.label)
        return false;
      return (overlap ? overlap(better, candidate) : iou(better, candidate)) > most;
    });
    if (!covered) kept.push_back(candidate);
  }
  return kept;
}

void finish(const DecodeSettings& settings, Suppression suppression, Candidates& candidates,
            Results& results, const Complete& complete, const Overlap& overlap) {
  results.contradiction = candidates.contradiction();
  if (!results.contradiction.empty()) return;
  if (settings.suppress_all && suppression == Suppression::none)
    suppression = Suppression::per_class;
  for (const Candidate& kept : keep_best(settings, suppression, candidates.found(), overlap)) {
    Detection& detection = results.detections.emplace_back();
    detection.x_min = kept.x_min;
    detection.y_min = kept.y_min;
    detection.x_max = kept.x_max;
    detection.y_max = kept.y_max;
    detection.confidence = std::min(kept.score, 1.0f);
    detection.label_id = kept.label;
    if (complete) complete(kept, detection);
  }
}

std::optional<Table> table_of(const OutputFacts& output) {
  const Shape& shape = output.shape;
  if (shape.size() < 2 || !is_float_output(output)) return std::nullopt;
  for (size_t i = 0; i + 2 < shape.size(); ++i)
    if (shape[i] != 1) return std::nullopt;
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows < 1 || columns < 1) return std::nullopt;
  return Table{static_cast<size_t>(rows), static_cast<size_t>(columns)};
}

size_t vector_size(const Shape& shape) {
  size_t size = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 1 || (dimension != 1 && size != 1)) return 0;
    if (dimension != 1) size = static_cast<size_t>(dimension);
  }
  return size;
}

void keep_tensor(const std::string& name, const Tensor& tensor, Results& results) {
  results.tensors.push_back({name, tensor.convert(host_type(tensor.type()))});
}

std::optional<std::vector<GridLevel>> grid_levels(const ModelFacts& facts, int64_t rows,
                                                  int per_cell) {
  static const auto& kStrideSets = *new const std::vector<std::vector<int>>{
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

// Return bits that compare as the magnitudes of floats do, in either format.
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
  // Prefetches all lines of short rows: memory that a device has written is in no cache, and
  // consecutive cache lines load several times as fast as scattered ones.
  constexpr size_t kLine = 64, kShortRow = 6 * kLine, kAhead = 4096;  // in bytes
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
