// VA-API surfaces as pictures.
#pragma once

#include "engine/engine.h"
#include "engine/ocl/va_sharing.h"

namespace clinfer {

// The surface that the public type refers to. Throws Error{bad_argument} for one of another context.
ocl::Surface& own_surface(const ocl::Context& context, ImportedSurface& surface);

// A use of the surface, acquired if it is one of VA-API. Throws cl::Error.
void with_acquired(const ocl::Context& context, const cl::CommandQueue& queue,
                   ocl::Surface& surface, const ocl::AcquireRelease::Use& use);

// Throws Error{bad_argument} if the picture is larger than the surface.
void check_fits(const ocl::Surface& surface, const Frame& picture);

}  // namespace clinfer
