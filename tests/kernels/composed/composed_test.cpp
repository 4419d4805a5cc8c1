// Small operations made of others: values computed by hand, refusals.
#include <limits>

#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

TEST(Roll, Values) {
  EXPECT_EQ(run("Roll", 7, {}, {counted({2, 3}), ints({1}), ints({1})})[0].to_floats(),
            (Floats{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(run("Roll", 7, {}, {counted({2, 3}), ints({-1, 3}), ints({-1, 0})})[0].to_floats(),
            (Floats{4, 5, 3, 1, 2, 0}));
  EXPECT_EQ(run("Roll", 7, {}, {counted({5}), ints({2, 1}), ints({0, 0})})[0].to_floats(),
            (Floats{2, 3, 4, 0, 1}));
  EXPECT_EQ(run("Roll", 7, {}, {counted({2, 3}), scalar(6), ints({0, 1})})[0].to_floats(),
            (Floats{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(says(error_of("Roll", 7, {}, {counted({5}), ints({1}), ints({1})}),
                   "axis 1 is out of range for 1 dimensions"));
  EXPECT_TRUE(says(error_of("Roll", 7, {}, {counted({5}), ints({1, 2, 3}), ints({0, 0})}),
                   "shift and axes differ in length"));
}

std::vector<float> scattered(const Shape& shape, const Tensor& updates, const Ints& start,
                             const Ints& stop, const Ints& step, const Ints& axes) {
  return run("SliceScatter", 15, {},
             {counted(shape), updates, ints(start), ints(stop), ints(step), ints(axes)}, 1, 2)[0]
      .to_floats();
}

TEST(SliceScatter, Values) {
  EXPECT_EQ(scattered({2, 4}, floats({2, 2}, {9, 8, 7, 6}), {1}, {3}, {1}, {1}),
            (Floats{0, 9, 8, 3, 4, 7, 6, 7}));
  EXPECT_EQ(scattered({6}, floats({3}, {9, 8, 7}), {-1}, {-100}, {-2}, {0}),
            (Floats{0, 7, 2, 8, 4, 9}));
  EXPECT_EQ(scattered({3, 4}, floats({1, 2}, {9, 8}), {2, 0}, {3, 4}, {1, 2}, {0, -1}),
            (Floats{0, 1, 2, 3, 4, 5, 6, 7, 9, 9, 8, 11}));
  EXPECT_TRUE(says(error_of("SliceScatter", 15, {},
                            {counted({4}), counted({3}), ints({0}), ints({2}), ints({1})}, 1, 2),
                   "the updates [3] are not of the shape [2]"));
  EXPECT_TRUE(says(error_of("SliceScatter", 15, {},
                            {counted({4}), counted({2}), ints({0}), ints({2}), ints({0})}, 1, 2),
                   "a step is 0"));
}

TEST(Col2Im, SumsWhatOverlaps) {
  // Two positions of a window of 2 on a row of 3.
  const Tensor columns = floats({1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run("Col2Im", 15, {}, {columns, ints({1, 3}), ints({1, 2})})[0].to_floats(),
            (Floats{1, 5, 4}));
  // Columns that the stride skips, and pads, contribute nothing.
  const Tensor one = run("Col2Im", 15, attributes({{"strides", "2,2"}, {"pads_begin", "0,1"}}),
                         {floats({2, 1}, {5, 7}), ints({1, 2}), ints({1, 2})})[0];
  EXPECT_EQ(one.shape(), (Shape{1, 1, 2}));
  EXPECT_EQ(one.to_floats(), (Floats{7, 0}));
  EXPECT_TRUE(says(error_of("Col2Im", 15, {}, {columns, ints({1, 4}), ints({1, 2})}),
                   "the data [1,2,2] are not columns of 2 values at [1,3] places"));
  EXPECT_TRUE(says(error_of("Col2Im", 15, {}, {columns, ints({1, 3}), ints({1, 3})}),
                   "the data [1,2,2] are not columns of 3 values at [1,1] places"));
}

TEST(NumberTests, Values) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = floats({4}, {1, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(run("IsNaN", 10, {}, {x})[0].to_ints(), (Ints{0, 0, 0, 1}));
  EXPECT_EQ(run("IsFinite", 10, {}, {x})[0].to_ints(), (Ints{1, 0, 0, 0}));
  const auto is_inf = [&](const char* negative, const char* positive) {
    return run("IsInf", 10,
               attributes({{"detect_negative", negative}, {"detect_positive", positive}}), {x})[0]
        .to_ints();
  };
  EXPECT_EQ(is_inf("true", "true"), (Ints{0, 1, 1, 0}));
  EXPECT_EQ(is_inf("true", "false"), (Ints{0, 0, 1, 0}));
  EXPECT_EQ(is_inf("false", "true"), (Ints{0, 1, 0, 0}));
  EXPECT_EQ(is_inf("false", "false"), (Ints{0, 0, 0, 0}));
  EXPECT_EQ(run("Identity", 16, {}, {counted({3})})[0].to_floats(), (Floats{0, 1, 2}));
}

// (to float8(x * scale - shift) + shift) / scale, limited to the format's numbers
TEST(FakeConvert, RoundsScaledValues) {
  const auto number = [](float value) {
    return Tensor::of(ElementType::f32, {1}, std::vector<float>{value});
  };
  const Tensor x = Tensor::of(ElementType::f32, {4}, std::vector<float>{1, 1.07f, 300, -1e6f});
  const std::vector<Tensor> inputs{x, number(2), number(1)};
  EXPECT_EQ(
      run("FakeConvert", 13, attributes({{"destination_type", "f8e4m3"}}), inputs)[0].to_floats(),
      (Floats{1, 1.0625f, 224.5f, -223.5f}));
  EXPECT_EQ(run("FakeConvert", 13, attributes({{"destination_type", "f8e5m2"}}),
                {inputs[0], inputs[1]})[0]
                .to_floats(),
            (Floats{1, 1, 320, -28672}));
  EXPECT_THROW(run("FakeConvert", 13, {}, {number(1), x}), Error);
}

TEST(ConvertPromoteTypes, PicksTheWiderType) {
  const auto type_of = [](ElementType a, Shape shape_a, ElementType b, const char* scalars) {
    const std::vector<Tensor> inputs{Tensor::allocate(a, std::move(shape_a)),
                                     Tensor::allocate(b, {2})};
    const std::vector<Tensor> out =
        run("ConvertPromoteTypes", 14, attributes({{"pytorch_scalar_promotion", scalars}}), inputs,
            2, 2);
    EXPECT_EQ(out[0].type(), out[1].type());
    return out[0].type();
  };
  EXPECT_EQ(type_of(ElementType::i32, {2}, ElementType::i64, "false"), ElementType::i64);
  EXPECT_EQ(type_of(ElementType::i64, {2}, ElementType::f32, "false"), ElementType::f32);
  EXPECT_EQ(type_of(ElementType::u8, {2}, ElementType::i8, "false"), ElementType::i16);
  EXPECT_EQ(type_of(ElementType::boolean, {2}, ElementType::u8, "false"), ElementType::u8);
  EXPECT_EQ(type_of(ElementType::i64, {}, ElementType::i32, "true"), ElementType::i32);
  EXPECT_EQ(type_of(ElementType::i64, {}, ElementType::i32, "false"), ElementType::i64);
}

}  // namespace
}  // namespace clinfer::test
