// One input of the tuning file's fuzzer. Shared by the fuzz target and the replay of its corpus.
#pragma once

#include <cstdlib>
#include <string>

#include "tests/fuzz/one_line.h"
#include "tuning/tuning_cache.h"

namespace clinfer {

// Reads the file and writes it again. Ends the process if an error is not one printable line, or if
// what was written does not read back, and as the same (the first writing replaces what no JSON may
// hold).
inline void read_tuning_fuzz_input(const std::string& text) {
  std::string written;
  try {
    written = TuningCache::parse(text, "input").to_text();
  } catch (const Error& error) {
    must_be_one_line(error);
    return;
  }
  written = TuningCache::parse(written, "written").to_text();
  if (TuningCache::parse(written, "again").to_text() != written) std::abort();
}

}  // namespace clinfer
