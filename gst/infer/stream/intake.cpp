// Implements the data flow into the element.
#include "gst/infer/stream/intake.h"

#include <algorithm>

#include "gst/base/log.h"
#include "gst/infer/settings/network.h"
#include "gst/infer/settings/quality.h"

#define GST_CAT_DEFAULT clinfer_streaming_debug

namespace clinfer {

Intake::Intake(ElementShared& shared, ElementModel& model, Verification& verification)
    : shared_(shared),
      model_(model),
      verification_(verification),
      self_(shared.element),
      sink_(shared.sink_pad),
      widths_(shared.element) {
  gst_video_info_init(&info_);
  gst_segment_init(&segment_, GST_FORMAT_TIME);
}

void Intake::restart() {
  widths_.clear();
  clip_.clear();
  frame_number_ = 0;
  dropped_ = asked_live_ = has_caps_ = has_surfaces_ = false;
  resets_states_ = true;
  warned_of_fields_ = warned_of_transformation_ = told_of_device_copies_ = false;
}

void Intake::stop() {
  widths_.stop();
  if constexpr (kHaveCudaMemory) cuda_copier_.clear();
}

void Intake::clear() { widths_.clear(); }

void Intake::begin_stream() {
  gst_segment_init(&segment_, GST_FORMAT_TIME);
  const std::lock_guard lock(mutex_);
  quality_ = {};
}

void Intake::flush() {
  at_end_ = false;
  gst_segment_init(&segment_, GST_FORMAT_TIME);
  frame_number_ = 0;
  clip_.clear();
  shared_.renewed = resets_states_ = true;
  const std::lock_guard lock(mutex_);
  quality_.earliest = GST_CLOCK_TIME_NONE;
}

void Intake::interrupt() {
  model_.loader().set_interrupted(true);
  stream_.interrupted = true;
  if (const auto session = model_.session()) session->shared->batcher->interrupt(stream_);
  widths_.set_interrupted(true);
  widths_.interrupt(stream_);
}

void Intake::go_on() {
  model_.loader().set_interrupted(false);
  widths_.set_interrupted(false);
  stream_.interrupted = false;
}

void Intake::leave(const Session& previous) {
  previous.shared->batcher->flush_partial_batch(stream_);
}

// ---- quality of service -------------------------------------------------------------------------

void Intake::note_quality(double proportion, GstClockTime earliest) {
  const std::lock_guard lock(mutex_);
  quality_.proportion = proportion;
  quality_.earliest = earliest;
}

// Returns whether the source is live, which is asked once it can be known.
bool Intake::fed_live() {
  if (!std::exchange(asked_live_, true)) {
    GstQuery* query = gst_query_new_latency();
    if (gst_pad_peer_query(sink_, query)) {
      gboolean live = FALSE;
      gst_query_parse_latency(query, &live, nullptr, nullptr);
      shared_.live = live;
    }
    gst_query_unref(query);
  }
  return shared_.live.load();
}

bool Intake::too_late(GstBuffer* buffer) {
  if (segment_.format != GST_FORMAT_TIME || !GST_BUFFER_PTS_IS_VALID(buffer)) return false;
  const GstClockTime running_time =
      gst_segment_to_running_time(&segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  if (!GST_CLOCK_TIME_IS_VALID(running_time)) return false;
  const std::lock_guard lock(mutex_);
  return GST_CLOCK_TIME_IS_VALID(quality_.earliest) && running_time <= quality_.earliest;
}

// Tells the application of a frame that passes without inference, or is dropped.
void Intake::report_quality(GstBuffer* buffer) {
  Quality quality;
  {
    const std::lock_guard lock(mutex_);
    quality = quality_;
  }
  guint64 running_time = GST_CLOCK_TIME_NONE, stream_time = GST_CLOCK_TIME_NONE;
  if (segment_.format == GST_FORMAT_TIME && GST_BUFFER_PTS_IS_VALID(buffer)) {
    running_time = gst_segment_to_running_time(&segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    stream_time = gst_segment_to_stream_time(&segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  }
  GstMessage* message =
      gst_message_new_qos(GST_OBJECT(self_), shared_.live.load(), running_time, stream_time,
                          GST_BUFFER_PTS(buffer), GST_BUFFER_DURATION(buffer));
  const GstClockTimeDiff jitter =
      GST_CLOCK_TIME_IS_VALID(quality.earliest) && GST_CLOCK_TIME_IS_VALID(running_time)
          ? difference(running_time, quality.earliest)
          : 0;
  gst_message_set_qos_values(message, jitter, quality.proportion, 1000000);
  gst_message_set_qos_stats(message, GST_FORMAT_BUFFERS, quality.processed, quality.dropped);
  gst_element_post_message(self_, message);
}

Outcome Intake::wanted_outcome(GstBuffer* buffer, const Settings& settings) {
  if (frame_number_++ % std::max(settings.inference_interval, 1u) != 0) return Outcome::skipped;
  return settings.qos && too_late(buffer) ? Outcome::late : Outcome::run;
}

// ---- frames -------------------------------------------------------------------------------------

// Returns false if the network takes clips and none ends with this frame.
bool Intake::add_to_clip(GstBuffer* buffer, const Session& session, const Settings& settings) {
  const auto length = static_cast<size_t>(session.network.clip_length);
  return length <= 1 || clip_.add(buffer, info_, orientation_for(settings, buffer),
                                  *session.shared->compiled, length, settings.clip_stride);
}

GstFlowReturn Intake::chain(Handle<GstBuffer> buffer) {
  const Job::Clock::time_point arrived = Job::Clock::now();
  if (const GstFlowReturn flow = shared_.flow.tell_upstream(); flow != GST_FLOW_OK) return flow;
  if (!has_caps_) {
    shared_.flow.fail_once([this] {
      GST_ELEMENT_ERROR(self_, CORE, NEGOTIATION, ("frames came before their format"), (nullptr));
    });
    return GST_FLOW_NOT_NEGOTIATED;
  }
  shared_.statistics.count_in();
  if (GST_BUFFER_IS_DISCONT(buffer.get())) resets_states_ = true;
  GST_LOG_OBJECT(self_, "frame in: %" GST_TIME_FORMAT, GST_TIME_ARGS(GST_BUFFER_PTS(buffer.get())));
  bool readable = true;
  if constexpr (kHaveSurfaces)
    if (has_surfaces_ && model_.takes_surfaces())
      readable = shared_.reads(
          [&] { model_.compile_for(display_of(buffer.get(), model_.loader().display())); });
  auto job = std::make_unique<Job>();
  job->arrived = arrived;
  sync_controllers(self_, segment_, buffer.get());
  const std::shared_ptr<const Settings> snapshot = shared_.settings.now();
  const Settings& settings = *snapshot;
  const OverloadPolicy policy = fed_live() ? settings.live_policy() : OverloadPolicy::block;
  // Does not wait for a live source, which must not stand still while the model compiles.
  const bool waits = policy == OverloadPolicy::block;
  const bool settled = readable && (waits || model_.loader().is_over());
  job->session = settled ? model_.loader().wait() : nullptr;
  const bool is_ready = job->session != nullptr;
  if (settled && !is_ready) return shared_.flow.after_failure();
  const bool is_final = is_ready && !job->session->shared->is_interim;
  if (is_final && shared_.asked_early.exchange(false) &&
      job->session->shared->compiled->wants_frame_memory())
    gst_pad_push_event(sink_, gst_event_new_reconfigure());
  if (is_ready) job->decode = decode_settings(job->session->network, settings);
  job->rules = shared_.settings.rules();
  job->hold_results = settings.hold_results;
  job->outcome = wanted_outcome(buffer.get(), settings);
  if (is_still(*job, buffer.get(), settings)) job->outcome = Outcome::held;
  bool ends_clip = true;
  if (is_ready)
    readable =
        shared_.reads([&] { ends_clip = add_to_clip(buffer.get(), *job->session, settings); });
  if (!(readable && ends_clip) && job->outcome == Outcome::run) job->outcome = Outcome::skipped;
  // Which frames need an inference of regions is known later.
  if (is_ready && settings.inference_region == RegionChoice::full_frame) take_turn(*job, settings);
  job->buffer = std::move(buffer);
  // Frames that need no inference pass without the device; only others may be dropped.
  const bool droppable = policy == OverloadPolicy::drop && job->outcome == Outcome::run;
  bool dropped = false, skipped = false;
  if (droppable)
    dropped = !shared_.queue.try_admit();
  else if (!shared_.queue.admit())
    return GST_FLOW_FLUSHING;
  // Leaves the queue unless the frame is pushed into it.
  struct Room {
    FrameQueue<QueueItem>* queue;
    ~Room() {
      if (queue != nullptr) queue->leave();
    }
  } room{dropped ? nullptr : &shared_.queue};
  job->admitted = Job::Clock::now();
  const auto submits = [&] {
    bool submitted = false;
    if (!shared_.reads([&] { submitted = submit(*job, settings, waits); })) {
      job->inferences.clear();
      job->input.reset();
      job->sample.reset();
    }
    return submitted;
  };
  if (job->outcome == Outcome::run && !dropped && !(is_ready && submits())) {
    if (stream_.interrupted) return GST_FLOW_FLUSHING;
    (droppable ? dropped : skipped) = true;
  }
  if (job->has_target && (dropped || skipped)) shared_.target->give_back();
  if (skipped) job->outcome = Outcome::skipped;
  if (job->outcome == Outcome::run && !dropped) motion_.pass();
  const bool degraded = dropped || skipped || job->outcome == Outcome::late;
  {
    const std::lock_guard lock(mutex_);
    ++(degraded ? quality_.dropped : quality_.processed);
  }
  if (degraded) report_quality(job->buffer.get());
  if (dropped) {
    GST_LOG_OBJECT(self_, "frame dropped: %" GST_TIME_FORMAT,
                   GST_TIME_ARGS(GST_BUFFER_PTS(job->buffer.get())));
    shared_.statistics.count_dropped();
    dropped_ = true;
    return GST_FLOW_OK;
  }
  job->discont = std::exchange(dropped_, false);
  QueueItem item;
  item.job = std::move(job);
  if (!shared_.queue.push_frame(item)) return GST_FLOW_FLUSHING;
  room.queue = nullptr;
  return GST_FLOW_OK;
}

// ---- events and queries -------------------------------------------------------------------------

bool Intake::set_caps(const GstEvent* event) {
  GstCaps* caps = nullptr;
  gst_event_parse_caps(const_cast<GstEvent*>(event), &caps);
  GstVideoInfo info;
  if (!read_caps(caps, info)) {
    GST_WARNING_OBJECT(self_, "caps %" GST_PTR_FORMAT " say no picture", caps);
    return false;
  }
  if constexpr (kHaveSurfaces) has_surfaces_ = is_surface_caps(caps);
  const GstVideoInterlaceMode mode = GST_VIDEO_INFO_INTERLACE_MODE(&info);
  // Leaves frames of mixed streams to be checked one by one.
  if (has_surfaces_ && mode != GST_VIDEO_INTERLACE_MODE_PROGRESSIVE &&
      mode != GST_VIDEO_INTERLACE_MODE_MIXED)
    throw Error{ErrorCode::unsupported, std::string("interlaced VA surfaces (") +
                                            gst_video_interlace_mode_to_string(mode) +
                                            ") are not read: put a deinterlacer before clinfer"};
  info_ = info;
  model_.follow_frame(info_);
  clip_.clear();
  shared_.renewed = resets_states_ = true;
  looked_at_rules_.reset();
  shared_.kind = is_dmabuf_caps(caps) ? &dmabuf_kind() : nullptr;
  if constexpr (kHaveCudaMemory) {
    if (has_feature(caps, kCudaFeature)) shared_.kind = &cuda_kind();
    cuda_copier_.clear();
  }
  has_caps_ = true;
  if (mode != GST_VIDEO_INTERLACE_MODE_PROGRESSIVE && !std::exchange(warned_of_fields_, true))
    GST_ELEMENT_WARNING(self_, STREAM, FORMAT,
                        ("frames are interlaced (%s); both fields are inferred as one picture",
                         gst_video_interlace_mode_to_string(mode)),
                        ("put a deinterlacer before clinfer where objects move"));
  // If upstream names its display, does not wait for the first frame.
  std::shared_ptr<const SurfaceDisplay> display;
  if constexpr (kHaveSurfaces)
    if (has_surfaces_ && model_.takes_surfaces()) display = find_display(self_, sink_);
  if (display != nullptr || !has_surfaces_ || !model_.takes_surfaces())
    model_.compile_for(std::move(display));
  return true;
}

Orientation Intake::orientation_for(const Settings& settings, GstBuffer* buffer) {
  if (settings.video_direction != GST_VIDEO_ORIENTATION_AUTO)
    return orientation_of(settings.video_direction);
  const Orientation tagged = orientation_of(tagged_);
  const GstVideoAffineTransformationMeta* meta =
      gst_buffer_get_video_affine_transformation_meta(buffer);
  if (meta == nullptr) return tagged;
  const std::optional<Orientation> turn = orientation_of(*meta);
  if (turn == Orientation{}) return tagged;
  if (turn && tagged == Orientation{}) {
    tell_of_turning("frames' GstVideoAffineTransformationMeta says");
    return *turn;
  }
  if (!std::exchange(warned_of_transformation_, true))
    GST_ELEMENT_WARNING(
        self_, STREAM, FORMAT,
        ("%s; the network gets the picture as %s, and results are in its coordinates: set "
         "video-direction",
         turn ? "frames are turned by a GstVideoAffineTransformationMeta and by the stream's tag"
              : "frames carry a GstVideoAffineTransformationMeta that does more than turn them",
         turn ? "the tag says" : "it is stored"),
        (nullptr));
  return tagged;
}

// Tells the user once that another element may have turned the picture and left the tag.
void Intake::tell_of_turning(const char* why) {
  if (std::exchange(told_of_turning_, true)) return;
  GST_ELEMENT_INFO(self_, STREAM, FORMAT,
                   ("the network gets the picture turned as the %s; set video-direction=identity "
                    "where it is upright already",
                    why),
                   (nullptr));
}

void Intake::read_tags(const GstEvent* event) {
  GstTagList* tags = nullptr;
  gst_event_parse_tag(const_cast<GstEvent*>(event), &tags);
  const std::optional<GstVideoOrientationMethod> method = tagged_orientation(tags);
  if (!method) return;
  tagged_ = is_turned_upstream(sink_) ? GST_VIDEO_ORIENTATION_IDENTITY : *method;
  if (tagged_ != GST_VIDEO_ORIENTATION_IDENTITY &&
      shared_.settings.now()->video_direction == GST_VIDEO_ORIENTATION_AUTO)
    tell_of_turning("stream's tag image-orientation says");
}

GstFlowReturn Intake::take_event(Handle<GstEvent> event) {
  const auto flow_of = [](bool done) { return done ? GST_FLOW_OK : GST_FLOW_ERROR; };
  GST_LOG_OBJECT(self_, "event: %" GST_PTR_FORMAT, event.get());
  switch (GST_EVENT_TYPE(event.get())) {
    case GST_EVENT_CAPS:
      if (!set_caps(event.get())) return GST_FLOW_NOT_NEGOTIATED;
      break;
    case GST_EVENT_TAG:
      read_tags(event.get());
      break;
    case GST_EVENT_EOS:
      at_end_ = true;
      break;
    case GST_EVENT_SEGMENT:
      at_end_ = false;
      shared_.renewed = true;
      gst_event_copy_segment(event.get(), &segment_);
      [[fallthrough]];
    case GST_EVENT_STREAM_START: {
      if (GST_EVENT_TYPE(event.get()) == GST_EVENT_STREAM_START)
        tagged_ = GST_VIDEO_ORIENTATION_IDENTITY;
      ++shared_.pending_starts;
      shared_.flow.go_on_after(GST_FLOW_EOS);
      break;
    }
    default:
      if (!(gst_event_type_get_flags(GST_EVENT_TYPE(event.get())) & GST_EVENT_TYPE_SERIALIZED))
        return flow_of(gst_pad_event_default(sink_, GST_OBJECT(self_), event.release()));
  }
  flush_partial_batch();
  QueueItem item;
  item.event = std::move(event);
  // Accepts a sticky event, which is sent again after a flush: upstream must not believe that it
  // was refused.
  return shared_.queue.push_other(item) ? GST_FLOW_OK : GST_FLOW_FLUSHING;
}

// Launches frames before an event or query, which must not wait until other frames fill their
// batch.
void Intake::flush_partial_batch() {
  if (const std::shared_ptr<const Session> session = model_.session())
    session->shared->batcher->flush_partial_batch(stream_);
  widths_.flush_partial_batches(stream_);
}

bool Intake::take_query(GstQuery* query) {
  if (!(gst_query_type_get_flags(GST_QUERY_TYPE(query)) & GST_QUERY_TYPE_SERIALIZED))
    return gst_pad_query_default(sink_, GST_OBJECT(self_), query);
  flush_partial_batch();
  auto ticket = std::make_unique<QueryTicket>(query);
  const std::shared_ptr<QueryAnswer> answer = ticket->answer;
  QueueItem item;
  item.query = std::move(ticket);
  return shared_.queue.push_other(item) && answer->wait();
}

}  // namespace clinfer
