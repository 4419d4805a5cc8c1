// Launches that are cut into parts: they compute the same, and a caller who cancels one waits for a part.
#include "engine/plan/cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "engine/engine.h"
#include "engine/ocl/device.h"
#include "engine/plan/work.h"
#include "engine/runtime/requests/left_work.h"
#include "tests/devices.h"
#include "tests/engine/test_files.h"
#include "tests/kernels/op_test.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

KernelSpec launch(std::array<size_t, 3> groups, std::array<size_t, 3> local) {
  KernelSpec spec;
  spec.local = local;
  for (size_t d = 0; d < 3; ++d) spec.global[d] = groups[d] * local[d];
  return spec;
}

TEST(Cut, LongLaunchesAlone) {
  const KernelSpec spec = launch({3, 40, 2}, {8, 2, 1});
  EXPECT_FALSE(cut_of(spec, 0.1));
  EXPECT_FALSE(cut_of(launch({1, 1, 1}, {64, 1, 1}), 100)) << "one group is one part";
  const Cut cut = cut_of(spec, 1);
  EXPECT_EQ(cut.dimension, 1u);
  EXPECT_EQ(cut.groups, 40u);
  EXPECT_EQ(cut.first, 4u) << "of a tenth of a second";
  const Part part = part_of(spec, cut, 36, 4);
  EXPECT_EQ(part.offset, (std::array<size_t, 3>{0, 72, 0}));
  EXPECT_EQ(part.global, (std::array<size_t, 3>{24, 8, 2}));
  const Cut wide = cut_of(launch({100000, 1, 1}, {16, 1, 1}), 0.3);
  EXPECT_LT(wide.first * 16, 65535u);
}

// Operands of a launch that is cut take memory of each request: a detector's first layer at a batch of 32 took 2.5 times the
// memory of the network.
TEST(Cut, LayersOfUsualBatchesAreNotCut) {
  DeviceTraits traits;
  traits.is_cpu = true;
  traits.compute_units = 2;
  traits.vector_width = 16;
  OpDesc desc;
  desc.type = "Convolution";
  desc.inputs = {TensorDesc::row_major(ElementType::f32, {32, 3, 300, 300}),
                 TensorDesc::row_major(ElementType::f32, {32, 3, 7, 7})};
  desc.outputs = {TensorDesc::row_major(ElementType::f32, {32, 32, 150, 150})};
  desc.constants = {{}, Tensor::allocate(ElementType::f32, {32, 3, 7, 7})};
  const KernelSpec spec = launch({1, 720, 1}, {1, 1, 1});
  EXPECT_FALSE(cut_of(spec, assumed_seconds(desc, traits)));
  traits.compute_units = 1;
  traits.vector_width = 4;
  EXPECT_TRUE(cut_of(spec, assumed_seconds(desc, traits))) << "a slow device";
}

OpDesc product_of(const Shape& left, const Shape& right, bool constant,
                  ElementType type = ElementType::f32) {
  OpDesc desc;
  desc.type = "MatMul";
  desc.inputs = {TensorDesc::row_major(type, left), TensorDesc::row_major(type, right)};
  Shape out = left;
  out.back() = right.back();
  desc.outputs = {TensorDesc::row_major(type, out)};
  desc.constants = {{}, constant ? Tensor::allocate(ElementType::f32, right) : Tensor()};
  desc.own_inputs = 2;
  return desc;
}

// A weight of a convolution serves one channel, one of a product of [batch, tokens, channels] as many rows
// as there are: the number of tokens is no number of channels.
TEST(Cut, CountsTheMultiplyAddsOfTokens) {
  EXPECT_EQ(multiply_adds(product_of({32, 196, 768}, {768, 3072}, true)), 32.0 * 196 * 768 * 3072);
  EXPECT_EQ(multiply_adds(product_of({196, 768}, {768, 3072}, true)), 196.0 * 768 * 3072);
  EXPECT_EQ(multiply_adds(product_of({2, 3, 5, 7}, {2, 3, 7, 4}, false)), 2.0 * 3 * 5 * 7 * 4);
  OpDesc turned = product_of({8, 5}, {8, 3}, true);
  turned.attributes.set("transpose_a", "true");
  turned.outputs = {TensorDesc::row_major(ElementType::f32, {5, 3})};
  EXPECT_EQ(multiply_adds(turned), 8.0 * 5 * 3);
  OpDesc attention;
  attention.type = "Attention";
  attention.inputs = {TensorDesc::row_major(ElementType::f16, {2, 12, 50, 64}),
                      TensorDesc::row_major(ElementType::f16, {2, 12, 70, 64}),
                      TensorDesc::row_major(ElementType::f16, {2, 12, 70, 32})};
  attention.outputs = {TensorDesc::row_major(ElementType::f16, {2, 50, 12, 32})};
  attention.constants.resize(3);
  EXPECT_EQ(multiply_adds(attention), 2.0 * 12 * 50 * 70 * (64 + 32));
}

// ViT-Base with 32 images: its largest product takes an H100 less than a tenth of a millisecond.
TEST(Cut, LaunchesOfTransformersAreNotCut) {
  const DeviceTraits traits = test::hopper("NVIDIA H100 80GB HBM3");
  const KernelSpec spec = launch({1, 720, 1}, {128, 1, 1});
  for (const Shape& weights : {Shape{768, 3072}, Shape{3072, 768}, Shape{768, 2304}})
    EXPECT_FALSE(cut_of(
        spec, assumed_seconds(product_of({32, 196, weights[0]}, weights, true, ElementType::f16),
                              traits)));
}

// A launch is cut by what is assumed of the device. A device that takes a tenth of that or less would be cut for
// nothing.
TEST(Cut, EstimatesAreNotFarAboveWhatIsMeasured) {
  const auto context = ocl::Context::create(ocl::select_device(""));
  const auto check = [&](OpDesc desc, int opset, const std::vector<Tensor>& inputs) {
    desc.opset = opset;
    const double us = test::kernel_us(desc, inputs, context->traits);
    EXPECT_LT(assumed_seconds(desc, context->traits), 10e-6 * us + 1e-3)
        << desc.type << " took " << us << " us";
  };
  const auto random = [](const Shape& shape) { return test::random_tensor(shape); };
  for (const bool constant : {false, true}) {
    const std::vector<Tensor> inputs{random({4, 197, 192}),
                                     random(constant ? Shape{192, 768} : Shape{4, 192, 768})};
    OpDesc desc = product_of(inputs[0].shape(), inputs[1].shape(), constant);
    if (constant) desc.constants[1] = inputs[1];
    check(desc, 1, inputs);
  }
  const std::vector<Tensor> heads{random({2, 3, 197, 64}), random({2, 3, 197, 64}),
                                  random({2, 3, 197, 64})};
  check(test::make_desc("Attention", 1, {}, heads, {false, false, false}), 1, heads);
  const std::vector<Tensor> scores{random({4, 3, 197, 197})};
  check(test::make_desc("SoftMax", 8, test::attributes({{"axis", "-1"}}), scores, {false}), 8,
        scores);
  const std::vector<Tensor> image{random({1, 64, 56, 56}), random({64, 64, 3, 3})};
  check(test::make_desc("Convolution", 1,
                        test::attributes({{"strides", "1,1"},
                                          {"dilations", "1,1"},
                                          {"pads_begin", "1,1"},
                                          {"pads_end", "1,1"}}),
                        image, {false, true}),
        1, image);
}

TEST(Cut, AtLeastTwoParts) {
  const Cut cut = cut_of(launch({1, 40, 1}, {8, 1, 1}), 0.03, 0.025);
  EXPECT_EQ(cut.first, 20u) << "between them a caller can cancel";
}

// [rows, inner] x [inner, columns]; few bytes of the .xml, much work.
std::string write_product(const TemporaryFolder& folder, int64_t rows, int64_t inner,
                          int64_t columns) {
  test::SmallIr ir("product");
  const int left = ir.input({rows, inner}, "in0"), right = ir.input({inner, columns}, "in1");
  ir.result(ir.add("MatMul", 1, "transpose_a=\"false\" transpose_b=\"false\"", {left, right},
                   {rows, columns}, "product"));
  return ir.write(folder);
}

// Rows of a product with which it takes this device so many seconds, by what is assumed of it.
int64_t rows_for(double seconds, int64_t inner, int64_t columns) {
  OpDesc desc;
  desc.type = "MatMul";
  desc.inputs = {TensorDesc::row_major(ElementType::f32, {1000, inner}),
                 TensorDesc::row_major(ElementType::f32, {inner, columns})};
  desc.outputs = {TensorDesc::row_major(ElementType::f32, {1000, columns})};
  const auto context = ocl::Context::create(ocl::select_device(""));
  return static_cast<int64_t>(1000 * seconds / assumed_seconds(desc, context->traits)) / 16 * 16;
}

TEST(Cut, PartsComputeWhatTheWholeDoes) {
  constexpr int64_t kInner = 1024, kColumns = 1040;
  const int64_t rows = rows_for(0.3, kInner, kColumns);
  const TemporaryFolder folder;
  const auto compiled =
      CompiledModel::compile(Model::read(write_product(folder, rows, kInner, kColumns)), {});
  const auto request = compiled->create_request();
  // Integers whose sums are exact: row i of the left one is i % 7 - 3 all along.
  std::vector<float> left(static_cast<size_t>(rows * kInner)),
      right(static_cast<size_t>(kInner * kColumns)), sums(kColumns);
  for (size_t i = 0; i < left.size(); ++i)
    left[i] = static_cast<float>(static_cast<int>(i / kInner % 7) - 3);
  for (size_t i = 0; i < right.size(); ++i) {
    const size_t row = i / kColumns, column = i % kColumns;
    right[i] = static_cast<float>(static_cast<int>((row + 3 * column) % 5) - 2);
    sums[column] += right[i];
  }
  request->set_input(0, Tensor::of(ElementType::f32, {rows, kInner}, left));
  request->set_input(1, Tensor::of(ElementType::f32, {kInner, kColumns}, right));
  request->start();
  int waits = 0;
  while (!request->wait(5ms)) ++waits;
  EXPECT_GT(waits, 1);
  const std::vector<float> got = request->output(0).to_floats();
  ASSERT_EQ(got.size(), static_cast<size_t>(rows * kColumns));
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i)
    wrong +=
        got[i] != static_cast<float>(static_cast<int>(i / kColumns % 7) - 3) * sums[i % kColumns];
  EXPECT_EQ(wrong, 0u);
}

TEST(Cut, CancellingWaitsForOnePart) {
  constexpr int64_t kInner = 4096, kColumns = 4096;
  const TemporaryFolder folder;
  Config config;
  config.device_timeout = 0ms;
  // The first inference at load has all the time, so it must not take too long.
  const auto compiled = CompiledModel::compile(
      Model::read(write_product(folder, rows_for(1, kInner, kColumns), kInner, kColumns)), config);
  const auto request = compiled->create_request();
  const auto whole_begin = Clock::now();
  request->start();
  request->wait();
  const Clock::duration whole = Clock::now() - whole_begin;
  Clock::duration shortest = Clock::duration::max();
  for (int round = 0; round < 2 || (round < 10 && shortest > whole / 4); ++round) {
    request->start();
    EXPECT_FALSE(request->wait(50ms)) << "the device is too fast for this test";
    const auto begin = Clock::now();
    request->cancel();
    try {
      request->wait();
      ADD_FAILURE() << "it went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
    }
    shortest = std::min(shortest, Clock::now() - begin);
    EXPECT_TRUE(left_work_is_over(60s)) << "nothing may be left";
  }
  EXPECT_LT(shortest, whole / 4);
}

// The kernel drivers of Intel's GPUs (i915, xe) end what keeps an engine for seconds.
TEST(Cut, KeepsLaunchesOnIntelsGpusBelowASecond) {
  // An execution unit computes eight at once; at its lowest clock, with two fifths of its cycles.
  constexpr double kSlowest = 8 * 0.35e9 * 0.4;
  const auto check = [&](const OpDesc& desc, const DeviceTraits& traits, double products) {
    const double seconds = assumed_seconds(desc, traits);
    const double really = products / (kSlowest * traits.compute_units);
    for (const KernelFamily* family : find_op(desc.type, desc.opset)->families) {
      if (!family->reject(desc, traits).empty()) continue;
      for (const KernelSpec& launch :
           family->plan(desc, traits, family->heuristic(desc, traits)).launches) {
        const Cut cut = cut_of(launch, seconds);
        const double part =
            cut ? static_cast<double>(cut.first) / static_cast<double>(cut.groups) : 1;
        EXPECT_LT(really * part, 1)
            << family->name << " on " << traits.name << ", assumed " << seconds;
      }
    }
  };
  for (const DeviceTraits& traits :
       {test::intel_gpu("skl", 24), test::intel_gpu("tgllp", 96), test::intel_gpu("dg2", 512)})
    for (const int64_t size : {32, 128, 224, 256, 512}) {
      const Tensor filter = Tensor::allocate(ElementType::f32, {256, 256, 3, 3});
      OpDesc desc;
      desc.type = "Convolution";
      desc.opset = 1;
      for (const char* name : {"strides", "dilations", "pads_begin", "pads_end"})
        desc.attributes.set(name, "1,1");
      const TensorDesc image = TensorDesc::channels_last(ElementType::f16, {1, 256, size, size});
      desc.inputs = {image, TensorDesc::row_major(ElementType::f32, filter.shape())};
      desc.outputs = {image};
      desc.constants = {Tensor(), filter};
      desc.own_inputs = 2;
      check(desc, traits, 256.0 * 256 * 9 * static_cast<double>(size * size));
    }
}

}  // namespace
}  // namespace clinfer
