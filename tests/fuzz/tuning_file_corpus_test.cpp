// Replays what the fuzzer of tuning files started from and what it found.
#include "tests/fuzz/replay.h"
#include "tests/fuzz/tuning_file_input.h"

namespace clinfer {
namespace {

TEST(TuningFileCorpus, Replays) {
  const char* folder = std::getenv("CLINFER_TUNING_CORPUS");
  ASSERT_NE(folder, nullptr);
  EXPECT_GT(replay(folder, read_tuning_fuzz_input), 4u);
}

}  // namespace
}  // namespace clinfer
