// clmetrics: statistics of the process's pipelines for Prometheus.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

GType gst_clmetrics_get_type(void);
GST_ELEMENT_REGISTER_DECLARE(clmetrics)

G_END_DECLS
