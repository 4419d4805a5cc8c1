// Whole models in the cache on disk: the graph as all passes leave it, with the constants that they
// computed, so that a load that finds it runs no pass.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph_bytes.h"
#include "engine/ocl/program_cache.h"
#include "engine/passes/passes.h"

namespace clinfer {

// A model after all passes, with its inputs and outputs as they were before these.
struct PassedGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Port> inputs, outputs;
};

// Entries of one model. An entry is found by everything that it depends on: the model as it was read
// (all of its nodes, and a hash of each constant, so that IR, ONNX, other input shapes and the parts
// of HETERO need no rules of their own), the batch, what passes are told of the device and the
// configuration, and the source code of this engine. The cache's rules hold for entries as they do
// for programs: size limit, owner, checksum. Thread-safe.
class GraphCache {
 public:
  // `most_bytes`: of all files of the cache; an entry takes at most a quarter of that.
  GraphCache(std::shared_ptr<const Model> model, const ocl::ProgramCache& files,
             uint64_t most_bytes);

  // Models with custom layers are compiled anew each time: what passes make of them depends on
  // kernels and descriptions in files of the user, which change while one writes them. Models from
  // memory, perhaps decrypted, stay out of files unless the configuration says so.
  static bool takes(const Model& model, const Config& config);

  // `batch`: 0 for the model's own. Nothing where there is no entry, or one that cannot be read.
  std::optional<PassedGraph> load(const PassContext& context, int64_t batch) const;
  void store(const PassContext& context, int64_t batch, const PassedGraph& passed) const;

 private:
  std::string key(const PassContext& context, int64_t batch) const;

  const std::shared_ptr<const Model> model_;
  const ocl::ProgramCache files_;
  const uint64_t most_bytes_;
  const KnownConstants known_;
  mutable std::once_flag described_;
  mutable std::string model_text_;
};

// An entry's bytes. Reading throws Error{bad_model} where they are none.
std::vector<unsigned char> entry_bytes(const PassedGraph& passed, const KnownConstants& known);
PassedGraph read_entry(std::vector<unsigned char> bytes, const KnownConstants& known);

}  // namespace clinfer
