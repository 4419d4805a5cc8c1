// Parses lengths and lists as users write them in properties.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace clinfer {

// A length in pixels, or as a share of the visible picture's width or height.
struct Extent {
  double value = 0;
  bool is_share = false;
  double pixels(int of) const { return is_share ? value * of : value; }
};

// Parses a length: whole numbers are pixels, numbers with a point are shares from 0 to 1. Returns
// nothing for other texts.
std::optional<Extent> extent_in(const std::string& text);

// Parses a finite number, written with a point in every locale.
std::optional<double> number_in(const std::string& text);

// Returns the parts between separators, without blanks around them; at least one part.
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace clinfer
