// libFuzzer target of the IR reader. Build with clang and -Dfuzzing=true
// -Db_sanitize=address,undefined -Db_lundef=false, then
//   ir_reader_fuzz -dict=tests/fuzz/ir_reader.dict NEW_CORPUS tests/fuzz/corpus/ir_reader
//   <build>/tests/corpus
#include "tests/fuzz/ir_reader_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  clinfer::read_fuzz_input(std::as_bytes(std::span(data, size)));
  return 0;
}
