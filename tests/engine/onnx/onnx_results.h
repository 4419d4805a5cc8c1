// Helpers that evaluate ONNX models of tests on the host, and give the reason why one is refused.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/graph/evaluate.h"
#include "tests/engine/onnx/onnx_builder.h"

namespace clinfer {

inline Tensor floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::of(ElementType::f32, shape, values);
}

inline std::vector<Tensor> results(const OnnxBuilder& b, const std::vector<Tensor>& inputs) {
  const OnnxModel model = b.read();
  return evaluate_graph(*model.graph, inputs);
}

inline void expect_near(const Tensor& got, const std::vector<float>& wanted, float by = 1e-5f) {
  const std::vector<float> values = got.to_floats();
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(values[i], wanted[i], by) << i;
}

// The message of the error that reading the model throws.
inline std::string refusal(const OnnxBuilder& b, const InputShapes& shapes = {}) {
  try {
    b.read(shapes);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace clinfer
