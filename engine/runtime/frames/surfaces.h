// Pictures in VA-API surfaces.
#pragma once

#include "engine/engine.h"
#include "engine/ocl/va_sharing.h"

namespace clinfer {

// Returns the surface behind the public type. Throws Error{bad_argument} for a surface of another
// context.
ocl::Surface& own_surface(const ocl::Context& context, ImportedSurface& surface);

// Calls `use` with the surface acquired, if it is one of VA-API. Throws cl::Error.
void with_acquired(const ocl::Context& context, const cl::CommandQueue& queue,
                   ocl::Surface& surface, const ocl::AcquireRelease::Use& use);

// Throws Error{bad_argument} if the picture is larger than the surface.
void check_fits(const ocl::Surface& surface, const Frame& picture);

}  // namespace clinfer
