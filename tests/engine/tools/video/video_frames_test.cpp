// Which frames of a video are taken, and how they lie in memory.
#include "engine/tools/video/video_frames.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"

namespace clinfer {
namespace {

TEST(VideoFrames, LieAsGStreamerLaysThemOut) {
  const FrameLayout layout = layout_of(
      "video/x-raw, format=(string)I420, width=(int)322, height=(int)181, "
      "framerate=(fraction)30/1, colorimetry=(string)bt709");
  EXPECT_EQ(layout.frame.strides[0], 324);
  EXPECT_EQ(layout.frame.strides[1], 164);
  EXPECT_EQ(layout.offsets[1], 324u * 182);
  EXPECT_EQ(layout.bytes, 324u * 182 + 2 * 164u * 91);
  EXPECT_EQ(layout.frame.matrix, YuvMatrix::bt709);
  EXPECT_FALSE(layout.frame.full_range);
}

TEST(VideoFrames, TakeColoursByNumbers) {
  const auto colours = [](const std::string& text) {
    return layout_of("video/x-raw, format=(string)I420, width=(int)4, height=(int)4, colorimetry=" +
                     text)
        .frame;
  };
  EXPECT_EQ(colours("(string)2:6:5:1").matrix, YuvMatrix::bt2020);
  EXPECT_EQ(colours("(string)1:4:0:1").matrix, YuvMatrix::bt601);
  EXPECT_TRUE(colours("(string)1:4:0:1").full_range);
  EXPECT_EQ(colours("(string)bt601").matrix, YuvMatrix::bt601);
}

TEST(VideoFrames, StateTheProportionsOfTheirPixels) {
  const std::string caps = "video/x-raw, format=(string)I420, width=(int)4, height=(int)4";
  EXPECT_EQ(layout_of(caps).frame.pixel_aspect, 1);
  EXPECT_DOUBLE_EQ(layout_of(caps + ", pixel-aspect-ratio=(fraction)12/11").frame.pixel_aspect,
                   12.0 / 11);
  EXPECT_THROW(layout_of(caps + ", pixel-aspect-ratio=(fraction)1/0"), Error);
  EXPECT_THROW(layout_of(caps + ", pixel-aspect-ratio=(fraction)2"), Error);
}

TEST(VideoFrames, RefuseWhatTheyCannotRead) {
  EXPECT_THROW(layout_of("video/x-raw, format=(string)RGB, width=(int)4, height=(int)4"), Error);
  EXPECT_THROW(layout_of("video/x-raw, format=(string)I420, width=(int)4"), Error);
  EXPECT_THROW(layout_of("video/x-raw, format=(string)I420, width=(int)99999, height=(int)4"),
               Error);
}

TEST(EvenSample, SpreadsOverAnyLength) {
  for (const size_t length : {1, 3, 10, 19, 20, 21, 77, 1000, 12345}) {
    EvenSample sample(10);
    for (size_t i = 0; i < length; ++i) sample.wants(i);
    const std::vector<size_t> chosen = sample.chosen();
    EXPECT_EQ(chosen.size(), std::min<size_t>(length, 10)) << length;
    EXPECT_EQ(chosen.front(), 0u);
    EXPECT_GE(chosen.back() + 1, length * 3 / 4) << length;
    const size_t wanted = length / chosen.size();
    for (size_t i = 1; i < chosen.size(); ++i) {
      const size_t step = chosen[i] - chosen[i - 1];
      EXPECT_GE(step + 1, wanted / 2) << length;
      EXPECT_LE(step, 2 * wanted + 1) << length;
    }
  }
}

}  // namespace
}  // namespace clinfer
