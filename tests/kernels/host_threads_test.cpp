// Operations on the host by several threads: the same results to the last bit, whatever the number.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <set>

#include "kernels/base/system/work_limit.h"
#include "tests/kernels/op_test.h"
#include "tests/kernels/view_test.h"

namespace clinfer::test {
namespace {

constexpr unsigned kThreads = 3;

// Each thread stays in its first range until all are in one: fewer would never leave.
TEST(HostThreads, AsManyAsTheLimitStates) {
  for (const unsigned threads : {1u, 2u, 5u}) {
    const WorkLimit limit([] {}, threads);
    std::mutex mutex;
    std::condition_variable changed;
    std::set<std::thread::id> met;
    std::vector<int> visits(1000, 0);
    WorkLimit::for_ranges(1000, 1e6, [&](int64_t begin, int64_t end) {
      std::unique_lock lock(mutex);
      for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      met.insert(std::this_thread::get_id());
      changed.notify_all();
      EXPECT_TRUE(
          changed.wait_for(lock, std::chrono::minutes(2), [&] { return met.size() == threads; }));
    });
    EXPECT_EQ(met.size(), threads);
    EXPECT_EQ(limit.threads_used(), threads);
    EXPECT_EQ(visits, std::vector<int>(1000, 1));
  }
}

TEST(HostThreads, OneWhereTheWorkIsSmallOrNothingIsStated) {
  const auto ranges = [](int64_t n, double each) {
    int count = 0;
    WorkLimit::for_ranges(n, each, [&](int64_t, int64_t) { ++count; });
    return count;
  };
  EXPECT_EQ(ranges(1000, 1e6), 1) << "no limit, so no leave to take more threads";
  const WorkLimit limit([] {}, kThreads);
  EXPECT_EQ(ranges(1000, 10), 1);
  EXPECT_EQ(ranges(1, 1e9), 1);
  EXPECT_EQ(ranges(0, 1e9), 0);
  EXPECT_EQ(limit.threads_used(), 1u);
}

TEST(HostThreads, EndWhereWorkIsToEnd) {
  std::atomic<int> asked = 0;
  const WorkLimit limit(
      [&] {
        if (++asked >= 10) throw Error(ErrorCode::cancelled, "enough");
      },
      kThreads);
  EXPECT_THROW(WorkLimit::for_ranges(1000000, 100,
                                     [](int64_t begin, int64_t end) {
                                       for (int64_t i = begin; i < end; ++i) WorkLimit::may_go_on();
                                     }),
               Error);
  EXPECT_LE(asked, 9 + static_cast<int>(kThreads)) << "each thread ends when it is told to";
}

struct ThreadsCase {
  const char* type;
  int opset;
  std::vector<std::pair<const char*, const char*>> attributes;
  std::vector<Tensor> inputs;
  size_t outputs = 1, dynamic = 1;  // dynamic: inputs before the first constant
};

std::vector<ThreadsCase> cases() {
  const auto boxes = [](Shape shape, float scale) {
    Tensor all = random_tensor(std::move(shape), 0, scale, 5);
    float* v = all.mutable_data<float>();
    for (int64_t i = 0; i + 3 < all.elements(); i += 4)
      for (int k = 0; k < 2; ++k)
        if (v[i + k] > v[i + k + 2]) std::swap(v[i + k], v[i + k + 2]);
    return all;
  };
  Tensor regions = random_tensor({40, 5}, 0, 30, 6);
  for (int64_t r = 0; r < 40; ++r) regions.mutable_data<float>()[r * 5] = 0;
  const Tensor map = random_tensor({1, 16, 40, 40}, -1, 1, 7);
  Tensor ends = regions;
  ends.mutable_data<float>()[30 * 5] = -1;  // ends ROIPooling's list
  const auto lstm = [](const char* type, int64_t batch, int64_t gates, size_t states) {
    std::vector<Tensor> inputs{random_tensor({batch, 3, 200}, -1, 1, 8)};
    for (size_t s = 0; s < states; ++s) inputs.push_back(random_tensor({batch, 1, 200}, -1, 1, 9));
    inputs.push_back(Tensor::of<int64_t>(ElementType::i64, {batch},
                                         std::vector<int64_t>(static_cast<size_t>(batch), 3)));
    inputs.push_back(random_tensor({1, gates * 200, 200}, -0.1f, 0.1f, 10));
    inputs.push_back(random_tensor({1, gates * 200, 200}, -0.1f, 0.1f, 11));
    inputs.push_back(random_tensor({1, gates * 200}, -1, 1, 12));
    return ThreadsCase{type,   5,          {{"hidden_size", "200"}, {"direction", "forward"}},
                       inputs, 1 + states, 8};
  };
  const Tensor unsorted = random_ints(ElementType::i32, {1, 200000}, 0, 5000, 3);
  const std::vector<std::pair<const char*, const char*>> top{
      {"axis", "1"}, {"mode", "max"}, {"sort", "value"}, {"index_element_type", "i32"}};
  const std::vector<std::pair<const char*, const char*>> multiclass{{"sort_result_type", "score"},
                                                                    {"score_threshold", "0.1"},
                                                                    {"iou_threshold", "0.5"},
                                                                    {"output_type", "i64"}};
  const std::vector<std::pair<const char*, const char*>> corners{
      {"keep_top_k", "100"},    {"top_k", "300"},
      {"nms_threshold", "0.5"}, {"confidence_threshold", "0.3"},
      {"normalized", "true"},   {"share_location", "true"},
      {"num_classes", "8"}};
  auto centres = corners;  // how boxes are stated
  centres.emplace_back("code_type", "caffe.PriorBoxParameter.CENTER_SIZE");
  return {
      {"TopK", 3, top, {random_tensor({1, 200000}, -1, 1, 2), ints({}, {500})}, 2, 1},
      {"TopK", 3, top, {unsorted.convert(ElementType::f32), ints({}, {100000})}, 2, 1},
      {"TopK", 3, top, {unsorted.convert(ElementType::f32), ints({}, {1})}, 2, 1},
      {"TopK", 3, top, {random_tensor({8, 20000}, -1, 1, 4), ints({}, {300})}, 2, 1},
      {"CumSum", 3, {}, {random_tensor({8, 60000}), ints({}, {1})}, 1, 1},
      {"NonMaxSuppression",
       9,
       {},
       {boxes({1, 6000, 4}, 1), random_tensor({1, 8, 6000}, 0, 1, 3), ints({}, {50}),
        floats({}, {0.5f}), floats({}, {0.2f})},
       3,
       2},
      {"DetectionOutput",
       8,
       centres,
       {random_tensor({1, 24000}, -0.5f, 0.5f, 3), random_tensor({1, 48000}, 0, 1, 4),
        boxes({1, 2, 24000}, 1)},
       1,
       3},
      {"DetectionOutput",
       8,
       corners,
       {random_tensor({3, 24000}, -0.5f, 0.5f, 3), random_tensor({3, 48000}, 0, 1, 4),
        boxes({1, 2, 24000}, 1)},
       1,
       3},
      {"MulticlassNms",
       8,
       multiclass,
       {boxes({2, 6000, 4}, 1), random_tensor({2, 8, 6000}, 0, 1, 3)},
       3,
       2},
      {"MatrixNms",
       8,
       {{"score_threshold", "0.5"}, {"nms_top_k", "200"}},
       {boxes({1, 6000, 4}, 1), random_tensor({1, 8, 6000}, 0, 1, 3)},
       3,
       2},
      {"Proposal",
       4,
       {{"base_size", "16"},
        {"pre_nms_topn", "300"},
        {"post_nms_topn", "50"},
        {"nms_thresh", "0.5"},
        {"feat_stride", "16"},
        {"min_size", "4"},
        {"ratio", "1,2"},
        {"scale", "1,2"}},
       {random_tensor({3, 8, 50, 50}, 0, 1, 3), random_tensor({3, 16, 50, 50}, -1, 1, 4),
        floats({3}, {800, 800, 1})},
       2,
       2},
      {"ROIPooling",
       2,
       {{"pooled_h", "7"}, {"pooled_w", "7"}, {"spatial_scale", "1"}, {"method", "bilinear"}},
       {random_tensor({1, 64, 40, 40}), ends},
       1,
       2},
      {"PSROIPooling",
       1,
       {{"output_dim", "4"}, {"group_size", "2"}, {"spatial_scale", "1"}, {"mode", "average"}},
       {random_tensor({1, 16, 90, 90}), regions},
       1,
       2},
      {"DeformablePSROIPooling",
       1,
       {{"output_dim", "4"},
        {"group_size", "2"},
        {"spatial_scale", "1"},
        {"trans_std", "0.5"},
        {"part_size", "1"},
        {"spatial_bins_x", "2"},
        {"spatial_bins_y", "2"}},
       {random_tensor({1, 16, 90, 90}), regions},
       1,
       2},
      {"ROIAlign",
       3,
       {{"pooled_h", "7"},
        {"pooled_w", "7"},
        {"sampling_ratio", "2"},
        {"spatial_scale", "1"},
        {"mode", "avg"}},
       {random_tensor({1, 64, 40, 40}), boxes({40, 4}, 30),
        Tensor::of<int64_t>(ElementType::i64, {40}, std::vector<int64_t>(40, 0))},
       1,
       3},
      lstm("LSTMSequence", 1, 4, 2),
      lstm("LSTMSequence", 3, 4, 2),
      lstm("GRUSequence", 4, 3, 1),
      {"EmbeddingBagPackedSum",
       3,
       {},
       {random_tensor({100, 64}), random_ints(ElementType::i64, {300, 20}, 0, 99, 3)},
       1,
       2},
      {"CTCGreedyDecoderSeqLen",
       6,
       {},
       {random_tensor({8, 100, 500}),
        Tensor::of<int64_t>(ElementType::i64, {8}, std::vector<int64_t>(8, 90))},
       2,
       2},
      {"Inverse", 14, {}, {random_tensor({40, 24, 24})}, 1, 1},
      {"MatMul", 1, {}, {random_tensor({1, 700}), random_tensor({700, 900}, -1, 1, 2)}, 1, 2},
      {"MatMul", 1, {}, {random_tensor({2, 90, 80}), random_tensor({80, 60}, -1, 1, 2)}, 1, 2},
  };
}

TEST(HostThreads, ChangeNoResult) {
  for (const ThreadsCase& c : cases()) {
    Attributes attributes;
    for (const auto& [name, value] : c.attributes) attributes.set(name, value);
    const auto compute = [&] {
      return run(c.type, c.opset, attributes, c.inputs, c.outputs, c.dynamic);
    };
    const std::vector<Tensor> alone = compute();
    const WorkLimit limit([] {}, kThreads);
    const std::vector<Tensor> together = compute();
    EXPECT_EQ(limit.threads_used(), kThreads) << c.type;
    for (size_t i = 0; i < alone.size(); ++i) {
      ASSERT_EQ(alone[i].shape(), together[i].shape()) << c.type;
      ASSERT_GT(alone[i].elements(), 0) << c.type;
      EXPECT_EQ(std::memcmp(alone[i].raw(), together[i].raw(), alone[i].bytes()), 0)
          << c.type << ", output " << i;
    }
  }
}

}  // namespace
}  // namespace clinfer::test
