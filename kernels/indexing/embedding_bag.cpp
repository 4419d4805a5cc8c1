// EmbeddingBagOffsets and EmbeddingBagPacked (sums or means), their older forms
// EmbeddingBagOffsetsSum and EmbeddingBagPackedSum, and EmbeddingSegmentsSum reduce rows of a
// table, which indices select. They differ in how the indices are grouped into bags.
#include <algorithm>
#include <limits>

#include "kernels/base/system/work_limit.h"
#include "kernels/movement/index_range.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr const char* kHostReason = "gathers few rows of a table";

// The positions of each bag's indices; an empty bag takes row `otherwise` (none if negative).
struct Bags {
  std::vector<std::pair<int64_t, int64_t>> ranges;  // begin, end
  std::vector<int64_t> order;  // positions that the ranges refer to; empty: in their own order
  int64_t otherwise = -1;
  bool mean = false;
};

// Returns whether the reduction is a mean. Operations named ...Sum have no attribute for it.
bool is_mean(const Attributes& attributes) {
  const std::string reduction = attributes.get_string("reduction", "sum");
  if (reduction != "sum" && reduction != "mean")
    fail_model("unknown reduction \"" + reduction + "\"");
  return reduction == "mean";
}

void check_table(const ShapeContext& context) {
  check_rank(context.inputs[0].shape, 1, 16, "the table");
  if (is_float(context.inputs[1].type)) fail_model("the indices must be integers");
  check_range(context.inputs[1], 0, context.inputs[0].shape[0] - 1, "an index");
}

// Checks the default index, for bags without an index; any number below 0 means no row.
void check_default(const ShapeContext& context, size_t i) {
  if (has_input(context, i))
    check_range(context.inputs[i], std::numeric_limits<int64_t>::min(),
                context.inputs[0].shape[0] - 1, "the default index");
}

// Checks that constants are within 0..most and do not decrease.
void check_rising(const ValueInfo& numbers, int64_t most, const char* what) {
  check_range(numbers, 0, most, what);
  if (numbers.value.empty()) return;
  const std::vector<int64_t> values = numbers.value.to_ints();
  if (!std::is_sorted(values.begin(), values.end()))
    fail_model(std::string(what) + " is less than the one before");
}

void check_weights(const ShapeContext& context, size_t i) {
  if (is_mean(context.attributes) && has_input(context, i)) fail_model("weights of a mean");
  if (has_input(context, i) && (context.inputs[i].shape != context.inputs[1].shape ||
                                context.inputs[i].type != context.inputs[0].type))
    fail_model("the weights " + to_string(context.inputs[i].shape) + " do not fit the indices " +
               to_string(context.inputs[1].shape));
}

ValueInfo rows_of_table(const ShapeContext& context, int64_t bags) {
  ValueInfo out{context.inputs[0].type, context.inputs[0].shape};
  if (bags < 0) fail_model("the number of bags is negative");
  out.shape[0] = bags;
  checked_count(out.shape);
  return out;
}

void sum_bags(const Bags& bags, const Tensor& table, const Tensor& index_tensor,
              const Tensor* weights, Tensor& output) {
  const std::vector<int64_t> indices = index_tensor.to_ints();
  const int64_t rows = table.shape()[0];
  const int64_t width = rows > 0 ? table.elements() / rows : 0;
  with_number(table.type(), [&](auto zero) {
    using T = decltype(zero);
    using Sum = Wrapping<T>;
    T* all = output.mutable_data<T>();
    std::fill_n(all, output.elements(), T{});
    const auto sum_bag = [&](int64_t bag) {
      const auto [begin, end] = bags.ranges[static_cast<size_t>(bag)];
      T* to = all + bag * width;
      const auto add = [&](int64_t index, T weight) {
        // A computed index out of range: zeros are read there.
        if (index < 0 || index >= rows) return;
        const T* row = table.data<T>() + index * width;
        for (int64_t i = 0; i < width; ++i)
          to[i] = static_cast<T>(static_cast<Sum>(to[i]) +
                                 static_cast<Sum>(row[i]) * static_cast<Sum>(weight));
      };
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = bags.order.empty() ? i : bags.order[static_cast<size_t>(i)];
        add(indices[static_cast<size_t>(at)], weights ? weights->data<T>()[at] : T{1});
      }
      if (begin == end) add(bags.otherwise, T{1});
      if (bags.mean && end > begin + 1)
        for (int64_t i = 0; i < width; ++i) to[i] = static_cast<T>(to[i] / (end - begin));
    };
    const auto count = static_cast<int64_t>(bags.ranges.size());
    const double all_rows = static_cast<double>(indices.size()) * static_cast<double>(width);
    WorkLimit::for_ranges(count, all_rows / static_cast<double>(std::max<int64_t>(count, 1)),
                          [&](int64_t first, int64_t last) {
                            for (int64_t bag = first; bag < last; ++bag) sum_bag(bag);
                          });
  });
}

const Tensor* optional_input(std::span<const Tensor> inputs, size_t i) {
  return i < inputs.size() ? &inputs[i] : nullptr;
}

// ---- offsets: table, indices, offsets, default, weights ----------------------------------------

std::vector<ValueInfo> infer_offsets(const ShapeContext& context) {
  check_inputs(context, 3, 5);
  check_table(context);
  check_rank(context.inputs[1].shape, 1, 1, "the indices");
  check_rank(context.inputs[2].shape, 1, 1, "the offsets");
  check_rising(context.inputs[2], context.inputs[1].shape[0], "an offset");
  check_default(context, 3);
  check_weights(context, 4);
  return {rows_of_table(context, context.inputs[2].shape[0])};
}

void evaluate_offsets(const OpDesc& desc, std::span<const Tensor> inputs,
                      std::span<Tensor> outputs) {
  const std::vector<int64_t> offsets = inputs[2].to_ints();
  Bags bags;
  bags.mean = is_mean(desc.attributes);
  const int64_t most = inputs[1].elements();
  for (size_t b = 0; b < offsets.size(); ++b) {
    const int64_t begin = std::clamp<int64_t>(offsets[b], 0, most);
    const int64_t end = b + 1 < offsets.size() ? offsets[b + 1] : most;
    bags.ranges.emplace_back(begin, std::clamp(end, begin, most));
  }
  if (inputs.size() > 3) bags.otherwise = one_int(inputs[3], "the default index");
  sum_bags(bags, inputs[0], inputs[1], optional_input(inputs, 4), outputs[0]);
}

// ---- packed: table, indices [bags, each], weights ----------------------------------------------

std::vector<ValueInfo> infer_packed(const ShapeContext& context) {
  check_inputs(context, 2, 3);
  check_table(context);
  check_rank(context.inputs[1].shape, 2, 2, "the indices");
  check_weights(context, 2);
  return {rows_of_table(context, context.inputs[1].shape[0])};
}

void evaluate_packed(const OpDesc& desc, std::span<const Tensor> inputs,
                     std::span<Tensor> outputs) {
  Bags bags;
  bags.mean = is_mean(desc.attributes);
  const int64_t each = inputs[1].shape()[1];
  for (int64_t b = 0; b < inputs[1].shape()[0]; ++b)
    bags.ranges.emplace_back(b * each, (b + 1) * each);
  sum_bags(bags, inputs[0], inputs[1], optional_input(inputs, 2), outputs[0]);
}

// ---- segments: table, indices, ids, number of segments, default, weights -----------------------

std::vector<ValueInfo> infer_segments(const ShapeContext& context) {
  check_inputs(context, 4, 6);
  check_table(context);
  check_rank(context.inputs[1].shape, 1, 1, "the indices");
  if (context.inputs[2].shape != context.inputs[1].shape)
    fail_model("segment ids and indices differ in length");
  check_default(context, 4);
  check_weights(context, 5);
  ValueInfo rows = rows_of_table(context, constant_int(context, 3, "the number of segments"));
  check_rising(context.inputs[2], rows.shape[0] - 1, "a segment's number");
  return {std::move(rows)};
}

void evaluate_segments(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const std::vector<int64_t> ids = inputs[2].to_ints();
  const int64_t segments = outputs[0].shape()[0];
  Bags bags;
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= 0 && ids[i] < segments) bags.order.push_back(static_cast<int64_t>(i));
  const auto segment_of = [&](int64_t i) { return ids[static_cast<size_t>(i)]; };
  std::stable_sort(bags.order.begin(), bags.order.end(),
                   [&](int64_t a, int64_t b) { return segment_of(a) < segment_of(b); });
  auto at = bags.order.begin();
  for (int64_t s = 0; s < segments; ++s) {
    const auto begin = at;
    at = std::find_if(at, bags.order.end(), [&](int64_t i) { return segment_of(i) != s; });
    bags.ranges.emplace_back(begin - bags.order.begin(), at - bags.order.begin());
  }
  if (inputs.size() > 4) bags.otherwise = one_int(inputs[4], "the default index");
  sum_bags(bags, inputs[0], inputs[1], optional_input(inputs, 5), outputs[0]);
}

}  // namespace

std::vector<OpDef> embedding_bag_ops() {
  OpDef offsets{.type = "EmbeddingBagOffsets",
                .opsets = opset_range(15),
                .infer_shapes = infer_offsets,
                .evaluate = evaluate_offsets,
                .host_reason = kHostReason};
  OpDef packed{.type = "EmbeddingBagPacked",
               .opsets = opset_range(15),
               .infer_shapes = infer_packed,
               .evaluate = evaluate_packed,
               .host_reason = kHostReason};
  std::vector<OpDef> ops{offsets,
                         packed,
                         {.type = "EmbeddingSegmentsSum",
                          .opsets = opset_range(3),
                          .infer_shapes = infer_segments,
                          .evaluate = evaluate_segments,
                          .host_reason = kHostReason}};
  for (OpDef* op : {&offsets, &packed}) {
    op->type += "Sum";
    op->opsets = opset_range(3);
    ops.push_back(*op);
  }
  return ops;
}

}  // namespace clinfer
