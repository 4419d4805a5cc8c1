// Values for the structs that kernels take.
#include "kernels/arguments.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/base/error.h"
#include "kernels/kernel.h"

namespace clinfer::test {
namespace {

TEST(Arguments, RefusesWhatAnIntCannotHold) {
  EXPECT_EQ(to_int(-5), -5);
  EXPECT_EQ(to_int(int64_t{1} << 31 >> 1), 1 << 30);
  for (const int64_t value : {int64_t{1} << 31, -(int64_t{1} << 31) - 1}) try {
      to_int(value);
      ADD_FAILURE() << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_STREQ(error.what(), "a tensor lies beyond what a kernel can address");
    }
}

TEST(Arguments, SetsWholeArrays) {
  struct Loop {
    int64_t size, step;
  };
  int sizes[2], steps[2];
  const std::vector<Loop> loops{{3, 4}, {5, 6}};
  set_each(sizes, loops, &Loop::size);
  set_each(steps, loops, [](const Loop& loop) { return loop.step + 1; });
  EXPECT_EQ(sizes[0] * 10 + sizes[1], 35);
  EXPECT_EQ(steps[0] * 10 + steps[1], 57);
  int three[3];
  EXPECT_THROW(set_each(three, loops, &Loop::size), std::logic_error);
}

template <size_t DIMS>
struct Args {
  int size[DIMS];
  float scale;
};

TEST(Arguments, ChoosesTheLengthOfAStruct) {
  const auto bytes = [](size_t dims) {
    const auto argument = [](auto count) { return Argument::value(Args<count>{}); };
    return with_count<2, 4>(dims, argument).bytes.size();
  };
  EXPECT_EQ(bytes(2), 12u);
  EXPECT_EQ(bytes(4), 20u);
  EXPECT_THROW(bytes(3), std::logic_error);
}

}  // namespace
}  // namespace clinfer::test
