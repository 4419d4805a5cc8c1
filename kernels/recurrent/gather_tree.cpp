// GatherTree: follows the parents of each beam from its last step back to the first.
#include <algorithm>

#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 4, 4);
  const ValueInfo& ids = context.inputs[0];
  check_rank(ids.shape, 3, 3, "the step ids");
  if (context.inputs[1].shape != ids.shape || context.inputs[2].shape != Shape{ids.shape[1]} ||
      checked_count(context.inputs[3].shape) != 1)
    fail_model("step ids " + to_string(ids.shape) + ", parents " +
               to_string(context.inputs[1].shape) + ", lengths " +
               to_string(context.inputs[2].shape) + " and end token do not fit");
  return {{ids.type, ids.shape}};
}

void evaluate(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const int64_t steps = shape[0], batch = shape[1], beams = shape[2];
  const std::vector<int64_t> parents = inputs[1].to_ints(), lengths = inputs[2].to_ints();
  with_number(inputs[0].type(), [&](auto zero) {
    using T = decltype(zero);
    const T* ids = inputs[0].data<T>();
    const T end = *inputs[3].convert(inputs[0].type()).data<T>();
    T* to = outputs[0].mutable_data<T>();
    std::fill_n(to, outputs[0].elements(), end);
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t beam = 0; beam < beams; ++beam) {
        const int64_t length = std::clamp<int64_t>(lengths[static_cast<size_t>(n)], 0, steps);
        int64_t from = beam;
        for (int64_t t = length; t-- > 0;) {
          const int64_t at = (t * batch + n) * beams;
          // Otherwise zeros are read (index_range.h).
          const bool is_beam = from >= 0 && from < beams;
          to[at + beam] = is_beam ? ids[at + from] : T{};
          if (is_beam) from = parents[static_cast<size_t>(at + from)];
        }
        bool finished = false;  // after the first end token, all tokens are end tokens
        for (int64_t t = 0; t < length; ++t) {
          T& value = to[(t * batch + n) * beams + beam];
          if (finished) value = end;
          finished = finished || value == end;
        }
      }
  });
}

}  // namespace

std::vector<OpDef> gather_tree_ops() {
  return {{.type = "GatherTree",
           .opsets = opset_range(1),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .host_reason = "each step depends on the one after it"}};
}

}  // namespace clinfer
