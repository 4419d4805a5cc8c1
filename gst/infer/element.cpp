// Implements state changes, properties and flushes of the element.
#include "gst/infer/element.h"

#include <string_view>

#include "gst/base/guard.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"
#include "gst/infer/clinfer.h"
#include "gst/infer/settings/network.h"
#include "gst/infer/settings/quality.h"
#include "kernels/base/system/threads.h"

#define GST_CAT_DEFAULT clinfer_debug

namespace clinfer {

Element::Element(GstElement* self, GstPad* sink, GstPad* src)
    : shared_(self, sink, src),
      verification_(self),
      targets_(shared_,
               [this](std::shared_ptr<SharedModel> variant) {
                 model_.loader().adopt(std::move(variant));
               }),
      model_(shared_, [this](const Session& session,
                             const Session* previous) { take_over(session, previous); }),
      intake_(shared_, model_, verification_),
      delivery_(shared_, model_, verification_, *this) {}

Element::~Element() {
  model_.loader().stop();
  intake_.stop();
  shared_.queue.clear();
}

// Runs on the loader's thread: frames go to this session from now on.
void Element::take_over(const Session& session, const Session* previous) {
  if (!session.shared->surface_problem.empty())
    shared_.warn_of_copies(session.shared->surface_problem);
  shared_.queue.set_capacity(frames_in_flight_for(session.settings, &session));
  shared_.statistics.watch(session.shared->compiled->devices());
  if (previous == nullptr) return;
  intake_.leave(*previous);
  const ObjectLock lock(shared_.element);
  if (in_force_) in_force_ = session.settings;
}

void Element::fail(const Failure& failure) {
  shared_.flow.fail_once([&] { post_error(shared_.element, failure); });
}

void Element::set_property(guint id, const GValue* value) {
  const ElementProperty& property = property_of(element_properties(), id);
  const std::shared_ptr<const Settings> before = settings();
  const std::shared_ptr<const Settings> wanted = shared_.settings.set(id, property, value);
  if (!property.equal(*before, *wanted)) shared_.renewed = true;
  std::optional<Settings> in_force;
  {
    const ObjectLock lock(shared_.element);
    in_force = in_force_;
  }
  if (!in_force) return;
  if (property.part == ElementProperty::Part::tickers) {
    const std::lock_guard lock(ticking_);
    start_tickers();
    if (const std::shared_ptr<const Session> session = model_.session())
      shared_.queue.set_capacity(frames_in_flight_for(*wanted, session.get()));
  }
  if (std::string_view(property.spec->name) == "model" && wanted->model != in_force->model)
    model_.change(*wanted);
  else if (property.part == ElementProperty::Part::rules)
    change_rules(*wanted);
  else
    warn_unless_in_force<Settings>(shared_.element, property, *wanted, *in_force,
                                   "until the element starts again or takes another model");
}

// Takes new rules for objects. If they are wrong, reports why and keeps the old ones.
void Element::change_rules(const Settings& settings) {
  try {
    auto rules = std::make_shared<const ObjectRules>(settings);
    if (const std::shared_ptr<const Session> session = model_.session())
      warn_of_unknown_classes(shared_.element, session->network, *rules);
    shared_.settings.set_rules(std::move(rules));
  } catch (const Error& error) {
    GST_ELEMENT_WARNING(shared_.element, RESOURCE, SETTINGS,
                        ("%s; the old value stays", error.what()), (nullptr));
  }
}

DecodeSettings Element::decode_settings_in_force() const {
  const std::shared_ptr<const Session> session = model_.session();
  return decode_settings(session != nullptr ? session->network : Network{}, *settings());
}

// ---- state changes ------------------------------------------------------------------------------

void Element::open() { model_.open(); }

void Element::prepare() {
  const Settings current = model_.read();
  shared_.restart();
  verification_.clear();
  targets_.restart();
  intake_.restart();
  delivery_.restart();
  {
    const ObjectLock lock(shared_.element);
    in_force_ = current;
  }
  model_.prepare(current);
}

void Element::finish() {
  {
    const ObjectLock lock(shared_.element);
    in_force_.reset();
  }
  model_.loader().stop();
  intake_.stop();
  shared_.queue.clear();
  verification_.stop();
}

void Element::close() {
  model_.close();
  intake_.clear();
}

void Element::play(bool plays) {
  const std::lock_guard lock(ticking_);
  if (plays) shared_.statistics.play();
  plays_ = plays;
  start_tickers();
}

// Starts tickers as the properties demand, or none unless the element plays.
void Element::start_tickers() {
  using std::chrono::milliseconds;
  // Stops first, since a ticker keeps the element alive and the rest may fail.
  stats_ticker_.stop();
  frozen_ticker_.stop();
  targets_ticker_.stop();
  const std::shared_ptr<const Settings> current = settings();
  if (!plays_ || !current->has_targets()) targets_.stop();
  if (!plays_) return;
  if (current->stats_interval != 0)
    stats_ticker_.start(
        shared_.element, milliseconds(current->stats_interval), [](GstElement* element) {
          guard(element, [&] { post_stats(element, *GST_CLINFER(element)->element); });
        });
  if (current->has_targets()) {
    targets_.start();
    targets_ticker_.start(shared_.element, TargetGroup::kPeriod, [](GstElement* element) {
      guard(element, [&] {
        Element& self = *GST_CLINFER(element)->element;
        self.targets_.tick(self.model_.session());
      });
    });
  }
  // Checks often enough to be late by at most a quarter of the bound.
  if (current->frozen_after != 0)
    frozen_ticker_.start(shared_.element, milliseconds(std::max(current->frozen_after / 4, 10u)),
                         [](GstElement* element) {
                           guard(element,
                                 [&] { GST_CLINFER(element)->element->look_for_frames(); });
                         });
}

// Reports when the source is frozen.
void Element::look_for_frames() {
  if (!shared_.live.load() || intake_.is_at_end()) return;
  const std::chrono::milliseconds bound(settings()->frozen_after);
  const auto [change, age] = shared_.statistics.look_for_frames(bound);
  if (change == Statistics::Change::none) return;
  const bool frozen = change == Statistics::Change::frozen;
  GST_INFO_OBJECT(shared_.element, "%s for %lld ms",
                  frozen ? "no frame" : "frames again; the last is",
                  static_cast<long long>(age.count()));
  gst_element_post_message(
      shared_.element,
      gst_message_new_element(
          GST_OBJECT(shared_.element),
          gst_structure_new("clinfer-frozen", "frozen", G_TYPE_BOOLEAN, frozen, "age-ms",
                            G_TYPE_UINT64, static_cast<guint64>(age.count()), nullptr)));
}

// ---- activation and flushing --------------------------------------------------------------------

void Element::start_flush() {
  shared_.flow.start_flush();
  intake_.interrupt();
  shared_.queue.start_flush();
}

void Element::stop_flush() {
  intake_.go_on();
  shared_.pending_starts = 0;
  delivery_.flush();
  shared_.flow.stop_flush();
  shared_.queue.stop_flush();
}

void Element::activate(bool sink, bool active) {
  if (active) {
    if (sink) return intake_.begin_stream();
    stop_flush();
    try {
      start_task();
    } catch (...) {
      start_flush();
      throw;
    }
    return;
  }
  start_flush();
  if (!sink) gst_pad_stop_task(shared_.src_pad);
}

void Element::start_task() {
  const GstTaskFunction round = [](gpointer element) {
    auto* self = static_cast<Element*>(element);
    guard([self](const Failure& failure) { self->fail(failure); }, false,
          [self] { return self->delivery_.round(), true; });
  };
  if (gst_pad_start_task(shared_.src_pad, round, this, nullptr)) return;
  // Removes the task: GStreamer takes one without a thread for one that runs, and would wait for
  // its end for ever.
  {
    const ObjectLock lock(shared_.src_pad);
    GST_PAD_TASK(shared_.src_pad) = nullptr;
  }
  throw no_more_threads();
}

GstFlowReturn Element::sink_event(Handle<GstEvent> event) {
  const auto flow_of = [](bool done) { return done ? GST_FLOW_OK : GST_FLOW_ERROR; };
  GST_LOG_OBJECT(shared_.element, "event: %" GST_PTR_FORMAT, event.get());
  switch (GST_EVENT_TYPE(event.get())) {
    case GST_EVENT_FLUSH_START: {
      const bool sent = gst_pad_push_event(shared_.src_pad, event.release());
      start_flush();
      return flow_of(sent);
    }
    case GST_EVENT_FLUSH_STOP: {
      // Pauses the task between two rounds, so that nothing from before the flush comes after it.
      gst_pad_pause_task(shared_.src_pad);
      intake_.flush();
      const bool sent = gst_pad_push_event(shared_.src_pad, event.release());
      // Sends sticky events again, which the flush may have dropped on their way; the sink pad
      // still has them.
      gst_pad_sticky_events_foreach(
          shared_.sink_pad,
          [](GstPad*, GstEvent** sticky, gpointer src) -> gboolean {
            if (GST_EVENT_TYPE(*sticky) != GST_EVENT_SEGMENT &&
                GST_EVENT_TYPE(*sticky) != GST_EVENT_EOS)
              gst_pad_store_sticky_event(GST_PAD(src), *sticky);
            return TRUE;
          },
          shared_.src_pad);
      if (gst_pad_is_active(shared_.src_pad)) {
        stop_flush();
        start_task();
      }
      return flow_of(sent);
    }
    default:
      return intake_.take_event(std::move(event));
  }
}

bool Element::src_query(GstQuery* query) {
  if (GST_QUERY_TYPE(query) == GST_QUERY_LATENCY) return delivery_.answer_latency(query);
  return gst_pad_query_default(shared_.src_pad, GST_OBJECT(shared_.element), query);
}

bool Element::src_event(Handle<GstEvent> event) {
  if (GST_EVENT_TYPE(event.get()) == GST_EVENT_QOS) {
    GstQOSType type;
    gdouble proportion = 1;
    GstClockTimeDiff jitter = 0;
    GstClockTime timestamp = GST_CLOCK_TIME_NONE;
    gst_event_parse_qos(event.get(), &type, &proportion, &jitter, &timestamp);
    if (GST_CLOCK_TIME_IS_VALID(timestamp))
      intake_.note_quality(proportion, earliest_in_time(timestamp, jitter));
  } else if (GST_EVENT_TYPE(event.get()) == GST_EVENT_RECONFIGURE) {
    delivery_.note_link();
    shared_.flow.go_on_after(GST_FLOW_NOT_LINKED);
  }
  return gst_pad_event_default(shared_.src_pad, GST_OBJECT(shared_.element), event.release());
}

}  // namespace clinfer
