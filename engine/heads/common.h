// Shared by the heads: reading tensors as floats, shapes without their ones, squashing functions,
// non-maximum suppression.
#pragma once

#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
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
// Whether a label stands for no class of objects.
bool is_background(const std::string& label);
// model_info's value for `key`, or empty.
std::string info(const ModelFacts& facts, const std::string& key);

// Words of a name: "detection_boxes:0" has "detection" and "boxes"; numbers are words, too.
bool has_word(const OutputFacts& output, std::initializer_list<const char*> words);
// The number that a name is, as exporters give them to nodes ("538"); nullopt: another name.
std::optional<uint64_t> number_of(const std::string& name);
// Whether the whole name says that it holds class scores: logits, prob and the like.
bool is_called_scores(const OutputFacts& output);
// The number that an attribute of the output's operation is, or `otherwise`.
int64_t attribute_of(const OutputFacts& output, const std::string& key, int64_t otherwise);
// Whether a model is Paddle's, by the names of its inputs and of an output.
bool from_paddle(const ModelFacts& facts, const OutputFacts& output);
// The number in model_info under `key`, or nullopt.
std::optional<float> info_number(const ModelFacts& facts, const std::string& key);

// A box that may become a detection. row: where the rest of it lies, for the head.
struct Candidate {
  float x_min = 0, y_min = 0, x_max = 0, y_max = 0, score = 0;
  int label = 0;
  size_t row = 0;
};

// Collects candidates, and what speaks against the head: probabilities beyond 0..1, boxes inside
// out.
class Candidates {
 public:
  explicit Candidates(const DecodeSettings& settings) : settings_(settings) {}
  // A score that is to be a probability, whether or not it reaches the threshold.
  void expect_probability(float score) {
    if (score < lowest_) lowest_ = score;
    if (score > highest_) highest_ = score;
  }
  // Takes the box if its score reaches the threshold and its numbers are sane: finite, x_max >
  // x_min, y_max > y_min, a label from 0 on.
  void add(float x_min, float y_min, float x_max, float y_max, float score, double label,
           size_t row = 0);
  // As add(), from centre and size.
  void add_centered(float x, float y, float width, float height, float score, double label,
                    size_t row = 0) {
    add(x - width / 2, y - height / 2, x + width / 2, y + height / 2, score, label, row);
  }
  // Why the values contradict the head; empty: they do not.
  std::string contradiction() const;
  std::vector<Candidate>& found() { return found_; }

 private:
  const DecodeSettings& settings_;
  std::vector<Candidate> found_;
  size_t likely_ = 0, inside_out_ = 0, odd_labels_ = 0;
  float lowest_ = 0, highest_ = 1;
};

// The suppression of overlapping boxes that is left to the decoder.
enum class Suppression { none, per_class, across_classes };

float iou(const Candidate& a, const Candidate& b);

// Sorts best first (stable: equal scores keep their order), removes what overlaps a better one by
// more than iou_threshold, and applies max_detections. At most 4096 candidates are looked at.
// `overlap` is iou() unless the head has another measure.
using Overlap = std::function<float(const Candidate&, const Candidate&)>;
std::vector<Candidate> keep_best(const DecodeSettings& settings, Suppression suppression,
                                 std::vector<Candidate>& candidates, const Overlap& overlap = {});

// The last step of most heads: a contradiction, or the best candidates as detections. `complete`
// adds the rest of an object from its row.
using Complete = std::function<void(const Candidate&, Detection&)>;
void finish(const DecodeSettings& settings, Suppression suppression, Candidates& candidates,
            Results& results, const Complete& complete = {}, const Overlap& overlap = {});

// Whether numbers of one kind are of the first kind or the second (shares of the picture or pixels,
// probabilities or logits), as far as values tell. The first inference that tells decides for all
// that follow, so that no frame changes how outputs are read. Copies share the decision.
class Decided {
 public:
  enum Kind { open, first, second };
  Decided() : kind_(std::make_shared<std::atomic<int>>(open)) {}
  explicit Decided(Kind kind) : Decided() { *kind_ = kind; }
  // seen: what this inference tells, or open; returns what counts, `otherwise` while all is open.
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

// Shares (first) or pixels (second) of coordinates that reach this far. Boxes may stick out of the
// picture a little.
inline Decided::Kind unit_seen(float reach) {
  return reach > 2 ? Decided::second : reach > 0 ? Decided::first : Decided::open;
}

// Rows and columns of [..., N, M] with ones before; a matrix.
struct Table {
  size_t rows = 0, columns = 0;
};
// nullopt: not a matrix of floats.
std::optional<Table> table_of(const OutputFacts& output);
// Whether the output's name lists what its columns are, as match_named_rows() reads them.
bool lists_columns(const OutputFacts& output, size_t columns);
// Number of elements of a vector [N], [1,N], [N,1], [1,N,1] ...; 0: more than one dimension counts.
size_t vector_size(const Shape& shape);

// A copy of its own; floats are f32, whatever the device computes in.
void keep_tensor(const std::string& name, const Tensor& tensor, Results& results);

// Columns and rows of a level, and its step in network pixels.
struct GridLevel {
  int columns = 0, rows = 0;
  float x_step = 0, y_step = 0;
};

// The levels with strides 8, 16, 32 (, 64) whose cells, `per_cell` rows each, add up to `rows`;
// nullopt when none do.
std::optional<std::vector<GridLevel>> grid_levels(const ModelFacts& facts, int64_t rows,
                                                  int per_cell);

// Statistics of rows of `width` elements (four numbers of a box, a score, ...), collected in one
// pass: tables are larger than the caches near the core, and each row is in another cache line.
struct RowScan {
  float first_reach = 0, reach = 0;  // largest finite magnitude in the first column, in all four
  std::vector<size_t> likely;        // rows whose score is at least the threshold, in order
};
RowScan scan_rows(const Floats& values, size_t rows, size_t width, float threshold);

}  // namespace clinfer
