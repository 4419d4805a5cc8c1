// cloverlay: draws boxes, labels and scores into the frames, in place.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

GType gst_cloverlay_get_type(void);
GST_ELEMENT_REGISTER_DECLARE(cloverlay)

G_END_DECLS
