// Video frames as inputs of a request: their preprocess kernels, and the memory that these read.
#include <algorithm>

#include "engine/runtime/frames/frame_memory.h"
#include "engine/runtime/frames/imported_planes.h"
#include "engine/runtime/frames/surfaces.h"
#include "engine/runtime/requests/memory_objects.h"
#include "engine/runtime/requests/request_inputs.h"
#include "kernels/base/system/threads.h"
#include "kernels/frames/clip.h"

namespace clinfer {

namespace {

bool same_geometry(const Frame& a, const Frame& b) {
  return a.format == b.format && a.width == b.width && a.height == b.height &&
         a.strides == b.strides && a.matrix == b.matrix && a.full_range == b.full_range &&
         a.pixel_aspect == b.pixel_aspect && a.visible == b.visible && a.region == b.region &&
         a.orientation == b.orientation && a.angle == b.angle;
}

bool same_transform(const FrameTransform& a, const FrameTransform& b) {
  return a.resize == b.resize && a.color == b.color && a.mean == b.mean && a.scale == b.scale &&
         a.pad_value == b.pad_value && a.centered == b.centered && a.nhwc == b.nhwc &&
         a.color_arithmetic == b.color_arithmetic && a.turn == b.turn;
}

}  // namespace

Placement RequestInputs::set_picture(size_t target, const Frame& frame, DeviceFrame::Source source,
                                     const std::array<int, 3>& offsets,
                                     const FrameTransform& transform, size_t image) {
  work_.check_idle();
  const Shape& shape = network_.network_inputs[target].shape;
  check_image(target, network_.network_inputs[target], frame, transform, image);
  Picture& picture = pictures_[{target, image}];
  lost_.found({target, image});
  picture.on_device = picture.by_graph = picture.due = false;
  DeviceFrame& input = picture.input;
  const bool known = !input.kernels.empty() && input.source == source && input.offsets == offsets &&
                     same_geometry(input.frame, frame) &&
                     same_transform(input.transform, transform);
  input.source = source;
  input.offsets = offsets;
  input.in_frame_memory = false;
  input.frame = frame;
  input.transform = transform;
  input.index = target;
  input.image = image;
  keep_other_images(target, images_in(target, transform.nhwc));
  try {
    if (!known) prepare(input);
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "preparing a frame");
  }
  picture.due = source == DeviceFrame::Source::host;
  const size_t width_axis = shape.size() - (transform.nhwc ? 2 : 1);
  return placement_of(frame, transform, static_cast<int>(shape[width_axis]),
                      static_cast<int>(shape[width_axis - 1]));
}

void RequestInputs::prepare(DeviceFrame& input) {
  const Node* parameter = network_.plan().graph->parameters[input.index];
  std::array<DevicePlane, 3> planes;
  for (size_t p = 0; p < 3; ++p) planes[p] = {input.offsets[p], input.frame.strides[p]};
  input.kernels.clear();
  input.graph_kernels.clear();
  int image = 0;
  const TensorDesc out = image_in(parameter->outputs[0].desc, input.transform.nhwc,
                                  static_cast<int64_t>(input.image), image);
  const bool surface = input.source == DeviceFrame::Source::surface;
  const TuningPoint point = network_.preprocess_point(
      input.index, surface ? PictureKind::surface : kind_of(input.frame.format));
  input.plan = surface ? plan_surface_preprocess(input.frame, input.transform, out, image, point)
                       : plan_preprocess(input.frame, planes, input.transform, out, image, point);
  for (const KernelSpec& launch : input.plan.launches)
    input.kernels.push_back(network_.extra_kernel(launch));
  if (work_.by_graph != nullptr && !surface)
    for (const KernelSpec& launch : input.plan.launches)
      input.graph_kernels.push_back(network_.extra_graph_kernel(launch));
  if (std::ranges::count(input.graph_kernels, nullptr) != 0) input.graph_kernels.clear();
  work_.has_new_kernels = true;
}

// Copies with several threads, because copying into pinned memory takes longer than the bus. The
// kernels of a frame run while the next frames are copied.
void RequestInputs::enqueue_frames() {
  std::vector<Picture*> due;
  size_t bytes = 0;
  for (auto& [place, picture] : pictures_) {
    if (!picture.due || picture.on_device) continue;
    due.push_back(&picture);
    if (network_.wants_frame_memory() && !picture.input.in_frame_memory)
      for (const auto& [begin, end] : ranges_of_region(picture.input.frame)) bytes += end - begin;
  }
  constexpr size_t kWorthAThread = size_t{1} << 20, kMostThreads = 8;
  size_t threads = std::clamp<size_t>(bytes / kWorthAThread, 1, kMostThreads);
  const unsigned allowed = network_.options.host_threads;
  threads = std::min<size_t>(threads, allowed != 0 ? allowed : available_processors());
  if (network_.options.perf_count) threads = 1;  // the lists of events are not thread-safe
  parallel_for(due.size(), static_cast<unsigned>(threads), [&](size_t i) {
    Picture& picture = *due[i];
    // Copies without the lock: another request of the stream may be copying, too.
    work_.run->copy_frame(picture.input);
    const auto lock = work_.take_stream();
    picture.due = false;
    work_.run->launch_frame(picture.input);
  });
}

Placement RequestInputs::set_frame(size_t index, const Frame& frame,
                                   const FrameTransform& transform, size_t image,
                                   const FrameMemory* memory) {
  if (memory != nullptr) check_in_frame_memory(*network_.context, *memory, frame);
  const size_t target = network_input(index);
  const Placement placement =
      set_picture(target, frame, DeviceFrame::Source::host, {}, transform, image);
  pictures_.at({target, image}).input.in_frame_memory = memory != nullptr;
  return placement;
}

// Enqueues the kernel here and not in start(), so that a surface that fails is an error of its own
// frame and not of the batch.
Placement RequestInputs::set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                                     const Frame& picture, const FrameTransform& transform,
                                     size_t image) try {
  check_fits(own_surface(*network_.context, *surface), picture);
  Frame frame = picture;
  frame.planes = {};
  frame.strides = {};
  const size_t target = network_input(index);
  const Placement placement =
      set_picture(target, frame, DeviceFrame::Source::surface, {}, transform, image);
  Picture& set = pictures_.at({target, image});
  set.surface = surface;
  read_surface(set);
  set_on_device({target, image}, set);
  return placement;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading a VA surface");
}

Placement RequestInputs::set_memory(size_t index, const ImportedPlanes& planes,
                                    const Frame& picture, const FrameTransform& transform,
                                    size_t image) try {
  const OwnPlanes own = own_planes(*network_.context, picture, planes);
  const size_t target = network_input(index);
  const Placement placement =
      set_picture(target, picture, DeviceFrame::Source::memory, own.offsets, transform, image);
  Picture& set = pictures_.at({target, image});
  std::ranges::copy(planes.memories, set.memories.begin());
  set.image = {};
  read_memory(set);
  set_on_device({target, image}, set);
  return placement;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading imported memory");
}

Placement RequestInputs::set_image(size_t index, const cl::Image2D& image,
                                   const FrameTransform& transform, size_t image_in_batch) {
  work_.check_idle();
  const size_t target = network_input(index);
  check_memory_object(*network_.context, image, CL_MEM_OBJECT_IMAGE2D,
                      "the image for input " + std::to_string(index));
  const cl_image_format format = image.getImageInfo<CL_IMAGE_FORMAT>();
  const size_t components = components_of(format.image_channel_order);
  const bool bytes = format.image_channel_data_type == CL_UNORM_INT8 ||
                     format.image_channel_data_type == CL_UNSIGNED_INT8;
  if (!bytes || components == 0 || components == 2)
    throw Error(ErrorCode::bad_argument,
                "an image for an input is CL_RGBA, CL_BGRA or CL_R, of 8-bit UNORM "
                "or UNSIGNED; planes of NV12 are two images (import_images)");
  const size_t width = image.getImageInfo<CL_IMAGE_WIDTH>(),
               height = image.getImageInfo<CL_IMAGE_HEIGHT>();
  Frame frame;
  frame.format = components == 1                         ? PixelFormat::gray8
                 : format.image_channel_order == CL_BGRA ? PixelFormat::bgrx
                                                         : PixelFormat::rgbx;
  frame.width = static_cast<int>(width);
  frame.height = static_cast<int>(height);
  frame.strides[0] = static_cast<int>(width * components);
  const Placement placement =
      set_picture(target, frame, DeviceFrame::Source::memory, {}, transform, image_in_batch);
  Picture& set = pictures_.at({target, image_in_batch});
  const size_t size = width * height * components;
  if (set.image_copy == nullptr || set.image_copy->bytes() < size)
    set.image_copy = std::make_shared<ocl::ExternalMemory>(
        network_.context->context, cl::Buffer(network_.context->context, CL_MEM_READ_WRITE, size));
  set.memories = {set.image_copy};
  set.image = image;
  read_memory(set);
  set_on_device({target, image_in_batch}, set);
  return placement;
}

// Uploads first the tensor that the input was set to before, if the device has not got it yet.
void RequestInputs::set_on_device(const Place& place, Picture& picture) {
  const auto device = device_.find(place.first);
  picture.on_device = true;
  given_to_queue_ |= !picture.by_graph;
  picture.due = host_[place.first].dirty || (device != device_.end() && device->second.pending);
}

void RequestInputs::read_again(const Place& place, Picture& picture) {
  const bool is_surface = picture.input.source == DeviceFrame::Source::surface;
  const auto sizes = plane_sizes(picture.input.frame);
  bool gone = is_surface && picture.surface.expired();
  for (size_t p = 0; !is_surface && p < sizes.size(); ++p)
    gone |= sizes[p].rows != 0 && picture.memories[p].expired();
  if (gone)
    throw Error(ErrorCode::bad_argument,
                std::string(is_surface ? "the surface" : "the memory") + " of image " +
                    std::to_string(place.second) + " of input " + std::to_string(place.first) +
                    " was released: keep it until the input is set anew, or set the input for each "
                    "inference");
  if (picture.input.kernels.empty()) prepare(picture.input);
  if (is_surface)
    read_surface(picture);
  else
    read_memory(picture);
}

void RequestInputs::read_surface(Picture& picture) {
  const std::shared_ptr<ImportedSurface> surface = picture.surface.lock();
  ocl::Surface& own = own_surface(*network_.context, *surface);
  const auto lock = work_.take_stream(work_.by_queue);
  work_.by_queue.bind_frame(picture.input, &own, nullptr, *work_.memory);
  with_acquired(*network_.context, work_.stream.queue, own, [&](const cl::Event& acquired) {
    return enqueue_kernels(picture.input, acquired);
  });
}

void RequestInputs::read_memory(Picture& picture) {
  ImportedPlanes planes;
  for (size_t p = 0; p < planes.memories.size(); ++p) {
    planes.memories[p] = picture.memories[p].lock();
    planes.offsets[p] = static_cast<size_t>(picture.input.offsets[p]);
  }
  const OwnPlanes own = own_planes(*network_.context, picture.input.frame, planes);
  GraphRun* const by_graph = work_.by_graph.get();
  picture.by_graph = by_graph != nullptr && by_graph->reads(picture.input, own);
  if (picture.by_graph) {
    const auto lock = work_.take_stream(*by_graph);
    by_graph->launch_imported(picture.input, own, *work_.memory);
    return;
  }
  const auto lock = work_.take_stream(work_.by_queue);
  if (picture.image() != nullptr)
    work_.stream.queue.enqueueCopyImageToBuffer(
        picture.image, picture.image_copy->buffer(), {0, 0, 0},
        {static_cast<size_t>(picture.input.frame.width),
         static_cast<size_t>(picture.input.frame.height), 1},
        0);
  work_.by_queue.bind_frame(picture.input, nullptr, &own.memories, *work_.memory);
  network_.external->with_acquired(
      work_.stream.queue, own.distinct(),
      [&](const cl::Event& acquired) { return enqueue_kernels(picture.input, acquired); });
}

cl::Event RequestInputs::enqueue_kernels(DeviceFrame& input, const cl::Event& acquired) {
  const std::vector<cl::Event> after{acquired};
  cl::Event done;  // of the last kernel; the queue is in order
  for (size_t l = 0; l < input.kernels.size(); ++l)
    clinfer::enqueue(work_.stream.queue, input.kernels[l], input.plan.launches[l], &done,
                     acquired() != nullptr ? &after : nullptr);
  return done;
}

}  // namespace clinfer
