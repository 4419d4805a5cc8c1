// libFuzzer target of the reader and the graph compiler, with mutations that know models. Build
// with clang and -Dfuzzing=true -Db_sanitize=address,undefined -Db_lundef=false, then
//   graph_fuzz -rss_limit_mb=1024 -timeout=20 -max_len=200000 NEW_CORPUS SEEDS
// where a seed is a model's xml, a byte 0, and its weights
//   for m in MODELS/*.xml; do (cat "$m"; printf "\\0"; cat "${m%.xml}.bin") >"SEEDS/$(basename
//   "$m")"; done
#include <cstring>

#include "tests/fuzz/graph_mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string output = clinfer::mutated(clinfer::FuzzModel::split(input), seed).joined();
  if (output.size() > max_size) return size;
  std::memcpy(data, output.data(), output.size());
  return output.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  clinfer::compile_fuzz_model(clinfer::FuzzModel::split(input));
  return 0;
}
