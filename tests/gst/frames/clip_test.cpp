// Networks that take the last frames of a stream.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/gst/harness.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

// A network of clips that gives the mean of each of their three frames. axes: those of the mean.
std::string clip_model(const std::string& name, const Shape& shape,
                       const std::vector<int64_t>& axes) {
  test::SmallIr ir(name);
  const int clip = ir.input(shape, "clip");
  ir.result(
      ir.add("ReduceMean", 1, "keep_dims=\"false\"", {clip, ir.integers(axes)}, {1, 3}, "means"));
  return ir.write(testing_models::folder());
}

// The means that came with a frame; empty: it was not inferred.
std::vector<float> means_of(GstBuffer* buffer) {
  const auto results = read_results(buffer);
  if (results.empty() || results[0].outcome != Outcome::run || results[0].tensors.empty())
    return {};
  std::vector<float> means(3);
  const auto& bytes = results[0].tensors[0].data;
  if (bytes == nullptr) return {};
  gsize size = 0;
  const void* data = g_bytes_get_data(bytes.get(), &size);
  if (size != means.size() * sizeof(float)) return {};
  std::memcpy(means.data(), data, size);
  return means;
}

Rgb grey(int n) {
  const auto level = static_cast<uint8_t>(20 + 20 * n);
  return {level, level, level};
}

TEST(Clips, TakeEachNthFrameOldestFirst) {
  const std::string models[] = {clip_model("ncthw", {1, 3, 3, 16, 16}, {1, 3, 4}),
                                clip_model("nthwc", {1, 3, 16, 24, 3}, {2, 3, 4})};
  for (const std::string& model : models)
    for (const int stride : {1, 2}) {
      Harness harness("clinfer model=" + model +
                      " post-process=none clip-stride=" + std::to_string(stride));
      harness.set_caps("BGR", 40, 30);
      for (int n = 0; n < 9; ++n) {
        ASSERT_EQ(harness.push(grey(n), n), GST_FLOW_OK);
        const auto out = harness.pull();
        const bool runs = n % stride == 0 && n >= 2 * stride;
        const std::vector<float> means = means_of(out.get());
        ASSERT_EQ(means.size(), runs ? 3u : 0u) << model << " frame " << n;
        for (int k = 0; runs && k < 3; ++k)
          EXPECT_NEAR(means[static_cast<size_t>(k)],
                      static_cast<float>(20 + 20 * (n - (2 - k) * stride)), 0.01f)
              << model << " frame " << n;
      }
    }
}

// Frames before a change of format are no part of the clip any more.
TEST(Clips, BeginAnewWithOtherCaps) {
  Harness harness("clinfer model=" + clip_model("ncthw-caps", {1, 3, 3, 16, 16}, {1, 3, 4}) +
                  " post-process=none");
  harness.set_caps("BGR", 40, 30);
  for (int n = 0; n < 3; ++n) {
    ASSERT_EQ(harness.push(grey(n), n), GST_FLOW_OK);
    EXPECT_EQ(means_of(harness.pull().get()).empty(), n < 2);
  }
  harness.set_caps("NV12", 64, 48);
  for (int n = 3; n < 6; ++n) {
    ASSERT_EQ(harness.push(grey(n), n), GST_FLOW_OK);
    EXPECT_EQ(means_of(harness.pull().get()).empty(), n < 5);
  }
}

// reshape=frame: the network gets the frame's size, rounded up to multiples of 32.
TEST(Reshape, FollowsTheFrame) {
  Harness harness("clinfer model=" + testing_models::blocks_model() +
                  " reshape=frame post-process=none");
  const auto dims_for = [&](int width, int height) {
    harness.set_caps("BGR", width, height);
    EXPECT_EQ(harness.push(kBlue, 0), GST_FLOW_OK);
    const auto results = read_results(harness.pull().get());
    return results.empty() || results[0].tensors.empty() ? std::vector<int>()
                                                         : results[0].tensors[0].dims;
  };
  EXPECT_EQ(dims_for(60, 33), (std::vector<int>{1, 1, 16, 16}));
  EXPECT_EQ(dims_for(128, 96), (std::vector<int>{1, 1, 24, 32}));
}

}  // namespace
}  // namespace clinfer
