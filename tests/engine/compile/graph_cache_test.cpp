// Whole models in the cache: a second load runs no pass and gives the same bits; anything that is
// not exactly what was stored is compiled anew.
#include "engine/compile/graph_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "engine/ir/ir_reader.h"
#include "engine/ir/model_file.h"
#include "engine/runtime/model.h"
#include "tests/engine/loop_model.h"
#include "tests/engine/passes/pass_counter.h"
#include "tests/engine/passes/pass_test.h"
#include "tests/engine/test_files.h"
#include "tests/fuzz/graph_entry_input.h"
#include "tests/fuzz/replay.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;

class GraphCacheTest : public testing::Test {
 protected:
  Config config() const {
    Config config;
    config.cache_dir = folder_ / "cache";
    return config;
  }

  struct Outcome {
    size_t passes = 0;
    std::vector<std::vector<float>> results;
    std::vector<std::string> layers;  // with what became of each
  };
  // Loads the model, and computes images from a fixed seed: all of a batch, and one.
  Outcome load(const std::string& path, const Config& config, const InputShapes& shapes = {}) {
    counter_.take_runs();
    const auto compiled = CompiledModel::compile(Model::read(path, shapes), config);
    Outcome outcome;
    outcome.passes = counter_.take_runs();
    const auto request = compiled->create_request();
    for (size_t i = 0; i < compiled->inputs().size(); ++i)
      request->set_input(i, test::random_tensor(compiled->inputs()[i].shape, 0, 200, 5));
    std::vector<unsigned> runs = {0};
    if (config.partial_batches) runs.push_back(1);
    for (const unsigned images : runs) {
      request->start(images);
      request->wait();
      for (size_t i = 0; i < compiled->outputs().size(); ++i)
        outcome.results.push_back(request->output(i).to_floats());
    }
    for (const StepProfile& step :
         config.perf_count ? compiled->profile() : std::vector<StepProfile>())
      outcome.layers.push_back(step.layer + "|" + step.type + "|" + step.kernel + "|" +
                               name_of(step.status) + "|" + step.fused_into);
    return outcome;
  }
  static bool same_bits(const Outcome& a, const Outcome& b) {
    if (a.results.size() != b.results.size()) return false;
    for (size_t i = 0; i < a.results.size(); ++i)
      if (a.results[i].size() != b.results[i].size() ||
          std::memcmp(a.results[i].data(), b.results[i].data(), 4 * a.results[i].size()) != 0)
        return false;
    return true;
  }
  // The first load runs passes, the second one none.
  void expect_kept(const std::string& path, const Config& config, const InputShapes& shapes = {}) {
    const Outcome cold = load(path, config, shapes), warm = load(path, config, shapes);
    EXPECT_GE(cold.passes, passes().size());
    EXPECT_EQ(warm.passes, 0u);
    EXPECT_TRUE(same_bits(cold, warm));
    EXPECT_EQ(cold.layers, warm.layers);
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& file : fs::directory_iterator(folder_ / "cache"))
      if (read_file(file.path().string()).find("graph|") != std::string::npos)
        found.push_back(file.path());
    return found;
  }

  TemporaryFolder folder_;
  test::PassCounter counter_;
};

TEST_F(GraphCacheTest, AWarmLoadRunsNoPassAndGivesTheSameBits) {
  Config counted = config();
  counted.perf_count = true;
  for (const char* name : {"quantized", "integers", "picture"}) {
    SCOPED_TRACE(name);
    expect_kept(test_data("models/" + std::string(name) + ".xml"), counted);
  }
}

TEST_F(GraphCacheTest, BatchesTheirPartsAndOtherSizes) {
  Config batch = config();
  batch.batch = 4;
  batch.partial_batches = true;
  expect_kept(test_data("models/picture.xml"), batch);
  InputShapes larger;
  larger.width = 48;
  larger.height = 40;
  expect_kept(test_data("models/picture.xml"), config(), larger);
  EXPECT_EQ(load(test_data("models/picture.xml"), batch).passes, 0u);
}

TEST_F(GraphCacheTest, LoopsUnrolledAndNot) {
  const std::string loop = folder_.write("loop.xml", test::loop_model());
  folder_.write("loop.bin", "");
  expect_kept(loop, config());
  Config rolled = config();
  rolled.unroll_loops = false;
  const Outcome cold = load(loop, rolled), warm = load(loop, rolled);
  EXPECT_TRUE(same_bits(cold, warm));
  // The body is compiled for the memory that the plan gives it.
  EXPECT_EQ(warm.passes, passes().size());
  EXPECT_GT(cold.passes, warm.passes);
}

TEST_F(GraphCacheTest, AnotherModelOrOptionIsNotServed) {
  const std::string xml = read_file(test_data("models/quantized.xml"));
  std::string weights = read_file(test_data("models/quantized.bin"));
  const std::string path = folder_.write("m.xml", xml);
  folder_.write("m.bin", weights);
  const Outcome before = load(path, config());
  EXPECT_EQ(load(path, config()).passes, 0u);
  Config floats = config();
  floats.quantized_in_integers = false;
  EXPECT_GT(load(path, floats).passes, 0u);
  EXPECT_EQ(load(path, floats).passes, 0u);
  Config batch = config();
  batch.batch = 2;
  EXPECT_GT(load(path, batch).passes, 0u);
  Config dumped = config();
  dumped.graph_dumps_dir = folder_ / "dumps";
  EXPECT_GT(load(path, dumped).passes, 0u) << "the graph after each pass is to be drawn";
  Config none = config();
  none.cache_dir = "";
  EXPECT_GT(load(path, none).passes, 0u);
  EXPECT_EQ(load(path, config()).passes, 0u);
  // One bit of one weight: the exponent of the last float.
  weights.back() = static_cast<char>(weights.back() ^ 1);
  folder_.write("m.bin", weights);
  const Outcome after = load(path, config());
  EXPECT_GT(after.passes, 0u);
  EXPECT_FALSE(same_bits(before, after));
  // A name in the file.
  std::string renamed = xml;
  const size_t at = renamed.find("name=\"");
  renamed.replace(at, 6, "name=\"other_");
  EXPECT_GT(load(folder_.write("m.xml", renamed), config()).passes, 0u);
}

TEST_F(GraphCacheTest, ADamagedOrForeignEntryIsIgnoredAndReplaced) {
  const std::string path = test_data("models/quantized.xml");
  const Outcome first = load(path, config());
  ASSERT_EQ(entries().size(), 1u);
  const fs::path file = entries()[0];
  const std::string whole = read_file(file.string());
  const auto expect_replaced = [&](const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
    const Outcome again = load(path, config());
    EXPECT_GT(again.passes, 0u);
    EXPECT_TRUE(same_bits(first, again));
    EXPECT_EQ(read_file(file.string()), whole);
  };
  for (const size_t at : {whole.size() / 3, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    expect_replaced(damaged);
  }
  expect_replaced(whole.substr(0, whole.size() / 2));
  expect_replaced("");
  // Others could have written it.
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  EXPECT_GT(load(path, config()).passes, 0u);
}

TEST_F(GraphCacheTest, TakesAtMostAQuarterOfTheCache) {
  const auto model = Model::read(test_data("models/quantized.xml"));
  PassedGraph passed{model->graph().clone(), model->inputs(), model->outputs()};
  run_passes(*passed.graph, test::cpu_context());
  const size_t bytes = entry_bytes(passed, KnownConstants(model->graph())).size();
  for (const uint64_t most : {4 * bytes - 1, 4 * bytes}) {
    const GraphCache cache(model, ocl::ProgramCache(folder_ / "cache"), most);
    cache.store(test::cpu_context(), 0, passed);
    EXPECT_EQ(cache.load(test::cpu_context(), 0).has_value(), most == 4 * bytes);
  }
}

// ---- the bytes ----------------------------------------------------------------------------------

struct Entry {
  std::shared_ptr<const Model> model;
  KnownConstants known;
  PassedGraph passed;

  explicit Entry(const std::string& path, bool unroll = true)
      : model(Model::read(path)), known(model->graph()) {
    passed = {model->graph().clone(), model->inputs(), model->outputs()};
    passed.graph->note_layers();
    PassContext context = test::cpu_context();
    context.unroll_loops = unroll;
    run_passes(*passed.graph, context);
  }
};

// A model from memory, perhaps decrypted, is not written to a file.
TEST_F(GraphCacheTest, HoldsNothingOfAModelFromMemoryUnlessToldSo) {
  const std::string path = std::string(CLINFER_SOURCE_DIR) + "/pipelines/models/ball.xml";
  const std::string xml = read_text_file(path), weights = read_text_file(weights_path(path));
  const auto bytes = [](const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  };
  const auto passes_of = [&](const Config& config, bool from_memory) {
    const auto model =
        from_memory ? Model::read_bytes(bytes(xml), bytes(weights), "the ball") : Model::read(path);
    counter_.take_runs();
    CompiledModel::compile(model, config);
    return counter_.take_runs();
  };
  EXPECT_NE(passes_of(config(), true), 0u);
  EXPECT_NE(passes_of(config(), true), 0u) << "the first load kept no graph";
  Config speed = config();
  speed.cache_mode = CacheMode::optimize_speed;
  EXPECT_NE(passes_of(speed, true), 0u);
  EXPECT_EQ(passes_of(speed, true), 0u);
  EXPECT_EQ(passes_of(config(), false), 0u) << "the same model, from its file";
  Config size = config();
  size.cache_mode = CacheMode::optimize_size;
  EXPECT_NE(passes_of(size, false), 0u);
}

TEST(GraphBytes, GiveTheSameGraphBack) {
  const TemporaryFolder folder;
  const std::string loop = folder.write("loop.xml", test::loop_model());
  folder.write("loop.bin", "");
  std::vector<std::string> models = {loop};
  for (const char* name : {"quantized", "integers", "picture", "reshape", "tunable"})
    models.push_back(test_data("models/" + std::string(name) + ".xml"));
  for (const std::string& path : models)
    for (const bool unroll : {true, false}) {
      SCOPED_TRACE(path);
      const Entry entry(path, unroll);
      const std::vector<unsigned char> bytes = entry_bytes(entry.passed, entry.known);
      const PassedGraph again = read_entry(bytes, entry.known);
      EXPECT_EQ(to_dot(*again.graph), to_dot(*entry.passed.graph));
      EXPECT_EQ(entry_bytes(again, entry.known), bytes);
    }
}

// Changed bytes are refused by one line, or give a graph that can be written again: no access is out
// of bounds, which the sanitizers watch.
TEST(GraphBytes, DamagedOnesAreRefusedOrAGraph) {
  const TemporaryFolder folder;
  const std::string loop = folder.write("loop.xml", test::loop_model());
  folder.write("loop.bin", "");
  for (const auto& [path, unroll] :
       {std::pair(loop, false), std::pair(test_data("models/quantized.xml"), true)}) {
    const Entry entry(path, unroll);
    const std::vector<unsigned char> whole = entry_bytes(entry.passed, entry.known);
    size_t refused = 0, read = 0;
    const auto expect_safe = [&](const std::vector<unsigned char>& bytes) {
      try {
        const PassedGraph passed = read_entry(bytes, entry.known);
        for (const auto& node : passed.graph->nodes())
          for (size_t port = 0; port < node->outputs.size(); ++port)
            storage_root({node.get(), static_cast<int>(port)});
        EXPECT_FALSE(entry_bytes(passed, entry.known).empty());
        ++read;
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
        ++refused;
      }
    };
    const size_t meta =
        sizeof(uint64_t) +
        ByteReader({reinterpret_cast<const char*>(whole.data()), whole.size()}).size();
    for (size_t length = 0; length < meta; length += 1 + meta / 1500)
      expect_safe({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    EXPECT_EQ(read, 0u) << "what ends early is never whole";
    for (size_t at = 0; at < meta; at += 1 + meta / 3000)
      for (const unsigned char bit : {0x01, 0x80}) {
        std::vector<unsigned char> bytes = whole;
        bytes[at] ^= bit;
        expect_safe(bytes);
      }
    std::mt19937 random(1);
    for (int round = 0; round < 500; ++round) {
      std::vector<unsigned char> bytes = whole;
      for (unsigned changes = 1 + random() % 4; changes > 0; --changes)
        bytes[random() % meta] = static_cast<unsigned char>(random());
      expect_safe(bytes);
    }
    EXPECT_GT(refused, 0u);
    EXPECT_GT(read, 0u);
  }
}

TEST(GraphBytes, CorpusReplays) {
  const std::string folder = std::string(CLINFER_SOURCE_DIR) + "/tests/fuzz/corpus/graph_entry";
  EXPECT_GE(replay(folder, read_graph_entry_input), 4u);
}

}  // namespace
}  // namespace clinfer
