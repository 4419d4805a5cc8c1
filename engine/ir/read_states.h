// The operations ReadValue and Assign of an OpenVINO IR, by which a model keeps values from one
// inference to the next.
#pragma once

#include "engine/graph/graph.h"

namespace clinfer {

// Returns the definition of such an operation, which only says its output's type and shape, for the
// time until make_states(); nullptr for other types.
const OpDef* state_op(const std::string& type, int opset);

// Replaces these operations by states (engine/graph/states.h). Shapes must be known. Throws
// Error{bad_model, unsupported}.
void make_states(Graph& graph);

}  // namespace clinfer
