// Pictures whose planes lie in imported memory.
#pragma once

#include <array>
#include <vector>

#include "engine/engine.h"
#include "engine/ocl/device.h"
#include "engine/ocl/external_memory.h"

namespace clinfer {

// The memory of each plane of a picture; null for planes that its format lacks.
using PlaneMemories = std::array<ocl::ExternalMemory*, 3>;

// The planes of a picture in the form that kernels take.
struct OwnPlanes {
  PlaneMemories memories{};
  std::array<int, 3> offsets{};

  // Returns each memory object once, by ascending address.
  std::vector<ocl::ExternalMemory*> distinct() const;
};

// Throws Error{bad_argument} for planes without memory, in memory of another context, or that
// exceed their memory.
OwnPlanes own_planes(const ocl::Context& context, const Frame& picture,
                     const ImportedPlanes& planes);

}  // namespace clinfer
