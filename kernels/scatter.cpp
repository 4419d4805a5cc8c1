// ScatterUpdate, ScatterElementsUpdate, ScatterNDUpdate: a copy of the data in which some elements
// are replaced (or, in newer versions, combined with updates). Where indices repeat, the last
// update counts, so updates go in order.
#include <algorithm>
#include <cstring>
#include <map>

#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr const char* kHostReason = "repeated indices make the order of updates count";

void check_types(const ShapeContext& context) {
  if (is_float(context.inputs[1].type)) fail_model("the indices must be integers");
  if (context.inputs[0].type != context.inputs[2].type)
    fail_model("data and updates differ in element type");
}

std::string three(const ShapeContext& context) {
  return "data " + to_string(context.inputs[0].shape) + ", indices " +
         to_string(context.inputs[1].shape) + ", updates " + to_string(context.inputs[2].shape);
}

// An index of untrusted data in 0..size-1.
int64_t checked_index(int64_t index, int64_t size) {
  const int64_t wrapped = index < 0 ? index + size : index;
  if (wrapped < 0 || wrapped >= size)
    throw Error(ErrorCode::bad_argument, "index " + std::to_string(index) +
                                             " is out of range for a dimension of " +
                                             std::to_string(size));
  return wrapped;
}

// ---- ScatterUpdate ------------------------------------------------------------------------------

std::vector<ValueInfo> infer_update(const ShapeContext& context) {
  check_inputs(context, 4, 4);
  check_types(context);
  const ValueInfo& data = context.inputs[0];
  const Shape &indices = context.inputs[1].shape, &updates = context.inputs[2].shape;
  const size_t axis = checked_axis(constant_int(context, 3, "the axis"), data.shape.size(), "axis");
  Shape expected(data.shape.begin(), data.shape.begin() + static_cast<int64_t>(axis));
  expected.insert(expected.end(), indices.begin(), indices.end());
  expected.insert(expected.end(), data.shape.begin() + static_cast<int64_t>(axis) + 1,
                  data.shape.end());
  if (updates != expected) fail_model("shapes do not fit: " + three(context));
  return {{data.type, data.shape}};
}

void evaluate_update(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  copy_all(inputs[0], outputs[0]);
  const Shape& shape = inputs[0].shape();
  const size_t axis = checked_axis(one_int(inputs[3], "the axis"), shape.size(), "axis");
  const std::vector<int64_t> indices = inputs[1].to_ints();
  const size_t size = size_of(inputs[0].type());
  size_t outer = 1, inner = size;
  for (size_t d = 0; d < shape.size(); ++d)
    if (d != axis) (d < axis ? outer : inner) *= static_cast<size_t>(shape[d]);
  if (inner == 0 || outer == 0) return;
  const auto* from = static_cast<const std::byte*>(inputs[2].raw());
  auto* to = static_cast<std::byte*>(outputs[0].raw_mutable());
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto at = static_cast<size_t>(checked_index(indices[i], shape[axis]));
      std::memcpy(to + (o * static_cast<size_t>(shape[axis]) + at) * inner,
                  from + (o * indices.size() + i) * inner, inner);
    }
}

// ---- how an update meets what is there ----------------------------------------------------------

enum class Reduction { none, sum, sub, prod, min, max, mean };

Reduction reduction_of(const Attributes& attributes, int opset, int since) {
  const std::string name = opset < since ? "none" : attributes.get_string("reduction", "none");
  static const std::map<std::string, Reduction> kNames{
      {"none", Reduction::none}, {"sum", Reduction::sum}, {"sub", Reduction::sub},
      {"prod", Reduction::prod}, {"min", Reduction::min}, {"max", Reduction::max},
      {"mean", Reduction::mean}};
  const auto found = kNames.find(name);
  if (found == kNames.end()) fail_model("reduction \"" + name + "\"");
  return found->second;
}

template <typename T>
T combined(Reduction reduction, T old, T update) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;  // integers wrap
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
      return static_cast<T>(static_cast<Wide>(old) + static_cast<Wide>(update));
    case Reduction::sub:
      return static_cast<T>(static_cast<Wide>(old) - static_cast<Wide>(update));
    case Reduction::prod:
      return static_cast<T>(static_cast<Wide>(old) * static_cast<Wide>(update));
    case Reduction::min:
      return std::min(old, update);
    case Reduction::max:
      return std::max(old, update);
    case Reduction::none:
      break;
  }
  return update;
}

// ---- ScatterElementsUpdate ----------------------------------------------------------------------

std::vector<ValueInfo> infer_elements(const ShapeContext& context) {
  check_inputs(context, 4, 4);
  check_types(context);
  const ValueInfo& data = context.inputs[0];
  const Shape &indices = context.inputs[1].shape, &updates = context.inputs[2].shape;
  const size_t axis = checked_axis(constant_int(context, 3, "the axis"), data.shape.size(), "axis");
  bool fits = indices == updates && indices.size() == data.shape.size();
  for (size_t d = 0; fits && d < indices.size(); ++d)
    fits = d == axis || indices[d] <= data.shape[d];
  if (!fits) fail_model("shapes do not fit: " + three(context));
  reduction_of(context.attributes, context.opset, 12);
  return {{data.type, data.shape}};
}

void evaluate_elements(const OpDesc& desc, std::span<const Tensor> inputs,
                       std::span<Tensor> outputs) {
  copy_all(inputs[0], outputs[0]);
  const Reduction reduction = reduction_of(desc.attributes, desc.opset, 12);
  const bool with_initial = desc.attributes.get_bool("use_init_val", true);
  const Shape& shape = inputs[0].shape();
  if (inputs[1].elements() == 0) return;
  const size_t axis = checked_axis(one_int(inputs[3], "the axis"), shape.size(), "axis");
  const Shape strides = row_major_strides(shape);
  const std::vector<int64_t> indices = inputs[1].to_ints();
  std::vector<int64_t> targets;
  Shape index(shape.size(), 0);
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t at = checked_index(indices[i], shape[axis]) * strides[axis];
    for (size_t d = 0; d < shape.size(); ++d) at += d == axis ? 0 : index[d] * strides[d];
    targets.push_back(at);
    next_index(index, inputs[1].shape());
  }
  with_number(inputs[0].type(), [&](auto zero) {
    using T = decltype(zero);
    const T* updates = inputs[2].data<T>();
    T* to = outputs[0].mutable_data<T>();
    std::map<int64_t, int64_t> met;  // how many values each target was made of, where that counts
    for (size_t i = 0; i < targets.size(); ++i) {
      T& value = to[targets[i]];
      const bool first = reduction != Reduction::none && met[targets[i]]++ == 0;
      value =
          first && !with_initial
              ? (reduction == Reduction::sub ? combined(reduction, T{}, updates[i]) : updates[i])
              : combined(reduction, value, updates[i]);
    }
    if (reduction == Reduction::mean)
      for (const auto& [target, updates_met] : met)
        to[target] =
            static_cast<T>(to[target] / static_cast<T>(updates_met + (with_initial ? 1 : 0)));
  });
}

// ---- ScatterNDUpdate ----------------------------------------------------------------------------

std::vector<ValueInfo> infer_nd(const ShapeContext& context) {
  check_inputs(context, 3, 3);
  check_types(context);
  const ValueInfo& data = context.inputs[0];
  const Shape &indices = context.inputs[1].shape, &updates = context.inputs[2].shape;
  bool fits = !indices.empty() && indices.back() >= 1 &&
              indices.back() <= static_cast<int64_t>(data.shape.size());
  if (fits) {
    Shape expected(indices.begin(), indices.end() - 1);
    expected.insert(expected.end(), data.shape.begin() + indices.back(), data.shape.end());
    fits = updates == expected;
  }
  if (!fits) fail_model("shapes do not fit: " + three(context));
  if (reduction_of(context.attributes, context.opset, 15) == Reduction::mean)
    fail_model("reduction \"mean\"");
  return {{data.type, data.shape}};
}

void evaluate_nd(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  copy_all(inputs[0], outputs[0]);
  if (inputs[2].elements() == 0) return;
  const Reduction reduction = reduction_of(desc.attributes, desc.opset, 15);
  const Shape& shape = inputs[0].shape();
  const Shape strides = row_major_strides(shape);
  const auto tuple = static_cast<size_t>(inputs[1].shape().back());
  const std::vector<int64_t> indices = inputs[1].to_ints();
  const int64_t part = strides[tuple - 1];
  with_number(inputs[0].type(), [&](auto zero) {
    using T = decltype(zero);
    const T* updates = inputs[2].data<T>();
    for (size_t i = 0; i < indices.size(); i += tuple) {
      int64_t at = 0;
      for (size_t k = 0; k < tuple; ++k) at += checked_index(indices[i + k], shape[k]) * strides[k];
      T* to = outputs[0].mutable_data<T>() + at;
      for (int64_t e = 0; e < part; ++e) to[e] = combined(reduction, to[e], *updates++);
    }
  });
}

}  // namespace

std::vector<OpDef> scatter_ops() {
  return {{.type = "ScatterUpdate",
           .opsets = opset_range(3),
           .infer_shapes = infer_update,
           .evaluate = evaluate_update,
           .host_reason = kHostReason},
          {.type = "ScatterElementsUpdate",
           .opsets = opset_range(3),
           .infer_shapes = infer_elements,
           .evaluate = evaluate_elements,
           .host_reason = kHostReason},
          {.type = "ScatterNDUpdate",
           .opsets = opset_range(3),
           .infer_shapes = infer_nd,
           .evaluate = evaluate_nd,
           .host_reason = kHostReason}};
}

}  // namespace clinfer
