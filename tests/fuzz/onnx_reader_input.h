// One input of the ONNX reader's fuzzer: the bytes of a model. Shared by the fuzz target and the
// replay of its corpus.
#pragma once

#include <span>

#include "engine/onnx/onnx_reader.h"
#include "tests/fuzz/one_line.h"

namespace clinfer {

// Reads the model. Ends the process if an error is not one printable line; whatever else is wrong,
// the sanitizers tell.
inline bool read_onnx_fuzz_input(std::span<const std::byte> input) {
  try {
    const OnnxModel model = read_onnx(input, "input");
    to_dot(*model.graph);
    return true;
  } catch (const Error& error) {
    must_be_one_line(error);
    return false;
  }
}

}  // namespace clinfer
