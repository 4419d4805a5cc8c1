// SearchSorted and Bucketize: the positions of values in sorted rows.
#include <algorithm>

#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infer_search(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  const Shape &sorted = context.inputs[0].shape, &values = context.inputs[1].shape;
  const bool rows = sorted.size() == values.size() && !sorted.empty() &&
                    std::equal(sorted.begin(), sorted.end() - 1, values.begin());
  if (!rows && sorted.size() != 1)
    fail_model("sorted rows " + to_string(sorted) + " and values " + to_string(values) +
               " differ in more than the last dimension");
  return {{index_type(context.attributes, "output_type"), values, {}}};
}

std::vector<ValueInfo> infer_bucketize(const ShapeContext& context) {
  check_inputs(context, 2, 2);
  check_rank(context.inputs[1].shape, 1, 1, "the buckets");
  return {{index_type(context.attributes, "output_type"), context.inputs[0].shape, {}}};
}

// Counts for each value the elements of its row that are below it, or not above it. Doubles hold
// both types of numbers; integers above 2^53 lose their last bits.
void insert_positions(const Tensor& sorted, const Tensor& values, bool after_equals, Tensor& out) {
  const auto numbers = [](const Tensor& tensor) {
    if (is_float(tensor.type())) {
      const std::vector<float> floats = tensor.to_floats();
      return std::vector<double>(floats.begin(), floats.end());
    }
    const std::vector<int64_t> ints = tensor.to_ints();
    return std::vector<double>(ints.begin(), ints.end());
  };
  const std::vector<double> table = numbers(sorted), wanted = numbers(values);
  const auto size = static_cast<size_t>(sorted.shape().back());
  const bool one_row = sorted.shape().size() == 1;
  const size_t width = one_row ? 0 : static_cast<size_t>(values.shape().back());
  std::vector<int64_t> places;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto begin = table.begin() + static_cast<ptrdiff_t>(one_row ? 0 : i / width * size),
               end = begin + static_cast<ptrdiff_t>(size);
    places.push_back((after_equals ? std::upper_bound(begin, end, wanted[i])
                                   : std::lower_bound(begin, end, wanted[i])) -
                     begin);
  }
  store_ints(places, out);
}

void search(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  insert_positions(inputs[0], inputs[1], desc.attributes.get_bool("right_mode", false), outputs[0]);
}

void bucketize(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  insert_positions(inputs[1], inputs[0], !desc.attributes.get_bool("with_right_bound", true),
                   outputs[0]);
}

constexpr const char* kReason = "a search in a short table";

}  // namespace

std::vector<OpDef> search_sorted_ops() {
  return {{.type = "SearchSorted",
           .opsets = opset_range(15),
           .infer_shapes = infer_search,
           .evaluate = search,
           .host_reason = kReason},
          {.type = "Bucketize",
           .opsets = opset_range(3),
           .infer_shapes = infer_bucketize,
           .evaluate = bucketize,
           .host_reason = kReason}};
}

}  // namespace clinfer
