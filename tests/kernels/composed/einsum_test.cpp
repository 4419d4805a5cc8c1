// Einsum: values computed by hand and compared with MatMul, refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

using Floats = std::vector<float>;

Tensor einsum(const char* equation, const std::vector<Tensor>& inputs) {
  return run("Einsum", 7, attributes({{"equation", equation}}), inputs, 1, inputs.size())[0];
}

TEST(Einsum, Values) {
  const Tensor a = counted({2, 3}), b = counted({3, 2});
  EXPECT_EQ(einsum("ij,jk->ik", {a, b}).to_floats(), (Floats{10, 13, 28, 40}));
  EXPECT_EQ(einsum("ij,jk->ki", {a, b}).to_floats(), (Floats{10, 28, 13, 40}));
  EXPECT_EQ(einsum("ij, jk", {a, b}).to_floats(), (Floats{10, 13, 28, 40}));
  EXPECT_EQ(einsum("ij->ji", {a}).to_floats(), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(einsum("ij->j", {a}).to_floats(), (Floats{3, 5, 7}));
  EXPECT_EQ(einsum("ij->", {a}).to_floats(), (Floats{15}));
  EXPECT_EQ(einsum("ij,ij->ij", {a, a}).to_floats(), (Floats{0, 1, 4, 9, 16, 25}));
  EXPECT_EQ(einsum("i,j->ij", {counted({2}), counted({3})}).to_floats(),
            (Floats{0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(einsum("ii->i", {counted({3, 3})}).to_floats(), (Floats{0, 4, 8}));
  EXPECT_EQ(einsum("ii", {counted({3, 3})}).to_floats(), (Floats{12}));
  EXPECT_EQ(einsum("i,ij,j->", {counted({2}), a, counted({3})}).to_floats(), (Floats{14}));
}

TEST(Einsum, BatchesAndEllipsis) {
  const Tensor a = counted({2, 1, 2, 2}), b = counted({3, 2, 2});
  const Tensor product = einsum("...ij,...jk->...ik", {a, b});
  EXPECT_EQ(product.shape(), (Shape{2, 3, 2, 2}));
  const Tensor same = run("MatMul", 1, {}, {a, b}, 1, 2)[0];
  EXPECT_EQ(product.to_floats(), same.to_floats());
  EXPECT_EQ(einsum("bhid,bhjd->bhij", {counted({1, 2, 1, 2}), counted({1, 2, 1, 2})}).to_floats(),
            (Floats{1, 13}));
  EXPECT_EQ(einsum("i...->...", {counted({2, 3})}).to_floats(), (Floats{3, 5, 7}));
}

TEST(Einsum, Refuses) {
  const auto refused = [](const char* equation, const std::vector<Tensor>& inputs) {
    return error_of("Einsum", 7, attributes({{"equation", equation}}), inputs, 1, inputs.size());
  };
  const Tensor a = counted({2, 3});
  EXPECT_TRUE(says(refused("ij,jk->ik", {a}), "names 2 inputs, there are 1"));
  EXPECT_TRUE(says(refused("ijk->i", {a}), "\"ijk\" does not fit the shape [2,3]"));
  EXPECT_TRUE(says(refused("ij->k", {a}), "the result's labels do not follow from the inputs"));
  EXPECT_TRUE(says(refused("ij->ii", {a}), "the result's labels do not follow from the inputs"));
  EXPECT_TRUE(says(refused("i1->i", {a}), "'1' is no label"));
  EXPECT_TRUE(says(refused("i->i", {a}), "\"i\" does not fit the shape [2,3]"));
  EXPECT_TRUE(says(refused("ii->i", {a}), "a repeated label has two sizes"));
  EXPECT_TRUE(says(refused("ij,jk->ik", {a, a}), "equation: a label has the sizes 3 and 2"));
}

}  // namespace
}  // namespace clinfer::test
