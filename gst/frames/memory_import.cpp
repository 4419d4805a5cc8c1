// Imports frames in memory of other APIs.
#include "gst/frames/memory_import.h"

#include <gst/allocators/gstdmabuf.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "gst/base/unreadable_frame.h"
#include "gst/frames/mapped_frame.h"
#include "gst/frames/memory_data.h"

namespace clinfer {
namespace {

// The OpenCL buffers of one memory, attached to it as qdata and freed with it. A descriptor number
// cannot be the key, since the next memory may get the same one.
class MemoryBuffers {
 public:
  std::shared_ptr<ImportedMemory> get(GstMemory* memory, const MemoryKind& kind,
                                      const std::shared_ptr<CompiledModel>& model) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](const auto& entry) { return entry.first.expired(); });
    for (const auto& [owner, buffer] : entries_)
      if (owner.lock() == model) return buffer;
    auto buffer = model->import_memory(kind.handle, kind.descriptor(memory), memory->maxsize);
    entries_.emplace_back(model, buffer);
    return buffer;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::weak_ptr<CompiledModel>, std::shared_ptr<ImportedMemory>>> entries_;
};

constexpr int kPatience = 1000;  // in milliseconds

// Waits for the kernel's fences of a DMA-BUF: it polls as readable when no writer is active.
void wait_for_dmabuf(GstMemory* memory) {
  pollfd readable{gst_dmabuf_memory_get_fd(memory), POLLIN, 0};
  int ready = 0;
  do ready = poll(&readable, 1, kPatience);
  while (ready < 0 && errno == EINTR);
  if (ready != 1 || (readable.revents & POLLIN) == 0)
    throw Error{ErrorCode::device_failed, "the writer of a frame's DMA-BUF does not finish"};
}

}  // namespace

const MemoryKind& dmabuf_kind() {
  static const MemoryKind kind{MemoryHandle::dmabuf, "DMABuf",
                               [](GstMemory* memory) { return !!gst_is_dmabuf_memory(memory); },
                               wait_for_dmabuf, gst_dmabuf_memory_get_fd};
  return kind;
}

std::string MemoryImporter::problem() const {
  if (const std::string& known = model_->import_problem(kind_.handle); !known.empty()) return known;
  const std::lock_guard lock(mutex_);
  return problem_;
}

std::shared_ptr<ImportedMemory> MemoryImporter::memory_of(GstMemory* memory) const {
  kind_.wait_for_writer(memory);
  // Finds the whole memory, from whose beginning parts count their offset, and which lives longer.
  while (memory->parent != nullptr) memory = memory->parent;
  return data_of<MemoryBuffers>(memory, "clinfer-memory-buffers").get(memory, kind_, model_);
}

std::optional<MemoryImporter::Picture> MemoryImporter::import(GstBuffer* buffer,
                                                              const GstVideoInfo& info) {
  if (!model_->import_problem(kind_.handle).empty()) return {};
  if (const std::string known = problem(); !known.empty())
    throw Error{ErrorCode::device_failed, known};
  Picture picture;
  picture.frame = frame_of_info(info);
  const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
  check_meta(buffer, info);
  if (meta != nullptr) {
    picture.frame.width = static_cast<int>(meta->width);
    picture.frame.height = static_cast<int>(meta->height);
  }
  const guint planes = std::min<guint>(GST_VIDEO_INFO_N_PLANES(&info), 3);
  const std::array<PlaneSize, 3> sizes = plane_sizes(picture.frame);
  guint before = G_MAXUINT;  // memory of the previous plane
  for (guint p = 0; p < planes; ++p) {
    const bool told = meta != nullptr && p < meta->n_planes;
    picture.frame.strides[p] = told ? meta->stride[p] : GST_VIDEO_INFO_PLANE_STRIDE(&info, p);
    const gsize offset = told ? meta->offset[p] : GST_VIDEO_INFO_PLANE_OFFSET(&info, p);
    const int64_t bytes = sizes[p].bytes(picture.frame.strides[p]);
    guint at = 0, count = 0;
    gsize begin = 0;  // offset in the memory
    if (bytes <= 0 ||
        !gst_buffer_find_memory(buffer, offset, static_cast<gsize>(bytes), &at, &count, &begin) ||
        count != 1)
      throw Error{ErrorCode::bad_argument,
                  "plane " + std::to_string(p) + " of a frame does not lie in one memory"};
    GstMemory* memory = gst_buffer_peek_memory(buffer, at);
    if (!kind_.holds(memory))
      throw Error{ErrorCode::unsupported, std::string("a frame is not in ") + kind_.name};
    picture.planes.offsets[p] = memory->offset + begin;
    picture.planes.memories[p] = at == before ? picture.planes.memories[p - 1] : memory_of(memory);
    before = at;
  }
  picture.visible = visible_part(picture.frame.width, picture.frame.height, buffer);
  if (gst_buffer_get_video_crop_meta(buffer) != nullptr) picture.frame.region = picture.visible;

  const std::lock_guard lock(mutex_);
  if (!tested_) {
    tested_ = true;
    try {
      const MappedFrame mapped(buffer, info);
      Frame whole = picture.frame, expected = mapped.frame();
      whole.region = expected.region = {};
      const std::string wrong = model_->check_memory(picture.planes, whole, expected);
      if (!wrong.empty()) problem_ = "the first frame read wrong: " + wrong;
    } catch (const UnreadableFrame&) {
      tested_ = false;  // makes the next frame the test
      throw;
    } catch (const Error& error) {
      problem_ = std::string("the first frame could not be compared: ") + error.what();
    }
  }
  if (!problem_.empty()) throw Error{ErrorCode::device_failed, problem_};
  return picture;
}

}  // namespace clinfer
