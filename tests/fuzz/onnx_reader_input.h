// One input of the ONNX reader's fuzzer: the bytes of a model. Shared by the fuzz target and the
// replay of its corpus.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>

#include "engine/onnx/onnx_reader.h"

namespace clinfer {

// Reads the model. Ends the process if an error is not one printable line; whatever else is wrong,
// the sanitizers tell.
inline bool read_onnx_fuzz_input(std::span<const std::byte> input) {
  try {
    const OnnxModel model = read_onnx(input, "input");
    to_dot(*model.graph);
    return true;
  } catch (const Error& error) {
    const std::string_view what = error.what();
    const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
    if (what.empty() || std::any_of(what.begin(), what.end(), control)) std::abort();
    return false;
  }
}

}  // namespace clinfer
