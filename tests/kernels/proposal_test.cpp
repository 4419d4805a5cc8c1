// Proposal: anchors and deltas by hand, the end of the list, refusals.
#include <cmath>

#include "tests/kernels/view_test.h"

namespace clinfer::test {
namespace {

Attributes settings(std::initializer_list<std::pair<const char*, const char*>> more = {}) {
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
      "Proposal", 4, settings(),
      {floats({1, 2, 1, 1}, {0.1f, 0.9f}), floats({1, 4, 1, 1}, {0.25f, 0, 0, 0}), kPicture}, 2, 2);
  EXPECT_EQ(out[0].shape(), (Shape{2, 5}));
  const std::vector<float> rows = out[0].to_floats();
  EXPECT_EQ((std::vector<float>(rows.begin(), rows.begin() + 5)),
            (std::vector<float>{0, 4, 0, 20, 16}));
  EXPECT_EQ(rows[5], -1);
  EXPECT_EQ(out[1].to_floats(), (std::vector<float>{0.9f, 0}));
}

TEST(Proposal, SortsSuppressesAndNormalizes) {
  // Two cells side by side; the right one is better. Twice as high anchors of both overlap within a
  // cell.
  const std::vector<float> scores{0, 0, 0, 0, 0.3f, 0.8f, 0.2f, 0.7f};
  const Attributes a = settings({{"scale", "1,1.1"}, {"normalize", "true"}});
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
  // Afterwards, boxes end at the picture's size, not at its last pixel.
  EXPECT_EQ(first(settings({{"clip_before_nms", "false"}, {"clip_after_nms", "true"}}),
                  floats({1, 2, 1, 1}, {0.1f, 0.9f}), floats({1, 4, 1, 1}, {0.25f, 0, 0, 0}),
                  floats({3}, {10, 18, 1})),
            (std::vector<float>{0, 4, 0, 18, 10}));
  // TensorFlow's x runs along the rows: two of them, in a picture twice as high as it is wide.
  EXPECT_EQ(first(settings({{"framework", "tensorflow"}}), floats({1, 2, 2, 1}, {0, 0, 0.2f, 0.8f}),
                  floats({1, 4, 2, 1}, std::vector<float>(8)), floats({3}, {32, 16, 1})),
            (std::vector<float>{0, 8, 0, 24, 8}));
}

TEST(Proposal, Refuses) {
  const Tensor scores = counted({1, 2, 1, 1}), deltas = counted({1, 4, 1, 1});
  EXPECT_NE(error_of("Proposal", 1, settings({{"scale", "1,2"}}), {scores, deltas, kPicture}, 1, 2),
            "");
  EXPECT_NE(
      error_of("Proposal", 1, settings({{"post_nms_topn", "0"}}), {scores, deltas, kPicture}, 1, 2),
      "");
  EXPECT_NE(error_of("Proposal", 1, settings({{"post_nms_topn", "9999999999"}}),
                     {scores, deltas, kPicture}, 1, 2),
            "");
  EXPECT_NE(error_of("Proposal", 1, settings(), {scores, deltas, floats({2}, {64, 64})}, 1, 2), "");
  EXPECT_NE(error_of("Proposal", 1, settings(), {scores, deltas, floats({3}, {NAN, 64, 1})}, 1, 2),
            "");
}

}  // namespace
}  // namespace clinfer::test
