// The inner loops of the host's operations, each for several instruction sets. The best one that
// this processor has is chosen when the program runs.
#pragma once

#include <cstdint>
#include <string_view>

namespace clinfer::host {

// Rows of a tile of a matrix product.
inline constexpr int kTileRows = 8;
// A tile has at most so many columns, whatever the instruction set.
inline constexpr int kMostTileColumns = 32;

// x[i] = f(x[i]; alpha, beta) for 0 <= i < n.
using UnaryLoop = void (*)(float* x, int64_t n, float alpha, float beta);
// x[i] = g(x[i], y[i]); the other loop has one y for all.
using BinaryLoop = void (*)(float* x, const float* y, int64_t n);
using ScalarLoop = void (*)(float* x, float y, int64_t n);

struct BinaryLoops {
  BinaryLoop each = nullptr;
  ScalarLoop one = nullptr;
};

struct Kernels {
  std::string_view name;  // of the instruction set
  int columns;            // of a tile; at most kMostTileColumns
  double rate;            // multiply-adds a second that a core reaches in tiles, at the least
  // A tile of 8 rows: c = a * b, or c += a * b. `a` has `depth` times 8 numbers, `b` has `depth`
  // times `columns` of them; row r of c begins at c + r * stride.
  void (*tile)(int64_t depth, const float* a, const float* b, float* c, int64_t stride, bool add);
  // out[i] = sum over t of rows[t][i] * weights[t], for 0 <= i < n.
  void (*weigh)(float* out, const float* const* rows, const float* weights, int64_t taps,
                int64_t n);
  // out[i] = the largest of rows[t][i].
  void (*largest)(float* out, const float* const* rows, int64_t taps, int64_t n);
  // Sum of a[i] * b[i].
  float (*dot)(const float* a, const float* b, int64_t n);
  // nullptr, or empty, where there is none: PostOp's functions have a plain version anyway
  // (scalar_functions.h).
  UnaryLoop (*unary)(std::string_view function);
  BinaryLoops (*binary)(std::string_view function);
};

// The best of this processor.
const Kernels& kernels();
// Finds kernels by name ("plain", "avx2", "avx512"); nullptr where this processor cannot run them.
// For tests.
const Kernels* find_kernels(std::string_view name);

}  // namespace clinfer::host
