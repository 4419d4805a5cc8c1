// clwatch: pictures, counts and times of cameras on a page on this machine.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

GType gst_clwatch_get_type(void);
GST_ELEMENT_REGISTER_DECLARE(clwatch)

G_END_DECLS
