// OpenCL contexts, queues, buffers and images that an application shares with the engine.
#include "engine/opencl.h"

#include <gtest/gtest.h>

#include <CL/opencl.hpp>
#include <algorithm>
#include <cstring>
#include <functional>

#include "engine/ocl/device.h"
#include "tests/engine/ball_model.h"
#include "tests/engine/test_files.h"
#include "tests/kernels/op_test.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

using test::ball_model;

constexpr int kWidth = 70, kHeight = 46;

// The exponential of a picture, the mean of that, and that rounded to integers: outputs that lie as
// the plan has them, one of a single element, and one of another type.
test::SmallIr three_outputs() {
  const Shape picture{1, 1, 16, 24}, mean{1, 1, 1, 1};
  test::SmallIr ir("three");
  const int exp = ir.add("Exp", 1, "", {ir.input(picture)}, picture, "exp");
  const int pool = ir.add("AvgPool", 1,
                          "strides=\"16,24\" pads_begin=\"0,0\" pads_end=\"0,0\" "
                          "kernel=\"16,24\" exclude-pad=\"true\"",
                          {exp}, mean, "pool");
  const int whole = ir.add("Convert", 1, "destination_type=\"i32\"", {exp}, picture, "whole");
  for (const int output : {exp, pool, whole}) ir.result(output);
  return ir;
}

// A context and a queue as an application makes them.
struct Application {
  cl::Device device = ocl::select_device("GPU").device;
  cl::Context context{device};
  cl::CommandQueue queue{context, device};

  opencl::Shared shared() const { return {context(), device(), queue()}; }
  cl::Buffer buffer(size_t bytes) const { return {context, CL_MEM_READ_WRITE, bytes}; }
  cl::Buffer buffer_of(const Tensor& tensor, size_t offset = 0) const {
    cl::Buffer made = buffer(offset + tensor.bytes());
    queue.enqueueWriteBuffer(made, CL_TRUE, offset, tensor.bytes(), tensor.raw());
    return made;
  }
  std::vector<float> floats_in(const cl::Buffer& from, size_t offset, size_t count) const {
    std::vector<float> values(count);
    queue.enqueueReadBuffer(from, CL_TRUE, offset, count * sizeof(float), values.data());
    return values;
  }
};

// White in a disc, dark noise elsewhere: the bundled detector finds it.
uint8_t brightness(int x, int y, int width, int height) {
  const int dx = 3 * x - width, dy = 2 * y - height, radius = height / 3;
  return dx * dx / 9 + dy * dy / 4 < radius * radius / 4
             ? 235
             : static_cast<uint8_t>(16 + (x * 7 + y * 3) % 9);
}

Tensor ball(const Shape& shape) {
  Tensor tensor = Tensor::allocate(ElementType::f32, shape);
  const auto height = static_cast<int>(shape[2]), width = static_cast<int>(shape[3]);
  for (int c = 0; c < static_cast<int>(shape[1]); ++c)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        tensor.mutable_data<float>()[(c * height + y) * width + x] =
            brightness(x, y, width, height);
  return tensor;
}

class OpenCl : public ::testing::Test {
 protected:
  std::shared_ptr<const Model> three() { return Model::read(three_outputs().write(folder_)); }
  std::shared_ptr<CompiledModel> compile(const std::shared_ptr<const Model>& model,
                                         const Config& config = {}) {
    return opencl::compile(model, config, app_.shared());
  }
  static std::vector<float> output_of(InferRequest& request, size_t index = 0) {
    request.start();
    request.wait();
    return request.output(index).to_floats();
  }

  const TemporaryFolder folder_;
  const Application app_{};
};

TEST_F(OpenCl, UsesTheContextAndQueueOfTheApplication) {
  const auto model = compile(Model::read(ball_model()));
  const auto request = model->create_request();
  EXPECT_EQ(opencl::context_of(*model), app_.context());
  EXPECT_EQ(opencl::device_of(*model), app_.device());
  EXPECT_EQ(opencl::queue_of(*request), app_.queue());
  EXPECT_EQ(model->streams(), 1u);
  const auto own =
      opencl::compile(Model::read(ball_model()), {}, {app_.context(), nullptr, nullptr});
  EXPECT_EQ(opencl::context_of(*own), app_.context());
  EXPECT_NE(opencl::queue_of(*own->create_request()), app_.queue());
}

// In f32 and f16, so that tensors are copied both as they are and with a conversion.
TEST_F(OpenCl, InputsAndOutputsInBuffersAreThoseInHostMemory) {
  for (const Precision precision : {Precision::f32, Precision::f16}) {
    Config config;
    config.precision = precision;
    const auto model = compile(three(), config);
    const auto request = model->create_request();
    const Tensor input = test::random_tensor({1, 1, 16, 24}, 0, 3, 5);
    request->set_input(0, input);
    std::vector<std::vector<float>> want;
    request->start();
    request->wait();
    for (size_t i = 0; i < 3; ++i) want.push_back(request->output(i).to_floats());

    const size_t count = want[0].size();
    request->set_input(0, Tensor::allocate(ElementType::f32, {1, 1, 16, 24}));
    const cl::Buffer given = app_.buffer_of(input, 8), taken = app_.buffer(4 * count + 16);
    opencl::set_input(*request, 0, given(), 8);
    opencl::set_output(*request, 0, taken(), 16);
    const cl_mem own = opencl::output_buffer(*request, 2);
    EXPECT_EQ(opencl::output_buffer(*request, 2), own);
    EXPECT_EQ(output_of(*request, 1), want[1]);
    EXPECT_EQ(app_.floats_in(taken, 16, count), want[0]);
    std::vector<int> integers(count);
    app_.queue.enqueueReadBuffer(cl::Buffer(own, true), CL_TRUE, 0, 4 * count, integers.data());
    EXPECT_EQ(std::vector<float>(integers.begin(), integers.end()), want[2]);
    EXPECT_THROW(request->output(0), Error);

    opencl::set_output(*request, 0, nullptr);
    EXPECT_EQ(output_of(*request, 0), want[0])
        << "the input stays, the output is on the host again";
  }
}

// The network's input is channels-last and its last layer runs on the host.
TEST_F(OpenCl, DetectorsTakeAndGiveBuffers) {
  const auto model = compile(Model::read(ball_model()));
  const auto request = model->create_request();
  const Tensor input = ball(model->inputs()[0].shape);
  const std::vector<float> want = test::infer(*request, input);
  ASSERT_EQ(want[0], 0) << "an object of the first image";
  const auto other = model->create_request();
  const cl::Buffer given = app_.buffer_of(input);
  opencl::set_input(*other, 0, given());
  const cl_mem rows = opencl::output_buffer(*other, 0);
  other->start();
  other->wait();
  EXPECT_EQ(app_.floats_in(cl::Buffer(rows, true), 0, want.size()), want);
}

TEST_F(OpenCl, AnInputWaitsForItsEvent) {
  const auto model = opencl::compile(three(), {}, {app_.context(), nullptr, nullptr});
  const auto request = model->create_request();
  const Tensor input = test::random_tensor({1, 1, 16, 24}, 0, 3, 5);
  const std::vector<float> want = test::infer(*request, input);
  const cl::Buffer given = app_.buffer_of(Tensor::allocate(ElementType::f32, {1, 1, 16, 24}));
  const cl::UserEvent filled(app_.context);
  opencl::set_input(*request, 0, given(), 0, filled());
  request->start();
  EXPECT_FALSE(request->wait(std::chrono::milliseconds(0)));
  app_.queue.enqueueWriteBuffer(given, CL_TRUE, 0, input.bytes(), input.raw());
  cl::UserEvent(filled).setStatus(CL_COMPLETE);
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), want);
}

// Planes of NV12, padded, in one block: Y at 0, UV after it.
struct Picture {
  static constexpr int kStride = 96;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(kStride * (kHeight + (kHeight + 1) / 2));
  Frame frame;
  Picture() {
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        bytes[static_cast<size_t>(y * kStride + x)] = brightness(x, y, kWidth, kHeight);
    for (size_t i = kStride * kHeight; i < bytes.size(); ++i)
      bytes[i] = static_cast<uint8_t>(125 + i * i % 7);
    frame.width = kWidth;
    frame.height = kHeight;
    frame.strides = {kStride, kStride, 0};
    frame.planes = {bytes.data(), bytes.data() + kStride * kHeight, nullptr};
  }
};

TEST_F(OpenCl, FramesInBuffersAndImagesAreThoseInHostMemory) {
  const auto model = compile(Model::read(ball_model()));
  const auto request = model->create_request();
  const Picture picture;
  FrameTransform transform;
  transform.resize = ResizeMode::letterbox;
  request->set_frame(0, picture.frame, transform);
  const std::vector<float> want = output_of(*request);
  ASSERT_EQ(want[0], 0) << "an object of the first image";

  const cl::Buffer buffer(app_.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                          picture.bytes.size(), const_cast<uint8_t*>(picture.bytes.data()));
  ImportedPlanes planes;
  planes.memories = {opencl::import_buffer(*model, buffer()), nullptr, nullptr};
  planes.memories[1] = planes.memories[0];
  planes.offsets[1] = Picture::kStride * kHeight;
  request->set_memory(0, planes, picture.frame, transform);
  EXPECT_EQ(output_of(*request), want);

  // PoCL has no images of two components: four of them stand for two.
  std::vector<uint8_t> y, uv;
  for (int r = 0; r < kHeight; ++r)
    for (int x = 0; x < kWidth; ++x) y.push_back(picture.frame.planes[0][r * Picture::kStride + x]);
  for (int r = 0; r < kHeight / 2; ++r)
    for (int x = 0; x < kWidth / 2; ++x) {
      const uint8_t* const pair = picture.frame.planes[1] + r * Picture::kStride + 2 * x;
      uv.insert(uv.end(), {pair[0], pair[1], 0, 255});
    }
  const cl::Image2D y_image(app_.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                            cl::ImageFormat(CL_R, CL_UNORM_INT8), kWidth, kHeight, 0, y.data());
  const cl::Image2D uv_image(app_.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                             cl::ImageFormat(CL_RGBA, CL_UNORM_INT8), kWidth / 2, kHeight / 2, 0,
                             uv.data());
  const auto surface = opencl::import_images(*model, y_image(), uv_image());
  EXPECT_EQ(surface->width(), kWidth);
  request->set_surface(0, surface, picture.frame, transform);
  EXPECT_EQ(output_of(*request), want);
  surface->wait();
  EXPECT_EQ(model->check_surface(surface, picture.frame), "");
}

TEST_F(OpenCl, PicturesInImages) {
  const auto model = compile(Model::read(ball_model()));
  const auto request = model->create_request();
  Frame frame;
  frame.width = kWidth;
  frame.height = kHeight;
  std::vector<std::vector<float>> all;
  for (const auto& [order, format, components] : {std::tuple{CL_RGBA, PixelFormat::rgbx, 4},
                                                  {CL_BGRA, PixelFormat::bgrx, 4},
                                                  {CL_R, PixelFormat::gray8, 1}}) {
    frame.format = format;
    frame.strides[0] = kWidth * components;
    std::vector<uint8_t> pixels;  // of another brightness in each colour
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        for (int c = 0; c < components; ++c)
          pixels.push_back(static_cast<uint8_t>(brightness(x, y, kWidth, kHeight) * (10 - c) / 10));
    frame.planes[0] = pixels.data();
    request->set_frame(0, frame, {});
    const std::vector<float> want = output_of(*request);
    ASSERT_EQ(want[0], 0) << "an object of the first image";
    EXPECT_EQ(std::count(all.begin(), all.end(), want), 0) << "formats differ";
    all.push_back(want);
    const cl::Image2D image(app_.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                            cl::ImageFormat(static_cast<cl_channel_order>(order), CL_UNORM_INT8),
                            kWidth, kHeight, 0, pixels.data());
    opencl::set_image(*request, 0, image(), {});
    EXPECT_EQ(output_of(*request), want) << order;
  }
}

TEST_F(OpenCl, OutputsInImages) {
  const auto model = compile(three());
  const auto request = model->create_request();
  const Tensor input = test::random_tensor({1, 1, 16, 24}, 0, 3, 5);
  const std::vector<float> want = test::infer(*request, input);
  const cl::Image2D image(app_.context, CL_MEM_WRITE_ONLY, cl::ImageFormat(CL_R, CL_FLOAT), 24, 16);
  opencl::set_output_image(*request, 0, image());
  request->start();
  request->wait();
  std::vector<float> got(want.size());
  app_.queue.enqueueReadImage(image, CL_TRUE, {0, 0, 0}, {24, 16, 1}, 0, 0, got.data());
  EXPECT_EQ(got, want);
  const cl::Image2D small(app_.context, CL_MEM_WRITE_ONLY, cl::ImageFormat(CL_R, CL_FLOAT), 23, 16),
      bytes(app_.context, CL_MEM_WRITE_ONLY, cl::ImageFormat(CL_R, CL_UNORM_INT8), 24, 16);
  EXPECT_THROW(opencl::set_output_image(*request, 0, small()), Error);
  EXPECT_THROW(opencl::set_output_image(*request, 0, bytes()), Error);
}

std::string why_not(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(OpenCl, RefusesWhatCannotBeShared) {
  const auto model = Model::read(ball_model());
  const Application other;
  EXPECT_NE(why_not([&] { opencl::compile(model, {}, {}); }).find("no OpenCL context"),
            std::string::npos);
  EXPECT_NE(why_not([&] {
              opencl::compile(model, {}, {app_.context(), nullptr, other.queue()});
            }).find("of another context"),
            std::string::npos);
  const cl::CommandQueue disorderly(app_.context, app_.device,
                                    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  EXPECT_NE(why_not([&] {
              opencl::compile(model, {}, {app_.context(), nullptr, disorderly()});
            }).find("out of order"),
            std::string::npos);
  Config counted;
  counted.perf_count = true;
  EXPECT_NE(why_not([&] { opencl::compile(model, counted, app_.shared()); }).find("PROFILING"),
            std::string::npos);

  const auto compiled = compile(three());
  const auto request = compiled->create_request();
  constexpr size_t kBytes = 16 * 24 * 4;
  const cl::Buffer good = app_.buffer(kBytes), small = app_.buffer(kBytes - 4),
                   foreign = other.buffer(kBytes);
  struct Refused {
    cl_mem memory;
    size_t offset;
    const char* reason;
  };
  for (const Refused& r : {Refused{small(), 0, "needs 1536 bytes"},
                           {good(), 4, "the buffer has 1536"},
                           {good(), 2, "no multiple"},
                           {foreign(), 0, "another OpenCL context"}}) {
    const std::string in = why_not([&] { opencl::set_input(*request, 0, r.memory, r.offset); }),
                      out = why_not([&] { opencl::set_output(*request, 0, r.memory, r.offset); });
    EXPECT_NE(in.find(r.reason), std::string::npos) << in;
    EXPECT_NE(out.find(r.reason), std::string::npos) << out;
  }
  EXPECT_NE(why_not([&] { opencl::import_buffer(*compiled, foreign()); }), "");
  EXPECT_NE(why_not([&] { opencl::set_output(*request, 3, good()); }), "");
  EXPECT_NE(why_not([&] { opencl::set_image(*request, 0, good(), {}); }).find("no two-dimensional"),
            std::string::npos);
  request->start();
  EXPECT_NE(why_not([&] { opencl::set_input(*request, 0, good()); }).find("in flight"),
            std::string::npos);
  request->wait();
  EXPECT_NO_THROW(request->output(0)) << "what was refused has no effect";

  const auto first = CompiledModel::compile_first_tier(model, {});
  EXPECT_NE(why_not([&] { opencl::context_of(*first); }).find("not of one OpenCL device"),
            std::string::npos);
}

// On a device, where the input is stored as the port states it and where not, and on the host.
TEST_F(OpenCl, InputsMayBeWrittenInPlace) {
  Config half;
  half.precision = Precision::f16;
  for (const auto& model :
       {CompiledModel::compile(three(), {}), CompiledModel::compile(three(), half),
        CompiledModel::compile(Model::read(ball_model()), {}),
        CompiledModel::compile_first_tier(three(), {})}) {
    const auto request = model->create_request(), usual = model->create_request();
    const std::span<std::byte> memory = request->input_memory(0);
    for (unsigned seed = 1; seed < 3; ++seed) {
      const Tensor input = test::random_tensor(model->inputs()[0].shape, 0, 3, seed);
      ASSERT_EQ(memory.size(), input.bytes());
      std::memcpy(memory.data(), input.raw(), input.bytes());
      EXPECT_EQ(output_of(*request), test::infer(*usual, input)) << seed;
    }
    const Tensor given = ball(model->inputs()[0].shape);
    EXPECT_EQ(test::infer(*request, given), test::infer(*usual, given))
        << "set_input() replaces it";
    EXPECT_EQ(output_of(*request), output_of(*usual)) << "until it is asked for again";
    EXPECT_EQ(request->input_memory(0).data(), memory.data());
    EXPECT_NE(output_of(*request), output_of(*usual));
  }
}

// Each inference reads the device's memory again, without being told.
TEST_F(OpenCl, ABufferStaysTheInput) {
  const auto model = compile(three());
  const auto request = model->create_request(), usual = model->create_request();
  const cl::Buffer given = app_.buffer(16 * 24 * 4);
  opencl::set_input(*request, 0, given());
  for (unsigned seed = 1; seed < 4; ++seed) {
    const Tensor input = test::random_tensor({1, 1, 16, 24}, 0, 3, seed);
    app_.queue.enqueueWriteBuffer(given, CL_TRUE, 0, input.bytes(), input.raw());
    EXPECT_EQ(output_of(*request), test::infer(*usual, input)) << seed;
  }
  const Tensor other = test::random_tensor({1, 1, 16, 24}, 0, 3, 9);
  const std::vector<float> want = test::infer(*usual, other);
  EXPECT_EQ(test::infer(*request, other), want);
  EXPECT_EQ(output_of(*request), want) << "the buffer is the input no more";
}

// A picture of one brightness, in whichever memory.
struct Grey {
  Frame frame;
  std::vector<uint8_t> pixels = std::vector<uint8_t>(kWidth * kHeight);
  explicit Grey(int radius) {
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        const int dx = x - kWidth / 2, dy = y - kHeight / 2;
        pixels[static_cast<size_t>(y * kWidth + x)] =
            dx * dx + dy * dy < radius * radius ? 230 : 20;
      }
    frame.format = PixelFormat::gray8;
    frame.width = kWidth;
    frame.height = kHeight;
    frame.strides[0] = kWidth;
    frame.planes[0] = pixels.data();
  }
};

TEST_F(OpenCl, PicturesOnTheDeviceStayTheInput) {
  const auto model = compile(Model::read(ball_model()));
  const auto by_memory = model->create_request(), by_image = model->create_request(),
             usual = model->create_request();
  const cl::Buffer buffer = app_.buffer(kWidth * kHeight);
  const cl::Image2D image(app_.context, CL_MEM_READ_ONLY, cl::ImageFormat(CL_R, CL_UNORM_INT8),
                          kWidth, kHeight);
  ImportedPlanes planes;
  planes.memories[0] = opencl::import_buffer(*model, buffer());
  std::vector<std::vector<float>> all;
  for (const int radius : {8, 12, 16}) {
    const Grey picture(radius);
    app_.queue.enqueueWriteBuffer(buffer, CL_TRUE, 0, picture.pixels.size(), picture.pixels.data());
    app_.queue.enqueueWriteImage(image, CL_TRUE, {0, 0, 0}, {kWidth, kHeight, 1}, 0, 0,
                                 picture.pixels.data());
    if (all.empty()) {
      by_memory->set_memory(0, planes, picture.frame, {});
      opencl::set_image(*by_image, 0, image(), {});
    }
    usual->set_frame(0, picture.frame, {});
    const std::vector<float> want = output_of(*usual);
    EXPECT_EQ(std::count(all.begin(), all.end(), want), 0) << "the pictures differ";
    all.push_back(want);
    EXPECT_EQ(output_of(*by_memory), want) << radius;
    EXPECT_EQ(output_of(*by_image), want) << radius;
  }
  EXPECT_EQ(output_of(*usual), all.back()) << "a frame of the host stays by its values";
  // Neither the picture of before nor that of the request's memory takes the place of what is gone.
  planes = {};
  const std::string why = why_not([&] { by_memory->start(); });
  EXPECT_NE(why.find("the memory of image 0 of input 0 was released"), std::string::npos) << why;
  const Grey last(14);
  by_memory->set_frame(0, last.frame, {});
  usual->set_frame(0, last.frame, {});
  EXPECT_EQ(output_of(*by_memory), output_of(*usual)) << "the request is usable";
}

// Images of a batch are set one by one, over whatever the input was before.
TEST_F(OpenCl, OtherImagesOfABatchStay) {
  Config config;
  config.batch = 2;
  const auto model = compile(Model::read(ball_model()), config);
  const auto usual = model->create_request();
  const Grey first(9), second(15);
  const cl::Buffer buffer = app_.buffer(kWidth * kHeight);
  app_.queue.enqueueWriteBuffer(buffer, CL_TRUE, 0, second.pixels.size(), second.pixels.data());
  ImportedPlanes planes;
  planes.memories[0] = opencl::import_buffer(*model, buffer());
  const Tensor both = ball(model->inputs()[0].shape);
  // Image 0 as a tensor, image 1 of the picture.
  usual->set_input(0, both);
  usual->start();
  usual->wait();
  usual->set_frame(0, second.frame, {}, 1);
  const std::vector<float> want = output_of(*usual);
  usual->set_frame(0, first.frame, {}, 0);
  EXPECT_NE(output_of(*usual), want);

  const cl::Buffer tensor = app_.buffer_of(both);
  const auto by_tensor = [&](InferRequest& request) { request.set_input(0, both); };
  const auto by_buffer = [&](InferRequest& request) { opencl::set_input(request, 0, tensor()); };
  const auto by_own_memory = [&](InferRequest& request) {
    const std::span<std::byte> memory = request.input_memory(0);
    std::memcpy(memory.data(), both.raw(), both.bytes());
  };
  for (const std::function<void(InferRequest&)>& set :
       {std::function<void(InferRequest&)>(by_tensor), {by_buffer}, {by_own_memory}}) {
    const auto on_host = model->create_request(), on_device = model->create_request();
    set(*on_host);
    on_host->set_frame(0, second.frame, {}, 1);
    EXPECT_EQ(output_of(*on_host), want);
    set(*on_device);
    on_device->set_memory(0, planes, second.frame, {}, 1);
    EXPECT_EQ(output_of(*on_device), want);
    EXPECT_EQ(output_of(*on_device), want);
  }
}

// An output is read from where it went, also once that is changed.
TEST_F(OpenCl, NoOutputIsTakenForAnother) {
  const auto model = compile(three());
  const auto request = model->create_request();
  EXPECT_NE(why_not([&] { request->output(0); }).find("before an inference"), std::string::npos);
  opencl::output_buffer(*request, 0);
  request->start();
  EXPECT_NE(why_not([&] { request->output(1); }).find("before an inference"), std::string::npos);
  request->wait();
  opencl::set_output(*request, 0, nullptr);
  EXPECT_NE(why_not([&] { request->output(0); }).find("goes to memory of the device"),
            std::string::npos);
  EXPECT_NE(why_not([&] { request->output(3); }).find("the model has 3"), std::string::npos);
  EXPECT_EQ(output_of(*request, 0).size(), 16u * 24u);
}

TEST_F(OpenCl, ExplainsItsCopies) {
  Config half;
  half.precision = Precision::f16;
  const auto f16 = compile(three(), half)->create_request(),
             f32 = compile(three())->create_request(),
             detector = compile(Model::read(ball_model()))->create_request();
  EXPECT_TRUE(opencl::explain(*f16).empty());
  const cl::Buffer given = app_.buffer(16 * 24 * 4), picture = app_.buffer(3 * 192 * 256 * 4);
  for (InferRequest* const request : {f16.get(), f32.get()}) {
    opencl::set_input(*request, 0, given());
    opencl::output_buffer(*request, 0);
  }
  ASSERT_EQ(opencl::explain(*f16).size(), 2u);
  EXPECT_EQ(opencl::explain(*f16)[0].substr(0, 27), "input 0 (in): copied, since");
  EXPECT_NE(opencl::explain(*f16)[1].find("its kernels use f16, the application has f32"),
            std::string::npos);
  EXPECT_TRUE(opencl::explain(*f32).empty()) << "used in place";
  opencl::set_input(*detector, 0, picture());
  opencl::output_buffer(*detector, 0);
  ASSERT_EQ(opencl::explain(*detector).size(), 2u);
  EXPECT_NE(opencl::explain(*detector)[0].find("channels last"), std::string::npos);
  EXPECT_NE(opencl::explain(*detector)[1].find("the host computes it"), std::string::npos);
  opencl::set_output(*f32, 0, nullptr);
  f32->set_input(0, Tensor::allocate(ElementType::f32, {1, 1, 16, 24}));
  EXPECT_TRUE(opencl::explain(*f32).empty());
}

// Kernels read and write the application's buffers themselves where these lie as the network wants
// them, and the request's own memory again where they do not.
TEST_F(OpenCl, BuffersAreUsedInPlace) {
  Config config;
  config.precision = Precision::f32;
  const auto request = compile(three(), config)->create_request();
  constexpr size_t kElements = 16 * 24, kBytes = kElements * sizeof(float);
  std::vector<Tensor> inputs;
  std::vector<std::vector<float>> wanted;
  for (unsigned n = 0; n < 3; ++n) {
    inputs.push_back(test::random_tensor({1, 1, 16, 24}, 0, 3, n));
    request->set_input(0, inputs.back());
    wanted.push_back(output_of(*request));
  }
  const auto because = [&](const char* why) {
    const auto lines = opencl::explain(*request);
    return lines.size() == 1 && lines[0].find(why) != std::string::npos;
  };
  const cl::Buffer first = app_.buffer_of(inputs[0], 128), second = app_.buffer_of(inputs[1]),
                   out = app_.buffer(kBytes), other = app_.buffer(256 + kBytes);
  opencl::set_input(*request, 0, first(), 128);
  opencl::set_output(*request, 0, out());
  EXPECT_TRUE(opencl::explain(*request).empty());
  request->start();
  request->wait();
  EXPECT_EQ(app_.floats_in(out, 0, kElements), wanted[0]);
  const Tensor mean = request->output(1);
  opencl::set_input(*request, 0, second());
  opencl::set_output(*request, 0, other(), 256);
  request->start();
  request->wait();
  EXPECT_EQ(app_.floats_in(other, 256, kElements), wanted[1]);
  EXPECT_EQ(app_.floats_in(out, 0, kElements), wanted[0]) << "no longer this one's";
  EXPECT_NE(request->output(1).to_floats(), mean.to_floats());
  app_.queue.enqueueWriteBuffer(second, CL_TRUE, 0, kBytes, inputs[2].raw());
  request->start();
  request->wait();
  EXPECT_EQ(app_.floats_in(other, 256, kElements), wanted[2]) << "what the buffer holds then";

  // A tensor of the host's, and results there, need the request's memory.
  request->set_input(0, inputs[1]);
  request->start();
  request->wait();
  EXPECT_EQ(app_.floats_in(other, 256, kElements), wanted[1]);
  opencl::set_output(*request, 0, nullptr);
  EXPECT_EQ(output_of(*request), wanted[1]);
  opencl::set_input(*request, 0, first(), 128);
  EXPECT_EQ(output_of(*request), wanted[0]);

  // Buffers that kernels cannot use are copied, and explain() says so.
  const cl::Buffer crooked = app_.buffer_of(inputs[2], 12);
  opencl::set_input(*request, 0, crooked(), 12);
  EXPECT_TRUE(because("multiple of 64 bytes"));
  EXPECT_EQ(output_of(*request), wanted[2]);
  opencl::set_input(*request, 0, second());
  opencl::set_output(*request, 0, second());
  EXPECT_TRUE(because("an input lies in the same memory"));
  request->start();
  request->wait();
  EXPECT_EQ(app_.floats_in(second, 0, kElements), wanted[2]);
}

// Host memory of the application's as a buffer.
TEST_F(OpenCl, HostMemoryIsUsedInPlace) {
  Config config;
  config.precision = Precision::f32;
  const auto request = compile(three(), config)->create_request();
  const Tensor input = test::random_tensor({1, 1, 16, 24}, 0, 3, 5);
  request->set_input(0, input);
  const std::vector<float> wanted = output_of(*request);
  alignas(4096) static float memory[16 * 24 + 16];
  for (const size_t offset : {size_t{0}, size_t{1}}) {
    std::memcpy(memory + offset, input.raw(), input.bytes());
    const cl::Buffer buffer(app_.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, input.bytes(),
                            memory + offset);
    opencl::set_input(*request, 0, buffer());
    EXPECT_EQ(opencl::explain(*request).empty(), offset == 0);
    EXPECT_EQ(output_of(*request), wanted);
    request->set_input(0, input);
  }
}

// Without a context of the application's.
TEST_F(OpenCl, ModelsOfADeviceTakeEachOthersBuffers) {
  const auto first = CompiledModel::compile(three(), {}),
             second = CompiledModel::compile(three(), {});
  ASSERT_EQ(opencl::context_of(*first), opencl::context_of(*second));
  const auto a = first->create_request(), b = second->create_request();
  const Tensor input = test::random_tensor({1, 1, 16, 24}, 0, 1, 5);
  const std::vector<float> once = test::infer(*a, input);
  const std::vector<float> twice =
      test::infer(*a, Tensor::of(ElementType::f32, {1, 1, 16, 24}, once));
  ASSERT_NE(once, twice);
  opencl::set_input(*b, 0, opencl::output_buffer(*a, 0));
  for (unsigned n = 0; n < 2; ++n) {
    a->set_input(0, n == 0 ? input : Tensor::of(ElementType::f32, {1, 1, 16, 24}, once));
    a->start();
    a->wait();
    const std::vector<float> got = output_of(*b);
    EXPECT_EQ(got == twice, n == 0);
  }
}

}  // namespace
}  // namespace clinfer
