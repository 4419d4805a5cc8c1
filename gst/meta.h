// Results on buffers: one GstVideoRegionOfInterestMeta an object, and one custom meta
// "ClinferResult" a frame and element that says whether the network ran and carries classifications
// and tensors. With GStreamer 1.24 or newer also GstAnalytics.
#pragma once

#include <gst/video/video.h>

#include <optional>
#include <string>
#include <vector>

#include "gst/decoders/decoder.h"
#include "kernels/preprocess.h"

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

struct FrameResult {
  bool ran = false;  // false: the network was not run on this frame
  std::string model;
  Results results;
  Placement placement;
  Rect visible;
};

// Adds the metas to a writable buffer. labels: names by label_id.
void attach_result(GstBuffer* buffer, const FrameResult& result,
                   const std::vector<std::string>& labels);

// What others read back.
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
};

// Every region of interest on the buffer, ours or another element's. width, height: of the visible
// picture.
std::vector<RegionView> read_regions(GstBuffer* buffer, int width, int height);

struct ResultView {
  bool ran = false;
  std::string model;
  std::vector<Classification> classifications;
  struct TensorView {
    std::string name, type;
    std::vector<int> dims;
  };
  std::vector<TensorView> tensors;
};

// One for each clinfer that the buffer passed.
std::vector<ResultView> read_results(GstBuffer* buffer);

}  // namespace clinfer
