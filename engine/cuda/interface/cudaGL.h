// GStreamer's headers about memory of CUDA include this name; cuda.h beside it has the types.
#pragma once
