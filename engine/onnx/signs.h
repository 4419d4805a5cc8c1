// Signs of values that follow from how they are computed, whatever a network's inputs are.
#pragma once

#include "engine/graph/graph.h"

namespace clinfer {

// Returns whether no value can be below 0: indices that an operation found, moved about or divided
// since. False where that is not known.
bool never_negative(const Edge& e);
// Returns whether a condition can be true nowhere, since such values would have to be below 0.
bool never_true(const Edge& e);

}  // namespace clinfer
