// Frame memory as GStreamer sees it, and when it is proposed.
#include "gst/frames/frame_memory.h"

#include <gst/video/gstvideopool.h>
#include <gtest/gtest.h>

#include "gst/base/handle.h"
#include "tests/gst/test_model.h"

namespace clinfer {
namespace {

std::shared_ptr<CompiledModel> compile() {
  return CompiledModel::compile(Model::read(testing_models::color_model()), {});
}

// A buffer of one memory.
Handle<GstBuffer> buffer_of(GstMemory* memory) {
  GstBuffer* buffer = gst_buffer_new();
  gst_buffer_append_memory(buffer, memory);
  return Handle<GstBuffer>(buffer);
}

TEST(FrameMemory, IsMappedSharedAndCopied) {
  const auto model = compile();
  const Handle<GstAllocator> allocator(new_frame_allocator(model));
  GstAllocationParams params;
  gst_allocation_params_init(&params);
  params.align = 255;
  params.prefix = 64;
  params.padding = 32;
  params.flags =
      static_cast<GstMemoryFlags>(GST_MEMORY_FLAG_ZERO_PREFIXED | GST_MEMORY_FLAG_ZERO_PADDED);
  GstMemory* memory = gst_allocator_alloc(allocator.get(), 1000, &params);
  ASSERT_NE(memory, nullptr);
  const Handle<GstBuffer> whole = buffer_of(memory);
  const FrameMemory* frames = frame_memory_of(whole.get());
  ASSERT_NE(frames, nullptr);
  EXPECT_TRUE(model->fetches_from(*frames));

  GstMapInfo mapped;
  ASSERT_TRUE(gst_memory_map(memory, &mapped, GST_MAP_READWRITE));
  EXPECT_EQ(mapped.size, 1000u);
  EXPECT_EQ(reinterpret_cast<guintptr>(mapped.data - 64) % 256, 0u);
  EXPECT_GE(reinterpret_cast<std::byte*>(mapped.data) - 64, frames->data());
  EXPECT_LE(reinterpret_cast<std::byte*>(mapped.data) + 1032, frames->data() + frames->bytes());
  for (int i = 0; i < 64; ++i) ASSERT_EQ(mapped.data[i - 64], 0);
  for (int i = 0; i < 32; ++i) ASSERT_EQ(mapped.data[1000 + i], 0);
  for (gsize i = 0; i < 1000; ++i) mapped.data[i] = static_cast<guint8>(i % 253);
  gst_memory_unmap(memory, &mapped);

  // A part of a part is still of the same memory; a copy is not.
  const Handle<GstBuffer> part(
      gst_buffer_copy_region(whole.get(), GST_BUFFER_COPY_MEMORY, 100, 500));
  const Handle<GstBuffer> of_part(
      gst_buffer_copy_region(part.get(), GST_BUFFER_COPY_MEMORY, 10, static_cast<gsize>(-1)));
  EXPECT_EQ(frame_memory_of(of_part.get()), frames);
  EXPECT_EQ(gst_buffer_get_size(of_part.get()), 490u);
  guint8 value = 0;
  gst_buffer_extract(of_part.get(), 7, &value, 1);
  EXPECT_EQ(value, 117);
  const Handle<GstBuffer> copy(gst_buffer_copy_deep(of_part.get()));
  EXPECT_EQ(frame_memory_of(copy.get()), nullptr);
  gst_buffer_extract(copy.get(), 7, &value, 1);
  EXPECT_EQ(value, 117);
}

TEST(FrameMemory, OutlivesTheModelAndTheAllocator) {
  auto model = compile();
  Handle<GstAllocator> allocator(new_frame_allocator(model));
  const Handle<GstBuffer> buffer = buffer_of(gst_allocator_alloc(allocator.get(), 4096, nullptr));
  model.reset();
  const Handle<GstBuffer> later = buffer_of(gst_allocator_alloc(allocator.get(), 4096, nullptr));
  allocator.reset();
  EXPECT_EQ(gst_buffer_memset(buffer.get(), 0, 5, 4096), 4096u);
  EXPECT_NE(frame_memory_of(buffer.get()), nullptr);
  EXPECT_EQ(gst_buffer_memset(later.get(), 0, 5, 4096), 4096u);
  EXPECT_EQ(frame_memory_of(later.get()), nullptr);
}

// A pool that keeps growing goes on in memory that the host can swap out, until some is given back.
TEST(FrameMemory, IsNotTakenWithoutEnd) {
  const auto model = compile();
  const Handle<GstAllocator> allocator(new_frame_allocator(model));
  constexpr gsize kSize = gsize{100} << 20;
  std::vector<Handle<GstBuffer>> buffers;
  const auto add = [&] {
    buffers.push_back(buffer_of(gst_allocator_alloc(allocator.get(), kSize, nullptr)));
    return frame_memory_of(buffers.back().get()) != nullptr;
  };
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(add()) << i;
  EXPECT_FALSE(add());
  buffers.erase(buffers.begin());
  EXPECT_TRUE(add());
}

class FrameMemoryProposal : public testing::Test {
 protected:
  ~FrameMemoryProposal() override { gst_query_unref(query_); }
  void add_pool(GstBufferPool* pool) {
    gst_query_add_allocation_pool(query_, pool, 100, 2, 0);
    gst_clear_object(&pool);
  }

  GstQuery* query_ = gst_query_new_allocation(nullptr, TRUE);
};

TEST_F(FrameMemoryProposal, TakesThePlaceOfPlainMemory) {
  EXPECT_TRUE(takes_any_memory(query_));
  add_pool(nullptr);
  add_pool(gst_video_buffer_pool_new());
  add_pool(gst_buffer_pool_new());
  GstAllocationParams params;
  gst_allocation_params_init(&params);
  params.align = 63;
  gst_query_add_allocation_param(query_, nullptr, &params);
  const Handle<GstAllocator> system(gst_allocator_find(GST_ALLOCATOR_SYSMEM));
  gst_query_add_allocation_param(query_, system.get(), nullptr);
  ASSERT_TRUE(takes_any_memory(query_));

  const Handle<GstAllocator> ours(new_frame_allocator(nullptr));
  propose_allocator(query_, ours.get());
  GstAllocator* first = nullptr;
  gst_query_parse_nth_allocation_param(query_, 0, &first, &params);
  EXPECT_EQ(first, ours.get());
  EXPECT_EQ(params.align, 63u);
  gst_clear_object(&first);
  EXPECT_EQ(gst_query_get_n_allocation_params(query_), 2u);
  EXPECT_FALSE(takes_any_memory(query_));  // another clinfer upstream leaves it as it is
}

TEST_F(FrameMemoryProposal, LeavesPoolsOfTheirOwnKind) {
  const GType type = g_type_register_static_simple(
      GST_TYPE_VIDEO_BUFFER_POOL, "OtherPool", sizeof(GstVideoBufferPoolClass), nullptr,
      sizeof(GstVideoBufferPool), nullptr, static_cast<GTypeFlags>(0));
  add_pool(GST_BUFFER_POOL(gst_object_ref_sink(g_object_new(type, nullptr))));
  EXPECT_FALSE(takes_any_memory(query_));
}

}  // namespace
}  // namespace clinfer
