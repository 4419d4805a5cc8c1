// DetectionOutput: detections computed by hand, in all forms of the operation, and refusals.
#include <cmath>

#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

using Rows = std::vector<std::vector<float>>;

// The rows up to the one that ends the list.
Rows rows_of(const Tensor& out) {
  Rows rows;
  const std::vector<float> v = out.to_floats();
  for (size_t i = 0; i + 7 <= v.size() && v[i] != -1; i += 7)
    rows.emplace_back(v.begin() + i, v.begin() + i + 7);
  return rows;
}

Attributes output_settings(std::initializer_list<std::pair<const char*, const char*>> more = {}) {
  Attributes a = attributes({{"num_classes", "2"},
                             {"keep_top_k", "4"},
                             {"top_k", "10"},
                             {"nms_threshold", "0.5"},
                             {"confidence_threshold", "0.3"},
                             {"normalized", "true"},
                             {"share_location", "true"},
                             {"code_type", "caffe.PriorBoxParameter.CORNER"},
                             {"background_label_id", "0"}});
  for (const auto& [name, value] : more) a.set(name, value);
  return a;
}

// Three priors, with variances 1. With deltas of 0, the first two overlap by 0.6 / 1.4.
const std::vector<float> kPriors{0, 0, 1, 1, 0.25f, 0, 1.25f, 1, 0.5f, 2, 1, 3};

Tensor priors(std::vector<float> boxes = kPriors) {
  const int64_t n = static_cast<int64_t>(boxes.size());
  boxes.resize(boxes.size() * 2, 1.0f);
  return floats({1, 2, n}, boxes);
}

Rows detect(const Attributes& a, const std::vector<float>& location,
            const std::vector<float>& scores, const Tensor& prior = priors()) {
  return rows_of(run("DetectionOutput", 1, a,
                     {floats({1, static_cast<int64_t>(location.size())}, location),
                      floats({1, static_cast<int64_t>(scores.size())}, scores), prior},
                     1, 3)[0]);
}

const std::vector<float> kStill(12, 0.0f);

TEST(DetectionOutput, ThresholdSortAndSuppress) {
  // Overlap of the first two: 0.75 / 1.25 = 0.6.
  const std::vector<float> scores{0.1f, 0.8f, 0.1f, 0.9f, 0.7f, 0.31f};
  EXPECT_EQ(detect(output_settings(), kStill, scores),
            (Rows{{0, 1, 0.9f, 0.25f, 0, 1.25f, 1}, {0, 1, 0.31f, 0.5f, 2, 1, 3}}));
  EXPECT_EQ(detect(output_settings({{"nms_threshold", "0.61"}}), kStill, scores).size(), 3u);
  EXPECT_EQ(detect(output_settings({{"keep_top_k", "1"}}), kStill, scores).size(), 1u);
  EXPECT_EQ(detect(output_settings({{"top_k", "2"}}), kStill, scores).size(),
            1u);  // the second best overlaps the best
  EXPECT_EQ(detect(output_settings({{"confidence_threshold", "0.31"}}), kStill, scores).size(),
            1u);  // an equal score is not enough
  EXPECT_EQ(detect(output_settings({{"background_label_id", "-1"}}), kStill, scores).size(),
            3u);  // class 0: 0.7
  EXPECT_TRUE(detect(output_settings({{"confidence_threshold", "1"}}), kStill, scores).empty());
}

TEST(DetectionOutput, OutputShape) {
  const auto rows = [](const char* top_k, const char* keep) {
    return run("DetectionOutput", 1, output_settings({{"top_k", top_k}, {"keep_top_k", keep}}),
               {floats({1, 12}, kStill), floats({1, 6}, std::vector<float>(6)), priors()}, 1, 3)[0]
        .shape()[2];
  };
  EXPECT_EQ(rows("5", "7"), 7);
  EXPECT_EQ(rows("5", "-1"), 10);
  EXPECT_EQ(rows("-1", "-1"), 6);
}

TEST(DetectionOutput, Codes) {
  const std::vector<float> prior{1, 1, 3, 5}, location{0.5f, 0.25f, 0.5f, 0};
  const std::vector<float> scores{0, 1};
  EXPECT_EQ(detect(output_settings(), location, scores, priors(prior)),
            (Rows{{0, 1, 1, 1.5f, 1.25f, 3.5f, 5}}));
  EXPECT_EQ(detect(output_settings({{"code_type", "caffe.PriorBoxParameter.CORNER_SIZE"}}),
                   location, scores, priors(prior)),
            (Rows{{0, 1, 1, 2, 2, 4, 5}}));
  const Rows centred =
      detect(output_settings({{"code_type", "caffe.PriorBoxParameter.CENTER_SIZE"}}), location,
             scores, priors(prior));
  ASSERT_EQ(centred.size(), 1u);
  const float half =
      std::exp(0.5f);  // half the width: centre 2 + 0.5 * 2, 3 + 0.25 * 4; size 2 e^0.5, 4
  EXPECT_NEAR(centred[0][3], 3 - half, 1e-5f);
  EXPECT_NEAR(centred[0][4], 2, 1e-5f);
  EXPECT_NEAR(centred[0][5], 3 + half, 1e-5f);
  EXPECT_NEAR(centred[0][6], 6, 1e-5f);
}

TEST(DetectionOutput, VariancesScaleUnlessInTarget) {
  const Tensor prior = floats({1, 2, 4}, {0, 0, 1, 1, 0.5f, 0.5f, 0.25f, 0.25f});
  const std::vector<float> location{0.5f, 0.5f, 1, 1}, scores{0, 1};
  EXPECT_EQ(detect(output_settings(), location, scores, prior),
            (Rows{{0, 1, 1, 0.25f, 0.25f, 1.25f, 1.25f}}));
  const Attributes in_target = output_settings({{"variance_encoded_in_target", "true"}});
  EXPECT_EQ(detect(in_target, location, scores, prior), (Rows{{0, 1, 1, 0.5f, 0.5f, 2, 2}}));
  EXPECT_EQ(detect(in_target, location, scores, floats({1, 1, 4}, {0, 0, 1, 1})),
            (Rows{{0, 1, 1, 0.5f, 0.5f, 2, 2}}));
  EXPECT_EQ(detect(output_settings({{"clip_after_nms", "true"}}), location, scores, prior),
            (Rows{{0, 1, 1, 0.25f, 0.25f, 1, 1}}));
}

TEST(DetectionOutput, ClippingBeforeChangesOverlaps) {
  // Outside the picture the two boxes differ; clipped to it they are equal.
  const Tensor prior = priors({0, 0, 1, 1, 0, 0, 3, 3});
  const std::vector<float> still(8, 0.0f), scores{0, 0.9f, 0, 0.8f};
  EXPECT_EQ(detect(output_settings(), still, scores, prior).size(), 2u);
  EXPECT_EQ(detect(output_settings({{"clip_before_nms", "true"}}), still, scores, prior).size(),
            1u);
}

TEST(DetectionOutput, OwnLocations) {
  std::vector<float> location(2 * 3 * 4, 0.0f);
  location[4] = 0.125f;  // prior 0, class 1
  const Rows rows =
      detect(output_settings({{"share_location", "false"}}), location, {0, 1, 0, 0, 0, 0});
  EXPECT_EQ(rows, (Rows{{0, 1, 1, 0.125f, 0, 1, 1}}));
}

TEST(DetectionOutput, DecreasedLabels) {
  // Each prior counts for its best class; classes do not suppress each other.
  const Attributes a = output_settings({{"num_classes", "3"}, {"decrease_label_id", "true"}});
  const Rows rows = detect(a, kStill, {0.9f, 0.5f, 0.4f, 0, 0.3f, 0.6f, 0, 0.2f, 0.1f});
  EXPECT_EQ(rows, (Rows{{0, 0, 0.5f, 0, 0, 1, 1}, {0, 1, 0.6f, 0.25f, 0, 1.25f, 1}}));
}

TEST(DetectionOutput, PixelsWithImageNumbers) {
  // Priors of five numbers; image -1 ends them.
  std::vector<float> prior{0, 0, 0, 100, 50, 0, 100, 50, 200, 100, -1, 0, 0, 100, 100};
  prior.resize(30, 1.0f);
  const Rows rows = detect(
      output_settings({{"normalized", "false"}, {"input_width", "200"}, {"input_height", "100"}}),
      kStill, {0, 0.8f, 0, 0.9f, 0, 1}, floats({1, 2, 15}, prior));
  EXPECT_EQ(rows, (Rows{{0, 1, 0.9f, 0.5f, 0.5f, 1, 1}, {0, 1, 0.8f, 0, 0, 0.5f, 0.5f}}));
}

TEST(DetectionOutput, RefinedBoxesAndObjectness) {
  std::vector<float> first(12, 0.0f);
  first[0] = 0.5f;
  const Tensor out =
      run("DetectionOutput", 1, output_settings({{"objectness_score", "0.4"}}),
          {floats({1, 12}, kStill), floats({1, 6}, {0, 0.9f, 0, 0.8f, 0, 0.7f}), priors(),
           floats({1, 6}, {0, 0.5f, 0, 0.3f, 0, 0.4f}), floats({1, 12}, first)},
          1, 5)[0];
  EXPECT_EQ(rows_of(out), (Rows{{0, 1, 0.9f, 0.5f, 0, 1, 1}, {0, 1, 0.7f, 0.5f, 2, 1, 3}}));
}

TEST(DetectionOutput, ImagesOfABatch) {
  const Tensor out = run("DetectionOutput", 8, output_settings(),
                         {floats({2, 12}, std::vector<float>(24)),
                          floats({2, 6}, {0, 1, 0, 0, 0, 0, 0, 0, 0, 0.5f, 0, 0.6f}), priors()},
                         1, 3)[0];
  EXPECT_EQ(out.shape(), (Shape{1, 1, 8, 7}));
  EXPECT_EQ(
      rows_of(out),
      (Rows{{0, 1, 1, 0, 0, 1, 1}, {1, 1, 0.6f, 0.5f, 2, 1, 3}, {1, 1, 0.5f, 0.25f, 0, 1.25f, 1}}));
}

TEST(DetectionOutput, Refuses) {
  const Tensor location = floats({1, 12}, kStill), scores = floats({1, 6}, std::vector<float>(6));
  const auto refused = [&](std::initializer_list<std::pair<const char*, const char*>> more,
                           const Tensor& prior = priors()) {
    return error_of("DetectionOutput", 1, output_settings(more), {location, scores, prior}, 1, 3);
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_TRUE(
      says(refused({{"num_classes", "3"}}), "the class input has the shape [1,6], expected [1,9]"));
  EXPECT_TRUE(says(refused({{"num_classes", "0"}}), "num_classes is out of range"));
  EXPECT_TRUE(says(refused({{"keep_top_k", "0"}}), "keep_top_k must be -1 or positive"));
  EXPECT_TRUE(
      says(refused({{"keep_top_k", "999999999999"}}), "a tensor of more than 2^31 - 1 elements"));
  EXPECT_TRUE(says(refused({{"code_type", "polar"}}), "code_type \"POLAR\""));
  EXPECT_TRUE(says(refused({{"normalized", "false"}}),
                   "the prior input [1,2,12] does not hold whole boxes of 5 numbers"));
  EXPECT_TRUE(says(refused({{"share_location", "false"}}),
                   "the box input has the shape [1,12], expected [1,24]"));
  EXPECT_TRUE(
      says(refused({}, floats({1, 1, 12}, kPriors)), "the prior input [1,1,12] lacks variances"));
  EXPECT_TRUE(says(refused({}, floats({1, 2, 0}, {})),
                   "the prior input [1,2,0] does not hold whole boxes of 4 numbers"));
}

// ---- the kernel against evaluate() -------------------------------------------------------------

struct RandomDetections {
  int64_t images = 1, priors = 40, classes = 3;
  bool five_inputs = false, halves = false;
  int levels = 8;  // different scores: few levels give many ties
  float highest = 1;
};

std::vector<Tensor> random_inputs(const RandomDetections& r, const Attributes& a, unsigned seed) {
  const bool normalized = a.get_bool("normalized"), shared = a.get_bool("share_location");
  const int64_t size = normalized ? 4 : 5, own = shared ? 1 : r.classes;
  const Tensor noise = random_tensor({r.priors, 4}, 0, 1, seed);
  std::vector<float> priors;
  for (int64_t p = 0; p < r.priors; ++p) {
    const float *v = noise.data<float>() + p * 4, scale = normalized ? 1.0f : 100.0f;
    if (!normalized) priors.push_back(p == r.priors - 3 ? -1.0f : 0.0f);
    for (float edge : {v[0], v[1], v[0] + 0.1f + 0.3f * v[2], v[1] + 0.1f + 0.3f * v[3]})
      priors.push_back(edge * scale);
  }
  priors.resize(priors.size() * 2, 0.1f);
  std::vector<Tensor> inputs{
      random_tensor({r.images, r.priors * 4 * own}, -0.5f, 0.5f, seed + 1),
      random_ints(ElementType::i32, {r.images, r.priors * r.classes}, 0, r.levels, seed + 2)
          .convert(ElementType::f32),
      floats({1, 2, r.priors * size}, priors)};
  float* scores = inputs[1].mutable_data<float>();
  for (int64_t i = 0; i < inputs[1].elements(); ++i)
    scores[i] *= r.highest / static_cast<float>(r.levels);
  for (int64_t i = 5; i < inputs[1].elements(); i += 37) scores[i] = NAN;
  if (r.five_inputs) {
    inputs.push_back(random_tensor({r.images, r.priors * 2}, 0, 1, seed + 3));
    inputs.push_back(random_tensor(inputs[0].shape(), -0.3f, 0.3f, seed + 4));
  }
  return inputs;
}

void check_random(const RandomDetections& r, const Attributes& a, unsigned seed = 1,
                  const DeviceTraits& traits = gpu_traits()) {
  const std::vector<Tensor> inputs = random_inputs(r, a, seed);
  OpDesc desc = make_desc("DetectionOutput", 8, a, inputs, {});
  if (seed % 2 != 0)
    for (TensorDesc& in : desc.inputs) in = with_gaps(in);
  if (seed % 2 != 0 || r.halves) desc.inputs[0].type = desc.inputs[1].type = ElementType::f16;
  check_op(desc, inputs, {}, &traits);
}

TEST(DetectionOutput, Kernel) {
  for (unsigned seed : {1, 2})
    check_random({.images = 2}, output_settings({{"num_classes", "3"}, {"keep_top_k", "12"}}),
                 seed);
}

TEST(DetectionOutput, KernelOfSmallGroups) {
  check_random({.images = 2}, output_settings({{"num_classes", "3"}, {"keep_top_k", "12"}}), 2,
               tiny_traits());
}

// The one list of an image goes to the output at once.
TEST(DetectionOutput, KernelOfOneList) {
  unsigned seed = 60;
  for (const char* background : {"0", "1"})
    for (const char* keep : {"12", "200"}) {
      const Attributes a =
          output_settings({{"background_label_id", background}, {"keep_top_k", keep}});
      check_random({.classes = 2, .halves = true}, a, seed += 2, tiny_traits());
    }
}

TEST(DetectionOutput, KernelInAllForms) {
  const std::vector<std::vector<std::pair<const char*, const char*>>> forms{
      {{"code_type", "caffe.PriorBoxParameter.CENTER_SIZE"}, {"top_k", "7"}, {"keep_top_k", "9"}},
      {{"code_type", "caffe.PriorBoxParameter.CORNER_SIZE"}, {"clip_before_nms", "true"}},
      {{"background_label_id", "-1"}, {"keep_top_k", "-1"}, {"top_k", "-1"}},
      {{"background_label_id", "2"}, {"clip_after_nms", "true"}, {"keep_top_k", "200"}},
      {{"share_location", "false"}, {"variance_encoded_in_target", "true"}},
      {{"decrease_label_id", "true"}, {"top_k", "20"}, {"keep_top_k", "11"}},
      {{"decrease_label_id", "true"}, {"top_k", "-1"}, {"keep_top_k", "-1"}},
      {{"normalized", "false"}, {"input_width", "100"}, {"input_height", "50"}},
      {{"confidence_threshold", "1"}},
      {{"confidence_threshold", "-1"}, {"nms_threshold", "0"}, {"top_k", "0"}},
      {{"nms_threshold", "1"}, {"top_k", "-1"}, {"keep_top_k", "5"}}};
  unsigned seed = 10;
  for (const auto& form : forms) {
    Attributes a = output_settings({{"num_classes", "3"}});
    for (const auto& [name, value] : form) a.set(name, value);
    check_random({.images = 3, .priors = 70}, a, ++seed, tiny_traits());
  }
  Attributes a = output_settings({{"objectness_score", "0.4"}, {"confidence_threshold", "-0.5"}});
  for (const char* together : {"false", "true"}) {
    a.set("decrease_label_id", together);
    check_random({.images = 2, .classes = 2, .five_inputs = true}, a, ++seed, tiny_traits());
  }
}

TEST(DetectionOutput, KernelOfManyBoxes) {
  Attributes a = output_settings({{"num_classes", "2"}, {"top_k", "-1"}, {"keep_top_k", "-1"}});
  DeviceTraits small = gpu_traits();  // lists are sorted in many parts
  small.local_memory = 9 << 10;
  check_random({.priors = 3000, .classes = 2, .levels = 100000}, a, 40, small);
  check_random({.priors = 5000, .classes = 2, .levels = 20}, a, 41);
  a.set("top_k", "400");
  a.set("keep_top_k", "200");
  a.set("confidence_threshold", "0.01");
  check_random({.images = 4, .priors = 1500, .classes = 2, .levels = 100}, a, 42);
  a.set("num_classes", "91");
  check_random({.images = 2, .priors = 300, .classes = 91, .levels = 1000}, a, 43);
}

// Each box overlaps the one before and the one after it: whether it stays depends on all better ones.
TEST(DetectionOutput, KernelOfAChain) {
  const int64_t count = 200;
  std::vector<float> edges, scores;
  for (int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<float>(i);
    edges.insert(edges.end(), {x, 0, x + 2, 1});
    scores.insert(scores.end(), {0, 1 - x / 256});
  }
  edges.resize(edges.size() * 2, 0.1f);
  const Attributes a = output_settings({{"top_k", "-1"},
                                        {"keep_top_k", "-1"},
                                        {"nms_threshold", "0.3"},
                                        {"confidence_threshold", "0.01"}});
  const std::vector<Tensor> inputs{Tensor::allocate(ElementType::f32, {1, count * 4}),
                                   floats({1, count * 2}, scores),
                                   floats({1, 2, count * 4}, edges)};
  const OpDesc desc = make_desc("DetectionOutput", 8, a, inputs, {});
  const std::vector<Tensor> want = reference(desc, inputs);
  EXPECT_EQ(want[0].to_floats()[count / 2 * 7], -1);  // every second one stays
  for (const DeviceTraits& traits : {gpu_traits(), tiny_traits()})
    check_op(desc, inputs, {}, &traits);
}

// The best ones of a list are found by bins of scores: these here share one bin, or lie beyond the
// range that is expected.
TEST(DetectionOutput, KernelOfEqualAndUnusualScores) {
  unsigned seed = 50;
  for (const char* least : {"-1", "0.3", "2"})
    for (const float highest : {1.0f, 3.0f, 1e30f, INFINITY}) {
      const Attributes a = output_settings({{"num_classes", "3"},
                                            {"top_k", "50"},
                                            {"keep_top_k", "20"},
                                            {"nms_threshold", "0.95"},
                                            {"confidence_threshold", least}});
      ++seed;
      check_random({.priors = 1500, .levels = seed % 2 ? 1 : 900, .highest = highest}, a, seed,
                   tiny_traits());
    }
}

// On a CPU, each work-group is one core.
TEST(DetectionOutput, CpusUseTheHost) {
  DeviceTraits cpu = gpu_traits();
  cpu.is_cpu = true;
  const Attributes a = output_settings({{"num_classes", "3"}});
  const OpDesc desc = make_desc("DetectionOutput", 8, a, random_inputs({}, a, 1), {});
  const KernelFamily& family = *find_op("DetectionOutput", 8)->families.at(0);
  EXPECT_TRUE(says(family.reject(desc, cpu), "a CPU is faster at it on the host"));
  EXPECT_EQ(family.reject(desc, gpu_traits()), "");
}

}  // namespace
}  // namespace clinfer::test
