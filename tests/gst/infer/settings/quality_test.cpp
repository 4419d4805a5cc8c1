// Times of quality-of-service events, at their ends as well.
#include "gst/infer/settings/quality.h"

#include <gtest/gtest.h>

namespace clinfer {
namespace {

constexpr GstClockTime kLast = GST_CLOCK_TIME_NONE - 1;

TEST(Quality, AsLateAgain) {
  EXPECT_EQ(earliest_in_time(1000, 0), 1000u);
  EXPECT_EQ(earliest_in_time(1000, 30), 1060u);
  EXPECT_EQ(earliest_in_time(1000, -30), 970u);
  EXPECT_EQ(earliest_in_time(1000, -1000), 0u);
  EXPECT_EQ(earliest_in_time(1000, -1001), 0u);
}

// A frame whose stamp is hours off is late by hours; those after it are not.
TEST(Quality, AWrongStampIsFollowedByASecond) {
  constexpr GstClockTimeDiff kHours = 10'000 * GST_SECOND;
  EXPECT_EQ(earliest_in_time(0, kHours), static_cast<GstClockTime>(kHours) + GST_SECOND);
}

TEST(Quality, NoTimeIsBeyondTheLast) {
  EXPECT_EQ(earliest_in_time(0, G_MAXINT64), static_cast<GstClockTime>(G_MAXINT64) + GST_SECOND);
  EXPECT_EQ(earliest_in_time(kLast - G_MAXINT64, G_MAXINT64), kLast);
  EXPECT_EQ(earliest_in_time(kLast, 1), kLast);
  EXPECT_EQ(earliest_in_time(kLast, G_MAXINT64), kLast);
  EXPECT_EQ(earliest_in_time(kLast, G_MININT64), kLast - (GstClockTime{1} << 63));
  EXPECT_EQ(earliest_in_time(0, G_MININT64), 0u);
}

TEST(Quality, DifferencesAreBounded) {
  EXPECT_EQ(difference(10, 4), -6);
  EXPECT_EQ(difference(4, 10), 6);
  EXPECT_EQ(difference(0, kLast), G_MAXINT64);
  EXPECT_EQ(difference(kLast, 0), -G_MAXINT64);
}

}  // namespace
}  // namespace clinfer
