// CTCGreedyDecoder and CTCGreedyDecoderSeqLen: take the best class of each step, without blanks and
// optionally without repetitions.
#include <algorithm>

#include "kernels/base/system/work_limit.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr const char* kHostReason = "each step depends on the one before, and there are few";

// Decodes `steps` steps, which are `step` apart, of `classes` scores each.
std::vector<int64_t> decode(const float* scores, int64_t steps, int64_t step, int64_t classes,
                            int64_t blank, bool merge) {
  std::vector<int64_t> decoded;
  int64_t before = -1;
  for (int64_t t = 0; t < steps; ++t) {
    const float* row = scores + t * step;
    const int64_t best = std::max_element(row, row + classes) - row;
    if (best != blank && !(merge && best == before)) decoded.push_back(best);
    before = best;
  }
  return decoded;
}

// ---- CTCGreedyDecoder: scores [steps, batch, classes], mask [steps, batch] ---------------------

std::vector<ValueInfo> infer_masked(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const Shape &scores = context.inputs[0].shape, &mask = context.inputs[1].shape;
  check_rank(scores, 3, 3, "the scores");
  if (mask != Shape{scores[0], scores[1]} || scores[2] < 1)
    fail_model("scores " + to_string(scores) + " and mask " + to_string(mask) + " do not fit");
  return {{context.inputs[0].type, {scores[1], scores[0], 1, 1}}};
}

void evaluate_masked(const OpDesc& desc, std::span<const Tensor> inputs,
                     std::span<Tensor> outputs) {
  const int64_t steps = inputs[0].shape()[0], batch = inputs[0].shape()[1],
                classes = inputs[0].shape()[2];
  const bool merge = desc.attributes.get_bool("ctc_merge_repeated", true);
  const std::vector<float> mask = inputs[1].to_floats();
  float* out = outputs[0].mutable_data<float>();
  std::fill_n(out, outputs[0].elements(), -1.0f);
  const auto decode_one = [&](int64_t n) {
    int64_t length = 0;
    while (length < steps && mask[static_cast<size_t>(length * batch + n)] != 0) ++length;
    const std::vector<int64_t> decoded = decode(inputs[0].data<float>() + n * classes, length,
                                                batch * classes, classes, classes - 1, merge);
    std::transform(decoded.begin(), decoded.end(), out + n * steps,
                   [](int64_t c) { return static_cast<float>(c); });
  };
  WorkLimit::for_ranges(batch, static_cast<double>(steps * classes),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t n = begin; n < end; ++n) decode_one(n);
                        });
}

// ---- CTCGreedyDecoderSeqLen: scores [batch, steps, classes], lengths [batch] -------------------

std::vector<ValueInfo> infer_lengths(const ShapeContext& context) {
  check_inputs(context, 2, 3);
  const Shape &scores = context.inputs[0].shape, &lengths = context.inputs[1].shape;
  check_rank(scores, 3, 3, "the scores");
  if (lengths != Shape{scores[0]} || scores[2] < 1)
    fail_model("scores " + to_string(scores) + " and lengths " + to_string(lengths) +
               " do not fit");
  if (has_input(context, 2) && checked_count(context.inputs[2].shape) != 1)
    fail_model("blank_index must be one number");
  return {{index_type(context.attributes, "classes_index_type", ElementType::i32),
           {scores[0], scores[1]}},
          {index_type(context.attributes, "sequence_length_type", ElementType::i32), {scores[0]}}};
}

void evaluate_lengths(const OpDesc& desc, std::span<const Tensor> inputs,
                      std::span<Tensor> outputs) {
  const int64_t batch = inputs[0].shape()[0], steps = inputs[0].shape()[1],
                classes = inputs[0].shape()[2];
  const int64_t blank = inputs.size() > 2 ? one_int(inputs[2], "blank_index") : classes - 1;
  const bool merge = desc.attributes.get_bool("merge_repeated", true);
  const std::vector<int64_t> lengths = inputs[1].to_ints();
  std::vector<int64_t> all(static_cast<size_t>(batch * steps), -1),
      counts(static_cast<size_t>(batch));
  const auto decode_one = [&](int64_t n) {
    const int64_t length = std::clamp<int64_t>(lengths[static_cast<size_t>(n)], 0, steps);
    const std::vector<int64_t> decoded = decode(inputs[0].data<float>() + n * steps * classes,
                                                length, classes, classes, blank, merge);
    std::copy(decoded.begin(), decoded.end(), all.begin() + n * steps);
    counts[static_cast<size_t>(n)] = static_cast<int64_t>(decoded.size());
  };
  WorkLimit::for_ranges(batch, static_cast<double>(steps * classes),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t n = begin; n < end; ++n) decode_one(n);
                        });
  store_ints(all, outputs[0]);
  if (outputs.size() > 1) store_ints(counts, outputs[1]);
}

}  // namespace

std::vector<OpDef> ctc_decoder_ops() {
  return {{.type = "CTCGreedyDecoder",
           .opsets = opset_range(1),
           .infer_shapes = infer_masked,
           .evaluate = evaluate_masked,
           .host_reason = kHostReason},
          {.type = "CTCGreedyDecoderSeqLen",
           .opsets = opset_range(6),
           .infer_shapes = infer_lengths,
           .evaluate = evaluate_lengths,
           .host_reason = kHostReason}};
}

}  // namespace clinfer
