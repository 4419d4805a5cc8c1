// Translates reductions along axes, softmax, sorting and cumulative sums.
#include <numeric>

#include "engine/onnx/op_table.h"

namespace clinfer {

namespace {

std::vector<int64_t> all_axes(int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

struct Axes {
  std::vector<int64_t> list;
  bool nothing = false;  // there is nothing to reduce
};

// Returns the axes, which are an attribute before opset 18 (13 for ReduceSum) and an input later.
Axes reduced_axes(OnnxNode& n) {
  const auto listed = n.ints_since(n.type() == "ReduceSum" ? 13 : 18, "axes", 1);
  const int64_t rank = n.rank(n.in(0));
  if (listed && !listed->empty()) return {n.axes(*listed, rank)};
  if (n.int_of("noop_with_empty_axes", 0) != 0) return {{}, true};
  return {all_axes(rank)};
}

void reduce(OnnxNode& n) {
  const std::string type = n.type();
  const bool keep = n.int_of("keepdims", 1) != 0;
  const Axes axes = reduced_axes(n);
  Edge x = n.in(0);
  const auto over = [&](const char* ours, const Edge& e) {
    return axes.nothing ? e : n.reduce(ours, e, axes.list, keep);
  };
  const auto in_floats = [&](auto&& work) {
    return n.convert(work(n.convert(x, ElementType::f32)), n.type(n.in(0)));
  };
  if (type == "ReduceSumSquare") return n.out(over("ReduceSum", n.multiply(x, x)));
  if (type == "ReduceLogSum")
    return n.out(in_floats([&](const Edge& e) { return n.op("Log", 1, {over("ReduceSum", e)}); }));
  if (type == "ReduceLogSumExp")
    return n.out(in_floats([&](const Edge& e) {
      if (axes.nothing) return e;
      if (count(n.shape(e)) == 0) return n.op("Log", 1, {over("ReduceSum", n.op("Exp", 1, {e}))});
      const Edge largest = n.reduce("ReduceMax", e, axes.list, true);
      const Edge sum =
          n.reduce("ReduceSum", n.op("Exp", 1, {n.subtract(e, largest)}), axes.list, true);
      const Edge y = n.add(n.op("Log", 1, {sum}), largest);
      return keep ? y : n.squeeze(y, axes.list);
    }));
  if (axes.nothing && type == "ReduceL1") return n.out(n.op("Abs", 1, {x}));
  if (axes.nothing && type == "ReduceL2")
    return n.out(in_floats([&](const Edge& e) { return n.op("Abs", 1, {e}); }));
  if (n.type(x) == ElementType::boolean) {  // the maximum of booleans is their logical or
    const char* ours = type == "ReduceMax" ? "ReduceLogicalOr" : "ReduceLogicalAnd";
    return n.out(over(ours, x));
  }
  n.out(over(type.c_str(), x));
}

// ---- softmax ------------------------------------------------------------------------------------

// Applies the work along the axis; before opset 13, to all dimensions from the axis on, joined.
template <typename Work>
void over_axis(OnnxNode& n, Work&& work) {
  const Edge x = n.in(0);
  const int64_t rank = n.rank(x);
  if (n.opset() >= 13) return n.out(work(x, n.axis(n.int_of("axis", -1), rank)));
  n.out(over_joined(n, x, n.axis(n.int_of("axis", 1), rank), work));
}

void softmax(OnnxNode& n) {
  over_axis(n, [&](const Edge& x, int64_t axis) {
    // Passed on as stated, mostly counted from the end.
    if (n.opset() >= 13) axis = n.int_of("axis", -1);
    return n.op(n.type() == "LogSoftmax" ? "LogSoftmax" : "SoftMax",
                n.type() == "LogSoftmax" ? 5 : 8, {x}, {{"axis", std::to_string(axis)}});
  });
}

// Returns the index of the largest (or smallest) value along the axis; the first of equal ones.
Edge index_of_best(OnnxNode& n, const Edge& x, int64_t axis, bool largest) {
  return port(n.op("TopK", 11, {x, n.integer(1)},
                   {{"axis", std::to_string(axis)},
                    {"mode", largest ? "max" : "min"},
                    {"sort", "value"},
                    {"index_element_type", "i64"},
                    {"stable", "false"}},
                   2),
              1);
}

void hardmax(OnnxNode& n) {
  over_axis(n, [&](const Edge& x, int64_t axis) {
    const Edge best = index_of_best(n, x, axis, true);
    const int64_t size = n.dim(x, axis);
    std::vector<int64_t> numbers(static_cast<size_t>(size));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    const Edge places = n.along(n.ints(numbers), axis, n.rank(x));
    return n.convert(n.op("Equal", 1, {places, best}), n.type(x));
  });
}

void arg_best(OnnxNode& n) {
  Edge x = n.in(0);
  const int64_t axis = n.axis(n.int_of("axis", 0), n.rank(x));
  const bool last = n.int_of("select_last_index", 0) != 0;
  const Edge size = last ? n.size_of(x, axis) : Edge{};
  if (last) x = n.slice(x, axis, -1, std::numeric_limits<int64_t>::min(), -1);
  Edge index = index_of_best(n, x, axis, n.type() == "ArgMax");
  if (last) index = n.subtract(n.subtract(size, n.integer(1)), index);
  n.out(n.int_of("keepdims", 1) ? index : n.squeeze(index, {axis}));
}

void top_k(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t axis = n.axis(n.int_of("axis", -1), n.rank(x));
  Edge k = n.opset() < 10 ? n.integer(n.int_of("k")) : n.in(1);
  if (const auto known = n.known_ints(k)) {
    if (known->size() != 1) bad_node("k must be one number");
    const int64_t values = n.shape(x)[static_cast<size_t>(axis)];
    if (known->front() < 0 || known->front() > values)
      bad_node("k is " + std::to_string(known->front()) + " for " + std::to_string(values) +
               " values");
    k = n.integer(known->front());
  } else if (n.rank(k) > 0) {
    k = n.reshape_to(k, n.ints({}));
  }
  const Edge top = n.op("TopK", 11, {x, k},
                        {{"axis", std::to_string(axis)},
                         {"mode", n.int_of("largest", 1) ? "max" : "min"},
                         {"sort", "value"},
                         {"index_element_type", "i64"},
                         {"stable", "false"}},
                        2);
  n.out(0, top);
  n.out(1, port(top, 1));
}

void cum_sum(OnnxNode& n) {
  n.out(n.op("CumSum", 3, {n.in(0), n.integer(n.need_int(n.in(1), "the axis"))},
             {{"exclusive", text_of(n.int_of("exclusive", 0) != 0)},
              {"reverse", text_of(n.int_of("reverse", 0) != 0)}}));
}

// Step n multiplies each value by the one 2^n places before it.
void cum_prod(OnnxNode& n) {
  Edge x = n.in(0);
  const int64_t axis = n.axis(n.need_int(n.in(1), "the axis"), n.rank(x));
  const int64_t size = n.dim(x, axis);
  const bool reverse = n.int_of("reverse", 0) != 0;
  const auto shifted = [&](const Edge& e, int64_t by) {  // ones enter at the beginning
    Shape ones = n.sizes(e);
    ones[static_cast<size_t>(axis)] = by;
    const Edge fill =
        n.op("Broadcast", 3, {n.number_like(e, 1), n.ints(ones)}, {{"mode", "numpy"}});
    return reverse ? n.concat({n.slice(e, axis, by, size), fill}, axis)
                   : n.concat({fill, n.slice(e, axis, 0, size - by)}, axis);
  };
  if (n.int_of("exclusive", 0) && size > 0) x = shifted(x, 1);
  for (int64_t by = 1; by < size; by *= 2) x = n.multiply(x, shifted(x, by));
  n.out(x);
}

}  // namespace

Edge over_joined(OnnxNode& n, const Edge& x, int64_t axis,
                 const std::function<Edge(const Edge&, int64_t)>& work) {
  bool alone = true;
  for (int64_t d = axis + 1; d < n.rank(x); ++d) alone &= !n.varies(x, d) && n.dim(x, d) == 1;
  if (alone) return work(x, axis);
  std::vector<int64_t> joined(static_cast<size_t>(axis), 0);
  joined.push_back(-1);
  return n.reshape_to(work(n.reshape(x, joined), axis), n.shape_of(x));
}

std::vector<OnnxOp> onnx_reduction_ops() {
  std::vector<OnnxOp> ops;
  for (const char* type : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                           "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"})
    ops.push_back({type, reduce});
  const std::vector<OnnxOp> others = {
      {"ArgMax", arg_best}, {"ArgMin", arg_best},    {"CumProd", cum_prod}, {"CumSum", cum_sum},
      {"Hardmax", hardmax}, {"LogSoftmax", softmax}, {"Softmax", softmax},  {"TopK", top_k}};
  ops.insert(ops.end(), others.begin(), others.end());
  return ops;
}

}  // namespace clinfer
