// Applies one function to the elements of up to N strided operands, including the tail. The
// prologue defines the parts that differ between functions:
//   OPERANDS              parameters of the kernel
//   FN(single), FN(wide)  the function of one element and of V elements
//   SINGLE(i), WIDE(i)    these functions applied to the elements at position i of the innermost
//                         loop
// Defines:
//   V             elements of a vector
//   DIMS, N       number of loops, innermost first; number of operands
//   OUT_T         type of the output
//   STORE_ONE     stores an element
//   LOAD, SAVE    read and write vectors, aligned or not
//   GROUP         size of the work-group

typedef struct {
#include "kernels/elementwise/elementwise_args.cl"
} FN(Args);

WORK_GROUP(GROUP, 1, 1)
KERNEL(OUT(OUT_T, out), const FN(Args) walk OPERANDS) {
  const int runs = (walk.size[0] + walk.run - 1) / walk.run;
  const int blocks = (walk.size[1] + walk.rows - 1) / walk.rows;
  int rest = (int)get_global_id(0);
  const int begin = rest % runs * walk.run, end = min(begin + walk.run, walk.size[0]);
  rest /= runs;
  const int first = rest % blocks * walk.rows, last = min(first + walk.rows, walk.size[1]);
  rest /= blocks;
  int to = first * walk.out[1], from[N];
  for (int k = 0; k < N; ++k) from[k] = first * walk.in[k][1];
#pragma unroll
  for (int d = 2; d < DIMS; ++d) {
    const int i = rest % walk.size[d];
    rest /= walk.size[d];
    to += i * walk.out[d];
    for (int k = 0; k < N; ++k) from[k] += i * walk.in[k][d];
  }
  if (rest > 0) return;  // past the last run of elements

  for (int row = first; row < last; ++row) {
    __global OUT_T* target = AT(out) + to;
    int i = begin;
#if V > 1
    for (; i + V <= end; i += V) SAVE(OUT_T, V, WIDE(i), target + i);
#endif
    for (; i < end; ++i) STORE_ONE(SINGLE(i), target + i * walk.out[0]);
    to += walk.out[1];
    for (int k = 0; k < N; ++k) from[k] += walk.in[k][1];
  }
}
