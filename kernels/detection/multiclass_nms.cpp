// MulticlassNms and MatrixNms: suppress boxes of each class of an image within the class, and keep
// the best of all classes. As in NonMaxSuppression, evaluate() replaces the outputs by tensors with
// as many rows as were selected.
#include <algorithm>
#include <cmath>

#include "kernels/base/system/work_limit.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr const char* kHostReason =
    "suppression is a serial chain, and how much it selects depends on values";

enum class SortBy { label, score, nothing };

struct Settings {
  SortBy sort;
  bool across_batch, normalized, is_matrix, is_gaussian;
  float score_threshold, overlap_threshold, eta, sigma, post_threshold;
  int64_t nms_top_k, keep_top_k, background;
};

Settings read_settings(const Attributes& a, bool is_matrix) {
  const std::string sort = a.get_string("sort_result_type", "none");
  if (sort != "classid" && sort != "score" && sort != "none")
    fail_model("sort_result_type \"" + sort + "\"");
  const std::string decay = a.get_string("decay_function", "linear");
  if (decay != "linear" && decay != "gaussian") fail_model("decay_function \"" + decay + "\"");
  const auto number = [&](const char* name, double otherwise) {
    return static_cast<float>(a.get_float(name, otherwise));
  };
  Settings s{};
  s.sort = sort == "classid" ? SortBy::label : sort == "score" ? SortBy::score : SortBy::nothing;
  s.across_batch = a.get_bool("sort_result_across_batch", false);
  s.normalized = a.get_bool("normalized", true);
  s.is_matrix = is_matrix;
  s.is_gaussian = decay == "gaussian";
  s.score_threshold = number("score_threshold", 0);
  s.overlap_threshold = number("iou_threshold", 0);
  s.eta = number("nms_eta", 1);
  s.sigma = number("gaussian_sigma", 2);
  s.post_threshold = number("post_threshold", 0);
  s.nms_top_k = a.get_int("nms_top_k", -1);
  s.keep_top_k = a.get_int("keep_top_k", -1);
  s.background = a.get_int("background_class", -1);
  return s;
}

// ---- shapes ------------------------------------------------------------------------------------

struct Sizes {
  int64_t images, classes, boxes;  // boxes: of an image, or of all images if these share a list
};

// Accepts two forms: boxes [images, boxes, 4] with scores [images, classes, boxes], or boxes
// [classes, boxes, 4] with scores [classes, boxes] and the number of boxes of each image.
Sizes sizes_of(const Shape& boxes, const Shape& scores, const Shape* numbers) {
  check_rank(boxes, 3, 3, "the boxes");
  const size_t rank = numbers ? 2 : 3;
  check_rank(scores, rank, rank, "the scores");
  if (numbers) check_rank(*numbers, 1, 1, "roisnum");
  if (boxes[2] != 4 || boxes[0] != scores[0] || boxes[1] != scores.back())
    fail_model("boxes " + to_string(boxes) + " and scores " + to_string(scores) + " do not fit");
  return {numbers ? (*numbers)[0] : boxes[0], numbers ? scores[0] : scores[1], boxes[1]};
}

std::vector<ValueInfo> infer(const ShapeContext& context, bool is_matrix) {
  check_inputs(context, 2, !is_matrix && context.opset >= 9 ? 3 : 2);
  const Sizes sizes = sizes_of(context.inputs[0].shape, context.inputs[1].shape,
                               has_input(context, 2) ? &context.inputs[2].shape : nullptr);
  const Settings s = read_settings(context.attributes, is_matrix);
  int64_t each = checked_product(
      s.nms_top_k >= 0 ? std::min(s.nms_top_k, sizes.boxes) : sizes.boxes, sizes.classes);
  if (s.keep_top_k >= 0) each = std::min(each, s.keep_top_k);
  const int64_t rows = checked_product(each, sizes.images);
  checked_product(rows, 6);
  const ElementType type = index_type(context.attributes, "output_type");
  return {{ElementType::f32, {rows, 6}}, {type, {rows, 1}}, {type, {sizes.images}}};
}

// ---- selection ---------------------------------------------------------------------------------

struct Row {
  float score;
  int64_t image, label, index;  // index: of the box in the whole input
  const float* box;             // x0, y0, x1, y1
};

bool is_better(const Row& a, const Row& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.image != b.image) return a.image < b.image;
  return a.label != b.label ? a.label < b.label : a.index < b.index;
}

float overlap(const float* a, const float* b, bool normalized) {
  const float more = normalized ? 0.0f : 1.0f;  // in pixels, a box includes its last pixel
  const auto area = [&](const float* v) { return (v[2] - v[0] + more) * (v[3] - v[1] + more); };
  if (area(a) <= 0 || area(b) <= 0) return 0;
  const float width = std::min(a[2], b[2]) - std::max(a[0], b[0]) + more;
  const float height = std::min(a[3], b[3]) - std::max(a[1], b[1]) + more;
  const float shared = std::max(width, 0.0f) * std::max(height, 0.0f);
  return shared / (area(a) + area(b) - shared);
}

// MatrixNms treats boxes less than a pixel apart as disjoint, MulticlassNms does not.
bool are_apart(const float* a, const float* b) {
  return a[0] > b[2] || b[0] > a[2] || a[1] > b[3] || b[1] > a[3];
}

// Appends the candidates that do not overlap a better one too much. `list`: candidates of one
// class, best first.
void suppress(const Settings& s, const std::vector<Row>& list, std::vector<Row>& result) {
  float threshold = s.overlap_threshold;
  for (const Row& next : list) {
    WorkLimit::may_go_on();
    const bool free = std::none_of(result.begin(), result.end(), [&](const Row& kept) {
      return overlap(next.box, kept.box, s.normalized) >= threshold;
    });
    if (!free) continue;
    if (s.eta < 1 && threshold > 0.5f) threshold *= s.eta;
    result.push_back(next);
  }
}

// Lowers the score of each box by its overlap with better ones; overlaps with boxes that are
// themselves overlapped have less effect.
void decay(const Settings& s, const std::vector<Row>& list, std::vector<Row>& result) {
  std::vector<float> largest(list.size(), 0.0f), shared(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    WorkLimit::may_go_on();
    float factor = 1;
    for (size_t j = 0; j < i; ++j) {
      shared[j] = are_apart(list[i].box, list[j].box)
                      ? 0.0f
                      : overlap(list[i].box, list[j].box, s.normalized);
      largest[i] = std::max(largest[i], shared[j]);
      factor = std::min(factor,
                        s.is_gaussian
                            ? std::exp((largest[j] * largest[j] - shared[j] * shared[j]) * s.sigma)
                            : (1 - shared[j]) / (1 - largest[j]));
    }
    Row row = list[i];
    row.score *= factor;
    if (row.score > s.post_threshold) result.push_back(row);
  }
}

void sort_rows(SortBy sort, std::vector<Row>::iterator begin, std::vector<Row>::iterator end,
               bool across) {
  if (sort == SortBy::score) std::sort(begin, end, is_better);
  if (sort == SortBy::label)
    std::sort(begin, end, [&](const Row& a, const Row& b) {
      if (a.label != b.label) return a.label < b.label;
      if (across && a.image != b.image) return a.image < b.image;
      return is_better(a, b);
    });
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs,
              bool is_matrix) {
  const Settings s = read_settings(desc.attributes, is_matrix);
  const bool shared_list = inputs.size() > 2;
  const Sizes sizes =
      sizes_of(inputs[0].shape(), inputs[1].shape(), shared_list ? &inputs[2].shape() : nullptr);
  const std::vector<int64_t> numbers = shared_list ? inputs[2].to_ints() : std::vector<int64_t>();
  const float *boxes = inputs[0].data<float>(), *scores = inputs[1].data<float>();

  std::vector<Row> rows;
  std::vector<int64_t> counts;
  int64_t first = 0;  // first box in the shared list
  for (int64_t n = 0; n < sizes.images; ++n) {
    const int64_t begin = shared_list ? first : 0;
    const int64_t end = shared_list ? begin + std::clamp<int64_t>(numbers[static_cast<size_t>(n)],
                                                                  0, sizes.boxes - begin)
                                    : sizes.boxes;
    first = end;
    std::vector<std::vector<Row>> by_class(static_cast<size_t>(sizes.classes));
    const auto select = [&](int64_t c) {
      if (c == s.background) return;
      std::vector<Row> list;
      const float* mine = scores + (shared_list ? c : n * sizes.classes + c) * sizes.boxes;
      for (int64_t b = begin; b < end; ++b) {
        if (is_matrix ? !(mine[b] > s.score_threshold) : !(mine[b] >= s.score_threshold)) continue;
        const int64_t list_row = shared_list ? c : n;
        const int64_t index = shared_list ? b * sizes.classes + c : n * sizes.boxes + b;
        list.push_back({mine[b], n, c, index, boxes + (list_row * sizes.boxes + b) * 4});
      }
      const size_t most =
          s.nms_top_k >= 0 ? std::min(list.size(), static_cast<size_t>(s.nms_top_k)) : list.size();
      std::partial_sort(list.begin(), list.begin() + static_cast<int64_t>(most), list.end(),
                        is_better);
      list.resize(most);
      std::vector<Row>& kept = by_class[static_cast<size_t>(c)];
      is_matrix ? decay(s, list, kept) : suppress(s, list, kept);
    };
    constexpr double kEachBox = 10;  // multiplications
    WorkLimit::for_ranges(sizes.classes, kEachBox * static_cast<double>(end - begin),
                          [&](int64_t from, int64_t to) {
                            for (int64_t c = from; c < to; ++c) select(c);
                          });
    std::vector<Row> found;
    for (const auto& kept : by_class) found.insert(found.end(), kept.begin(), kept.end());
    if (s.keep_top_k >= 0 && found.size() > static_cast<size_t>(s.keep_top_k)) {
      std::sort(found.begin(), found.end(), is_better);
      found.resize(static_cast<size_t>(s.keep_top_k));
    }
    if (!s.across_batch) sort_rows(s.sort, found.begin(), found.end(), false);
    rows.insert(rows.end(), found.begin(), found.end());
    counts.push_back(static_cast<int64_t>(found.size()));
  }
  if (s.across_batch) sort_rows(s.sort, rows.begin(), rows.end(), true);

  const auto count = static_cast<int64_t>(rows.size());
  outputs[0] = Tensor::allocate(ElementType::f32, {count, 6});
  float* to = outputs[0].mutable_data<float>();
  std::vector<int64_t> indices;
  for (const Row& row : rows) {
    *to++ = static_cast<float>(row.label);
    *to++ = row.score;
    to = std::copy(row.box, row.box + 4, to);
    indices.push_back(row.index);
  }
  if (outputs.size() > 1) {
    outputs[1] = Tensor::allocate(outputs[1].type(), {count, 1});
    store_ints(indices, outputs[1]);
  }
  if (outputs.size() > 2) store_ints(counts, outputs[2]);
}

template <bool is_matrix>
std::vector<ValueInfo> infer_as(const ShapeContext& context) {
  return infer(context, is_matrix);
}

template <bool is_matrix>
void evaluate_as(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  evaluate(desc, inputs, outputs, is_matrix);
}

}  // namespace

std::vector<OpDef> multiclass_nms_ops() {
  return {{.type = "MulticlassNms",
           .opsets = opset_range(8),
           .infer_shapes = infer_as<false>,
           .evaluate = evaluate_as<false>,
           .host_reason = kHostReason,
           .rows_depend_on_data = true},
          {.type = "MatrixNms",
           .opsets = opset_range(8),
           .infer_shapes = infer_as<true>,
           .evaluate = evaluate_as<true>,
           .host_reason = kHostReason,
           .rows_depend_on_data = true}};
}

}  // namespace clinfer
