// VA-API surfaces as pictures.
#pragma once

#include "engine/engine.h"
#include "engine/ocl/va_sharing.h"

namespace clinfer {

// The surface that the public type refers to. Throws Error{bad_argument} for one of another context.
ocl::Surface& own_surface(const ocl::Context& context, ImportedSurface& surface);

// Throws Error{bad_argument} if the picture is larger than the surface.
void check_fits(const ocl::Surface& surface, const Frame& picture);

}  // namespace clinfer
