// One input of the reader's fuzzer: the xml, a byte 0, the weights. Shared by the fuzz target and
// the replay of its corpus.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "engine/ir/ir_reader.h"
#include "tests/fuzz/one_line.h"

namespace clinfer {

// Reads the model. Ends the process if an error is not one printable line; whatever else is wrong,
// the sanitizers tell.
inline void read_fuzz_input(std::span<const std::byte> input) {
  const auto end = std::find(input.begin(), input.end(), std::byte{0});
  const std::string_view xml(reinterpret_cast<const char*>(input.data()),
                             static_cast<size_t>(end - input.begin()));
  const auto weights =
      end == input.end() ? std::span<const std::byte>() : input.subspan(xml.size() + 1);
  try {
    const IrModel model = read_ir(xml, weights, "input");
    to_dot(*model.graph);
  } catch (const Error& error) {
    must_be_one_line(error);
  }
}

}  // namespace clinfer
