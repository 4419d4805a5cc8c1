// The element dmabuftestupload.
#pragma once

#include <gst/gst.h>

gboolean rig_register_dmabuf_upload(GstPlugin* plugin);
