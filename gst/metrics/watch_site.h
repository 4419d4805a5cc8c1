// The page of clwatch and what it asks for: the cameras of a process, their last pictures, and
// their state as JSON.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gst/meta/views.h"
#include "gst/metrics/server.h"

namespace clinfer {

// The page, in HTML. It needs nothing from elsewhere.
extern const char* const kWatchPage;

// A camera's last frame and what happened on earlier ones. Thread-safe.
class WatchedCamera {
 public:
  // `element`: the clwatch of the camera, which outlives this object.
  WatchedCamera(GstElement* element, std::string name)
      : element_(element), name_(std::move(name)) {}

  // `jpeg`: the picture with the results drawn; `width`, `height`: its pixels.
  void add_frame(std::string jpeg, int width, int height, const FrameView& results);
  void end();  // the stream has ended

  // Returns the last picture if its number is not `seen`, and its number in `seen`; null if there
  // is no newer one.
  std::shared_ptr<const std::string> picture_after(uint64_t& seen) const;
  // Returns the state as a JSON object; `index`: the camera's place among those of the site.
  std::string state(size_t index) const;
  GstElement* element() const { return element_; }

 private:
  struct Event {
    uint64_t number = 0;
    double time = 0;  // seconds since 1970
    EventView view;
  };
  GstElement* const element_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::shared_ptr<const std::string> jpeg_;
  uint64_t frames_ = 0;
  int64_t last_us_ = 0;  // monotonic time of the last frame
  int width_ = 0, height_ = 0;
  bool ended_ = false;
  std::map<std::string, unsigned> objects_;  // on the last frame, by label
  std::vector<ZoneView> zones_;
  std::deque<Event> events_;  // the latest ones
  uint64_t event_count_ = 0;
};

// Serves all cameras of a process whose clwatch has the same port.
class WatchSite {
 public:
  // Throws Error if the port cannot be used.
  explicit WatchSite(unsigned port);

  void add(std::shared_ptr<WatchedCamera> camera);
  void remove(const std::shared_ptr<WatchedCamera>& camera);
  // Tells clients that there is a new picture.
  void wake() { server_.wake(); }

 private:
  using Seen = std::map<const WatchedCamera*, uint64_t>;  // numbers of pictures

  LocalServer::Reply answer(const std::string& path);
  // Returns the pictures of all cameras that are newer, as parts of a multipart reply, and their
  // numbers in `seen`; nothing if there are none.
  std::optional<std::string> newer_pictures(Seen& seen);

  std::mutex mutex_;
  std::vector<std::shared_ptr<WatchedCamera>> cameras_;
  LocalServer server_;  // made last and destroyed first
};

}  // namespace clinfer
