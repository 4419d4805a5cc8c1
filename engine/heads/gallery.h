// Known vectors by name: who or what an embedding is nearest to.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace clinfer {

// Immutable once read; safe to use from any thread.
class Gallery {
 public:
  struct Nearest {
    size_t number = 0;  // of the name, in the order of the file
    std::string name;
    float cosine = 0;  // -1..1
  };

  // A file {"name": [[numbers], ...], ...}; a name may also have one vector alone. Throws
  // Error{not_found, bad_argument} with the path.
  explicit Gallery(const std::string& path);

  // The name that one of its vectors is nearest to, by the cosine; nullopt where no vector has so
  // many numbers, or the one given is zero.
  std::optional<Nearest> nearest(const std::vector<float>& values) const;
  // Returns whether any vector has so many numbers.
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
