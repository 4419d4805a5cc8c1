// A model that computes long.
#pragma once

#include <string>

#include "tests/small_ir.h"

namespace clinfer::test {

// A chain of `products` products of square matrices with `side` rows, each by the input: few bytes,
// much work. Returns the path of the model's XML.
inline std::string products_model(const TemporaryFolder& folder, int side, int products) {
  const Shape shape{1, side, side};
  SmallIr ir("products");
  const int in = ir.input(shape);
  int last = in;
  for (int i = 1; i <= products; ++i)
    last = ir.add("MatMul", 1, "transpose_a=\"false\" transpose_b=\"false\"", {last, in}, shape,
                  "product" + std::to_string(i));
  ir.result(last);
  return ir.write(folder);
}

}  // namespace clinfer::test
