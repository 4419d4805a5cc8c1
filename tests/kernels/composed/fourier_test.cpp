// DFT, IDFT, RDFT, IRDFT: values computed by hand, round trips, sizes, refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

void expect_spectrum(const Tensor& got, const Shape& shape, const std::vector<float>& want) {
  EXPECT_EQ(got.shape(), shape);
  const std::vector<float> values = got.to_floats();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], 1e-4) << i;
}

TEST(Fourier, Values) {
  expect_spectrum(run("DFT", 7, {}, {floats({4, 2}, {1, 0, 2, 0, 3, 0, 4, 0}), ints({0})})[0],
                  {4, 2}, {10, 0, -2, 2, -2, 0, -2, -2});
  expect_spectrum(run("RDFT", 9, {}, {floats({4}, {1, 2, 3, 4}), ints({0})})[0], {3, 2},
                  {10, 0, -2, 2, -2, 0});
  expect_spectrum(run("RDFT", 9, {}, {floats({4}, {1, 2, 3, 4}), ints({0}), ints({2})})[0], {2, 2},
                  {3, 0, -1, 0});
  expect_spectrum(run("RDFT", 9, {}, {floats({2}, {3, 1}), ints({-1}), ints({4})})[0], {3, 2},
                  {4, 0, 3, -1, 2, 0});
  expect_spectrum(
      run("IRDFT", 9, {}, {floats({3, 2}, {10, 0, -2, 2, -2, 0}), ints({0}), ints({4})})[0], {4},
      {1, 2, 3, 4});
  expect_spectrum(run("IRDFT", 9, {}, {floats({2, 2}, {3, 0, -1, 0}), ints({0}), ints({3})})[0],
                  {3}, {0.333333f, 1.333333f, 1.333333f});
}

TEST(Fourier, BackAndForth) {
  const Tensor data = random_tensor({2, 5, 4, 6});
  const Tensor axes = ints({1, -1});
  const Tensor half = run("RDFT", 9, {}, {data, axes})[0];
  EXPECT_EQ(half.shape(), (Shape{2, 5, 4, 4, 2}));
  expect_spectrum(run("IRDFT", 9, {}, {half, axes, ints({5, 6})})[0], data.shape(),
                  data.to_floats());
  const Tensor pairs = random_tensor({3, 7, 2});
  const Tensor spectrum = run("DFT", 7, {}, {pairs, ints({0, 1})})[0];
  expect_spectrum(run("IDFT", 7, {}, {spectrum, ints({0, 1})})[0], pairs.shape(),
                  pairs.to_floats());
}

TEST(Fourier, FramesOfASignal) {
  const Attributes as_is = attributes({{"transpose_frames", "false"}}),
                   transposed = attributes({{"transpose_frames", "true"}});
  const Tensor signal = floats({7}, {1, 2, 3, 4, 0, -1, 5}), window = floats({2}, {1, 0.5f});
  // Frames of 4 at 0 and 2; the window keeps the two values in the middle of each.
  const std::vector<float> first{3.5f, 0, -1.5f, -2, -0.5f, 0}, second{4, 0, 0, -4, -4, 0};
  std::vector<float> both = first;
  both.insert(both.end(), second.begin(), second.end());
  expect_spectrum(run("STFT", 15, as_is, {signal, window, scalar(4), scalar(2)})[0], {2, 3, 2},
                  both);
  const std::vector<float> bins{3.5f, 0, 4, 0, -1.5f, -2, 0, -4, -0.5f, 0, -4, 0};
  expect_spectrum(run("STFT", 15, transposed, {signal, window, scalar(4), scalar(2)})[0], {3, 2, 2},
                  bins);
  const Tensor batch = random_tensor({2, 9});
  EXPECT_EQ(run("STFT", 15, as_is, {batch, window, scalar(3), scalar(3)})[0].shape(),
            (Shape{2, 3, 2, 2}));
  EXPECT_TRUE(says(error_of("STFT", 15, as_is, {signal, window, scalar(8), scalar(1)}),
                   "frames of 8 values, 1 apart, with a window of 2 do not fit a signal of 7"));
  EXPECT_TRUE(says(error_of("STFT", 15, as_is, {signal, window, scalar(1), scalar(1)}),
                   "frames of 1 values, 1 apart, with a window of 2 do not fit a signal of 7"));
  EXPECT_TRUE(says(error_of("STFT", 15, as_is, {signal, window, scalar(4), scalar(0)}),
                   "frames of 4 values, 0 apart, with a window of 2 do not fit a signal of 7"));
  // A model of a few bytes asks for more frames than fit into memory.
  EXPECT_NE(error_of("STFT", 15, as_is,
                     {counted({1 << 14}), counted({1 << 13}), scalar(1 << 13), scalar(1)})
                .find("indices"),
            std::string::npos);
}

TEST(Fourier, Refuses) {
  EXPECT_TRUE(says(error_of("DFT", 7, {}, {counted({4, 3}), ints({0})}),
                   "the data [4,3] are not pairs of a real and an imaginary part"));
  EXPECT_TRUE(says(error_of("DFT", 7, {}, {counted({4, 2}), ints({1})}),
                   "axis 1 is out of range for 1 dimensions"));
  EXPECT_TRUE(
      says(error_of("RDFT", 9, {}, {counted({4, 2}), ints({1, 1})}), "an axis is given twice"));
  EXPECT_TRUE(says(error_of("RDFT", 9, {}, {counted({4}), ints({0}), ints({0})}),
                   "a transform over 0 values"));
}

}  // namespace
}  // namespace clinfer::test
