// Replaces an activation that is written out in several operations, such as x * tanh(log(1 +
// exp(x))) for Mish, by one operation. It is recognised by its values, not by its form, because
// exporters order, nest and scale the parts in many ways.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/scalar_functions.h"

namespace clinfer {

namespace {

constexpr size_t kMostOperations = 16;  // in one activation
// The tolerance is a share of max(1, |y|): above the rounding of constants to f16 (1/6 is off by
// 2.4e-4), and far below the differences between activations.
constexpr float kTolerance = 3e-4f;
// Probes lie at equal distances from -kReach to kReach, where all activations have their kinks.
constexpr int kProbesPerUnit = 8, kReach = 10;
constexpr float kFarthest = 1e30f;
// Beyond this |x|, and at 0, an activation that gives 0 has to be exact to kLeast: a small number
// added there would keep a later quotient or logarithm finite.
constexpr float kSaturated = 50, kLeast = 1e-16f;

using Values = std::vector<float>;

// The positions of the first two probes, whose values determine parameters.
enum Probe { at_one, at_minus_one };

// A few probes, to reject nearly all other functions early.
const Values kFirstProbes{1, -1, 0, 0.4f, 2.3f, -3.1f, 7.7f, -60};

// Returns all probes: a grid of those within reach; others between them, since floor(16 * x) / 16
// equals x on the grid; and some far ones on either side, since min(max(x, 0), 300) is no ReLU.
Values all_probes() {
  Values x{1, -1};
  for (int i = -kReach * kProbesPerUnit; i <= kReach * kProbesPerUnit; ++i)
    x.push_back(static_cast<float>(i) / kProbesPerUnit);
  constexpr float kGoldenRatio = 0.618034f;
  for (int i = 0; i < kReach * kProbesPerUnit; ++i) {
    const float step = static_cast<float>(i),
                between = (step + std::fmod(step * kGoldenRatio, 1.f)) / kProbesPerUnit;
    x.insert(x.end(), {-between, between});
  }
  for (float far = 1.5f * kReach; far < kFarthest; far *= 4) x.insert(x.end(), {-far, far});
  return x;
}

struct Activation {
  const char* type;
  int opset;
  const char* function;                    // its name in scalar_functions.h
  float parameter = 0;                     // alpha, or the second operand
  std::optional<float> second_input = {};  // of the operation
  std::pair<const char*, const char*> attribute = {nullptr, nullptr};
};

// Returns the activations that `y` could be, each with the parameter that fits at one point.
std::vector<Activation> candidates(const Values& y) {
  std::vector<Activation> all{
      {"Sigmoid", 1, "sigmoid"},
      {"HSigmoid", 5, "hsigmoid"},
      {"HSwish", 4, "hswish"},
      {"Mish", 4, "mish"},
      {"SoftPlus", 4, "soft_plus"},
      {"SoftSign", 9, "soft_sign"},
      {"Gelu", 7, "gelu_erf", 0, {}, {"approximation_mode", "ERF"}},
      {"Gelu", 7, "gelu_tanh", 0, {}, {"approximation_mode", "TANH"}},
      {"Swish", 4, "swish", 1},
  };
  const float gate = y[at_one], beta = std::log(gate / (1 - gate));
  if (std::isfinite(beta) && std::fabs(beta) > 0.01f && std::fabs(beta - 1) > 1e-5f)
    all.push_back({"Swish", 4, "swish", beta, beta});
  const float slope = -y[at_minus_one];
  if (std::isfinite(slope) && slope != 1) all.push_back({"PReLU", 1, "prelu", slope, slope});
  return all;
}

// The function of this name, which must exist; looked up once for many values.
class Scalar {
 public:
  Scalar(const std::string& name, bool unary)
      : unary_(unary ? find_unary(name) : nullptr), binary_(unary ? nullptr : find_binary(name)) {}
  // `second`: the second operand of a binary function, or alpha of a unary one.
  float operator()(float x, float second, float beta = 0) const {
    return unary_ ? unary_->apply(x, second, beta) : binary_->apply(x, second);
  }

 private:
  const UnaryFunction* unary_;
  const BinaryFunction* binary_;
};

// Returns the scale by which a difference at `x` is judged.
float scale_at(float x, float wanted) {
  const bool exact = x == 0 || std::fabs(x) > kSaturated;
  return std::max(std::fabs(wanted), exact ? kLeast : 1.f);
}

// Returns the candidate that comes closest, if it is close enough at all probes.
std::optional<Activation> recognised(const Values& x, const Values& y) {
  std::optional<Activation> best;
  float best_error = kTolerance;
  for (const Activation& candidate : candidates(y)) {
    const Scalar function(candidate.function, find_unary(candidate.function) != nullptr);
    float worst = 0;
    for (size_t i = 0; i < x.size() && worst <= best_error; ++i) {
      // Far from 0, formulas with exp(x) overflow.
      if (std::fabs(x[i]) > kReach && !std::isfinite(y[i])) continue;
      const float wanted = function(x[i], candidate.parameter);
      const float error = std::fabs(y[i] - wanted) / scale_at(x[i], wanted);
      worst = error <= worst ? worst : error;  // keeps NaN as the worst
    }
    if (worst <= best_error) {
      best = candidate;
      best_error = worst;
    }
  }
  return best;
}

// Returns the node as a function of one float, if it is one whose other operands are single
// constant numbers.
std::optional<ElementFunction> scalar_function(const Node& node) {
  if (!node.def || node.def->families.empty() ||
      node.def->families.front() != &kElementwiseFamily || node.outputs.size() != 1 ||
      !is_float(node.outputs[0].type) || !node.tail.empty())
    return {};
  for (const Edge& input : node.inputs) {
    const NodeOutput& from = input.node->outputs[input.port];
    if (!is_float(from.type)) return {};
    if (input.node->is("Constant") ? count(from.shape) != 1 : from.shape != node.shape()) return {};
  }
  const OpDesc desc = describe(node);
  ElementFunction function = element_function(desc, desc.constants);
  const bool known = function.operands == 1 ? find_unary(function.name) != nullptr
                                            : find_binary(function.name) != nullptr;
  return known ? std::optional(function) : std::nullopt;
}

class Activations {
 public:
  explicit Activations(Graph& graph) : graph_(graph), probes_(all_probes()) {}

  void run() {
    for (Node* node : nodes_of(graph_)) fuse(node);
    graph_.remove_dead();
  }

 private:
  // Walks up from `node`. Wherever all values come from one edge, the operations between are a
  // function of one number.
  void fuse(Node* node) {
    std::vector<Node*> inside;  // from `node` upwards
    std::vector<Edge> open{{node, 0}};
    while (inside.size() < kMostOperations) {
      const auto last = std::max_element(
          open.begin(), open.end(),
          [&](const Edge& a, const Edge& b) { return graph_.is_before(a.node, b.node); });
      Node* next = last->node;
      if (!scalar_function(*next)) return;
      open.erase(last);
      inside.push_back(next);
      for (const Edge& input : next->inputs)
        if (!input.node->is("Constant") && std::find(open.begin(), open.end(), input) == open.end())
          open.push_back(input);
      if (open.size() != 1) {
        if (open.empty()) return;
        continue;
      }
      if (!recognised(kFirstProbes, values_of(inside, open[0], kFirstProbes))) continue;
      const auto activation = recognised(probes_, values_of(inside, open[0], probes_));
      if (!activation) continue;
      // A single operation must not absorb a small bias before it.
      if (inside.size() > 1) replace(node, *activation, open[0]);
      return;
    }
  }

  static Values values_of(const std::vector<Node*>& inside, const Edge& x, const Values& probes) {
    std::unordered_map<const Node*, Values> values{{x.node, probes}};
    for (size_t i = inside.size(); i-- > 0;) {
      const Node& node = *inside[i];
      const ElementFunction function = *scalar_function(node);
      std::vector<Values> operands;
      for (const Edge& input : node.inputs)
        operands.push_back(input.node->is("Constant")
                               ? Values(probes.size(), constant_value(input)->to_floats()[0])
                               : values.at(input.node));
      const bool unary = function.operands == 1;
      const Scalar compute(function.name, unary);
      Values result(probes.size());
      for (size_t k = 0; k < result.size(); ++k)
        result[k] = compute(operands[0][k], unary ? function.alpha : operands[1][k], function.beta);
      values[&node] = std::move(result);
    }
    return values.at(inside.front());
  }

  void replace(Node* node, const Activation& activation, const Edge& x) {
    node->type = activation.type;
    node->opset = activation.opset;
    node->def = find_op(node->type, node->opset);
    node->attributes = {};
    if (activation.attribute.first)
      node->attributes.set(activation.attribute.first, activation.attribute.second);
    node->inputs = {x};
    if (activation.second_input)
      node->inputs.push_back(Insertion(graph_, node).floats({}, {*activation.second_input}));
  }

  Graph& graph_;
  const Values probes_;
};

}  // namespace

void fuse_activations(Graph& graph, const PassContext&) { Activations(graph).run(); }

}  // namespace clinfer
