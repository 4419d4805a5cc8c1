// Passes that recognise an operation in several: each in the ways in which exporters write it, and
// what looks alike but is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/graph/evaluate.h"
#include "engine/passes/passes.h"
#include "tests/engine/graph_builder.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::GraphBuilder;
using test::random_tensor;

// Operations other than constants, inputs and outputs.
size_t operations(const Graph& graph) {
  return static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                           [](const auto& n) { return n->def != nullptr; }));
}

const Node* find(const Graph& graph, const std::string& type) {
  for (const auto& node : graph.nodes)
    if (node->is(type)) return node.get();
  return nullptr;
}

// Runs the passes up to `until` and expects the outputs of the graph to stay what they were.
void expect_same_values(Graph& graph, const std::string& until, float low = -4, float high = 4) {
  std::vector<Tensor> inputs;
  for (const Node* parameter : graph.parameters)
    inputs.push_back(random_tensor(parameter->shape(), low, high, 7));
  const std::vector<Tensor> before = evaluate_graph(graph, inputs);
  PassContext context;
  context.traits.is_cpu = true;
  context.traits.vendor = Vendor::pocl;
  context.traits.vector_width = 8;
  run_passes(graph, context, until);
  const std::vector<Tensor> after = evaluate_graph(graph, inputs);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(before[i].shape(), after[i].shape());
    for (int64_t k = 0; k < before[i].elements(); ++k)
      ASSERT_NEAR(before[i].data<float>()[k], after[i].data<float>()[k],
                  3e-4f * std::max(1.f, std::fabs(before[i].data<float>()[k])))
          << "output " << i << ", element " << k;
  }
}

Edge number(GraphBuilder& b, float value, const Shape& shape = {}) {
  return b.constant(Tensor::of<float>(ElementType::f32, shape, {value}));
}
Edge integers(GraphBuilder& b, const std::vector<int>& values) {
  return b.constant(Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
}
Edge mul(GraphBuilder& b, Edge x, Edge y) { return b.op("Multiply", 1, {x, y}); }
Edge add(GraphBuilder& b, Edge x, Edge y) { return b.op("Add", 1, {x, y}); }
Edge sub(GraphBuilder& b, Edge x, Edge y) { return b.op("Subtract", 1, {x, y}); }
Edge divide(GraphBuilder& b, Edge x, Edge y) { return b.op("Divide", 1, {x, y}); }
Edge power(GraphBuilder& b, Edge x, float y) { return b.op("Power", 1, {x, number(b, y)}); }
Edge unary(GraphBuilder& b, const char* type, Edge x) { return b.op(type, 1, {x}); }
Edge clamp(GraphBuilder& b, Edge x, const char* low, const char* high) {
  return b.op("Clamp", 1, {x}, {{"min", low}, {"max", high}});
}

// ---- activations

struct Written {
  const char* how;
  const char* type;  // what it is; "": none
  Edge (*build)(GraphBuilder& b, Edge x);
};

const Written kActivations[] = {
    {"x * sigmoid(x)", "Swish",
     [](GraphBuilder& b, Edge x) { return mul(b, unary(b, "Sigmoid", x), x); }},
    {"x * sigmoid(1.702 * x)", "Swish",
     [](GraphBuilder& b, Edge x) {
       return mul(b, x, unary(b, "Sigmoid", mul(b, number(b, 1.702f), x)));
     }},
    {"x / (1 + exp(-x))", "Swish",
     [](GraphBuilder& b, Edge x) {
       return divide(b, x, add(b, unary(b, "Exp", unary(b, "Negative", x)), number(b, 1)));
     }},
    {"1 / (1 + exp(-x))", "Sigmoid",
     [](GraphBuilder& b, Edge x) {
       return divide(b, number(b, 1),
                     add(b, number(b, 1), unary(b, "Exp", unary(b, "Negative", x))));
     }},
    {"relu6(x + 3) / 6", "HSigmoid",
     [](GraphBuilder& b, Edge x) {
       return divide(b, clamp(b, add(b, x, number(b, 3)), "0", "6"), number(b, 6));
     }},
    {"x * relu6(x + 3) / 6", "HSwish",
     [](GraphBuilder& b, Edge x) {
       return divide(b, mul(b, x, clamp(b, add(b, x, number(b, 3)), "0", "6")), number(b, 6));
     }},
    {"x * (relu6(x + 3) / 6)", "HSwish",
     [](GraphBuilder& b, Edge x) {
       return mul(b, x, divide(b, clamp(b, add(b, x, number(b, 3)), "0", "6"), number(b, 6)));
     }},
    {"x * min(relu(x + 3), 6) * (1/6 in f16)", "HSwish",
     [](GraphBuilder& b, Edge x) {
       const Edge gate =
           b.op("Minimum", 1, {unary(b, "ReLU", add(b, x, number(b, 3))), number(b, 6)});
       return mul(b, mul(b, x, gate), number(b, half_to_float(float_to_half(1.f / 6))));
     }},
    {"x * clamp(x / 6 + 0.5, 0, 1)", "HSwish",
     [](GraphBuilder& b, Edge x) {
       const Edge gate = add(b, mul(b, x, number(b, 1.f / 6)), number(b, 0.5f));
       return mul(b, x, clamp(b, gate, "0", "1"));
     }},
    {"x * hsigmoid(x)", "HSwish",
     [](GraphBuilder& b, Edge x) { return mul(b, x, b.op("HSigmoid", 5, {x})); }},
    {"x * tanh(softplus(x))", "Mish",
     [](GraphBuilder& b, Edge x) { return mul(b, x, unary(b, "Tanh", b.op("SoftPlus", 4, {x}))); }},
    {"x * tanh(log(1 + exp(x)))", "Mish",
     [](GraphBuilder& b, Edge x) {
       return mul(b, unary(b, "Tanh", unary(b, "Log", add(b, number(b, 1), unary(b, "Exp", x)))),
                  x);
     }},
    {"log(exp(x) + 1)", "SoftPlus",
     [](GraphBuilder& b, Edge x) {
       return unary(b, "Log", add(b, unary(b, "Exp", x), number(b, 1)));
     }},
    {"x * 0.5 * (1 + erf(x / sqrt(2))), as PyTorch", "Gelu",
     [](GraphBuilder& b, Edge x) {
       const Edge gate =
           add(b, unary(b, "Erf", divide(b, x, number(b, 1.41421354f))), number(b, 1));
       return mul(b, mul(b, x, gate), number(b, 0.5f));
     }},
    {"0.5 * x * (1 + erf(x * 0.7071)), as TensorFlow", "Gelu",
     [](GraphBuilder& b, Edge x) {
       const Edge gate = add(b, number(b, 1), unary(b, "Erf", mul(b, x, number(b, 0.70710677f))));
       return mul(b, mul(b, number(b, 0.5f, {1, 1, 1, 1}), x), gate);
     }},
    {"x * (0.5 * (1 + erf(...))) in f16", "Gelu",
     [](GraphBuilder& b, Edge x) {
       const Edge half = number(b, half_to_float(float_to_half(0.70710677f)));
       return mul(b, x,
                  mul(b, number(b, 0.5f), add(b, unary(b, "Erf", mul(b, x, half)), number(b, 1))));
     }},
    {"0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))", "Gelu",
     [](GraphBuilder& b, Edge x) {
       const Edge cube = mul(b, power(b, x, 3), number(b, 0.044715f));
       const Edge inner = mul(b, add(b, x, cube), number(b, 0.7978845608f));
       return mul(b, mul(b, number(b, 0.5f), x), add(b, number(b, 1), unary(b, "Tanh", inner)));
     }},
    {"the same with x * x * x", "Gelu",
     [](GraphBuilder& b, Edge x) {
       const Edge cube = mul(b, mul(b, mul(b, x, x), x), number(b, 0.044715f));
       const Edge inner = mul(b, number(b, 0.7978845608f), add(b, cube, x));
       return mul(b, x, mul(b, add(b, unary(b, "Tanh", inner), number(b, 1)), number(b, 0.5f)));
     }},
    {"max(x, 0.1 * x)", "PReLU",
     [](GraphBuilder& b, Edge x) {
       return b.op("Maximum", 1, {x, mul(b, x, number(b, 0.1f))});
     }},
    {"x * relu6(x + 3) / 5", "",
     [](GraphBuilder& b, Edge x) {
       return divide(b, mul(b, x, clamp(b, add(b, x, number(b, 3)), "0", "6")), number(b, 5));
     }},
    {"x * tanh(softplus(2 * x))", "",
     [](GraphBuilder& b, Edge x) {
       return mul(b, x, unary(b, "Tanh", b.op("SoftPlus", 4, {mul(b, number(b, 2), x)})));
     }},
    {"x * (1 + erf(x / sqrt(2)))", "",
     [](GraphBuilder& b, Edge x) {
       return mul(b, x,
                  add(b, unary(b, "Erf", divide(b, x, number(b, 1.41421354f))), number(b, 1)));
     }},
    {"sigmoid(x + 0.001): the bias of a head of one channel", "",
     [](GraphBuilder& b, Edge x) { return unary(b, "Sigmoid", add(b, x, number(b, 0.001f))); }},
    {"min(max(x, 0), 300): coordinates clipped to a picture", "",
     [](GraphBuilder& b, Edge x) {
       return b.op("Minimum", 1, {b.op("Maximum", 1, {x, number(b, 0)}), number(b, 300)});
     }},
    {"floor(relu(x) * 16) / 16: steps on a grid", "",
     [](GraphBuilder& b, Edge x) {
       const Edge steps = unary(b, "Floor", mul(b, unary(b, "ReLU", x), number(b, 16)));
       return divide(b, steps, number(b, 16));
     }},
    {"relu(x) + 1e-6, to be divided by", "",
     [](GraphBuilder& b, Edge x) { return add(b, unary(b, "ReLU", x), number(b, 1e-6f)); }},
    {"softplus(x) + 1e-6, a deviation", "",
     [](GraphBuilder& b, Edge x) { return add(b, b.op("SoftPlus", 4, {x}), number(b, 1e-6f)); }},
    {"tanh(x) * 2 + 1", "",
     [](GraphBuilder& b, Edge x) {
       return add(b, mul(b, unary(b, "Tanh", x), number(b, 2)), number(b, 1));
     }},
};

TEST(FuseActivations, RecognisesWhatIsWrittenOut) {
  for (const Written& written : kActivations) {
    SCOPED_TRACE(written.how);
    GraphBuilder b;
    b.result(written.build(b, b.parameter({1, 3, 5, 7})));
    auto graph = b.finish();
    const size_t before = operations(*graph);
    expect_same_values(*graph, "fuse_activations", -8, 8);
    if (*written.type) {
      EXPECT_EQ(count_of(*graph, written.type), 1u);
      EXPECT_EQ(operations(*graph), 1u);
    } else {
      EXPECT_EQ(operations(*graph), before);
    }
  }
}

TEST(FuseActivations, TellsTheFormsOfGeluApart) {
  for (const Written& written : kActivations) {
    if (std::string(written.type) != "Gelu") continue;
    SCOPED_TRACE(written.how);
    GraphBuilder b;
    b.result(written.build(b, b.parameter({1, 1, 1, 4})));
    auto graph = b.finish();
    const bool tanh = count_of(*graph, "Tanh") == 1;
    expect_same_values(*graph, "fuse_activations");
    ASSERT_NE(find(*graph, "Gelu"), nullptr);
    EXPECT_EQ(find(*graph, "Gelu")->attributes.get_string("approximation_mode"),
              tanh ? "TANH" : "ERF");
  }
}

TEST(FuseActivations, NeedsOneInputAndNumbers) {
  const auto stays = [](auto&& build) {
    GraphBuilder b;
    build(b);
    auto graph = b.finish();
    const size_t before = operations(*graph);
    expect_same_values(*graph, "fuse_activations");
    EXPECT_EQ(operations(*graph), before);
  };
  stays([](GraphBuilder& b) {  // a gate of something else
    b.result(mul(b, b.parameter({1, 3, 2, 2}), unary(b, "Sigmoid", b.parameter({1, 3, 2, 2}))));
  });
  stays([](GraphBuilder& b) {  // a gate per channel: squeeze and excitation
    const Edge x = b.parameter({1, 3, 1, 1});
    b.result(mul(b, b.parameter({1, 3, 4, 4}), unary(b, "Sigmoid", x)));
  });
  stays([](GraphBuilder& b) {  // a factor per channel
    const Edge x = b.parameter({1, 3, 2, 2});
    const Edge scale = b.constant(random_tensor({1, 3, 1, 1}, 0.5, 2, 3));
    b.result(mul(b, x, unary(b, "Sigmoid", mul(b, x, scale))));
  });
}

// ---- normalisations

struct Parts {
  GraphBuilder b;
  Edge x, mean, centre, variance, epsilon;

  explicit Parts(const Shape& shape = {2, 6, 8}, const std::vector<int>& axes = {-1}) {
    x = b.parameter(shape);
    mean = reduce("ReduceMean", x, axes);
    centre = sub(b, x, mean);
    variance = reduce("ReduceMean", power(b, centre, 2), axes);
    epsilon = number(b, 1e-5f);
  }
  Edge reduce(const char* type, Edge of, const std::vector<int>& axes, const char* keep = "true") {
    return b.op(type, type == std::string("ReduceL2") ? 4 : 1, {of, integers(b, axes)},
                {{"keep_dims", keep}});
  }
  std::unique_ptr<Graph> finish(Edge result) {
    b.result(result);
    return b.finish();
  }
};

TEST(FuseNormalizations, LayerNormalisationAsPyTorchWritesIt) {
  Parts p;
  Edge y = divide(p.b, p.centre, unary(p.b, "Sqrt", add(p.b, p.variance, p.epsilon)));
  y = mul(p.b, y, p.b.constant(random_tensor({8}, 0.5, 2, 2)));
  y = add(p.b, y, p.b.constant(random_tensor({8}, -1, 1, 3)));
  auto graph = p.finish(y);
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(count_of(*graph, "MVN"), 1u);
  EXPECT_EQ(operations(*graph), 1u);  // scale and shift in its tail
}

TEST(FuseNormalizations, LayerNormalisationAsTensorFlowWritesIt) {
  Parts p({2, 6, 8}, {2});
  const Edge variance = p.reduce("ReduceMean", p.b.op("SquaredDifference", 1, {p.x, p.mean}), {2});
  const Edge r = mul(p.b, power(p.b, add(p.b, variance, p.epsilon), -0.5f),
                     p.b.constant(random_tensor({8}, 0.5, 2, 2)));
  const Edge rest = sub(p.b, p.b.constant(random_tensor({8}, -1, 1, 3)), mul(p.b, p.mean, r));
  auto graph = p.finish(add(p.b, mul(p.b, p.x, r), rest));
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(count_of(*graph, "MVN"), 1u);
  EXPECT_EQ(operations(*graph), 1u);
}

TEST(FuseNormalizations, InstanceNormalisationOfImages) {
  Parts p({2, 6, 4, 5}, {2, 3});
  const Edge deviation = unary(p.b, "Sqrt", add(p.b, p.epsilon, p.variance));
  auto graph = p.finish(mul(p.b, divide(p.b, number(p.b, 1), deviation), p.centre));
  expect_same_values(*graph, "fuse_normalizations");
  EXPECT_EQ(count_of(*graph, "MVN"), 1u);
  EXPECT_EQ(operations(*graph), 1u);
}

TEST(FuseNormalizations, EpsilonOutsideOfTheRoot) {
  Parts p;
  auto graph =
      p.finish(divide(p.b, p.centre, add(p.b, unary(p.b, "Sqrt", p.variance), number(p.b, 0.1f))));
  expect_same_values(*graph, "fuse_normalizations");
  ASSERT_EQ(count_of(*graph, "MVN"), 1u);
  EXPECT_EQ(find(*graph, "MVN")->attributes.get_string("eps_mode"), "OUTSIDE_SQRT");
}

TEST(FuseNormalizations, RootMeanSquare) {
  Parts p;
  const Edge mean = p.reduce("ReduceMean", power(p.b, p.x, 2), {-1});
  const Edge r = power(p.b, add(p.b, mean, number(p.b, 0.01f)), -0.5f);
  auto graph = p.finish(mul(p.b, mul(p.b, p.x, r), p.b.constant(random_tensor({8}, 0.5, 2, 2))));
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(count_of(*graph, "NormalizeL2"), 1u);
  EXPECT_EQ(operations(*graph), 1u);
}

TEST(FuseNormalizations, DivisionByTheNorm) {
  for (const char* bound : {"", "Maximum", "Clamp"}) {
    SCOPED_TRACE(bound);
    Parts p;
    Edge norm = *bound ? p.reduce("ReduceL2", p.x, {1})
                       : unary(p.b, "Sqrt", p.reduce("ReduceSum", mul(p.b, p.x, p.x), {1}));
    if (bound == std::string("Maximum")) norm = p.b.op(bound, 1, {norm, number(p.b, 5)});
    if (bound == std::string("Clamp")) norm = clamp(p.b, norm, "5", "3.4e38");
    auto graph = p.finish(divide(p.b, p.x, norm));
    expect_same_values(*graph, "fuse_normalizations");
    EXPECT_EQ(count_of(*graph, "NormalizeL2"), 1u);
    EXPECT_EQ(operations(*graph), 1u);
  }
}

TEST(FuseNormalizations, LeavesWhatIsNone) {
  const auto stays = [](auto&& build) {
    Parts p;
    auto graph = p.finish(build(p));
    expect_same_values(*graph, "fuse_normalizations");
    EXPECT_EQ(count_of(*graph, "MVN") + count_of(*graph, "NormalizeL2"), 0u);
  };
  stays([](Parts& p) {  // another tensor is divided
    return divide(p.b, p.x, unary(p.b, "Sqrt", add(p.b, p.variance, p.epsilon)));
  });
  stays([](Parts& p) {  // mean and variance over other axes
    const Edge variance = p.reduce("ReduceMean", power(p.b, p.centre, 2), {1});
    return divide(p.b, p.centre, unary(p.b, "Sqrt", add(p.b, variance, p.epsilon)));
  });
  stays([](Parts& p) {  // the third power
    const Edge sum = p.reduce("ReduceMean", unary(p.b, "Abs", power(p.b, p.centre, 3)), {-1});
    return divide(p.b, p.centre, unary(p.b, "Sqrt", add(p.b, sum, p.epsilon)));
  });
  stays([](Parts& p) {  // the variance itself
    return divide(p.b, p.centre, add(p.b, p.variance, number(p.b, 1)));
  });
}

// ---- pads

Edge pad(GraphBuilder& b, Edge x, const std::vector<int>& begin, const std::vector<int>& end,
         float value = 0, const char* mode = "constant") {
  return b.op("Pad", 1, {x, integers(b, begin), integers(b, end), number(b, value)},
              {{"pad_mode", mode}});
}

Edge conv(GraphBuilder& b, Edge x, const char* auto_pad = "explicit") {
  return b.op("Convolution", 1, {x, b.constant(random_tensor({4, 3, 3, 3}, -1, 1, 5))},
              {{"strides", "2,2"},
               {"dilations", "1,1"},
               {"pads_begin", "0,0"},
               {"pads_end", "1,1"},
               {"auto_pad", auto_pad}});
}

Edge pool(GraphBuilder& b, const char* type, Edge x, const char* pads = "0,0",
          const char* exclude = "true", const char* rounding = "floor") {
  return b.op(type, 1, {x},
              {{"kernel", "3,3"},
               {"strides", "2,2"},
               {"pads_begin", pads},
               {"pads_end", pads},
               {"exclude-pad", exclude},
               {"rounding_type", rounding}});
}

template <typename Build>
void expect_pads(size_t left, Build&& build) {
  GraphBuilder b;
  b.result(build(b, b.parameter({1, 3, 8, 9})));
  auto graph = b.finish();
  expect_same_values(*graph, "fold_padding");
  EXPECT_EQ(count_of(*graph, "Pad"), left);
}

TEST(FoldPadding, IntoConvolutions) {
  for (const char* mode : {"explicit", "valid", "same_upper", "same_lower"})
    expect_pads(0, [&](GraphBuilder& b, Edge x) {
      return conv(b, pad(b, x, {0, 0, 1, 2}, {0, 0, 2, 0}), mode);
    });
  expect_pads(0, [](GraphBuilder& b, Edge x) {
    return b.op(
        "GroupConvolution", 1,
        {pad(b, x, {0, 0, 1, 1}, {0, 0, 0, 0}),
         b.constant(random_tensor({3, 1, 1, 3, 3}, -1, 1, 5))},
        {{"strides", "1,1"}, {"dilations", "2,2"}, {"pads_begin", "1,0"}, {"pads_end", "0,0"}});
  });
}

TEST(FoldPadding, BehindAQuantisationThatKeepsZeros) {
  const auto through = [](float low, float high, size_t left) {
    expect_pads(left, [&](GraphBuilder& b, Edge x) {
      const Edge from = number(b, low), to = number(b, high);
      x = pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1});
      return conv(b, b.op("FakeQuantize", 1, {x, from, to, from, to}, {{"levels", "256"}}));
    });
  };
  through(-2, 1.984375f, 0);
  through(0, 3, 0);
  through(-2, 2.1f, 1);  // 0 lies between two levels
  through(1, 3, 1);
}

TEST(FoldPadding, IntoPoolings) {
  for (const char* rounding : {"floor", "ceil"}) {
    expect_pads(0, [&](GraphBuilder& b, Edge x) {  // zeros beside what is never negative
      x = pad(b, unary(b, "ReLU", x), {0, 0, 1, 0}, {0, 0, 0, 1});
      return pool(b, "MaxPool", x, "0,0", "true", rounding);
    });
    // Rounded up, the last window sees less than nine, and with pads would count nine.
    for (const char* exclude : {"true", "false"})
      expect_pads(rounding[0] == 'c', [&](GraphBuilder& b, Edge x) {
        return pool(b, "AvgPool", pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 0}), "0,0", exclude, rounding);
      });
  }
  expect_pads(0, [](GraphBuilder& b, Edge x) {
    return pool(b, "MaxPool", pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1}, -3.4e38f));
  });
}

TEST(FoldPadding, LeavesWhatMeansSomethingElse) {
  const auto stays = [](auto&& build) { expect_pads(1, build); };
  stays([](GraphBuilder& b, Edge x) {  // not zeros
    return conv(b, pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1}, 0.5f));
  });
  stays([](GraphBuilder& b, Edge x) {
    return conv(b, pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1}, 0, "edge"));
  });
  stays([](GraphBuilder& b, Edge x) {  // a maximum with zeros
    return pool(b, "MaxPool", pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1}));
  });
  stays([](GraphBuilder& b, Edge x) {  // windows that see nothing else
    return pool(b, "MaxPool", pad(b, unary(b, "ReLU", x), {0, 0, 3, 0}, {0, 0, 0, 0}));
  });
  stays([](GraphBuilder& b, Edge x) {  // the Pad's zeros count, the pool's own do not
    return pool(b, "AvgPool", pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1}), "1,1", "true");
  });
  stays([](GraphBuilder& b, Edge x) {  // along channels
    return pool(b, "AvgPool", pad(b, x, {0, 1, 0, 0}, {0, 0, 0, 0}));
  });
}

TEST(FoldPadding, OfChannelsIntoTheSum) {
  const auto blaze_face = [](const std::vector<int>& begin, const std::vector<int>& end,
                             float value = 0) {
    GraphBuilder b;
    const Edge x = unary(b, "ReLU", b.parameter({1, 6, 5, 4}));
    const Edge y = b.op(
        "Convolution", 1, {x, b.constant(random_tensor({9, 6, 3, 3}, -1, 1, 5))},
        {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}});
    b.result(unary(b, "ReLU", add(b, pad(b, x, begin, end, value), y)));
    auto graph = b.finish();
    expect_same_values(*graph, "fuse_tails");
    EXPECT_EQ(count_of(*graph, "Add") + count_of(*graph, "ReLU"), 1u);
    return count_of(*graph, "Pad");
  };
  EXPECT_EQ(blaze_face({0, 0, 0, 0}, {0, 3, 0, 0}), 0u);
  EXPECT_EQ(blaze_face({0, 3, 0, 0}, {0, 0, 0, 0}), 1u);     // in front
  EXPECT_EQ(blaze_face({0, 1, 0, 0}, {0, 2, 0, 0}), 1u);     // on both sides
  EXPECT_EQ(blaze_face({0, 0, 0, 0}, {0, 3, 0, 0}, 1), 1u);  // ones
}

// ---- groups

struct Group {
  int64_t outputs = 4;
  const char* pads = "1,1";
  float bias = 0;
  bool swapped = false;  // reads the other part
};

Edge grouped(GraphBuilder& b, Edge x, const std::vector<Group>& groups) {
  const Edge split = b.op("Split", 1, {x, b.constant(Tensor::of<int>(ElementType::i64, {}, {1}))},
                          {{"num_splits", groups.size() == 2 ? "2" : "3"}}, groups.size());
  std::vector<Edge> parts;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    const int part = static_cast<int>(group.swapped ? groups.size() - 1 - i : i);
    Edge y = b.op(
        "Convolution", 1,
        {{split.node, part}, b.constant(random_tensor({group.outputs, 3, 3, 3}, -1, 1, 20 + part))},
        {{"strides", "1,1"},
         {"dilations", "1,1"},
         {"pads_begin", "1,1"},
         {"pads_end", group.pads}});
    if (group.bias != 0)
      y = add(b, y, b.constant(random_tensor({1, group.outputs, 1, 1}, -1, group.bias, 9)));
    parts.push_back(y);
  }
  if (parts.size() == 2) return b.op("Concat", 1, {parts[0], parts[1]}, {{"axis", "1"}});
  return b.op("Concat", 1, {parts[0], parts[1], parts[2]}, {{"axis", "-3"}});
}

void expect_groups(bool one, const std::vector<Group>& groups) {
  GraphBuilder b;
  b.result(grouped(b, b.parameter({2, static_cast<int64_t>(3 * groups.size()), 6, 5}), groups));
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_groups");
  EXPECT_EQ(count_of(*graph, "GroupConvolution"), one ? 1u : 0u);
  EXPECT_EQ(count_of(*graph, "Split"), one ? 0u : 1u);
}

TEST(FuseGroups, ConvolutionsThatAgree) {
  expect_groups(true, {{}, {}});
  expect_groups(true, {{}, {}, {}});
  expect_groups(true, {{4, "1,1", 1}, {4, "1,1", 2}});
}

TEST(FuseGroups, NotThoseThatDiffer) {
  expect_groups(false, {{4}, {5}});
  expect_groups(false, {{4, "1,1", 1}, {4}});
  expect_groups(false, {{4, "1,1", 0, true}, {4, "1,1", 0, true}});
  GraphBuilder b;  // one convolution is also read elsewhere
  const Edge all = grouped(b, b.parameter({1, 6, 6, 5}), {{}, {}});
  b.result(all);
  b.result(all.node->inputs[1]);
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_groups");
  EXPECT_EQ(count_of(*graph, "GroupConvolution"), 0u);
}

TEST(FuseGroups, NotOtherStrides) {
  GraphBuilder b;
  const Edge all = grouped(b, b.parameter({1, 6, 6, 5}), {{}, {}});
  all.node->inputs[1].node->attributes.set("pads_begin", "2,1");
  all.node->inputs[1].node->attributes.set("pads_end", "0,1");
  b.result(all);
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_groups");
  EXPECT_EQ(count_of(*graph, "GroupConvolution"), 0u);
}

// ---- reshapes, transposes, shuffles

Edge reshape(GraphBuilder& b, Edge x, const std::vector<int>& shape) {
  return b.op("Reshape", 1, {x, integers(b, shape)}, {{"special_zero", "false"}});
}
Edge transpose(GraphBuilder& b, Edge x, const std::vector<int>& order) {
  return b.op("Transpose", 1, {x, integers(b, order)});
}

TEST(Simplify, ChainsOfReshapesAndTransposes) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3, 4, 5});
  b.result(reshape(b, reshape(b, reshape(b, x, {6, 20}), {24, 5}), {2, 3, 4, 5}));
  b.result(unary(b, "Abs", reshape(b, reshape(b, x, {6, 20}), {2, 60})));
  b.result(transpose(b, transpose(b, x, {0, 2, 3, 1}), {0, 3, 1, 2}));
  b.result(unary(b, "Abs", transpose(b, transpose(b, x, {1, 0, 3, 2}), {2, 3, 1, 0})));
  b.result(
      unary(b, "Abs", reshape(b, transpose(b, reshape(b, x, {6, 1, 20}), {1, 0, 2}), {2, 60})));
  auto graph = b.finish();
  expect_same_values(*graph, "simplify");
  EXPECT_EQ(count_of(*graph, "Reshape"), 2u);
  EXPECT_EQ(count_of(*graph, "Transpose"), 1u);
  EXPECT_EQ(graph->results[0]->inputs[0].node, graph->parameters[0]);
  EXPECT_EQ(graph->results[2]->inputs[0].node, graph->parameters[0]);
}

TEST(Simplify, LeavesTransposesThatMoveSomething) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3, 4, 5});
  b.result(reshape(b, transpose(b, reshape(b, x, {6, 4, 5}), {0, 2, 1}), {2, 60}));
  auto graph = b.finish();
  expect_same_values(*graph, "simplify");
  EXPECT_EQ(count_of(*graph, "Reshape"), 2u);
  EXPECT_EQ(count_of(*graph, "Transpose"), 1u);
}

Edge pointwise(GraphBuilder& b, Edge x, int64_t in, int64_t out, unsigned seed) {
  return b.op(
      "Convolution", 1, {x, b.constant(random_tensor({out, in, 1, 1}, -1, 1, seed))},
      {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}});
}

// Two units of a ShuffleNet.
std::unique_ptr<Graph> shuffle_net(const std::vector<int>& order, bool second_reader = false) {
  GraphBuilder b;
  const Edge in = b.parameter({2, 8, 5, 6});
  Edge around = unary(b, "ReLU", pointwise(b, in, 8, 8, 1)), y = in;
  for (unsigned unit = 0; unit < 2; ++unit) {
    y = pointwise(b, y, 8, 8, 2 + unit);
    y = add(b, y, b.constant(random_tensor({1, 8, 1, 1}, -1, 1, 7)));
    y = b.op("PReLU", 1, {y, b.constant(random_tensor({8}, 0, 1, 8))});
    y = b.op("Concat", 1, {around, y}, {{"axis", "1"}});
    y = reshape(b, transpose(b, reshape(b, y, {2, 2, 8, 5, 6}), order), {2, 16, 5, 6});
    y = b.op("VariadicSplit", 1, {y, integers(b, {1}), integers(b, {8, 8})}, {}, 2);
    around = y;
    y = {y.node, 1};
    if (second_reader) b.result(y);
  }
  b.result(b.op("Concat", 1, {around, pointwise(b, y, 8, 8, 9)}, {{"axis", "1"}}));
  return b.finish();
}

TEST(FoldShuffles, OneCopyAUnit) {
  auto graph = shuffle_net({0, 2, 1, 3, 4});
  expect_same_values(*graph, "fold_shuffles");
  EXPECT_EQ(count_of(*graph, "VariadicSplit"), 0u);
  expect_same_values(*graph, "");
  EXPECT_EQ(count_of(*graph, "Reorder"), 3u);  // two units, and the result
}

TEST(FoldShuffles, NotOtherOrdersOrReaders) {
  auto other = shuffle_net({0, 2, 1, 4, 3});
  expect_same_values(*other, "fold_shuffles");
  EXPECT_EQ(count_of(*other, "VariadicSplit"), 2u);
  auto read = shuffle_net({0, 2, 1, 3, 4}, true);
  expect_same_values(*read, "fold_shuffles");
  EXPECT_EQ(count_of(*read, "VariadicSplit"), 2u);
}

// ---- blocks of pixels as channels, in front of a convolution

Edge convolved(GraphBuilder& b, Edge x, int64_t out, int64_t k, const char* strides,
               const char* begin, const char* end, const char* auto_pad = "explicit") {
  const int64_t in = x.node->shape(x.port)[1];
  return b.op("Convolution", 1, {x, b.constant(random_tensor({out, in, k, k}, -1, 1, 3))},
              {{"strides", strides},
               {"dilations", "1,1"},
               {"pads_begin", begin},
               {"pads_end", end},
               {"auto_pad", auto_pad}});
}

Edge every_second(GraphBuilder& b, Edge x, int axis, int from, int step = 2) {
  return b.op(
      "Slice", 8,
      {x, integers(b, {from}), integers(b, {1000}), integers(b, {step}), integers(b, {axis})});
}

// As PyTorch writes x[..., ::2, ::2]: a slice of rows, then of columns.
Edge focus(GraphBuilder& b, Edge x, const std::vector<std::pair<int, int>>& places) {
  std::vector<Edge> parts;
  for (const auto& [row, column] : places)
    parts.push_back(every_second(b, every_second(b, x, 2, row), 3, column));
  return b.op("Concat", 1, {parts[0], parts[1], parts[2], parts[3]}, {{"axis", "1"}});
}

TEST(FoldSpaceToDepth, SlicesInFrontOfAConvolution) {
  struct Layer {
    int64_t kernel;
    const char *strides, *begin, *end, *auto_pad;
  };
  for (const Layer& layer : {Layer{3, "1,1", "1,1", "1,1", "explicit"},
                             {3, "2,2", "0,1", "2,0", "explicit"},
                             {1, "1,1", "0,0", "0,0", "explicit"},
                             {3, "2,1", "0,0", "0,0", "same_lower"},
                             {3, "2,2", "0,0", "-1,-1", "explicit"},
                             {4, "3,3", "0,0", "0,0", "valid"}}) {
    GraphBuilder b;
    const Edge x = b.parameter({2, 3, 12, 16});
    b.result(convolved(b, focus(b, x, {{0, 0}, {1, 0}, {0, 1}, {1, 1}}), 5, layer.kernel,
                       layer.strides, layer.begin, layer.end, layer.auto_pad));
    auto graph = b.finish();
    expect_same_values(*graph, "fold_space_to_depth");
    EXPECT_EQ(operations(*graph), 1u) << layer.kernel << " " << layer.strides;
    const Node* folded = find(*graph, "Convolution");
    EXPECT_EQ(folded->inputs[1].node->constant.shape(),
              (Shape{5, 3, 2 * layer.kernel, 2 * layer.kernel}));
    const Shape shape = folded->shape();
    infer_node_shapes(*const_cast<Node*>(folded));
    EXPECT_EQ(folded->shape(), shape);
  }
}

TEST(FoldSpaceToDepth, TheOperationItself) {
  for (const char* mode : {"blocks_first", "depth_first"}) {
    GraphBuilder b;
    const Edge x = b.parameter({1, 2, 9, 12});
    const Edge deep = b.op("SpaceToDepth", 1, {x}, {{"block_size", "3"}, {"mode", mode}});
    b.result(convolved(b, deep, 4, 2, "1,1", "1,0", "0,1"));
    auto graph = b.finish();
    expect_same_values(*graph, "fold_space_to_depth");
    EXPECT_EQ(operations(*graph), 1u) << mode;
  }
}

TEST(FoldSpaceToDepth, NotWhatIsNoBlock) {
  // A part twice; other steps; a reader besides; parts of two pictures; pixels left over.
  for (int what = 0; what < 5; ++what) {
    GraphBuilder b;
    const Edge x = b.parameter({1, 3, 8, what == 4 ? 9 : 8}), y = b.parameter({1, 3, 8, 8});
    Edge parts;
    if (what == 0) {
      parts = focus(b, x, {{0, 0}, {1, 0}, {0, 0}, {1, 1}});
    } else if (what == 1) {
      const Edge every = every_second(b, x, 2, 0), fourth = every_second(b, y, 2, 0, 4);
      parts = b.op("Concat", 1, {every_second(b, fourth, 3, 0), every_second(b, fourth, 3, 1)},
                   {{"axis", "1"}});
      b.result(every);
    } else if (what == 3) {
      parts = b.op("Concat", 1,
                   {every_second(b, every_second(b, x, 2, 0), 3, 0),
                    every_second(b, every_second(b, y, 2, 1), 3, 0)},
                   {{"axis", "1"}});
    } else if (what == 4) {
      parts =
          b.op("Concat", 1, {every_second(b, x, 3, 0), every_second(b, x, 3, 0)}, {{"axis", "1"}});
    } else {
      parts = focus(b, x, {{0, 0}, {1, 0}, {0, 1}, {1, 1}});
      b.result(parts);
    }
    b.result(convolved(b, parts, 4, 3, "1,1", "1,1", "1,1"));
    auto graph = b.finish();
    expect_same_values(*graph, "fold_space_to_depth");
    EXPECT_EQ(count_of(*graph, "Concat"), 1u) << what;
  }
}

// Channels in another order, on the way to a convolution.
TEST(FoldShuffles, OrdersOfChannels) {
  for (const int what : {0, 1, 2, 3, 4}) {
    GraphBuilder b;
    // 1: a channel twice; 2: not the channels; 3: a further reader; 4: a norm across channels.
    const Edge in = b.parameter({2, 3, 3, 5});
    const Edge picked =
        b.op("Gather", 8,
             {in, integers(b, what == 1 ? std::vector{2, 0, 2} : std::vector{2, 0, -2}),
              b.constant(Tensor::of<int>(ElementType::i64, {}, {what == 2 ? 2 : 1}))},
             {{"batch_dims", "0"}});
    Edge x = b.op("PReLU", 1, {picked, b.constant(random_tensor({3}, -1, 1, 2))});
    x = sub(b, b.constant(random_tensor({1, 3, 1, 1}, -1, 1, 3)), x);
    x = b.op("MVN", 6, {x, integers(b, what == 4 ? std::vector{1, 2, 3} : std::vector{-1, 2})},
             {{"normalize_variance", "true"}, {"eps", "0.1"}, {"eps_mode", "inside_sqrt"}});
    x = mul(b, x, b.constant(random_tensor({3, 1, 1}, -1, 1, 4)));
    if (what == 3) b.result(unary(b, "Tanh", x));
    b.result(convolved(b, x, 4, 3, "1,1", "1,1", "1,1"));
    auto graph = b.finish();
    expect_same_values(*graph, "fold_shuffles");
    EXPECT_EQ(count_of(*graph, "Gather"), what == 0 ? 0u : 1u) << what;
  }
}

}  // namespace
}  // namespace clinfer
