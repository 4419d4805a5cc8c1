// Selects the objects that the application wants and the parts of a frame that the network gets,
// and merges the results of tiles into one picture's results.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gst/base/extents.h"
#include "gst/infer/settings/settings.h"
#include "gst/meta/meta.h"

namespace clinfer {

// The rules of the properties classes, thresholds, min-size, max-size, regions, tiles,
// region-reach, region-shift, region-turn, region-margin, region-shape and motion-regions.
// Immutable.
class ObjectRules {
 public:
  ObjectRules() = default;  // every object, the whole frame
  // Throws Error{bad_argument}, which names the property and what it accepts.
  explicit ObjectRules(const Settings& settings);

  // Returns the parts of a frame that the network gets, in pixels of the frame: tiles or regions.
  // Empty: the whole frame, or the regions on the buffer.
  std::vector<Rect> parts(const Rect& visible) const;
  bool has_regions() const { return !regions_.empty(); }
  // Returns the regions that lie outside of the picture, as they were written.
  std::vector<std::string> regions_outside(const Rect& visible) const;
  // Returns the areas where motion counts, in pixels of the frame. Empty: everywhere.
  std::vector<Rect> motion_regions(const Rect& visible) const;
  bool has_tiles() const { return tiles_.has_value(); }
  // Changes a region on a buffer to the part of the picture that the network gets: around its
  // landmarks, shifted, turned, with its margin and in the wanted shape. A part that reaches beyond
  // the picture has an angle, if only 0, so that Frame fills it. `pixel_aspect`: width of a pixel
  // over its height; `orientation` makes the picture upright.
  void place(InferenceRegion& region, const Rect& visible, double pixel_aspect,
             const Orientation& orientation) const;

  // Returns thresholds for decoding that keep all objects on which keep_wanted() decides.
  DecodeSettings decoding(const DecodeSettings& settings) const;
  // Merges objects across tiles and removes unwanted ones. `rects`: the area of each part;
  // `settings`: as the user set them. A label_id without a name in `labels` goes by its number.
  void keep_wanted(std::vector<PartResult>& parts, const std::vector<Rect>& rects,
                   const Rect& visible, const std::vector<std::string>& labels,
                   const DecodeSettings& settings) const;

  // Returns names in classes and thresholds that are none of these labels.
  std::vector<std::string> unknown_names(const std::vector<std::string>& labels) const;

 private:
  struct Area {
    Extent x, y, width, height;
    std::string text;  // as the user wrote it
  };
  struct Tiles {
    int columns = 1, rows = 1;
    double overlap = 0.2;  // as a share of a tile's size
  };
  // The direction that the way from one landmark to another has after the turn.
  struct Turn {
    size_t from = 0, to = 0;
    int x = 0, y = -1;     // up
    bool quarter = false;  // true: by the nearest quarter turn
  };
  // A way in pixels as they are shown.
  struct Way {
    double x = 0, y = 0;
  };
  static std::optional<Way> way(std::span<const Point> landmarks, size_t from, size_t to,
                                const Rect& visible, double pixel_aspect);
  Orientation quarter_turn(Way way, const Orientation& orientation) const;
  float angle(Way way, const Orientation& orientation) const;
  static std::optional<Turn> turn_in(const std::string& text);
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
  // A shift in shares of a region's width and height, or by `along` of its longer side from one
  // landmark towards another.
  struct Shift {
    double x = 0, y = 0, along = 0;
    size_t from = 0, to = 0;
  };
  Shift shift_;
  // The landmark around which a region is a square, and the one in the middle of a side.
  std::optional<std::pair<size_t, size_t>> reach_;
  std::optional<Turn> turn_;
  double margin_x_ = 0, margin_y_ = 0;  // shares of a region's width and height, on each side
  bool square_ = false;
};

// Joins objects that a seam cut in two, or that two tiles both saw. Each part belongs to a tile of
// the picture, which overlaps its neighbours.
void merge_tiles(std::vector<PartResult>& parts, const std::vector<Rect>& tiles,
                 float iou_threshold);

}  // namespace clinfer
