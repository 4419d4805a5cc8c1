// Replaces normalisations that are written out by single operations, with d = x - mean(x):
//   d / sqrt(mean(d^2) + eps)   ->  MVN                      (layer and instance normalisation)
//   x / sqrt(mean(x^2) + eps)   ->  NormalizeL2 * sqrt(n)    (RMS over n elements)
//   x / sqrt(sum(x^2) + eps), x / max(|x|, eps)  ->  NormalizeL2
// Later scale and shift become part of the tail. Also recognises them multiplied in earlier, as
// TensorFlow does: x * (g / s) + (b - mean(x) * (g / s)).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

using Axes = std::vector<int64_t>;

Edge input(const Edge& edge, size_t i) { return edge.node->inputs[i]; }

// Returns whether the edge is an operation of this type with one output, this number of inputs, and
// no tail.
bool is(const Edge& edge, const char* type, size_t inputs) {
  return edge.node->is(type) && edge.node->inputs.size() == inputs &&
         edge.node->outputs.size() == 1 && is_float(edge.node->outputs[0].type);
}

std::optional<float> number(const Edge& edge) {
  const Tensor* constant = constant_value(edge);
  if (!constant || constant->elements() != 1 || !is_float(constant->type())) return {};
  return constant->to_floats()[0];
}

// The operand and the axes of a reduction that keeps the dimensions.
struct Reduced {
  Edge x;
  Axes axes;  // ascending
};

std::optional<Reduced> reduced(const Edge& edge, const char* type) {
  if (!is(edge, type, 2) || !edge.node->attributes.get_bool("keep_dims", false)) return {};
  const Tensor* axes = constant_value(input(edge, 1));
  if (!axes || axes->elements() == 0) return {};
  Reduced result{input(edge, 0), axes->to_ints()};
  const auto rank = static_cast<int64_t>(edge.node->shape().size());
  for (int64_t& axis : result.axes) axis += axis < 0 ? rank : 0;
  std::sort(result.axes.begin(), result.axes.end());
  return result;
}

// Recognises x - mean(x).
std::optional<Reduced> centred(const Edge& edge) {
  if (!is(edge, "Subtract", 2)) return {};
  const auto mean = reduced(input(edge, 1), "ReduceMean");
  return mean && mean->x == input(edge, 0) ? mean : std::nullopt;
}

// The operand of a square: `values`, or x - mean(x), then given by the mean's operand and axes.
struct Squared {
  std::optional<Reduced> centred;
  Edge values;
};

std::optional<Squared> squared(const Edge& edge) {
  if (is(edge, "SquaredDifference", 2)) {
    for (size_t side : {0, 1}) {
      const auto mean = reduced(input(edge, side), "ReduceMean");
      if (mean && mean->x == input(edge, 1 - side)) return Squared{mean, {}};
    }
    return {};
  }
  const bool square = (is(edge, "Power", 2) && number(input(edge, 1)) == 2.f) ||
                      (is(edge, "Multiply", 2) && input(edge, 0) == input(edge, 1));
  if (!square) return {};
  if (auto mean = centred(input(edge, 0))) return Squared{mean, {}};
  return Squared{{}, input(edge, 0)};
}

// A divisor: the root of a mean of squares or of a sum of squares.
struct Divisor {
  Edge x;
  Axes axes;
  bool center = false, mean = false;
  float epsilon = 0;
  enum {
    inside,
    outside,
    at_least
  } where = inside;  // of the root, or at_least: max(root, epsilon)
};

// Recognises a mean or a sum of squares, without an epsilon.
std::optional<Divisor> sum_of_squares(const Edge& edge) {
  for (const char* type : {"ReduceMean", "ReduceSum"}) {
    const auto sum = reduced(edge, type);
    const auto square = sum ? squared(sum->x) : std::nullopt;
    if (!square || (square->centred && square->centred->axes != sum->axes)) continue;
    Divisor divisor;
    divisor.center = square->centred.has_value();
    divisor.x = divisor.center ? square->centred->x : square->values;
    divisor.axes = sum->axes;
    divisor.mean = edge.node->is("ReduceMean");
    return divisor;
  }
  return {};
}

// Recognises an operation of an operand and a number, in either order.
std::optional<std::pair<Edge, float>> with_number(const Edge& edge, const char* type) {
  if (!is(edge, type, 2)) return {};
  for (size_t side : {1, 0})
    if (const auto value = number(input(edge, side))) return {{input(edge, 1 - side), *value}};
  return {};
}

// Recognises the argument of a root.
std::optional<Divisor> radicand(const Edge& edge) {
  if (auto divisor = sum_of_squares(edge)) return divisor;
  const auto sum = with_number(edge, "Add");
  auto divisor = sum ? sum_of_squares(sum->first) : std::nullopt;
  if (divisor) divisor->epsilon = sum->second;
  return divisor;
}

std::optional<Divisor> root(const Edge& edge) {
  if (is(edge, "Sqrt", 1)) return radicand(input(edge, 0));
  if (is(edge, "Power", 2) && number(input(edge, 1)) == 0.5f) return radicand(input(edge, 0));
  const auto norm = reduced(edge, "ReduceL2");
  return norm ? std::optional(Divisor{norm->x, norm->axes}) : std::nullopt;
}

std::optional<Divisor> divisor_of(Edge edge) {
  // It broadcasts the norm to the shape of the dividend.
  if (edge.node->is("Broadcast")) edge = input(edge, 0);
  if (auto plain = root(edge)) return plain;
  for (const char* type : {"Add", "Maximum"}) {
    const auto bound = with_number(edge, type);
    auto divisor = bound ? root(bound->first) : std::nullopt;
    if (!divisor || divisor->epsilon != 0) continue;
    divisor->epsilon = bound->second;
    divisor->where = edge.node->is("Add") ? Divisor::outside : Divisor::at_least;
    return divisor;
  }
  if (!is(edge, "Clamp", 1)) return {};
  auto divisor = root(input(edge, 0));
  if (!divisor || divisor->epsilon != 0 || edge.node->attributes.get_float("max") < 1e30) return {};
  divisor->epsilon = static_cast<float>(edge.node->attributes.get_float("min"));
  divisor->where = Divisor::at_least;
  return divisor;
}

// Recognises 1 / divisor.
std::optional<Divisor> inverse(const Edge& edge) {
  if (is(edge, "Divide", 2) && number(input(edge, 0)) == 1.f) return divisor_of(input(edge, 1));
  if (!is(edge, "Power", 2)) return {};
  const auto exponent = number(input(edge, 1));
  if (exponent == -0.5f) return radicand(input(edge, 0));
  return exponent == -1.f ? divisor_of(input(edge, 0)) : std::nullopt;
}

class Normalizations {
 public:
  Normalizations(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  void run() {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes)
      if (node->outputs.size() == 1 && node->tail.empty() && is_float(node->outputs[0].type))
        fuse(node);
    graph_.remove_dead();
  }

 private:
  void fuse(Node* node) {
    const Edge self{node, 0};
    if (is(self, "Divide", 2)) {
      if (const auto divisor = divisor_of(input(self, 1)))
        fuse_quotient(node, input(self, 0), *divisor);
      return;
    }
    if (is(self, "Multiply", 2))
      for (size_t side : {0, 1})
        if (fuse_product(node, input(self, side), input(self, 1 - side))) return;
    if (is(self, "Add", 2))
      for (size_t side : {0, 1})
        if (fuse_sum(node, input(self, side), input(self, 1 - side))) return;
  }

  // Fuses x or d, divided by the divisor.
  bool fuse_quotient(Node* node, const Edge& dividend, const Divisor& divisor) {
    const auto normalized = normalize(node, dividend, divisor);
    if (!normalized || normalized->node->shape() != node->shape()) return false;
    graph_.replace_uses({node, 0}, *normalized);
    normalized->node->outputs[0].names = node->outputs[0].names;
    graph_.disconnect(node);
    return true;
  }

  // Fuses x times 1/s, or times g/s.
  bool fuse_product(Node* node, const Edge& dividend, const Edge& factor) {
    if (const auto divisor = inverse(factor)) return fuse_quotient(node, dividend, *divisor);
    const auto scaled = scaled_inverse(factor);
    if (!scaled) return false;
    const auto normalized = normalize(node, dividend, scaled->divisor);
    if (!normalized) return false;
    node->inputs = {*normalized, scaled->scale};
    return true;
  }

  struct ScaledInverse {
    Divisor divisor;
    Edge scale;  // a constant
  };

  static std::optional<ScaledInverse> scaled_inverse(const Edge& edge) {
    if (!is(edge, "Multiply", 2)) return {};
    for (size_t side : {0, 1}) {
      if (!input(edge, 1 - side).node->is("Constant")) continue;
      if (const auto divisor = inverse(input(edge, side)))
        return ScaledInverse{*divisor, input(edge, 1 - side)};
    }
    return {};
  }

  // Fuses x * r + (b - mean(x) * r), where r is 1/s or g/s.
  bool fuse_sum(Node* node, const Edge& product, const Edge& rest) {
    if (!is(product, "Multiply", 2) || !is(rest, "Subtract", 2)) return false;
    const Edge shift = input(rest, 0), means = input(rest, 1);
    if (!shift.node->is("Constant") || !is(means, "Multiply", 2)) return false;
    for (size_t side : {0, 1})
      for (size_t other : {0, 1}) {
        const Edge x = input(product, side), r = input(product, 1 - side);
        const auto mean = reduced(input(means, other), "ReduceMean");
        if (!mean || !(mean->x == x) || !(input(means, 1 - other) == r)) continue;
        const auto scaled = scaled_inverse(r);
        const auto divisor = scaled ? std::optional(scaled->divisor) : inverse(r);
        if (!divisor || !divisor->center || divisor->axes != mean->axes) continue;
        auto normalized = normalize(node, x, *divisor, true);
        if (!normalized) continue;
        if (scaled)
          normalized = Insertion(graph_, node).op("Multiply", 1, {*normalized, scaled->scale});
        if (normalized->node->shape() != node->shape()) continue;
        node->inputs = {*normalized, shift};
        return true;
      }
    return false;
  }

  // Inserts the normalisation of x before `node`, whose value it computes. `centred_later`: the
  // dividend is x itself; the caller has found the subtraction of the mean elsewhere.
  std::optional<Edge> normalize(Node* node, const Edge& dividend, const Divisor& divisor,
                                bool centred_later = false) {
    const Shape& shape = divisor.x.node->shape(divisor.x.port);
    if (!(divisor.epsilon >= 0) || node->shape().size() != shape.size()) return {};
    Edge from = dividend;
    if (divisor.center && !centred_later) {
      const auto mean = centred(dividend);
      if (!mean || mean->axes != divisor.axes) return {};
      from = mean->x;
    }
    if (!(from == divisor.x)) return {};
    int64_t elements = 1;
    for (int64_t axis : divisor.axes) elements *= shape[static_cast<size_t>(axis)];
    const float n = static_cast<float>(elements), epsilon = divisor.epsilon;
    Insertion add(graph_, node);
    const Edge axes = add.ints(divisor.axes);
    if (divisor.center) {
      if (!divisor.mean || divisor.where == Divisor::at_least) return {};
      const Edge mvn =
          add.op("MVN", 6, {divisor.x, axes},
                 {{"normalize_variance", "true"},
                  {"eps_mode", divisor.where == Divisor::inside ? "INSIDE_SQRT" : "OUTSIDE_SQRT"},
                  {"eps", text(epsilon)}});
      return taken(mvn) ? std::optional(mvn) : std::nullopt;
    }
    if (divisor.where == Divisor::outside) return {};
    const float squared = divisor.where == Divisor::at_least ? epsilon * epsilon : epsilon;
    const Edge norm = add.op("NormalizeL2", 1, {divisor.x, axes},
                             {{"eps_mode", divisor.where == Divisor::at_least ? "max" : "add"},
                              {"eps", text(divisor.mean ? squared * n : squared)}});
    if (!taken(norm)) return {};
    if (!divisor.mean) return norm;
    return add.op("Multiply", 1, {norm, add.floats({}, {std::sqrt(n)})});
  }

  static std::string text(float value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
  }

  bool taken(const Edge& made) const {
    return !accepting_families(*made.node->def, describe(*made.node), context_.traits).empty();
  }

  Graph& graph_;
  const PassContext& context_;
};

}  // namespace

void fuse_normalizations(Graph& graph, const PassContext& context) {
  Normalizations(graph, context).run();
}

}  // namespace clinfer
