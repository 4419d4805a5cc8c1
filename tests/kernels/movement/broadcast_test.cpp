// Broadcast and Tile: values, the view, the kernel, refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

TEST(Broadcast, Values) {
  EXPECT_EQ(run("Broadcast", 1, {}, {floats({2, 1}, {1, 2}), ints({2, 2, 2})})[0].to_floats(),
            (std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2}));
  const Attributes by_axes = attributes({{"mode", "explicit"}});
  EXPECT_EQ(
      run("Broadcast", 3, by_axes, {floats({2}, {1, 2}), ints({2, 3}), ints({0})})[0].to_floats(),
      (std::vector<float>{1, 1, 1, 2, 2, 2}));
  const Attributes both = attributes({{"mode", "bidirectional"}});
  EXPECT_EQ(run("Broadcast", 3, both, {counted({2, 1, 3}), ints({4, 1})})[0].shape(),
            (Shape{2, 4, 3}));
  EXPECT_EQ(run("Broadcast", 1, {}, {floats({}, {7}), ints({3})})[0].to_floats(),
            (std::vector<float>{7, 7, 7}));
}

TEST(Broadcast, Views) {
  check_views("Broadcast", 1, {}, {counted({1, 6, 1, 1}), ints({2, 6, 3, 4})});
  check_views("Broadcast", 3, attributes({{"mode", "bidirectional"}}),
              {counted({2, 6, 1, 4}), ints({3, 1})});
  check_views("Broadcast", 1, attributes({{"mode", "explicit"}}),
              {counted({3, 4}), ints({2, 3, 5, 4}), ints({1, 3})});
}

TEST(Broadcast, Refuses) {
  EXPECT_TRUE(
      says(error_of("Broadcast", 1, {}, {counted({2}), ints({3})}), "cannot broadcast [2] to [3]"));
  EXPECT_TRUE(says(error_of("Broadcast", 1, {}, {counted({2, 2}), ints({2})}),
                   "cannot broadcast [2,2] to [2]"));
  EXPECT_TRUE(says(error_of("Broadcast", 1, {}, {counted({1}), ints({-1})}),
                   "a dimension is negative in [-1]"));
  EXPECT_TRUE(says(error_of("Broadcast", 1, {}, {counted({1}), ints({1 << 20, 1 << 20})}),
                   "a tensor of more than 2^31 - 1 elements"));
  const Attributes by_axes = attributes({{"mode", "explicit"}});
  for (const auto& axes : std::vector<std::vector<int64_t>>{{0}, {1, 0}, {0, 2}, {0, 0}})
    EXPECT_TRUE(says(error_of("Broadcast", 1, by_axes, {counted({1, 1}), ints({2, 3}), ints(axes)}),
                     axes.size() == 1 ? "axes_mapping has 1 entries for 2 dimensions"
                                      : "axes_mapping " + to_string(axes) +
                                            " must rise and name dimensions of [2,3]"))
        << to_string(axes);
  EXPECT_TRUE(says(
      error_of("Broadcast", 1, attributes({{"mode", "bidirectional"}}), {counted({1}), ints({2})}),
      "mode \"bidirectional\" of opset1"));
}

TEST(Tile, Values) {
  EXPECT_EQ(run("Tile", 1, {}, {floats({2, 1}, {1, 2}), ints({1, 2})})[0].to_floats(),
            (std::vector<float>{1, 1, 2, 2}));
  EXPECT_EQ(run("Tile", 1, {}, {floats({2}, {1, 2}), ints({2, 2})})[0].to_floats(),
            (std::vector<float>{1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(run("Tile", 1, {}, {floats({1, 2}, {1, 2}), ints({0})})[0].shape(), (Shape{1, 0}));
  EXPECT_TRUE(says(error_of("Tile", 1, {}, {counted({2}), ints({-1})}), "a dimension is negative"));
  EXPECT_TRUE(says(error_of("Tile", 1, {}, {counted({2}), ints({INT64_MAX})}),
                   "a tensor of more than 2^31 - 1 elements"));
}

TEST(Tile, Kernel) {
  for (const Shape& shape : {Shape{2, 5, 3, 4}, Shape{1, 7, 1, 33}}) {
    const std::vector<Tensor> inputs{random_tensor(shape), ints({2, 3, 1, 2})};
    OpDesc desc = make_desc("Tile", 1, {}, inputs, {false, true});
    check_op(desc, inputs);
    desc.inputs[0] = with_gaps(desc.inputs[0]);
    desc.outputs[0] = with_gaps(desc.outputs[0]);
    check_op(desc, inputs);
  }
  const std::vector<Tensor> bytes{random_ints(ElementType::u8, {5, 3}, 0, 255), ints({3, 2, 2})};
  check_op(make_desc("Tile", 1, {}, bytes, {false, true}), bytes);
}

}  // namespace
}  // namespace clinfer::test
