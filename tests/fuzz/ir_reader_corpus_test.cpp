// Replays what the reader's fuzzer started from and what it found.
#include "tests/fuzz/ir_reader_input.h"
#include "tests/fuzz/replay.h"

namespace clinfer {
namespace {

void read(const std::string& input) { read_fuzz_input(std::as_bytes(std::span(input))); }

TEST(IrReaderCorpus, Seeds) { EXPECT_GT(replay(test_data("corpus"), read), 40u); }

TEST(IrReaderCorpus, Found) { EXPECT_GT(replay_corpus("CLINFER_FUZZ_CORPUS", read), 0u); }

}  // namespace
}  // namespace clinfer
