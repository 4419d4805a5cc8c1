// ScaledDotProductAttention: softmax(query x key^T * scale + mask) x value, as products, a softmax
// and element functions.
#include <cmath>

#include "kernels/expand.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr float kNever = -65504;  // the lowest value of f16: exp(x + kNever) is 0 for any score

void attention(Expansion& x) {
  const ShapeContext& context = x.context();
  check_inputs(context, 3, 5);
  const Shape query = x.shape(0), key = x.shape(1), value = x.shape(2);
  for (const Shape* shape : {&query, &key, &value}) check_rank(*shape, 2, 6, "query, key or value");
  if (query.back() != key.back() || key[key.size() - 2] != value[value.size() - 2])
    fail_model("query " + to_string(query) + ", key " + to_string(key) + " and value " +
               to_string(value) + " do not fit");
  const bool causal = context.attributes.get_bool("causal", false);
  size_t scale = 4;
  if (!has_input(context, 4))
    scale = x.number(query.back() > 0 ? 1 / std::sqrt(static_cast<float>(query.back())) : 1.0f);
  else if (checked_count(x.shape(4)) != 1)
    fail_model("scale must be one number");
  size_t scores = x.step("MatMul", 1, {0, 1}, {{"transpose_a", "false"}, {"transpose_b", "true"}});
  scores = x.step("Multiply", 1, {scores, x.reshape(scale, {})});
  if (causal) {
    const int64_t rows = query[query.size() - 2], columns = key[key.size() - 2];
    Tensor mask = table({rows, columns});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = r + 1; c < columns; ++c)
        mask.mutable_data<float>()[r * columns + c] = kNever;
    scores = x.step("Add", 1, {scores, x.constant(mask)});
  } else if (has_input(context, 3)) {
    scores = x.info(3).type == ElementType::boolean
                 ? x.step("Select", 1, {3, scores, x.number(kNever)})
                 : x.step("Add", 1, {scores, 3});
  }
  const size_t weights = x.step("SoftMax", 8, {scores}, {{"axis", "-1"}});
  x.outputs = {
      x.step("MatMul", 1, {weights, 2}, {{"transpose_a", "false"}, {"transpose_b", "false"}})};
}

}  // namespace

std::vector<OpDef> scaled_dot_product_ops() {
  return {expanded_op("ScaledDotProductAttention", opset_range(13), attention)};
}

}  // namespace clinfer
