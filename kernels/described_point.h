// A family's tuning point as a struct, whose parameters are named once.
#pragma once

#include <array>
#include <string>

#include "kernels/kernel.h"

namespace clinfer {

// A member of `Point` that is a tuning parameter. `Point::parameters()` lists all of them, in their
// order in tuning files; other members follow from these or from the layer.
template <typename Point, typename Value = int>
struct Parameter {
  const char* name;
  Value Point::*member;
};

template <typename Point>
TuningPoint to_tuning(const Point& point) {
  TuningPoint tuning;
  for (const auto& [name, member] : Point::parameters())
    tuning.values.emplace_back(name, static_cast<int>(point.*member));
  return tuning;
}

// Makes the point from a tuning record's parameters. Throws std::out_of_range if one is missing.
template <typename Point>
Point from_tuning(const TuningPoint& tuning) {
  Point point{};
  for (const auto& [name, member] : Point::parameters()) point.*member = tuning[name];
  return point;
}

// Passes each parameter to the kernel as a macro.
template <typename Point>
void add_defines(KernelSpec& spec, const Point& point) {
  for (const auto& [name, member] : Point::parameters())
    spec.defines.emplace_back(name, std::to_string(point.*member));
}

}  // namespace clinfer
