// Replays what the fuzzer of tuning files started from and what it found.
#include "tests/fuzz/replay.h"
#include "tests/fuzz/tuning_file_input.h"

namespace clinfer {
namespace {

TEST(TuningFileCorpus, Replays) {
  EXPECT_GT(replay_corpus("CLINFER_TUNING_CORPUS", read_tuning_fuzz_input), 4u);
}

}  // namespace
}  // namespace clinfer
