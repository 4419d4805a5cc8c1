// NV12 and I420 to RGB and BGR, from one plane and from several.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

Tensor bytes(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::of(ElementType::u8, std::move(shape), values);
}

// A picture of two by four pixels: black, white and two greys with one pair of U and V, then
// another colour.
const std::vector<int64_t> kLuma{16, 235, 81, 81, 100, 150, 81, 81};
// 1.164 * (y - 16) and the colours computed by hand, with U, V of 128, 128 and of 90, 240 (red).
const std::vector<int64_t> kRgb{0,  0,  0,  255, 255, 255, 254, 0, 0, 254, 0, 0,
                                98, 98, 98, 156, 156, 156, 254, 0, 0, 254, 0, 0};

std::vector<int64_t> swapped(std::vector<int64_t> values) {
  for (size_t i = 0; i < values.size(); i += 3) std::swap(values[i], values[i + 2]);
  return values;
}

TEST(ColorConvert, Planes) {
  const Tensor y = bytes({1, 2, 4, 1}, kLuma), u = bytes({1, 1, 2, 1}, {128, 90}),
               v = bytes({1, 1, 2, 1}, {128, 240}), uv = bytes({1, 1, 2, 2}, {128, 128, 90, 240});
  EXPECT_EQ(run("NV12toRGB", 8, {}, {y, uv})[0].to_ints(), kRgb);
  EXPECT_EQ(run("NV12toBGR", 8, {}, {y, uv})[0].to_ints(), swapped(kRgb));
  EXPECT_EQ(run("I420toRGB", 8, {}, {y, u, v})[0].to_ints(), kRgb);
  EXPECT_EQ(run("I420toBGR", 8, {}, {y, u, v})[0].shape(), (Shape{1, 2, 4, 3}));
}

TEST(ColorConvert, OnePlane) {
  std::vector<int64_t> nv12 = kLuma, i420 = kLuma;
  for (int64_t value : {128, 128, 90, 240}) nv12.push_back(value);
  for (int64_t value : {128, 90, 128, 240}) i420.push_back(value);
  EXPECT_EQ(run("NV12toRGB", 8, {}, {bytes({1, 3, 4, 1}, nv12)})[0].to_ints(), kRgb);
  EXPECT_EQ(run("I420toBGR", 8, {}, {bytes({1, 3, 4, 1}, i420)})[0].to_ints(), swapped(kRgb));
  const Tensor floats = bytes({1, 3, 4, 1}, nv12).convert(ElementType::f32);
  const std::vector<float> got = run("NV12toRGB", 8, {}, {floats})[0].to_floats();
  EXPECT_NEAR(got[12], 1.164f * 84, 1e-4);  // not rounded
}

TEST(ColorConvert, Refuses) {
  const Tensor y = bytes({1, 2, 4, 1}, kLuma), uv = bytes({1, 1, 2, 2}, {128, 128, 90, 240});
  EXPECT_TRUE(says(error_of("NV12toRGB", 8, {}, {y}),
                   "a picture cannot have planes of the shape "
                   "[1,2,4,1]"));  // two rows cannot hold three half planes
  EXPECT_TRUE(says(error_of("I420toRGB", 8, {}, {y, uv}), "takes one plane or 3"));
  EXPECT_TRUE(says(error_of("NV12toRGB", 8, {}, {y, y}),
                   "the colours [1,2,4,1] do not fit the picture [1,2,4,1]"));
  EXPECT_TRUE(says(error_of("NV12toRGB", 8, {}, {y, uv.convert(ElementType::f32)}),
                   "the planes differ in type"));
  EXPECT_TRUE(says(error_of("NV12toRGB", 8, {}, {bytes({1, 3, 1, 1}, {1, 2, 3})}),
                   "a picture cannot have planes of the shape [1,3,1,1]"));
}

}  // namespace
}  // namespace clinfer::test
