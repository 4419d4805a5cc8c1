// Replays what the fuzzer of custom layers started from and what it found.
#include <cstdlib>

#include "tests/fuzz/custom_layers_input.h"
#include "tests/fuzz/replay.h"

namespace clinfer {
namespace {

TEST(CustomLayersCorpus, Replays) {
  const char* folder = std::getenv("CLINFER_CUSTOM_LAYERS_CORPUS");
  ASSERT_NE(folder, nullptr);
  size_t taken = 0;
  const size_t number = replay(
      folder, [&](const std::string& input) { taken += read_custom_layers_fuzz_input(input); });
  EXPECT_GT(number, 8u);
  EXPECT_GE(taken, 4u) << "the seeds are descriptions without a fault";
}

}  // namespace
}  // namespace clinfer
