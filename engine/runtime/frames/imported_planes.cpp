// Checks of imported memory and of the planes that lie in it.
#include "engine/runtime/frames/imported_planes.h"

#include <algorithm>
#include <limits>
#include <set>

namespace clinfer {

namespace {

ocl::ExternalMemory& own_memory(const ocl::Context& context, ImportedMemory& memory) {
  auto* own = dynamic_cast<ocl::ExternalMemory*>(&memory);
  if (own == nullptr || own->context()() != context.context())
    throw Error(ErrorCode::bad_argument,
                "memory was imported by another model: its buffer is of another OpenCL context");
  return *own;
}

}  // namespace

std::vector<ocl::ExternalMemory*> OwnPlanes::distinct() const {
  std::set<ocl::ExternalMemory*> once(memories.begin(), memories.end());
  once.erase(nullptr);
  return {once.begin(), once.end()};
}

OwnPlanes own_planes(const ocl::Context& context, const Frame& picture,
                     const ImportedPlanes& planes) {
  const auto sizes = plane_sizes(picture);
  OwnPlanes own;
  for (size_t p = 0; p < sizes.size(); ++p) {
    if (sizes[p].rows == 0) continue;
    if (planes.memories[p] == nullptr)
      throw Error(ErrorCode::bad_argument,
                  "plane " + std::to_string(p) + " of a frame has no memory");
    own.memories[p] = &own_memory(context, *planes.memories[p]);
    const size_t bytes = own.memories[p]->bytes(), offset = planes.offsets[p];
    const int stride = picture.strides[p];
    const auto limit = static_cast<int64_t>(
        std::min<size_t>(bytes, static_cast<size_t>(std::numeric_limits<int>::max())));
    if (stride < sizes[p].row_bytes || offset > static_cast<size_t>(limit) ||
        static_cast<int64_t>(offset) + sizes[p].bytes(stride) > limit)
      throw Error(ErrorCode::bad_argument,
                  "plane " + std::to_string(p) + " of a frame, at byte " + std::to_string(offset) +
                      " with stride " + std::to_string(stride) + ", does not fit its memory of " +
                      std::to_string(bytes) + " bytes");
    own.offsets[p] = static_cast<int>(offset);
  }
  return own;
}

}  // namespace clinfer
