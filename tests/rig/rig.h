// The interface between the parts of the rig: the software VA driver's private entry points
// (found by vaGetLibFunc), the counters of driver and layer, and faults on demand. Plain C types:
// three libraries and a test share them.
#pragma once

#include <va/va.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" {

struct RigVaCounters {
  long surfaces_created, surfaces_alive;
  // Calls of vaMapBuffer for an image derived from a frame's surface, and of vaGetImage from one.
  long frame_maps, frame_gets;
  long maps, puts, syncs, exports;  // of all others
  long misuse;
};

struct RigClCounters {
  long imported, images_alive;
  long buffers_imported, buffers_alive;  // of DMA-BUFs and exported memory
  // Surfaces and DMA-BUFs. kernels: enqueued with one of them as argument.
  long acquired, released, kernels;
  long misuse;
};

// Of the stand-in for libcuda.so.1. Bytes that crossed the bus (up, down), and were copied on the device.
struct RigCudaCounters {
  long alive;  // allocations of device memory
  long bytes_up, bytes_down, bytes_inside;
  long device_syncs;
};

// The memory of an NV12 or P010 surface, kept for the holder of `pin` even when the surface is destroyed,
// as a kernel driver does.
struct RigPlanes {
  unsigned char* data[2];
  unsigned pitch[2];
  unsigned width, height;  // of the surface
  unsigned sample_bytes;   // 1 or 2
  void* pin;
};

// A picture in host memory, for rig_write.
struct RigPicture {
  const unsigned char* planes[2];
  int strides[2];
  unsigned x, y, width, height;  // where it goes in the surface; x and y even
};

// Symbols of the driver.
using RigPin = int (*)(void* display, unsigned surface, RigPlanes* planes);  // 0: done
using RigUnpin = void (*)(void* pin);
using RigAlive = int (*)(void* pin);              // 0: the surface was destroyed
using RigHold = void (*)(void* pin, int change);  // +1: OpenCL has acquired a plane, -1: released
using RigWrite = int (*)(void* display, unsigned surface, const RigPicture* picture);
using RigReadVaCounters = void (*)(RigVaCounters* counters);
// Symbol of the layer: "rig_cl_counters".
using RigReadClCounters = void (*)(RigClCounters* counters);
// Symbol of libcuda.so.1: "rig_cuda_counters".
using RigReadCudaCounters = void (*)(RigCudaCounters* counters);
// Symbol of both, "rig_forgive": misuse so far was a test's own.
using RigForgive = void (*)();

}  // extern "C"

// One of the driver's functions above, by its name.
template <typename Function>
Function rig_function(VADisplay display, const char* name) {
  return reinterpret_cast<Function>(reinterpret_cast<void*>(vaGetLibFunc(display, name)));
}

// Faults on demand: RIG_FAIL="acquire:7" makes every 7th acquire fail, counted from when the
// variable got this value. Read at each call, so that a test may change it.
class RigFault {
 public:
  explicit RigFault(const char* what) : what_(what) {}
  bool strikes() {
    const char* text = std::getenv("RIG_FAIL");
    if (text == nullptr || text != last_) count_ = 0;
    last_ = text != nullptr ? text : "";
    if (last_.rfind(what_ + ":", 0) != 0) return false;
    const long every = std::atol(last_.c_str() + what_.size() + 1);
    return every > 0 && ++count_ % every == 0;
  }

 private:
  std::string what_, last_;
  long count_ = 0;
};
