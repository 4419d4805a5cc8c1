// Operations that the host computes quickly: prepared once from a node, with weights packed as the
// loops of kernels.h want them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "engine/host/tail.h"
#include "kernels/op.h"

namespace clinfer::host {

// The threads of one inference, and its end.
struct Work {
  unsigned threads = 1;
  // Asked between parts of the work, on any thread; throws where the work is to end.
  std::function<void()> may_go_on;

  // f(i) for 0 <= i < n, on the threads. f may throw.
  void for_each(int64_t n, const std::function<void(int64_t)>& f) const;
};

// Immutable and thread-safe. Tensors are row-major and f32; `inputs` are the node's, with the tail's
// operands; `outputs` are allocated.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual void run(const Work& work, std::span<const Tensor> inputs,
                   std::span<Tensor> outputs) const = 0;
  // Returns whether run() looks at this input: it does not look at weights, which are packed.
  virtual bool reads(size_t input) const { return true; }
  double seconds = 0;  // of one inference on one core, as estimated
};

// nullptr where the operation is none of these.
std::unique_ptr<Operation> make_convolution(const OpDesc& desc);    // and grouped
std::unique_ptr<Operation> make_deconvolution(const OpDesc& desc);  // and grouped
std::unique_ptr<Operation> make_matrix_product(const OpDesc& desc);
std::unique_ptr<Operation> make_pooling(const OpDesc& desc);
// Element functions (OpDef::as_tail): the first input, then a tail.
std::unique_ptr<Operation> make_elementwise(const OpDef& def, const OpDesc& desc);
// Any other operation that has a reference for the host, with a tail.
std::unique_ptr<Operation> make_plain(const OpDef& def, const OpDesc& desc);

}  // namespace clinfer::host
