// Replays what the fuzzer of files beside models started from and what it found.
#include "tests/fuzz/beside_input.h"
#include "tests/fuzz/replay.h"

namespace clinfer {
namespace {

TEST(BesideCorpus, Replays) {
  EXPECT_GT(replay_corpus("CLINFER_BESIDE_CORPUS", read_beside_fuzz_input), 16u);
}

}  // namespace
}  // namespace clinfer
