// The demand of every fuzz target on errors.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "kernels/base/error.h"

namespace clinfer {

// Ends the process if the error is not one printable line.
inline void must_be_one_line(const Error& error) {
  const std::string_view what = error.what();
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  if (!what.empty() && std::none_of(what.begin(), what.end(), control)) return;
  std::fprintf(stderr, "not one printable line: %s\n", error.what());
  std::abort();
}

}  // namespace clinfer
