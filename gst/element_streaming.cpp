// The element's data flow: frames, events and queries in at the sink pad, out in the same order by
// the source pad's task.
#include <algorithm>

#include "gst/element.h"
#include "gst/guard.h"
#include "gst/meta.h"

GST_DEBUG_CATEGORY_EXTERN(clinfer_debug);
#define GST_CAT_DEFAULT clinfer_debug

namespace clinfer {
namespace {

double milliseconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// A buffer that metas may be added to: the same one, or a copy that shares its memory and keeps it
// from going back to its pool.
Handle<GstBuffer> writable(Handle<GstBuffer> buffer) {
  if (gst_buffer_is_writable(buffer.get())) return buffer;
  Handle<GstBuffer> copy(gst_buffer_copy(buffer.get()));
  if (gst_buffer_get_parent_buffer_meta(copy.get()) == nullptr)
    gst_buffer_add_parent_buffer_meta(copy.get(), buffer.get());
  return copy;
}

}  // namespace

Job::~Job() {
  if (!started) return;
  try {
    request->wait();  // the device may still read the frame
  } catch (const std::exception& error) {
    GST_DEBUG("a discarded inference failed: %s", error.what());
  }
}

// ---- activation and flushing
// ----------------------------------------------------------------------------------------

void Element::start_flush() {
  flow_ = GST_FLOW_FLUSHING;
  std::shared_ptr<const Session> session;
  {
    const std::lock_guard lock(mutex_);
    flushing_ = true;
    session = session_;
  }
  session_ready_.notify_all();
  if (session != nullptr) session->requests->interrupt();
  queue_.start_flush();
}

void Element::stop_flush() {
  std::shared_ptr<const Session> session;
  {
    const std::lock_guard lock(mutex_);
    flushing_ = false;
    session = session_;
  }
  if (session != nullptr) session->requests->resume();
  pending_starts_ = 0;
  dropping_ = false;
  flow_reported_ = false;
  flow_ = GST_FLOW_OK;
  queue_.stop_flush();
}

void Element::activate(bool sink, bool active) {
  if (active) {
    if (sink) {
      gst_segment_init(&segment_, GST_FORMAT_TIME);
      return;
    }
    GST_OBJECT_LOCK(self_);
    qos_ = {};
    GST_OBJECT_UNLOCK(self_);
    stop_flush();
    start_task();
    return;
  }
  start_flush();
  if (!sink) gst_pad_stop_task(src_);
}

void Element::start_task() {
  gst_pad_start_task(
      src_,
      [](gpointer element) {
        auto* self = static_cast<Element*>(element);
        if (!guard(self->self_, false, [&] { return self->task(), true; })) self->fail();
      },
      this, nullptr);
}

// ---- the streaming thread
// ---------------------------------------------------------------------------------------------

bool Element::too_late(GstBuffer* buffer) {
  if (segment_.format != GST_FORMAT_TIME || !GST_BUFFER_PTS_IS_VALID(buffer)) return false;
  const GstClockTime running_time =
      gst_segment_to_running_time(&segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  if (!GST_CLOCK_TIME_IS_VALID(running_time)) return false;
  GST_OBJECT_LOCK(self_);
  const bool late =
      settings_.qos && GST_CLOCK_TIME_IS_VALID(qos_.earliest) && running_time <= qos_.earliest;
  if (late)
    ++qos_.dropped;
  else
    ++qos_.processed;
  GST_OBJECT_UNLOCK(self_);
  if (late) report_late(buffer, running_time);
  return late;
}

void Element::report_late(GstBuffer* buffer, GstClockTime running_time) {
  GST_OBJECT_LOCK(self_);
  const Qos qos = qos_;
  GST_OBJECT_UNLOCK(self_);
  statistics_.count_late();
  const guint64 stream_time =
      gst_segment_to_stream_time(&segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  GstMessage* message =
      gst_message_new_qos(GST_OBJECT(self_), live_.load(), running_time, stream_time,
                          GST_BUFFER_PTS(buffer), GST_BUFFER_DURATION(buffer));
  gst_message_set_qos_values(message, GST_CLOCK_DIFF(running_time, qos.earliest), qos.proportion,
                             1000000);
  gst_message_set_qos_stats(message, GST_FORMAT_BUFFERS, qos.processed, qos.dropped);
  gst_element_post_message(self_, message);
}

bool Element::wants_inference(GstBuffer* buffer) {
  GST_OBJECT_LOCK(self_);
  const unsigned interval = std::max(settings_.inference_interval, 1u);
  GST_OBJECT_UNLOCK(self_);
  return frame_number_++ % interval == 0 && !too_late(buffer);
}

GstFlowReturn Element::chain(Handle<GstBuffer> buffer) {
  const Clock::time_point arrived = Clock::now();
  if (const GstFlowReturn flow = flow_.load(); flow != GST_FLOW_OK) {
    flow_reported_ = true;
    return flow;
  }
  if (!has_caps_) {
    GST_ELEMENT_ERROR(self_, CORE, NEGOTIATION, ("frames came before their format"), (nullptr));
    fail();
    return GST_FLOW_NOT_NEGOTIATED;
  }
  statistics_.count_in();
  if constexpr (kHaveSurfaces)
    if (has_surfaces_ && take_surfaces_) compile_for(display_of(buffer.get()));
  auto job = std::make_unique<Job>();
  job->arrived = arrived;
  job->session = wait_for_session();
  if (job->session == nullptr) {
    const GstFlowReturn flow = flow_.load();
    return flow == GST_FLOW_OK ? GST_FLOW_ERROR : flow;
  }
  const bool run = wants_inference(buffer.get());
  if (!queue_.admit()) return GST_FLOW_FLUSHING;
  // Given back when the frame does not get into the queue.
  struct Room {
    FrameQueue<Item>* queue;
    ~Room() {
      if (queue != nullptr) queue->leave();
    }
  } room{&queue_};
  job->buffer = std::move(buffer);
  if (run) {
    const Network& network = job->session->network;
    job->request = job->session->requests->acquire();
    if (!job->request) return GST_FLOW_FLUSHING;
    job->input = make_input(*job);
    job->visible = job->input->visible();
    job->placement = job->input->fill(*job->request, network.image_input, network.transform,
                                      job->input->region(), 0);
    job->begun = Clock::now();
    job->request->start();
    job->started = true;
  }
  Item item;
  item.job = std::move(job);
  if (!queue_.push_frame(item)) return GST_FLOW_FLUSHING;
  room.queue = nullptr;
  return GST_FLOW_OK;
}

std::unique_ptr<FrameInput> Element::make_input(const Job& job) const {
  const Session& session = *job.session;
  if (has_surfaces_ && session.display != nullptr && session.surface_problem.empty())
    return std::make_unique<FrameInput>(job.buffer.get(), info_, *session.display,
                                        session.compiled);
  return std::make_unique<FrameInput>(job.buffer.get(), info_);
}

bool Element::set_caps(const GstEvent* event) {
  GstCaps* caps = nullptr;
  gst_event_parse_caps(const_cast<GstEvent*>(event), &caps);
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, caps)) {
    GST_WARNING_OBJECT(self_, "caps %" GST_PTR_FORMAT " say no picture", caps);
    return false;
  }
  if constexpr (kHaveSurfaces) has_surfaces_ = is_surface_caps(caps);
  const GstVideoInterlaceMode mode = GST_VIDEO_INFO_INTERLACE_MODE(&info);
  // Frames of mixed streams are looked at one by one.
  if (has_surfaces_ && mode != GST_VIDEO_INTERLACE_MODE_PROGRESSIVE &&
      mode != GST_VIDEO_INTERLACE_MODE_MIXED)
    throw Error{ErrorCode::unsupported, std::string("interlaced VA surfaces (") +
                                            gst_video_interlace_mode_to_string(mode) +
                                            ") are not read: put a deinterlacer before clinfer"};
  info_ = info;
  has_caps_ = true;
  // What upstream says of its display saves the wait for the first frame.
  std::shared_ptr<const SurfaceDisplay> display;
  if constexpr (kHaveSurfaces)
    if (has_surfaces_ && take_surfaces_) display = find_display(self_, sink_);
  if (display != nullptr || !has_surfaces_ || !take_surfaces_) compile_for(std::move(display));
  return true;
}

bool Element::sink_event(Handle<GstEvent> event) {
  switch (GST_EVENT_TYPE(event.get())) {
    case GST_EVENT_FLUSH_START: {
      const bool sent = gst_pad_push_event(src_, event.release());
      start_flush();
      return sent;
    }
    case GST_EVENT_FLUSH_STOP: {
      // The task must be between two rounds, so that nothing from before the flush comes after it.
      gst_pad_pause_task(src_);
      gst_segment_init(&segment_, GST_FORMAT_TIME);
      frame_number_ = 0;
      GST_OBJECT_LOCK(self_);
      qos_.earliest = GST_CLOCK_TIME_NONE;
      GST_OBJECT_UNLOCK(self_);
      const bool sent = gst_pad_push_event(src_, event.release());
      if (gst_pad_is_active(src_)) {
        stop_flush();
        start_task();
      }
      return sent;
    }
    case GST_EVENT_CAPS:
      if (!set_caps(event.get())) return false;
      break;
    case GST_EVENT_SEGMENT:
      gst_event_copy_segment(event.get(), &segment_);
      [[fallthrough]];
    case GST_EVENT_STREAM_START: {
      ++pending_starts_;
      GstFlowReturn at_end = GST_FLOW_EOS;
      flow_.compare_exchange_strong(at_end, GST_FLOW_OK);
      break;
    }
    default:
      if (!GST_EVENT_IS_SERIALIZED(event.get()))
        return gst_pad_event_default(sink_, GST_OBJECT(self_), event.release());
  }
  Item item;
  item.event = std::move(event);
  return queue_.push_other(item);
}

bool Element::sink_query(GstQuery* query) {
  if (!GST_QUERY_IS_SERIALIZED(query))
    return gst_pad_query_default(sink_, GST_OBJECT(self_), query);
  auto ticket = std::make_unique<QueryTicket>();
  ticket->query = query;
  std::future<bool> answer = ticket->answer.get_future();
  Item item;
  item.query = std::move(ticket);
  if (!queue_.push_other(item)) return false;
  try {
    return answer.get();
  } catch (const std::future_error&) {
    return false;  // a flush dropped it
  }
}

// ---- the source pad's task
// --------------------------------------------------------------------------------------------

void Element::task() {
  auto popped = queue_.pop();
  if (!popped) {
    gst_pad_pause_task(src_);
    return;
  }
  Item& item = popped->item;
  if (item.job != nullptr) {
    finish_frame(std::move(item.job), popped->generation);
  } else if (item.event != nullptr) {
    forward_event(std::move(item.event));
  } else {
    GstQuery* query = item.query->query;
    const bool answered = GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION
                              ? answer_allocation(query)
                              : gst_pad_peer_query(src_, query);
    item.query->answer.set_value(answered);
  }
}

void Element::finish_frame(std::unique_ptr<Job> job, uint64_t generation) {
  struct Room {
    FrameQueue<Item>& queue;
    bool held = true;
    void give() {
      if (std::exchange(held, false)) queue.leave();
    }
    ~Room() { give(); }
  } room{queue_};

  if (job->started) {
    job->started = false;  // whatever wait() says, the device is done with the frame then
    try {
      job->request->wait();
    } catch (const Error&) {
      if (queue_.is_current(generation)) throw;
    }
  }
  if (!queue_.is_current(generation)) return;
  if (flow_.load() != GST_FLOW_OK || dropping_) return;

  FrameResult result;
  result.ran = static_cast<bool>(job->request);
  const std::shared_ptr<const Session> session = job->session;
  const Network& network = session->network;
  result.model = network.name;
  const Clock::time_point waited = Clock::now();
  if (result.ran) {
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < session->compiled->outputs().size(); ++i)
      outputs.push_back(job->request->output(i));
    network.head.decode(outputs, decode_settings_for(network), result.results);
    result.placement = job->placement;
    result.visible = job->visible;
  }
  const Clock::time_point decoded = Clock::now();
  const Clock::time_point arrived = job->arrived, begun = job->begun;
  Handle<GstBuffer> buffer = std::move(job->buffer);
  if (job->input != nullptr) {
    if (job->input->zero_copy()) statistics_.count_zero_copy();
    if (const std::string& why = job->input->problem(); !why.empty()) warn_of_copies(why);
  }
  job.reset();  // the request goes back before the push, which may take long
  room.give();

  buffer = writable(std::move(buffer));
  attach_result(buffer.get(), result, network.labels);
  if (result.ran) {
    statistics_.add(Statistics::kQueue, milliseconds_between(arrived, begun));
    statistics_.add(Statistics::kInfer, milliseconds_between(begun, waited));
    statistics_.add(Statistics::kDecode, milliseconds_between(waited, decoded));
    if (service_time_.add(milliseconds_between(arrived, decoded)) && live_.load())
      gst_element_post_message(self_, gst_message_new_latency(GST_OBJECT(self_)));
  }
  statistics_.count_out(result.ran);

  const GstFlowReturn flow = gst_pad_push(src_, buffer.release());
  if (flow == GST_FLOW_OK || !queue_.is_current(generation)) return;
  GST_DEBUG_OBJECT(self_, "downstream says %s", gst_flow_get_name(flow));
  if (flow == GST_FLOW_EOS) {
    dropping_ = true;
    if (pending_starts_.load() != 0) return;
  }
  GstFlowReturn fine = GST_FLOW_OK;
  flow_.compare_exchange_strong(fine, flow);
}

void Element::forward_event(Handle<GstEvent> event) {
  switch (GST_EVENT_TYPE(event.get())) {
    case GST_EVENT_SEGMENT:
    case GST_EVENT_STREAM_START:
      if (pending_starts_.load() != 0) --pending_starts_;
      dropping_ = false;
      break;
    case GST_EVENT_EOS: {
      // No frame will come that could tell upstream; the application must hear of it here.
      const GstFlowReturn flow = flow_.load();
      if ((flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS) && !flow_reported_.exchange(true))
        GST_ELEMENT_FLOW_ERROR(self_, flow);
      break;
    }
    default:
      break;
  }
  gst_pad_push_event(src_, event.release());
}

// ---- queries and upstream events
// --------------------------------------------------------------------------------------

bool Element::answer_allocation(GstQuery* query) {
  GstCaps* caps = nullptr;
  gboolean need_pool = FALSE;
  // Frames pass unchanged, so what downstream can take is what upstream may give; only more of them
  // are under way.
  gst_pad_peer_query(src_, query);
  gst_query_parse_allocation(query, &caps, &need_pool);
  GstVideoInfo info;
  if (caps == nullptr || !gst_video_info_from_caps(&info, caps)) return false;
  const guint held = static_cast<guint>(frames_in_flight_for(settings())) + 1;
  const guint pools = gst_query_get_n_allocation_pools(query);
  for (guint i = 0; i < pools; ++i) {
    GstBufferPool* pool = nullptr;
    guint size = 0, least = 0, most = 0;
    gst_query_parse_nth_allocation_pool(query, i, &pool, &size, &least, &most);
    least += held;
    if (most != 0) least = std::min(least, most);
    gst_query_set_nth_allocation_pool(query, i, pool, size, least, most);
    if (pool != nullptr) gst_object_unref(pool);
  }
  if (pools == 0)
    gst_query_add_allocation_pool(query, nullptr, static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)),
                                  held, 0);
  return true;
}

bool Element::answer_latency(GstQuery* query) {
  if (!gst_pad_peer_query(sink_, query)) return false;
  gboolean live = FALSE;
  GstClockTime least = 0, most = 0;
  gst_query_parse_latency(query, &live, &least, &most);
  live_ = live;
  if (!live) return true;
  const GstClockTime own = service_time_.reported_ns();
  GstClockTime room = own;
  if (const auto caps = Handle<GstCaps>(gst_pad_get_current_caps(sink_))) {
    GstVideoInfo info;
    if (gst_video_info_from_caps(&info, caps.get()) && GST_VIDEO_INFO_FPS_N(&info) > 0)
      room =
          std::max(room, gst_util_uint64_scale(queue_.capacity() * GST_SECOND,
                                               static_cast<guint64>(GST_VIDEO_INFO_FPS_D(&info)),
                                               static_cast<guint64>(GST_VIDEO_INFO_FPS_N(&info))));
  }
  least += own;
  if (GST_CLOCK_TIME_IS_VALID(most)) most += room;
  gst_query_set_latency(query, live, least, most);
  return true;
}

bool Element::src_query(GstQuery* query) {
  if (GST_QUERY_TYPE(query) == GST_QUERY_LATENCY) return answer_latency(query);
  return gst_pad_query_default(src_, GST_OBJECT(self_), query);
}

bool Element::src_event(Handle<GstEvent> event) {
  if (GST_EVENT_TYPE(event.get()) == GST_EVENT_QOS) {
    GstQOSType type;
    gdouble proportion = 1;
    GstClockTimeDiff jitter = 0;
    GstClockTime timestamp = GST_CLOCK_TIME_NONE;
    gst_event_parse_qos(event.get(), &type, &proportion, &jitter, &timestamp);
    if (GST_CLOCK_TIME_IS_VALID(timestamp)) {
      // As late again as this frame was: frames until then would come too late as well.
      const GstClockTimeDiff step = jitter > 0 ? 2 * jitter : jitter;
      GST_OBJECT_LOCK(self_);
      qos_.proportion = proportion;
      qos_.earliest = step < 0 && static_cast<GstClockTime>(-step) > timestamp
                          ? 0
                          : timestamp + static_cast<GstClockTime>(step);
      GST_OBJECT_UNLOCK(self_);
    }
  } else if (GST_EVENT_TYPE(event.get()) == GST_EVENT_RECONFIGURE) {
    GstFlowReturn unlinked = GST_FLOW_NOT_LINKED;
    if (flow_.compare_exchange_strong(unlinked, GST_FLOW_OK)) flow_reported_ = false;
  }
  return gst_pad_event_default(src_, GST_OBJECT(self_), event.release());
}

}  // namespace clinfer
