// Quality-of-service events: finds which frames would come too late.
#pragma once

#include <gst/gst.h>

#include <algorithm>

namespace clinfer {

// Returns the running time up to which frames would come too late, after a frame of `timestamp`
// came `jitter` nanoseconds late. Allows for the same delay again, but for at most a second,
// because a frame with a wrong time is late by hours. A negative jitter tells how much too early it
// was. The result is a valid time for every event.
inline GstClockTime earliest_in_time(GstClockTime timestamp, GstClockTimeDiff jitter) {
  if (jitter < 0) {
    const GstClockTime early = GST_CLOCK_TIME_NONE - static_cast<GstClockTime>(jitter) + 1;
    return timestamp - std::min(early, timestamp);
  }
  const auto by = static_cast<GstClockTime>(jitter);
  const GstClockTime late = by + std::min<GstClockTime>(by, GST_SECOND);
  constexpr GstClockTime kLast = GST_CLOCK_TIME_NONE - 1;
  return late > kLast - timestamp ? kLast : timestamp + late;
}

// Returns the difference in the form of GStreamer's messages.
inline GstClockTimeDiff difference(GstClockTime from, GstClockTime to) {
  constexpr auto kMost = static_cast<GstClockTime>(G_MAXINT64);
  return to >= from ? static_cast<GstClockTimeDiff>(std::min(to - from, kMost))
                    : -static_cast<GstClockTimeDiff>(std::min(from - to, kMost));
}

}  // namespace clinfer
