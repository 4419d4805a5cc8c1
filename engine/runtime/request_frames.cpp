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

// First byte and end of the rows of a frame's region, by plane.
std::array<std::pair<size_t, size_t>, 3> ranges_of_region(const Frame& frame) {
  const auto sizes = plane_sizes(frame);
  const auto rows = rows_of_region(frame);
  std::array<std::pair<size_t, size_t>, 3> ranges{};
  for (size_t p = 0; p < 3; ++p) {
    if (sizes[p].rows == 0) continue;
    const int stride = frame.strides[p];
    const auto begin = static_cast<size_t>(int64_t{stride} * rows[p].first);
    ranges[p] = {begin, begin + static_cast<size_t>(
                                    PlaneSize{rows[p].count, sizes[p].row_bytes}.bytes(stride))};
  }
  return ranges;
}

}  // namespace

Placement DeviceRequest::set_picture(size_t index, const Frame& frame, Source source,
                                     const std::array<int, 3>& offsets,
                                     const FrameTransform& transform, size_t image) {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  const Shape& shape = network_->network_inputs[index].shape;
  check_image(index, network_->network_inputs[index], frame, transform, image);
  ImageInput& input = frames_[{index, image}];
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

void DeviceRequest::prepare(ImageInput& input) {
  const Node* parameter = network_->plan().graph->parameters[input.index];
  std::array<DevicePlane, 3> planes;
  for (size_t p = 0; p < 3; ++p) planes[p] = {input.offsets[p], input.frame.strides[p]};
  input.kernels.clear();
  input.packed.clear();
  int image = 0;
  const TensorDesc out = image_in(parameter->outputs[0].desc, input.transform.nhwc,
                                  static_cast<int64_t>(input.image), image);
  const bool surface = input.source == Source::surface;
  const TuningPoint point = network_->preprocess_point(
      input.index, surface ? PictureKind::surface : kind_of(input.frame.format));
  input.plan = surface ? plan_surface_preprocess(input.frame, input.transform, out, image, point)
                       : plan_preprocess(input.frame, planes, input.transform, out, image, point);
  for (const auto& make : input.plan.packed) {
    std::vector<std::byte> bytes = make();
    input.packed.emplace_back(network_->context->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                              bytes.size(), bytes.data());
  }
  for (const KernelSpec& launch : input.plan.launches)
    input.kernels.push_back(network_->extra_kernel(launch));
  has_new_kernels_ = true;
}

// The host's copies into pinned memory take longer than the bus, so that several threads make them. The
// kernels of a frame run while the next ones are copied.
void DeviceRequest::enqueue_frames() {
  std::vector<ImageInput*> pending;
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
    ImageInput& input = *pending[i];
    upload(input);  // not under the lock: another request of the stream may be copying, too
    const std::lock_guard lock(stream_.mutex);
    input.pending = false;
    bind_frame(input, nullptr, nullptr);
    const std::vector<cl::Event> copied{std::exchange(input.copied, {})};
    for (size_t l = 0; l < input.kernels.size(); ++l)
      enqueue(stream_.queue, input.kernels[l], input.plan.launches[l], timed(preprocessing_),
              l == 0 && copied[0]() != nullptr ? &copied : nullptr);
    if (stream_.copies() != nullptr) stream_.queue.flush();
  });
}

// Lets the device read the planes where they are. An integrated GPU maps whole pages, if the buffer
// begins with one and ends with a cache line; planes that may share a page are in one buffer.
void DeviceRequest::lend(ImageInput& input) {
  const ocl::Context& context = *network_->context;
  const bool is_cpu = context.device.info.is_cpu;
  const uintptr_t page = is_cpu ? 1 : 4096, line = is_cpu ? 1 : 64;
  const auto sizes = plane_sizes(input.frame);
  const auto begin = [&](size_t p) { return reinterpret_cast<uintptr_t>(input.frame.planes[p]); };
  std::vector<size_t> planes;
  for (size_t p = 0; p < sizes.size(); ++p)
    if (sizes[p].rows > 0) planes.push_back(p);
  std::sort(planes.begin(), planes.end(), [&](size_t a, size_t b) { return begin(a) < begin(b); });
  for (size_t first = 0, next = 0; first < planes.size(); first = next) {
    const uintptr_t start = begin(planes[first]) / page * page;
    uintptr_t end = start;
    for (; next < planes.size() && (next == first || begin(planes[next]) / page * page < end);
         ++next)
      end = std::max(end, begin(planes[next]) + static_cast<uintptr_t>(sizes[planes[next]].bytes(
                                                    input.frame.strides[planes[next]])));
    const cl::Buffer buffer(context.context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR,
                            (end - start + line - 1) / line * line, reinterpret_cast<void*>(start));
    for (size_t i = first; i < next; ++i) {
      input.planes[planes[i]] = buffer;
      input.starts[planes[i]] = static_cast<int64_t>(begin(planes[i]) - start);
      input.plane_bytes[planes[i]] = 0;
    }
  }
}

// Brings the planes to the device, where they keep their layout: of a region its rows only. A CPU
// device and an integrated one read the frame where it is. Others fetch only from pinned memory
// beside other work: of memory of the application, NVIDIA's driver copies while it keeps its lock,
// and first waits, busily, for what is before it in the queue.
void DeviceRequest::upload(ImageInput& input) {
  const ocl::Context& context = *network_->context;
  if (context.device.info.is_cpu) return lend(input);
  try {
    if (context.device.info.is_integrated) return lend(input);
  } catch (const cl::Error&) {
    // Memory that it cannot map, as a camera's buffers may be: it is copied.
  }
  const auto sizes = plane_sizes(input.frame);
  const auto ranges = ranges_of_region(input.frame);
  const bool beside = stream_.copies() != nullptr;
  const cl::CommandQueue& queue = beside ? stream_.copies : stream_.queue;
  for (size_t p = 0; p < 3; ++p) {
    if (sizes[p].rows == 0) continue;
    const int stride = input.frame.strides[p];
    const uint8_t* const data = input.frame.planes[p];
    const auto all = static_cast<size_t>(sizes[p].bytes(stride));
    input.starts[p] = 0;
    if (input.plane_bytes[p] < all) {
      input.planes[p] = cl::Buffer(context.context, CL_MEM_READ_ONLY, all);
      input.pinned[p].reset();
      input.plane_bytes[p] = all;
    }
    const auto [begin, end] = ranges[p];
    const auto write = [&](size_t at, size_t bytes, const void* from) {
      queue.enqueueWriteBuffer(input.planes[p], CL_FALSE, at, bytes, from, nullptr,
                               timed(uploads_));
    };
    if (input.in_frame_memory || !network_->wants_frame_memory()) {
      write(begin, end - begin, data + begin);
      continue;
    }
    if (input.pinned[p] == nullptr)
      input.pinned[p] =
          std::make_unique<ocl::HostMemory>(context, stream_.queue, input.plane_bytes[p]);
    // While a part is on its way, the next one is copied.
    constexpr size_t kPart = size_t{1} << 19;
    for (size_t at = begin; at < end; at += kPart) {
      const size_t part = std::min(kPart, end - at);
      write(at, part, input.pinned[p]->write(at, data + at, part));
    }
  }
  if (!beside) return;
  queue.enqueueMarkerWithWaitList(nullptr, &input.copied);
  queue.flush();  // what waits on another queue must not wait for ever
}

void DeviceRequest::bind_frame(ImageInput& input, const ocl::Surface* surface,
                               const PlaneMemories* memories) {
  const auto sizes = plane_sizes(input.frame);
  const Edge target{network_->plan().graph->parameters[input.index], 0};
  const auto find = [&](const Argument& argument) -> BoundBuffer {
    switch (argument.kind) {
      case Argument::Kind::input: {
        if (memories != nullptr) return {memories->at(argument.index)->buffer(), 0};
        const size_t p = sizes[argument.index].rows ? argument.index : 0;
        return {input.planes[p], input.starts[p]};
      }
      case Argument::Kind::packed:
        return {input.packed.at(argument.index), 0};
      case Argument::Kind::image:
        return {{}, 0, surface->plane(argument.index)};
      default:
        return buffer_of(target);
    }
  };
  for (size_t l = 0; l < input.kernels.size(); ++l)
    bind_arguments(input.kernels[l], input.plan.launches[l], find);
}

Placement DeviceRequest::set_frame(size_t index, const Frame& frame,
                                   const FrameTransform& transform, size_t image,
                                   const FrameMemory* memory) {
  if (memory != nullptr) check_in_frame_memory(*network_->context, *memory, frame);
  const size_t target = network_input(index);
  const Placement placement = set_picture(target, frame, Source::host, {}, transform, image);
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
  const Placement placement = set_picture(target, frame, Source::surface, {}, transform, image);
  ImageInput& input = frames_.at({target, image});
  input.pending = false;
  const std::lock_guard lock(stream_.mutex);
  bind_frame(input, &own, nullptr);
  with_acquired(*network_->context, stream_.queue, own,
                [&](const cl::Event& acquired) { return enqueue_frame(input, acquired); });
  return placement;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading a VA surface");
}

cl::Event DeviceRequest::enqueue_frame(ImageInput& input, const cl::Event& acquired) {
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
      set_picture(target, picture, Source::memory, own.offsets, transform, image);
  ImageInput& input = frames_.at({target, image});
  input.pending = false;
  const std::lock_guard lock(stream_.mutex);
  bind_frame(input, nullptr, &own.memories);
  network_->external->with_acquired(stream_.queue, own.distinct(), [&](const cl::Event& acquired) {
    return enqueue_frame(input, acquired);
  });
  return placement;
} catch (const cl::Error& error) {
  ocl::rethrow(error, "reading imported memory");
}

}  // namespace clinfer
