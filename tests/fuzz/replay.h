// The tests that replay what fuzzers started from and what they found.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/engine/test_files.h"

namespace clinfer {

// Calls `read` with the bytes of each file of the folder; gives their number.
template <typename Read>
size_t replay(const std::string& folder, const Read& read) {
  size_t number = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    read(read_file(entry.path().string()));
    ++number;
  }
  return number;
}

// Does so for the folder that an environment variable names; without the variable the test fails.
template <typename Read>
size_t replay_corpus(const char* variable, const Read& read) {
  const char* const folder = std::getenv(variable);
  if (folder != nullptr) return replay(folder, read);
  ADD_FAILURE() << variable << " is not set";
  return 0;
}

}  // namespace clinfer
