// The rig itself: what it reports, and that it notices each way of using the extension wrongly.
#include "tests/rig/rig.h"

#include <CL/cl_ext.h>
#include <CL/cl_va_api_media_sharing_intel.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CL/opencl.hpp>
#include <array>
#include <vector>

#include "tests/rig/display.h"

namespace {

constexpr unsigned kWidth = 32, kHeight = 16;

template <typename Function>
Function layer_function(const char* name) {
  static void* layer = dlopen(std::getenv("CLINFER_RIG_LAYER"), RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(layer, name));
}

RigClCounters counters() {
  RigClCounters now{};
  layer_function<RigReadClCounters>("rig_cl_counters")(&now);
  return now;
}

class Rig : public testing::Test {
 protected:
  void SetUp() override {
    display_ = rig_va_display(0);
    ASSERT_NE(display_, nullptr);
    platform_ = cl::Platform::get();
    const auto get = function<clGetDeviceIDsFromVA_APIMediaAdapterINTEL_fn>(
        "clGetDeviceIDsFromVA_APIMediaAdapterINTEL");
    cl_device_id id = nullptr;
    cl_uint count = 0;
    ASSERT_EQ(get(platform_(), CL_VA_API_DISPLAY_INTEL, display_,
                  CL_PREFERRED_DEVICES_FOR_VA_API_INTEL, 1, &id, &count),
              CL_SUCCESS);
    device_ = cl::Device(id, true);
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform_()),
        CL_CONTEXT_VA_API_DISPLAY_INTEL, reinterpret_cast<cl_context_properties>(display_), 0};
    context_ = cl::Context(device_, properties);
    queue_ = cl::CommandQueue(context_, device_);
    create_ =
        function<clCreateFromVA_APIMediaSurfaceINTEL_fn>("clCreateFromVA_APIMediaSurfaceINTEL");
    acquire_ = function<clEnqueueAcquireVA_APIMediaSurfacesINTEL_fn>(
        "clEnqueueAcquireVA_APIMediaSurfacesINTEL");
    release_ = function<clEnqueueReleaseVA_APIMediaSurfacesINTEL_fn>(
        "clEnqueueReleaseVA_APIMediaSurfacesINTEL");
    ASSERT_EQ(
        vaCreateSurfaces(display_, VA_RT_FORMAT_YUV420, kWidth, kHeight, &surface_, 1, nullptr, 0),
        VA_STATUS_SUCCESS);
    program_ = cl::Program(
        context_,
        std::string("__kernel void first(__read_only image2d_t image, __global float *out) {"
                    " out[0] = read_imagef(image, (int2)(0, 0)).x; }"));
    program_.build(device_);
  }
  void TearDown() override {
    queue_.finish();
    if (surface_ != VA_INVALID_ID) vaDestroySurfaces(display_, &surface_, 1);
    layer_function<RigForgive>("rig_forgive")();
    rig_function<RigForgive>(display_, "rig_forgive")();
  }
  template <typename Function>
  Function function(const char* name) {
    return reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform_(), name));
  }
  cl::Image2D image(cl_uint plane) {
    cl_int status = CL_SUCCESS;
    const cl::Image2D made(create_(context_(), CL_MEM_READ_ONLY, &surface_, plane, &status));
    EXPECT_EQ(status, CL_SUCCESS);
    return made;
  }
  cl_int use(const cl::Image2D& image) {
    cl::Kernel kernel(program_, "first");
    kernel.setArg(0, image);
    const cl::Buffer out(context_, CL_MEM_READ_WRITE, 4);
    kernel.setArg(1, out);
    try {
      cl::Event done;
      queue_.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(1), cl::NullRange, nullptr,
                                  &done);
      done.wait();
    } catch (const cl::Error& error) {
      return error.err();
    }
    return CL_SUCCESS;
  }
  cl_int acquire(const cl::Image2D& image) { return hand_over(acquire_, queue_, image); }
  cl_int release(const cl::Image2D& image) { return hand_over(release_, queue_, image); }
  cl_int hand_over(clEnqueueAcquireVA_APIMediaSurfacesINTEL_fn function,
                   const cl::CommandQueue& queue, const cl::Image2D& image) {
    cl::Event done;
    const cl_int status = function(queue(), 1, &image(), 0, nullptr, &done());
    if (status == CL_SUCCESS) done.wait();
    return status;
  }

  VADisplay display_ = nullptr;
  VASurfaceID surface_ = VA_INVALID_ID;
  cl::Platform platform_;
  cl::Device device_;
  cl::Context context_;
  cl::CommandQueue queue_;
  cl::Program program_;
  clCreateFromVA_APIMediaSurfaceINTEL_fn create_ = nullptr;
  clEnqueueAcquireVA_APIMediaSurfacesINTEL_fn acquire_ = nullptr;
  clEnqueueReleaseVA_APIMediaSurfacesINTEL_fn release_ = nullptr;
};

TEST_F(Rig, ReportsTheExtension) {
  EXPECT_NE(platform_.getInfo<CL_PLATFORM_EXTENSIONS>().find("cl_intel_va_api_media_sharing"),
            std::string::npos);
  EXPECT_NE(device_.getInfo<CL_DEVICE_EXTENSIONS>().find("cl_intel_va_api_media_sharing"),
            std::string::npos);
  EXPECT_EQ(image(0).getImageInfo<CL_IMAGE_WIDTH>(), kWidth);
  EXPECT_EQ(image(1).getImageInfo<CL_IMAGE_HEIGHT>(), kHeight / 2);
  cl_uint plane = 9;
  const cl::Image2D chroma = image(1);
  EXPECT_EQ(clGetImageInfo(chroma(), CL_IMAGE_VA_API_PLANE_INTEL, sizeof plane, &plane, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(plane, 1u);
}

TEST_F(Rig, HasNothingAgainstRightUse) {
  const long before = counters().misuse;
  {
    const cl::Image2D luma = image(0);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(acquire(luma), CL_SUCCESS);
      EXPECT_EQ(use(luma), CL_SUCCESS);
      EXPECT_EQ(release(luma), CL_SUCCESS);
    }
    queue_.finish();
  }
  EXPECT_EQ(counters().misuse, before);
  EXPECT_EQ(counters().images_alive, 0);
}

TEST_F(Rig, NoticesUseWithoutAcquire) {
  const cl::Image2D luma = image(0);
  EXPECT_EQ(use(luma), CL_VA_API_MEDIA_SURFACE_NOT_ACQUIRED_INTEL);
  EXPECT_EQ(release(luma), CL_VA_API_MEDIA_SURFACE_NOT_ACQUIRED_INTEL);
  EXPECT_EQ(counters().misuse, 2);
}

TEST_F(Rig, NoticesASecondAcquire) {
  const cl::Image2D luma = image(0);
  EXPECT_EQ(acquire(luma), CL_SUCCESS);
  EXPECT_EQ(acquire(luma), CL_VA_API_MEDIA_SURFACE_ALREADY_ACQUIRED_INTEL);
  EXPECT_EQ(release(luma), CL_SUCCESS);
  EXPECT_EQ(counters().misuse, 1);
}

TEST_F(Rig, NoticesAnotherQueue) {
  const cl::Image2D luma = image(0);
  const cl::CommandQueue other(context_, device_);
  EXPECT_EQ(acquire(luma), CL_SUCCESS);
  hand_over(release_, other, luma);
  EXPECT_GE(counters().misuse, 1);
}

TEST_F(Rig, NoticesWrongArguments) {
  cl_int status = CL_SUCCESS;
  EXPECT_EQ(create_(context_(), CL_MEM_READ_ONLY, &surface_, 2, &status), nullptr);
  EXPECT_EQ(status, CL_INVALID_VALUE);
  EXPECT_EQ(create_(context_(), CL_MEM_COPY_HOST_PTR, &surface_, 0, &status), nullptr);
  EXPECT_EQ(status, CL_INVALID_VALUE);
  const cl::Context plain(device_);
  EXPECT_EQ(create_(plain(), CL_MEM_READ_ONLY, &surface_, 0, &status), nullptr);
  EXPECT_EQ(status, CL_INVALID_CONTEXT);
  EXPECT_EQ(counters().misuse, 3);
}

TEST_F(Rig, NoticesSurfacesThatAreGoneOrForeign) {
  VASurfaceID none = 99;
  cl_int status = CL_SUCCESS;
  EXPECT_EQ(create_(context_(), CL_MEM_READ_ONLY, &none, 0, &status), nullptr);
  EXPECT_EQ(status, CL_INVALID_VA_API_MEDIA_SURFACE_INTEL);
  const cl::Image2D luma = image(0);
  vaDestroySurfaces(display_, &surface_, 1);
  surface_ = VA_INVALID_ID;
  EXPECT_EQ(acquire(luma), CL_INVALID_VA_API_MEDIA_SURFACE_INTEL);
  EXPECT_EQ(counters().misuse, 1);
}

TEST_F(Rig, NoticesADestroyedSurfaceThatIsInUse) {
  const cl::Image2D luma = image(0);
  EXPECT_EQ(acquire(luma), CL_SUCCESS);
  vaDestroySurfaces(display_, &surface_, 1);
  surface_ = VA_INVALID_ID;
  RigVaCounters va{};
  rig_function<RigReadVaCounters>(display_, "rig_va_counters")(&va);
  EXPECT_EQ(va.misuse, 1);
  release(luma);
}

// ---- DMA-BUFs -----------------------------------------------------------------------------------

class RigDmabuf : public Rig {
 protected:
  void SetUp() override {
    Rig::SetUp();
    fd_ = memfd_create("frame", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd_, kBytes), 0);
    const unsigned char first = 77;
    ASSERT_EQ(pwrite(fd_, &first, 1, 0), 1);
    program_ = cl::Program(context_, std::string("__kernel void first(__global const uchar *in,"
                                                 " __global float *out) { out[0] = in[0]; }"));
    program_.build(device_);
    acquire_ = function<clEnqueueAcquireVA_APIMediaSurfacesINTEL_fn>(
        "clEnqueueAcquireExternalMemObjectsKHR");
    release_ = function<clEnqueueReleaseVA_APIMediaSurfacesINTEL_fn>(
        "clEnqueueReleaseExternalMemObjectsKHR");
  }
  void TearDown() override {
    if (fd_ >= 0) close(fd_);
    Rig::TearDown();
  }
  cl::Buffer import() {
    const cl_mem_properties properties[] = {CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
                                            static_cast<cl_mem_properties>(fd_), 0};
    cl_int status = CL_SUCCESS;
    const cl::Buffer made(clCreateBufferWithProperties(context_(), properties, CL_MEM_READ_ONLY,
                                                       kBytes, nullptr, &status));
    EXPECT_EQ(status, CL_SUCCESS);
    return made;
  }
  cl_int hand_over(clEnqueueAcquireVA_APIMediaSurfacesINTEL_fn function,
                   const cl::CommandQueue& queue, const cl::Buffer& buffer) {
    cl::Event done;
    const cl_int status = function(queue(), 1, &buffer(), 0, nullptr, &done());
    if (status == CL_SUCCESS) done.wait();
    return status;
  }
  // The first byte as a kernel sees it, or the error.
  float use(const cl::Buffer& buffer) {
    cl::Kernel kernel(program_, "first");
    const cl::Buffer out(context_, CL_MEM_READ_WRITE, sizeof(float));
    kernel.setArg(0, buffer);
    kernel.setArg(1, out);
    float value = 0;
    try {
      queue_.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(1));
      queue_.enqueueReadBuffer(out, CL_TRUE, 0, sizeof value, &value);
    } catch (const cl::Error& error) {
      return static_cast<float>(error.err());
    }
    return value;
  }

  static constexpr int kBytes = 4096;
  int fd_ = -1;
};

TEST_F(RigDmabuf, HasNothingAgainstRightUse) {
  EXPECT_NE(device_.getInfo<CL_DEVICE_EXTENSIONS>().find("cl_khr_external_memory_dma_buf"),
            std::string::npos);
  const RigClCounters before = counters();
  {
    const cl::Buffer buffer = import();
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(hand_over(acquire_, queue_, buffer), CL_SUCCESS);
      EXPECT_EQ(use(buffer), 77);
      EXPECT_EQ(hand_over(release_, queue_, buffer), CL_SUCCESS);
    }
    EXPECT_EQ(counters().buffers_alive, 1);
    queue_.finish();
  }
  EXPECT_EQ(counters().misuse, before.misuse);
  EXPECT_EQ(counters().buffers_alive, 0);
  EXPECT_EQ(counters().acquired - before.acquired, 2);
}

TEST_F(RigDmabuf, NoticesUseWithoutAcquire) {
  const cl::Buffer buffer = import();
  EXPECT_EQ(use(buffer), CL_INVALID_OPERATION);
  EXPECT_EQ(hand_over(release_, queue_, buffer), CL_INVALID_OPERATION);
  EXPECT_EQ(counters().misuse, 2);
  // The host, besides, reads rubbish.
  unsigned char first = 0;
  queue_.enqueueReadBuffer(buffer, CL_TRUE, 0, 1, &first);
  EXPECT_NE(first, 77);
  EXPECT_EQ(counters().misuse, 3);
}

TEST_F(RigDmabuf, NoticesASecondAcquireAndAnotherQueue) {
  const cl::Buffer buffer = import();
  const cl::CommandQueue other(context_, device_);
  EXPECT_EQ(hand_over(acquire_, other, buffer), CL_SUCCESS);
  EXPECT_EQ(hand_over(acquire_, other, buffer), CL_INVALID_OPERATION);
  EXPECT_EQ(counters().misuse, 1);
  use(buffer);
  EXPECT_EQ(counters().misuse, 2);
  hand_over(release_, queue_, buffer);
  EXPECT_EQ(counters().misuse, 3);
}

TEST_F(RigDmabuf, NoticesADescriptorThatIsClosed) {
  const cl::Buffer buffer = import();
  close(fd_);
  fd_ = memfd_create("another", MFD_CLOEXEC);  // under its number
  EXPECT_EQ(hand_over(acquire_, queue_, buffer), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(counters().misuse, 1);
}

TEST_F(RigDmabuf, NoticesWrongArguments) {
  const auto create = [&](cl_mem_properties fd, size_t bytes) {
    const cl_mem_properties properties[] = {CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR, fd, 0};
    cl_int status = CL_SUCCESS;
    EXPECT_EQ(clCreateBufferWithProperties(context_(), properties, CL_MEM_READ_ONLY, bytes, nullptr,
                                           &status),
              nullptr);
    return status;
  };
  EXPECT_EQ(create(static_cast<cl_mem_properties>(fd_), kBytes + 1), CL_INVALID_VALUE);
  EXPECT_EQ(create(9999, kBytes), CL_INVALID_VALUE);
  EXPECT_EQ(counters().misuse, 2);
}

// ---- surfaces as the host sees them -------------------------------------------------------------

// Pitch, memory and visibility are not what a careless reader would take them for.
TEST_F(Rig, KeepsWhatIsWrittenBackUntilItIsSynced) {
  VAImage derived{};
  ASSERT_EQ(vaDeriveImage(display_, surface_, &derived), VA_STATUS_SUCCESS);
  EXPECT_GT(derived.pitches[0], kWidth);
  EXPECT_GT(derived.offsets[1], derived.pitches[0] * kHeight);
  std::vector<unsigned char> bytes(kWidth * kHeight, 77);
  const RigPicture picture{{bytes.data(), bytes.data()}, {kWidth, kWidth}, 0, 0, kWidth, kHeight};
  ASSERT_EQ(rig_function<RigWrite>(display_, "rig_write")(display_, surface_, &picture), 0);
  void* data = nullptr;
  ASSERT_EQ(vaMapBuffer(display_, derived.buf, &data), VA_STATUS_SUCCESS);
  EXPECT_NE(*static_cast<unsigned char*>(data), 77);
  ASSERT_EQ(vaSyncSurface(display_, surface_), VA_STATUS_SUCCESS);
  EXPECT_EQ(*static_cast<unsigned char*>(data), 77);
  vaUnmapBuffer(display_, derived.buf);
  vaDestroyImage(display_, derived.image_id);
}

}  // namespace
