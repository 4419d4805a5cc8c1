// Attention, softmax(scale * query x key^T + bias) x value, in the form that its kernel families
// share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

inline constexpr int64_t kMostHeadSize = 256;

// Why the families add up in an order of their own (KernelFamily::own_order).
inline constexpr const char* kSumsOfBlocks = "sums grow with blocks of keys";

// One operand as matrices [batch..., rows, columns] with the strides of a view. A stride of the
// batch is 0 where the operand is broadcast.
struct AttentionOperand {
  Shape batch;
  int64_t row = 0, column = 0;
};

// An attention with all sizes resolved. Batch dimensions are those of the output, outermost first.
struct AttentionProblem {
  int64_t queries = 0, keys = 0;
  int64_t size = 0, value_size = 0;  // of a head
  Shape batch;
  AttentionOperand query, key, value, out, bias, mask;
  std::optional<size_t> bias_input, mask_input;
  float scale = 1, masked = 0;
  bool causal = false;

  int64_t heads() const;  // of all images
};
// Throws Error{bad_model} for shapes that do not fit.
AttentionProblem attention_problem(const OpDesc& desc);

// Returns why no kernel takes the operation, or "".
std::string reject_attention(const OpDesc& desc);

// Makes a launch with the sources' defines, arguments and heads * blocks work-groups, each of which
// computes `rows` queries. `turned`: unless 0, a constant bias is packed with the keys as rows,
// which are padded to a multiple of this many queries.
KernelSpec attention_launch(const char* source, const OpDesc& desc, const AttentionProblem& problem,
                            int64_t rows, std::array<size_t, 3> local, int64_t turned,
                            KernelPlan& plan);

// Computes vectors along the queries, for CPUs (attention_rows.cl).
const KernelFamily& attention_rows_family();
// Computes tiles in local memory (attention_tiles.cl).
const KernelFamily& attention_tiles_family();
// Uses the matrix instructions of warps (attention_mma.cl).
const KernelFamily& attention_mma_family();

}  // namespace clinfer
