// cltrack: gives objects ids that stay the same from frame to frame.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

GType gst_cltrack_get_type(void);
GST_ELEMENT_REGISTER_DECLARE(cltrack)

G_END_DECLS
