// Tensors in memory that an application addresses by a pointer: host memory, shared virtual memory
// (SVM) and unified shared memory (USM).
#include <CL/cl_ext.h>
#include <gtest/gtest.h>

#include <CL/opencl.hpp>
#include <algorithm>
#include <cstring>
#include <functional>

#include "engine/ocl/acquire_release.h"
#include "engine/ocl/device.h"
#include "engine/opencl.h"
#include "tests/engine/ball_model.h"
#include "tests/error_of.h"
#include "tests/kernels/op_test.h"
#include "tests/says.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

using opencl::PointerKind;
using test::error_of;
using test::says;

const Shape kMapShape{1, 1, 16, 24};
constexpr size_t kElements = 16 * 24, kBytes = kElements * sizeof(float);

// The exponential of a picture.
std::shared_ptr<const Model> exponential() {
  test::SmallIr ir;
  ir.result(ir.add("Exp", 1, "", {ir.input(kMapShape)}, kMapShape));
  return ir.read();
}

// Memory of one origin, and how a host reads and writes it.
struct Memory {
  PointerKind kind;
  std::shared_ptr<std::byte> data;
  std::function<void(const void* from, size_t bytes)> write;
  std::function<std::vector<float>()> floats;
};

class Pointers : public ::testing::Test {
 protected:
  std::shared_ptr<CompiledModel> compile(const std::shared_ptr<const Model>& model,
                                         Precision precision = Precision::f32) {
    Config config;
    config.precision = precision;
    return opencl::compile(model, config, {context_(), device_(), queue_()});
  }
  // Whether host memory can be used in place.
  static bool shares_host_memory() {
    const DeviceInfo& info = ocl::select_device("GPU").info;
    return info.is_cpu || info.is_integrated;
  }
  bool has_svm() const { return device_.getInfo<CL_DEVICE_SVM_CAPABILITIES>() != 0; }
  bool has_usm() const {
    return ocl::has_extension(device_.getInfo<CL_DEVICE_EXTENSIONS>(),
                              "cl_intel_unified_shared_memory");
  }
  template <typename Function>
  Function usm(const char* name) const {
    return ocl::extension_function<Function>(cl::Platform(device_.getInfo<CL_DEVICE_PLATFORM>()),
                                             name);
  }

  Memory host(size_t bytes) const {
    std::shared_ptr<std::byte> data(static_cast<std::byte*>(std::aligned_alloc(4096, 8192)),
                                    std::free);
    return {PointerKind::host, data,
            [data](const void* from, size_t n) { std::memcpy(data.get(), from, n); },
            [data, bytes] { return floats_at(data.get(), bytes); }};
  }
  // Coarse-grain SVM, which the host may touch while it is mapped.
  Memory svm(size_t bytes) const {
    const cl::Context context = context_;
    const cl::CommandQueue queue = queue_;
    std::shared_ptr<std::byte> data(
        static_cast<std::byte*>(clSVMAlloc(context(), CL_MEM_READ_WRITE, bytes, 0)),
        [context](std::byte* memory) { clSVMFree(context(), memory); });
    const auto mapped = [=](cl_map_flags how, const std::function<void()>& use) {
      ASSERT_EQ(clEnqueueSVMMap(queue(), CL_TRUE, how, data.get(), bytes, 0, nullptr, nullptr), 0);
      use();
      ASSERT_EQ(clEnqueueSVMUnmap(queue(), data.get(), 0, nullptr, nullptr), 0);
    };
    return {PointerKind::svm, data,
            [=](const void* from, size_t n) {
              mapped(CL_MAP_WRITE, [&] { std::memcpy(data.get(), from, n); });
            },
            [=] {
              std::vector<float> values;
              mapped(CL_MAP_READ, [&] { values = floats_at(data.get(), bytes); });
              return values;
            }};
  }
  Memory usm_memory(cl_unified_shared_memory_type_intel type, size_t bytes) const {
    cl_int status = 0;
    void* made = nullptr;
    if (type == CL_MEM_TYPE_HOST_INTEL)
      made = usm<clHostMemAllocINTEL_fn>("clHostMemAllocINTEL")(context_(), nullptr, bytes, 0,
                                                                &status);
    else if (type == CL_MEM_TYPE_SHARED_INTEL)
      made = usm<clSharedMemAllocINTEL_fn>("clSharedMemAllocINTEL")(context_(), device_(), nullptr,
                                                                    bytes, 0, &status);
    else
      made = usm<clDeviceMemAllocINTEL_fn>("clDeviceMemAllocINTEL")(context_(), device_(), nullptr,
                                                                    bytes, 0, &status);
    EXPECT_EQ(status, CL_SUCCESS) << type;
    const auto free = usm<clMemFreeINTEL_fn>("clMemFreeINTEL");
    const auto copy = usm<clEnqueueMemcpyINTEL_fn>("clEnqueueMemcpyINTEL");
    const cl::Context context = context_;
    const cl::CommandQueue queue = queue_;
    std::shared_ptr<std::byte> data(
        static_cast<std::byte*>(made),
        [context, free](std::byte* memory) { free(context(), memory); });
    return {PointerKind::usm, data,
            [=](const void* from, size_t n) {
              EXPECT_EQ(copy(queue(), CL_TRUE, data.get(), from, n, 0, nullptr, nullptr), 0);
            },
            [=] {
              std::vector<float> values(bytes / sizeof(float));
              EXPECT_EQ(copy(queue(), CL_TRUE, values.data(), data.get(),
                             values.size() * sizeof(float), 0, nullptr, nullptr),
                        0);
              return values;
            }};
  }
  static std::vector<float> floats_at(const std::byte* data, size_t bytes) {
    std::vector<float> values(bytes / sizeof(float));
    std::memcpy(values.data(), data, values.size() * sizeof(float));
    return values;
  }

  // Sends two inferences through `in` and `out`, `offset` bytes into each, and back to the host.
  void expect_used(const Memory& in, const Memory& out, size_t offset, bool in_place,
                   Precision precision = Precision::f32) {
    const auto request = compile(exponential(), precision)->create_request();
    const auto skip = static_cast<std::ptrdiff_t>(offset / sizeof(float));
    std::vector<std::vector<float>> wanted;
    std::vector<Tensor> inputs;
    for (unsigned n = 0; n < 2; ++n) {
      inputs.push_back(test::random_tensor(kMapShape, 0, 3, n));
      wanted.push_back(test::infer(*request, inputs.back()));
    }
    opencl::set_input_pointer(*request, 0, in.kind, in.data.get() + offset, kBytes);
    opencl::set_output_pointer(*request, 0, out.kind, out.data.get() + offset, kBytes);
    EXPECT_EQ(opencl::explain(*request).empty(), in_place);
    for (size_t n = 0; n < 2; ++n) {
      std::vector<float> padded(static_cast<size_t>(skip) + kElements);
      std::ranges::copy(inputs[n].to_floats(), padded.begin() + skip);
      in.write(padded.data(), padded.size() * sizeof(float));
      request->start();
      request->wait();
      const std::vector<float> all = out.floats();
      EXPECT_EQ(std::vector<float>(all.begin() + skip, all.begin() + skip + kElements), wanted[n]);
      EXPECT_TRUE(says(error_of([&] { request->output(0); }), "goes to memory of the"));
    }
    opencl::set_output_pointer(*request, 0, out.kind, nullptr, 0);
    request->start();
    request->wait();
    EXPECT_EQ(request->output(0).to_floats(), wanted[1]) << "the input stays";
    EXPECT_EQ(test::infer(*request, inputs[0]), wanted[0]);
  }
  // In place, in memory that kernels cannot use as it lies, and in another precision.
  void expect_all(const std::function<Memory(size_t)>& make, bool in_place = true) {
    const Memory in = make(kBytes + 64), out = make(kBytes + 64);
    expect_used(in, out, 0, in_place);
    expect_used(in, out, 12, false);
    expect_used(in, out, 0, false, Precision::f16);
  }

  const cl::Device device_ = ocl::select_device("GPU").device;
  const cl::Context context_{device_};
  const cl::CommandQueue queue_{context_, device_};
};

TEST_F(Pointers, OfTheHost) {
  expect_all([&](size_t bytes) { return host(bytes); }, shares_host_memory());
}

TEST_F(Pointers, OfSharedVirtualMemory) {
  if (!has_svm()) GTEST_SKIP() << "the device has no SVM";
  expect_all([&](size_t bytes) { return svm(bytes); });
}

TEST_F(Pointers, OfUnifiedSharedMemory) {
  if (!has_usm()) GTEST_SKIP() << "the device has no USM";
  for (const auto type :
       {CL_MEM_TYPE_HOST_INTEL, CL_MEM_TYPE_SHARED_INTEL, CL_MEM_TYPE_DEVICE_INTEL})
    expect_all([&](size_t bytes) {
      return usm_memory(static_cast<cl_unified_shared_memory_type_intel>(type), bytes);
    });
}

// The network's input is channels-last, and its last layer runs on the host.
TEST_F(Pointers, OfDetectors) {
  const auto model = compile(Model::read(test::ball_model()));
  const Tensor input = test::random_tensor(model->inputs()[0].shape, 0, 255, 3);
  const size_t rows = static_cast<size_t>(count(model->outputs()[0].shape)) * sizeof(float);
  std::vector<Memory> memories{host(rows)};
  ASSERT_LE(rows, 8192u);
  if (has_svm()) memories.push_back(svm(rows));
  if (has_usm()) memories.push_back(usm_memory(CL_MEM_TYPE_DEVICE_INTEL, rows));
  for (const Memory& memory : memories) {
    const auto request = model->create_request();
    const std::vector<float> wanted = test::infer(*request, input);
    Tensor copy = Tensor::of(ElementType::f32, input.shape(), input.to_floats());
    request->set_input(0, Tensor::allocate(ElementType::f32, input.shape()));
    opencl::set_input_pointer(*request, 0, PointerKind::host, copy.raw(), copy.bytes());
    opencl::set_output_pointer(*request, 0, memory.kind, memory.data.get(), rows);
    const std::vector<std::string> reasons = opencl::explain(*request);
    ASSERT_FALSE(reasons.empty());
    EXPECT_TRUE(
        says(reasons.front(), shares_host_memory() ? "channels last" : "memory of its own"));
    if (ocl::select_device("GPU").info.is_cpu) {
      EXPECT_TRUE(says(reasons.back(), "the host computes it"));
    }
    request->start();
    request->wait();
    EXPECT_EQ(memory.floats(), wanted);
  }
}

// Kernels do not write where they read, in whichever way the memory was given.
TEST_F(Pointers, InAndOutMayBeTheSameMemory) {
  const auto request = compile(exponential())->create_request();
  const Tensor input = test::random_tensor(kMapShape, 0, 1, 7);
  const std::vector<float> wanted = test::infer(*request, input);
  std::vector<Memory> memories{host(kBytes)};
  if (has_svm()) memories.push_back(svm(kBytes));
  for (const Memory& memory : memories) {
    memory.write(input.raw(), kBytes);
    opencl::set_input_pointer(*request, 0, memory.kind, memory.data.get(), kBytes);
    opencl::set_output_pointer(*request, 0, memory.kind, memory.data.get(), kBytes);
    const std::vector<std::string> reasons = opencl::explain(*request);
    ASSERT_FALSE(reasons.empty());
    EXPECT_TRUE(says(reasons.back(), memory.kind != PointerKind::host || shares_host_memory()
                                         ? "an input lies in the same memory"
                                         : "the device has memory of its own"));
    request->start();
    request->wait();
    EXPECT_EQ(memory.floats(), wanted);
  }
}

// Images of a batch are set one by one, over the memory that the input was before.
TEST_F(Pointers, OtherImagesOfABatchStay) {
  const Shape shape{1, 3, 16, 32};
  test::SmallIr ir;
  ir.result(ir.add("Sigmoid", 1, "", {ir.input(shape)}, shape));
  Config config;
  config.batch = 2;
  config.precision = Precision::f32;
  const auto model = opencl::compile(ir.read(), config, {context_(), device_(), queue_()});
  const auto usual = model->create_request(), request = model->create_request();
  const Tensor both = test::random_tensor(model->inputs()[0].shape, -2, 2, 3);
  const std::vector<uint8_t> pixels(32 * 16, 1);
  const Frame frame{PixelFormat::gray8, 32, 16, {pixels.data()}, {32}};
  const auto output_of = [](InferRequest& of) {
    of.start();
    of.wait();
    return of.output(0).to_floats();
  };
  usual->set_input(0, both);
  opencl::set_input_pointer(*request, 0, PointerKind::host, both.raw(), both.bytes());
  const std::vector<float> before = output_of(*usual);
  EXPECT_EQ(output_of(*request), before);
  for (InferRequest* const of : {usual.get(), request.get()}) of->set_frame(0, frame, {}, 1);
  const std::vector<float> after = output_of(*usual);
  EXPECT_NE(after, before);
  EXPECT_TRUE(std::equal(after.begin(), after.begin() + 3 * 16 * 32, before.begin()));
  EXPECT_EQ(output_of(*request), after);
  EXPECT_EQ(output_of(*request), after);
}

TEST_F(Pointers, RefuseWhatCannotBeUsed) {
  const auto model = compile(exponential());
  const auto request = model->create_request();
  const Tensor input = test::random_tensor(kMapShape, 0, 1, 7);
  const std::vector<float> wanted = test::infer(*request, input);
  const Memory memory = host(kBytes);
  const auto refusal = [&](PointerKind kind, void* data, size_t bytes) {
    const std::string in =
        error_of([&] { opencl::set_input_pointer(*request, 0, kind, data, bytes); });
    if (data != nullptr) {
      const std::string out =
          error_of([&] { opencl::set_output_pointer(*request, 0, kind, data, bytes); });
      EXPECT_EQ(in.substr(in.find("put 0")), out.substr(out.find("put 0")));
    }
    return in;
  };
  EXPECT_TRUE(says(refusal(PointerKind::host, nullptr, kBytes), "is null"));
  EXPECT_TRUE(says(refusal(PointerKind::host, memory.data.get(), kBytes - 1),
                   "needs 1536 bytes, there are 1535"));
  EXPECT_TRUE(says(refusal(PointerKind::host, memory.data.get() + 2, kBytes), "no multiple"));
  EXPECT_TRUE(says(error_of([&] {
                     opencl::set_input_pointer(*request, 1, PointerKind::host, memory.data.get(),
                                               kBytes);
                   }),
                   "there is no input 1"));
  const cl::UserEvent event(context_);
  EXPECT_TRUE(says(error_of([&] {
                     opencl::set_input_pointer(*request, 0, PointerKind::host, memory.data.get(),
                                               kBytes, event());
                   }),
                   "no event can say"));
  if (!has_svm()) {
    EXPECT_TRUE(says(refusal(PointerKind::svm, memory.data.get(), kBytes), "no shared virtual"));
  }
  if (!has_usm()) {
    EXPECT_TRUE(says(refusal(PointerKind::usm, memory.data.get(), kBytes), "no unified shared"));
  }
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), wanted) << "what was refused has no effect";
  const auto first = CompiledModel::compile_first_tier(exponential(), {})->create_request();
  EXPECT_TRUE(says(error_of([&] {
                     opencl::set_input_pointer(*first, 0, PointerKind::host, memory.data.get(),
                                               kBytes);
                   }),
                   "not of one OpenCL device"));
}

// Only NVIDIA's driver says whether a pointer is SVM.
TEST_F(Pointers, OfSharedVirtualMemoryAreLookedAt) {
  if (!has_svm()) GTEST_SKIP() << "the device has no SVM";
  const bool told = says(device_.getInfo<CL_DEVICE_VENDOR>(), "NVIDIA");
  const auto request = compile(exponential())->create_request();
  const auto refusal = [&](void* data, size_t bytes) {
    return error_of([&] { opencl::set_input_pointer(*request, 0, PointerKind::svm, data, bytes); });
  };
  const Memory memory = svm(kBytes), other = host(kBytes);
  EXPECT_EQ(says(refusal(memory.data.get(), size_t{1} << 24), "is smaller"), told);
  EXPECT_EQ(says(refusal(other.data.get(), kBytes), "was allocated in another way"), told);
  EXPECT_EQ(refusal(memory.data.get(), kBytes), "");
}

TEST_F(Pointers, OfUnifiedSharedMemoryAreLookedAt) {
  if (!has_usm()) GTEST_SKIP() << "the device has no USM";
  const auto request = compile(exponential())->create_request();
  const auto refusal = [&](void* data) {
    return error_of(
        [&] { opencl::set_input_pointer(*request, 0, PointerKind::usm, data, kBytes); });
  };
  const Memory plain = host(kBytes);
  EXPECT_TRUE(says(refusal(plain.data.get()), "no unified shared memory of the model's"));
  Memory small = usm_memory(CL_MEM_TYPE_SHARED_INTEL, kBytes);
  EXPECT_TRUE(says(refusal(small.data.get() + 16), "has 1520 bytes from there on"));
  const cl::Context other(device_);
  cl_int status = 0;
  void* const foreign =
      usm<clHostMemAllocINTEL_fn>("clHostMemAllocINTEL")(other(), nullptr, kBytes, 0, &status);
  EXPECT_TRUE(says(refusal(foreign), "it is of another context"));
  usm<clMemFreeINTEL_fn>("clMemFreeINTEL")(other(), foreign);

  const Tensor input = test::random_tensor(kMapShape, 0, 1, 7);
  const std::vector<float> wanted = test::infer(*request, input);
  small.write(input.raw(), kBytes);
  EXPECT_EQ(refusal(small.data.get()), "");
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), wanted);
  small = host(kBytes);  // the last holder frees the memory
  EXPECT_TRUE(says(error_of([&] { request->start(); }), "was freed"));
  EXPECT_EQ(test::infer(*request, input), wanted) << "the request is usable";
}

TEST_F(Pointers, WaitForAnEvent) {
  if (!has_svm()) GTEST_SKIP() << "the device has no SVM";
  const auto model = opencl::compile(exponential(), {}, {context_(), nullptr, nullptr});
  const auto request = model->create_request();
  const Tensor input = test::random_tensor(kMapShape, 0, 3, 5);
  const std::vector<float> wanted = test::infer(*request, input);
  const Memory memory = svm(kBytes);
  const cl::UserEvent filled(context_);
  opencl::set_input_pointer(*request, 0, PointerKind::svm, memory.data.get(), kBytes, filled());
  request->start();
  EXPECT_FALSE(request->wait(std::chrono::milliseconds(0)));
  memory.write(input.raw(), kBytes);
  cl::UserEvent(filled).setStatus(CL_COMPLETE);
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), wanted);
}

// Memory may be freed once another input was set.
TEST_F(Pointers, MayComeAndGo) {
  const auto request = compile(exponential())->create_request();
  const Tensor input = test::random_tensor(kMapShape, 0, 3, 5);
  const std::vector<float> wanted = test::infer(*request, input);
  for (int n = 0; n < 20; ++n) {
    {
      const bool shared = has_svm() && n % 3 == 1;
      const Memory in = shared ? svm(kBytes) : host(kBytes), out = host(kBytes);
      in.write(input.raw(), kBytes);
      opencl::set_input_pointer(*request, 0, in.kind, in.data.get(), kBytes);
      opencl::set_output_pointer(*request, 0, out.kind, out.data.get(), kBytes);
      request->start();
      request->wait();
      EXPECT_EQ(out.floats(), wanted);
      opencl::set_output_pointer(*request, 0, out.kind, nullptr, 0);
      request->set_input(0, input);
    }
    if (n % 2 == 0) {
      EXPECT_EQ(test::infer(*request, input), wanted);
    }
  }
}

}  // namespace
}  // namespace clinfer
