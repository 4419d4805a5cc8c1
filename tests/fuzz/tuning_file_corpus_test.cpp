// Replays what the fuzzer of tuning files started from and what it found.
#include <gtest/gtest.h>

#include "tests/engine/test_files.h"
#include "tests/fuzz/tuning_file_input.h"

namespace clinfer {
namespace {

TEST(TuningFileCorpus, Replays) {
  const char* folder = std::getenv("CLINFER_TUNING_CORPUS");
  ASSERT_NE(folder, nullptr);
  size_t number = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    read_tuning_fuzz_input(read_file(entry.path().string()));
    ++number;
  }
  EXPECT_GT(number, 4u);
}

}  // namespace
}  // namespace clinfer
