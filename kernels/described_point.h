// A family's tuning point as a struct whose parameters are named once.
#pragma once

#include <array>
#include <string>

#include "kernels/kernel.h"

namespace clinfer {

// A member that is a parameter of the points. `Point::parameters()` lists all, in the order in which they
// are in tuning files; other members follow from them or from the layer.
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

// The point with these parameters. Throws std::out_of_range where one is missing.
template <typename Point>
Point from_tuning(const TuningPoint& tuning) {
  Point point{};
  for (const auto& [name, member] : Point::parameters()) point.*member = tuning[name];
  return point;
}

// Gives the kernel each parameter as a macro.
template <typename Point>
void add_defines(KernelSpec& spec, const Point& point) {
  for (const auto& [name, member] : Point::parameters())
    spec.defines.emplace_back(name, std::to_string(point.*member));
}

}  // namespace clinfer
