// Gather, GatherElements, GatherND: values, the kernel against evaluate(), refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

TEST(Gather, Values) {
  const Tensor data = counted({2, 3});
  EXPECT_EQ(run("Gather", 1, {}, {data, ints({2, 0}), scalar(1)})[0].to_floats(),
            (std::vector<float>{2, 0, 5, 3}));
  EXPECT_EQ(run("Gather", 8, {}, {data, scalar(-1), scalar(0)})[0].to_floats(),
            (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(run("Gather", 8, {}, {data, ints({3, -4}), scalar(1)})[0].to_floats(),
            (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(run("Gather", 7, attributes({{"batch_dims", "-1"}}),
                {data, ints({2, 1}, {1, 2}), scalar(1)})[0]
                .to_floats(),
            (std::vector<float>{1, 5}));
  EXPECT_EQ(
      run("GatherElements", 6, attributes({{"axis", "1"}}), {data, ints({2, 2}, {2, 0, 1, -1})})[0]
          .to_floats(),
      (std::vector<float>{2, 0, 4, 5}));
  EXPECT_EQ(run("GatherND", 8, {}, {data, ints({2, 2}, {0, 2, 1, 0})})[0].to_floats(),
            (std::vector<float>{2, 3}));
  const Tensor deep = counted({2, 2, 2});
  const Attributes two = attributes({{"batch_dims", "2"}});
  EXPECT_EQ(run("GatherND", 8, two, {deep, ints({2, 2, 1}, {1, 0, 0, 1})})[0].shape(),
            (Shape{2, 2}));
  const Tensor joined = run("GatherND", 5, two, {deep, ints({2, 2, 1}, {1, 0, 0, 1})})[0];
  EXPECT_EQ(joined.shape(), (Shape{4}));
  EXPECT_EQ(joined.to_floats(), (std::vector<float>{1, 2, 4, 7}));
}

TEST(Gather, Kernel) {
  const Tensor data = random_tensor({2, 5, 3, 7});
  for (int64_t axis : {0, 1, 3}) {
    const int64_t size = data.shape()[axis];
    const std::vector<Tensor> inputs{data, random_ints(ElementType::i32, {4}, -size, size),
                                     scalar(axis)};
    for (bool constant : {false, true}) {
      OpDesc desc = make_desc("Gather", 8, {}, inputs, {false, constant, true});
      check_op(desc, inputs);
      desc.inputs[0] = with_gaps(desc.inputs[0]);
      desc.outputs[0] = with_gaps(desc.outputs[0]);
      check_op(desc, inputs);
    }
  }
  const std::vector<Tensor> batched{random_tensor({3, 4, 6}),
                                    random_ints(ElementType::i32, {3, 5}, 0, 3), scalar(1)};
  check_op(make_desc("Gather", 8, attributes({{"batch_dims", "1"}}), batched, {false, false, true}),
           batched);
  const std::vector<Tensor> same{random_tensor({3, 4, 6}),
                                 random_ints(ElementType::i32, {3, 4, 9}, -6, 6)};
  check_op(make_desc("GatherElements", 6, attributes({{"axis", "-1"}}), same, {false, false}),
           same);
  const std::vector<Tensor> points{random_tensor({3, 4, 5, 6}),
                                   random_ints(ElementType::i32, {3, 2, 7, 2}, -4, 4)};
  check_op(make_desc("GatherND", 8, attributes({{"batch_dims", "1"}}), points, {false, false}),
           points);
}

TEST(Gather, Refuses) {
  const Tensor data = counted({2, 3});
  EXPECT_TRUE(says(error_of("Gather", 1, {}, {data, ints({0}), scalar(2)}),
                   "the axis 2 is out of range for 2 dimensions"));
  EXPECT_TRUE(says(error_of("Gather", 1, {}, {data, floats({1}, {0}), scalar(0)}),
                   "the indices must be integers"));
  EXPECT_TRUE(says(error_of("Gather", 8, attributes({{"batch_dims", "2"}}),
                            {data, ints({2, 1}, {0, 0}), scalar(1)}),
                   "batch_dims is out of range for data [2,3], indices [2,1]"));
  EXPECT_TRUE(says(error_of("Gather", 8, attributes({{"batch_dims", "1"}}),
                            {data, ints({3, 1}, {0, 0, 0}), scalar(1)}),
                   "data [2,3] and indices [3,1] differ in a batch dimension"));
  EXPECT_TRUE(
      says(error_of("GatherElements", 6, attributes({{"axis", "1"}}), {data, ints({1, 1}, {0})}),
           "data [2,3] and indices [1,1] may differ along the axis only"));
  EXPECT_TRUE(says(error_of("GatherND", 8, {}, {data, ints({1, 3}, {0, 0, 0})}),
                   "the indices' last dimension does not fit the data: data [2,3], indices"));
  EXPECT_TRUE(
      says(error_of("GatherND", 8, attributes({{"batch_dims", "-1"}}), {data, ints({1, 1}, {0})}),
           "batch_dims -1 is out of range for data [2,3], indices [1,1]"));
}

}  // namespace
}  // namespace clinfer::test
