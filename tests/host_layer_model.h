// A network of a picture with one layer on the device (negate) and one on the host (invert), whose
// three matrices are work for three threads.
#pragma once

#include "tests/small_ir.h"

namespace clinfer::test {

inline std::string host_layer_model(const TemporaryFolder& folder) {
  const Shape shape{1, 3, 64, 64};
  SmallIr ir("inverses");
  const int negate = ir.add("Negative", 1, "", {ir.input(shape)}, shape, "negate");
  ir.result(ir.add("Inverse", 14, "adjoint=\"false\"", {negate}, shape, "invert"));
  return ir.write(folder);
}

}  // namespace clinfer::test
