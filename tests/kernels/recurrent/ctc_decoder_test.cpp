// CTCGreedyDecoder and CTCGreedyDecoderSeqLen: blanks, repetitions, lengths.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

// Scores of one sequence with the given best classes; the last of three classes is blank.
std::vector<float> best(const std::vector<int>& classes) {
  std::vector<float> scores;
  for (int c : classes)
    for (int k = 0; k < 3; ++k) scores.push_back(k == c ? 1.0f : 0.0f);
  return scores;
}

TEST(CtcDecoder, Masked) {
  const Tensor scores = floats({6, 1, 3}, best({0, 0, 2, 0, 1, 1}));
  const auto decoded = [&](const char* merge, const std::vector<float>& mask) {
    return run("CTCGreedyDecoder", 1, attributes({{"ctc_merge_repeated", merge}}),
               {scores, floats({6, 1}, mask)}, 1, 2)[0]
        .to_floats();
  };
  EXPECT_EQ(decoded("true", {1, 1, 1, 1, 1, 1}), (std::vector<float>{0, 0, 1, -1, -1, -1}));
  EXPECT_EQ(decoded("false", {1, 1, 1, 1, 1, 1}), (std::vector<float>{0, 0, 0, 1, 1, -1}));
  EXPECT_EQ(decoded("true", {1, 1, 1, 0, 1, 1}), (std::vector<float>{0, -1, -1, -1, -1, -1}));
}

TEST(CtcDecoder, Lengths) {
  std::vector<float> all = best({0, 0, 2, 1});
  const std::vector<float> second = best({1, 1, 0, 0});
  all.insert(all.end(), second.begin(), second.end());
  const Tensor scores = floats({2, 4, 3}, all);
  const std::vector<Tensor> out =
      run("CTCGreedyDecoderSeqLen", 6, {}, {scores, ints({4, 99})}, 2, 2);
  EXPECT_EQ(out[0].to_ints(), (std::vector<int64_t>{0, 1, -1, -1, 1, 0, -1, -1}));
  EXPECT_EQ(out[1].to_ints(), (std::vector<int64_t>{2, 2}));
  const std::vector<Tensor> blank =
      run("CTCGreedyDecoderSeqLen", 6, {}, {scores, ints({3, -1}), scalar(0)}, 2, 3);
  EXPECT_EQ(blank[0].to_ints(), (std::vector<int64_t>{2, -1, -1, -1, -1, -1, -1, -1}));
}

TEST(CtcDecoder, Refuses) {
  EXPECT_TRUE(says(error_of("CTCGreedyDecoder", 1, {}, {counted({6, 1, 3}), counted({5, 1})}, 1, 2),
                   "scores [6,1,3] and mask [5,1] do not fit"));
  EXPECT_TRUE(says(error_of("CTCGreedyDecoderSeqLen", 6, {}, {counted({6, 1, 3}), ints({5})}, 2, 2),
                   "scores [6,1,3] and lengths [1] do not fit"));
  EXPECT_TRUE(says(error_of("CTCGreedyDecoderSeqLen", 6, {}, {counted({1, 1, 0}), ints({1})}, 2, 2),
                   "scores [1,1,0] and lengths [1] do not fit"));
}

}  // namespace
}  // namespace clinfer::test
