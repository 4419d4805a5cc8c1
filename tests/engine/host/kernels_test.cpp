// The loops of the host's operations, for each instruction set that this processor has.
#include "engine/host/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/scalar_functions.h"

namespace clinfer::host {
namespace {

std::vector<float> random(size_t n, float low, float high, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(n);
  for (float& value : values) value = distribution(engine);
  return values;
}

class HostKernels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    kernels_ = find_kernels(GetParam());
    if (kernels_ == nullptr) GTEST_SKIP() << "this processor has no " << GetParam();
  }
  const Kernels* kernels_ = nullptr;
};

TEST_P(HostKernels, MultiplyATile) {
  const int64_t depth = 37, stride = kernels_->columns + 3;
  const auto columns = static_cast<size_t>(kernels_->columns);
  const std::vector<float> a = random(depth * kTileRows, -1, 1, 1),
                           b = random(depth * columns, -1, 1, 2);
  for (const bool add : {false, true}) {
    std::vector<float> c = random(kTileRows * static_cast<size_t>(stride), -1, 1, 3);
    const std::vector<float> before = c;
    kernels_->tile(depth, a.data(), b.data(), c.data(), stride, add);
    for (size_t r = 0; r < kTileRows; ++r)
      for (size_t i = 0; i < static_cast<size_t>(stride); ++i) {
        const size_t at = r * static_cast<size_t>(stride) + i;
        double wanted = i >= columns || add ? before[at] : 0;
        for (size_t k = 0; i < columns && k < static_cast<size_t>(depth); ++k)
          wanted += static_cast<double>(a[k * kTileRows + r]) * b[k * columns + i];
        ASSERT_NEAR(c[at], wanted, 1e-5) << r << ", " << i;
      }
  }
}

TEST_P(HostKernels, CombineRows) {
  for (const int64_t n : {1, 3, 16, 31, 100}) {
    const auto size = static_cast<size_t>(n);
    const std::vector<float> first = random(size, -1, 1, 1), second = random(size, -1, 1, 2),
                             third = random(size, -1, 1, 3);
    const float* const rows[] = {first.data(), second.data(), third.data()};
    const float weights[] = {0.5f, -2, 3};
    std::vector<float> sums(size), most(size);
    kernels_->weigh(sums.data(), rows, weights, 3, n);
    kernels_->largest(most.data(), rows, 3, n);
    double product = 0;
    for (size_t i = 0; i < size; ++i) {
      ASSERT_NEAR(sums[i], 0.5f * first[i] - 2 * second[i] + 3 * third[i], 1e-5);
      ASSERT_EQ(most[i], std::max({first[i], second[i], third[i]}));
      product += static_cast<double>(first[i]) * second[i];
    }
    EXPECT_NEAR(kernels_->dot(first.data(), second.data(), n), product, 1e-5);
  }
}

// Against the plain functions, on numbers of any size and for lengths that no vector divides.
TEST_P(HostKernels, ComputeTheFunctionsOfOneElement) {
  size_t found = 0;
  for (const char* name :
       {"relu", "clamp", "linear", "square", "negative", "hard_sigmoid", "hsigmoid", "hswish",
        "exp", "sigmoid", "swish", "elu", "mish", "to_level"}) {
    SCOPED_TRACE(name);
    const UnaryLoop loop = kernels_->unary(name);
    ASSERT_NE(loop, nullptr);
    const UnaryFunction* function = find_unary(name);
    ASSERT_NE(function, nullptr);
    ++found;
    const bool levels = std::string_view(name) == "to_level";
    const float alpha = levels ? 0 : 0.3f, beta = levels ? 255.f : 1.7f;
    for (const auto& [n, low, high] :
         {std::tuple{1000, -6.f, 6.f}, std::tuple{7, -80.f, 80.f}, std::tuple{1, 0.f, 1.f}}) {
      const std::vector<float> before = random(static_cast<size_t>(n), low, high, 5);
      std::vector<float> after = before;
      loop(after.data(), n, alpha, beta);
      for (size_t i = 0; i < before.size(); ++i) {
        const float wanted = function->apply(before[i], alpha, beta);
        ASSERT_NEAR(after[i], wanted, 2e-6f * std::max(1.f, std::fabs(wanted))) << before[i];
      }
    }
  }
  EXPECT_EQ(found, 14u);
  EXPECT_EQ(kernels_->unary("acos"), nullptr);
}

TEST_P(HostKernels, ComputeTheFunctionsOfTwoElements) {
  for (const char* name : {"add", "subtract", "multiply", "divide", "maximum", "minimum", "prelu",
                           "squared_difference", "swish_by"}) {
    SCOPED_TRACE(name);
    const BinaryLoops loops = kernels_->binary(name);
    ASSERT_NE(loops.each, nullptr);
    const BinaryFunction* function = find_binary(name);
    for (const size_t n : {1u, 15u, 40u}) {
      const std::vector<float> x = random(n, -3, 3, 6), y = random(n, 0.5f, 2, 7);
      std::vector<float> each = x, one = x;
      loops.each(each.data(), y.data(), static_cast<int64_t>(n));
      loops.one(one.data(), y[0], static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(each[i], function->apply(x[i], y[i]), 2e-6f * 8);
        ASSERT_NEAR(one[i], function->apply(x[i], y[0]), 2e-6f * 8);
      }
    }
  }
  EXPECT_EQ(kernels_->binary("power").each, nullptr);
}

INSTANTIATE_TEST_SUITE_P(, HostKernels, testing::Values("plain", "avx2", "avx512"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace clinfer::host
