// An application without GStreamer whose frames lie in memory of others: DMA-BUFs, and memory that
// another interface of the driver exported. The rig takes memfds for both.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CL/opencl.hpp>
#include <optional>
#include <vector>

#include "engine/opencl.h"
#include "tests/engine/ball_model.h"
#include "tests/rig/counters.h"

namespace clinfer {
namespace {

constexpr int kWidth = 70, kHeight = 46;
constexpr size_t kBytes = kWidth * (kHeight + kHeight / 2);

// An NV12 picture, in host memory and in a memfd: a white disc around `centre`, dark noise elsewhere.
class Picture {
 public:
  explicit Picture(int centre) : bytes_(kBytes, 128), fd_(memfd_create("frame", MFD_CLOEXEC)) {
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        const int dx = x - centre, dy = y - kHeight / 2;
        bytes_[static_cast<size_t>(y * kWidth + x)] =
            static_cast<uint8_t>(dx * dx + dy * dy < 64 ? 235 : 16 + (x * 7 + y * 3) % 9);
      }
    EXPECT_EQ(write(fd_, bytes_.data(), kBytes), static_cast<ssize_t>(kBytes));
    frame.width = kWidth;
    frame.height = kHeight;
    frame.strides = {kWidth, kWidth, 0};
    frame.planes = {bytes_.data(), bytes_.data() + kWidth * kHeight, nullptr};
  }
  ~Picture() { close(fd_); }
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;
  int fd() const { return fd_; }

  Frame frame;

 private:
  std::vector<uint8_t> bytes_;
  int fd_;
};

ImportedPlanes planes_in(const std::shared_ptr<ImportedMemory>& memory) {
  return {{memory, memory, nullptr}, {0, kWidth * kHeight, 0}};
}

std::vector<float> output_of(InferRequest& request) {
  request.start();
  request.wait();
  return request.output(0).to_floats();
}

class ExternalMemoryOf : public testing::TestWithParam<MemoryHandle> {
 protected:
  void TearDown() override {
    EXPECT_EQ(cl_counters().buffers_alive, 0);
    EXPECT_EQ(cl_counters().misuse, 0);
  }
};

TEST_P(ExternalMemoryOf, IsInferredWhereItLies) {
  const auto model = CompiledModel::compile(Model::read(test::ball_model()), {});
  ASSERT_EQ(model->import_problem(GetParam()), "");
  const auto request = model->create_request();
  FrameTransform transform;
  transform.resize = ResizeMode::letterbox;
  for (const int centre : {23, 45}) {
    std::optional<Picture> picture(centre);
    request->set_frame(0, picture->frame, transform);
    const std::vector<float> want = output_of(*request);
    ASSERT_EQ(want[0], 0) << "an object of the first image";
    const auto memory = model->import_memory(GetParam(), picture->fd(), kBytes);
    EXPECT_EQ(memory->bytes(), kBytes);
    EXPECT_EQ(model->check_memory(planes_in(memory), picture->frame, picture->frame), "");
    const Frame frame = picture->frame;
    picture.reset();  // the import holds the memory
    for (int use = 0; use < 2; ++use) {
      request->set_memory(0, planes_in(memory), frame, transform);
      EXPECT_EQ(output_of(*request), want);
    }
    memory->wait();
  }
  EXPECT_EQ(cl_counters().acquired, cl_counters().released);
}

// The descriptor stays the caller's, whichever of import and driver keeps which.
TEST_P(ExternalMemoryOf, LeavesTheCallerItsDescriptor) {
  const auto model = CompiledModel::compile(Model::read(test::ball_model()), {});
  const Picture picture(30);
  const int next = dup(picture.fd());
  close(next);
  for (int i = 0; i < 3; ++i) {
    model->import_memory(GetParam(), picture.fd(), kBytes);
    EXPECT_NE(lseek(picture.fd(), 0, SEEK_CUR), -1);
  }
  {
    const Setting failing("RIG_FAIL", "import:1");
    EXPECT_THROW(model->import_memory(GetParam(), picture.fd(), kBytes), Error);
  }
  const int after = dup(picture.fd());
  EXPECT_EQ(after, next) << "a descriptor was left open";
  close(after);
}

TEST_P(ExternalMemoryOf, IsRefusedWhereItCannotBeRead) {
  const Picture picture(30);
  {
    const Setting hidden("RIG_HIDE", "1");
    const auto model = CompiledModel::compile(Model::read(test::ball_model()), {});
    EXPECT_NE(model->import_problem(GetParam()).find("does not offer cl_khr_external_memory"),
              std::string::npos)
        << model->import_problem(GetParam());
    EXPECT_THROW(model->import_memory(GetParam(), picture.fd(), kBytes), Error);
  }
  const auto model = CompiledModel::compile(Model::read(test::ball_model()), {});
  const auto other = CompiledModel::compile(Model::read(test::ball_model()), {});
  EXPECT_THROW(model->import_memory(GetParam(), -1, kBytes), Error);
  const auto memory = model->import_memory(GetParam(), picture.fd(), kBytes);
  const auto request = model->create_request();
  ImportedPlanes planes = planes_in(memory);
  planes.offsets[1] += 1;
  EXPECT_THROW(request->set_memory(0, planes, picture.frame, {}), Error) << "beyond the memory";
  EXPECT_NO_THROW(other->create_request()->set_memory(0, planes_in(memory), picture.frame, {}))
      << "models of a device share its context";
  const cl::Context context(cl::Device(opencl::device_of(*model), true));
  const auto apart = opencl::compile(Model::read(test::ball_model()), {}, {context()});
  EXPECT_THROW(apart->create_request()->set_memory(0, planes_in(memory), picture.frame, {}), Error)
      << "of another context";
  memory->wait();
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExternalMemoryOf,
                         testing::Values(MemoryHandle::dmabuf, MemoryHandle::opaque),
                         [](const auto& kind) {
                           return kind.param == MemoryHandle::dmabuf ? "Dmabuf" : "Opaque";
                         });

}  // namespace
}  // namespace clinfer
