// The custom meta "ClinferResult": all results that clinfer elements attached to a frame, in one
// structure. It follows the frame through converters and scalers, which keep only the rectangles of
// GStreamer's regions of interest, and gives the regions back the parameters that they lose there.
// docs/metadata.md lists its fields.
#pragma once

#include <gst/video/video.h>

#include <optional>
#include <string>
#include <vector>

#include "gst/meta/views.h"

namespace clinfer {

inline constexpr char kResultMeta[] = "ClinferResult";

// The part of a region's view that the buffer's structure has already.
enum class Stored {
  no,           // none, or outdated
  but_for_new,  // all except parameters with new names
  all
};

struct RecordedRegion {
  RegionView view;
  std::vector<std::string> parameters;  // names of the structures from which it was read
  Stored stored = Stored::no;
};

struct Record {
  // The meta's structure from which the record was read, if there is only one and its regions are
  // still the first ones of `regions`, in this order; the same holds for the lists below. Else
  // null.
  GstStructure* source = nullptr;
  Rect picture;  // the part of the frame that the shares refer to, in pixels of the frame
  std::vector<RecordedRegion> regions;
  std::vector<ResultView> results;
  std::vector<ZoneView> zones;
  std::vector<EventView> events;
};

// Registers the meta. To be called once, before use.
void register_result_meta();

// Reads the record of a buffer. Merges the contents of several metas (of joined buffers).
std::optional<Record> read_record(GstBuffer* buffer);

// Replaces the record on a writable buffer; if the record's source is there, writes only what is
// new. The meta is placed after the regions of interest, because a converter handles metas in their
// order.
void write_record(GstBuffer* buffer, const Record& record);

// Returns pointers to its regions, which may be changed.
std::vector<RegionView*> views_of(Record& record);

// Moves all of a record to another picture, and drops what lies outside of it.
void move_record(Record& record, const PointMap& affine, const Rect& picture);

// Writes the record on a frame of another picture. The regions of interest there get the rectangles
// and parameters of the record's; missing ones are added.
void write_moved(GstBuffer* buffer, const Record& record);

// Removes the parameters of these names from a region of interest.
void remove_parameters(GstVideoRegionOfInterestMeta* roi, const std::vector<std::string>& names);

// Gives a region of interest the parameters that it does not have yet.
void add_parameters(GstVideoRegionOfInterestMeta* roi, const RegionView& view, const Rect& picture);

}  // namespace clinfer
