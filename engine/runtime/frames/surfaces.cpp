// VA-API surfaces as pictures: importing, checking, and reading them around one kernel.
#include <cstdlib>

#include "engine/runtime/compiled_model.h"
#include "engine/runtime/infer_request.h"

namespace clinfer {

namespace {

// The surface that the public type refers to. Throws Error{bad_argument} for one of another
// context.
ocl::Surface& own_surface(const DeviceNetwork& network, ImportedSurface& surface) {
  auto* own = dynamic_cast<ocl::Surface*>(&surface);
  if (own == nullptr || own->context()() != network.context->context())
    throw Error(
        ErrorCode::bad_argument,
        "a surface was imported by another model: its images are of another OpenCL context");
  return *own;
}

}  // namespace

DeviceModel::~DeviceModel() {
  // Surfaces that applications still hold must release memory whose owner may disappear now. No
  // request is left that uses the images.
  for (const auto& weak : surfaces_)
    if (const auto surface = weak.lock()) surface->drop();
  for (const auto& weak : memories_)
    if (const auto memory = weak.lock()) memory->drop();
}

std::shared_ptr<ImportedSurface> DeviceModel::import_surface(unsigned id) {
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
  ocl::Surface& surface = own_surface(*network_, *imported);
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
        network_->context->va->with_acquired(queue, surface, use);
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
    enqueue(queue, kernel, spec, &done, &after);
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

// The kernel is enqueued here and not by start(): a surface that fails, fails its own frame and not
// the batch.
Placement DeviceRequest::set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                                     const Frame& picture, const FrameTransform& transform,
                                     size_t image) try {
  ocl::Surface& own = own_surface(*network_, *surface);
  if (own.width() < picture.width || own.height() < picture.height)
    throw Error(ErrorCode::bad_argument,
                "a picture of " + std::to_string(picture.width) + "x" +
                    std::to_string(picture.height) + " in a surface whose planes hold " +
                    std::to_string(own.width()) + "x" + std::to_string(own.height()));
  Frame frame = picture;
  frame.planes = {};
  frame.strides = {};
  const size_t target = network_input(index);
  const Placement placement = set_picture(target, frame, Source::surface, {}, transform, image);
  ImageInput& input = frames_.at({target, image});
  input.pending = false;
  const std::lock_guard lock(stream_.mutex);
  bind_frame(input, &own, nullptr);
  network_->context->va->with_acquired(stream_.queue, own, [&](const cl::Event& acquired) {
    return enqueue_frame(input, acquired);
  });
  return placement;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading a VA surface");
}

cl::Event DeviceRequest::enqueue_frame(ImageInput& input, const cl::Event& acquired) {
  const std::vector<cl::Event> after{acquired};
  cl::Event done;  // of the last one: the queue keeps their order
  for (size_t l = 0; l < input.kernels.size(); ++l)
    enqueue(stream_.queue, input.kernels[l], input.plan.launches[l], &done, &after);
  return done;
}

}  // namespace clinfer
