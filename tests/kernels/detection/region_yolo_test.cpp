// RegionYolo and ReorgYolo: values, the kernels against evaluate(), refusals.
#include <cmath>

#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

Attributes v2(const char* num, const char* classes) {
  return attributes({{"num", num},
                     {"classes", classes},
                     {"coords", "4"},
                     {"do_softmax", "true"},
                     {"axis", "1"},
                     {"end_axis", "3"}});
}

Attributes v3(const char* mask, const char* classes) {
  return attributes({{"num", "9"},
                     {"classes", classes},
                     {"coords", "4"},
                     {"do_softmax", "false"},
                     {"mask", mask},
                     {"axis", "1"},
                     {"end_axis", "3"}});
}

TEST(RegionYolo, Values) {
  const Tensor in = floats({1, 7, 1, 1}, {1, -1, 2, 3, 0.5f, 0.25f, 1.25f});
  const Tensor old = run("RegionYolo", 1, v2("1", "2"), {in})[0];
  EXPECT_EQ(old.shape(), (Shape{1, 7}));
  const float soft = 1 / (1 + std::exp(1.0f));
  const std::vector<float> want{sigmoid(1), sigmoid(-1), 2, 3, sigmoid(0.5f), soft, 1 - soft};
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(old.data<float>()[i], want[i], 1e-6f) << i;
  const Tensor later = run("RegionYolo", 1, v3("0", "2"), {in})[0];
  EXPECT_EQ(later.shape(), (Shape{1, 7, 1, 1}));
  EXPECT_NEAR(later.data<float>()[6], sigmoid(1.25f), 1e-6f);
  EXPECT_EQ(later.data<float>()[3], 3);
}

TEST(RegionYolo, Kernel) {
  const std::vector<Tensor> inputs{random_tensor({2, 24, 5, 3}, -3, 3)};
  for (const Attributes& a : {v2("3", "3"), v3("1,2,3", "3")}) {
    OpDesc desc = make_desc("RegionYolo", 1, a, inputs, {false});
    check_op(desc, inputs);
    desc.inputs[0] = with_gaps(desc.inputs[0]);
    desc.outputs[0] = with_gaps(desc.outputs[0]);
    check_op(desc, inputs);
  }
  Attributes flat = v2("3", "3");
  flat.set("axis", "2");
  check_op(make_desc("RegionYolo", 1, flat, inputs, {false}), inputs);
}

TEST(RegionYolo, Refuses) {
  const std::vector<Tensor> in{counted({1, 14, 2, 2})};
  EXPECT_EQ(error_of("RegionYolo", 1, v2("2", "2"), in), "");
  EXPECT_TRUE(says(error_of("RegionYolo", 1, v2("3", "2"), in),
                   "channels of [1,14,2,2] are not 3 regions of 4 coordinates, a score and"));
  EXPECT_TRUE(says(error_of("RegionYolo", 1, v2("-2", "2"), in),
                   "channels of [1,14,2,2] are not -2 regions of 4 coordinates, a score and"));
  EXPECT_TRUE(says(error_of("RegionYolo", 1, v2("2", "9223372036854775807"), in),
                   "channels of [1,14,2,2] are not 2 regions of 4 coordinates, a score and"));
  EXPECT_TRUE(says(error_of("RegionYolo", 1, v3("", "2"), in),
                   "channels of [1,14,2,2] are not 0 regions of 4 coordinates, a score and"));
  EXPECT_TRUE(says(error_of("RegionYolo", 1, v2("2", "2"), {counted({1, 14, 2})}),
                   "the input has the shape [1,14,2], it must have 4 dimensions"));
}

TEST(ReorgYolo, ValuesAndKernel) {
  const Attributes stride = attributes({{"stride", "2"}});
  // Four channels of a finer grid: the rows are read as if the picture were 1 x 4 x 4.
  EXPECT_EQ(run("ReorgYolo", 2, stride, {counted({1, 4, 2, 2})})[0].to_floats(),
            (std::vector<float>{0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15}));
  EXPECT_EQ(run("ReorgYolo", 2, stride, {counted({1, 4, 2, 4})})[0].shape(), (Shape{1, 16, 1, 2}));
  const std::vector<Tensor> inputs{random_tensor({2, 8, 4, 6})};
  check_op(make_desc("ReorgYolo", 2, stride, inputs, {false}), inputs);
  EXPECT_TRUE(says(error_of("ReorgYolo", 2, stride, {counted({1, 2, 2, 2})}),
                   "stride 2 does not divide [1,2,2,2]"));
  EXPECT_TRUE(says(error_of("ReorgYolo", 2, stride, {counted({1, 4, 3, 2})}),
                   "stride 2 does not divide [1,4,3,2]"));
  EXPECT_TRUE(says(error_of("ReorgYolo", 2, attributes({{"stride", "0"}}), {counted({1, 4, 2, 2})}),
                   "stride must be positive"));
}

}  // namespace
}  // namespace clinfer::test
