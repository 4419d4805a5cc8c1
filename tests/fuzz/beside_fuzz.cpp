// libFuzzer target of files beside models. Build with clang and -Dfuzzing=true
// -Db_sanitize=address,undefined -Db_lundef=false, then
//   beside_fuzz NEW_CORPUS tests/fuzz/corpus/beside
#include "tests/fuzz/beside_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  clinfer::read_beside_fuzz_input(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
