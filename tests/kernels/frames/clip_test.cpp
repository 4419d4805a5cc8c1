// Clips: where each frame lies in the network's input.
#include "kernels/frames/clip.h"

#include <gtest/gtest.h>

namespace clinfer {
namespace {

TEST(Clip, FindsItsAxes) {
  const auto channels_first = clip_axes({1, 3, 16, 112, 96}, false);
  ASSERT_TRUE(channels_first);
  EXPECT_EQ(channels_first->frames, 2u);
  EXPECT_EQ(channels_first->channels, 1u);
  EXPECT_EQ(channels_first->height, 3u);
  const auto frames_first = clip_axes({1, 8, 3, 112, 96}, false);
  ASSERT_TRUE(frames_first);
  EXPECT_EQ(frames_first->frames, 1u);
  EXPECT_EQ(frames_first->channels, 2u);
  const auto last = clip_axes({1, 8, 112, 96, 3}, true);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->frames, 1u);
  EXPECT_EQ(last->width, 3u);
  EXPECT_EQ(clip_axes({1, 1, 3, 4, 20, 30}, false)->frames, 3u);
  EXPECT_FALSE(clip_axes({1, 3, 112, 96}, false));
  EXPECT_FALSE(clip_axes({1, 2, 3, 4, 20, 30}, false));
  EXPECT_FALSE(clip_axes({1, 8, 112, 96, 4}, true));
}

// Every element of the input belongs to one image, at the place where the layout has it.
TEST(Clip, EveryElementBelongsToOneImage) {
  struct Layout {
    Shape shape;
    bool nhwc;
    size_t frames, channels, height, width;
  };
  for (const Layout& layout :
       {Layout{{2, 3, 4, 5, 6}, false, 2, 1, 3, 4}, Layout{{2, 4, 3, 5, 6}, false, 1, 2, 3, 4},
        Layout{{2, 4, 5, 6, 3}, true, 1, 4, 2, 3}}) {
    const TensorDesc all = TensorDesc::row_major(ElementType::f32, layout.shape);
    EXPECT_EQ(images_of(layout.shape, layout.nhwc), 8);
    for (int64_t image = 0; image < 8; ++image) {
      int index = -1;
      const TensorDesc one = image_in(all, layout.nhwc, image, index);
      ASSERT_EQ(one.shape.size(), 4u);
      EXPECT_LT(index, one.shape[0]);
      const int64_t begin = one.strides[0] * index;
      EXPECT_EQ(begin, image / 4 * all.strides[0] + image % 4 * all.strides[layout.frames]);
      const size_t c = layout.nhwc ? 3 : 1, y = layout.nhwc ? 1 : 2;
      EXPECT_EQ(one.strides[c], all.strides[layout.channels]);
      EXPECT_EQ(one.strides[y], all.strides[layout.height]);
      EXPECT_EQ(one.strides[y + 1], all.strides[layout.width]);
      EXPECT_EQ(one.shape[c], 3);
      EXPECT_EQ(one.shape[y], 5);
      EXPECT_EQ(one.shape[y + 1], 6);
    }
  }
  const TensorDesc picture = TensorDesc::row_major(ElementType::f32, {4, 3, 5, 6});
  int index = -1;
  EXPECT_EQ(image_in(picture, false, 3, index), picture);
  EXPECT_EQ(index, 3);
}

}  // namespace
}  // namespace clinfer
