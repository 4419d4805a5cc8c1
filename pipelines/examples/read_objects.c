/* Reads clinfer's objects in C, as regions of interest with parameters.
 *
 *   cc read_objects.c -o read_objects $(pkg-config --cflags --libs gstreamer-1.0 gstreamer-video-1.0)
 *   ./read_objects 'videotestsrc pattern=ball num-buffers=3 ! clinfer model=ball.xml ! fakesink name=sink'
 *
 * The line has an element named "sink", where the frames are looked at. Nothing of clinfer's own is needed to build this.
 */
#include <gst/gst.h>
#include <gst/video/video.h>

/* One structure for each thing that is known of an object: "detection", then one for each output of further networks. */
static void show_parameter(const GstStructure *parameter) {
  gdouble confidence = 0, x = 0, y = 0;
  const gchar *label = gst_structure_get_string(parameter, "label");
  const gchar *model = gst_structure_get_string(parameter, "model_name");
  gst_structure_get_double(parameter, "confidence", &confidence);
  if (gst_structure_has_name(parameter, "detection") &&
      gst_structure_get(parameter, "x_min", G_TYPE_DOUBLE, &x, "y_min", G_TYPE_DOUBLE, &y, NULL))
    g_print("  detection: %s %.2f at %.3f %.3f of the picture\n", label ? label : "?", confidence, x, y);
  else if (label != NULL)
    g_print("  %s: %s %.2f (%s)\n", gst_structure_get_name(parameter), label, confidence, model ? model : "?");
  else
    g_print("  %s\n", gst_structure_get_name(parameter));
}

static GstPadProbeReturn on_frame(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  gpointer state = NULL;
  GstMeta *meta;
  (void)pad, (void)data;
  while ((meta = gst_buffer_iterate_meta_filtered(buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE))) {
    GstVideoRegionOfInterestMeta *region = (GstVideoRegionOfInterestMeta *)meta;
    g_print("object %d of %d: %s, %ux%u pixels at %u,%u\n", region->id, region->parent_id,
            g_quark_to_string(region->roi_type), region->w, region->h, region->x, region->y);
    for (GList *item = region->params; item != NULL; item = item->next) show_parameter(item->data);
  }
  return GST_PAD_PROBE_OK;
}

int main(int argc, char **argv) {
  GError *error = NULL;
  gst_init(&argc, &argv);
  if (argc != 2) {
    g_printerr("usage: %s 'SOURCE ! clinfer model=M.xml ! SINK name=sink'\n", argv[0]);
    return 2;
  }
  GstElement *pipeline = gst_parse_launch(argv[1], &error);
  GstElement *sink = pipeline != NULL && GST_IS_BIN(pipeline) ? gst_bin_get_by_name(GST_BIN(pipeline), "sink") : NULL;
  if (error != NULL || sink == NULL) {
    g_printerr("%s\n", error != NULL ? error->message : "the line has no element with name=sink");
    return 2;
  }
  GstPad *pad = gst_element_get_static_pad(sink, "sink");
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, NULL, NULL);
  gst_object_unref(pad);
  gst_object_unref(sink);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstBus *bus = gst_element_get_bus(pipeline);
  GstMessage *message = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  int status = 0;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    gst_message_parse_error(message, &error, NULL);
    g_printerr("%s\n", error->message);
    g_error_free(error);
    status = 1;
  }
  gst_message_unref(message);
  gst_object_unref(bus);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pipeline);
  return status;
}
