// LSTM, GRU and RNN cells and sequences: single steps computed by hand, sequences against cells,
// refusals.
#include <cmath>

#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

float logistic(float x) { return 1 / (1 + std::exp(-x)); }

const Attributes kOne = attributes({{"hidden_size", "1"}});

TEST(Recurrent, LstmCell) {
  // x = 2, h = 3, c = 4; gates forget, input, cell, output.
  const std::vector<Tensor> out =
      run("LSTMCell", 4, kOne,
          {floats({1, 1}, {2}), floats({1, 1}, {3}), floats({1, 1}, {4}),
           floats({4, 1}, {0.1f, 0.2f, 0.3f, 0.4f}), floats({4, 1}, {0.5f, -0.5f, 0.25f, 0}),
           floats({4}, {0, 0, 0.1f, 0})},
          2, 3);
  const float c = logistic(1.7f) * 4 + logistic(-1.1f) * std::tanh(1.45f);
  EXPECT_NEAR(out[1].to_floats()[0], c, 1e-5f);
  EXPECT_NEAR(out[0].to_floats()[0], logistic(0.8f) * std::tanh(c), 1e-5f);
}

TEST(Recurrent, GruCell) {
  const auto gru = [](const char* after, const std::vector<float>& b) {
    Attributes a = kOne;
    a.set("linear_before_reset", after);
    return run("GRUCell", 3, a,
               {floats({1, 1}, {2}), floats({1, 1}, {3}), floats({3, 1}, {0.1f, 0.2f, 0.3f}),
                floats({3, 1}, {0.5f, -0.5f, 0.25f}), floats({static_cast<int64_t>(b.size())}, b)},
               1, 2)[0]
        .to_floats()[0];
  };
  const float z = logistic(1.7f), r = logistic(-1.1f);
  EXPECT_NEAR(gru("false", {0, 0, 0.1f}), (1 - z) * std::tanh(0.7f + 0.25f * r * 3) + z * 3, 1e-5f);
  EXPECT_NEAR(gru("true", {0, 0, 0.1f, 0.2f}),
              (1 - z) * std::tanh(0.7f + r * (0.25f * 3 + 0.2f)) + z * 3, 1e-5f);
}

TEST(Recurrent, RnnCellActivationsAndClip) {
  const auto rnn = [](const char* activation, const char* clip) {
    return run("RNNCell", 1,
               attributes({{"hidden_size", "1"}, {"activations", activation}, {"clip", clip}}),
               {floats({1, 1}, {2}), floats({1, 1}, {3}), floats({1, 1}, {1}), floats({1, 1}, {1}),
                floats({1}, {0})},
               1, 2)[0]
        .to_floats()[0];
  };
  EXPECT_EQ(rnn("relu", "0"), 5);
  EXPECT_EQ(rnn("relu", "4"), 4);
  EXPECT_NEAR(rnn("tanh", "0"), std::tanh(5.0f), 1e-6f);
}

TEST(Recurrent, SequencesStepLikeCells) {
  const Tensor x = random_tensor({2, 3, 4}, -1, 1, 1), h = random_tensor({2, 2, 5}, -1, 1, 2),
               c = random_tensor({2, 2, 5}, -1, 1, 3);
  const Tensor w = random_tensor({2, 20, 4}, -1, 1, 4), r = random_tensor({2, 20, 5}, -1, 1, 5),
               b = random_tensor({2, 20}, -1, 1, 6);
  const std::vector<Tensor> all =
      run("LSTMSequence", 5, attributes({{"hidden_size", "5"}, {"direction", "bidirectional"}}),
          {x, h, c, ints({3, 2}), w, r, b}, 3, 4);
  const auto part = [](const Tensor& t, int64_t at, Shape shape) {
    const int64_t n = count(shape);
    return floats(std::move(shape),
                  std::vector<float>(t.data<float>() + at, t.data<float>() + at + n));
  };
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t d = 0; d < 2; ++d) {
      Tensor hidden = part(h, (n * 2 + d) * 5, {1, 5}), cell = part(c, (n * 2 + d) * 5, {1, 5});
      const int64_t length = n == 0 ? 3 : 2;
      for (int64_t t = 0; t < length; ++t) {
        const int64_t step = d == 0 ? t : length - 1 - t;
        const std::vector<Tensor> one =
            run("LSTMCell", 4, attributes({{"hidden_size", "5"}}),
                {part(x, (n * 3 + step) * 4, {1, 4}), hidden, cell, part(w, d * 80, {20, 4}),
                 part(r, d * 100, {20, 5}), part(b, d * 20, {20})},
                2, 3);
        hidden = one[0];
        cell = one[1];
        EXPECT_EQ(part(all[0], ((n * 2 + d) * 3 + step) * 5, {5}).to_floats(), hidden.to_floats());
      }
      EXPECT_EQ(part(all[1], (n * 2 + d) * 5, {5}).to_floats(), hidden.to_floats());
      EXPECT_EQ(part(all[2], (n * 2 + d) * 5, {5}).to_floats(), cell.to_floats());
      const std::vector<float> last = part(all[0], ((n * 2 + d) * 3 + 2) * 5, {5}).to_floats();
      EXPECT_EQ(last == std::vector<float>(5, 0.0f), length == 2);
    }
}

// The kernel on cells and sequences of every kind.
void check_kernel(const std::string& type, Attributes a, int64_t gates, int64_t bias_rows,
                  int64_t directions, const DeviceTraits* pretend = nullptr,
                  ElementType storage = ElementType::f32, int64_t hidden = 70) {
  const bool sequence = type.ends_with("Sequence"), lstm = type.starts_with("LSTM");
  const int64_t in = 4;
  a.set("hidden_size", std::to_string(hidden));
  std::vector<Tensor> inputs{random_tensor(sequence ? Shape{3, 5, in} : Shape{3, in}, -1, 1, 1)};
  const Shape state = sequence ? Shape{3, directions, hidden} : Shape{3, hidden};
  for (int i = 0; i < (lstm ? 2 : 1); ++i)
    inputs.push_back(random_tensor(state, -1, 1, 2 + static_cast<unsigned>(i)));
  if (sequence) inputs.push_back(Tensor::of<int32_t>(ElementType::i32, {3}, {0, 4, 5}));
  const size_t variable = inputs.size();
  for (const Shape& shape :
       {Shape{directions, gates * hidden, in}, Shape{directions, gates * hidden, hidden},
        Shape{directions, bias_rows * hidden}})
    inputs.push_back(random_tensor(sequence ? shape : Shape(shape.begin() + 1, shape.end()), -0.3f,
                                   0.3f, static_cast<unsigned>(shape.size()) + 4));
  std::vector<bool> constant(inputs.size(), true);
  std::fill_n(constant.begin(), variable, false);
  OpDesc desc = make_desc(type, 5, a, inputs, constant, (lstm ? 2 : 1) + (sequence ? 1 : 0));
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  for (TensorDesc& output : desc.outputs) {
    output = with_gaps(output, 3, 1);
    output.type = storage;
  }
  const Tolerance wide{}, narrow{1e-3, 1e-3};
  check_op(desc, inputs, storage == ElementType::f16 ? narrow : wide, pretend);
}

TEST(Recurrent, KernelOfCells) {
  check_kernel("LSTMCell", attributes({{"clip", "0.8"}}), 4, 4, 1);
  check_kernel("GRUCell", {}, 3, 3, 1);
  check_kernel("GRUCell", attributes({{"linear_before_reset", "true"}, {"clip", "0.5"}}), 3, 4, 1);
  check_kernel("RNNCell", attributes({{"activations", "hardsigmoid"}}), 1, 1, 1);
}

TEST(Recurrent, KernelOfSequences) {
  check_kernel("LSTMSequence", attributes({{"direction", "bidirectional"}}), 4, 4, 2);
  check_kernel("GRUSequence", attributes({{"direction", "reverse"}}), 3, 3, 1);
  check_kernel("RNNSequence", attributes({{"direction", "forward"}, {"activations", "relu"}}), 1, 1,
               1);
}

// Work-items that share the units, as on a GPU.
TEST(Recurrent, KernelOfSharedUnits) {
  const DeviceTraits gpu = gpu_traits();
  check_kernel("GRUCell", {}, 3, 3, 1, &gpu);
  check_kernel("LSTMSequence", attributes({{"direction", "bidirectional"}}), 4, 4, 2, &gpu);
  check_kernel("GRUSequence",
               attributes({{"linear_before_reset", "true"}, {"direction", "reverse"}}), 3, 4, 1,
               &gpu);
}

// Hidden units spread over work-groups, a launch for each step; lengths differ, and one is 0.
TEST(Recurrent, KernelOfSteps) {
  const DeviceTraits gpu = gpu_traits();
  const auto check_recurrent = [&](const std::string& type, const Attributes& a, int64_t gates,
                                   int64_t bias_rows, int64_t directions,
                                   ElementType storage = ElementType::f32) {
    check_kernel(type, a, gates, bias_rows, directions, &gpu, storage, 260);
  };
  check_recurrent("LSTMSequence", attributes({{"direction", "bidirectional"}, {"clip", "0.8"}}), 4,
                  4, 2);
  check_recurrent("GRUSequence",
                  attributes({{"linear_before_reset", "true"}, {"direction", "reverse"}}), 3, 4, 1,
                  ElementType::f16);
  // Two launches for each step.
  check_recurrent("GRUSequence", attributes({{"direction", "bidirectional"}, {"clip", "0.5"}}), 3,
                  3, 2);
  check_recurrent("GRUSequence", attributes({{"direction", "reverse"}}), 3, 3, 1, ElementType::f16);
  check_recurrent("GRUCell", {}, 3, 3, 1);
  check_recurrent("RNNCell", {}, 1, 1, 1);
}

TEST(Recurrent, StepsAreLaunchedWhereThatIsWorthIt) {
  const auto why_not = [](const std::string& type, int64_t images, int64_t steps, int64_t hidden,
                          const DeviceTraits& traits, const char* after = "true") {
    const int64_t gates = type.starts_with("LSTM") ? 4 : 3,
                  bias_rows = std::string(after) == "true" && gates == 3 ? 4 : gates;
    std::vector<Tensor> inputs{Tensor::allocate(ElementType::f32, {images, steps, 8})};
    for (int i = 0; i < (gates == 4 ? 2 : 1); ++i)
      inputs.push_back(Tensor::allocate(ElementType::f32, {images, 1, hidden}));
    inputs.push_back(Tensor::allocate(ElementType::i32, {images}));
    const size_t variable = inputs.size();
    inputs.push_back(Tensor::allocate(ElementType::f32, {1, gates * hidden, 8}));
    inputs.push_back(Tensor::allocate(ElementType::f32, {1, gates * hidden, hidden}));
    inputs.push_back(Tensor::allocate(ElementType::f32, {1, bias_rows * hidden}));
    std::vector<bool> constant(inputs.size(), true);
    std::fill_n(constant.begin(), variable, false);
    const OpDesc desc = make_desc(type, 5,
                                  attributes({{"hidden_size", std::to_string(hidden).c_str()},
                                              {"direction", "forward"},
                                              {"linear_before_reset", after}}),
                                  inputs, constant, gates == 4 ? 3 : 2);
    const KernelFamily* steps_family = find_op(type, 5)->families.front();
    EXPECT_EQ(steps_family->name, "recurrent_steps");
    return steps_family->reject(desc, traits);
  };
  DeviceTraits gpu = gpu_traits(), cpu = gpu;
  gpu.compute_units = 132;
  cpu.is_cpu = true;
  EXPECT_EQ(why_not("LSTMSequence", 1, 100, 512, gpu), "");
  EXPECT_EQ(why_not("GRUSequence", 1, 100, 512, gpu), "");
  EXPECT_EQ(why_not("GRUSequence", 1, 100, 512, gpu, "false"), "");
  EXPECT_TRUE(says(why_not("LSTMSequence", 1, 100, 127, gpu), "128 hidden units"));
  EXPECT_TRUE(says(why_not("GRUSequence", 1, 100, 255, gpu, "false"), "256 hidden units"));
  EXPECT_TRUE(says(why_not("LSTMSequence", 1, 2000, 512, gpu), "1024 launches"));
  EXPECT_TRUE(says(why_not("GRUSequence", 1, 600, 512, gpu, "false"), "1024 launches"));
  EXPECT_TRUE(says(why_not("LSTMSequence", 100, 100, 512, gpu), "fills half"));
  EXPECT_TRUE(says(why_not("LSTMSequence", 1, 100, 512, cpu), "CPU"));
  // The states need not fit into one work-group's local memory.
  EXPECT_EQ(why_not("LSTMSequence", 1, 2, 4096, gpu), "");
}

// The application's tensors stay f32 where activations are f16.
TEST(Recurrent, KernelReadsF32AndWritesF16) {
  check_kernel("LSTMSequence", attributes({{"direction", "forward"}}), 4, 4, 1, nullptr,
               ElementType::f16);
  check_kernel("GRUCell", {}, 3, 3, 1, nullptr, ElementType::f16);
}

TEST(Recurrent, Refuses) {
  const Tensor one = floats({1, 1}, {1});
  const auto refused = [&](std::initializer_list<std::pair<const char*, const char*>> a,
                           const Tensor& bias) {
    return error_of("RNNCell", 1, attributes(a), {one, one, one, one, bias}, 1, 2);
  };
  EXPECT_EQ(refused({{"hidden_size", "1"}}, floats({1}, {0})), "");
  EXPECT_TRUE(says(refused({{"hidden_size", "2"}}, floats({1}, {0})),
                   "a state has the shape [1,1], expected [1,2]"));
  EXPECT_TRUE(says(refused({{"hidden_size", "0"}}, floats({1}, {0})), "hidden_size is 0"));
  EXPECT_TRUE(says(refused({{"hidden_size", "1"}}, floats({2}, {0, 0})),
                   "B has the shape [2], expected [1]"));
  EXPECT_TRUE(says(refused({{"hidden_size", "1"}, {"activations", "cos"}}, floats({1}, {0})),
                   "activation \"cos\""));
  EXPECT_TRUE(says(refused({{"hidden_size", "1"}, {"activations", "relu,relu"}}, floats({1}, {0})),
                   "activations=\"relu,relu\" must name 1"));
  const Tensor peepholes = floats({3}, {0, 1, 0}), state = floats({1, 1}, {0}),
               four = floats({4, 1}, {0, 0, 0, 0});
  EXPECT_TRUE(
      says(error_of("LSTMCell", 1, kOne,
                    {one, state, state, four, four, floats({4}, {0, 0, 0, 0}), peepholes}, 2, 3),
           "peepholes"));
}

}  // namespace
}  // namespace clinfer::test
