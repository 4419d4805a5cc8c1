// A model that computes max(x, 0) of an input of a shape, in f32.
#pragma once

#include <filesystem>

#include "tests/small_ir.h"

namespace clinfer::test {

inline std::filesystem::path relu_model(const TemporaryFolder& folder, const Shape& shape) {
  SmallIr ir("relu");
  ir.result(ir.add("ReLU", 1, "", {ir.input(shape)}, shape, "relu"));
  return ir.write(folder);
}

}  // namespace clinfer::test
