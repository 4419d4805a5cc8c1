// Candidates on real buffers: what verifies, what does not, and that buffers are put back.
#include "engine/measure/candidate_runner.h"

#include <gtest/gtest.h>

#include "kernels/op.h"

namespace clinfer {
namespace {

constexpr int64_t kRows = 2, kColumns = 8, kStride = 10, kOffset = 3;
constexpr size_t kSize = 32;  // elements of each buffer

// An operation on two rows that lie apart.
OpDesc unary(const std::string& type) {
  OpDesc desc;
  desc.name = type;
  desc.type = type;
  desc.inputs = {TensorDesc::row_major(ElementType::f32, {kRows, kColumns})};
  desc.constants = {Tensor()};
  desc.outputs = desc.inputs;
  desc.outputs[0].strides = {kStride, 1};
  desc.outputs[0].offset = kOffset;
  desc.own_inputs = 1;
  return desc;
}

TEST(CandidateRunner, ToldApartAreRightWrongAndStrayOutputs) {
  const auto context = ocl::Context::create(ocl::select_device("GPU"));
  const cl::CommandQueue queue(context->context, context->device.device);
  const auto buffer_of = [&](std::vector<float>& values) {
    return cl::Buffer(context->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                      values.size() * sizeof(float), values.data());
  };
  std::vector<float> in(kSize), out(kSize, 7);
  for (size_t i = 0; i < kSize; ++i) in[i] = static_cast<float>(i) - 9.5f;
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column)
      out[static_cast<size_t>(kOffset + row * kStride + column)] =
          std::max(0.f, in[static_cast<size_t>(row * kColumns + column)]);
  const cl::Buffer input = buffer_of(in), output = buffer_of(out);

  const OpDesc right = unary("ReLU");
  OpDesc stray = right;
  stray.outputs[0].strides = {kColumns, 1};
  std::vector<KernelPlan> plans;
  for (const OpDesc& desc : {right, unary("Abs"), stray}) {
    const KernelFamily* family = find_op(desc.type, 1)->families.front();
    ASSERT_EQ(family->reject(desc, context->traits), "");
    plans.push_back(family->plan(desc, context->traits, family->heuristic(desc, context->traits)));
  }
  ocl::ProgramBuilder programs(*context, {});
  const std::function<bool()> go_on = [] { return true; };
  {
    CandidateRunner runner(
        *context, right,
        [&](const Argument& argument) -> BoundBuffer {
          if (argument.kind == Argument::Kind::input) return {input, 0};
          return {output, kOffset * static_cast<int64_t>(sizeof(float))};
        },
        programs, 1, go_on);
    runner.expect(plans);
    EXPECT_EQ(runner.prepare(plans, {}), std::vector<std::string>(3));
    EXPECT_EQ(runner.verify(0), "");
    EXPECT_EQ(runner.verify(1), "10 of 16 outputs differ from those of the untuned kernel");
    EXPECT_EQ(runner.verify(2), "it writes outside its outputs");
    EXPECT_EQ(runner.verify(0), "");
    runner.time(1, 1);
    // Once the time is over, what was not begun is not numbered.
    EXPECT_EQ(runner.prepare(plans, [] { return false; }), std::vector<std::string>(1));
    EXPECT_EQ(runner.prepare({&plans[1], 1}, [] { return false; }), std::vector<std::string>(1));
    EXPECT_EQ(runner.verify(3), "");
    EXPECT_EQ(runner.verify(4), "10 of 16 outputs differ from those of the untuned kernel");
  }
  std::vector<float> after(kSize);
  queue.enqueueReadBuffer(output, CL_TRUE, 0, kSize * sizeof(float), after.data());
  EXPECT_EQ(after, out);
}

}  // namespace
}  // namespace clinfer
