// Translates constants, and operations that read or write values by index.
#include <algorithm>
#include <numeric>

#include "engine/onnx/op_table.h"
#include "engine/onnx/operations/signs.h"
#include "kernels/expand.h"
#include "kernels/movement/index_range.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// ---- constants ----------------------------------------------------------------------------------

void constant(OnnxNode& n) {
  if (n.has_attribute("value")) return n.out(n.stored(n.attribute("value").t()));
  if (n.has_attribute("sparse_value")) return n.out(n.stored(n.tensor_of("sparse_value")));
  if (n.has_attribute("value_float")) return n.out(n.number(n.float_of("value_float")));
  if (n.has_attribute("value_int")) return n.out(n.integer(n.int_of("value_int")));
  if (n.has_attribute("value_ints")) return n.out(n.ints(n.ints_of("value_ints")));
  if (!n.has_attribute("value_floats"))
    unsupported_node("has no value, or one of strings, which are not supported");
  const std::vector<float> values = n.floats_of("value_floats");
  n.out(n.constant(Tensor::of(ElementType::f32, {static_cast<int64_t>(values.size())}, values)));
}

void constant_of_shape(OnnxNode& n) {
  Tensor value = Tensor::allocate(ElementType::f32, {1});
  if (n.has_attribute("value")) value = n.tensor_of("value");
  if (value.elements() != 1) bad_node("the value must be one number");
  n.out(n.op("Broadcast", 3, {n.constant(value.reshaped({})), n.in(0)}, {{"mode", "numpy"}}));
}

void range(OnnxNode& n) {
  const auto scalar = [&](size_t i) {
    const Edge e = n.in(i);
    return n.rank(e) == 0 ? e : n.reshape_to(e, n.ints({}));
  };
  n.out(n.op("Range", 4, {scalar(0), scalar(1), scalar(2)},
             {{"output_type", std::string(name_of(n.type(n.in(0))))}}));
}

// Returns a matrix of 0 and 1, with 1 where is_one(column - row) holds.
Tensor diagonals(const Shape& shape, ElementType type, auto&& is_one) {
  if (shape.size() < 2) bad_node("needs a matrix");
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  const Tensor flat = table({rows, columns});
  Tensor mask = flat;
  auto* to = mask.mutable_data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[r * columns + c] = is_one(c - r) ? 1 : 0;
  return mask.convert(type);
}

void eye_like(OnnxNode& n) {
  const ElementType type =
      n.has_attribute("dtype") ? onnx_type(static_cast<int>(n.int_of("dtype"))) : n.type(n.in(0));
  const int64_t k = n.int_of("k", 0);
  n.out(n.constant(diagonals(n.sizes(n.in(0)), type, [k](int64_t d) { return d == k; })));
}

void trilu(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t k = n.has(1) ? n.need_int(n.in(1), "k") : 0;
  const bool upper = n.int_of("upper", 1) != 0;
  if (n.rank(x) < 2) bad_node("needs a matrix");
  const Edge mask = n.constant(diagonals({n.dim(x, -2), n.dim(x, -1)}, ElementType::boolean,
                                         [&](int64_t d) { return upper ? d >= k : d <= k; }));
  n.out(n.op("Select", 1, {mask, x, n.number_like(x, 0)}));
}

// ---- gather -------------------------------------------------------------------------------------

void gather(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t axis = n.axis(n.int_of("axis", 0), n.rank(x));
  const Tensor known = n.known(n.in(1));
  if (!n.varies(x, axis)) check_indices({n.type(n.in(1)), known.shape(), known}, n.dim(x, axis));
  // x[i] with a known i becomes a slice, which needs no copy; computations of shapes keep their
  // Gather.
  if (!known.empty() && n.rank(n.in(1)) == 0 && is_float(n.type(x)) && !n.varies(x, axis)) {
    const int64_t index = known.to_ints()[0], at = index < 0 ? index + n.dim(x, axis) : index;
    return n.out(n.squeeze(n.slice(x, axis, at, at + 1), {axis}));
  }
  n.out(n.gather(x, n.in(1), axis));
}

// Returns indices with `numbers` added to the negative ones, which count from the end.
Edge wrapped(OnnxNode& n, const Edge& indices, const Edge& numbers) {
  const Tensor known = n.known(indices), total = n.known(numbers);
  if (!known.empty() && !total.empty()) {
    const int64_t size = total.to_ints()[0];
    std::vector<int64_t> values = known.to_ints();
    for (int64_t& value : values) value += value < 0 ? size : 0;
    return n.constant(Tensor::of(n.type(indices), known.shape(), values));
  }
  if (never_negative(indices)) return indices;
  const Edge negative = n.op("Less", 1, {indices, n.number_like(indices, 0)});
  return n.op("Select", 1,
              {negative, n.add(indices, n.convert(numbers, n.type(indices))), indices});
}

void gather_elements(OnnxNode& n) {
  const int64_t axis = n.axis(n.int_of("axis", 0), n.rank(n.in(0)));
  n.out(n.op("GatherElements", 6, {n.in(0), n.in(1)}, {{"axis", std::to_string(axis)}}));
}

void gather_nd(OnnxNode& n) {
  n.out(n.op("GatherND", 8, {n.in(0), n.in(1)},
             {{"batch_dims", std::to_string(n.int_of("batch_dims", 0))}}));
}

void compress(OnnxNode& n) {
  Edge x = n.in(0);
  int64_t axis = 0;
  if (n.has_attribute("axis"))
    axis = n.axis(n.int_of("axis"), n.rank(x));
  else
    x = n.reshape_to(x, n.ints({-1}));
  if (const auto condition = n.known_ints(n.in(1))) {
    std::vector<int64_t> places;
    for (size_t i = 0; i < condition->size(); ++i)
      if ((*condition)[i]) places.push_back(static_cast<int64_t>(i));
    return n.out(n.gather(x, n.ints(places), axis));
  }
  const Edge found = n.op("NonZero", 3, {n.in(1)}, {{"output_type", "i64"}});
  n.out(n.gather(x, n.squeeze(found, {0}), axis));
}

void non_zero(OnnxNode& n) { n.out(n.op("NonZero", 3, {n.in(0)}, {{"output_type", "i64"}})); }

// ---- scatter ------------------------------------------------------------------------------------

std::string reduction_of(OnnxNode& n) {
  const std::string reduction = n.string_of("reduction", "none");
  if (reduction == "add") return "sum";
  if (reduction == "mul") return "prod";
  return reduction;
}

void scatter_elements(OnnxNode& n) {
  const int64_t axis = n.axis(n.int_of("axis", 0), n.rank(n.in(0)));
  n.out(n.op("ScatterElementsUpdate", 12, {n.in(0), n.in(1), n.in(2), n.integer(axis)},
             {{"reduction", reduction_of(n)}, {"use_init_val", "true"}}));
}

void scatter_nd(OnnxNode& n) {
  n.out(n.op("ScatterNDUpdate", 15, {n.in(0), n.in(1), n.in(2)}, {{"reduction", reduction_of(n)}}));
}

// Updates a cache from the place on that `write_indices` states for each image.
void tensor_scatter(OnnxNode& n) {
  const Edge cache = n.in(0), update = n.in(1);
  const int64_t rank = n.rank(cache), axis = n.axis(n.int_of("axis", -2), rank);
  const bool circular = n.string_of("mode", "linear") == "circular";
  const int64_t size = n.dim(cache, axis), steps = n.dim(update, axis);
  std::vector<int64_t> numbers(static_cast<size_t>(steps));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  Edge places = n.along(n.ints(numbers), axis, rank);
  if (n.has(2)) {
    std::vector<int64_t> first(static_cast<size_t>(rank), 1);
    first[0] = -1;
    places = n.add(places, n.reshape_to(n.convert(n.in(2), ElementType::i64), n.ints(first)));
  }
  if (circular) places = n.op("FloorMod", 1, {places, n.integer(size)});
  places = n.op("Broadcast", 3, {places, n.shape_of(update)}, {{"mode", "numpy"}});
  n.out(n.op("ScatterElementsUpdate", 12, {cache, places, update, n.integer(axis)},
             {{"reduction", "none"}, {"use_init_val", "true"}}));
}

void one_hot(OnnxNode& n) {
  const Edge indices = n.convert(n.in(0), ElementType::i64);
  const int64_t depth = n.need_int(n.in(1), "the depth");
  const Edge values = n.in(2);
  const auto value = [&](int64_t i) { return n.gather(values, n.integer(i), 0); };
  n.out(n.op("OneHot", 1,
             {wrapped(n, indices, n.integer(depth)), n.integer(depth), value(1), value(0)},
             {{"axis", std::to_string(n.int_of("axis", -1))}}));
}

}  // namespace

std::vector<OnnxOp> onnx_indexing_ops() {
  return {{"Compress", compress},
          {"Constant", constant},
          {"ConstantOfShape", constant_of_shape},
          {"EyeLike", eye_like},
          {"Gather", gather},
          {"GatherElements", gather_elements},
          {"GatherND", gather_nd},
          {"NonZero", non_zero},
          {"OneHot", one_hot},
          {"Range", range},
          {"Scatter", scatter_elements},
          {"ScatterElements", scatter_elements},
          {"ScatterND", scatter_nd},
          {"TensorScatter", tensor_scatter},
          {"Trilu", trilu},
          {"Trilu", trilu, kMicrosoft}};
}

}  // namespace clinfer
