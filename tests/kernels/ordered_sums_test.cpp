// Sums in one order (DeviceTraits::ordered_sums): each point of each kernel that is then taken gives the
// bits of a plain loop that adds up as KernelFamily::own_order describes. PoCL and Intel's CPU runtime
// run it.
#include <bit>
#include <cmath>
#include <set>
#include <string>

#include "engine/ocl/compiler/compiler_pool.h"
#include "engine/ocl/device.h"
#include "engine/passes/passes.h"
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/op_runner.h"

namespace clinfer::test {
namespace {

const ocl::Context& ordered_context() {
  static const auto context =
      ocl::with_ordered_sums(*ocl::Context::create(ocl::select_device("GPU")));
  // Compilers start once, not for each kernel.
  static const auto compilers = ocl::CompilerPool::of(*context);
  return *context;
}

// The device itself, a GPU without extensions, and one with the device's sub-groups if it has any.
std::vector<DeviceTraits> ordered_devices() {
  std::vector<DeviceTraits> devices{ordered_context().traits, gpu_traits()};
  devices[1].ordered_sums = true;
  if (devices[0].sub_groups != 0) {
    devices.push_back(devices[0]);
    devices.back().is_cpu = false;
  }
  return devices;
}

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

// Runs all families that are taken, and compares their bits with `want`, or with those of the first
// run if that is empty. Returns the names of the families.
std::set<std::string> run_ordered(const OpDesc& desc, const std::vector<Tensor>& inputs,
                                  std::vector<float> want = {}) {
  std::set<std::string> names;
  for (const DeviceTraits& traits : ordered_devices()) {
    std::string reasons;
    const auto families =
        accepting_families(*find_op(desc.type, desc.opset), desc, traits, &reasons);
    EXPECT_EQ(families.size(), 1u) << desc.type << ": " << reasons;
    for (const KernelFamily* family : families) {
      EXPECT_EQ(family->own_order, "");
      names.insert(family->name);
      for (const TuningPoint& point : points_of(*family, desc, traits)) {
        const OpRun run =
            run_op(ordered_context(), desc, family->plan(desc, traits, point), inputs);
        const std::vector<float> got = run.outputs.at(0).to_floats();
        if (want.empty()) want = got;
        EXPECT_EQ(got.size(), want.size());
        size_t different = 0;
        for (size_t i = 0; i < std::min(got.size(), want.size()); ++i)
          different += bits_of(got[i]) != bits_of(want[i]);
        std::string text = family->name;
        for (const auto& [key, value] : point.values)
          text += " " + key + "=" + std::to_string(value);
        EXPECT_EQ(different, 0u) << desc.type << " by " << text;
      }
    }
  }
  return names;
}

struct Window {
  int64_t kernel, stride, pad;
};

// A convolution of [1, C, H, W] by [outputs, C / groups, K, K].
std::vector<float> convolved(const Tensor& data, const Tensor& filter, int64_t groups, Window by) {
  const std::vector<float> x = data.to_floats(), w = filter.to_floats();
  const int64_t height = data.shape()[2], width = data.shape()[3];
  const int64_t inputs = data.shape()[1] / groups;
  const int64_t outputs = filter.elements() / (inputs * by.kernel * by.kernel);
  const int64_t high = (height + 2 * by.pad - by.kernel) / by.stride + 1;
  const int64_t wide = (width + 2 * by.pad - by.kernel) / by.stride + 1;
  std::vector<float> out;
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t y = 0; y < high; ++y)
      for (int64_t to = 0; to < wide; ++to) {
        float sum = 0;
        for (int64_t ky = 0; ky < by.kernel; ++ky)
          for (int64_t kx = 0; kx < by.kernel; ++kx) {
            const int64_t iy = y * by.stride - by.pad + ky, ix = to * by.stride - by.pad + kx;
            if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue;
            for (int64_t i = 0; i < inputs; ++i) {
              const int64_t channel = o / (outputs / groups) * inputs + i;
              sum = std::fma(x[(channel * height + iy) * width + ix],
                             w[((o * inputs + i) * by.kernel + ky) * by.kernel + kx], sum);
            }
          }
        out.push_back(sum);
      }
  return out;
}

std::set<std::string> run_convolution(const char* type, int64_t channels, Shape filter, Window by) {
  const std::string stride = std::to_string(by.stride) + "," + std::to_string(by.stride);
  const std::string pad = std::to_string(by.pad) + "," + std::to_string(by.pad);
  std::vector<Tensor> inputs;
  const OpDesc desc =
      describe({type, {1, channels, 9, 13}, filter, stride.c_str(), pad.c_str(), "1,1"},
               ElementType::f32, inputs);
  const int64_t groups = filter.size() == 5 ? filter[0] : 1;
  return run_ordered(desc, inputs, convolved(inputs[0], inputs[1], groups, by));
}

TEST(OrderedSums, Convolutions) {
  // Winograd's kernels and slices take these elsewhere.
  run_convolution("Convolution", 64, {24, 64, 3, 3}, {3, 1, 1});
  run_convolution("Convolution", 3, {20, 3, 3, 3}, {3, 2, 1});
  run_convolution("Convolution", 96, {40, 96, 1, 1}, {1, 1, 0});
  run_convolution("GroupConvolution", 24, {24, 1, 1, 3, 3}, {3, 1, 1});
  run_convolution("GroupConvolution", 20, {20, 1, 1, 5, 5}, {5, 2, 2});
  run_convolution("GroupConvolution", 24, {3, 8, 8, 3, 3}, {3, 1, 1});
}

TEST(OrderedSums, TransposedConvolutions) {
  const std::vector<Tensor> inputs{random_tensor({1, 12, 5, 7}, -1, 1, 1),
                                   random_tensor({12, 10, 4, 4}, -1, 1, 2)};
  const OpDesc desc = make_desc(
      "ConvolutionBackpropData", 1,
      attributes(
          {{"strides", "2,2"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}, {"dilations", "1,1"}}),
      inputs, {false, true});
  const std::vector<float> x = inputs[0].to_floats(), w = inputs[1].to_floats();
  std::vector<float> want;
  for (int o = 0; o < 10; ++o)
    for (int y = 0; y < 10; ++y)
      for (int to = 0; to < 14; ++to) {
        float sum = 0;
        for (int ky = 0; ky < 4; ++ky)
          for (int kx = 0; kx < 4; ++kx) {
            const int iy = y + 1 - ky, ix = to + 1 - kx;
            if (iy < 0 || iy % 2 != 0 || iy / 2 >= 5 || ix < 0 || ix % 2 != 0 || ix / 2 >= 7)
              continue;
            for (int i = 0; i < 12; ++i)
              sum = std::fma(x[(i * 5 + iy / 2) * 7 + ix / 2], w[((i * 10 + o) * 4 + ky) * 4 + kx],
                             sum);
          }
        want.push_back(sum);
      }
  run_ordered(desc, inputs, want);
}

// Products with constant weights, of two activations, and of operands whose sums run along vectors.
TEST(OrderedSums, Products) {
  for (const int64_t rows : {1, 11})
    for (const bool constant : {true, false})
      for (const bool transposed : {false, true}) {
        const std::vector<Tensor> inputs{
            random_tensor({rows, 150}, -1, 1, 1),
            random_tensor(transposed ? Shape{37, 150} : Shape{150, 37}, -1, 1, 2)};
        const OpDesc desc =
            make_desc("MatMul", 1, attributes({{"transpose_b", transposed ? "true" : "false"}}),
                      inputs, {false, constant});
        const std::vector<float> a = inputs[0].to_floats(), b = inputs[1].to_floats();
        std::vector<float> want;
        for (int64_t m = 0; m < rows; ++m)
          for (int64_t n = 0; n < 37; ++n) {
            float sum = 0;
            for (int64_t k = 0; k < 150; ++k)
              sum = std::fma(a[m * 150 + k], b[transposed ? n * 150 + k : k * 37 + n], sum);
            want.push_back(sum);
          }
        run_ordered(desc, inputs, want);
      }
}

TEST(OrderedSums, Averages) {
  for (const auto& [size, kernel, stride, pad] :
       {std::tuple{16, 16, 1, 0}, std::tuple{9, 3, 2, 1}}) {
    const std::string of = std::to_string(kernel) + "," + std::to_string(kernel);
    const std::string step = std::to_string(stride) + "," + std::to_string(stride);
    const std::string around = std::to_string(pad) + "," + std::to_string(pad);
    const std::vector<Tensor> inputs{random_tensor({1, 20, size, size})};
    const OpDesc desc = make_desc("AvgPool", 1,
                                  attributes({{"kernel", of.c_str()},
                                              {"strides", step.c_str()},
                                              {"pads_begin", around.c_str()},
                                              {"pads_end", around.c_str()},
                                              {"exclude-pad", "true"},
                                              {"rounding_type", "floor"}}),
                                  inputs, {});
    const std::vector<float> x = inputs[0].to_floats();
    const int to = (size + 2 * pad - kernel) / stride + 1;
    std::vector<float> want;
    for (int c = 0; c < 20; ++c)
      for (int y = 0; y < to; ++y)
        for (int column = 0; column < to; ++column) {
          float sum = 0;
          int taps = 0;
          for (int ky = 0; ky < kernel; ++ky)
            for (int kx = 0; kx < kernel; ++kx) {
              const int iy = y * stride - pad + ky, ix = column * stride - pad + kx;
              if (iy < 0 || iy >= size || ix < 0 || ix >= size) continue;
              sum += x[(c * size + iy) * size + ix];
              ++taps;
            }
          want.push_back(sum * (1.0f / static_cast<float>(taps)));
        }
    run_ordered(desc, inputs, want);
  }
}

// Rows that are the last dimension, and images, whose channels are the innermost dimension.
TEST(OrderedSums, Normalisations) {
  const Attributes given =
      attributes({{"eps", "1e-5"}, {"normalize_variance", "true"}, {"eps_mode", "INSIDE_SQRT"}});
  const auto normal = [](std::vector<float> row) {
    float total = 0, squares = 0;
    const float share = 1.0f / static_cast<float>(row.size());
    for (const float v : row) total += v;
    const float mean = total * share;
    for (float& v : row) v -= mean;
    for (const float v : row) squares = std::fma(v, v, squares);
    const float scale = 1.0f / std::sqrt(squares * share + 1e-5f);
    for (float& v : row) v *= scale;
    return row;
  };
  std::vector<Tensor> inputs{random_tensor({3, 7, 48}, -2, 5),
                             Tensor::of<int>(ElementType::i64, {1}, {-1})};
  const std::vector<float> x = inputs[0].to_floats();
  std::vector<float> want;
  for (auto at = x.begin(); at != x.end(); at += 48) {
    const std::vector<float> row = normal({at, at + 48});
    want.insert(want.end(), row.begin(), row.end());
  }
  run_ordered(make_desc("MVN", 6, given, inputs, {false, true}), inputs, want);

  inputs = {random_tensor({1, 12, 6, 8}, -2, 5), Tensor::of<int>(ElementType::i64, {2}, {2, 3})};
  const std::vector<float> image = inputs[0].to_floats();
  want.clear();
  for (auto at = image.begin(); at != image.end(); at += 48) {
    const std::vector<float> plane = normal({at, at + 48});
    want.insert(want.end(), plane.begin(), plane.end());
  }
  run_ordered(make_desc("MVN", 6, given, inputs, {false, true}), inputs, want);
}

TEST(OrderedSums, Reductions) {
  std::vector<Tensor> inputs{random_tensor({3, 5, 333}, -1, 2),
                             Tensor::of<int>(ElementType::i64, {1}, {2})};
  const std::vector<float> x = inputs[0].to_floats();
  std::vector<float> means, lengths;
  for (int row = 0; row < 15; ++row) {
    float sum = 0, squares = 0;
    for (int i = 0; i < 333; ++i) {
      sum += x[row * 333 + i];
      squares = std::fma(x[row * 333 + i], x[row * 333 + i], squares);
    }
    means.push_back(sum * (15.0f / 4995.0f));
    lengths.push_back(std::sqrt(squares));
  }
  const Attributes keeps = attributes({{"keep_dims", "true"}});
  run_ordered(make_desc("ReduceMean", 1, keeps, inputs, {false, true}), inputs, means);
  run_ordered(make_desc("ReduceL2", 4, keeps, inputs, {false, true}), inputs, lengths);

  // The places of an image whose channels are reduced as well.
  inputs = {random_tensor({1, 24, 7, 9}), Tensor::of<int>(ElementType::i64, {3}, {1, 2, 3})};
  const std::vector<float> image = inputs[0].to_floats();
  float sum = 0;
  for (int place = 0; place < 63; ++place)
    for (int c = 0; c < 24; ++c) sum += image[c * 63 + place];
  run_ordered(make_desc("ReduceSum", 1, keeps, inputs, {false, true}), inputs, {sum});
}

// Functions and weights of these have no plain loop here: all points and devices are compared with the
// first.
TEST(OrderedSums, OthersAreAlike) {
  std::vector<Tensor> inputs{random_tensor({4, 6, 101}, -3, 3)};
  for (const char* axis : {"2", "1"})
    run_ordered(make_desc("SoftMax", 8, attributes({{"axis", axis}}), inputs, {}), inputs);

  inputs = {random_tensor({1, 10, 6, 7}), Tensor::of<int>(ElementType::i64, {2}, {13, 19}),
            Tensor::of<int>(ElementType::i64, {2}, {2, 3})};
  const Attributes resized = attributes({{"mode", "linear_onnx"},
                                         {"shape_calculation_mode", "sizes"},
                                         {"coordinate_transformation_mode", "half_pixel"}});
  EXPECT_EQ(run_ordered(make_desc("Interpolate", 11, resized, inputs, {false, true, true}), inputs),
            (std::set<std::string>{"interpolate_tile"}));

  inputs = {random_tensor({1, 9, 8}, -1, 1, 1),    random_tensor({1, 1, 20}, -1, 1, 2),
            random_tensor({1, 1, 20}, -1, 1, 3),   Tensor::of<int>(ElementType::i32, {1}, {9}),
            random_tensor({1, 80, 8}, -1, 1, 4),   random_tensor({1, 80, 20}, -1, 1, 5),
            random_tensor({1, 80}, -0.5f, 0.5f, 6)};
  EXPECT_EQ(run_ordered(make_desc("LSTMSequence", 5,
                                  attributes({{"hidden_size", "20"}, {"direction", "forward"}}),
                                  inputs, {false, false, false, false, true, true, true}, 3),
                        inputs),
            (std::set<std::string>{"recurrent"}));
}

// Without the order, slices add up parts of the same sums.
TEST(OrderedSums, LeaveOutSlices) {
  std::vector<Tensor> inputs;
  const OpDesc desc =
      describe({"Convolution", {1, 256, 4, 4}, {16, 256, 1, 1}, "1,1", "0,0", "1,1"},
               ElementType::f32, inputs);
  for (const bool ordered : {false, true}) {
    DeviceTraits traits = gpu_traits();
    traits.ordered_sums = ordered;
    for (const KernelFamily* family : find_op("Convolution", 1)->families) {
      if (family->name != "conv_tile") continue;
      const std::vector<TuningPoint> space = family->space(desc, traits);
      EXPECT_EQ(std::ranges::any_of(space, [](const auto& point) { return point["SLICES"] > 1; }),
                !ordered);
    }
  }
}

// A sum of bytes is exact in any order, so that any family may compute it.
TEST(OrderedSums, TakeAnyFamilyForBytes) {
  DeviceTraits traits = matrix_traits();
  traits.ordered_sums = true;
  for (const ElementType type : {ElementType::u8, ElementType::f16}) {
    std::vector<Tensor> inputs;
    const OpDesc desc =
        describe({"Convolution", {1, 64, 8, 8}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"}, type, inputs);
    std::string reasons;
    const auto families = accepting_families(*find_op("Convolution", 1), desc, traits, &reasons);
    ASSERT_EQ(families.size(), 1u);
    EXPECT_EQ(families[0]->name, type == ElementType::u8 ? "conv_mma" : "conv_tile");
    const std::string why = "conv_mma: " + std::string(kMatrixOrder);
    EXPECT_EQ(reasons.find(why) != std::string::npos, type == ElementType::f16) << reasons;
  }
}

// The function that NVIDIA's GPUs have for results that become levels is another one elsewhere.
TEST(OrderedSums, ComputeSwishByOneCode) {
  for (const bool ordered : {false, true}) {
    DeviceTraits traits = gpu_traits();
    traits.vendor = Vendor::nvidia;
    traits.matrix = MatrixUnit::ptx;
    traits.ordered_sums = ordered;
    std::vector<Tensor> inputs;
    OpDesc desc = describe({"Convolution", {1, 64, 8, 8}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"},
                           ElementType::u8, inputs);
    desc.tail.push_back({"swish", 1});
    quantize_output(desc, inputs, 0.005f, 255);
    std::string text;
    for (const KernelFamily* family : find_op("Convolution", 1)->families)
      if (family->name == "conv_mma" && family->reject(desc, traits).empty())
        for (const KernelSpec& launch :
             family->plan(desc, traits, family->heuristic(desc, traits)).launches)
          text += launch.prologue;
    ASSERT_NE(text, "");
    EXPECT_EQ(text.find("coarse_tanh") != std::string::npos, !ordered) << text;
  }
}

}  // namespace
}  // namespace clinfer::test
