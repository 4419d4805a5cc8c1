// clpublish: passes frames on and writes their results as JSON lines.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

GType gst_clpublish_get_type(void);
GST_ELEMENT_REGISTER_DECLARE(clpublish)

G_END_DECLS
