// Models made wrong in ways that know models, through the reader and the graph compiler: each is an
// error of one line, or compiles. CLINFER_FUZZ_SECONDS=N goes on for N seconds, over the cases of
// shared/conformance as well; CLINFER_FUZZ_SEED picks others. graph_fuzz does the same, guided by
// coverage.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/engine/test_files.h"
#include "tests/fuzz/graph_mutator.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;

std::vector<FuzzModel> models_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(folder, none))
    if (entry.path().extension() == ".xml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<FuzzModel> models;
  for (const fs::path& xml : files)
    models.push_back(
        {read_file(xml.string()), read_file(fs::path(xml).replace_extension(".bin").string())});
  return models;
}

unsigned number_of(const char* variable, unsigned otherwise) {
  const char* text = std::getenv(variable);
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST(GraphMutations, AreRefusedOrCompile) {
  const unsigned seconds = number_of("CLINFER_FUZZ_SECONDS", 0),
                 first = number_of("CLINFER_FUZZ_SEED", 1);
  std::vector<FuzzModel> seeds = models_below(test_data("models"));
  ASSERT_FALSE(seeds.empty());
  const auto run = [&](const FuzzModel& model, unsigned seed) {
    // Kept for the case that it ends the process.
    const FuzzModel changed = mutated(model, seed);
    std::ofstream(test_data("last_mutation"), std::ios::binary) << changed.joined();
    compile_fuzz_model(changed);
  };
  for (size_t i = 0; i < seeds.size(); ++i)
    for (unsigned k = 0; k < 40; ++k) run(seeds[i], first + 1000 * static_cast<unsigned>(i) + k);
  if (seconds == 0) return;
  const char* shared = std::getenv("CLINFER_SHARED");
  for (FuzzModel& model : models_below(fs::path(shared ? shared : "") / "conformance/set"))
    seeds.push_back(std::move(model));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  size_t runs = 0;
  for (unsigned k = first; std::chrono::steady_clock::now() < end; ++k, ++runs)
    run(seeds[k * 2654435761u % seeds.size()], k);
  std::cout << runs << " mutations of " << seeds.size() << " models\n";
}

}  // namespace
}  // namespace clinfer
