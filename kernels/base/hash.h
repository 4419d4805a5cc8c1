// FNV-1a 64, the hash of names in caches and tuning files.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace clinfer {

inline uint64_t fnv1a(std::string_view text, uint64_t seed = 14695981039346656037ull) {
  uint64_t hash = seed;
  for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

// 16 digits.
inline std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace clinfer
