/* An application in C that plays what its arguments say until SIGINT, and ends in order. */
#include <glib-unix.h>
#include <gst/gst.h>

static gboolean stop(gpointer loop) {
  g_main_loop_quit(loop);
  return G_SOURCE_REMOVE;
}

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  GError* error = NULL;
  GstElement* pipeline = gst_parse_launchv((const gchar**)argv + 1, &error);
  if (error != NULL) {
    g_printerr("%s\n", error->message);
    return 2;
  }
  GMainLoop* loop = g_main_loop_new(NULL, FALSE);
  g_unix_signal_add(SIGINT, stop, loop);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  g_main_loop_run(loop);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pipeline);
  g_main_loop_unref(loop);
  return 0;
}
