// Proposal: anchors and deltas computed by hand, the end of the list, refusals.
#include <cmath>

#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

Attributes proposal_settings(std::initializer_list<std::pair<const char*, const char*>> more = {}) {
  Attributes a = attributes({{"base_size", "16"},
                             {"pre_nms_topn", "10"},
                             {"post_nms_topn", "2"},
                             {"nms_thresh", "0.5"},
                             {"feat_stride", "16"},
                             {"min_size", "4"},
                             {"ratio", "1"},
                             {"scale", "1"}});
  for (const auto& [name, value] : more) a.set(name, value);
  return a;
}

const Tensor kPicture = floats({3}, {64, 64, 1});

TEST(Proposal, MovesAnchors) {
  // One cell, one anchor 0..15, moved by a quarter to the right.
  const std::vector<Tensor> out = run(
      "Proposal", 4, proposal_settings(),
      {floats({1, 2, 1, 1}, {0.1f, 0.9f}), floats({1, 4, 1, 1}, {0.25f, 0, 0, 0}), kPicture}, 2, 2);
  EXPECT_EQ(out[0].shape(), (Shape{2, 5}));
  const std::vector<float> rows = out[0].to_floats();
  EXPECT_EQ((std::vector<float>(rows.begin(), rows.begin() + 5)),
            (std::vector<float>{0, 4, 0, 20, 16}));
  EXPECT_EQ(rows[5], -1);
  EXPECT_EQ(out[1].to_floats(), (std::vector<float>{0.9f, 0}));
}

TEST(Proposal, SortsSuppressesAndNormalizes) {
  // Two adjacent cells, of which the right one has the better score. The anchors of a cell, one
  // twice as high as the other, overlap within the cell.
  const std::vector<float> scores{0, 0, 0, 0, 0.3f, 0.8f, 0.2f, 0.7f};
  const Attributes a = proposal_settings({{"scale", "1,1.1"}, {"normalize", "true"}});
  const std::vector<Tensor> out = run(
      "Proposal", 1, a,
      {floats({1, 4, 1, 2}, scores), floats({1, 8, 1, 2}, std::vector<float>(16)), kPicture}, 1, 2);
  const std::vector<float> rows = out[0].to_floats();
  EXPECT_EQ((std::vector<float>(rows.begin(), rows.begin() + 5)),
            (std::vector<float>{0, 16 / 64.f, 0, 32 / 64.f, 16 / 64.f}));
  EXPECT_EQ((std::vector<float>(rows.begin() + 5, rows.end())),
            (std::vector<float>{0, 0, 0, 16 / 64.f, 16 / 64.f}));
}

TEST(Proposal, ClipsAndSwapsAsTheFrameworksDo) {
  const auto first = [](const Attributes& a, const Tensor& scores, const Tensor& deltas,
                        const Tensor& picture) {
    std::vector<float> rows = run("Proposal", 1, a, {scores, deltas, picture}, 1, 2)[0].to_floats();
    rows.resize(5);
    return rows;
  };
  // Clipped afterwards, boxes end at the picture's size, not at its last pixel.
  EXPECT_EQ(first(proposal_settings({{"clip_before_nms", "false"}, {"clip_after_nms", "true"}}),
                  floats({1, 2, 1, 1}, {0.1f, 0.9f}), floats({1, 4, 1, 1}, {0.25f, 0, 0, 0}),
                  floats({3}, {10, 18, 1})),
            (std::vector<float>{0, 4, 0, 18, 10}));
  // TensorFlow's x runs along the rows: two rows, in a picture twice as high as it is wide.
  EXPECT_EQ(first(proposal_settings({{"framework", "tensorflow"}}),
                  floats({1, 2, 2, 1}, {0, 0, 0.2f, 0.8f}),
                  floats({1, 4, 2, 1}, std::vector<float>(8)), floats({3}, {32, 16, 1})),
            (std::vector<float>{0, 8, 0, 24, 8}));
}

TEST(Proposal, EqualScoresKeepTheirOrder) {
  // Three distant cells with equal scores: ordered by row, then by anchor.
  const std::vector<Tensor> out =
      run("Proposal", 4, proposal_settings({{"post_nms_topn", "3"}, {"feat_stride", "20"}}),
          {floats({1, 2, 1, 3}, {0, 0, 0, 0.5f, 0.5f, 0.5f}),
           floats({1, 4, 1, 3}, std::vector<float>(12)), kPicture},
          2, 2);
  const std::vector<float> rows = out[0].to_floats();
  EXPECT_EQ((std::vector<float>{rows[1], rows[6], rows[11]}), (std::vector<float>{0, 20, 40}));
}

// ---- the kernel against evaluate() -------------------------------------------------------------

void check_random(const Attributes& more, Shape grid, unsigned seed, int opset = 4,
                  const DeviceTraits& traits = gpu_traits(),
                  const Tensor& picture = floats({1, 3}, {120, 160, 1})) {
  Attributes a = proposal_settings({{"ratio", "0.5,1,2"},
                                    {"scale", "1,2"},
                                    {"pre_nms_topn", "150"},
                                    {"post_nms_topn", "40"},
                                    {"min_size", "8"}});
  for (const auto& [name, value] : more.all()) a.set(name, value);
  const int64_t images = grid[0], rows = grid[1], columns = grid[2], anchors = 6;
  Tensor scores = random_ints(ElementType::i32, {images, 2 * anchors, rows, columns}, 0, 50, seed)
                      .convert(ElementType::f32);
  for (int64_t i = 0; i < scores.elements(); ++i) scores.mutable_data<float>()[i] /= 64;
  for (int64_t i = 3; i < scores.elements(); i += 23) scores.mutable_data<float>()[i] = NAN;
  const std::vector<Tensor> inputs{
      scores, random_tensor({images, 4 * anchors, rows, columns}, -0.5f, 0.5f, seed + 1), picture};
  OpDesc desc = make_desc("Proposal", opset, a, inputs, {}, opset >= 4 ? 2 : 1);
  if (seed % 2 != 0) {
    for (size_t i : {0, 1}) {
      desc.inputs[i] = with_gaps(TensorDesc::channels_last(ElementType::f16, desc.inputs[i].shape));
    }
  }
  check_op(desc, inputs, {}, &traits);
}

TEST(Proposal, Kernel) {
  for (unsigned seed : {1, 2}) check_random({}, {2, 5, 7}, seed);
}

TEST(Proposal, KernelOfSmallGroups) { check_random({}, {2, 5, 7}, 2, 4, tiny_traits()); }

TEST(Proposal, KernelInAllForms) {
  unsigned seed = 10;
  for (const Attributes& a :
       {attributes({{"framework", "tensorflow"}, {"box_size_scale", "5"}, {"normalize", "true"}}),
        attributes({{"clip_before_nms", "false"}, {"clip_after_nms", "true"}}),
        attributes({{"pre_nms_topn", "5"}, {"post_nms_topn", "30"}}),
        attributes({{"min_size", "1000"}, {"nms_thresh", "0"}}),
        attributes(
            {{"nms_thresh", "1"}, {"post_nms_topn", "9"}, {"box_coordinate_scale", "10"}})}) {
    check_random(a, {1, 5, 7}, ++seed, 4, tiny_traits());
    check_random(a, {2, 3, 4}, ++seed, 1, tiny_traits(), floats({4}, {60, 60, 1, 2}));
  }
}

TEST(Proposal, KernelOfManyBoxes) {
  DeviceTraits small = gpu_traits();  // the list is sorted in many parts
  small.local_memory = 9 << 10;
  const Attributes a = attributes({{"pre_nms_topn", "6000"}, {"post_nms_topn", "300"}});
  check_random(a, {1, 38, 50}, 40, 4, small, floats({3}, {608, 800, 1}));
  check_random(a, {2, 20, 30}, 41, 4, gpu_traits(), floats({3}, {320, 480, 1}));
}

TEST(Proposal, CpusUseTheHost) {
  DeviceTraits cpu = gpu_traits();
  cpu.is_cpu = true;
  const OpDesc desc = make_desc("Proposal", 4, proposal_settings(),
                                {counted({1, 2, 3, 3}), counted({1, 4, 3, 3}), kPicture}, {}, 2);
  const KernelFamily& family = *find_op("Proposal", 4)->families.at(0);
  EXPECT_TRUE(says(family.reject(desc, cpu), "a CPU is faster at it on the host"));
  EXPECT_EQ(family.reject(desc, gpu_traits()), "");
}

TEST(Proposal, Refuses) {
  const Tensor scores = counted({1, 2, 1, 1}), deltas = counted({1, 4, 1, 1});
  EXPECT_TRUE(says(error_of("Proposal", 1, proposal_settings({{"scale", "1,2"}}),
                            {scores, deltas, kPicture}, 1, 2),
                   "scores [1,2,1,1] and deltas [1,4,1,1] do not fit 2 anchors"));
  EXPECT_TRUE(says(error_of("Proposal", 1, proposal_settings({{"post_nms_topn", "0"}}),
                            {scores, deltas, kPicture}, 1, 2),
                   "pre_nms_topn and post_nms_topn must be positive"));
  EXPECT_TRUE(says(error_of("Proposal", 1, proposal_settings({{"post_nms_topn", "9999999999"}}),
                            {scores, deltas, kPicture}, 1, 2),
                   "a tensor of more than 2^31 - 1 elements"));
  EXPECT_TRUE(says(
      error_of("Proposal", 1, proposal_settings(), {scores, deltas, floats({2}, {64, 64})}, 1, 2),
      "the picture's size must be height, width and one or two scales"));
  EXPECT_TRUE(says(error_of("Proposal", 1, proposal_settings(),
                            {scores, deltas, floats({3}, {NAN, 64, 1})}, 1, 2),
                   "the picture's size is negative"));
}

}  // namespace
}  // namespace clinfer::test
