// Known vectors by name, for finding who or what an embedding is closest to.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace clinfer {

// Immutable and thread-safe once read.
class Gallery {
 public:
  struct Nearest {
    size_t number = 0;  // index of the name, in the order of the file
    std::string name;
    float cosine = 0;  // -1..1
  };

  // Reads a file {"name": [[numbers], ...], ...}; a name may also have a single vector. Throws
  // Error{not_found, bad_argument} with the path.
  explicit Gallery(const std::string& path);

  // Returns the name with the closest vector, by the cosine; nullopt if no vector has the same
  // length, or the given one is zero.
  std::optional<Nearest> nearest(const std::vector<float>& values) const;
  // Returns whether any vector has this length.
  bool has_vectors_of(size_t numbers) const;

 private:
  struct Entry {
    size_t name;
    std::vector<float> direction;  // of length 1
  };
  std::vector<std::string> names_;
  std::vector<Entry> entries_;
};

}  // namespace clinfer
