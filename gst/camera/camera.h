// clcamera: decoded pictures of a camera or a video that comes back after it failed.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

GType gst_clcamera_get_type(void);
GST_ELEMENT_REGISTER_DECLARE(clcamera)

G_END_DECLS
