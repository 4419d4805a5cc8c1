// Checks operations that move no data: compares the elements of a view of the input with
// evaluate(). Also runs operations that consist of infer_shapes and evaluate() only.
#pragma once

#include "tests/kernels/op_test.h"

namespace clinfer::test {

// Stores inputs[0] in memory with the layout desc.inputs[0] and reads the outputs through the
// operation's view. Returns false if the operation has no view of that layout; fails the test if
// the view's elements differ from evaluate()'s.
bool check_view(OpDesc desc, const std::vector<Tensor>& inputs);
// Checks the view of row-major memory, of channels-last memory and of memory with gaps; the first
// must exist.
void check_views(const std::string& type, int opset, const Attributes& attributes,
                 const std::vector<Tensor>& inputs, size_t output_count = 1);

// infer_shapes() and evaluate() of an operation whose inputs after the first `variable` ones are
// constant.
std::vector<Tensor> run(const std::string& type, int opset, const Attributes& attributes,
                        const std::vector<Tensor>& inputs, size_t output_count = 1,
                        size_t variable = 1);
// Returns the message of the exception that run() throws; "" if it throws none.
std::string error_of(const std::string& type, int opset, const Attributes& attributes,
                     const std::vector<Tensor>& inputs, size_t output_count = 1,
                     size_t variable = 1);

// Tensors from values written in a test.
Tensor floats(Shape shape, const std::vector<float>& values);
inline Tensor number(float value) { return floats({}, {value}); }
// Attributes of operations that take values between pixels.
inline Attributes sampling(const char* mode, const char* padding, const char* align_corners) {
  return attributes({{"mode", mode}, {"padding_mode", padding}, {"align_corners", align_corners}});
}
Tensor ints(const std::vector<int64_t>& values);  // i64, one dimension
Tensor ints(Shape shape, const std::vector<int64_t>& values);
Tensor scalar(int64_t value);
Tensor counted(Shape shape);  // 0, 1, 2, ... as f32

}  // namespace clinfer::test
