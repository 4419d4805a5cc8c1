// Checks pointers of applications and passes them to kernels.
#include "engine/ocl/device_pointer.h"

#include <CL/cl_ext.h>

#include "engine/ocl/acquire_release.h"

namespace clinfer::ocl {

struct DevicePointer::UsmFunctions {
  clGetMemAllocInfoINTEL_fn info = nullptr;
  clSetKernelArgMemPointerINTEL_fn set_argument = nullptr;
  clEnqueueMemcpyINTEL_fn copy = nullptr;

  template <typename T>
  T get(const cl::Context& context, const void* pointer, cl_mem_info_intel of) const {
    T value{};
    const cl_int status = info(context(), pointer, of, sizeof value, &value, nullptr);
    if (status != CL_SUCCESS) throw cl::Error(status, "clGetMemAllocInfoINTEL");
    return value;
  }
};

namespace {

bool has_svm(const cl::Device& device) {
  try {
    return device.getInfo<CL_DEVICE_SVM_CAPABILITIES>() != 0;
  } catch (const cl::Error&) {
    return false;  // before OpenCL 2.0
  }
}

void check(cl_int status, const char* function) {
  if (status != CL_SUCCESS) throw cl::Error(status, function);
}

}  // namespace

DevicePointer::DevicePointer(const Context& context, Kind kind, void* data, size_t bytes,
                             std::string what)
    : context_(context.context),
      device_(context.device.device),
      device_name_(context.device.info.name),
      data_(static_cast<std::byte*>(data)),
      bytes_(bytes),
      what_(std::move(what)) {
  if (data == nullptr) throw Error(ErrorCode::bad_argument, what_ + " is null");
  if (kind == Kind::svm) {
    if (!has_svm(device_))
      throw Error(ErrorCode::unsupported,
                  what_ + ": " + device_name_ + " has no shared virtual memory");
    return;
  }
  const auto functions = std::make_shared<UsmFunctions>();
  if (has_extension(device_.getInfo<CL_DEVICE_EXTENSIONS>(), "cl_intel_unified_shared_memory")) {
    const cl::Platform& platform = context.device.platform;
    functions->info =
        extension_function<clGetMemAllocInfoINTEL_fn>(platform, "clGetMemAllocInfoINTEL");
    functions->set_argument = extension_function<clSetKernelArgMemPointerINTEL_fn>(
        platform, "clSetKernelArgMemPointerINTEL");
    functions->copy = extension_function<clEnqueueMemcpyINTEL_fn>(platform, "clEnqueueMemcpyINTEL");
  }
  if (functions->info == nullptr || functions->set_argument == nullptr ||
      functions->copy == nullptr)
    throw Error(ErrorCode::unsupported, what_ + ": " + device_name_ +
                                            " has no unified shared memory "
                                            "(cl_intel_unified_shared_memory)");
  usm_ = functions;
  check();
}

void DevicePointer::check() const {
  if (usm_ == nullptr) return;
  const auto kind =
      usm_->get<cl_unified_shared_memory_type_intel>(context_, data_, CL_MEM_ALLOC_TYPE_INTEL);
  if (kind == CL_MEM_TYPE_UNKNOWN_INTEL)
    throw Error(ErrorCode::bad_argument,
                what_ +
                    " is no unified shared memory of the model's OpenCL context: it is of another "
                    "context, was freed, or was allocated in another way");
  const auto* const base =
      static_cast<const std::byte*>(usm_->get<void*>(context_, data_, CL_MEM_ALLOC_BASE_PTR_INTEL));
  const auto all = usm_->get<size_t>(context_, data_, CL_MEM_ALLOC_SIZE_INTEL);
  const auto before = static_cast<size_t>(data_ - base);
  if (before > all || bytes_ > all - before)
    throw Error(ErrorCode::bad_argument, what_ + ": the allocation has " +
                                             std::to_string(all - std::min(before, all)) +
                                             " bytes from there on, not " + std::to_string(bytes_));
  const auto of = usm_->get<cl_device_id>(context_, data_, CL_MEM_ALLOC_DEVICE_INTEL);
  if (kind == CL_MEM_TYPE_DEVICE_INTEL && of != nullptr && of != device_())
    throw Error(ErrorCode::bad_argument, what_ + " is memory of another device of the context");
}

void DevicePointer::set_argument(cl::Kernel& kernel, cl_uint number) const {
  if (usm_ != nullptr)
    ocl::check(usm_->set_argument(kernel(), number, data_), "clSetKernelArgMemPointerINTEL");
  else
    ocl::check(clSetKernelArgSVMPointer(kernel(), number, data_), "clSetKernelArgSVMPointer");
}

void DevicePointer::write(const cl::CommandQueue& queue, const void* from, size_t bytes) const {
  if (usm_ != nullptr)
    ocl::check(usm_->copy(queue(), CL_TRUE, data_, from, bytes, 0, nullptr, nullptr),
               "clEnqueueMemcpyINTEL");
  else
    ocl::check(clEnqueueSVMMemcpy(queue(), CL_TRUE, data_, from, bytes, 0, nullptr, nullptr),
               "clEnqueueSVMMemcpy");
}

}  // namespace clinfer::ocl
