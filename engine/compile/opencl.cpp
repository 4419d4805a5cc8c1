// Compiles models in a context of the application, and lets their requests use its memory objects.
#include "engine/opencl.h"

#include <algorithm>

#include "engine/compile/model_compiler.h"
#include "engine/ocl/va_sharing.h"
#include "engine/runtime/requests/infer_request.h"
#include "engine/runtime/shaped_request.h"
#include "kernels/base/default_floats.h"

namespace clinfer::opencl {

namespace {

DeviceRequest& own(InferRequest& request, SourcePlace place = SourcePlace::here()) {
  if (auto* const found = dynamic_cast<DeviceRequest*>(&request)) return *found;
  if (auto* const found = dynamic_cast<ShapedRequest*>(&request)) return found->compiled();
  throw Error(ErrorCode::unsupported, "the request is not of one OpenCL device", place);
}

// Says that an input of the request was set here.
void note_taken(InferRequest& request, size_t index) {
  if (auto* const shaped = dynamic_cast<ShapedRequest*>(&request)) shaped->took_over(index);
}

DeviceModel& own(CompiledModel& model, SourcePlace place = SourcePlace::here()) {
  if (auto* const found = dynamic_cast<DeviceModel*>(&model)) return *found;
  throw Error(ErrorCode::unsupported, "the model is not of one OpenCL device", place);
}

ocl::DevicePointer::Kind kind_of(PointerKind kind) {
  return kind == PointerKind::svm ? ocl::DevicePointer::Kind::svm : ocl::DevicePointer::Kind::usm;
}

// Calls a function that takes OpenCL handles; `doing` describes it in the message of an OpenCL
// error.
template <typename Function>
auto guarded(const char* doing, const Function& function) {
  const DefaultFloats floats;
  try {
    return function();
  } catch (const cl::Error& error) {
    ocl::rethrow(error, doing);
  }
}

const ocl::Device& device_in(const cl::Context& context, cl_device_id wanted) {
  const std::vector<cl::Device> all = context.getInfo<CL_CONTEXT_DEVICES>();
  if (wanted == nullptr) {
    if (all.size() != 1)
      throw Error(ErrorCode::bad_argument,
                  "the context has " + std::to_string(all.size()) + " devices: name one of them");
    wanted = all.front()();
  }
  if (std::none_of(all.begin(), all.end(), [&](const cl::Device& d) { return d() == wanted; }))
    throw Error(ErrorCode::bad_argument, "the device is not one of the context's");
  for (const ocl::Device& device : ocl::devices().usable)
    if (device.device() == wanted) return device;
  throw Error(ErrorCode::no_device,
              cl::Device(wanted, true).getInfo<CL_DEVICE_NAME>() +
                  " is no device that the engine uses (`clinfer devices` says "
                  "why; parts of a device are none)");
}

void check_queue(const cl::CommandQueue& queue, const cl::Context& context,
                 const ocl::Device& device, const Config& config) {
  if (queue.getInfo<CL_QUEUE_CONTEXT>()() != context())
    throw Error(ErrorCode::bad_argument, "the queue is of another context than the one given");
  if (queue.getInfo<CL_QUEUE_DEVICE>()() != device.device())
    throw Error(ErrorCode::bad_argument, "the queue is not of " + device.info.name);
  const cl_command_queue_properties properties = queue.getInfo<CL_QUEUE_PROPERTIES>();
  if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    throw Error(ErrorCode::bad_argument,
                "the queue is out of order; the engine needs one in order");
  if (config.perf_count && !(properties & CL_QUEUE_PROFILING_ENABLE))
    throw Error(ErrorCode::bad_argument,
                "PERF_COUNT needs a queue with CL_QUEUE_PROFILING_ENABLE, which this one lacks");
}

}  // namespace

std::shared_ptr<CompiledModel> compile(std::shared_ptr<const Model> model, const Config& config,
                                       const Shared& shared, const Progress& progress,
                                       const TuningObserver& observer) {
  const DefaultFloats floats;
  if (shared.context == nullptr)
    throw Error(ErrorCode::bad_argument, "there is no OpenCL context to share");
  InternalOptions options;
  guarded("sharing an OpenCL context", [&] {
    const cl::Context context(shared.context, true);
    // Looks for devices first, as compile_model() does, because the first call decides where
    // drivers keep their own caches.
    ocl::devices(config.cache_dir.value_or("").c_str());
    const ocl::Device& device = device_in(context, shared.device);
    if (shared.queue != nullptr) {
      options.queue = cl::CommandQueue(shared.queue, true);
      check_queue(options.queue, context, device, config);
    }
    options.context =
        ocl::Context::around(device, shared.context, ocl::sharing_of(device.platform, context));
  });
  auto compiled = compile_model(model, config, progress, observer, options);
  compiled->take_plans(plans_for(
      model, config,
      [config = config_of_plans(config), options](const auto& other, const Progress& goes_on) {
        return compile_model(other, config, goes_on, {}, options);
      }));
  return compiled;
}

cl_context context_of(const CompiledModel& model) {
  return own(const_cast<CompiledModel&>(model)).network().context->context();
}

cl_device_id device_of(const CompiledModel& model) {
  return own(const_cast<CompiledModel&>(model)).network().context->device.device();
}

cl_command_queue queue_of(const InferRequest& request) {
  return own(const_cast<InferRequest&>(request)).queue()();
}

void set_input(InferRequest& request, size_t index, cl_mem buffer, size_t offset, cl_event ready) {
  guarded("taking an input from a buffer", [&] {
    own(request).inputs().set_buffer(index, cl::Buffer(buffer, true), offset,
                                     cl::Event(ready, true));
    note_taken(request, index);
  });
}

void set_input_pointer(InferRequest& request, size_t index, PointerKind kind, const void* data,
                       size_t bytes, cl_event ready) {
  if (kind == PointerKind::host && ready != nullptr)
    throw Error(ErrorCode::bad_argument,
                "input " + std::to_string(index) +
                    ": host memory is to hold the values when an inference starts; no event can "
                    "say when it does");
  guarded("taking an input from an address", [&] {
    RequestInputs& inputs = own(request).inputs();
    void* const memory = const_cast<void*>(data);  // it is only read
    if (kind == PointerKind::host)
      inputs.set_host_memory(index, memory, bytes);
    else
      inputs.set_pointer(index, kind_of(kind), memory, bytes, cl::Event(ready, true));
    note_taken(request, index);
  });
}

std::shared_ptr<ImportedMemory> import_buffer(CompiledModel& model, cl_mem buffer) {
  const cl::Context context = own(model).network().context->context;
  return guarded("importing a buffer", [&] {
    const cl::Buffer memory(buffer, true);
    if (buffer == nullptr || memory.getInfo<CL_MEM_TYPE>() != CL_MEM_OBJECT_BUFFER ||
        memory.getInfo<CL_MEM_CONTEXT>()() != context())
      throw Error(ErrorCode::bad_argument, "the memory is no buffer of the model's OpenCL context");
    return std::make_shared<ocl::ExternalMemory>(context, memory);
  });
}

std::shared_ptr<ImportedSurface> import_images(CompiledModel& model, cl_mem y, cl_mem uv) {
  const cl::Context context = own(model).network().context->context;
  return guarded("importing images", [&] {
    for (const cl_mem plane : {y, uv}) {
      const char* const name = plane == y ? "Y" : "UV";
      const cl::Image2D image(plane, true);
      if (plane == nullptr || image.getInfo<CL_MEM_TYPE>() != CL_MEM_OBJECT_IMAGE2D ||
          image.getInfo<CL_MEM_CONTEXT>()() != context())
        throw Error(ErrorCode::bad_argument,
                    std::string("the ") + name +
                        " plane is no two-dimensional image of the model's OpenCL context");
      const cl_image_format format = image.getImageInfo<CL_IMAGE_FORMAT>();
      const bool components =
          plane == y ? format.image_channel_order == CL_R || format.image_channel_order == CL_RGBA
                     : format.image_channel_order == CL_RG || format.image_channel_order == CL_RGBA;
      if (!components || format.image_channel_data_type != CL_UNORM_INT8)
        throw Error(ErrorCode::bad_argument, std::string("the ") + name + " plane is to be " +
                                                 (plane == y ? "CL_R" : "CL_RG") +
                                                 " of 8-bit UNORM");
    }
    return std::make_shared<ocl::Surface>(context, cl::Image2D(y, true), cl::Image2D(uv, true));
  });
}

Placement set_image(InferRequest& request, size_t index, cl_mem image,
                    const FrameTransform& transform, size_t image_in_batch) {
  return guarded("taking a picture from an image", [&] {
    const Placement placement =
        own(request).inputs().set_image(index, cl::Image2D(image, true), transform, image_in_batch);
    note_taken(request, index);
    return placement;
  });
}

void set_output(InferRequest& request, size_t index, cl_mem buffer, size_t offset) {
  guarded("giving an output to a buffer", [&] {
    RequestOutputs& outputs = own(request).outputs();
    if (buffer == nullptr)
      outputs.reset(index);
    else
      outputs.set_buffer(index, cl::Buffer(buffer, true), offset);
  });
}

void set_output_pointer(InferRequest& request, size_t index, PointerKind kind, void* data,
                        size_t bytes) {
  guarded("giving an output to an address", [&] {
    RequestOutputs& outputs = own(request).outputs();
    if (data == nullptr)
      outputs.reset(index);
    else if (kind == PointerKind::host)
      outputs.set_host_memory(index, data, bytes);
    else
      outputs.set_pointer(index, kind_of(kind), data, bytes);
  });
}

cl_mem output_buffer(InferRequest& request, size_t index) {
  return guarded("allocating a buffer for an output",
                 [&] { return own(request).outputs().own_buffer(index)(); });
}

void set_output_image(InferRequest& request, size_t index, cl_mem image) {
  guarded("giving an output to an image",
          [&] { own(request).outputs().set_image(index, cl::Image2D(image, true)); });
}

std::vector<std::string> explain(const InferRequest& request) {
  DeviceRequest& of = own(const_cast<InferRequest&>(request));
  return guarded("looking at buffers", [&] {
    of.check_idle();
    InPlace::Wanted inputs;
    of.inputs().find_in_place(of.network().whole, inputs);
    std::vector<std::string> lines = of.inputs().explain();
    for (std::string& line : of.outputs().explain(inputs)) lines.push_back(std::move(line));
    return lines;
  });
}

}  // namespace clinfer::opencl
