// Owning pointers for reference-counted objects of GStreamer and GLib.
#pragma once

#include <gst/gst.h>

#include <memory>

namespace clinfer {

struct Unref {
  void operator()(GstBuffer* buffer) const { gst_buffer_unref(buffer); }
  void operator()(GstEvent* event) const { gst_event_unref(event); }
  void operator()(GstQuery* query) const { gst_query_unref(query); }
  void operator()(GstContext* context) const { gst_context_unref(context); }
  void operator()(GstCaps* caps) const { gst_caps_unref(caps); }
  void operator()(GstStructure* structure) const { gst_structure_free(structure); }
  void operator()(GstElement* element) const { gst_object_unref(element); }
  void operator()(GstPad* pad) const { gst_object_unref(pad); }
  void operator()(GstObject* object) const { gst_object_unref(object); }
  void operator()(GstAllocator* allocator) const { gst_object_unref(allocator); }
  void operator()(GstBufferPool* pool) const { gst_object_unref(pool); }
  void operator()(GError* error) const { g_error_free(error); }
  void operator()(char* text) const { g_free(text); }
};

template <typename T>
using Handle = std::unique_ptr<T, Unref>;

}  // namespace clinfer
