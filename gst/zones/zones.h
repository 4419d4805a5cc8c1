// clzones: counts tracked objects that cross lines and visit zones.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

GType gst_clzones_get_type(void);
GST_ELEMENT_REGISTER_DECLARE(clzones)

G_END_DECLS
