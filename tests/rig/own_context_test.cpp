// An application without GStreamer that hands its own OpenCL context to the engine, made on its own VA
// display, and has its surfaces inferred.
#include <CL/cl_va_api_media_sharing_intel.h>
#include <gtest/gtest.h>

#include <CL/opencl.hpp>
#include <vector>

#include "engine/opencl.h"
#include "tests/engine/ball_model.h"
#include "tests/rig/counters.h"

namespace clinfer {
namespace {

constexpr int kWidth = 70, kHeight = 46;

// An NV12 picture in host memory: a white disc around `centre`, dark noise elsewhere. The bundled
// detector finds the disc.
struct Picture {
  explicit Picture(int centre) : bytes(kWidth * (kHeight + kHeight / 2), 128) {
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        const int dx = x - centre, dy = y - kHeight / 2;
        bytes[y * kWidth + x] = dx * dx + dy * dy < 64 ? 235 : 16 + (x * 7 + y * 3) % 9;
      }
    frame.width = kWidth;
    frame.height = kHeight;
    frame.strides = {kWidth, kWidth, 0};
    frame.planes = {bytes.data(), bytes.data() + kWidth * kHeight, nullptr};
  }
  std::vector<uint8_t> bytes;
  Frame frame;
};

class OwnContext : public testing::Test {
 protected:
  void SetUp() override {
    display_ = rig_va_display(0);
    ASSERT_NE(display_, nullptr);
    const cl::Platform platform = cl::Platform::get();
    const auto get = reinterpret_cast<clGetDeviceIDsFromVA_APIMediaAdapterINTEL_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(),
                                                 "clGetDeviceIDsFromVA_APIMediaAdapterINTEL"));
    cl_device_id id = nullptr;
    cl_uint count = 0;
    ASSERT_EQ(get(platform(), CL_VA_API_DISPLAY_INTEL, display_,
                  CL_PREFERRED_DEVICES_FOR_VA_API_INTEL, 1, &id, &count),
              CL_SUCCESS);
    device_ = cl::Device(id, true);
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform()),
        CL_CONTEXT_VA_API_DISPLAY_INTEL, reinterpret_cast<cl_context_properties>(display_), 0};
    context_ = cl::Context(device_, properties);
    queue_ = cl::CommandQueue(context_, device_);
    ASSERT_EQ(vaCreateSurfaces(display_, VA_RT_FORMAT_YUV420, kWidth, kHeight, surfaces_,
                               std::size(surfaces_), nullptr, 0),
              VA_STATUS_SUCCESS);
  }
  void TearDown() override {
    vaDestroySurfaces(display_, surfaces_, std::size(surfaces_));
    EXPECT_EQ(cl_counters().images_alive, 0);
    EXPECT_EQ(cl_counters().misuse, 0);
    EXPECT_EQ(va_counters().misuse, 0);
  }

  void show(size_t surface, const Picture& picture) {
    const RigPicture shown{{picture.frame.planes[0], picture.frame.planes[1]},
                           {kWidth, kWidth},
                           0,
                           0,
                           kWidth,
                           kHeight};
    ASSERT_EQ(rig_function<RigWrite>(display_, "rig_write")(display_, surfaces_[surface], &shown),
              0);
  }
  static std::vector<float> output_of(InferRequest& request) {
    request.start();
    request.wait();
    return request.output(0).to_floats();
  }

  VADisplay display_ = nullptr;
  VASurfaceID surfaces_[2] = {VA_INVALID_ID, VA_INVALID_ID};
  cl::Device device_;
  cl::Context context_;
  cl::CommandQueue queue_;
};

TEST_F(OwnContext, SurfacesOfItsDisplayAreInferredWithoutACopy) {
  const auto network = Model::read(test::ball_model());
  for (const cl_command_queue queue : {queue_(), cl_command_queue{nullptr}}) {
    const auto model = opencl::compile(network, {}, {context_(), device_(), queue});
    EXPECT_EQ(opencl::context_of(*model), context_());
    EXPECT_EQ(model->sharing_problem(), "");
    const auto request = model->create_request();
    const RigVaCounters before = va_counters();
    const long acquired = cl_counters().acquired;
    std::vector<float> last;
    for (size_t i = 0; i < std::size(surfaces_); ++i) {
      const Picture picture(i == 0 ? 23 : 45);
      FrameTransform transform;
      transform.resize = ResizeMode::letterbox;
      request->set_frame(0, picture.frame, transform);
      const std::vector<float> want = output_of(*request);
      ASSERT_EQ(want[0], 0) << "an object of the first image";
      EXPECT_NE(want, last);
      show(i, picture);
      const auto surface = model->import_surface(surfaces_[i]);
      request->set_surface(0, surface, picture.frame, transform);
      EXPECT_EQ(output_of(*request), want);
      surface->wait();
      EXPECT_EQ(model->check_surface(surface, picture.frame), "");
      last = want;
    }
    EXPECT_GT(cl_counters().acquired, acquired);
    EXPECT_EQ(cl_counters().acquired, cl_counters().released);
    EXPECT_EQ(va_counters().frame_maps, before.frame_maps) << "through the host";
    EXPECT_EQ(va_counters().frame_gets, before.frame_gets) << "through the host";
  }
}

TEST_F(OwnContext, WithoutADisplaySurfacesAreRefused) {
  const cl::Context plain(device_);
  const auto model =
      opencl::compile(Model::read(test::ball_model()), {}, {plain(), device_(), nullptr});
  try {
    model->import_surface(surfaces_[0]);
    FAIL() << "the context has no display";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_argument) << error.what();
    EXPECT_NE(std::string(error.what()).find("VA display"), std::string::npos) << error.what();
  }
}

TEST_F(OwnContext, SurfacesThatAreNotTheDisplaysAreRefused) {
  const auto model =
      opencl::compile(Model::read(test::ball_model()), {}, {context_(), device_(), queue_()});
  EXPECT_THROW(model->import_surface(surfaces_[1] + 1000), Error);
  // That was the test's own misuse.
  rig_function<RigForgive>(display_, "rig_forgive")();
  static void* layer = dlopen(std::getenv("CLINFER_RIG_LAYER"), RTLD_NOW | RTLD_NOLOAD);
  reinterpret_cast<RigForgive>(dlsym(layer, "rig_forgive"))();
}

}  // namespace
}  // namespace clinfer
