// MulticlassNms and MatrixNms: rows, order, limits, both forms of input.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

// x0, y0, x1, y1: boxes 0 and 1 overlap by 0.6, box 2 overlaps none.
const std::vector<float> kOverlappingBoxes{0, 0, 1, 1, 0.25f, 0, 1.25f, 1, 2, 2, 3, 3};

Attributes multiclass_settings(
    std::initializer_list<std::pair<const char*, const char*>> more = {}) {
  Attributes a = attributes({{"sort_result_type", "score"},
                             {"score_threshold", "0.1"},
                             {"iou_threshold", "0.5"},
                             {"output_type", "i64"}});
  for (const auto& [name, value] : more) a.set(name, value);
  return a;
}

std::vector<Tensor> multiclass(const Attributes& a, const std::vector<float>& scores) {
  return run("MulticlassNms", 8, a,
             {floats({1, 3, 4}, kOverlappingBoxes),
              floats({1, static_cast<int64_t>(scores.size()) / 3, 3}, scores)},
             3, 2);
}

TEST(MulticlassNms, RowsAndLimits) {
  const std::vector<float> scores{0.5f, 0.9f, 0.05f, 0.3f, 0, 0.6f};
  const std::vector<Tensor> out = multiclass(multiclass_settings(), scores);
  EXPECT_EQ(out[0].to_floats(), (std::vector<float>{0, 0.9f, 0.25f, 0, 1.25f, 1, 1, 0.6f, 2, 2, 3,
                                                    3, 1, 0.3f, 0, 0, 1, 1}));
  EXPECT_EQ(out[1].to_ints(), (std::vector<int64_t>{1, 2, 0}));
  EXPECT_EQ(out[2].to_ints(), (std::vector<int64_t>{3}));
  EXPECT_EQ(multiclass(multiclass_settings({{"keep_top_k", "2"}}), scores)[1].to_ints(),
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(multiclass(multiclass_settings({{"nms_top_k", "1"}}), scores)[1].to_ints(),
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(multiclass(multiclass_settings({{"background_class", "1"}}), scores)[1].to_ints(),
            (std::vector<int64_t>{1}));
  EXPECT_EQ(multiclass(multiclass_settings({{"sort_result_type", "classid"}}),
                       {0.2f, 0, 0.3f, 0, 0.9f, 0})[1]
                .to_ints(),
            (std::vector<int64_t>{2, 0, 1}));
}

TEST(MulticlassNms, SharedList) {
  // Two classes with separate boxes; the first image has two of the three.
  std::vector<float> boxes = kOverlappingBoxes;
  boxes.insert(boxes.end(), kOverlappingBoxes.begin(), kOverlappingBoxes.end());
  const std::vector<Tensor> out = run(
      "MulticlassNms", 9, multiclass_settings(),
      {floats({2, 3, 4}, boxes), floats({2, 3}, {0.5f, 0.9f, 0.4f, 0.3f, 0, 0.8f}), ints({2, 1})},
      3, 3);
  EXPECT_EQ(out[2].to_ints(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(out[0].to_floats()[1], 0.9f);
  EXPECT_EQ(out[0].to_floats()[13], 0.8f);
}

TEST(MatrixNms, DecaysScores) {
  const Attributes a = multiclass_settings({{"post_threshold", "0.2"}});
  const std::vector<Tensor> out =
      run("MatrixNms", 8, a,
          {floats({1, 3, 4}, kOverlappingBoxes), floats({1, 1, 3}, {0.8f, 0.9f, 0.7f})}, 3, 2);
  EXPECT_EQ(out[1].to_ints(), (std::vector<int64_t>{1, 2, 0}));
  EXPECT_NEAR(out[0].to_floats()[13], 0.8f * 0.4f, 1e-5f);
}

TEST(MulticlassNms, Refuses) {
  EXPECT_TRUE(says(error_of("MulticlassNms", 8, multiclass_settings({{"sort_result_type", "size"}}),
                            {counted({1, 3, 4}), counted({1, 1, 3})}, 3, 2),
                   "sort_result_type \"size\""));
  EXPECT_TRUE(says(error_of("MulticlassNms", 8, multiclass_settings(),
                            {counted({1, 3, 4}), counted({1, 1, 2})}, 3, 2),
                   "boxes [1,3,4] and scores [1,1,2] do not fit"));
  EXPECT_TRUE(says(error_of("MulticlassNms", 8, multiclass_settings(),
                            {counted({1, 3, 5}), counted({1, 1, 3})}, 3, 2),
                   "boxes [1,3,5] and scores [1,1,3] do not fit"));
  EXPECT_TRUE(says(error_of("MatrixNms", 8, multiclass_settings({{"decay_function", "slow"}}),
                            {counted({1, 3, 4}), counted({1, 1, 3})}, 3, 2),
                   "decay_function \"slow\""));
}

}  // namespace
}  // namespace clinfer::test
