// Answers the requests of clwatch's page.
#include "gst/metrics/watch_site.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "gst/base/handle.h"
#include "gst/base/json.h"
#include "gst/metrics/elements.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

constexpr size_t kMostEvents = 50;
constexpr char kBoundary[] = "clinfer-frame";
constexpr char kText[] = "text/plain; charset=utf-8";
// Each one encodes for itself, which takes a share of a processor.
constexpr size_t kMostViewers = 16;

void write_number(JsonWriter& json, const GstStructure* stats, const char* field,
                  const char* name) {
  double number = 0;
  if (number_of(stats, field, number)) json.key(name).value(number);
}

const std::string& boundary_line() {
  static const auto& line = *new std::string(std::string("--") + kBoundary + "\r\n");
  return line;
}

// Returns a picture as a part of a multipart reply. The boundary behind it is sent with it, since
// browsers show a picture when that has come.
std::string part_of(const std::string& jpeg, const std::string& headers = "") {
  return headers + "Content-Type: image/jpeg\r\nContent-Length: " + std::to_string(jpeg.size()) +
         "\r\n\r\n" + jpeg + "\r\n" + boundary_line();
}

// Writes what a clinfer element says of itself, unless it has not loaded its model yet.
void write_model(JsonWriter& json, const GstStructure* stats) {
  json.begin_object();
  for (const char* field : {"model", "device", "precision", "tier", "path"})
    if (const std::string text = string_of(stats, field); !text.empty())
      json.key(field).value(text);
  for (const auto& [field, name] : {std::pair("inferred", "inferred"),
                                    {"skipped", "skipped"},
                                    {"dropped", "dropped"},
                                    {"batches", "batches"},
                                    {"images", "images"}})
    write_number(json, stats, field, name);
  json.key("stages").begin_object();
  for (const std::string stage : {"motion", "queue", "infer", "decode"}) {
    double number = 0;
    if (!number_of(stats, (stage + "-p50-ms").c_str(), number)) continue;
    json.key(stage).begin_object();
    for (const char* percentile : {"p50", "p95", "p99"})
      write_number(json, stats, (stage + "-" + percentile + "-ms").c_str(), percentile);
    json.end_object();
  }
  json.end_object().end_object();
}

// Writes the models through which the frames of `camera` pass, and what keeps its source (a
// clcamera) from giving any.
void write_elements(JsonWriter& json, GstElement* camera) {
  Handle<GstObject> top(GST_OBJECT(gst_object_ref(camera)));
  while (GstObject* parent = gst_object_get_parent(top.get())) top.reset(parent);
  const std::string source = camera_of(camera);
  std::string problem;
  double retry_ms = 0, failures = 0;
  json.key("models").begin_array();
  if (GST_IS_BIN(top.get()))
    for_each(gst_bin_iterate_recurse(GST_BIN(top.get())), [&](gpointer object) {
      const GParamSpec* property =
          g_object_class_find_property(G_OBJECT_GET_CLASS(object), "stats");
      if (property == nullptr || property->value_type != GST_TYPE_STRUCTURE) return;
      GstStructure* stats = nullptr;
      g_object_get(object, "stats", &stats, nullptr);
      const Handle<GstStructure> owner(stats);
      if (stats == nullptr) return;
      if (gst_structure_has_name(stats, "clinfer-stats") &&
          camera_of(GST_ELEMENT(object)) == source) {
        write_model(json, stats);
      } else if (gst_structure_has_name(stats, "clcamera-stats") && name_of(object) == source) {
        problem = string_of(stats, "problem");
        number_of(stats, "retry-in-ms", retry_ms);
        number_of(stats, "failures", failures);
      }
    });
  json.end_array();
  json.key("problem").value(problem).key("retry_seconds").value(retry_ms / 1000);
  json.key("failures").value(static_cast<uint64_t>(failures));
}

}  // namespace

void WatchedCamera::add_frame(std::string jpeg, int width, int height, const FrameView& results) {
  std::map<std::string, unsigned> objects;
  for (const RegionView& region : results.regions)
    if (region.has_detection || region.track_id)
      ++objects[region.label.empty() ? region.roi_type : region.label];
  auto picture = std::make_shared<const std::string>(std::move(jpeg));
  const double now = static_cast<double>(g_get_real_time()) / 1e6;
  const std::lock_guard lock(mutex_);
  jpeg_ = std::move(picture);
  ++frames_;
  last_us_ = g_get_monotonic_time();
  width_ = width;
  height_ = height;
  ended_ = false;
  objects_ = std::move(objects);
  zones_ = results.zones;
  for (const EventView& event : results.events) events_.push_front({++event_count_, now, event});
  while (events_.size() > kMostEvents) events_.pop_back();
}

void WatchedCamera::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

std::shared_ptr<const std::string> WatchedCamera::picture_after(uint64_t& seen) const {
  const std::lock_guard lock(mutex_);
  if (seen == frames_) return nullptr;
  seen = frames_;
  return jpeg_;
}

std::string WatchedCamera::state(size_t index) const {
  JsonWriter json;
  json.begin_object().key("name").value(name_);
  json.key("picture").value("/pictures/" + std::to_string(index));
  // Where the page sends its offer.
  if (only_mjpeg_.empty()) json.key("webrtc").value("/webrtc/" + std::to_string(index));
  json.key("only_mjpeg").value(only_mjpeg_);
  {
    const std::lock_guard lock(mutex_);
    json.key("frames").value(frames_).key("width").value(width_).key("height").value(height_);
    json.key("age").value(
        frames_ == 0 ? -1. : static_cast<double>(g_get_monotonic_time() - last_us_) / 1e6);
    json.key("ended").raw(ended_ ? "true" : "false");
    json.key("objects").begin_object();
    for (const auto& [label, count] : objects_) json.key(label).value(uint64_t{count});
    json.end_object().key("zones").begin_array();
    for (const ZoneView& zone : zones_) {
      json.begin_object().key("name").value(zone.name).key("in").value(zone.in);
      json.key("out").value(zone.out).key("line").raw(zone.is_line ? "true" : "false");
      json.key("inside").value(zone.inside).end_object();
    }
    json.end_array().key("events").begin_array();
    for (const Event& event : events_) {
      json.begin_object().key("number").value(event.number).key("time").value(event.time);
      json.key("type").value(event.view.type).key("zone").value(event.view.zone);
      json.key("direction").value(event.view.direction).key("label").value(event.view.label);
      json.key("track").value(event.view.track_id);
      if (event.view.seconds) json.key("seconds").value(*event.view.seconds);
      json.end_object();
    }
    json.end_array();
  }
  write_elements(json, element_);
  return json.end_object().text();
}

std::optional<std::string> WatchSite::newer_pictures(Seen& seen) {
  Seen now;  // without cameras that have gone
  std::string parts;
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < cameras_.size(); ++i) {
    uint64_t& number = now[cameras_[i].get()] = seen[cameras_[i].get()];
    if (const auto picture = cameras_[i]->picture_after(number))
      parts += part_of(*picture, "Content-Location: /pictures/" + std::to_string(i) + "\r\n");
  }
  seen = std::move(now);
  if (parts.empty()) return std::nullopt;
  return parts;
}

WatchSite::WatchSite(unsigned port)
    : server_(port, {.get = [this](const std::string& path) { return answer(path); },
                     .post = [this](const std::string& path, const std::string& offer,
                                    const Replied& reply) { begin(path, offer, reply); },
                     .remove = [this](const std::string& path) { return end(path); },
                     .look = [this] { serve_viewers(); },
                     .end = [this] { viewers_.clear(); }}) {}

void WatchSite::add(std::shared_ptr<WatchedCamera> camera) {
  // Elements without a name of their own are numbered in the order of the launch line.
  const auto order = [](const std::shared_ptr<WatchedCamera>& known) {
    const std::string name = name_of(known->element());
    return std::pair(name.size(), name);
  };
  const std::lock_guard lock(mutex_);
  cameras_.push_back(std::move(camera));
  std::sort(cameras_.begin(), cameras_.end(),
            [&](const auto& a, const auto& b) { return order(a) < order(b); });
}

void WatchSite::remove(const std::shared_ptr<WatchedCamera>& camera) {
  const std::lock_guard lock(mutex_);
  std::erase(cameras_, camera);
}

std::shared_ptr<WatchedCamera> WatchSite::find(std::string_view path, std::string_view prefix,
                                               std::string_view& rest) const {
  if (!path.starts_with(prefix)) return nullptr;
  path.remove_prefix(prefix.size());
  size_t index = 0;
  const auto read = std::from_chars(path.data(), path.data() + path.size(), index);
  if (read.ec != std::errc() || index >= cameras_.size()) return nullptr;
  rest = path.substr(static_cast<size_t>(read.ptr - path.data()));
  return cameras_[index];
}

void WatchSite::begin(const std::string& path, const std::string& offer, const Replied& reply) {
  std::shared_ptr<WatchedCamera> camera;
  {
    const std::lock_guard lock(mutex_);
    std::string_view rest;
    camera = find(path, "/webrtc/", rest);
    if (!rest.empty()) camera = nullptr;
  }
  if (camera == nullptr) return reply({404, kText, "There is no such camera.\n", nullptr});
  if (!camera->only_mjpeg().empty())
    return reply({404, kText, camera->only_mjpeg() + "\n", nullptr});
  serve_viewers();  // some may have left
  if (viewers_.size() >= kMostViewers)
    return reply({503, kText,
                  "All " + std::to_string(kMostViewers) + " connections of WebRTC are in use.\n",
                  nullptr});
  const std::string place = "/viewers/" + std::to_string(++viewers_so_far_);
  const auto answered = [reply, place](const std::string& answer, const std::string& problem) {
    if (problem.empty())
      reply({201, "application/sdp", answer, nullptr, place});
    else
      reply({400, kText, problem + "\n", nullptr});
  };
  try {
    viewers_.push_back(
        {place, camera,
         std::make_unique<Viewer>([camera](uint64_t& seen) { return camera->picture_after(seen); },
                                  offer, answered)});
  } catch (const Error& error) {
    answered("", error.what());
  }
}

LocalServer::Reply WatchSite::end(const std::string& path) {
  const auto ended = viewers_.remove_if([&](const Watching& one) { return one.path == path; });
  return ended == 0 ? LocalServer::Reply{404, kText, "There is no such viewer.\n", nullptr}
                    : LocalServer::Reply{200, kText, "", nullptr};
}

void WatchSite::serve_viewers() {
  viewers_.remove_if([this](const Watching& one) {
    if (one.viewer->is_over()) return true;
    const std::lock_guard lock(mutex_);
    return std::find(cameras_.begin(), cameras_.end(), one.camera) == cameras_.end();
  });
  for (const Watching& one : viewers_) one.viewer->send();
}

LocalServer::Reply WatchSite::answer(const std::string& path) {
  if (path == "/") return {200, "text/html; charset=utf-8", kWatchPage, nullptr};
  // The lock is held while elements are asked, so that none of them ends meanwhile.
  const std::lock_guard lock(mutex_);
  if (path == "/state.json") {
    std::string text = "{\"viewers\":" + std::to_string(viewers_.size()) + ",\"cameras\":[";
    for (size_t i = 0; i < cameras_.size(); ++i)
      text += (i == 0 ? "" : ",") + cameras_[i]->state(i);
    return {200, "application/json", text + "]}\n", nullptr};
  }
  if (path == "/pictures")
    return {200, std::string("multipart/mixed; boundary=") + kBoundary, boundary_line(),
            [this, seen = Seen()]() mutable { return newer_pictures(seen); }};
  std::string_view rest;
  const std::shared_ptr<WatchedCamera> camera = find(path, "/pictures/", rest);
  const bool is_still = rest == ".jpg";
  if (camera == nullptr || (!rest.empty() && !is_still))
    return {404, kText, "The page is at /.\n", nullptr};
  if (is_still) {
    uint64_t none = 0;
    const auto picture = camera->picture_after(none);
    if (picture == nullptr) return {404, kText, "There is no picture yet.\n", nullptr};
    return {200, "image/jpeg", *picture, nullptr};
  }
  auto next = [camera, seen = uint64_t{0}]() mutable -> std::optional<std::string> {
    const auto picture = camera->picture_after(seen);
    if (picture == nullptr) return std::nullopt;
    return part_of(*picture);
  };
  return {200, std::string("multipart/x-mixed-replace; boundary=") + kBoundary, boundary_line(),
          std::move(next)};
}

}  // namespace clinfer
