// Shared by the heads: reading tensors as floats, shapes without their ones, squashing functions,
// non-maximum suppression.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "engine/heads/decoder.h"

namespace clinfer {

// A tensor's elements as floats: a view where they are f32 already. Of halves only those that are
// asked for are widened. The tensor must outlive it.
class Floats {
 public:
  explicit Floats(const Tensor& tensor);
  size_t size() const { return size_; }
  float operator[](size_t i) const { return data_ ? data_[i] : half_to_float(halves_[i]); }
  // `n` neighbours, in `buffer` where they had to be widened. For loops over many.
  const float* run(size_t first, size_t n, std::vector<float>& buffer) const;
  const float* data();                                // all
  const uint16_t* halves() const { return halves_; }  // null: not in f16

 private:
  std::vector<float> converted_;
  const float* data_ = nullptr;  // null: halves_ counts
  const uint16_t* halves_ = nullptr;
  size_t size_ = 0;
};

inline float sigmoid(float v) { return 1.0f / (1.0f + std::exp(-v)); }

// The output at `index`; throws Error{device_failed} when the inference gave another number of
// elements than `expected`.
const Tensor& output_of(std::span<const Tensor> outputs, size_t index, size_t expected);

// Leading dimensions of size 1 dropped: [1,1,200,7] -> [200,7].
Shape squeeze_front(const Shape& shape);
bool is_float_output(const OutputFacts& output);
std::string describe(const ModelFacts& facts);  // "[1,4420,2], [1,4420,4]" of all outputs
// True when a name of the output contains one of the words (lower case).
bool name_has(const OutputFacts& output, std::initializer_list<const char*> words);
std::string lower(std::string text);
// model_info's value for `key`, or empty.
std::string info(const ModelFacts& facts, const std::string& key);

// Appends a detection if its numbers are sane: finite, score >= threshold, x_max > x_min, y_max >
// y_min. Scores above 1 become 1.
void add_detection(const DecodeSettings& settings, float x_min, float y_min, float x_max,
                   float y_max, float score, int64_t label, std::vector<Detection>& to);

float iou(const Detection& a, const Detection& b);

// Sorts best first (stable: equal scores keep their order), removes boxes that overlap a better one
// of the same label by more than iou_threshold when `suppress`, and applies max_detections. At most
// 4096 candidates are looked at.
void finish_detections(const DecodeSettings& settings, bool suppress,
                       std::vector<Detection>& candidates, Results& results);

// Columns and rows of a level, and its step in network pixels.
struct GridLevel {
  int columns = 0, rows = 0;
  float x_step = 0, y_step = 0;
};

// The levels with strides 8, 16, 32 (, 64) whose cells, `per_cell` rows each, add up to `rows`;
// nullopt when none do.
std::optional<std::vector<GridLevel>> grid_levels(const ModelFacts& facts, int64_t rows,
                                                  int per_cell);

// What a walk over rows of `width` elements (four numbers of a box, a score, ...) tells. One walk,
// since tables are larger than caches near the core and each row is another line of them.
struct RowScan {
  float first_reach = 0, reach = 0;  // largest finite magnitude in the first column, in all four
  std::vector<size_t> likely;        // rows whose score is at least the threshold, in order
};
RowScan scan_rows(const Floats& values, size_t rows, size_t width, float threshold);

}  // namespace clinfer
