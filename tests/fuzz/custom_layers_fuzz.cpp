// libFuzzer target of descriptions of custom layers; built as ir_reader_fuzz is. An input is the
// XML file; all its sources have the same text.
#include <algorithm>
#include <cstdlib>

#include "engine/ir/custom_layers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clinfer;
  const std::string_view xml(reinterpret_cast<const char*>(data), size);
  try {
    CustomLayers().add(xml, "input.xml", [](const std::string&) { return std::string("text"); });
  } catch (const Error& error) {
    const std::string_view what = error.what();
    const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
    if (what.empty() || std::any_of(what.begin(), what.end(), control)) std::abort();
  }
  return 0;
}
