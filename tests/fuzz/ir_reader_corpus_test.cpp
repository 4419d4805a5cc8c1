// Replays what the reader's fuzzer started from and what it found.
#include <gtest/gtest.h>

#include "tests/engine/test_files.h"
#include "tests/fuzz/ir_reader_input.h"

namespace clinfer {
namespace {

size_t replay(const std::string& folder) {
  size_t number = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    const std::string input = read_file(entry.path().string());
    read_fuzz_input(std::as_bytes(std::span(input)));
    ++number;
  }
  return number;
}

TEST(IrReaderCorpus, Seeds) { EXPECT_GT(replay(test_data("corpus")), 40u); }

TEST(IrReaderCorpus, Found) {
  const char* folder = std::getenv("CLINFER_FUZZ_CORPUS");
  ASSERT_NE(folder, nullptr);
  EXPECT_GT(replay(folder), 0u);
}

}  // namespace
}  // namespace clinfer
