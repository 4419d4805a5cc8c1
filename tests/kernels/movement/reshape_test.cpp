// Reshape, Squeeze, Unsqueeze: shapes, views of all layouts, and refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

Shape shape_of(const std::string& type, int opset, const Shape& in,
               const std::vector<int64_t>& values, const char* zero = "true") {
  const Attributes a = type == "Reshape" ? attributes({{"special_zero", zero}}) : Attributes();
  return run(type, opset, a, {counted(in), ints(values)})[0].shape();
}

TEST(Reshape, Shapes) {
  EXPECT_EQ(shape_of("Reshape", 1, {2, 3, 4}, {0, -1}), (Shape{2, 12}));
  EXPECT_EQ(shape_of("Reshape", 1, {2, 3, 4}, {-1}), (Shape{24}));
  EXPECT_EQ(shape_of("Reshape", 1, {2, 3, 4}, {4, 0, 2}), (Shape{4, 3, 2}));
  EXPECT_EQ(shape_of("Reshape", 1, {0, 3}, {3, 0}, "false"), (Shape{3, 0}));
  EXPECT_EQ(shape_of("Reshape", 1, {1}, {}), Shape{});
  EXPECT_EQ(shape_of("Squeeze", 1, {1, 3, 1}, {0, -1}), (Shape{3}));
  EXPECT_EQ(shape_of("Squeeze", 1, {1, 3, 1}, {}), (Shape{3}));
  EXPECT_EQ(shape_of("Squeeze", 15, {1, 3, 1}, {0, 1}), (Shape{3, 1}));
  EXPECT_EQ(shape_of("Unsqueeze", 1, {2, 3}, {0, -1}), (Shape{1, 2, 3, 1}));
}

TEST(Reshape, Refuses) {
  const auto refused = [](const std::string& type, const Shape& in,
                          const std::vector<int64_t>& values) {
    return error_of(type, 1, attributes({{"special_zero", "true"}}), {counted(in), ints(values)});
  };
  EXPECT_TRUE(says(refused("Reshape", {2, 3}, {-1, -1}), "the new shape [-1,-1] holds -1 twice"));
  EXPECT_TRUE(says(refused("Reshape", {2, 3}, {4, -1}), "cannot reshape [2,3] to [4,-1]"));
  EXPECT_TRUE(says(refused("Reshape", {2, 3}, {7}), "cannot reshape [2,3] to [7]"));
  EXPECT_TRUE(says(refused("Reshape", {2, 3}, {2, 3, 0}),
                   "the new shape [2,3,0] keeps dimension 2 of [2,3]"));
  EXPECT_TRUE(says(refused("Reshape", {2, 3}, {-2, -3}),
                   "the new shape [-2,-3] holds a negative dimension"));
  EXPECT_TRUE(says(refused("Reshape", {2, 3}, {int64_t{1} << 62, int64_t{1} << 62}),
                   "a tensor of more than 2^31 - 1 elements"));
  EXPECT_TRUE(
      says(refused("Squeeze", {2, 1}, {0}), "dimension 0 of [2,1] is not 1 and cannot be removed"));
  EXPECT_TRUE(says(refused("Squeeze", {2, 1}, {2}), "axis 2 is out of range for 2 dimensions"));
  EXPECT_TRUE(says(refused("Unsqueeze", {2, 3}, {1, 1}), "axis 1 is given twice"));
  const std::string open = error_of("Reshape", 1, Attributes(), {counted({2}), ints({2})}, 1, 2);
  EXPECT_NE(open.find("must be constant"), std::string::npos) << open;
}

TEST(Reshape, Views) {
  const Attributes a = attributes({{"special_zero", "true"}});
  for (const auto& [in, out] :
       std::vector<std::pair<Shape, std::vector<int64_t>>>{{{2, 6, 3, 4}, {2, 72}},
                                                           {{2, 6, 3, 4}, {2, 2, 3, 3, 4}},
                                                           {{2, 6, 3, 4}, {2, 6, 12}},
                                                           {{2, 6, 1, 1}, {2, 6}},
                                                           {{1, 1, 3, 4}, {3, 1, 4}},
                                                           {{2, 6}, {1, 2, 1, 6, 1}},
                                                           {{6, 4}, {8, 3}},
                                                           {{1, 2, 2, 3, 4}, {4, 3, 4}}})
    check_views("Reshape", 1, a, {counted(in), ints(out)});
}

// The check that passes call for shapes that they generate.
TEST(Reshape, ShapesOfDifferentCountsHaveNoView) {
  for (const auto& [in, out] : std::vector<std::pair<Shape, Shape>>{{{2, 3}, {2, 4}},
                                                                    {{2, 3}, {2}},
                                                                    {{2, 3}, {}},
                                                                    {{2, 3}, {2, 3, 2}},
                                                                    {{}, {2}},
                                                                    {{2}, {0}}}) {
    OpDesc desc;
    desc.inputs = {TensorDesc::row_major(ElementType::f32, in)};
    desc.outputs = {TensorDesc::row_major(ElementType::f32, out)};
    EXPECT_FALSE(find_op("Reshape", 1)->view(desc)) << to_string(in) << " as " << to_string(out);
  }
}

// Reshapes that must not need a copy: flattening of a pooled map, splitting of channels, pixels of
// channels-last memory.
TEST(Reshape, ChannelsLastNeedsNoCopyWhereStridesAllow) {
  const auto has_view = [](const Shape& in, const std::vector<int64_t>& out) {
    const std::vector<Tensor> inputs{counted(in), ints(out)};
    OpDesc desc =
        make_desc("Reshape", 1, attributes({{"special_zero", "false"}}), inputs, {false, true});
    desc.inputs[0] = TensorDesc::channels_last(ElementType::f32, in);
    return check_view(desc, inputs);
  };
  EXPECT_TRUE(has_view({2, 6, 1, 1}, {2, 6}));
  EXPECT_TRUE(has_view({2, 6, 3, 4}, {2, 2, 3, 3, 4}));
  EXPECT_TRUE(has_view({2, 6, 3, 4}, {2, 6, 12}));
  EXPECT_FALSE(has_view({2, 6, 3, 4}, {2, 72}));
}

}  // namespace
}  // namespace clinfer::test
