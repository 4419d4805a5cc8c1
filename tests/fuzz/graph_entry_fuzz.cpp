// libFuzzer target of the graphs in the cache. Build with clang and -Dfuzzing=true
// -Db_sanitize=address,undefined -Db_lundef=false, then
//   graph_entry_fuzz NEW_CORPUS tests/fuzz/corpus/graph_entry
#include "tests/fuzz/graph_entry_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  clinfer::read_graph_entry_input({reinterpret_cast<const char*>(data), size});
  return 0;
}
