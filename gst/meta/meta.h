// Results on buffers: one GstVideoRegionOfInterestMeta an object, and one custom meta
// "ClinferResult" a frame and element that says whether the network ran and carries classifications
// and tensors. With GStreamer 1.24 or newer also GstAnalytics.
#pragma once

#include <gst/video/video.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/heads/decoder.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {

inline constexpr char kResultMeta[] = "ClinferResult";

// Registers the custom meta; once, before use.
void register_result_meta();

// An object in the picture that viewers see: shares of its width and height, inside [0, 1].
struct PictureBox {
  float x_min = 0, y_min = 0, x_max = 0, y_max = 0;
};

// From network pixels to the visible picture, clipped; nothing when it lies outside.
std::optional<PictureBox> to_picture(const Detection& detection, const Placement& placement,
                                     const Rect& visible);

// Whether the network was run on a frame, and if not, why: by choice or for want of time (skipped),
// or because the sink would have got it too late (late).
enum class Outcome { run, skipped, late };
std::string_view name_of(Outcome outcome);  // "run", "skipped", "late"

// A part of a frame to infer: all of it, or one of the regions on its buffer.
struct InferenceRegion {
  std::optional<size_t> index;  // among the buffer's GstVideoRegionOfInterestMeta
  Rect rect;                    // pixels of the frame; width 0: all of it
};

// The regions on a buffer whose label is among `object_class` (comma separated; empty: any),
// clipped to `visible`; those that lie outside are left out.
std::vector<InferenceRegion> regions_to_infer(GstBuffer* buffer, const Rect& visible,
                                              const std::string& object_class);

// What the network says of one part.
struct PartResult {
  Results results;
  Placement placement;
  std::optional<size_t> region;  // InferenceRegion::index
};

struct FrameResult {
  Outcome outcome = Outcome::skipped;
  std::string model;
  std::vector<PartResult> parts;
  Rect visible;
};

// Adds the metas to a writable buffer. labels: names by label_id. Objects become regions of
// interest (with parent_id, when they were found in a region). Classifications and tensors of the
// whole frame go into the frame's meta; those of a region become parameters `classification` and
// `tensor` of it.
void attach_result(GstBuffer* buffer, const FrameResult& result,
                   const std::vector<std::string>& labels);

// What others read back.
struct ClassificationView : Classification {
  std::string model;
};
struct TensorView {
  std::string name, type, model;
  std::vector<int> dims;
};

struct RegionView {
  int x = 0, y = 0, width = 0, height = 0;  // pixels of the visible picture
  int id = 0, parent_id = 0;                // 0: none
  std::string roi_type;
  bool has_detection =
      false;  // a `detection` parameter was there; else the box comes from the rectangle
  PictureBox box;
  double confidence = 0;
  std::optional<int> label_id;
  std::string label;  // empty: unknown
  std::vector<ClassificationView> classifications;
  std::vector<TensorView> tensors;
};

// Every region of interest on the buffer, ours or another element's. width, height: of the visible
// picture.
std::vector<RegionView> read_regions(GstBuffer* buffer, int width, int height);

struct ResultView {
  Outcome outcome = Outcome::skipped;
  std::string model;
  std::vector<ClassificationView> classifications;
  std::vector<TensorView> tensors;
};

// One for each clinfer that the buffer passed.
std::vector<ResultView> read_results(GstBuffer* buffer);

}  // namespace clinfer
