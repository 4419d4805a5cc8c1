// Numbers in the application's locale, which must not count.
#include "kernels/base/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/german_locale.h"

namespace clinfer {
namespace {

TEST(Numbers, AreReadAndWrittenWithAPointInEveryLocale) {
  const GermanLocale german;
  if (!german.is_set()) GTEST_SKIP() << "localedef makes no German locale";
  ASSERT_EQ(std::strtod("0.5", nullptr), 0) << "this locale has a point";
  char* end = nullptr;
  const char* const text = " -1.5e3x";
  EXPECT_EQ(number_at(text, &end), -1500);
  EXPECT_EQ(end, text + 7);
  EXPECT_EQ(number_at("0,5"), 0);
  EXPECT_TRUE(std::isinf(number_at("1e999")));
  EXPECT_EQ(number_at("none", &end), 0);
  PlainStream stream;
  stream << 1234567 << ' ' << 0.5;
  EXPECT_EQ(stream.str(), "1234567 0.5");
}

}  // namespace
}  // namespace clinfer
