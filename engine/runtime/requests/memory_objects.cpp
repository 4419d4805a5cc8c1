// Checks memory of applications.
#include "engine/runtime/requests/memory_objects.h"

#include <cstdint>

namespace clinfer {

void check_memory_object(const ocl::Context& context, const cl::Memory& memory,
                         cl_mem_object_type type, const std::string& what) {
  if (memory() == nullptr) throw Error(ErrorCode::bad_argument, what + " is null");
  if (memory.getInfo<CL_MEM_TYPE>() != type)
    throw Error(
        ErrorCode::bad_argument,
        what + (type == CL_MEM_OBJECT_BUFFER ? " is no buffer" : " is no two-dimensional image"));
  if (memory.getInfo<CL_MEM_CONTEXT>()() != context.context())
    throw Error(
        ErrorCode::bad_argument,
        what + " is of another OpenCL context than the model; compile the model in that one");
}

void check_range(const cl::Buffer& buffer, size_t offset, const TensorDesc& desc,
                 const std::string& what) {
  const auto bytes = static_cast<size_t>(desc.elements()) * size_of(desc.type);
  const size_t all = buffer.getInfo<CL_MEM_SIZE>();
  if (offset % size_of(desc.type) != 0)
    throw Error(ErrorCode::bad_argument, what + ": offset " + std::to_string(offset) +
                                             " is no multiple of an element's " +
                                             std::to_string(size_of(desc.type)) + " bytes");
  if (offset > all || bytes > all - offset)
    throw Error(ErrorCode::bad_argument,
                what + ": " + to_string(desc.shape) + " of " + std::string(name_of(desc.type)) +
                    " needs " + std::to_string(bytes) + " bytes from " + std::to_string(offset) +
                    " on, the buffer has " + std::to_string(all));
}

size_t check_range(const void* data, size_t bytes, const TensorDesc& desc,
                   const std::string& what) {
  const auto needed = static_cast<size_t>(desc.elements()) * size_of(desc.type);
  if (data == nullptr) throw Error(ErrorCode::bad_argument, what + " is null");
  if (reinterpret_cast<uintptr_t>(data) % size_of(desc.type) != 0)
    throw Error(ErrorCode::bad_argument, what + ": its address is no multiple of an element's " +
                                             std::to_string(size_of(desc.type)) + " bytes");
  if (bytes < needed)
    throw Error(ErrorCode::bad_argument, what + ": " + to_string(desc.shape) + " of " +
                                             std::string(name_of(desc.type)) + " needs " +
                                             std::to_string(needed) + " bytes, there are " +
                                             std::to_string(bytes));
  return needed;
}

// Returns a buffer over SVM.
static cl::Buffer svm_buffer(const ocl::Context& context, void* data, size_t bytes,
                             const std::string& what) {
  try {
    cl::Buffer buffer(context.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, data);
    if (buffer.getInfo<CL_MEM_USES_SVM_POINTER>()) return buffer;
  } catch (const cl::Error& error) {
    if (error.err() != CL_INVALID_BUFFER_SIZE) throw;
  }
  throw Error(ErrorCode::bad_argument,
              what +
                  " is no shared virtual memory of the model's OpenCL context: it is of another "
                  "context, was freed, is smaller, or was allocated in another way");
}

BoundBuffer pointed_memory(const ocl::Context& context, ocl::DevicePointer::Kind kind, void* data,
                           size_t bytes, const std::string& what) {
  auto pointer = std::make_shared<ocl::DevicePointer>(context, kind, data, bytes, what);
  BoundBuffer memory;
  // NVIDIA's driver (580.159) refuses all launches of a kernel whose argument was an SVM pointer
  // and is a buffer again, though clSetKernelArg() succeeds. Other drivers take the pointer: PoCL makes
  // no buffer that begins inside an allocation, and clGetMemObjectInfo() of Intel's runtime for CPUs
  // refuses buffers over SVM.
  if (kind == ocl::DevicePointer::Kind::svm && context.traits.vendor == Vendor::nvidia)
    memory.buffer = svm_buffer(context, data, bytes, what);
  else
    memory.pointer = std::move(pointer);
  return memory;
}

size_t components_of(cl_channel_order order) {
  switch (order) {
    case CL_R:
      return 1;
    case CL_RG:
      return 2;
    case CL_RGBA:
    case CL_BGRA:
      return 4;
    default:
      return 0;
  }
}

bool image_holds(cl_channel_type channel, ElementType type) {
  switch (type) {
    case ElementType::f32:
      return channel == CL_FLOAT;
    case ElementType::f16:
      return channel == CL_HALF_FLOAT;
    case ElementType::u8:
      return channel == CL_UNSIGNED_INT8 || channel == CL_UNORM_INT8;
    case ElementType::i8:
      return channel == CL_SIGNED_INT8 || channel == CL_SNORM_INT8;
    case ElementType::i32:
      return channel == CL_SIGNED_INT32;
    case ElementType::u32:
      return channel == CL_UNSIGNED_INT32;
    default:
      return false;
  }
}

}  // namespace clinfer
