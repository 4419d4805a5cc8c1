// Frames that are VA-API surfaces: where their display comes from, whether OpenCL can share them,
// and their images, which live as long as the surface's memory. va_surface.cpp is built where
// GStreamer's VA library is; without it no caps of surfaces are offered.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <string>

#include "engine/engine.h"

namespace clinfer {

#ifdef CLINFER_HAVE_VA
inline constexpr bool kHaveSurfaces = true;
#define CLINFER_SURFACE_CAPS GST_VIDEO_CAPS_MAKE_WITH_FEATURES("memory:VAMemory", "NV12") ";"
#else
inline constexpr bool kHaveSurfaces = false;
#define CLINFER_SURFACE_CAPS
#endif

bool is_surface_caps(const GstCaps* caps);

// Whether upstream may still come to agree on surfaces.
bool may_send_surfaces(GstPad* sink);

// A VA display, kept open.
struct SurfaceDisplay {
  VaDisplay display;
  std::shared_ptr<void> owner;
};

// From a neighbour or the application, by GstContext; null when nobody has one.
std::shared_ptr<const SurfaceDisplay> find_display(GstElement* element, GstPad* sink);
// Of a frame; `known` itself where it is that. Throws Error{bad_argument} when the buffer holds no
// surface, whatever its caps say.
std::shared_ptr<const SurfaceDisplay> display_of(
    GstBuffer* buffer, const std::shared_ptr<const SurfaceDisplay>& known);

// Writes a pattern into a surface through VA and reads both planes through OpenCL. "" when it comes
// back right, else what went wrong.
std::string test_sharing(const SurfaceDisplay& display, CompiledModel& model);

// The picture in a surface: size, crop and colours, without planes. Throws Error{bad_argument} for
// metas that lie, Error{unsupported} for a frame of two fields.
struct SurfacePicture {
  Frame frame;
  Rect visible;  // the part that viewers see
};
SurfacePicture surface_picture(GstBuffer* buffer, const GstVideoInfo& info);

// The surface's images for `model`, which compiled for its display: made at the surface's first
// frame, kept as long as its memory. Waits until what the decoder or others do to it is done.
// Throws what the drivers have against it.
std::shared_ptr<ImportedSurface> import_surface(GstBuffer* buffer, const SurfaceDisplay& display,
                                                const Frame& picture,
                                                const std::shared_ptr<CompiledModel>& model);

}  // namespace clinfer
