// ROIPooling, PSROIPooling, DeformablePSROIPooling, ROIAlign: small grids computed by hand, hostile
// regions, refusals.
#include <cmath>

#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

const Tensor kMap = counted({1, 1, 4, 4});

std::vector<float> roi(const char* type, int opset, const Attributes& a, const Tensor& map,
                       std::vector<float> regions) {
  const int64_t n = static_cast<int64_t>(regions.size()) / 5;
  return run(type, opset, a, {map, floats({n, 5}, regions)}, 1, 2)[0].to_floats();
}

TEST(RoiPooling, Max) {
  const Attributes a = attributes(
      {{"pooled_h", "2"}, {"pooled_w", "2"}, {"spatial_scale", "0.5"}, {"method", "max"}});
  EXPECT_EQ(roi("ROIPooling", 2, a, kMap, {0, 0, 0, 6, 6}), (std::vector<float>{5, 7, 13, 15}));
  EXPECT_EQ(roi("ROIPooling", 2, a, kMap, {0, 2, 2, 2, 2}), (std::vector<float>{5, 5, 5, 5}));
  EXPECT_EQ(roi("ROIPooling", 2, a, kMap, {-1, 0, 0, 6, 6, 0, 0, 0, 6, 6}),
            std::vector<float>(8, 0.0f));  // -1 ends the list
}

TEST(RoiPooling, Bilinear) {
  const Attributes a =
      attributes({{"output_roi", "2,2"}, {"spatial_scale", "1"}, {"method", "bilinear"}});
  EXPECT_EQ(roi("ROIPooling", 2, a, kMap, {0, 0, 0, 1, 0.5f}), (std::vector<float>{0, 3, 6, 9}));
}

TEST(RoiPooling, HostileRegions) {
  const Attributes a =
      attributes({{"pooled_h", "2"}, {"pooled_w", "2"}, {"spatial_scale", "1"}, {"method", "max"}});
  const Attributes p = attributes(
      {{"output_dim", "1"}, {"group_size", "1"}, {"spatial_scale", "1"}, {"mode", "average"}});
  for (float bad : {1e30f, -1e30f, INFINITY, NAN, 7.0f}) {
    EXPECT_EQ(roi("ROIPooling", 2, a, kMap, {bad, 0, 0, 1, 1}), std::vector<float>(4, 0.0f)) << bad;
    EXPECT_EQ(roi("ROIPooling", 2, a, kMap, {0, bad, bad, bad, bad}).size(), 4u);
    EXPECT_EQ(roi("PSROIPooling", 1, p, kMap, {0, bad, bad, bad, bad}).size(), 1u);
  }
}

TEST(RoiPooling, PositionSensitive) {
  const Tensor map = counted({1, 4, 2, 2});
  const Attributes a = attributes(
      {{"output_dim", "1"}, {"group_size", "2"}, {"spatial_scale", "1"}, {"mode", "average"}});
  EXPECT_EQ(roi("PSROIPooling", 1, a, map, {0, 0, 0, 1, 1}), (std::vector<float>{0, 5, 10, 15}));
  const Attributes b = attributes({{"output_dim", "1"},
                                   {"group_size", "1"},
                                   {"spatial_scale", "1"},
                                   {"mode", "bilinear"},
                                   {"spatial_bins_x", "2"},
                                   {"spatial_bins_y", "2"}});
  // The centre of each quarter of the map, from the channel of that quarter.
  EXPECT_EQ(roi("PSROIPooling", 1, b, map, {0, 0, 0, 1, 1}),
            (std::vector<float>{(0.75f + 5.25f + 9.75f + 14.25f) / 4}));
}

TEST(RoiPooling, Deformable) {
  const Attributes a = attributes({{"output_dim", "1"},
                                   {"group_size", "1"},
                                   {"spatial_scale", "1"},
                                   {"trans_std", "0.5"},
                                   {"part_size", "1"},
                                   {"spatial_bins_x", "1"},
                                   {"spatial_bins_y", "1"}});
  const Tensor box = floats({1, 5}, {0, 1, 1, 2, 2});  // starts at 0.5, 0.5; two pixels wide
  EXPECT_EQ(run("DeformablePSROIPooling", 1, a, {kMap, box}, 1, 2)[0].to_floats(),
            (std::vector<float>{2.5f}));
  EXPECT_EQ(
      run("DeformablePSROIPooling", 1, a, {kMap, box, floats({1, 2, 1, 1}, {0.5f, 0})}, 1, 3)[0]
          .to_floats(),
      (std::vector<float>{3}));
}

TEST(RoiAlign, Values) {
  const auto align = [](int opset, const char* mode, const char* aligned, std::vector<float> box,
                        int64_t image = 0) {
    const Attributes a = attributes({{"pooled_h", "1"},
                                     {"pooled_w", "2"},
                                     {"sampling_ratio", "1"},
                                     {"spatial_scale", "1"},
                                     {"mode", mode},
                                     {"aligned_mode", aligned}});
    return run("ROIAlign", opset, a, {kMap, floats({1, 4}, box), ints({image})}, 1, 3)[0]
        .to_floats();
  };
  EXPECT_EQ(align(3, "avg", "half_pixel", {0, 0, 2, 2}), (std::vector<float>{4.5f, 5.5f}));
  EXPECT_EQ(align(9, "avg", "half_pixel_for_nn", {0.5f, 0.5f, 2.5f, 2.5f}),
            (std::vector<float>{4.5f, 5.5f}));
  EXPECT_EQ(align(9, "max", "half_pixel", {0, 0, 2, 2}), (std::vector<float>{4.5f, 5.5f}));
  EXPECT_EQ(align(3, "avg", "", {0, 0, 2, 2}, 1), (std::vector<float>{0, 0}));
  EXPECT_EQ(align(3, "avg", "", {NAN, INFINITY, -1e30f, 1e30f}).size(), 2u);
}

TEST(RoiPooling, Refuses) {
  const Tensor box = counted({1, 5});
  EXPECT_TRUE(says(error_of("ROIPooling", 2, attributes({{"pooled_h", "0"}, {"pooled_w", "1"}}),
                            {kMap, box}, 1, 2),
                   "attribute pooled_h is 0"));
  EXPECT_TRUE(says(error_of("ROIPooling", 2,
                            attributes({{"pooled_h", "1"}, {"pooled_w", "1"}, {"method", "mean"}}),
                            {kMap, box}, 1, 2),
                   "method \"mean\""));
  EXPECT_TRUE(says(error_of("ROIPooling", 2, attributes({{"pooled_h", "1"}, {"pooled_w", "1"}}),
                            {kMap, counted({1, 4})}, 1, 2),
                   "regions must be image, x0, y0, x1, y1, not [1,4]"));
  EXPECT_TRUE(
      says(error_of("PSROIPooling", 1, attributes({{"output_dim", "2"}, {"group_size", "2"}}),
                    {kMap, box}, 1, 2),
           "the features have 1 channels for 4 parts of 2"));
  EXPECT_TRUE(says(
      error_of(
          "ROIAlign", 3,
          attributes(
              {{"pooled_h", "1"}, {"pooled_w", "1"}, {"sampling_ratio", "257"}, {"mode", "avg"}}),
          {kMap, counted({1, 4}), ints({0})}, 1, 3),
      "sampling_ratio is 257"));
  EXPECT_TRUE(says(
      error_of("DeformablePSROIPooling", 1, attributes({{"output_dim", "1"}, {"part_size", "2"}}),
               {kMap, box, counted({1, 2, 1, 1})}, 1, 3),
      "the offsets have the shape [1,2,1,1]"));
}

// The kernel on regions inside, across and outside the map, and on missing images.
void check_kernel(const std::string& type, int opset, int64_t channels, const Attributes& a,
                  int64_t offsets = 0) {
  std::vector<Tensor> inputs{random_tensor({2, channels, 9, 8}, -1, 1, 1)};
  const std::vector<float> boxes{1, 2, 7, 6, -3,  -2,  4,   30,  0, 0, 0, 0,
                                 5, 5, 2, 1, -90, -90, -80, -80, 3, 3, 9, 9};
  const std::vector<int64_t> images{0, 1, 1, 0, 1, 7};
  if (type == "ROIAlign") {
    inputs.push_back(floats({6, 4}, boxes));
    inputs.push_back(ints(images).convert(ElementType::i32));
  } else {
    std::vector<float> rows;
    for (size_t r = 0; r < 6; ++r) {
      rows.push_back(static_cast<float>(images[r]));
      rows.insert(rows.end(), boxes.begin() + static_cast<int64_t>(r) * 4,
                  boxes.begin() + static_cast<int64_t>(r) * 4 + 4);
    }
    inputs.push_back(floats({6, 5}, rows));
    if (offsets) inputs.push_back(random_tensor({6, offsets, 2, 2}, -1, 1, 2));
  }
  OpDesc desc = make_desc(type, opset, a, inputs, {false, false, false});
  desc.inputs[0] = with_gaps(TensorDesc::channels_last(ElementType::f32, inputs[0].shape()));
  desc.outputs[0] = with_gaps(desc.outputs[0], 2, 1);
  check_op(desc, inputs);
}

TEST(RoiPooling, Kernel) {
  check_kernel(
      "ROIPooling", 2, 3,
      attributes(
          {{"pooled_h", "3"}, {"pooled_w", "2"}, {"spatial_scale", "0.8"}, {"method", "max"}}));
  check_kernel(
      "ROIPooling", 2, 3,
      attributes(
          {{"pooled_h", "3"}, {"pooled_w", "2"}, {"spatial_scale", "1"}, {"method", "bilinear"}}));
  check_kernel("PSROIPooling", 1, 18,
               attributes({{"output_dim", "2"},
                           {"group_size", "3"},
                           {"spatial_scale", "0.7"},
                           {"mode", "average"}}));
  check_kernel("PSROIPooling", 1, 12,
               attributes({{"output_dim", "2"},
                           {"group_size", "3"},
                           {"spatial_bins_x", "3"},
                           {"spatial_bins_y", "2"},
                           {"spatial_scale", "0.1"},
                           {"mode", "bilinear"}}));
}
TEST(RoiPooling, KernelWithOffsetsAndSamples) {
  const Attributes deformable = attributes({{"output_dim", "2"},
                                            {"group_size", "2"},
                                            {"part_size", "2"},
                                            {"spatial_bins_x", "2"},
                                            {"spatial_bins_y", "3"},
                                            {"spatial_scale", "0.8"},
                                            {"trans_std", "0.1"}});
  check_kernel("DeformablePSROIPooling", 1, 8, deformable);
  check_kernel("DeformablePSROIPooling", 1, 8, deformable, 4);
  check_kernel("ROIAlign", 9, 3,
               attributes({{"pooled_h", "3"},
                           {"pooled_w", "2"},
                           {"sampling_ratio", "2"},
                           {"spatial_scale", "0.9"},
                           {"mode", "avg"},
                           {"aligned_mode", "half_pixel"}}));
  check_kernel("ROIAlign", 3, 3,
               attributes({{"pooled_h", "2"},
                           {"pooled_w", "2"},
                           {"sampling_ratio", "0"},
                           {"spatial_scale", "0.9"},
                           {"mode", "max"}}));
}

TEST(RoiPooling, AlignsAsFinelyAsTheBinsArePyTorchsWay) {
  const auto result = [](const char* samples) {
    return run("ROIAlign", 9,
               attributes({{"pooled_h", "2"},
                           {"pooled_w", "2"},
                           {"sampling_ratio", samples},
                           {"spatial_scale", "1"},
                           {"mode", "max"},
                           {"aligned_mode", "half_pixel"}}),
               {counted({1, 1, 9, 9}), floats({1, 4}, {0.5f, 1, 8, 7}), ints({0})}, 1, 3)[0]
        .to_floats();
  };
  EXPECT_EQ(result("-1"), result("0"));
  EXPECT_NE(result("-1"), result("1"));
}

}  // namespace
}  // namespace clinfer::test
