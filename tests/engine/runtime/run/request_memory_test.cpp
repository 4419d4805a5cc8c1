// Results that are large are handed out where they lie, on a device that shares the host's memory: they
// stay what they are as long as the application holds them, whatever the request does.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "tests/engine/relu_model.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

const Shape kLarge{1, 3, 256, 256};

std::shared_ptr<CompiledModel> compile(const Shape& shape, bool partial_batches = false) {
  const TemporaryFolder folder;
  Config config;
  config.cache_dir = "";
  config.partial_batches = partial_batches;
  return CompiledModel::compile(Model::read(test::relu_model(folder, shape)), config);
}

Tensor input(const Shape& shape, unsigned seed) { return test::random_tensor(shape, -1, 1, seed); }

std::vector<float> relu(const Tensor& tensor) {
  std::vector<float> values = tensor.to_floats();
  for (float& value : values) value = std::max(value, 0.F);
  return values;
}

Tensor result(InferRequest& request, size_t images = 0) {
  request.start(images);
  request.wait();
  return request.output(0);
}

TEST(RequestMemory, ResultsThatAreKeptStay) {
  const auto compiled = compile(kLarge);
  const auto request = compiled->create_request();
  std::vector<Tensor> kept;
  for (unsigned i = 0; i < 3; ++i) {
    request->set_input(0, input(kLarge, i));
    kept.push_back(result(*request));
  }
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(kept[i].to_floats(), relu(input(kLarge, i)));
  const void* const first = kept[0].raw();
  kept[0] = {};
  EXPECT_EQ(result(*request).raw(), first);  // memory that is free again is used again
  EXPECT_EQ(request->output(0).to_floats(), relu(input(kLarge, 2)));
}

TEST(RequestMemory, InputsThatAreNotSetAgainCountOn) {
  const auto compiled = compile(kLarge);
  const auto request = compiled->create_request();
  const Tensor zero = result(*request);
  EXPECT_EQ(zero.to_floats(), std::vector<float>(static_cast<size_t>(zero.elements())));
  const Tensor still_zero = result(*request);
  EXPECT_EQ(still_zero.to_floats(), zero.to_floats());

  request->set_input(0, input(kLarge, 1));
  const Tensor set = result(*request), again = result(*request);
  EXPECT_EQ(again.to_floats(), relu(input(kLarge, 1)));
  EXPECT_NE(set.raw(), again.raw());

  const Tensor pixels = test::random_tensor({256, 256, 3}, 0, 255, 2).convert(ElementType::u8);
  Frame frame;
  frame.format = PixelFormat::bgr;
  frame.width = frame.height = 256;
  frame.planes[0] = pixels.data<uint8_t>();
  frame.strides[0] = 3 * 256;
  request->set_frame(0, frame, {});
  const Tensor of_frame = result(*request), of_frame_again = result(*request);
  EXPECT_EQ(of_frame.data<float>()[1], pixels.data<uint8_t>()[3]);
  EXPECT_EQ(of_frame_again.to_floats(), of_frame.to_floats());
  EXPECT_EQ(set.to_floats(), again.to_floats());
}

TEST(RequestMemory, ImagesOfABatchThatAreNotSetAgainCountOn) {
  const Shape shape{4, 3, 128, 128};
  const auto compiled = compile(shape, true);
  const auto request = compiled->create_request();
  std::vector<Tensor> pixels;
  const auto set = [&](size_t image) {
    pixels.push_back(
        test::random_tensor({128, 128}, 0, 255, 5 + static_cast<unsigned>(pixels.size()))
            .convert(ElementType::u8));
    Frame frame;
    frame.format = PixelFormat::gray8;
    frame.width = frame.height = frame.strides[0] = 128;
    frame.planes[0] = pixels.back().data<uint8_t>();
    request->set_frame(0, frame, {}, image);
  };
  for (size_t image = 0; image < 4; ++image) set(image);
  const Tensor all = result(*request);
  set(1);
  const Tensor one_new = result(*request);
  const std::vector<float> before = all.to_floats(), after = one_new.to_floats();
  const auto image = static_cast<std::ptrdiff_t>(before.size() / 4);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + image, after.begin()));
  EXPECT_FALSE(
      std::equal(before.begin() + image, before.begin() + 2 * image, after.begin() + image));
  EXPECT_TRUE(std::equal(before.begin() + 2 * image, before.end(), after.begin() + 2 * image));
  EXPECT_EQ(after[static_cast<size_t>(image)], pixels[4].data<uint8_t>()[0]);
  // The plan for fewer images has kernels of its own in each memory.
  for (int i = 0; i < 3; ++i) {
    const Tensor part = result(*request, 1);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + image, part.data<float>()));
  }
  EXPECT_EQ(all.to_floats(), before);
}

TEST(RequestMemory, ResultsOutliveRequestAndModel) {
  auto compiled = compile(kLarge);
  auto request = compiled->create_request();
  request->set_input(0, input(kLarge, 4));
  const Tensor kept = result(*request);
  request.reset();
  compiled.reset();
  EXPECT_EQ(kept.to_floats(), relu(input(kLarge, 4)));
}

// On what passes for an integrated GPU (tests/faults/gpu_layer.cpp).
TEST(RequestMemory, LargeResultsAreNotCopied) {
  if (std::getenv("CLINFER_INTEGRATED") == nullptr)
    GTEST_SKIP() << "no integrated GPU; integrated runs it on a stand-in";
  void* const layer = dlopen(std::getenv("OPENCL_LAYERS"), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(layer, nullptr) << dlerror();
  const auto read = [&] {
    return reinterpret_cast<size_t (*)()>(dlsym(layer, "clinfer_layer_read"))();
  };
  const Shape small{1, 3, 8, 8};
  for (const Shape& shape : {kLarge, small}) {
    const auto request = compile(shape)->create_request();
    const size_t before = read();
    request->set_input(0, input(shape, 1));
    EXPECT_EQ(result(*request).to_floats(), relu(input(shape, 1)));
    EXPECT_EQ(read() - before, shape == small ? sizeof(float) * 3 * 8 * 8 : 0);
  }
  dlclose(layer);
}

}  // namespace
}  // namespace clinfer
