// ScatterUpdate, ScatterElementsUpdate, ScatterNDUpdate: a copy of the data in which updates
// replace some elements (or, in newer versions, are combined with them). With repeated indices the
// last update takes effect, so updates are applied in order. With constant indices the effective
// updates are known, and the result is a gather from data and updates.
#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "kernels/expand.h"
#include "kernels/movement/index_range.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr const char* kHostReason =
    "repeated indices make the order of updates count; constant indices are a gather";
constexpr int64_t kMostPicked = 1 << 22;  // limit of rows whose source a constant lists
constexpr size_t kMostParts = 4;          // up to this number, parts are concatenated instead

void check_types(const ShapeContext& context) {
  if (is_float(context.inputs[1].type)) fail_model("the indices must be integers");
  if (context.inputs[0].type != context.inputs[2].type)
    fail_model("data and updates differ in element type");
}

std::string three(const ShapeContext& context) {
  return "data " + to_string(context.inputs[0].shape) + ", indices " +
         to_string(context.inputs[1].shape) + ", updates " + to_string(context.inputs[2].shape);
}

// Returns an index counted from the beginning; below 0 means out of range, where nothing is
// written.
int64_t place_of(int64_t index, int64_t size) {
  const int64_t wrapped = index < 0 ? index + size : index;
  return wrapped < size ? wrapped : -1;
}

// Replaces the rows of `data` along the axis that `targets` (in range) lists by the rows of
// `updates`.
size_t replaced_rows(Expansion& x, size_t data, size_t updates, size_t axis,
                     const std::vector<int64_t>& targets) {
  const int64_t count = x.shape(data)[axis];
  // Updates are numbered after the rows of the data.
  std::vector<int64_t> origins(static_cast<size_t>(count));
  std::iota(origins.begin(), origins.end(), int64_t{0});
  for (size_t i = 0; i < targets.size(); ++i)
    origins[static_cast<size_t>(targets[i])] = count + static_cast<int64_t>(i);
  struct Part {
    int64_t begin, end;
  };
  std::vector<Part> parts;
  for (int64_t origin : origins) {
    if (!parts.empty() && parts.back().end == origin && origin != count)
      ++parts.back().end;
    else if (parts.push_back({origin, origin + 1}); parts.size() > kMostParts)
      break;
  }
  const std::string along = std::to_string(axis);
  if (parts.size() > kMostParts) {
    const size_t both = x.step("Concat", 1, {data, updates}, {{"axis", along}});
    return x.step("Gather", 8, {both, x.ints(origins), x.ints({static_cast<int64_t>(axis)})});
  }
  std::vector<size_t> slices;
  for (const Part& part : parts)
    slices.push_back(part.begin < count
                         ? x.slice(data, axis, part.begin, part.end)
                         : x.slice(updates, axis, part.begin - count, part.end - count));
  return slices.size() == 1 ? slices[0] : x.step("Concat", 1, slices, {{"axis", along}});
}

// Returns whether the result can be gathered from `rows` rows of data and updates.
bool can_be_picked(const Expansion& x, int64_t rows) {
  return x.is_constant(1) && count(x.shape(0)) > 0 && count(x.shape(2)) > 0 && rows <= kMostPicked;
}

// ---- ScatterUpdate -----------------------------------------------------------------------------

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
  check_indices(context.inputs[1], data.shape[axis]);
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
      const int64_t at = place_of(indices[i], shape[axis]);
      if (at < 0) continue;
      std::memcpy(to + (o * static_cast<size_t>(shape[axis]) + static_cast<size_t>(at)) * inner,
                  from + (o * indices.size() + i) * inner, inner);
    }
}

void expand_update(Expansion& x) {
  const Shape shape = x.shape(0);
  const size_t axis = checked_axis(one_int(x.info(3).value, "the axis"), shape.size(), "axis");
  if (!can_be_picked(x, shape[axis])) return;
  std::vector<int64_t> targets = x.info(1).value.to_ints();
  for (int64_t& target : targets) target = place_of(target, shape[axis]);
  Shape rows = shape;
  rows[axis] = static_cast<int64_t>(targets.size());
  x.outputs = {replaced_rows(x, 0, x.reshape(2, rows), axis, targets)};
}

// ---- reductions --------------------------------------------------------------------------------

enum class Reduction { none, sum, sub, prod, min, max, mean };

Reduction reduction_of(const Attributes& attributes, int opset, int since) {
  const std::string name = opset < since ? "none" : attributes.get_string("reduction", "none");
  static const auto& kNames = *new const std::map<std::string, Reduction>{
      {"none", Reduction::none}, {"sum", Reduction::sum}, {"sub", Reduction::sub},
      {"prod", Reduction::prod}, {"min", Reduction::min}, {"max", Reduction::max},
      {"mean", Reduction::mean}};
  const auto found = kNames.find(name);
  if (found == kNames.end()) fail_model("reduction \"" + name + "\"");
  return found->second;
}

template <typename T>
T combined(Reduction reduction, T old, T update) {
  using Wide = Wrapping<T>;
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

// ---- ScatterElementsUpdate ---------------------------------------------------------------------

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
  check_indices(context.inputs[1], data.shape[axis]);
  reduction_of(context.attributes, context.opset, 12);
  return {{data.type, data.shape}};
}

// Returns the target of each update, as an element of the data; below 0 for none.
std::vector<int64_t> element_targets(const Tensor& indices, const Shape& shape, size_t axis) {
  const Shape strides = row_major_strides(shape);
  std::vector<int64_t> targets;
  Shape index(shape.size(), 0);
  for (const int64_t value : indices.to_ints()) {
    const int64_t place = place_of(value, shape[axis]);
    int64_t at = place * strides[axis];
    for (size_t d = 0; d < shape.size(); ++d) at += d == axis ? 0 : index[d] * strides[d];
    targets.push_back(place < 0 ? -1 : at);
    next_index(index, indices.shape());
  }
  return targets;
}

void evaluate_elements(const OpDesc& desc, std::span<const Tensor> inputs,
                       std::span<Tensor> outputs) {
  copy_all(inputs[0], outputs[0]);
  const Reduction reduction = reduction_of(desc.attributes, desc.opset, 12);
  const bool with_initial = desc.attributes.get_bool("use_init_val", true);
  const Shape& shape = inputs[0].shape();
  if (inputs[1].elements() == 0) return;
  const size_t axis = checked_axis(one_int(inputs[3], "the axis"), shape.size(), "axis");
  const std::vector<int64_t> targets = element_targets(inputs[1], shape, axis);
  with_number(inputs[0].type(), [&](auto zero) {
    using T = decltype(zero);
    const T* updates = inputs[2].data<T>();
    T* to = outputs[0].mutable_data<T>();
    std::map<int64_t, int64_t> met;  // number of values in each target, for reductions that need it
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] < 0) continue;
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

void expand_elements(Expansion& x) {
  const Shape shape = x.shape(0);
  const int64_t elements = count(shape);
  if (!can_be_picked(x, elements) ||
      reduction_of(x.context().attributes, x.context().opset, 12) != Reduction::none)
    return;
  const size_t axis = checked_axis(one_int(x.info(3).value, "the axis"), shape.size(), "axis");
  x.outputs = {
      x.reshape(replaced_rows(x, x.reshape(0, {elements}), x.reshape(2, {count(x.shape(2))}), 0,
                              element_targets(x.info(1).value, shape, axis)),
                shape)};
}

// ---- ScatterNDUpdate ---------------------------------------------------------------------------

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
  check_index_lists(context.inputs[1],
                    std::span(data.shape).first(static_cast<size_t>(indices.back())));
  if (reduction_of(context.attributes, context.opset, 15) == Reduction::mean)
    fail_model("reduction \"mean\"");
  return {{data.type, data.shape}};
}

// Returns the target of each update in rows, the parts of the data after the indexed dimensions;
// below 0 for none.
std::vector<int64_t> row_targets(const Tensor& indices, const Shape& shape) {
  const auto tuple = static_cast<size_t>(indices.shape().back());
  const std::vector<int64_t> values = indices.to_ints();
  std::vector<int64_t> targets;
  for (size_t i = 0; i < values.size(); i += tuple) {
    int64_t at = 0;
    for (size_t k = 0; k < tuple && at >= 0; ++k) {
      const int64_t place = place_of(values[i + k], shape[k]);
      at = place < 0 ? -1 : at * shape[k] + place;
    }
    targets.push_back(at);
  }
  return targets;
}

void evaluate_nd(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  copy_all(inputs[0], outputs[0]);
  if (inputs[2].elements() == 0) return;
  const Reduction reduction = reduction_of(desc.attributes, desc.opset, 15);
  const Shape& shape = inputs[0].shape();
  const std::vector<int64_t> targets = row_targets(inputs[1], shape);
  const int64_t part = row_major_strides(shape)[static_cast<size_t>(inputs[1].shape().back()) - 1];
  with_number(inputs[0].type(), [&](auto zero) {
    using T = decltype(zero);
    const T* updates = inputs[2].data<T>();
    for (const int64_t target : targets) {
      if (target < 0) {
        updates += part;
        continue;
      }
      T* to = outputs[0].mutable_data<T>() + target * part;
      for (int64_t e = 0; e < part; ++e) to[e] = combined(reduction, to[e], *updates++);
    }
  });
}

void expand_nd(Expansion& x) {
  const Shape shape = x.shape(0);
  const int64_t tuple = x.shape(1).back();
  const int64_t rows = count(Shape(shape.begin(), shape.begin() + tuple));
  if (!can_be_picked(x, rows) ||
      reduction_of(x.context().attributes, x.context().opset, 15) != Reduction::none)
    return;
  const std::vector<int64_t> targets = row_targets(x.info(1).value, shape);
  const int64_t part = count(shape) / rows;
  x.outputs = {x.reshape(
      replaced_rows(x, x.reshape(0, {rows, part}),
                    x.reshape(2, {static_cast<int64_t>(targets.size()), part}), 0, targets),
      shape)};
}

}  // namespace

std::vector<OpDef> scatter_ops() {
  return {{.type = "ScatterUpdate",
           .opsets = opset_range(3),
           .infer_shapes = infer_update,
           .evaluate = evaluate_update,
           .expand = expand_update,
           .host_reason = kHostReason},
          {.type = "ScatterElementsUpdate",
           .opsets = opset_range(3),
           .infer_shapes = infer_elements,
           .evaluate = evaluate_elements,
           .expand = expand_elements,
           .host_reason = kHostReason},
          {.type = "ScatterNDUpdate",
           .opsets = opset_range(3),
           .infer_shapes = infer_nd,
           .evaluate = evaluate_nd,
           .expand = expand_nd,
           .host_reason = kHostReason}};
}

}  // namespace clinfer
