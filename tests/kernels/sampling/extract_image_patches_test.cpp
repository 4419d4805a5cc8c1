// ExtractImagePatches: windows by hand, the kernel against evaluate(), refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

Attributes window(const char* sizes, const char* strides, const char* rates, const char* pad) {
  return attributes({{"sizes", sizes}, {"strides", strides}, {"rates", rates}, {"auto_pad", pad}});
}

TEST(ExtractImagePatches, Values) {
  const Tensor valid = run("ExtractImagePatches", 3, window("2,2", "1,1", "1,1", "valid"),
                           {counted({1, 1, 2, 3})})[0];
  EXPECT_EQ(valid.shape(), (Shape{1, 4, 1, 2}));
  EXPECT_EQ(valid.to_floats(), (std::vector<float>{0, 1, 1, 2, 3, 4, 4, 5}));
  EXPECT_EQ(run("ExtractImagePatches", 3, window("1,2", "1,2", "1,1", "same_lower"),
                {counted({1, 1, 1, 3})})[0]
                .to_floats(),
            (std::vector<float>{0, 1, 0, 2}));
  EXPECT_EQ(run("ExtractImagePatches", 3, window("1,2", "1,2", "1,1", "same_upper"),
                {counted({1, 1, 1, 3})})[0]
                .to_floats(),
            (std::vector<float>{0, 2, 1, 0}));
}

TEST(ExtractImagePatches, Kernel) {
  for (const char* pad : {"valid", "same_upper", "same_lower"}) {
    const std::vector<Tensor> inputs{random_tensor({2, 5, 9, 8})};
    OpDesc desc =
        make_desc("ExtractImagePatches", 3, window("3,4", "2,3", "2,1", pad), inputs, {false});
    check_op(desc, inputs);
    desc.inputs[0] = with_gaps(desc.inputs[0]);
    desc.outputs[0] = with_gaps(desc.outputs[0]);
    check_op(desc, inputs);
  }
}

TEST(ExtractImagePatches, Refuses) {
  EXPECT_TRUE(says(error_of("ExtractImagePatches", 3, window("0,2", "1,1", "1,1", "valid"),
                            {counted({1, 1, 2, 3})}),
                   "attribute sizes must be two positive numbers"));
  EXPECT_TRUE(says(error_of("ExtractImagePatches", 3, window("2", "1,1", "1,1", "valid"),
                            {counted({1, 1, 2, 3})}),
                   "attribute sizes must be two positive numbers"));
  EXPECT_TRUE(says(error_of("ExtractImagePatches", 3, window("2,2", "1,1", "1,1", "explicit"),
                            {counted({1, 1, 2, 3})}),
                   "auto_pad \"explicit\""));
}

}  // namespace
}  // namespace clinfer::test
