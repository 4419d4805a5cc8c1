// Opens CUDA's driver library.
#include "engine/cuda/driver.h"

#include <dlfcn.h>

namespace clinfer::cuda {

namespace {

constexpr const char* kLibrary = "libcuda.so.1";

void* open_library() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Failure(ErrorCode::unsupported,
                  std::string(kLibrary) + " cannot be opened: " + dlerror());
  return library;
}

}  // namespace

std::string name_of(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  if (driver.cuGetErrorName.result_of(result, &name) != CUDA_SUCCESS || name == nullptr)
    return "CUDA error " + std::to_string(result);
  return name;
}

void fail(const Driver& driver, const char* function, CUresult result) {
  throw Failure(
      result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::device_failed,
      std::string(function) + " gave " + name_of(driver, result));
}

void* find_if_there(void* library, const char* function) { return dlsym(library, function); }

void* find(void* library, const char* function) {
  void* const address = find_if_there(library, function);
  if (address == nullptr)
    throw Failure(ErrorCode::unsupported,
                  std::string(kLibrary) + " has no " + function + ": the driver is too old");
  return address;
}

Driver::Driver() : library_(open_library()) { cuInit(0); }

const Driver& Driver::get() {
  // If the constructor throws, the next call tries again.
  static const Driver* const driver = new Driver;  // never destroyed: drivers outlive static
                                                   // objects
  return *driver;
}

}  // namespace clinfer::cuda
