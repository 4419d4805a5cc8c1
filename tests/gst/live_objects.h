// GStreamer's objects that are alive, by its leaks tracer (GST_TRACERS=leaks before gst_init()).
#pragma once

#include <gst/gst.h>

#include <string>
#include <vector>

#include "gst/base/handle.h"

namespace clinfer {

// Calls f(const GValue*) for each. Threads that are just ending may free an object meanwhile: only who knows that there
// are none may look into it.
template <typename F>
void for_each_live_object(const F& f) {
  gst_task_cleanup_all();  // threads that are just ending still hold their tasks
  GList* tracers = gst_tracing_get_active_tracers();
  for (GList* item = tracers; item != nullptr; item = item->next) {
    if (g_strcmp0(G_OBJECT_TYPE_NAME(item->data), "GstLeaksTracer") != 0) continue;
    GstStructure* live = nullptr;
    g_signal_emit_by_name(item->data, "get-live-objects", &live);
    if (live == nullptr) continue;
    const GValue* list = gst_structure_get_value(live, "live-objects-list");
    for (guint i = 0; list != nullptr && i < gst_value_list_get_size(list); ++i) {
      const GstStructure* info = gst_value_get_structure(gst_value_list_get_value(list, i));
      const GValue* object = gst_structure_get_value(info, "object");
      f(object);
      // The tracer took no reference, and yet freeing the list would release one that others hold.
      const_cast<GValue*>(object)->data[0].v_pointer = nullptr;
    }
    gst_structure_free(live);
  }
  g_list_free_full(tracers, gst_object_unref);
}

// One text for each of them, at the end of a program.
inline std::vector<std::string> live_objects() {
  std::vector<std::string> texts;
  for_each_live_object([&](const GValue* object) {
    const Handle<char> text(g_strdup_value_contents(object));
    texts.emplace_back(text.get());
  });
  return texts;
}

inline long count_live_objects() {
  long count = 0;
  for_each_live_object([&](const GValue*) { ++count; });
  return count;
}

}  // namespace clinfer
