// clinfer: runs a neural network on video frames and attaches what it finds. The GObject shell
// around element.h.
#pragma once

#include <gst/gst.h>

#include "gst/infer/element.h"

struct GstClinfer {
  GstElement parent;
  clinfer::Element* element;  // from init to finalize; null if there was no memory for it
};

struct GstClinferClass {
  GstElementClass parent_class;
};

GType gst_clinfer_get_type(void);
GST_ELEMENT_REGISTER_DECLARE(clinfer)

#define GST_CLINFER(object) (reinterpret_cast<GstClinfer*>(object))
