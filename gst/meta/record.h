// The custom meta "ClinferResult": all results that clinfer elements attached to a frame, in one
// structure. It follows the frame through converters and scalers, which GStreamer's regions of
// interest do with their rectangles only; it gives the regions back the parameters that they lose
// on the way. docs/metadata.md lists its fields.
#pragma once

#include <gst/video/video.h>

#include <optional>
#include <string>
#include <vector>

#include "gst/meta/views.h"

namespace clinfer {

inline constexpr char kResultMeta[] = "ClinferResult";

// The part of a region's view that is in the buffer's structure of it.
enum class Stored {
  no,           // nothing, or something else
  but_for_new,  // all but parameters whose names are new
  all
};

struct RecordedRegion {
  RegionView view;
  std::vector<std::string> parameters;  // names of the structures that it was read from
  Stored stored = Stored::no;
};

struct Record {
  // The meta's structure that the record was read from, if it is one and the regions are still those in
  // it, in this order, with more after them perhaps; so are the lists below. Else null.
  GstStructure* source = nullptr;
  Rect picture;  // the part of the frame that the shares are of, in pixels of the frame
  std::vector<RecordedRegion> regions;
  std::vector<ResultView> results;
  std::vector<ZoneView> zones;
  std::vector<EventView> events;
};

// Registers the meta; once, before use.
void register_result_meta();

// Reads the record of a buffer. The contents of several metas (of joined buffers) are merged.
std::optional<Record> read_record(GstBuffer* buffer);

// Replaces what is on a writable buffer; where the record has its source there, only what is new is
// written. It comes after the regions of interest among the buffer's metas, because a converter
// treats them in their order.
void write_record(GstBuffer* buffer, const Record& record);

// Its regions, to be changed in place.
std::vector<RegionView*> views_of(Record& record);

// Moves all of a record into another picture; what lies outside of it is dropped.
void move_record(Record& record, const Affine& affine, const Rect& picture);

// Writes the record on the frame of another picture: the regions of interest there get the
// rectangles and parameters of the record's, and those that are missing are added.
void write_moved(GstBuffer* buffer, const Record& record);

// Removes the parameters of these names from a region of interest.
void remove_parameters(GstVideoRegionOfInterestMeta* roi, const std::vector<std::string>& names);

// Gives a region of interest the parameters that it does not have yet.
void add_parameters(GstVideoRegionOfInterestMeta* roi, const RegionView& view, const Rect& picture);

}  // namespace clinfer
