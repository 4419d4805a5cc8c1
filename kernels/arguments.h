// Values for the structs of ints and floats that kernels take. A kernel's members are listed once,
// in <kernel>_args.cl, which OpenCL C and C++ include into a struct: a name that only one of them
// knows does not compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "kernels/shape_util.h"

namespace clinfer {

// Throws Error{unsupported} for a value that an int cannot hold.
inline int to_int(int64_t value) {
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    fail_unsupported("a tensor lies beyond what a kernel can address");
  return static_cast<int>(value);
}

// Sets each element of an array to the element of `from`, which has the same length, or to a member
// of it.
template <size_t N, typename Range, typename Member = std::identity>
void set_each(int (&to)[N], const Range& from, Member member = {}) {
  if (std::size(from) != N) throw std::logic_error("a kernel's argument has another length");
  size_t i = 0;
  for (const auto& value : from) to[i++] = to_int(std::invoke(member, value));
}

// Calls f(std::integral_constant<size_t, N>()) with the N of `Counts` that equals `count`: for
// structs whose arrays have a length that the kernel's defines state.
template <size_t... Counts, typename F>
auto with_count(size_t count, F&& f) {
  using Result = std::common_type_t<decltype(f(std::integral_constant<size_t, Counts>()))...>;
  Result result{};
  const bool found =
      ((count == Counts && (result = f(std::integral_constant<size_t, Counts>()), true)) || ...);
  if (!found) throw std::logic_error("a kernel's argument has another length");
  return result;
}

}  // namespace clinfer
