// libFuzzer target of descriptions of custom layers; built as ir_reader_fuzz is.
//   custom_layers_fuzz -dict=tests/fuzz/custom_layers.dict NEW_CORPUS
//   tests/fuzz/corpus/custom_layers
#include "tests/fuzz/custom_layers_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  clinfer::read_custom_layers_fuzz_input({reinterpret_cast<const char*>(data), size});
  return 0;
}
