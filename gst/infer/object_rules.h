// Selects the objects that the application wants and the parts of a frame that the network gets,
// and makes one picture's results of those of tiles.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gst/base/extents.h"
#include "gst/infer/settings.h"
#include "gst/meta/meta.h"

namespace clinfer {

// Parsed from the properties classes, thresholds, min-size, max-size, regions, tiles, region-shift,
// region-turn, region-margin, region-shape and motion-regions. Immutable.
class ObjectRules {
 public:
  ObjectRules() = default;  // every object, the whole frame
  // Throws Error{bad_argument} that names the property and what it takes.
  explicit ObjectRules(const Settings& settings);

  // The parts of a frame that the network gets, in pixels of the frame: tiles or regions. Empty:
  // the whole frame, or the regions on the buffer.
  std::vector<Rect> parts(const Rect& visible) const;
  bool has_regions() const { return !regions_.empty(); }
  // The regions that lie outside of the picture, as they were written.
  std::vector<std::string> regions_outside(const Rect& visible) const;
  // Where motion counts, in pixels of the frame. Empty: everywhere.
  std::vector<Rect> motion_regions(const Rect& visible) const;
  bool has_tiles() const { return tiles_.has_value(); }
  // The part of the picture that the network gets for a region: shifted, with its margin and in the
  // wanted shape, as far as it lies in the picture. pixel_aspect: width of a pixel over its height;
  // landmarks: the region's, in shares of the visible picture.
  Rect around(const Rect& region, const Rect& visible, double pixel_aspect,
              std::span<const Point> landmarks = {}) const;
  // The quarter turn after which a region's landmarks lie upright, in a picture that `orientation` makes
  // upright.
  Orientation turn_of(std::span<const Point> landmarks, const Rect& visible, double pixel_aspect,
                      const Orientation& orientation) const;

  // Thresholds for decoding that let through what keep_wanted() decides on.
  DecodeSettings decoding(const DecodeSettings& settings) const;
  // Merges objects across tiles and removes what is not wanted. rects: what each part was made of;
  // settings: as the user has them. label_id without a name in `labels` counts by its number.
  void keep_wanted(std::vector<PartResult>& parts, const std::vector<Rect>& rects,
                   const Rect& visible, const std::vector<std::string>& labels,
                   const DecodeSettings& settings) const;

  // Names in classes and thresholds that are none of these labels.
  std::vector<std::string> unknown_names(const std::vector<std::string>& labels) const;

 private:
  struct Area {
    Extent x, y, width, height;
    std::string text;  // as it was written
  };
  struct Tiles {
    int columns = 1, rows = 1;
    double overlap = 0.2;  // of a tile's size
  };
  static std::vector<Area> areas_in(const char* property, const std::string& text);
  static std::optional<Rect> rect_of(const Area& area, const Rect& visible);
  bool is_wanted(const Detection& detection, const Placement& placement, const Rect& visible,
                 const std::vector<std::string>& labels, float threshold) const;
  bool filters() const;

  std::vector<std::string> classes_;
  std::map<std::string, double> thresholds_;
  std::optional<std::pair<Extent, Extent>> least_, most_;
  std::vector<Area> regions_, motion_regions_;
  std::optional<Tiles> tiles_;
  // Shares of a region's width and height; or `along` of its longer side from a landmark towards another.
  struct Shift {
    double x = 0, y = 0, along = 0;
    size_t from = 0, to = 0;
  };
  Shift shift_;
  std::optional<std::pair<size_t, size_t>> upright_;  // landmarks: from below to above
  double margin_x_ = 0, margin_y_ = 0;  // shares of a region's width and height, on each side
  bool square_ = false;
};

// Objects that a seam cut in two, or that two tiles both saw, become one. Each part is of a tile of
// the picture, overlapping its neighbours.
void merge_tiles(std::vector<PartResult>& parts, const std::vector<Rect>& tiles,
                 float iou_threshold);

}  // namespace clinfer
