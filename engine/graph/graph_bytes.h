// Writes a graph as bytes for the cache on disk, and reads it back.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/graph/bytes.h"
#include "engine/graph/graph.h"

namespace clinfer {

// The constants of a model as read, including those in bodies, in the order of the nodes. A graph
// that passes made of the model shares most of them; its bytes refer to them instead of repeating
// them.
class KnownConstants {
 public:
  explicit KnownConstants(const Graph& model);
  const std::vector<Tensor>& all() const { return all_; }

  struct Place {
    // Index into all(), and the offset of the first byte in that constant.
    uint64_t index = 0, offset = 0;
  };
  std::optional<Place> find(const Tensor& value) const;

 private:
  std::vector<Tensor> all_;
  std::map<const char*, size_t> by_address_;  // the largest constant that begins at an address
};

// The bytes of constants that are not the model's, each once.
class ConstantPool {
 public:
  // Adds the bytes of a tensor. Returns the offset of its first byte in bytes().
  uint64_t add(const Tensor& value);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  // Holds the tensors, so that an address keeps standing for one of them.
  std::unordered_map<const void*, std::vector<std::pair<Tensor, uint64_t>>> places_;
};

// Writes a graph. Throws Error{unsupported} if it has custom layers, whose kernels are files of the
// user.
void write_graph(ByteWriter& out, const Graph& graph, const KnownConstants& known,
                 ConstantPool& pool);

// The bytes of a pool when it is read.
struct PoolView {
  std::string_view bytes;             // aligned for any element type
  std::shared_ptr<const void> owner;  // owner of the bytes; constants keep it alive
};

// Reads a graph. Checks each number before using it, and throws Error{bad_model} for bytes that are
// no graph. The caller has to make sure, by a checksum, that the bytes are what was written.
std::unique_ptr<Graph> read_graph(ByteReader& in, const KnownConstants& known,
                                  const PoolView& pool);

}  // namespace clinfer
