// GoogleTest under GStreamer's leaks tracer: a GstObject or GstMiniObject that outlives the tests
// fails the program.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "gst/base/log.h"
#include "gst/meta/meta.h"

namespace {

// Objects of the elements' kinds that are still alive.
int count_leaks() {
  int leaks = 0;
  GList* tracers = gst_tracing_get_active_tracers();
  for (GList* item = tracers; item != nullptr; item = item->next) {
    if (g_strcmp0(G_OBJECT_TYPE_NAME(item->data), "GstLeaksTracer") != 0) continue;
    GstStructure* live = nullptr;
    g_signal_emit_by_name(item->data, "get-live-objects", &live);
    const GValue* list =
        live != nullptr ? gst_structure_get_value(live, "live-objects-list") : nullptr;
    for (guint i = 0; list != nullptr && i < gst_value_list_get_size(list); ++i) {
      const GstStructure* info = gst_value_get_structure(gst_value_list_get_value(list, i));
      const GValue* object = gst_structure_get_value(info, "object");
      gchar* text = g_strdup_value_contents(object);
      std::printf("still alive: %s\n", text);
      g_free(text);
      ++leaks;
    }
    if (live != nullptr) gst_structure_free(live);
  }
  g_list_free_full(tracers, gst_object_unref);
  return leaks;
}

}  // namespace

int main(int argc, char** argv) {
  g_setenv("GST_TRACERS", "leaks", TRUE);
  gst_init(&argc, &argv);
  clinfer::init_log();
  clinfer::register_result_meta();
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  gst_task_cleanup_all();  // threads that are just ending still hold their tasks
  const int leaks = count_leaks();
  if (leaks != 0) std::printf("%d objects leaked\n", leaks);
  return result != 0 || leaks != 0 ? 1 : 0;
}
