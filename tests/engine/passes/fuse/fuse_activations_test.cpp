// Activations written out in several operations: in the ways in which exporters write them, and what
// looks alike but is none.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::add;
using test::clamp;
using test::count_of;
using test::divide;
using test::expect_becomes;
using test::expect_same_values;
using test::find;
using test::GraphBuilder;
using test::mul;
using test::operations;
using test::power;
using test::random_tensor;
using test::unary;

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
       return mul(b, x, unary(b, "Sigmoid", mul(b, b.number(1.702f), x)));
     }},
    {"x / (1 + exp(-x))", "Swish",
     [](GraphBuilder& b, Edge x) {
       return divide(b, x, add(b, unary(b, "Exp", unary(b, "Negative", x)), b.number(1)));
     }},
    {"1 / (1 + exp(-x))", "Sigmoid",
     [](GraphBuilder& b, Edge x) {
       return divide(b, b.number(1), add(b, b.number(1), unary(b, "Exp", unary(b, "Negative", x))));
     }},
    {"relu6(x + 3) / 6", "HSigmoid",
     [](GraphBuilder& b, Edge x) {
       return divide(b, clamp(b, add(b, x, b.number(3)), "0", "6"), b.number(6));
     }},
    {"x * relu6(x + 3) / 6", "HSwish",
     [](GraphBuilder& b, Edge x) {
       return divide(b, mul(b, x, clamp(b, add(b, x, b.number(3)), "0", "6")), b.number(6));
     }},
    {"x * (relu6(x + 3) / 6)", "HSwish",
     [](GraphBuilder& b, Edge x) {
       return mul(b, x, divide(b, clamp(b, add(b, x, b.number(3)), "0", "6"), b.number(6)));
     }},
    {"x * min(relu(x + 3), 6) * (1/6 in f16)", "HSwish",
     [](GraphBuilder& b, Edge x) {
       const Edge gate =
           b.op("Minimum", 1, {unary(b, "ReLU", add(b, x, b.number(3))), b.number(6)});
       return mul(b, mul(b, x, gate), b.number(half_to_float(float_to_half(1.f / 6))));
     }},
    {"x * clamp(x / 6 + 0.5, 0, 1)", "HSwish",
     [](GraphBuilder& b, Edge x) {
       const Edge gate = add(b, mul(b, x, b.number(1.f / 6)), b.number(0.5f));
       return mul(b, x, clamp(b, gate, "0", "1"));
     }},
    {"x * hsigmoid(x)", "HSwish",
     [](GraphBuilder& b, Edge x) { return mul(b, x, b.op("HSigmoid", 5, {x})); }},
    {"x * tanh(softplus(x))", "Mish",
     [](GraphBuilder& b, Edge x) { return mul(b, x, unary(b, "Tanh", b.op("SoftPlus", 4, {x}))); }},
    {"x * tanh(log(1 + exp(x)))", "Mish",
     [](GraphBuilder& b, Edge x) {
       return mul(b, unary(b, "Tanh", unary(b, "Log", add(b, b.number(1), unary(b, "Exp", x)))), x);
     }},
    {"log(exp(x) + 1)", "SoftPlus",
     [](GraphBuilder& b, Edge x) {
       return unary(b, "Log", add(b, unary(b, "Exp", x), b.number(1)));
     }},
    {"x * 0.5 * (1 + erf(x / sqrt(2))), as PyTorch", "Gelu",
     [](GraphBuilder& b, Edge x) {
       const Edge gate = add(b, unary(b, "Erf", divide(b, x, b.number(1.41421354f))), b.number(1));
       return mul(b, mul(b, x, gate), b.number(0.5f));
     }},
    {"0.5 * x * (1 + erf(x * 0.7071)), as TensorFlow", "Gelu",
     [](GraphBuilder& b, Edge x) {
       const Edge gate = add(b, b.number(1), unary(b, "Erf", mul(b, x, b.number(0.70710677f))));
       return mul(b, mul(b, b.number(0.5f, {1, 1, 1, 1}), x), gate);
     }},
    {"x * (0.5 * (1 + erf(...))) in f16", "Gelu",
     [](GraphBuilder& b, Edge x) {
       const Edge half = b.number(half_to_float(float_to_half(0.70710677f)));
       return mul(b, x,
                  mul(b, b.number(0.5f), add(b, unary(b, "Erf", mul(b, x, half)), b.number(1))));
     }},
    {"0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))", "Gelu",
     [](GraphBuilder& b, Edge x) {
       const Edge cube = mul(b, power(b, x, 3), b.number(0.044715f));
       const Edge inner = mul(b, add(b, x, cube), b.number(0.7978845608f));
       return mul(b, mul(b, b.number(0.5f), x), add(b, b.number(1), unary(b, "Tanh", inner)));
     }},
    {"the same with x * x * x", "Gelu",
     [](GraphBuilder& b, Edge x) {
       const Edge cube = mul(b, mul(b, mul(b, x, x), x), b.number(0.044715f));
       const Edge inner = mul(b, b.number(0.7978845608f), add(b, cube, x));
       return mul(b, x, mul(b, add(b, unary(b, "Tanh", inner), b.number(1)), b.number(0.5f)));
     }},
    {"max(x, 0.1 * x)", "PReLU",
     [](GraphBuilder& b, Edge x) {
       return b.op("Maximum", 1, {x, mul(b, x, b.number(0.1f))});
     }},
    {"x * relu6(x + 3) / 5", "",
     [](GraphBuilder& b, Edge x) {
       return divide(b, mul(b, x, clamp(b, add(b, x, b.number(3)), "0", "6")), b.number(5));
     }},
    {"x * tanh(softplus(2 * x))", "",
     [](GraphBuilder& b, Edge x) {
       return mul(b, x, unary(b, "Tanh", b.op("SoftPlus", 4, {mul(b, b.number(2), x)})));
     }},
    {"x * (1 + erf(x / sqrt(2)))", "",
     [](GraphBuilder& b, Edge x) {
       return mul(b, x, add(b, unary(b, "Erf", divide(b, x, b.number(1.41421354f))), b.number(1)));
     }},
    {"sigmoid(x + 0.001): the bias of a head of one channel", "",
     [](GraphBuilder& b, Edge x) { return unary(b, "Sigmoid", add(b, x, b.number(0.001f))); }},
    {"min(max(x, 0), 300): coordinates clipped to a picture", "",
     [](GraphBuilder& b, Edge x) {
       return b.op("Minimum", 1, {b.op("Maximum", 1, {x, b.number(0)}), b.number(300)});
     }},
    {"floor(relu(x) * 16) / 16: steps on a grid", "",
     [](GraphBuilder& b, Edge x) {
       const Edge steps = unary(b, "Floor", mul(b, unary(b, "ReLU", x), b.number(16)));
       return divide(b, steps, b.number(16));
     }},
    {"relu(x) + 1e-6, to be divided by", "",
     [](GraphBuilder& b, Edge x) { return add(b, unary(b, "ReLU", x), b.number(1e-6f)); }},
    {"softplus(x) + 1e-6, a deviation", "",
     [](GraphBuilder& b, Edge x) { return add(b, b.op("SoftPlus", 4, {x}), b.number(1e-6f)); }},
    {"tanh(x) * 2 + 1", "",
     [](GraphBuilder& b, Edge x) {
       return add(b, mul(b, unary(b, "Tanh", x), b.number(2)), b.number(1));
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

TEST(FuseActivations, TextOfASwish) {
  expect_becomes(R"(
      x = parameter f32[1,3,2,2]
      y = Sigmoid-1(x)
      z = Multiply-1(x, y)
      result z)",
                 "fuse_activations",
                 "a = Swish(in0)\n"
                 "result a\n");
}

}  // namespace
}  // namespace clinfer
