// clcrop: gives the regions of frames as buffers of their own.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

GType gst_clcrop_get_type(void);
GST_ELEMENT_REGISTER_DECLARE(clcrop)

G_END_DECLS
