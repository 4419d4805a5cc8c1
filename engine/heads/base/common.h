// Code shared by the heads: reads tensors as floats, drops dimensions of 1, squashes values,
// suppresses non-maxima.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/heads/base/decoder.h"

namespace clinfer {

// A tensor's elements as floats: a view if they are f32 already. Of f16, only the elements that are
// asked for are converted. The tensor must outlive the object.
class Floats {
 public:
  explicit Floats(const Tensor& tensor);
  size_t size() const { return size_; }
  float operator[](size_t i) const { return data_ ? data_[i] : half_to_float(halves_[i]); }
  // Returns `n` neighbours, in `buffer` if they had to be converted. For loops over many elements.
  const float* run(size_t first, size_t n, std::vector<float>& buffer) const;
  const float* data();                                // all elements
  const uint16_t* halves() const { return halves_; }  // null if not f16

 private:
  std::vector<float> converted_;
  const float* data_ = nullptr;  // null: halves_ is used
  const uint16_t* halves_ = nullptr;
  size_t size_ = 0;
};

inline float sigmoid(float v) { return 1.0f / (1.0f + std::exp(-v)); }
// Returns the value of which the sigmoid is `p`; infinite for 0 and 1.
inline float logit(float p) { return std::log(p / (1.0f - p)); }

// Returns the output at `index`. Throws Error{device_failed} if its number of elements is not
// `expected`.
const Tensor& output_of(std::span<const Tensor> outputs, size_t index, size_t expected);

// Drops leading dimensions of size 1: [1,1,200,7] -> [200,7].
Shape squeeze_front(const Shape& shape);
bool is_float_output(const OutputFacts& output);
// Returns whether a softmax makes the output.
bool is_softmax(const OutputFacts& output);
std::string describe(const ModelFacts& facts);  // "[1,4420,2], [1,4420,4]" for all outputs
// Returns whether a name of the output contains one of the words (lower case).
bool name_has(const OutputFacts& output, std::initializer_list<const char*> words);
std::string lower(std::string text);
// Returns whether a label stands for no class of objects.
bool is_background(const std::string& label);
// Returns model_info's value for `key`, or "".
std::string info(const ModelFacts& facts, const std::string& key);
// Returns whether the file's name or its model_type has the word (lower case).
bool file_says(const ModelFacts& facts, const char* word);

// Returns whether a name consists of such words: "detection_boxes:0" has "detection" and "boxes";
// numbers are words, too.
bool has_word(const OutputFacts& output, std::initializer_list<const char*> words);
// Returns the number that a name consists of, as exporters name nodes ("538"); nullopt for other
// names.
std::optional<uint64_t> number_of(const std::string& name);
// Returns whether the whole name says that the output holds class scores: logits, prob and the
// like.
bool is_called_scores(const OutputFacts& output);
// Returns an attribute of the output's operation as a number, or `otherwise`.
int64_t attribute_of(const OutputFacts& output, const std::string& key, int64_t otherwise);
// Returns the distance between the values of the only output, if that is quantised as a whole; else
// 0. Scores share a scale with boxes only within one output.
float step_of(const ModelFacts& facts);
// Returns whether a model is from Paddle, according to the names of its inputs and of an output.
bool from_paddle(const ModelFacts& facts, const OutputFacts& output);
// Returns the number in model_info under `key`, or nullopt.
std::optional<float> info_number(const ModelFacts& facts, const std::string& key);

// A box that may become a detection. `row` tells the head where the rest of it is.
struct Candidate {
  float x_min = 0, y_min = 0, x_max = 0, y_max = 0, score = 0;
  int label = 0;
  size_t row = 0;
};

// Collects candidates and evidence against the head: probabilities beyond 0..1, boxes with negative
// sizes.
class Candidates {
 public:
  explicit Candidates(const DecodeSettings& settings) : settings_(settings) {}
  // Checks a score that should be a probability, whether or not it reaches the threshold.
  void expect_probability(float score) {
    if (score < lowest_) lowest_ = score;
    if (score > highest_) highest_ = score;
  }
  // Adds the box if its score reaches the threshold and its numbers are valid: finite, x_max >
  // x_min, y_max > y_min, label at least 0.
  void add(float x_min, float y_min, float x_max, float y_max, float score, double label,
           size_t row = 0);
  // Adds a box given by its centre and size.
  void add_centered(float x, float y, float width, float height, float score, double label,
                    size_t row = 0) {
    add(x - width / 2, y - height / 2, x + width / 2, y + height / 2, score, label, row);
  }
  // Returns why the values contradict the head; empty if they do not.
  std::string contradiction() const;
  std::vector<Candidate>& found() { return found_; }

 private:
  const DecodeSettings& settings_;
  std::vector<Candidate> found_;
  size_t likely_ = 0, inside_out_ = 0, odd_labels_ = 0;
  float lowest_ = 0, highest_ = 1;
};

// The suppression of overlapping boxes that the decoder has to do.
enum class Suppression { none, per_class, across_classes };

float iou(const Candidate& a, const Candidate& b);

// Sorts best first (stable: equal scores keep their order), removes boxes that overlap a better one
// by more than iou_threshold, and applies max_detections. Considers at most 4096 candidates.
// `overlap` is iou() unless the head has another measure.
using Overlap = std::function<float(const Candidate&, const Candidate&)>;
std::vector<Candidate> keep_best(const DecodeSettings& settings, Suppression suppression,
                                 std::vector<Candidate>& candidates, const Overlap& overlap = {});

// Does the last step of most heads: adds a contradiction, or the best candidates as detections.
// `complete` adds the rest of an object from its row.
using Complete = std::function<void(const Candidate&, Detection&)>;
void finish(const DecodeSettings& settings, Suppression suppression, Candidates& candidates,
            Results& results, const Complete& complete = {}, const Overlap& overlap = {});

// A decision between two interpretations of numbers (shares of the picture or pixels, probabilities
// or logits), as far as values tell. The first inference that tells decides for all that follow, so
// that no frame changes how outputs are read. Copies share the decision.
class Decided {
 public:
  enum Kind { open, first, second };
  Decided() : kind_(std::make_shared<std::atomic<int>>(open)) {}
  explicit Decided(Kind kind) : Decided() { *kind_ = kind; }
  // `seen`: what this inference tells, or open. Returns what is decided; `otherwise` while nothing
  // is.
  Kind settle(Kind seen, Kind otherwise) const {
    int expected = open;
    if (seen != open) kind_->compare_exchange_strong(expected, seen);
    const int now = kind_->load();
    return now == open ? otherwise : static_cast<Kind>(now);
  }
  Kind get() const { return static_cast<Kind>(kind_->load()); }

 private:
  std::shared_ptr<std::atomic<int>> kind_;
};

// Returns shares (first) or pixels (second) for coordinates that reach this far. Boxes may exceed
// the picture a little.
inline Decided::Kind unit_seen(float reach) {
  return reach > 2 ? Decided::second : reach > 0 ? Decided::first : Decided::open;
}

// The unit of a head's coordinates, in pixels of the network's picture.
struct PixelUnits {
  bool shares = false;  // true for shares of the picture, false for pixels
  float x = 1, y = 1;
};
// Settles `units` by coordinates that reach this far; they are pixels while nothing tells.
inline PixelUnits pixel_units(const Decided& units, float reach, const ModelFacts& facts) {
  if (units.settle(unit_seen(reach), Decided::second) == Decided::second) return {};
  return {true, static_cast<float>(facts.width), static_cast<float>(facts.height)};
}

// Returns whether rows of six hold corners, a score and the number of a class (second), as
// DeepStream-Yolo's exporters write them before suppression, or something else (first), such as a
// box and class scores. Rows whose corners are zeros are unused and tell nothing; open: all are.
// `row(i)` gives the first of six values that lie one after the other.
template <typename Row>
Decided::Kind corner_rows_seen(size_t count, const Row& row) {
  Decided::Kind seen = Decided::open;
  for (size_t i = 0; i < count; ++i) {
    const float* v = row(i);
    if (std::all_of(v, v + 4, [](float corner) { return corner == 0; })) continue;
    if (!(v[2] >= v[0] && v[3] >= v[1] && v[5] >= 0 && v[5] == std::floor(v[5])))
      return Decided::first;
    seen = Decided::second;
  }
  return seen;
}

// The size of a matrix [..., N, M] with ones before.
struct Table {
  size_t rows = 0, columns = 0;
};
// Returns nullopt for an output that is no matrix of floats.
std::optional<Table> table_of(const OutputFacts& output);
// Returns whether the output's name lists its columns, as match_named_rows() reads them.
bool lists_columns(const OutputFacts& output, size_t columns);
// Returns the number of elements of a vector [N], [1,N], [N,1], [1,N,1] ...; 0 if several
// dimensions are larger than 1.
size_t vector_size(const Shape& shape);

// Adds a copy; floats become f32, whatever the device computes in.
void keep_tensor(const std::string& name, const Tensor& tensor, Results& results);

// Columns and rows of a level, and its step in network pixels.
struct GridLevel {
  int columns = 0, rows = 0;
  float x_step = 0, y_step = 0;
};

// Returns the levels with strides 8, 16, 32 (, 64) whose cells, with `per_cell` rows each, add up
// to `rows`; nullopt if there are none.
std::optional<std::vector<GridLevel>> grid_levels(const ModelFacts& facts, int64_t rows,
                                                  int per_cell);

// Statistics of rows of `width` elements (four numbers of a box, a score, ...), collected in one
// pass: tables are larger than the caches close to the core, and each row is in another cache line.
struct RowScan {
  // Largest finite magnitude in the first column, and in all four.
  float first_reach = 0, reach = 0;
  std::vector<size_t> likely;  // rows whose score is at least the threshold, in order
};
RowScan scan_rows(const Floats& values, size_t rows, size_t width, float threshold);

}  // namespace clinfer
