// Copies between layouts and element types.
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::check_op;
using test::make_desc;
using test::random_ints;
using test::random_tensor;

OpDesc reorder(const Tensor& x, TensorDesc from, TensorDesc to) {
  OpDesc desc = make_desc("Reorder", 1, {}, {x}, {});
  desc.inputs = {std::move(from)};
  desc.outputs = {std::move(to)};
  return desc;
}

TEST(Reorder, ChannelsLastAndBack) {
  for (const Shape& shape : {Shape{1, 3, 17, 33}, Shape{2, 40, 5, 7}}) {
    const Tensor x = random_tensor(shape);
    const TensorDesc rows = TensorDesc::row_major(ElementType::f32, shape),
                     last = TensorDesc::channels_last(ElementType::f32, shape);
    EXPECT_GE(check_op(reorder(x, rows, last), {x}, {0, 0}), 4u);
    check_op(reorder(x, last, rows), {x}, {0, 0});
  }
}

TEST(Reorder, AnyStrides) {
  const Shape shape{2, 6, 5, 4};
  const Tensor x = random_tensor(shape);
  const TensorDesc last = TensorDesc::channels_last(ElementType::f32, shape);
  check_op(reorder(x, last, test::with_gaps(last)), {x}, {0, 0});
  check_op(reorder(x, test::with_gaps(TensorDesc::row_major(ElementType::f32, shape)),
                   test::with_gaps(last, 1, 2)),
           {x}, {0, 0});
  // Backwards along one dimension.
  TensorDesc reversed = last;
  reversed.offset = 4 * reversed.strides[2];
  reversed.strides[2] = -reversed.strides[2];
  check_op(reorder(x, reversed, last), {x}, {0, 0});
  const Tensor deep = random_tensor({2, 3, 2, 3, 2, 3, 2});
  check_op(reorder(deep, {ElementType::f32, deep.shape(), {1, 2, 6, 12, 36, 72, 216}, 0},
                   TensorDesc::row_major(ElementType::f32, deep.shape())),
           {deep}, {0, 0});
}

// Devices with local memory: whole and partial tiles, both ways, types of all sizes. YOLOv8's scores
// are a view of the maps of its heads.
TEST(Reorder, TilesInLocalMemory) {
  const DeviceTraits traits = test::gpu_traits();
  const auto check_reorder = [&](const Tensor& x, ElementType from, ElementType to, double error) {
    const TensorDesc rows = TensorDesc::row_major(from, x.shape());
    TensorDesc last = test::with_gaps(TensorDesc::channels_last(from, x.shape()), 7, 3);
    for (const bool back : {false, true}) {
      TensorDesc read = back ? last : rows, written = back ? rows : last;
      written.type = to;
      EXPECT_GE(check_op(reorder(x, read, written), {x}, {0, error}, &traits, "reorder_local"), 1u);
    }
  };
  for (const Shape& shape : {Shape{2, 80, 3, 23}, Shape{1, 32, 8, 8}, Shape{3, 16, 5, 5}}) {
    const Tensor x = random_tensor(shape, -100, 100);
    check_reorder(x, ElementType::f32, ElementType::f32, 0);
    check_reorder(x, ElementType::f16, ElementType::f16, 0);
    check_reorder(x, ElementType::f16, ElementType::f32, 0);
    check_reorder(x, ElementType::f32, ElementType::f16, 1e-3);
    check_reorder(random_ints(ElementType::u8, shape, 0, 255), ElementType::u8, ElementType::u8, 0);
    check_reorder(random_ints(ElementType::u8, shape, 0, 255), ElementType::u8, ElementType::f32,
                  0);
  }
  const Tensor narrow = random_tensor({2, 15, 20, 20});
  const OpDesc desc = reorder(narrow, TensorDesc::row_major(ElementType::f32, narrow.shape()),
                              TensorDesc::channels_last(ElementType::f32, narrow.shape()));
  for (const KernelFamily* family : find_op("Reorder", 1)->families)
    EXPECT_EQ(family->name == "reorder_local", !family->reject(desc, traits).empty())
        << family->name;
}

TEST(Reorder, ConvertsTypes) {
  const Shape shape{1, 5, 6, 7};
  const Tensor x = random_tensor(shape, -100, 100),
               i = random_ints(ElementType::i32, shape, -100, 100);
  const auto rows = [&](ElementType type) { return TensorDesc::row_major(type, shape); };
  const auto last = [&](ElementType type) { return TensorDesc::channels_last(type, shape); };
  check_op(reorder(x, rows(ElementType::f32), last(ElementType::f16)), {x}, {0, 1e-3});
  check_op(reorder(x, last(ElementType::f16), rows(ElementType::f32)), {x}, {0, 1e-3});
  check_op(reorder(x, rows(ElementType::f32), rows(ElementType::i32)), {x}, {0, 0});
  check_op(reorder(i, rows(ElementType::i32), last(ElementType::u8)), {i}, {0, 0});
  const Tensor bytes = random_ints(ElementType::u8, shape, 0, 255);
  check_op(reorder(bytes, rows(ElementType::u8), last(ElementType::f32)), {bytes}, {0, 0});
}

}  // namespace
}  // namespace clinfer
