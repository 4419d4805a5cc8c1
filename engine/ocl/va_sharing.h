// Shares surfaces of a VA-API display as OpenCL images, without a copy, by
// cl_intel_va_api_media_sharing. The extension's few constants and prototypes are declared here, so
// that the engine needs no VA headers: a VADisplay is a void*, a VASurfaceID an unsigned int.
#pragma once

#include <CL/opencl.hpp>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/ocl/acquire_release.h"
#include "engine/ocl/device.h"

namespace clinfer::ocl {

// Both planes of an NV12 surface as images of one context: a VA surface, or images of the
// application. Thread-safe.
class Surface final : public ImportedSurface {
 public:
  Surface(cl::Context context, unsigned id) : context_(std::move(context)), id_(id) {}
  Surface(cl::Context context, const cl::Image2D& y, const cl::Image2D& uv)
      : context_(std::move(context)), id_(0), of_application_(true), planes_{y, uv} {}
  int width() const override;
  int height() const override;
  void wait() override { uses_.wait(); }
  const cl::Context& context() const { return context_; }
  const cl::Image2D& plane(size_t index) const { return planes_[index]; }
  bool of_application() const { return of_application_; }
  // Uses images of the application, which need not be acquired.
  void with_own(const cl::CommandQueue& queue, const AcquireRelease::Use& use) {
    uses_.with_acquired({}, queue, {}, use);
  }
  // Releases the images even if this object is still referenced. Call it when no command uses them.
  void drop();

 private:
  friend class VaSharing;
  cl::Context context_;
  unsigned id_;  // drivers keep a pointer to it, so it must live as long as the images
  bool of_application_ = false;
  std::array<cl::Image2D, 2> planes_;
  AcquireRelease uses_;
};

// The extension's functions on one platform. Thread-safe.
class VaSharing {
 public:
  // Throws Error{unsupported} if the platform lacks a function.
  explicit VaSharing(const cl::Platform& platform);

  // Throws Error{device_failed}, which tells which plane could not be made.
  std::shared_ptr<Surface> import(const cl::Context& context, unsigned id) const;

  void with_acquired(const cl::CommandQueue& queue, Surface& surface,
                     const AcquireRelease::Use& use) const;

 private:
  using Create = cl_mem(CL_API_CALL*)(cl_context, cl_mem_flags, unsigned*, cl_uint, cl_int*);
  Create create_ = nullptr;
  AcquireReleaseFunctions functions_;
};

// The device for a model, and the VA display whose surfaces it shares.
struct DisplayMatch {
  const Device* device = nullptr;
  void* display = nullptr;  // null: none
  std::string problem;      // why there is none although one was wanted
};

// Returns the device that `device` names and to which surfaces of `display` belong; plain "GPU" is
// the display's own device. Throws Error{no_device} if `device` names another device than the
// display's.
DisplayMatch match_display(const std::string& device, const VaDisplay& display);

// Returns the sharing for which a context was made; null if there is none, or by an unknown
// extension.
std::shared_ptr<const VaSharing> sharing_of(const cl::Platform& platform,
                                            const cl::Context& context);

// Makes a context on the match's display. If that fails (Context::sharing_problem) or there is no
// display, returns the context that all such models of the device share.
std::shared_ptr<const Context> create_context(const DisplayMatch& match);

}  // namespace clinfer::ocl
