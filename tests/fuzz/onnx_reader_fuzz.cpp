// libFuzzer target of the ONNX reader. Build as ir_reader_fuzz.cpp says; any .onnx files are seeds:
//   onnx_reader_fuzz -max_len=65536 NEW_CORPUS tests/fuzz/corpus/onnx_reader FOLDER_OF_MODELS
#include "tests/fuzz/onnx_reader_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  clinfer::read_onnx_fuzz_input(std::as_bytes(std::span(data, size)));
  return 0;
}
