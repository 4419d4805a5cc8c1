// Implements the checkers of view_test.h for operations that move data.
#include "tests/kernels/view_test.h"

#include <numeric>

namespace clinfer::test {

bool check_view(OpDesc desc, const std::vector<Tensor>& inputs) {
  const OpDef* def = find_op(desc.type, desc.opset);
  const std::vector<Tensor> want = reference(desc, inputs);
  const auto views = def->view(desc);
  if (!views) return false;
  EXPECT_EQ(views->size(), want.size());
  std::vector<float> memory(static_cast<size_t>(desc.inputs[0].offset + desc.inputs[0].span()) + 8,
                            -1e9f);
  scatter_to(inputs[0], desc.inputs[0], memory.data());
  for (size_t i = 0; i < want.size() && i < views->size(); ++i) {
    const TensorDesc& view = (*views)[i];
    EXPECT_EQ(view.shape, want[i].shape());
    if (view.shape != want[i].shape()) continue;
    EXPECT_EQ(gather_from(view, memory.data(), ElementType::f32).to_floats(), want[i].to_floats())
        << desc.type << " output " << i << " of strides " << to_string(desc.inputs[0].strides);
  }
  return true;
}

void check_views(const std::string& type, int opset, const Attributes& attributes,
                 const std::vector<Tensor>& inputs, size_t output_count) {
  std::vector<bool> constant(inputs.size(), true);
  constant[0] = false;
  OpDesc desc = make_desc(type, opset, attributes, inputs, constant, output_count);
  desc.inputs[0] = TensorDesc::row_major(ElementType::f32, inputs[0].shape());
  EXPECT_TRUE(check_view(desc, inputs)) << type << " has no view of row-major memory";
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  check_view(desc, inputs);
  desc.inputs[0] = TensorDesc::channels_last(ElementType::f32, inputs[0].shape());
  check_view(desc, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  check_view(desc, inputs);
}

std::vector<Tensor> run(const std::string& type, int opset, const Attributes& attributes,
                        const std::vector<Tensor>& inputs, size_t output_count, size_t variable) {
  std::vector<bool> constant(inputs.size(), true);
  for (size_t i = 0; i < variable && i < inputs.size(); ++i) constant[i] = false;
  return reference(make_desc(type, opset, attributes, inputs, constant, output_count), inputs);
}

std::string error_of(const std::string& type, int opset, const Attributes& attributes,
                     const std::vector<Tensor>& inputs, size_t output_count, size_t variable) {
  try {
    run(type, opset, attributes, inputs, output_count, variable);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

Tensor floats(Shape shape, const std::vector<float>& values) {
  EXPECT_EQ(count(shape), static_cast<int64_t>(values.size()));
  return Tensor::of(ElementType::f32, std::move(shape), values);
}

Tensor ints(Shape shape, const std::vector<int64_t>& values) {
  EXPECT_EQ(count(shape), static_cast<int64_t>(values.size()));
  return Tensor::of(ElementType::i64, std::move(shape), values);
}

Tensor ints(const std::vector<int64_t>& values) {
  return ints({static_cast<int64_t>(values.size())}, values);
}
Tensor scalar(int64_t value) { return ints(Shape{}, {value}); }

Tensor counted(Shape shape) {
  Tensor tensor = Tensor::allocate(ElementType::f32, std::move(shape));
  std::iota(tensor.mutable_data<float>(), tensor.mutable_data<float>() + tensor.elements(), 0.0f);
  return tensor;
}

}  // namespace clinfer::test
