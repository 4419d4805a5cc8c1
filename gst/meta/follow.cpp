// Takes results from the frame that enters an element, and puts them on the frame that leaves it.
#include "gst/meta/follow.h"

#include <gst/video/video.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/log.h"
#include "gst/frames/orientation.h"
#include "gst/meta/analytics.h"
#include "gst/meta/record.h"

namespace clinfer {
namespace {

enum class Kind { crop, flip, box };

// The settings of an element. They are compared before and after a frame, because the application
// may change them at any time.
struct Setting {
  gint left = 0, right = 0, top = 0, bottom = 0;
  GstVideoOrientationMethod method = GST_VIDEO_ORIENTATION_IDENTITY;
  bool operator==(const Setting&) const = default;
};

// An element that is watched. The frames of its two pads pass in one thread, alternately.
struct Watch {
  Kind kind = Kind::crop;
  std::optional<Record> pending;
  int left = 0,
      top = 0;  // of the picture in the frame that enters, as marked by an earlier crop
  Setting setting;
};

template <typename Object>
using Owned = std::unique_ptr<Object, void (*)(gpointer)>;

template <typename Object>
Owned<Object> own(Object* object) {
  return {object, gst_object_unref};
}

std::optional<GstVideoOrientationMethod> method_by_tags(GstPad* pad) {
  std::optional<GstVideoOrientationMethod> method;
  for (guint i = 0;; ++i) {
    const Handle<GstEvent> event(gst_pad_get_sticky_event(pad, GST_EVENT_TAG, i));
    if (event == nullptr) return method;
    GstTagList* tags = nullptr;
    gst_event_parse_tag(event.get(), &tags);
    if (const auto tagged = tagged_orientation(tags)) method = tagged;
  }
}

Setting setting_of(GstElement* element, GstPad* sink, Kind kind) {
  Setting setting;
  if (kind != Kind::flip) {
    g_object_get(element, "left", &setting.left, "right", &setting.right, "top", &setting.top,
                 "bottom", &setting.bottom, nullptr);
    return setting;
  }
  g_object_get(element, "video-direction", &setting.method, nullptr);
  if (setting.method == GST_VIDEO_ORIENTATION_AUTO)
    setting.method = method_by_tags(sink).value_or(GST_VIDEO_ORIENTATION_IDENTITY);
  return setting;
}

bool read_info(GstPad* pad, GstVideoInfo& info) {
  const Handle<GstCaps> caps(gst_pad_get_current_caps(pad));
  return caps != nullptr && gst_video_info_from_caps(&info, caps.get());
}

// Returns the part of the picture that videocrop and videobox keep, in pixels of their input; a
// border that videobox adds lies outside of it.
std::optional<Rect> left_over(const Setting& s, Kind kind, const GstVideoInfo& in,
                              const GstVideoInfo& out) {
  const int width = GST_VIDEO_INFO_WIDTH(&out), height = GST_VIDEO_INFO_HEIGHT(&out);
  // With -1, videocrop cuts off everything that is too much; if set on both sides, half of it on
  // each.
  const auto start = [&](int before, int after, int spare) -> std::optional<int> {
    if (kind == Kind::crop && before == -1) return after == -1 ? spare / 2 : spare - after;
    if (kind == Kind::crop && after == -1) return before;
    if (before + after != spare) return std::nullopt;  // changed meanwhile
    return before;
  };
  const auto x = start(s.left, s.right, GST_VIDEO_INFO_WIDTH(&in) - width);
  const auto y = start(s.top, s.bottom, GST_VIDEO_INFO_HEIGHT(&in) - height);
  if (!x || !y) return std::nullopt;
  return Rect{*x, *y, width, height};
}

// Maps shares of `picture`, which lies in the input, to those of the turned frame.
std::optional<PointMap> turned(const Orientation& turn, const Rect& picture, const GstVideoInfo& in,
                               const GstVideoInfo& out) {
  int width = GST_VIDEO_INFO_WIDTH(&in), height = GST_VIDEO_INFO_HEIGHT(&in);
  Rect from = picture;
  if (turn.transpose) {
    std::swap(width, height);
    from = {picture.y, picture.x, picture.height, picture.width};
  }
  if (width != GST_VIDEO_INFO_WIDTH(&out) || height != GST_VIDEO_INFO_HEIGHT(&out))
    return std::nullopt;
  PointMap affine = between(from, {0, 0, width, height});
  if (turn.transpose) std::swap(affine.xx, affine.xy), std::swap(affine.yx, affine.yy);
  if (turn.mirror_x) affine.xx = -affine.xx, affine.xy = -affine.xy, affine.x0 = 1 - affine.x0;
  if (turn.mirror_y) affine.yx = -affine.yx, affine.yy = -affine.yy, affine.y0 = 1 - affine.y0;
  return affine;
}

void put_back(GstBuffer* buffer, Record record, const Watch& watch, const GstVideoInfo& in,
              const GstVideoInfo& out) {
  const Rect picture{record.picture.x - watch.left, record.picture.y - watch.top,
                     record.picture.width, record.picture.height};
  std::optional<PointMap> affine;
  if (watch.kind == Kind::flip) {
    affine = turned(orientation_of(watch.setting.method), picture, in, out);
  } else if (const auto rect = left_over(watch.setting, watch.kind, in, out)) {
    affine = between(picture, *rect);
  }
  if (!affine) return;
  move_record(record, *affine, {0, 0, GST_VIDEO_INFO_WIDTH(&out), GST_VIDEO_INFO_HEIGHT(&out)});
  replace_analytics_objects(buffer, views_of(record), record.picture.width, record.picture.height);
  add_analytics_answers_again(buffer, record.results, record.picture.width, record.picture.height);
  write_moved(buffer, record);
}

template <typename Body>
GstPadProbeReturn probe(GstPad* pad, Body&& body) {
  const auto tell = [&](const Failure& failure) {
    GST_CAT_WARNING_OBJECT(clinfer_follow_debug, pad, "results do not follow their frame: %s",
                           failure.what);
  };
  guard(tell, false, [&] {
    const auto element = own(gst_pad_get_parent_element(pad));
    if (element != nullptr) body(element.get());
    return true;
  });
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn frame_in(GstPad* sink, GstPadProbeInfo* info, gpointer data) {
  Watch& watch = **static_cast<std::shared_ptr<Watch>*>(data);
  return probe(sink, [&](GstElement* element) {
    GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    watch.pending = read_record(buffer);
    if (!watch.pending) return;
    const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer);
    watch.left = crop != nullptr ? static_cast<int>(crop->x) : 0;
    watch.top = crop != nullptr ? static_cast<int>(crop->y) : 0;
    watch.setting = setting_of(element, sink, watch.kind);
  });
}

GstPadProbeReturn frame_out(GstPad* source, GstPadProbeInfo* info, gpointer data) {
  Watch& watch = **static_cast<std::shared_ptr<Watch>*>(data);
  return probe(source, [&](GstElement* element) {
    GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    std::optional<Record> record;
    record.swap(watch.pending);
    if (!record || gst_buffer_get_custom_meta(buffer, kResultMeta) != nullptr) return;
    const auto sink = own(gst_element_get_static_pad(element, "sink"));
    GstVideoInfo in, out;
    if (sink == nullptr || !read_info(sink.get(), in) || !read_info(source, out) ||
        setting_of(element, sink.get(), watch.kind) != watch.setting)
      return;
    buffer = gst_buffer_make_writable(buffer);
    info->data = buffer;
    put_back(buffer, std::move(*record), watch, in, out);
  });
}

std::optional<Kind> kind_of(GstElement* element) {
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"videocrop", Kind::crop}, {"videoflip", Kind::flip}, {"videobox", Kind::box}};
  const GstElementFactory* factory = gst_element_get_factory(element);
  if (factory == nullptr) return std::nullopt;
  for (const auto& [name, kind] : kKinds)
    if (name == GST_OBJECT_NAME(factory)) return kind;
  return std::nullopt;
}

// Watches an element. Two elements upstream may do this at the same time.
void watch(GstElement* element, GstPad* sink, Kind kind) {
  static const GQuark kWatched = g_quark_from_static_string("clinfer-follow");
  const auto source = own(gst_element_get_static_pad(element, "src"));
  if (source == nullptr) return;
  using Shared = std::shared_ptr<Watch>;
  const Shared shared = std::make_shared<Watch>();
  shared->kind = kind;
  auto of_sink = std::make_unique<Shared>(shared), of_source = std::make_unique<Shared>(shared);
  GST_OBJECT_LOCK(sink);
  const bool known = g_object_get_qdata(G_OBJECT(sink), kWatched) != nullptr;
  if (!known) g_object_set_qdata(G_OBJECT(sink), kWatched, sink);
  GST_OBJECT_UNLOCK(sink);
  if (known) return;
  GST_CAT_DEBUG_OBJECT(clinfer_follow_debug, element,
                       "results follow the picture through this element");
  const auto free_it = [](gpointer data) { delete static_cast<Shared*>(data); };
  gst_pad_add_probe(sink, GST_PAD_PROBE_TYPE_BUFFER, frame_in, of_sink.release(), free_it);
  gst_pad_add_probe(source.get(), GST_PAD_PROBE_TYPE_BUFFER, frame_out, of_source.release(),
                    free_it);
}

// Returns the pad of an element that this pad feeds, through the borders of bins.
Owned<GstPad> sink_of(GstPad* source) {
  Owned<GstPad> pad = own(gst_pad_get_peer(source));
  while (pad != nullptr) {
    if (GST_IS_GHOST_PAD(pad.get())) {  // enters a bin
      pad = own(gst_ghost_pad_get_target(GST_GHOST_PAD(pad.get())));
    } else if (GST_IS_PROXY_PAD(pad.get())) {  // leaves the bin of `source`
      const auto outside = own(GST_PAD(gst_proxy_pad_get_internal(GST_PROXY_PAD(pad.get()))));
      pad = own(outside != nullptr ? gst_pad_get_peer(outside.get()) : nullptr);
    } else {
      break;
    }
  }
  return pad;
}

struct FreeIterator {
  void operator()(GstIterator* iterator) const { gst_iterator_free(iterator); }
};

// Returns the source pads that get what this sink pad gets. Does not use gst_iterator_foreach(),
// through which no exception may pass.
std::vector<Owned<GstPad>> linked_pads(GstPad* sink) {
  std::vector<Owned<GstPad>> pads;
  const std::unique_ptr<GstIterator, FreeIterator> links(gst_pad_iterate_internal_links(sink));
  if (links == nullptr) return pads;
  for (;;) {
    GValue item = G_VALUE_INIT;
    switch (gst_iterator_next(links.get(), &item)) {
      case GST_ITERATOR_OK: {
        Owned<GstPad> pad = own(GST_PAD(g_value_dup_object(&item)));
        g_value_unset(&item);
        pads.push_back(std::move(pad));
        break;
      }
      case GST_ITERATOR_RESYNC:
        pads.clear();
        gst_iterator_resync(links.get());
        break;
      case GST_ITERATOR_ERROR:
      case GST_ITERATOR_DONE:
        return pads;
    }
  }
}

void visit(GstPad* source, std::set<GstElement*>& seen) {
  const Owned<GstPad> sink = sink_of(source);
  const auto element = own(sink != nullptr ? gst_pad_get_parent_element(sink.get()) : nullptr);
  if (element == nullptr || !seen.insert(element.get()).second) return;
  if (const auto kind = kind_of(element.get())) watch(element.get(), sink.get(), *kind);
  for (const Owned<GstPad>& next : linked_pads(sink.get())) visit(next.get(), seen);
}

}  // namespace

void follow_results(GstPad* source) {
  std::set<GstElement*> seen;
  visit(source, seen);
}

}  // namespace clinfer
