// Planes in imported memory as pictures.
#pragma once

#include <array>
#include <vector>

#include "engine/engine.h"
#include "engine/ocl/device.h"
#include "engine/ocl/external_memory.h"

namespace clinfer {

// The memory of each plane of a picture; null for planes that its format lacks.
using PlaneMemories = std::array<ocl::ExternalMemory*, 3>;

// The planes of a picture, as kernels take them.
struct OwnPlanes {
  PlaneMemories memories{};
  std::array<int, 3> offsets{};

  // Each memory once, in the order of their addresses.
  std::vector<ocl::ExternalMemory*> distinct() const;
};

// Throws Error{bad_argument} for planes without memory, in memory of another context, or beyond the
// end of theirs.
OwnPlanes own_planes(const ocl::Context& context, const Frame& picture,
                     const ImportedPlanes& planes);

}  // namespace clinfer
