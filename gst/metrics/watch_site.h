// The page of clwatch and what it asks for: the cameras of a process, their last pictures, and
// their state as JSON.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gst/meta/views.h"
#include "gst/metrics/server.h"
#include "gst/metrics/viewer.h"

namespace clinfer {

// The page, in HTML. It needs nothing from elsewhere.
extern const char* const kWatchPage;

// A camera's last frame and what happened on earlier ones. Thread-safe.
class WatchedCamera {
 public:
  // `element`: the clwatch of the camera, which outlives this object. `only_mjpeg`: why there is no
  // WebRTC; "" if there is.
  WatchedCamera(GstElement* element, std::string name, std::string only_mjpeg)
      : element_(element), name_(std::move(name)), only_mjpeg_(std::move(only_mjpeg)) {}

  // `jpeg`: the picture with the results drawn; `width`, `height`: its pixels.
  void add_frame(std::string jpeg, int width, int height, const FrameView& results);
  void end();  // the stream has ended

  // Returns the last picture if its number is not `seen`, and its number in `seen`; null if there
  // is no newer one.
  std::shared_ptr<const std::string> picture_after(uint64_t& seen) const;
  // Returns the state as a JSON object; `index`: the camera's place among those of the site.
  std::string state(size_t index) const;
  GstElement* element() const { return element_; }
  const std::string& only_mjpeg() const { return only_mjpeg_; }

 private:
  struct Event {
    uint64_t number = 0;
    double time = 0;  // seconds since 1970
    EventView view;
  };
  GstElement* const element_;
  const std::string name_, only_mjpeg_;
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
  struct Watching {
    std::string path;  // a DELETE of it ends this
    std::shared_ptr<const WatchedCamera> camera;
    std::unique_ptr<Viewer> viewer;
  };
  using Replied = std::function<void(const LocalServer::Reply&)>;

  LocalServer::Reply answer(const std::string& path);
  // Begins to send a camera's pictures by WebRTC.
  void begin(const std::string& path, const std::string& offer, const Replied& reply);
  LocalServer::Reply end(const std::string& path);
  // Sends new pictures to viewers, and forgets those that have left.
  void serve_viewers();
  // Returns the camera whose number follows `prefix` in a path, and what follows it in `rest`; null
  // if there is none. The caller locks.
  std::shared_ptr<WatchedCamera> find(std::string_view path, std::string_view prefix,
                                      std::string_view& rest) const;
  // Returns the pictures of all cameras that are newer, as parts of a multipart reply, and their
  // numbers in `seen`; nothing if there are none.
  std::optional<std::string> newer_pictures(Seen& seen);

  std::mutex mutex_;
  std::vector<std::shared_ptr<WatchedCamera>> cameras_;
  std::list<Watching> viewers_;  // used on the server's thread only
  uint64_t viewers_so_far_ = 0;
  LocalServer server_;  // made last and destroyed first
};

}  // namespace clinfer
