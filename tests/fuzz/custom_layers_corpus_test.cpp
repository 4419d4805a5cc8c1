// Replays what the fuzzer of custom layers started from and what it found.
#include "tests/fuzz/custom_layers_input.h"
#include "tests/fuzz/replay.h"

namespace clinfer {
namespace {

TEST(CustomLayersCorpus, Replays) {
  size_t taken = 0;
  const size_t number = replay_corpus(
      "CLINFER_CUSTOM_LAYERS_CORPUS",
      [&](const std::string& input) { taken += read_custom_layers_fuzz_input(input); });
  EXPECT_GT(number, 8u);
  EXPECT_GE(taken, 4u) << "the seeds are descriptions without a fault";
}

}  // namespace
}  // namespace clinfer
