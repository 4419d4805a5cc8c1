// Determines the signs of values from how they are computed, whatever a network's inputs are.
#pragma once

#include "engine/graph/graph.h"

namespace clinfer {

// Returns whether no value can be negative, as for indices that an operation found and that were
// moved or divided since. Returns false if that is not known.
bool never_negative(const Edge& e);
// Returns whether a condition is false everywhere, since it would hold only for negative values
// that cannot occur.
bool never_true(const Edge& e);

}  // namespace clinfer
