// Operations that the host computes fast. Each is prepared once from a node, with weights packed
// for the loops of kernels.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "engine/host/tail.h"
#include "kernels/op.h"

namespace clinfer {
struct Node;
}

namespace clinfer::host {

// The threads of one inference, and how it is ended early.
struct Work {
  unsigned threads = 1;
  // Is called between parts of the work, on any thread, and throws to end the work.
  std::function<void()> may_go_on;
  // If set, is called with the outputs of each layer, in order, and may replace them.
  std::function<void(const Node&, std::span<Tensor>)> after_layer = {};

  // Calls f(i) for 0 <= i < n, on the threads. f may throw.
  void for_each(int64_t n, const std::function<void(int64_t)>& f) const;
};

// Immutable and thread-safe. Tensors are row-major and f32. `inputs` are the node's inputs,
// including operands of the tail; `outputs` are allocated by the caller.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual void run(const Work& work, std::span<const Tensor> inputs,
                   std::span<Tensor> outputs) const = 0;
  // Returns whether run() reads this input. It does not read weights, which are packed.
  virtual bool reads(size_t input) const { return true; }
  double seconds = 0;  // estimated time of one inference on one core
};

// Return nullptr if the operation is not of the kind.
std::unique_ptr<Operation> make_convolution(const OpDesc& desc);    // grouped ones, too
std::unique_ptr<Operation> make_deconvolution(const OpDesc& desc);  // grouped ones, too
std::unique_ptr<Operation> make_matrix_product(const OpDesc& desc);
std::unique_ptr<Operation> make_pooling(const OpDesc& desc);
// Makes an element function (OpDef::as_tail), applied to the first input and followed by the tail.
std::unique_ptr<Operation> make_elementwise(const OpDef& def, const OpDesc& desc);
// Makes any other operation that has a reference for the host, followed by the tail.
std::unique_ptr<Operation> make_plain(const OpDef& def, const OpDesc& desc);

}  // namespace clinfer::host
