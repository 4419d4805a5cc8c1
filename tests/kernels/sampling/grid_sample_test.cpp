// GridSample: values by hand, the kernel against evaluate(), refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

// A row of 1, 2, 3, 4 at coordinate x.
float sampled(float x, const Attributes& attributes) {
  return run("GridSample", 9, attributes,
             {floats({1, 1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 1, 2}, {x, 0})}, 1, 2)[0]
      .to_floats()[0];
}

TEST(GridSample, Values) {
  EXPECT_FLOAT_EQ(sampled(0, sampling("bilinear", "zeros", "false")), 2.5f);
  EXPECT_FLOAT_EQ(sampled(-1, sampling("bilinear", "zeros", "false")), 0.5f);
  EXPECT_FLOAT_EQ(sampled(-1, sampling("bilinear", "zeros", "true")), 1);
  EXPECT_FLOAT_EQ(sampled(-1, sampling("bilinear", "border", "false")), 1);
  EXPECT_FLOAT_EQ(sampled(-1.5f, sampling("bilinear", "reflection", "false")), 1.5f);  // place -1.5
  EXPECT_FLOAT_EQ(sampled(5 / 3.0f, sampling("bilinear", "reflection", "true")), 3);   // place 4
  EXPECT_FLOAT_EQ(sampled(-0.5f, sampling("nearest", "zeros", "false")), 1);  // place 0.5, to even
  EXPECT_FLOAT_EQ(sampled(0.9f, sampling("nearest", "zeros", "true")), 4);
  EXPECT_FLOAT_EQ(sampled(1.6f, sampling("nearest", "zeros", "true")), 0);
  EXPECT_FLOAT_EQ(sampled(1e30f, sampling("nearest", "border", "true")), 4);
  EXPECT_FLOAT_EQ(sampled(0, sampling("bicubic", "border", "false")), 2.5f);
}

TEST(GridSample, Kernel) {
  for (const char* mode : {"nearest", "bilinear", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"}) {
      const std::vector<Tensor> inputs{random_tensor({2, 4, 5, 6}),
                                       random_tensor({2, 3, 7, 2}, -1.9f, 1.9f, 2)};
      const char* align = padding[0] == 'b' ? "true" : "false";
      check_op(make_desc("GridSample", 9, sampling(mode, padding, align), inputs, {false, false}),
               inputs);
    }
  const std::vector<Tensor> odd{random_tensor({1, 3, 5, 1}), random_tensor({1, 2, 2, 2}, -3, 3, 2)};
  OpDesc desc =
      make_desc("GridSample", 9, sampling("bilinear", "reflection", "true"), odd, {false, false});
  desc.tail.push_back({"relu"});
  for (TensorDesc& input : desc.inputs) input = with_gaps(input);
  desc.outputs[0] = with_gaps(desc.outputs[0]);
  check_op(desc, odd);
}

TEST(GridSample, Refuses) {
  const auto refused = [](Shape data, Shape grid, const Attributes& attributes) {
    return error_of("GridSample", 9, attributes,
                    {random_tensor(std::move(data)), random_tensor(std::move(grid))}, 1, 2);
  };
  EXPECT_TRUE(says(refused({1, 1, 4, 4}, {2, 1, 1, 2}, {}),
                   "the grid [2,1,1,2] does not fit the data [1,1,4,4]"));
  EXPECT_TRUE(says(refused({1, 1, 4, 4}, {1, 1, 1, 3}, {}),
                   "the grid [1,1,1,3] does not fit the data [1,1,4,4]"));
  EXPECT_TRUE(says(refused({1, 4, 4}, {1, 1, 1, 2}, {}),
                   "the data has the shape [1,4,4], it must have 4 dimensions"));
  EXPECT_TRUE(says(refused({1, 1, 4, 4}, {1, 1, 1, 2}, sampling("linear", "zeros", "true")),
                   "unknown mode \"linear\""));
}

}  // namespace
}  // namespace clinfer::test
