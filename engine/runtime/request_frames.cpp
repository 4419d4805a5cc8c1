// Video frames as inputs of a request: preprocess kernels, and the memory that they read.
#include <algorithm>

#include "engine/runtime/frames/frame_memory.h"
#include "engine/runtime/frames/imported_planes.h"
#include "engine/runtime/frames/surfaces.h"
#include "engine/runtime/infer_request.h"
#include "kernels/base/threads.h"
#include "kernels/frames/clip.h"

namespace clinfer {

namespace {

bool same_geometry(const Frame& a, const Frame& b) {
  return a.format == b.format && a.width == b.width && a.height == b.height &&
         a.strides == b.strides && a.matrix == b.matrix && a.full_range == b.full_range &&
         a.region.x == b.region.x && a.region.y == b.region.y && a.region.width == b.region.width &&
         a.region.height == b.region.height && a.orientation == b.orientation;
}

bool same_transform(const FrameTransform& a, const FrameTransform& b) {
  return a.resize == b.resize && a.color == b.color && a.mean == b.mean && a.scale == b.scale &&
         a.pad_value == b.pad_value && a.centered == b.centered && a.nhwc == b.nhwc &&
         a.color_arithmetic == b.color_arithmetic;
}

}  // namespace

Placement DeviceRequest::set_picture(size_t index, const Frame& frame, FrameInput::Source source,
                                     const std::array<int, 3>& offsets,
                                     const FrameTransform& transform, size_t image) {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  const Shape& shape = network_->network_inputs[index].shape;
  check_image(index, network_->network_inputs[index], frame, transform, image);
  FrameInput& input = frames_[{index, image}];
  const bool known = !input.kernels.empty() && input.source == source && input.offsets == offsets &&
                     same_geometry(input.frame, frame) &&
                     same_transform(input.transform, transform);
  input.source = source;
  input.offsets = offsets;
  input.in_frame_memory = false;
  input.frame = frame;
  input.transform = transform;
  input.index = index;
  input.image = image;
  input.pending = true;
  replace_input(index);
  try {
    if (!known) prepare(input);
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "preparing a frame");
  }
  const size_t width_axis = shape.size() - (transform.nhwc ? 2 : 1);
  return placement_of(frame, transform, static_cast<int>(shape[width_axis]),
                      static_cast<int>(shape[width_axis - 1]));
}

void DeviceRequest::prepare(FrameInput& input) {
  const Node* parameter = network_->plan().graph->parameters[input.index];
  std::array<DevicePlane, 3> planes;
  for (size_t p = 0; p < 3; ++p) planes[p] = {input.offsets[p], input.frame.strides[p]};
  input.kernels.clear();
  input.graph_kernels.clear();
  int image = 0;
  const TensorDesc out = image_in(parameter->outputs[0].desc, input.transform.nhwc,
                                  static_cast<int64_t>(input.image), image);
  const bool surface = input.source == FrameInput::Source::surface;
  const TuningPoint point = network_->preprocess_point(
      input.index, surface ? PictureKind::surface : kind_of(input.frame.format));
  input.plan = surface ? plan_surface_preprocess(input.frame, input.transform, out, image, point)
                       : plan_preprocess(input.frame, planes, input.transform, out, image, point);
  for (const KernelSpec& launch : input.plan.launches)
    input.kernels.push_back(network_->extra_kernel(launch));
  has_new_kernels_ = true;
}

// The host's copies into pinned memory take longer than the bus, so that several threads make them. The
// kernels of a frame run while the next ones are copied.
void DeviceRequest::enqueue_frames() {
  std::vector<FrameInput*> pending;
  size_t bytes = 0;
  for (auto& [where, input] : frames_) {
    if (!input.pending) continue;
    pending.push_back(&input);
    if (network_->wants_frame_memory() && !input.in_frame_memory)
      for (const auto& [begin, end] : ranges_of_region(input.frame)) bytes += end - begin;
  }
  constexpr size_t kWorthAThread = size_t{1} << 20, kMostThreads = 8;
  size_t threads = std::clamp<size_t>(bytes / kWorthAThread, 1, kMostThreads);
  const unsigned allowed = network_->options.host_threads;
  threads = std::min<size_t>(threads, allowed != 0 ? allowed : available_processors());
  if (network_->options.perf_count) threads = 1;  // the lists of events are one thread's
  parallel_for(pending.size(), static_cast<unsigned>(threads), [&](size_t i) {
    FrameInput& input = *pending[i];
    run_->copy_frame(
        input);  // not under the lock: another request of the stream may be copying, too
    const auto lock = take_stream();
    input.pending = false;
    run_->launch_frame(input);
  });
}

Placement DeviceRequest::set_frame(size_t index, const Frame& frame,
                                   const FrameTransform& transform, size_t image,
                                   const FrameMemory* memory) {
  if (memory != nullptr) check_in_frame_memory(*network_->context, *memory, frame);
  const size_t target = network_input(index);
  const Placement placement =
      set_picture(target, frame, FrameInput::Source::host, {}, transform, image);
  frames_.at({target, image}).in_frame_memory = memory != nullptr;
  return placement;
}

// The kernel is enqueued here and not by start(): a surface that fails, fails its own frame and not
// the batch.
Placement DeviceRequest::set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                                     const Frame& picture, const FrameTransform& transform,
                                     size_t image) try {
  ocl::Surface& own = own_surface(*network_->context, *surface);
  check_fits(own, picture);
  Frame frame = picture;
  frame.planes = {};
  frame.strides = {};
  const size_t target = network_input(index);
  const Placement placement =
      set_picture(target, frame, FrameInput::Source::surface, {}, transform, image);
  FrameInput& input = frames_.at({target, image});
  input.pending = false;
  given_to_queue_ = true;
  const auto lock = take_stream(by_queue_);
  by_queue_.bind_frame(input, &own, nullptr, *memory_);
  with_acquired(*network_->context, stream_.queue, own,
                [&](const cl::Event& acquired) { return enqueue_frame(input, acquired); });
  return placement;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading a VA surface");
}

cl::Event DeviceRequest::enqueue_frame(FrameInput& input, const cl::Event& acquired) {
  const std::vector<cl::Event> after{acquired};
  cl::Event done;  // of the last one: the queue keeps their order
  for (size_t l = 0; l < input.kernels.size(); ++l)
    enqueue(stream_.queue, input.kernels[l], input.plan.launches[l], &done,
            acquired() != nullptr ? &after : nullptr);
  return done;
}

Placement DeviceRequest::set_memory(size_t index, const ImportedPlanes& planes,
                                    const Frame& picture, const FrameTransform& transform,
                                    size_t image) try {
  const OwnPlanes own = own_planes(*network_->context, picture, planes);
  const size_t target = network_input(index);
  const Placement placement =
      set_picture(target, picture, FrameInput::Source::memory, own.offsets, transform, image);
  FrameInput& input = frames_.at({target, image});
  input.pending = false;
  given_to_queue_ = true;
  const auto lock = take_stream(by_queue_);
  by_queue_.bind_frame(input, nullptr, &own.memories, *memory_);
  network_->external->with_acquired(stream_.queue, own.distinct(), [&](const cl::Event& acquired) {
    return enqueue_frame(input, acquired);
  });
  return placement;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading imported memory");
}

}  // namespace clinfer
