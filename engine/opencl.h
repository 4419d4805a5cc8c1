// OpenCL objects shared between an application and the engine: contexts, queues, buffers and
// images. This public header is for applications that use OpenCL themselves; engine/engine.h is
// enough for all others.
//
// The application keeps its handles: the engine retains and releases those that it uses. Functions
// on a request may be called by the thread that uses the request, while it is idle. All functions
// throw Error, and Error{unsupported} for models and requests that do not run on one OpenCL device,
// such as those of the first tier.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#include "engine/engine.h"

namespace clinfer::opencl {

// The application's objects that a model has to use.
struct Shared {
  cl_context context = nullptr;
  // One of the context's devices; null: its only one. Config::device is ignored.
  cl_device_id device = nullptr;
  // An in-order queue on that device; null: the model makes its own queues. With a queue, the model
  // has one stream. All work of its requests is enqueued there, and is ordered with the
  // application's commands as the calls are. The queue must have CL_QUEUE_PROFILING_ENABLE if
  // Config::perf_count is set.
  cl_command_queue queue = nullptr;
};

// Compiles as CompiledModel::compile() does, in the application's context. If that context was made
// on a VA display (CL_CONTEXT_VA_API_DISPLAY_INTEL), surfaces of the display can be imported;
// Config::va_display is ignored. Throws Error{bad_argument} for an empty context, a device that is
// not in it, a queue that is out of order or of another context, and Error{no_device} for a device
// that the engine cannot use.
std::shared_ptr<CompiledModel> compile(std::shared_ptr<const Model> model, const Config& config,
                                       const Shared& shared, const Progress& progress = {},
                                       const TuningObserver& observer = {});

// Return the context and device that a model uses, whoever made them, and the queue to which a
// request enqueues its work. They live as long as the model and the request. Models that
// CompiledModel::compile() makes for one device share one context (except with a VA display), so
// that buffers of one can be inputs of another.
cl_context context_of(const CompiledModel& model);
cl_device_id device_of(const CompiledModel& model);
cl_command_queue queue_of(const InferRequest& request);

// ---- inputs -------------------------------------------------------------------------------------

// Takes input `index` from a buffer of the model's context, `offset` bytes from its start (a
// multiple of the element's size): dense, row-major, of the port's type and shape. Each start()
// from now on, until the input is set again, reads the buffer: where it lies, if the kernels can
// (explain()), else by a copy on the device. `ready`: an event that the first inference waits for,
// or null. The buffer may be written again after wait(), or by later commands of the same queue.
void set_input(InferRequest& request, size_t index, cl_mem buffer, size_t offset = 0,
               cl_event ready = nullptr);

// The origin of memory that an application addresses by a pointer.
enum class PointerKind {
  // Any memory of the process. CPUs use it in place (CL_MEM_USE_HOST_PTR), and so do integrated
  // GPUs if it begins at a multiple of 4096 bytes and the tensor takes a multiple of 64; others get
  // and give copies.
  host,
  // Shared virtual memory of OpenCL 2.0: clSVMAlloc() on the model's context, coarse or fine grain;
  // any memory where the device has fine-grain system SVM. Coarse-grain memory must not be mapped
  // while an inference is in flight.
  svm,
  // Unified shared memory (cl_intel_unified_shared_memory): clHostMemAllocINTEL(),
  // clSharedMemAllocINTEL(), or clDeviceMemAllocINTEL() of the model's device, on its context.
  usm,
};

// Takes input `index` from memory at an address, as set_input() does from a buffer: dense,
// row-major, of the port's type and shape. `bytes`: how many there are from `data` on. The memory
// must stay allocated until the input is set again or the request is destroyed, and must not be
// written from start() until wait() has returned. `ready` must be null for host memory. Throws
// Error{bad_argument} for memory that is too small or at no multiple of an element's size, and, of
// USM, for memory of another context or device, and for what was freed, which start() throws as
// well; of SVM, on NVIDIA's devices, for what is no SVM of the context. Throws Error{unsupported} if the device lacks such
// memory.
void set_input_pointer(InferRequest& request, size_t index, PointerKind kind, const void* data,
                       size_t bytes, cl_event ready = nullptr);

// Makes a buffer of the model's context usable for frames, in InferRequest::set_memory(): the
// planes of a picture lie in it at any offsets. The buffer must hold the picture when set_memory()
// is called, or commands that fill it must be on the request's queue by then.
std::shared_ptr<ImportedMemory> import_buffer(CompiledModel& model, cl_mem buffer);

// Makes two images of the model's context usable as the planes of an NV12 picture, in
// InferRequest::set_surface(): `y` has one component (CL_R), `uv` two (CL_RG) or more and half the
// size, rounded up; both are 8-bit UNORM. They must hold the picture when set_surface() is called,
// or commands that fill them must be on the request's queue by then.
std::shared_ptr<ImportedSurface> import_images(CompiledModel& model, cl_mem y, cl_mem uv);

// Sets a frame as InferRequest::set_memory() does, from an image of the model's context: CL_RGBA,
// CL_BGRA or CL_R (grey), 8-bit UNORM or UNSIGNED. The picture is copied on the device, in the
// order of the request's queue.
Placement set_image(InferRequest& request, size_t index, cl_mem image,
                    const FrameTransform& transform, size_t image_in_batch = 0);

// ---- outputs ------------------------------------------------------------------------------------

// Makes each inference from now on write output `index` to a buffer of the model's context,
// `offset` bytes from its start (a multiple of the element's size), instead of host memory. Null:
// to host memory again. The elements are those of InferRequest::output() (dense, row-major, floats
// as f32), and kernels write them there if they can (explain()). They can be read after wait();
// commands that are enqueued to the request's own queue after start() see them too, unless the
// model has layers that run on the host. Throws Error{bad_argument} if the buffer is too small,
// Error{unsupported} for an output whose number of rows depends on the values.
void set_output(InferRequest& request, size_t index, cl_mem buffer, size_t offset = 0);

// Does what set_output() does, with memory at an address (see set_input_pointer()). Null: to host
// memory of the request again.
void set_output_pointer(InferRequest& request, size_t index, PointerKind kind, void* data,
                        size_t bytes);

// Does what set_output() does, with a buffer that the request allocates and owns. Each call returns
// the same buffer.
cl_mem output_buffer(InferRequest& request, size_t index);

// Does what set_output() does, into a two-dimensional image: its pixels, row by row, are the
// elements of the output. Throws Error{bad_argument} unless width x height x components is their
// number (in groups of one picture: [1,1,H,W], or [1,H,W,C] for images with C components) and the
// image's type is the output's: CL_FLOAT for floats; CL_UNSIGNED_INT8, CL_SIGNED_INT8 and
// CL_UNORM_INT8 for bytes; CL_SIGNED_INT32 and CL_UNSIGNED_INT32.
void set_output_image(InferRequest& request, size_t index, cl_mem image);

// Returns why inputs and outputs in memory of the application are copied, one line each: "input 0
// (image): copied, since its kernels use f16, the application has f32". Empty if none is copied.
std::vector<std::string> explain(const InferRequest& request);

}  // namespace clinfer::opencl
