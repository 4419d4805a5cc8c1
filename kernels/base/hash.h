// Hash functions: FNV-1a 64 for names in caches and tuning files, and a faster one for contents.
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

// Hashes four words of eight bytes at a time, so that a core waits for memory and not for
// multiplications: models have hundreds of megabytes.
inline uint64_t hash_of(std::string_view bytes, uint64_t seed = 0) {
  const auto mix = [](uint64_t& hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  };
  constexpr size_t kLanes = 4, kBlock = kLanes * sizeof(uint64_t);
  uint64_t lanes[kLanes] = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + kBlock <= bytes.size(); at += kBlock) {
    uint64_t words[kLanes];
    std::memcpy(words, bytes.data() + at, kBlock);
    for (size_t i = 0; i < kLanes; ++i) mix(lanes[i], words[i]);
  }
  uint64_t hash = seed ^ bytes.size();
  for (const uint64_t lane : lanes) mix(hash, lane);
  for (; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    mix(hash, word);
  }
  return hash;
}

// Returns 16 hexadecimal digits.
inline std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace clinfer
