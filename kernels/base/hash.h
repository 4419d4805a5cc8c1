// Hashes: FNV-1a 64 of names in caches and tuning files, and a faster one of contents.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace clinfer {

inline uint64_t fnv1a(std::string_view text, uint64_t seed = 14695981039346656037ull) {
  uint64_t hash = seed;
  for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

// Eight bytes at a time: models have hundreds of megabytes.
inline uint64_t hash_of(std::string_view bytes, uint64_t seed = 0) {
  uint64_t hash = seed ^ bytes.size();
  for (size_t at = 0; at < bytes.size(); at += sizeof hash) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

// 16 digits.
inline std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace clinfer
