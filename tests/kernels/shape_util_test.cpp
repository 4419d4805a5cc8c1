// Code by element type and by index that operations share.
#include "kernels/shape_util.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/says.h"

namespace clinfer {
namespace {

constexpr ElementType kNumbers[] = {ElementType::f32, ElementType::f64,     ElementType::i8,
                                    ElementType::u8,  ElementType::boolean, ElementType::i16,
                                    ElementType::u16, ElementType::i32,     ElementType::u32,
                                    ElementType::i64, ElementType::u64};

TEST(ShapeUtil, QuotientsAreExact) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  std::vector<int64_t> divisors = {641, 65535, 65536, 65537, 1000003, kMost / 2, kMost - 1, kMost};
  for (int64_t d = 1; d <= 300; ++d) divisors.push_back(d);
  for (const int64_t d : divisors) {
    const Quotient by = quotient_by(d);
    const auto quotient = [&](int64_t n) {
      return static_cast<int64_t>(static_cast<uint64_t>(n) * by.scale >> by.shift);
    };
    // The largest numbers, and both sides of multiples.
    for (const int64_t multiple : {int64_t{1}, int64_t{2}, kMost / d / 3, kMost / d - 1, kMost / d})
      for (const int64_t n : {multiple * d - 1, multiple * d, multiple * d + 1})
        if (n >= 0 && n <= kMost) {
          EXPECT_EQ(quotient(n), n / d) << n << " / " << d;
        }
    EXPECT_EQ(quotient(0), 0) << d;
    EXPECT_EQ(quotient(kMost), kMost / d) << d;
  }
}

TEST(ShapeUtil, IntegersAreStoredInEachType) {
  for (const ElementType type : kNumbers) {
    Tensor tensor = Tensor::allocate(type, {3});
    store_ints(std::vector<int64_t>{0, 1, 1}, tensor);
    EXPECT_EQ(tensor.to_floats(), (std::vector<float>{0, 1, 1})) << name_of(type);
    if (type == ElementType::boolean) continue;
    store_ints(std::vector<int64_t>{3, 100, 7}, tensor);
    EXPECT_EQ(tensor.to_floats(), (std::vector<float>{3, 100, 7})) << name_of(type);
  }
  Tensor halves = Tensor::allocate(ElementType::f16, {1});
  try {
    store_ints(std::vector<int64_t>{1}, halves);
    FAIL() << "halves are no numbers on the host";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_TRUE(test::says(error.what(), "f16"));
  }
}

TEST(ShapeUtil, ElementsAreMovedByTheirSize) {
  for (const ElementType type : kNumbers) {
    size_t size = 0;
    with_size(type, [&](auto zero) { size = sizeof zero; });
    EXPECT_EQ(size, size_of(type)) << name_of(type);
  }
}

TEST(ShapeUtil, IndicesGoInRowMajorOrder) {
  const Shape shape{2, 1, 3};
  Shape index(3);
  std::vector<Shape> seen{index};
  while (next_index(index, shape)) seen.push_back(index);
  EXPECT_EQ(seen,
            (std::vector<Shape>{{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {1, 0, 0}, {1, 0, 1}, {1, 0, 2}}));
  EXPECT_EQ(index, (Shape{0, 0, 0})) << "and begins again";
  Shape none;
  EXPECT_FALSE(next_index(none, {})) << "a number has one element";
}

}  // namespace
}  // namespace clinfer
