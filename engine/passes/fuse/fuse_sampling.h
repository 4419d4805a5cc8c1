// A part of fuse_attention: deformable attention, which reads values between the pixels of maps.
#pragma once

#include "engine/passes/passes.h"

namespace clinfer {

// Replaces weighted sums of samples of one or several maps by DeformableAttention.
void fuse_sampling(Graph& graph, const PassContext& context);

}  // namespace clinfer
