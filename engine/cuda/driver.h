// Opens CUDA's driver library when the process first asks for it.
#pragma once

#include <string>

#include "engine/cuda/interface/functions.h"
#include "kernels/base/error.h"

namespace clinfer::cuda {

class Driver;

// Reports that CUDA is missing, or that a call of it failed.
class Failure : public Error {
 public:
  using Error::Error;
};

// Returns the name of a result, such as "CUDA_ERROR_OUT_OF_MEMORY".
std::string name_of(const Driver& driver, CUresult result);
// Throws Failure{out_of_memory} or Failure{device_failed}; the message names the function and the
// result.
[[noreturn]] void fail(const Driver& driver, const char* function, CUresult result);
// Returns the address of a function of the library. Throws Failure{unsupported} where the library
// has no such function.
void* find(void* library, const char* function);
// Likewise; null where it has none.
void* find_if_there(void* library, const char* function);

// A function of the library, callable like the function itself. A call throws Failure unless it
// succeeds.
template <typename Signature>
class Function;
template <typename... Arguments>
class Function<CUresult(Arguments...)> {
 public:
  Function(const Driver& driver, void* library, const char* name,
           void* (*finds)(void*, const char*) = find)
      : driver_(driver), name_(name), call_(reinterpret_cast<Call>(finds(library, name))) {}
  explicit operator bool() const { return call_ != nullptr; }
  void operator()(Arguments... arguments) const {
    if (const CUresult result = call_(arguments...); result != CUDA_SUCCESS)
      fail(driver_, name_, result);
  }
  // Returns the result instead of throwing: for results that are no failures, and for destructors.
  CUresult result_of(Arguments... arguments) const { return call_(arguments...); }

 private:
  using Call = CUresult (*)(Arguments...);
  const Driver& driver_;
  const char* name_;
  Call call_;
};

// The library's functions, as members of the same names. The library is never unloaded.
class Driver {
 public:
  // Returns the process's only object. Throws Failure{unsupported} with the reason if there is no
  // library, if it lacks a function or if it does not start.
  static const Driver& get();

 private:
  void* const library_;

 public:
#define CLINFER_CUDA_FUNCTION(name) \
  const Function<decltype(::name)> name { *this, library_, #name }
  CLINFER_CUDA_FUNCTION(cuInit);
  CLINFER_CUDA_FUNCTION(cuGetErrorName);
  CLINFER_CUDA_FUNCTION(cuDeviceGetCount);
  CLINFER_CUDA_FUNCTION(cuDeviceGet);
  CLINFER_CUDA_FUNCTION(cuDeviceGetUuid_v2);
  CLINFER_CUDA_FUNCTION(cuDevicePrimaryCtxRetain);
  CLINFER_CUDA_FUNCTION(cuCtxPushCurrent_v2);
  CLINFER_CUDA_FUNCTION(cuCtxPopCurrent_v2);
  CLINFER_CUDA_FUNCTION(cuMemGetAllocationGranularity);
  CLINFER_CUDA_FUNCTION(cuMemCreate);
  CLINFER_CUDA_FUNCTION(cuMemRelease);
  CLINFER_CUDA_FUNCTION(cuMemAddressReserve);
  CLINFER_CUDA_FUNCTION(cuMemAddressFree);
  CLINFER_CUDA_FUNCTION(cuMemMap);
  CLINFER_CUDA_FUNCTION(cuMemUnmap);
  CLINFER_CUDA_FUNCTION(cuMemSetAccess);
  CLINFER_CUDA_FUNCTION(cuMemExportToShareableHandle);
  CLINFER_CUDA_FUNCTION(cuMemImportFromShareableHandle);
  CLINFER_CUDA_FUNCTION(cuMemHostAlloc);
  CLINFER_CUDA_FUNCTION(cuMemFreeHost);
  CLINFER_CUDA_FUNCTION(cuMemcpyHtoDAsync_v2);
  CLINFER_CUDA_FUNCTION(cuMemcpyDtoHAsync_v2);
  CLINFER_CUDA_FUNCTION(cuLinkCreate_v2);
  CLINFER_CUDA_FUNCTION(cuLinkAddData_v2);
  CLINFER_CUDA_FUNCTION(cuLinkComplete);
  CLINFER_CUDA_FUNCTION(cuLinkDestroy);
  CLINFER_CUDA_FUNCTION(cuModuleLoadData);
  CLINFER_CUDA_FUNCTION(cuModuleUnload);
  CLINFER_CUDA_FUNCTION(cuModuleGetFunction);
  CLINFER_CUDA_FUNCTION(cuFuncSetAttribute);
  CLINFER_CUDA_FUNCTION(cuStreamCreate);
  CLINFER_CUDA_FUNCTION(cuStreamDestroy_v2);
  CLINFER_CUDA_FUNCTION(cuStreamSynchronize);
  CLINFER_CUDA_FUNCTION(cuStreamWaitEvent);
  CLINFER_CUDA_FUNCTION(cuLaunchHostFunc);
  CLINFER_CUDA_FUNCTION(cuLaunchKernel);
  CLINFER_CUDA_FUNCTION(cuEventCreate);
  CLINFER_CUDA_FUNCTION(cuEventDestroy_v2);
  CLINFER_CUDA_FUNCTION(cuEventRecord);
  CLINFER_CUDA_FUNCTION(cuEventQuery);
  CLINFER_CUDA_FUNCTION(cuEventSynchronize);
  CLINFER_CUDA_FUNCTION(cuGraphCreate);
  CLINFER_CUDA_FUNCTION(cuGraphDestroy);
  CLINFER_CUDA_FUNCTION(cuGraphAddKernelNode_v2);
  CLINFER_CUDA_FUNCTION(cuGraphInstantiateWithFlags);
  CLINFER_CUDA_FUNCTION(cuGraphExecDestroy);
  CLINFER_CUDA_FUNCTION(cuGraphLaunch);
#undef CLINFER_CUDA_FUNCTION
  // Not in drivers before CUDA 12.3.
  const Function<decltype(::cuGraphAddDependencies_v2)> cuGraphAddDependencies_v2{
      *this, library_, "cuGraphAddDependencies_v2", find_if_there};

 private:
  Driver();
};

}  // namespace clinfer::cuda
