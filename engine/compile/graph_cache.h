// Stores whole models in the cache on disk: the graph after all passes, with the constants that
// passes computed, so that a load that finds it runs no pass.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph_bytes.h"
#include "engine/ocl/compiler/program_cache.h"
#include "engine/passes/passes.h"

namespace clinfer {

// A model after all passes, with its inputs and outputs as they were before the passes.
struct PassedGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Port> inputs, outputs;
};

// The entries of one model. An entry's key covers everything that the entry depends on: the model
// as read (all nodes, and a hash of each constant, so that IR, ONNX, other input shapes and the
// parts of HETERO need no special rules), the batch, everything that passes know of the device and
// the configuration, and the source code of this engine. Size limit, owner and checksum are those
// of cached programs. Thread-safe.
class GraphCache {
 public:
  // `most_bytes` limits the size of all files of the cache; an entry takes at most a quarter of it.
  GraphCache(std::shared_ptr<const Model> model, const ocl::ProgramCache& files,
             uint64_t most_bytes);

  // Returns whether the cache stores this model. It does not store models with custom layers: what
  // passes make of them depends on the user's files of kernels and descriptions, which change while
  // one writes them. Models from memory may be decrypted ones, so that they are stored only if the
  // configuration asks for it.
  static bool takes(const Model& model, const Config& config);

  // Loads an entry. `batch`: 0 for the model's own. Returns nothing if there is no entry or it
  // cannot be read.
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

// Write and read the bytes of an entry. Reading throws Error{bad_model} if they are damaged.
std::vector<unsigned char> entry_bytes(const PassedGraph& passed, const KnownConstants& known);
PassedGraph read_entry(std::vector<unsigned char> bytes, const KnownConstants& known);

}  // namespace clinfer
