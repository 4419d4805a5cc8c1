// Checks of operations that only rename elements: what a view of the input shows against
// evaluate(); and of those that are nothing but infer_shapes and evaluate().
#pragma once

#include "tests/kernels/op_test.h"

namespace clinfer::test {

// Puts inputs[0] into memory as desc.inputs[0] says and reads the outputs through the op's view.
// False where the op has no view of that layout; fails the test where a view shows something else
// than evaluate() gives.
bool check_view(OpDesc desc, const std::vector<Tensor>& inputs);
// The same for row-major memory, channels-last memory and memory with gaps; the first must have a
// view.
void check_views(const std::string& type, int opset, const Attributes& attributes,
                 const std::vector<Tensor>& inputs, size_t output_count = 1);

// infer_shapes() and evaluate() of an operation all of whose inputs after the first `variable` ones
// are constant.
std::vector<Tensor> run(const std::string& type, int opset, const Attributes& attributes,
                        const std::vector<Tensor>& inputs, size_t output_count = 1,
                        size_t variable = 1);
// What run() throws: its message; "" if nothing.
std::string error_of(const std::string& type, int opset, const Attributes& attributes,
                     const std::vector<Tensor>& inputs, size_t output_count = 1,
                     size_t variable = 1);

// Tensors from values written in a test.
Tensor floats(Shape shape, const std::vector<float>& values);
Tensor ints(const std::vector<int64_t>& values);  // i64, one dimension
Tensor ints(Shape shape, const std::vector<int64_t>& values);
Tensor scalar(int64_t value);
Tensor counted(Shape shape);  // 0, 1, 2, ... as f32

}  // namespace clinfer::test
