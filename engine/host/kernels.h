// The inner loops of the host's operations, each for several instruction sets. The best one that
// this processor has is chosen when the program runs.
#pragma once

#include <cstdint>
#include <string_view>

namespace clinfer::host {

// The number of rows in a tile of a matrix product.
inline constexpr int kTileRows = 8;
// The largest number of columns in a tile, over all instruction sets.
inline constexpr int kMostTileColumns = 32;

// x[i] = f(x[i]; alpha, beta) for 0 <= i < n.
using UnaryLoop = void (*)(float* x, int64_t n, float alpha, float beta);
// BinaryLoop: x[i] = g(x[i], y[i]). ScalarLoop has one y for all elements.
using BinaryLoop = void (*)(float* x, const float* y, int64_t n);
using ScalarLoop = void (*)(float* x, float y, int64_t n);

struct BinaryLoops {
  BinaryLoop each = nullptr;
  ScalarLoop one = nullptr;
};

struct Kernels {
  std::string_view name;  // of the instruction set
  int columns;            // of a tile; at most kMostTileColumns
  double rate;            // least multiply-adds per second of one core in tiles
  // Computes a tile of 8 rows: c = a * b, or c += a * b. `a` has `depth` times 8 numbers, `b` has
  // `depth` times `columns` numbers; row r of c begins at c + r * stride.
  void (*tile)(int64_t depth, const float* a, const float* b, float* c, int64_t stride, bool add);
  // Computes out[i] = sum over t of rows[t][i] * weights[t], for 0 <= i < n.
  void (*weigh)(float* out, const float* const* rows, const float* weights, int64_t taps,
                int64_t n);
  // Computes out[i] = the largest of rows[t][i], for 0 <= i < n.
  void (*largest)(float* out, const float* const* rows, int64_t taps, int64_t n);
  // Returns the sum of a[i] * b[i].
  float (*dot)(const float* a, const float* b, int64_t n);
  // Return nullptr, or empty loops, where this instruction set has none; PostOp's functions have
  // plain versions in scalar_functions.h.
  UnaryLoop (*unary)(std::string_view function);
  BinaryLoops (*binary)(std::string_view function);
};

// Returns the best kernels that this processor can run.
const Kernels& kernels();
// Returns kernels by name ("plain", "avx2", "avx512"); nullptr where this processor cannot run
// them. For tests.
const Kernels* find_kernels(std::string_view name);

}  // namespace clinfer::host
