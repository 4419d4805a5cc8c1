// Frames that are VA-API surfaces: finds their display, tests whether OpenCL can share them, and
// makes their images, which live as long as the surface's memory. Needs GStreamer's VA library;
// without it no caps for surfaces are offered.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <string>

#include "engine/engine.h"

namespace clinfer {

#ifdef CLINFER_HAVE_VA
inline constexpr bool kHaveSurfaces = true;
#define CLINFER_SURFACE_CAPS \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES("memory:VAMemory", "{ NV12, P010_10LE }") ";"
#else
inline constexpr bool kHaveSurfaces = false;
#define CLINFER_SURFACE_CAPS
#endif

bool is_surface_caps(const GstCaps* caps);

// Returns whether negotiation with upstream may still result in surfaces.
bool may_send_surfaces(GstPad* sink);

// A VA display, kept open.
struct SurfaceDisplay {
  VaDisplay display;
  std::shared_ptr<void> owner;
};

// Returns the display that a neighbour or the application provides as a GstContext, or null.
std::shared_ptr<const SurfaceDisplay> find_display(GstElement* element, GstPad* sink);
// Returns the display of the buffer's surface; `known` if it is the same one. Throws
// Error{bad_argument} if the buffer has no surface, whatever its caps say; UnreadableFrame if it
// has no memory.
std::shared_ptr<const SurfaceDisplay> display_of(
    GstBuffer* buffer, const std::shared_ptr<const SurfaceDisplay>& known);

// Writes a pattern into a surface of `format` (nv12, p010) through VA and reads both planes through
// OpenCL. Returns "" if both agree, else the reason of the failure.
std::string test_sharing(const SurfaceDisplay& display, CompiledModel& model, PixelFormat format);

// The picture in a surface: size, crop and colours, without planes. Throws UnreadableFrame if a
// meta contradicts the surface, Error{unsupported} for an interlaced frame.
struct SurfacePicture {
  Frame frame;
  Rect visible;  // the part that viewers see
};
SurfacePicture surface_picture(GstBuffer* buffer, const GstVideoInfo& info);

// Returns the OpenCL images of the surface for `model`, which was compiled for its display. They
// are made at the surface's first frame and kept as long as its memory. Waits until the decoder or
// another writer has finished. Throws Error if a driver refuses the surface.
std::shared_ptr<ImportedSurface> import_surface(GstBuffer* buffer, const SurfaceDisplay& display,
                                                const Frame& picture,
                                                const std::shared_ptr<CompiledModel>& model);

}  // namespace clinfer
