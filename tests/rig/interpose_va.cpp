// Replaces the calls of libva by the element, as tests/faults/interpose.cpp does those of the system. Calls
// that release something do so even when they report a failure, as callers do not try twice.
#include <dlfcn.h>
#include <va/va.h>

#include "tests/faults/points.h"

namespace {

template <typename Function>
Function* next_function(Function*, const char* name) {
  void* found = dlvsym(RTLD_NEXT, name, "VA_API_0.33.0");  // where there is an older one
  return reinterpret_cast<Function*>(found != nullptr ? found : dlsym(RTLD_NEXT, name));
}

bool strikes(const void* caller) {
  return !fault_in_driver() && fault_of_project(caller) && fault_strikes(kVa);
}

}  // namespace

#define FAULTS_FAIL(name, parameters, arguments)                                   \
  VAStatus name parameters {                                                       \
    static const auto next = next_function(&name, #name);                          \
    return strikes(__builtin_return_address(0)) ? VA_STATUS_ERROR_OPERATION_FAILED \
                                                : next arguments;                  \
  }
#define FAULTS_DO_AND_FAIL(name, parameters, arguments)       \
  VAStatus name parameters {                                  \
    static const auto next = next_function(&name, #name);     \
    const bool fails = strikes(__builtin_return_address(0));  \
    const VAStatus status = next arguments;                   \
    return fails ? VA_STATUS_ERROR_OPERATION_FAILED : status; \
  }

extern "C" {

FAULTS_FAIL(vaCreateSurfaces,
            (VADisplay display, unsigned format, unsigned width, unsigned height,
             VASurfaceID* surfaces, unsigned count, VASurfaceAttrib* attributes,
             unsigned attribute_count),
            (display, format, width, height, surfaces, count, attributes, attribute_count))
FAULTS_FAIL(vaExportSurfaceHandle,
            (VADisplay display, VASurfaceID surface, uint32_t type, uint32_t flags, void* out),
            (display, surface, type, flags, out))
FAULTS_FAIL(vaSyncSurface, (VADisplay display, VASurfaceID surface), (display, surface))
FAULTS_FAIL(vaCreateImage,
            (VADisplay display, VAImageFormat* format, int width, int height, VAImage* image),
            (display, format, width, height, image))
FAULTS_FAIL(vaMapBuffer, (VADisplay display, VABufferID buffer, void** data),
            (display, buffer, data))
FAULTS_FAIL(vaPutImage,
            (VADisplay display, VASurfaceID surface, VAImageID image, int from_x, int from_y,
             unsigned from_width, unsigned from_height, int x, int y, unsigned width,
             unsigned height),
            (display, surface, image, from_x, from_y, from_width, from_height, x, y, width, height))
FAULTS_DO_AND_FAIL(vaDestroySurfaces, (VADisplay display, VASurfaceID* surfaces, int count),
                   (display, surfaces, count))
FAULTS_DO_AND_FAIL(vaUnmapBuffer, (VADisplay display, VABufferID buffer), (display, buffer))
FAULTS_DO_AND_FAIL(vaDestroyImage, (VADisplay display, VAImageID image), (display, image))

const char* vaQueryVendorString(VADisplay display) {
  static const auto next = next_function(&vaQueryVendorString, "vaQueryVendorString");
  return strikes(__builtin_return_address(0)) ? nullptr : next(display);
}
}
