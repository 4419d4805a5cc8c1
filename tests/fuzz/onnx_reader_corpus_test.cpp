// Replays what the ONNX reader's fuzzer found, and models with bytes changed at random.
#include <random>

#include "tests/engine/onnx/onnx_builder.h"
#include "tests/fuzz/onnx_reader_input.h"
#include "tests/fuzz/replay.h"

namespace clinfer {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(OnnxReaderCorpus, Found) {
  EXPECT_GT(replay_corpus("CLINFER_ONNX_CORPUS",
                          [](const std::string& text) { read_onnx_fuzz_input(bytes_of(text)); }),
            0u);
}

// A bit of everything that the reader reads.
std::string model() {
  OnnxBuilder b;
  b.input("x", {1, 2, 6, 6});
  b.initialiser(OnnxBuilder::floats("w", {2, 2, 3, 3}, std::vector<float>(36, 0.25f)));
  b.initialiser(OnnxBuilder::ints("to", {2}, {0, -1}));
  b.initialiser(OnnxBuilder::floats("scale", {}, {0.5f}));
  b.initialiser(OnnxBuilder::ints("trips", {}, {2}));
  auto& conv = b.node("Conv", {"x", "w"}, {"c"});
  set(conv, "pads", std::vector<int64_t>{1, 1, 1, 1});
  set(conv, "auto_pad", std::string("NOTSET"));
  b.node("QuantizeLinear", {"c", "scale"}, {"q"});
  b.node("DequantizeLinear", {"q", "scale"}, {"d"});
  b.node("Shape", {"d"}, {"s"});
  b.node("ConstantOfShape", {"s"}, {"z"});
  b.node("Add", {"d", "z"}, {"a"});
  auto& loop = b.node("Loop", {"trips", "", "a"}, {"last", "all"});
  onnx::GraphProto& body = graph_of(loop, "body");
  for (const char* name : {"i", "go", "v"}) body.add_input()->set_name(name);
  OnnxBuilder::fill(*body.add_node(), "Sigmoid", {"v"}, {"n"});
  OnnxBuilder::fill(*body.add_node(), "Identity", {"go"}, {"on"});
  for (const char* name : {"on", "n", "n"}) body.add_output()->set_name(name);
  b.node("Reshape", {"last", "to"}, {"y"});
  b.output("y");
  return b.bytes();
}

TEST(OnnxReaderCorpus, ChangedBytesGiveAModelOrAnError) {
  const std::string whole = model();
  ASSERT_TRUE(read_onnx_fuzz_input(bytes_of(whole)));
  std::mt19937 random(42);
  const auto below = [&](size_t n) { return random() % n; };
  size_t refused = 0;
  constexpr size_t kRounds = 3000;
  for (size_t round = 0; round < kRounds; ++round) {
    std::string text = whole;
    for (size_t k = 1 + below(3); k-- > 0 && !text.empty();) {
      const size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), 1 + below(16)));
          break;
        default:
          text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      }
    }
    SCOPED_TRACE(round);
    refused += !read_onnx_fuzz_input(bytes_of(text));
  }
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds);
}

// A few bytes that ask for far more memory, nodes or time than an honest model.
TEST(OnnxReaderCorpus, RefusesWhatIsOutOfProportion) {
  OnnxBuilder messages;
  std::string text = messages.bytes();
  std::string nodes;
  for (int i = 0; i < 3'000'000; ++i) nodes += std::string("\x0a\x00", 2);  // empty nodes
  std::string graph = "\x3a";                                               // field 7 of the model
  for (size_t size = nodes.size(); size > 0; size >>= 7)
    graph += static_cast<char>((size & 127) | (size > 127 ? 128 : 0));
  EXPECT_FALSE(read_onnx_fuzz_input(bytes_of(text + graph + nodes)));

  OnnxBuilder large;
  large.input("x", {1});
  large.initialiser(OnnxBuilder::ints("shape", {3}, {1 << 20, 1 << 20, 1 << 20}));
  large.node("ConstantOfShape", {"shape"}, {"y"});
  large.output("y");
  EXPECT_FALSE(read_onnx_fuzz_input(bytes_of(large.bytes())));

  // Functions that double: 2^30 nodes.
  OnnxBuilder doubling;
  doubling.import("f", 1);
  doubling.input("x", {1});
  doubling.node("F0", {"x"}, {"y"}, "f");
  doubling.output("y");
  for (int i = 0; i < 30; ++i) {
    auto* function = doubling.model().add_functions();
    function->set_domain("f");
    function->set_name("F" + std::to_string(i));
    function->add_input("a");
    function->add_output("r");
    for (const char* domain : {"", "f"}) {
      auto* import = function->add_opset_import();
      import->set_domain(domain);
      import->set_version(domain[0] ? 1 : 17);
    }
    const std::string next = i == 29 ? "Relu" : "F" + std::to_string(i + 1);
    OnnxBuilder::fill(*function->add_node(), next, {"a"}, {"b"}, i == 29 ? "" : "f");
    OnnxBuilder::fill(*function->add_node(), next, {"b"}, {"r"}, i == 29 ? "" : "f");
  }
  EXPECT_FALSE(read_onnx_fuzz_input(bytes_of(doubling.bytes())));
}

}  // namespace
}  // namespace clinfer
