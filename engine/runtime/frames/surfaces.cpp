// Checks of surfaces and of the pictures that lie in them.
#include "engine/runtime/frames/surfaces.h"

namespace clinfer {

ocl::Surface& own_surface(const ocl::Context& context, ImportedSurface& surface) {
  auto* own = dynamic_cast<ocl::Surface*>(&surface);
  if (own == nullptr || own->context()() != context.context())
    throw Error(
        ErrorCode::bad_argument,
        "a surface was imported by another model: its images are of another OpenCL context");
  return *own;
}

void with_acquired(const ocl::Context& context, const cl::CommandQueue& queue,
                   ocl::Surface& surface, const ocl::AcquireRelease::Use& use) {
  if (surface.of_application())
    surface.with_own(queue, use);
  else
    context.va->with_acquired(queue, surface, use);
}

void check_fits(const ocl::Surface& surface, const Frame& picture) {
  if (surface.width() < picture.width || surface.height() < picture.height)
    throw Error(ErrorCode::bad_argument,
                "a picture of " + std::to_string(picture.width) + "x" +
                    std::to_string(picture.height) + " in a surface whose planes hold " +
                    std::to_string(surface.width()) + "x" + std::to_string(surface.height()));
}

}  // namespace clinfer
