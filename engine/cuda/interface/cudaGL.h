// GStreamer's headers about CUDA memory include this name; the types are in cuda.h beside it.
#pragma once
