// Requests of a compiled model, and the memory of frames that it takes.
#include "engine/runtime/compiled_model.h"

#include <cstdlib>

#include "engine/ocl/queue.h"
#include "engine/runtime/frames/imported_planes.h"
#include "engine/runtime/frames/surfaces.h"
#include "engine/runtime/requests/infer_request.h"
#include "engine/runtime/shaped_request.h"
#include "kernels/base/default_floats.h"
#include "kernels/base/log.h"

namespace clinfer {

DeviceModel::DeviceModel(std::shared_ptr<const Model> model,
                         std::shared_ptr<const DeviceNetwork> network, CompileReport report)
    : model_(std::move(model)), network_(std::move(network)), report_(std::move(report)) {}

std::unique_ptr<InferRequest> DeviceModel::create_request() {
  const DefaultFloats floats;
  try {
    // The request keeps this model alive by its reference to the network.
    auto request = std::make_unique<DeviceRequest>(
        std::shared_ptr<const DeviceNetwork>(shared_from_this(), network_.get()),
        network_->stream(next_request_++ % network_->stream_count()));
    if (plans_ == nullptr) return request;
    return std::make_unique<ShapedRequest>(std::move(request), inputs(), plans_);
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "creating an infer request");
  }
}

DeviceModel::~DeviceModel() {
  const DefaultFloats floats;
  // Surfaces that applications still hold must release memory whose owner may disappear now. No
  // request is left that uses the images.
  for (const auto& weak : surfaces_)
    if (const auto surface = weak.lock()) surface->drop();
  for (const auto& weak : memories_)
    if (const auto memory = weak.lock()) memory->drop();
}

std::shared_ptr<ImportedSurface> DeviceModel::import_surface(unsigned id) {
  const DefaultFloats floats;
  if (network_->context->va == nullptr)
    throw Error(ErrorCode::bad_argument,
                "surfaces cannot be imported: " +
                    (sharing_problem().empty() ? "the model was compiled without a VA display"
                                               : sharing_problem()));
  try {
    auto surface = network_->context->va->import(network_->context->context, id);
    const std::lock_guard lock(mutex_);
    std::erase_if(surfaces_, [](const auto& weak) { return weak.expired(); });
    surfaces_.push_back(surface);
    return surface;
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "importing a VA surface");
  }
}

std::string DeviceModel::check_surface(const std::shared_ptr<ImportedSurface>& imported,
                                       const Frame& expected) try {
  const DefaultFloats floats;
  ocl::Surface& surface = own_surface(*network_->context, *imported);
  const FrameTransform transform;
  const TensorDesc out =
      TensorDesc::row_major(ElementType::u8, {1, 3, expected.height, expected.width});
  return check_picture(
      plan_surface_preprocess(expected, transform, out, 0, network_->default_preprocess_point()),
      out,
      [&](const Argument& argument) -> BoundBuffer {
        return {{}, 0, surface.plane(argument.index)};
      },
      [&](const cl::CommandQueue& queue, const ocl::AcquireRelease::Use& use) {
        with_acquired(*network_->context, queue, surface, use);
      },
      expected);
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading a VA surface");
}

std::string DeviceModel::check_picture(
    const KernelPlan& plan, const TensorDesc& out,
    const std::function<BoundBuffer(const Argument&)>& find,
    const std::function<void(const cl::CommandQueue&, const ocl::AcquireRelease::Use&)>& with,
    const Frame& expected) {
  const FrameTransform transform;
  const KernelSpec& spec = plan.launches.at(0);
  cl::Kernel kernel = network_->extra_kernel(spec);
  const cl::Buffer result(network_->context->context, CL_MEM_READ_WRITE,
                          static_cast<size_t>(out.elements()));
  bind_arguments(kernel, spec, [&](const Argument& argument) -> BoundBuffer {
    return argument.kind == Argument::Kind::output ? BoundBuffer{result, 0} : find(argument);
  });
  const cl::CommandQueue queue(network_->context->context, network_->context->device.device);
  with(queue, [&](const cl::Event& acquired) {
    cl::Event done;
    const std::vector<cl::Event> after{acquired};
    enqueue(queue, kernel, spec, &done, acquired() != nullptr ? &after : nullptr);
    return done;
  });
  std::vector<uint8_t> got(static_cast<size_t>(out.elements()));
  queue.enqueueReadBuffer(result, CL_TRUE, 0, got.size(), got.data());
  queue.finish();

  const std::vector<float> want =
      evaluate_preprocess(expected, transform, expected.width, expected.height, 3).to_floats();
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::abs(static_cast<int>(got[i]) - static_cast<int>(want[i])) <= 1) continue;
    const size_t pixel =
        i % (static_cast<size_t>(expected.width) * static_cast<size_t>(expected.height));
    return "component " +
           std::to_string(
               i / (static_cast<size_t>(expected.width) * static_cast<size_t>(expected.height))) +
           " of pixel (" + std::to_string(pixel % static_cast<size_t>(expected.width)) + "," +
           std::to_string(pixel / static_cast<size_t>(expected.width)) + ") reads as " +
           std::to_string(got[i]) + " instead of " + std::to_string(static_cast<int>(want[i]));
  }
  return "";
}

std::shared_ptr<ImportedMemory> DeviceModel::import_memory(MemoryHandle kind, int fd,
                                                           size_t bytes) {
  const DefaultFloats floats;
  if (const std::string& problem = import_problem(kind); !problem.empty())
    throw Error(ErrorCode::bad_argument, "memory cannot be imported: " + problem);
  auto memory = network_->external->import(network_->context->context, kind, fd, bytes);
  if (network_->cuda != nullptr && kind == MemoryHandle::opaque) try {
      const auto shared = std::make_shared<const cuda::Memory>(network_->cuda, fd, bytes);
      memory->share(shared->address(), shared);
    } catch (const cuda::Failure& failure) {
      log(LogArea::device, LogLevel::info, [&] {
        return std::string("inferences of a frame's memory go to OpenCL's queue: ") +
               failure.what();
      });
    }
  const std::lock_guard lock(mutex_);
  std::erase_if(memories_, [](const auto& weak) { return weak.expired(); });
  memories_.push_back(memory);
  return memory;
}

std::string DeviceModel::check_memory(const ImportedPlanes& imported, const Frame& picture,
                                      const Frame& expected) try {
  const DefaultFloats floats;
  const OwnPlanes own = own_planes(*network_->context, picture, imported);
  std::array<DevicePlane, 3> planes;
  for (size_t p = 0; p < 3; ++p) planes[p] = {own.offsets[p], picture.strides[p]};
  const FrameTransform transform;
  const TensorDesc out =
      TensorDesc::row_major(ElementType::u8, {1, 3, picture.height, picture.width});
  return check_picture(
      plan_preprocess(picture, planes, transform, out, 0, network_->default_preprocess_point()),
      out,
      [&](const Argument& argument) -> BoundBuffer {
        return {own.memories[argument.index]->buffer(), 0};
      },
      [&](const cl::CommandQueue& queue, const ocl::AcquireRelease::Use& use) {
        network_->external->with_acquired(queue, own.distinct(), use);
      },
      expected);
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading imported memory");
}

cl::CommandQueue DeviceModel::frame_queue() {
  const std::lock_guard lock(mutex_);
  if (frame_queue_() == nullptr)
    frame_queue_ =
        ocl::create_queue(*network_->context, network_->context->device.device, {}, false);
  return frame_queue_;
}

std::shared_ptr<FrameMemory> DeviceModel::allocate_frame_memory(size_t bytes) try {
  const DefaultFloats floats;
  return network_->make_host_memory(network_->cuda == nullptr ? frame_queue() : cl::CommandQueue(),
                                    bytes);
} catch (const cl::Error& error) {
  ocl::rethrow(error, "allocating " + std::to_string(bytes) + " bytes for frames");
}

}  // namespace clinfer
