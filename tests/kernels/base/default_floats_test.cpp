// Code of ours under applications that trap floating-point exceptions or round otherwise.
#include "kernels/base/default_floats.h"

#include <gtest/gtest.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <cmath>
#include <limits>
#include <thread>

namespace clinfer {
namespace {

constexpr int kTrapped = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW;

// Not computed by the compiler.
float quotient(float a, float b) {
  const volatile float x = a, y = b;
  return x / y;
}

// As an application's settings; afterwards those of the other tests are back.
class DefaultFloatsTest : public testing::Test {
 protected:
  DefaultFloatsTest() {
    std::fegetenv(&before_);
    std::feclearexcept(FE_ALL_EXCEPT);  // of earlier tests
  }
  ~DefaultFloatsTest() override { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
};

TEST_F(DefaultFloatsTest, TrapNothingAndGiveBackTheTraps) {
  feenableexcept(kTrapped);
  {
    const DefaultFloats floats;
    EXPECT_EQ(fegetexcept(), 0);
    EXPECT_EQ(quotient(1, 0), std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(quotient(0, 0)));
    {
      const DefaultFloats again;
      quotient(1, 0);
    }
    EXPECT_EQ(fegetexcept(), 0);
  }
  EXPECT_EQ(fegetexcept(), kTrapped);
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0) << "what was raised is the application's to see";
}

TEST_F(DefaultFloatsTest, ThreadsInheritThem) {
  feenableexcept(kTrapped);
  const DefaultFloats floats;
  std::thread([] { EXPECT_EQ(quotient(1, 0), std::numeric_limits<float>::infinity()); }).join();
}

TEST_F(DefaultFloatsTest, RoundToNearestAndGiveBackTheDirection) {
  std::fesetround(FE_UPWARD);
  {
    const DefaultFloats floats;
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    EXPECT_EQ(std::nearbyint(quotient(5, 4)), 1);
  }
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
}

#ifdef __SSE2__
// By the SSE unit's own controls, as audio applications set them.
TEST_F(DefaultFloatsTest, KeepDenormalsAndGiveBackTheFlushing) {
  constexpr unsigned kFlush = 0x8040, kTrapDivision = _MM_MASK_DIV_ZERO;
  _mm_setcsr((_mm_getcsr() | kFlush) & ~kTrapDivision);
  const unsigned before = _mm_getcsr();
  {
    const DefaultFloats floats;
    EXPECT_GT(quotient(std::numeric_limits<float>::min(), 2), 0);
    quotient(1, 0);
  }
  EXPECT_EQ(_mm_getcsr(), before);
  EXPECT_EQ(quotient(std::numeric_limits<float>::min(), 2), 0);
}
#endif

}  // namespace
}  // namespace clinfer
