// The results that can be read back from a buffer, as plain data. Coordinates are shares of
// the picture that viewers see (0 left or top, 1 right or bottom) unless they are said to be
// pixels.
#pragma once

#include <glib.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/heads/base/decoder.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {

// Values that several views and structures share without a copy; may be null.
using Bytes = std::shared_ptr<GBytes>;

// Returns the bytes of `values`, kept alive by `owner`.
template <typename Value, typename Owner>
Bytes bytes_of(const std::vector<Value>& values, std::shared_ptr<Owner> owner) {
  using Holder = std::shared_ptr<Owner>;
  return Bytes(g_bytes_new_with_free_func(
                   values.data(), values.size() * sizeof(Value),
                   [](gpointer holder) { delete static_cast<Holder*>(holder); },
                   new Holder(std::move(owner))),
               g_bytes_unref);
}
// Returns the bytes of `values`, which they keep alive.
template <typename Value>
Bytes bytes_of(std::vector<Value> values) {
  auto kept = std::make_shared<const std::vector<Value>>(std::move(values));
  return bytes_of(*kept, kept);
}
// Returns the number of whole values of this type; 0 for null.
template <typename Value>
size_t count_of(const Bytes& bytes) {
  return bytes == nullptr ? 0 : g_bytes_get_size(bytes.get()) / sizeof(Value);
}
// Returns the values in place; null if there are none, or the memory is not aligned for them.
template <typename Value>
const Value* values_of(const Bytes& bytes) {
  const void* data = bytes == nullptr ? nullptr : g_bytes_get_data(bytes.get(), nullptr);
  return reinterpret_cast<uintptr_t>(data) % alignof(Value) == 0 ? static_cast<const Value*>(data)
                                                                 : nullptr;
}

// The class of a map's cell of which nothing is known.
inline constexpr uint16_t kNoClass = 0xffff;

struct PictureBox {
  float x_min = 0, y_min = 0, x_max = 0, y_max = 0;
};

// held: repeated from an earlier frame
struct ClassificationView : Classification {
  std::string model;
  bool held = false;
};

struct TextView : RecognizedText {
  std::string model;
  bool held = false;
};

// A tensor, or a named vector.
struct TensorView {
  std::string name;
  std::string type;  // the engine's name of the element type: "f32"
  std::string model;
  std::vector<int> dims;
  Bytes data;  // null: the data is not attached
  bool held = false;
};

// Values of cells that divide a part of the picture evenly, row by row.
struct GridView {
  int columns = 0, rows = 0;
  PictureBox area;  // may reach beyond the picture
  Bytes values;     // columns * rows values
};

// The pixels of an object's box that belong to the object: those where the interpolated value is
// above `level`.
struct MaskView : GridView {  // values are float
  float level = 0.5f;
};

// Values are uint16_t (label_id, or kNoClass) for kind `classes`, else float (NaN: nothing is
// known).
struct MapView : GridView {
  std::string name, model;
  MapKind kind = MapKind::classes;
  std::vector<std::string> labels;  // by label_id; empty: unknown
};

// Results about a picture, or about a part of it, other than objects.
struct Answers {
  std::vector<ClassificationView> classifications;
  std::vector<TextView> texts;
  std::vector<TensorView> embeddings;
  std::vector<MapView> maps;
  std::vector<TensorView> tensors;

  bool empty() const {
    return classifications.empty() && texts.empty() && embeddings.empty() && maps.empty() &&
           tensors.empty();
  }
};

struct RegionView : Answers {
  int x = 0, y = 0, width = 0, height = 0;  // pixels of the visible picture; at least 1x1
  int id = 0, parent_id = 0;                // 0: none
  int analytics_id = -1;                    // of its object in GstAnalytics; -1: it has none
  bool has_roi = true;                      // a region of interest stands for it
  std::optional<uint64_t> track_id;
  bool predicted = false;          // by a tracker, on a frame on which no network looked for it
  std::vector<std::string> zones;  // names of the zones that the object is in
  std::string roi_type;
  bool has_detection = false;  // true: a network found it; false: `box` is the rectangle above
  bool held = false;           // from an earlier frame
  PictureBox box;
  double confidence = 0;
  std::optional<int> label_id;
  std::string label;  // empty: unknown
  std::string model;  // the model that found it; empty: unknown
  // Corners of an object that was found with an angle: clockwise, beginning with the object's own
  // top left corner.
  std::optional<std::array<Point, 4>> corners;
  Skeleton skeleton = Skeleton::none;  // which skeleton the key points belong to
  std::vector<KeyPoint> keypoints;
  std::vector<Point> landmarks;
  std::optional<MaskView> mask;
};

// The fate of a frame. run: the network was run on it. skipped: by choice, or for lack of time.
// late: it would have reached the sink too late. held: the results are those of an earlier frame.
enum class Outcome { run, skipped, late, held };
std::string_view name_of(Outcome outcome);  // "run", "skipped", "late", "held"
std::optional<Outcome> outcome_named(std::string_view name);

// The results of one element for a frame.
struct ResultView : Answers {
  Outcome outcome = Outcome::skipped;
  std::string model;
};

// An event of an object at a line or in a zone on this frame.
struct EventView {
  std::string type;       // "cross", "enter", "leave", "dwell"
  std::string zone;       // the name of the line or zone
  std::string direction;  // for "cross": "in" or "out"
  uint64_t track_id = 0;
  std::string label;
  std::optional<double> seconds;  // for "leave" and "dwell": time in the zone
};

// A line or zone with its counts up to this frame.
struct ZoneView {
  std::string name;
  bool is_line = false;
  std::vector<Point> points;
  // Numbers of objects that crossed in either direction, or that entered and left.
  uint64_t in = 0, out = 0;
  uint64_t inside = 0;  // for a zone: number of objects in it
};

// The results on a frame, in shares of the part of the picture that viewers see; the view does not
// tell where that part lies in the frame.
struct FrameView {
  std::vector<RegionView> regions;
  std::vector<ResultView> results;  // for each element that the frame has passed
  std::vector<ZoneView> zones;
  std::vector<EventView> events;
  // Objects of another element are regions of interest only, although GstAnalytics is available.
  bool has_roi_only = false;
};

// ---- geometry -----------------------------------------------------------------------------------

// Maps the coordinates of the picture `from` to those of the picture `to`; both are in pixels of
// one frame.
PointMap between(const Rect& from, const Rect& to);

// Returns a box's whole pixels in a picture of this size: at least one pixel, inside the picture.
Rect pixels_of(const PictureBox& box, int width, int height);

// Move to another picture of width x height pixels. move_region() returns false if the region lies
// outside, and then does not change it. If the map turns by other than quarter turns, a box gets
// corners, and grids get other cells, which enclose the turned ones.
bool move_region(RegionView& region, const PointMap& affine, int width, int height);
void move_answers(Answers& answers, const PointMap& affine);
void move_zone(ZoneView& zone, const PointMap& affine);

// Returns the rectangle with these corners in a picture of this size, in pixels. If the picture was
// squeezed, returns the rectangle closest to the slanted shape.
OrientedBox oriented_box(const std::array<Point, 4>& corners, int width, int height);

}  // namespace clinfer
