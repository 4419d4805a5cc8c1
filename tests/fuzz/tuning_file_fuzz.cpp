// libFuzzer target of tuning files. Build with clang and -Dfuzzing=true
// -Db_sanitize=address,undefined -Db_lundef=false, then
//   tuning_file_fuzz NEW_CORPUS tests/fuzz/corpus/tuning_file
#include "tests/fuzz/tuning_file_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  clinfer::read_tuning_fuzz_input(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
