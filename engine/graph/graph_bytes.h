// A graph as bytes, for the cache on disk, and back.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/graph/bytes.h"
#include "engine/graph/graph.h"

namespace clinfer {

// The constants of a model as read, those in bodies included, in the order of the nodes. A graph
// that passes made of the model shares most of them: its bytes say which, instead of repeating them.
class KnownConstants {
 public:
  explicit KnownConstants(const Graph& model);
  const std::vector<Tensor>& all() const { return all_; }

  struct Place {
    uint64_t index = 0, offset = 0;  // of the constant in all(); of the first byte in it
  };
  std::optional<Place> find(const Tensor& value) const;

 private:
  std::vector<Tensor> all_;
  std::map<const char*, size_t> by_address_;  // the largest constant that begins there
};

// Memory of the constants that are not known, each once.
class ConstantPool {
 public:
  // Adds the bytes of a tensor; returns where its first byte lies in bytes().
  uint64_t add(const Tensor& value);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  // The tensors are held, so that an address stands for one of them.
  std::unordered_map<const void*, std::vector<std::pair<Tensor, uint64_t>>> places_;
};

// Throws Error{unsupported} where custom layers are in it: their kernels are files of the user.
void write_graph(ByteWriter& out, const Graph& graph, const KnownConstants& known,
                 ConstantPool& pool);

// Memory of a pool, as read_graph() gets it.
struct PoolView {
  std::string_view bytes;             // aligned for any element type
  std::shared_ptr<const void> owner;  // of the bytes; constants keep it alive
};

// Throws Error{bad_model} for anything that is no graph: each number is checked before it is used.
// Whether the graph computes what it should is for the caller to know, by a checksum.
std::unique_ptr<Graph> read_graph(ByteReader& in, const KnownConstants& known,
                                  const PoolView& pool);

}  // namespace clinfer
