// clinferfilter: a network whose output is a picture, as a video filter.
#pragma once

#include <gst/gst.h>

GST_ELEMENT_REGISTER_DECLARE(clinferfilter)
