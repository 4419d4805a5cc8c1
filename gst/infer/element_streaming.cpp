// The element's data flow: frames, events and queries in at the sink pad, out in the same order by
// the source pad's task.
#include <algorithm>

#include "gst/base/guard.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"
#include "gst/frames/orientation.h"
#include "gst/infer/element.h"
#include "gst/infer/quality.h"
#include "gst/meta/follow.h"
#include "gst/meta/meta.h"
#include "kernels/base/no_answer.h"

#define GST_CAT_DEFAULT clinfer_streaming_debug

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

// A batch of frames that are not live waits until it is full, or until the source stands still: it
// may have no buffers left to give.
constexpr auto kQuiet = std::chrono::milliseconds(100);

// For live sources whose caps have no frame rate.
constexpr auto kUnknownInterval = std::chrono::milliseconds(40);

// Puts the fixed regions on the buffer as regions of interest, for the results of each part.
void add_regions(GstBuffer* buffer, const std::vector<Rect>& regions, FrameResult& result) {
  const Rect& visible = result.visible;
  int id = 0;
  for (const RegionView& known : read_regions(buffer, visible.width, visible.height))
    id = std::max(id, known.id);
  const int first = id;
  for (const Rect& rect : regions) {
    GstVideoRegionOfInterestMeta* roi = gst_buffer_add_video_region_of_interest_meta(
        buffer, "region", static_cast<guint>(rect.x - visible.x),
        static_cast<guint>(rect.y - visible.y), static_cast<guint>(rect.width),
        static_cast<guint>(rect.height));
    roi->id = ++id;
  }
  const std::vector<RegionView> all = read_regions(buffer, visible.width, visible.height);
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].id > first && all[i].id <= id)
      result.parts[static_cast<size_t>(all[i].id - first - 1)].region = i;
}

}  // namespace

void Element::fail(const Failure& failure) {
  fail_once([&] { post_error(self_, failure); });
}

GstFlowReturn Element::failed_flow() const {
  const GstFlowReturn flow = flow_.load();
  return flow == GST_FLOW_OK ? GST_FLOW_ERROR : flow;
}

// ---- the streaming thread -----------------------------------------------------------------------

// Whether the source is live, asked once it can know.
bool Element::fed_live() {
  if (!std::exchange(asked_live_, true)) {
    GstQuery* query = gst_query_new_latency();
    if (gst_pad_peer_query(sink_, query)) {
      gboolean live = FALSE;
      gst_query_parse_latency(query, &live, nullptr, nullptr);
      live_ = live;
    }
    gst_query_unref(query);
  }
  return live_.load();
}

bool Element::too_late(GstBuffer* buffer) {
  if (segment_.format != GST_FORMAT_TIME || !GST_BUFFER_PTS_IS_VALID(buffer)) return false;
  const GstClockTime running_time =
      gst_segment_to_running_time(&segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  if (!GST_CLOCK_TIME_IS_VALID(running_time)) return false;
  const ObjectLock lock(self_);
  return settings_.qos && GST_CLOCK_TIME_IS_VALID(qos_.earliest) && running_time <= qos_.earliest;
}

// Tells the application of a frame that goes on without inference, or not at all.
void Element::report_quality(GstBuffer* buffer) {
  Qos qos;
  {
    const ObjectLock lock(self_);
    qos = qos_;
  }
  guint64 running_time = GST_CLOCK_TIME_NONE, stream_time = GST_CLOCK_TIME_NONE;
  if (segment_.format == GST_FORMAT_TIME && GST_BUFFER_PTS_IS_VALID(buffer)) {
    running_time = gst_segment_to_running_time(&segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    stream_time = gst_segment_to_stream_time(&segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  }
  GstMessage* message =
      gst_message_new_qos(GST_OBJECT(self_), live_.load(), running_time, stream_time,
                          GST_BUFFER_PTS(buffer), GST_BUFFER_DURATION(buffer));
  const GstClockTimeDiff jitter =
      GST_CLOCK_TIME_IS_VALID(qos.earliest) && GST_CLOCK_TIME_IS_VALID(running_time)
          ? difference(running_time, qos.earliest)
          : 0;
  gst_message_set_qos_values(message, jitter, qos.proportion, 1000000);
  gst_message_set_qos_stats(message, GST_FORMAT_BUFFERS, qos.processed, qos.dropped);
  gst_element_post_message(self_, message);
}

Outcome Element::wanted_outcome(GstBuffer* buffer) {
  unsigned interval = 1;
  {
    const ObjectLock lock(self_);
    interval = std::max(settings_.inference_interval, 1u);
  }
  if (frame_number_++ % interval != 0) return Outcome::skipped;
  return too_late(buffer) ? Outcome::late : Outcome::run;
}

// Between frames, by the caps.
std::optional<std::chrono::nanoseconds> Element::frame_interval() const {
  if (GST_VIDEO_INFO_FPS_N(&info_) <= 0 || GST_VIDEO_INFO_FPS_D(&info_) <= 0) return std::nullopt;
  return std::chrono::nanoseconds(
      gst_util_uint64_scale(GST_SECOND, static_cast<guint64>(GST_VIDEO_INFO_FPS_D(&info_)),
                            static_cast<guint64>(GST_VIDEO_INFO_FPS_N(&info_))));
}

ModelBatcher::BatchWait Element::batch_wait(const Settings& settings) const {
  if (settings.batch_timeout >= 0)
    return {std::chrono::milliseconds(settings.batch_timeout), kQuiet};
  if (live_.load()) return {frame_interval(), kQuiet};
  return {std::nullopt, kQuiet};
}

// Gives the frame's inferences to the batcher. False while flushing, or when the device could not
// begin the frame soon enough and `waits` is false.
bool Element::submit(Job& job, const Settings& settings, bool waits) {
  const Orientation orientation = orientation_for(settings, job.buffer.get());
  job.input = make_input(job, *job.session->shared);
  job.input->turn(orientation);
  job.visible = job.input->visible();
  const Rect whole = job.input->region();
  std::vector<InferenceRegion> regions{{std::nullopt, whole, std::nullopt}};
  if (settings.inference_region == RegionChoice::roi_list) {
    regions = regions_to_infer(job.buffer.get(), job.visible, settings.object_class);
    const double pixel_aspect = static_cast<double>(GST_VIDEO_INFO_PAR_N(&info_)) /
                                std::max(GST_VIDEO_INFO_PAR_D(&info_), 1);
    for (InferenceRegion& region : regions)
      region.rect = job.rules->around(region.rect, job.visible, pixel_aspect);
  }
  if (settings.reclassify_interval != 1) {
    if (classified_with_.lock() != job.session) {
      track_results_.clear();  // another model says something else
      classified_with_ = job.session;
    }
    track_results_.next_frame();
    std::erase_if(regions, [&](const InferenceRegion& region) {
      if (!region.track || track_results_.is_due(*region.track, settings.reclassify_interval))
        return false;
      job.known_regions.push_back(region);
      return true;
    });
  }
  if (std::exchange(looked_at_rules_, job.rules) != job.rules)
    for (const std::string& region : job.rules->regions_outside(job.visible))
      GST_ELEMENT_WARNING(self_, RESOURCE, SETTINGS,
                          ("the region %s lies outside of frames of %dx%d, and gets no results",
                           region.c_str(), job.visible.width, job.visible.height),
                          (nullptr));
  if (job.rules->has_regions() || job.rules->has_tiles()) regions.clear();
  for (const Rect& part : job.rules->parts(job.visible))
    regions.push_back({std::nullopt, part, std::nullopt});
  const Clip::Frames clip = job.session->network.clip_length > 1 ? clip_.frames() : Clip::Frames();
  const ModelBatcher::BatchWait wait = batch_wait(settings);
  const ModelBatcher::Clock::duration longest_wait = frame_interval().value_or(kUnknownInterval);
  stream_.share = settings.share;
  for (const InferenceRegion& region : regions) {
    Job::Inference& inference = job.inferences.emplace_back();
    inference.region = region;
    int width = region.rect.width, height = region.rect.height;
    if (orientation.transpose) std::swap(width, height);
    inference.session = widths_.session_for(job.session, width, height, waits);
    ModelBatcher& batcher = *inference.session->shared->batcher;
    // The device may need the input for longer than the job lives.
    const auto fill = [frames = clip.empty()
                                    ? Clip::Frames{input_for(job, *inference.session, orientation)}
                                    : clip,
                       visible = job.visible, &inference](InferRequest& request, size_t image) {
      inference.begun = Clock::now();
      const Network& network = inference.session->network;
      const Rect& region = inference.region.rect;
      const Rect part = network.crop_share >= 1
                            ? region
                            : fed_part(region.width == 0 ? visible : region, network);
      for (size_t k = 0; k < frames.size(); ++k)
        inference.placement = frames[k]->fill(request, network.image_input, network.transform, part,
                                              image * frames.size() + k);
    };
    if (waits)
      inference.ticket = batcher.submit(stream_, fill, wait);
    else if (job.inferences.size() == 1)
      inference.ticket = batcher.try_submit(stream_, fill, wait, longest_wait);
    else  // all regions of a frame that was admitted follow
      inference.ticket = batcher.submit_more(stream_, fill, wait);
    if (!inference.ticket) {
      job.inferences.pop_back();
      return false;
    }
  }
  unreadable_.count_readable();
  return true;
}

// False where the network takes clips and none ends with this frame.
bool Element::add_to_clip(GstBuffer* buffer, const Session& session, const Settings& settings) {
  const auto length = static_cast<size_t>(session.network.clip_length);
  return length <= 1 || clip_.add(buffer, info_, orientation_for(settings, buffer),
                                  *session.shared->compiled, length, settings.clip_stride);
}

GstFlowReturn Element::chain(Handle<GstBuffer> buffer) {
  const Clock::time_point arrived = Clock::now();
  if (const GstFlowReturn flow = flow_.load(); flow != GST_FLOW_OK) {
    flow_reported_ = true;
    return flow;
  }
  if (!has_caps_) {
    fail_once([this] {
      GST_ELEMENT_ERROR(self_, CORE, NEGOTIATION, ("frames came before their format"), (nullptr));
    });
    return GST_FLOW_NOT_NEGOTIATED;
  }
  statistics_.count_in();
  GST_LOG_OBJECT(self_, "frame in: %" GST_TIME_FORMAT, GST_TIME_ARGS(GST_BUFFER_PTS(buffer.get())));
  bool readable = true;
  if constexpr (kHaveSurfaces)
    if (has_surfaces_ && take_surfaces_)
      readable = reads([&] { compile_for(display_of(buffer.get(), loader_.display())); });
  auto job = std::make_unique<Job>();
  job->arrived = arrived;
  sync_controllers(self_, segment_, buffer.get());
  const Settings settings = this->settings();
  const OverloadPolicy policy = fed_live() ? settings.overload_policy : OverloadPolicy::block;
  // A live source must not stand still while the model compiles.
  const bool waits = policy == OverloadPolicy::block;
  const bool settled = readable && (waits || loader_.is_over());
  job->session = settled ? loader_.wait() : nullptr;
  const bool is_ready = job->session != nullptr;
  if (settled && !is_ready) return failed_flow();
  const bool is_final = is_ready && !job->session->shared->is_interim;
  if (is_final && asked_early_.exchange(false) &&
      job->session->shared->compiled->wants_frame_memory())
    gst_pad_push_event(sink_, gst_event_new_reconfigure());
  if (is_ready) job->decode = decode_settings(job->session->network, settings);
  {
    const ObjectLock lock(self_);
    job->rules = rules_;
  }
  job->hold_results = settings.hold_results;
  job->outcome = wanted_outcome(buffer.get());
  bool ends_clip = true;
  if (is_ready)
    readable = reads([&] { ends_clip = add_to_clip(buffer.get(), *job->session, settings); });
  if (!(readable && ends_clip) && job->outcome == Outcome::run) job->outcome = Outcome::skipped;
  job->buffer = std::move(buffer);
  // Frames that need no inference pass without the device; only others may be dropped.
  const bool droppable = policy == OverloadPolicy::drop && job->outcome == Outcome::run;
  bool dropped = false, skipped = false;
  if (droppable)
    dropped = !queue_.try_admit();
  else if (!queue_.admit())
    return GST_FLOW_FLUSHING;
  // Leaves the queue unless the frame is pushed into it.
  struct Room {
    FrameQueue<Item>* queue;
    ~Room() {
      if (queue != nullptr) queue->leave();
    }
  } room{dropped ? nullptr : &queue_};
  job->admitted = Clock::now();
  const auto submits = [&] {
    bool submitted = false;
    if (!reads([&] { submitted = submit(*job, settings, waits); })) {
      job->inferences.clear();
      job->input.reset();
    }
    return submitted;
  };
  if (job->outcome == Outcome::run && !dropped && !(is_ready && submits())) {
    if (stream_.interrupted) return GST_FLOW_FLUSHING;
    (droppable ? dropped : skipped) = true;
  }
  if (skipped) job->outcome = Outcome::skipped;
  const bool degraded = dropped || skipped || job->outcome == Outcome::late;
  {
    const ObjectLock lock(self_);
    ++(degraded ? qos_.dropped : qos_.processed);
  }
  if (degraded) report_quality(job->buffer.get());
  if (dropped) {
    GST_LOG_OBJECT(self_, "frame dropped: %" GST_TIME_FORMAT,
                   GST_TIME_ARGS(GST_BUFFER_PTS(job->buffer.get())));
    statistics_.count_dropped();
    dropped_ = true;
    return GST_FLOW_OK;
  }
  job->discont = std::exchange(dropped_, false);
  Item item;
  item.job = std::move(job);
  if (!queue_.push_frame(item)) return GST_FLOW_FLUSHING;
  room.queue = nullptr;
  return GST_FLOW_OK;
}

bool Element::set_caps(const GstEvent* event) {
  GstCaps* caps = nullptr;
  gst_event_parse_caps(const_cast<GstEvent*>(event), &caps);
  GstVideoInfo info;
  if (!read_caps(caps, info)) {
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
  follow_frame();
  clip_.clear();
  looked_at_rules_.reset();
  kind_ = is_dmabuf_caps(caps) ? &dmabuf_kind() : nullptr;
  if constexpr (kHaveCudaMemory) {
    if (has_feature(caps, kCudaFeature)) kind_ = &cuda_kind();
    cuda_copier_.clear();
  }
  has_caps_ = true;
  if (mode != GST_VIDEO_INTERLACE_MODE_PROGRESSIVE && !std::exchange(warned_of_fields_, true))
    GST_ELEMENT_WARNING(self_, STREAM, FORMAT,
                        ("frames are interlaced (%s); both fields are inferred as one picture",
                         gst_video_interlace_mode_to_string(mode)),
                        ("put a deinterlacer before clinfer where objects move"));
  // If upstream names its display, there is no need to wait for the first frame.
  std::shared_ptr<const SurfaceDisplay> display;
  if constexpr (kHaveSurfaces)
    if (has_surfaces_ && take_surfaces_) display = find_display(self_, sink_);
  if (display != nullptr || !has_surfaces_ || !take_surfaces_) compile_for(std::move(display));
  return true;
}

Orientation Element::orientation_for(const Settings& settings, GstBuffer* buffer) {
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

// Another element may have turned the picture and left what says so.
void Element::tell_of_turning(const char* why) {
  if (std::exchange(told_of_turning_, true)) return;
  GST_ELEMENT_INFO(self_, STREAM, FORMAT,
                   ("the network gets the picture turned as the %s; set video-direction=identity "
                    "where it is upright already",
                    why),
                   (nullptr));
}

void Element::read_tags(const GstEvent* event) {
  GstTagList* tags = nullptr;
  gst_event_parse_tag(const_cast<GstEvent*>(event), &tags);
  const std::optional<GstVideoOrientationMethod> method = tagged_orientation(tags);
  if (!method) return;
  tagged_ = is_turned_upstream(sink_) ? GST_VIDEO_ORIENTATION_IDENTITY : *method;
  if (tagged_ != GST_VIDEO_ORIENTATION_IDENTITY &&
      settings().video_direction == GST_VIDEO_ORIENTATION_AUTO)
    tell_of_turning("stream's tag image-orientation says");
}

GstFlowReturn Element::sink_event(Handle<GstEvent> event) {
  const auto flow_of = [](bool done) { return done ? GST_FLOW_OK : GST_FLOW_ERROR; };
  GST_LOG_OBJECT(self_, "event: %" GST_PTR_FORMAT, event.get());
  switch (GST_EVENT_TYPE(event.get())) {
    case GST_EVENT_FLUSH_START: {
      const bool sent = gst_pad_push_event(src_, event.release());
      start_flush();
      return flow_of(sent);
    }
    case GST_EVENT_FLUSH_STOP: {
      at_end_ = false;
      // The task must be between two rounds, so that nothing from before the flush comes after it.
      gst_pad_pause_task(src_);
      gst_segment_init(&segment_, GST_FORMAT_TIME);
      frame_number_ = 0;
      clip_.clear();
      {
        const ObjectLock lock(self_);
        qos_.earliest = GST_CLOCK_TIME_NONE;
      }
      const bool sent = gst_pad_push_event(src_, event.release());
      // The flush may have dropped sticky events on their way; the sink pad still has them.
      gst_pad_sticky_events_foreach(
          sink_,
          [](GstPad*, GstEvent** sticky, gpointer src) -> gboolean {
            if (GST_EVENT_TYPE(*sticky) != GST_EVENT_SEGMENT &&
                GST_EVENT_TYPE(*sticky) != GST_EVENT_EOS)
              gst_pad_store_sticky_event(GST_PAD(src), *sticky);
            return TRUE;
          },
          src_);
      if (gst_pad_is_active(src_)) {
        stop_flush();
        start_task();
      }
      return flow_of(sent);
    }
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
      gst_event_copy_segment(event.get(), &segment_);
      [[fallthrough]];
    case GST_EVENT_STREAM_START: {
      if (GST_EVENT_TYPE(event.get()) == GST_EVENT_STREAM_START)
        tagged_ = GST_VIDEO_ORIENTATION_IDENTITY;
      ++pending_starts_;
      GstFlowReturn at_end = GST_FLOW_EOS;
      flow_.compare_exchange_strong(at_end, GST_FLOW_OK);
      break;
    }
    default:
      if (!GST_EVENT_IS_SERIALIZED(event.get()))
        return flow_of(gst_pad_event_default(sink_, GST_OBJECT(self_), event.release()));
  }
  flush_partial_batch();
  Item item;
  item.event = std::move(event);
  // A sticky event is sent again after a flush: upstream must not believe that it was refused.
  return queue_.push_other(item) ? GST_FLOW_OK : GST_FLOW_FLUSHING;
}

// Events and queries after a frame must not wait until other frames fill its batch.
void Element::flush_partial_batch() {
  if (const std::shared_ptr<const Session> session = loader_.session())
    session->shared->batcher->flush_partial_batch(stream_);
  widths_.flush_partial_batches(stream_);
}

bool Element::sink_query(GstQuery* query) {
  if (!GST_QUERY_IS_SERIALIZED(query))
    return gst_pad_query_default(sink_, GST_OBJECT(self_), query);
  flush_partial_batch();
  auto ticket = std::make_unique<QueryTicket>(query);
  const std::shared_ptr<Answer> answer = ticket->answer;
  Item item;
  item.query = std::move(ticket);
  return queue_.push_other(item) && answer->wait();
}

// ---- the source pad's task ----------------------------------------------------------------------

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
    item.query->answer->give(answered);
  }
}

void Element::finish_frame(std::unique_ptr<Job> job, uint64_t generation) {
  // Leaves the queue after the push: a chain function woken earlier could take over this thread's
  // core, and the frame would be pushed a time slice later.
  struct Room {
    FrameQueue<Item>& queue;
    ~Room() { queue.leave(); }
  } room{queue_};

  FrameResult result;
  std::vector<std::pair<Job::Inference*, std::vector<Tensor>>> finished;
  for (Job::Inference& inference : job->inferences) {
    try {
      std::optional<std::vector<Tensor>> outputs = inference.ticket.wait();
      if (!outputs) return;  // a flush
      finished.emplace_back(&inference, std::move(*outputs));
    } catch (const std::exception& error) {
      if (goes_on_without(*job, error)) {
        job->outcome = Outcome::skipped;
        finished.clear();
        break;
      }
      if (queue_.is_current(generation) && flow_.load() == GST_FLOW_OK) throw;
      return;  // frames that fail together give one error
    }
  }
  const std::shared_ptr<const Session> session = job->session;  // null: not ready
  if (session != nullptr) say_problems(self_, *session->shared->compiled);
  if (!queue_.is_current(generation)) return;
  if (flow_.load() != GST_FLOW_OK || dropping_) return;

  const Network& network = session != nullptr ? session->network : network_;
  const Outcome outcome = result.outcome = job->outcome;
  result.model = network.name;
  result.visible = job->visible;
  const Clock::time_point waited = Clock::now();
  if (session != nullptr) {
    decode(*job, result, finished);
    repeat_results(*job, result);
  }
  const std::vector<Rect> new_regions =
      job->rules->has_regions() ? job->rules->parts(result.visible) : std::vector<Rect>();
  hold_results(result, new_regions.empty() ? job->hold_results : 0);
  const bool timed = !finished.empty();
  if (timed) unanswered_ = false;
  const double queued = timed ? milliseconds_between(job->arrived, finished[0].first->begun) : 0;
  const double inferred = timed ? milliseconds_between(finished[0].first->begun, waited) : 0;
  const Clock::time_point admitted = job->admitted;
  const bool discont = job->discont;
  Handle<GstBuffer> buffer = std::move(job->buffer);
  if (job->input != nullptr) {
    if (job->input->zero_copy())
      job->copied_on_device ? statistics_.count_device_copy() : statistics_.count_zero_copy();
    if (job->input->in_frame_memory()) statistics_.count_fetched();
    if (const std::string& why = job->input->problem(); !why.empty()) warn_of_copies(why);
  }
  job.reset();

  buffer = writable(std::move(buffer));
  if (discont) GST_BUFFER_FLAG_SET(buffer.get(), GST_BUFFER_FLAG_DISCONT);
  if (result.parts.size() == new_regions.size()) add_regions(buffer.get(), new_regions, result);
  attach_result(buffer.get(), result, network.labels);
  if (timed) {
    statistics_.add(Statistics::kQueue, queued);
    statistics_.add(Statistics::kInfer, inferred);
    const Clock::time_point departed = Clock::now();
    statistics_.add(Statistics::kDecode, milliseconds_between(waited, departed));
    if (live_.load() && service_time_.add(milliseconds_between(admitted, departed)))
      gst_element_post_message(self_, gst_message_new_latency(GST_OBJECT(self_)));
  }
  if (outcome == Outcome::late) statistics_.count_late();
  statistics_.count_out(outcome == Outcome::run);
  GST_LOG_OBJECT(self_, "frame out: %" GST_TIME_FORMAT ", %s",
                 GST_TIME_ARGS(GST_BUFFER_PTS(buffer.get())), name_of(outcome).data());

  if (relinked_.exchange(false)) follow_results(src_);
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

// From the tensors of each part to the results that the application wants.
void Element::decode(Job& job, FrameResult& result,
                     const std::vector<std::pair<Job::Inference*, std::vector<Tensor>>>& finished) {
  const DecodeSettings relaxed = job.rules->decoding(job.decode);
  std::vector<Rect> rects;
  bool other_results = false;
  for (const auto& [inference, outputs] : finished) {
    PartResult& part = result.parts.emplace_back();
    const Network& network = inference->session->network;
    const std::string warning =
        read_outputs(network, outputs, relaxed, relaxed.attach_tensors, part.results);
    if (!warning.empty())
      GST_ELEMENT_WARNING(self_, STREAM, DECODE, ("%s: %s", network.name.c_str(), warning.c_str()),
                          (nullptr));
    part.placement = inference->placement;
    part.region = inference->region.index;
    rects.push_back(inference->region.rect);
    if (!job.rules->has_tiles()) continue;
    // Results about a tile as a whole do not apply to the picture.
    Results objects;
    std::swap(objects.detections, part.results.detections);
    std::swap(objects, part.results);
    other_results = other_results || !objects.classifications.empty() || !objects.maps.empty();
  }
  if (other_results && !std::exchange(warned_of_tiles_, true))
    GST_ELEMENT_WARNING(
        self_, STREAM, FORMAT,
        ("tiles are for networks that find objects; other results of %s are dropped",
         job.session->network.name.c_str()),
        ("unset tiles, or set regions to get results for parts of the picture"));
  job.rules->keep_wanted(result.parts, rects, result.visible, job.session->network.labels,
                         job.decode);
}

// Keeps what was said of tracked objects, and repeats it of those that were not inferred again.
void Element::repeat_results(const Job& job, FrameResult& result) {
  size_t part = 0;
  for (const Job::Inference& inference : job.inferences) {
    if (part == result.parts.size()) break;
    if (inference.region.track)
      track_results_.store(*inference.region.track, result.parts[part], inference.region.rect);
    ++part;
  }
  for (const InferenceRegion& region : job.known_regions)
    if (std::optional<PartResult> last = track_results_.last(*region.track, region.rect)) {
      last->region = region.index;
      result.parts.push_back(std::move(*last));
    }
}

// Whether a frame passes without the inference that failed: one that turned out to be unreadable does,
// and frames of a live source do when the device does not answer, if they would when it is busy.
bool Element::goes_on_without(const Job& job, const std::exception& error) {
  if (const auto* unreadable = dynamic_cast<const UnreadableFrame*>(&error)) {
    unreadable_.lose(self_, *unreadable);
    return true;
  }
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known == nullptr) return false;
  const bool no_answer = dynamic_cast<const NoAnswer*>(&error) != nullptr;
  if (known->code() == ErrorCode::device_failed) job.session->shared->failed = true;
  if (!no_answer || !live_.load() || settings().overload_policy == OverloadPolicy::block)
    return false;
  if (!unanswered_.exchange(true))
    GST_ELEMENT_WARNING(self_, RESOURCE, BUSY,
                        ("%s; frames go on without inference until it answers", known->what()),
                        (nullptr));
  return true;
}

// Remembers the results of an inferred frame, and repeats them on frames without inference as often
// as hold-results says. Results on regions are not repeated: the regions of another frame differ.
void Element::hold_results(FrameResult& result, unsigned most) {
  if (most == 0) {
    held_.reset();
  } else if (result.outcome == Outcome::run) {
    held_ = {result, most};
    for (const PartResult& part : result.parts)
      if (part.region) held_.reset();
  } else if (held_ && held_->remaining != 0 && held_->result.model == result.model) {
    --held_->remaining;
    result = held_->result;
    result.outcome = Outcome::held;
  }
}

void Element::forward_event(Handle<GstEvent> event) {
  switch (GST_EVENT_TYPE(event.get())) {
    case GST_EVENT_CAPS:
      held_.reset();
      relinked_ = true;
      break;
    case GST_EVENT_SEGMENT:
    case GST_EVENT_STREAM_START:
      held_.reset();
      if (pending_starts_.load() != 0) --pending_starts_;
      dropping_ = false;
      break;
    case GST_EVENT_EOS: {
      // No later frame will return the failure to upstream; the application is told here.
      const GstFlowReturn flow = flow_.load();
      if ((flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS) && !flow_reported_.exchange(true))
        GST_ELEMENT_FLOW_ERROR(self_, flow);
      post_stats();
      break;
    }
    default:
      break;
  }
  gst_pad_push_event(src_, event.release());
}

// ---- queries and upstream events ----------------------------------------------------------------

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
    if (read_caps(caps.get(), info) && GST_VIDEO_INFO_FPS_N(&info) > 0)
      room =
          std::max(room, gst_util_uint64_scale(queue_.capacity() * GST_SECOND,
                                               static_cast<guint64>(GST_VIDEO_INFO_FPS_D(&info)),
                                               static_cast<guint64>(GST_VIDEO_INFO_FPS_N(&info))));
  }
  constexpr GstClockTime kMost = GST_CLOCK_TIME_NONE - 1;
  least = std::min(least, kMost - own) + own;
  if (GST_CLOCK_TIME_IS_VALID(most)) most = std::min(most, kMost - room) + room;
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
      const ObjectLock lock(self_);
      qos_.proportion = proportion;
      qos_.earliest = earliest_in_time(timestamp, jitter);
    }
  } else if (GST_EVENT_TYPE(event.get()) == GST_EVENT_RECONFIGURE) {
    relinked_ = true;
    GstFlowReturn unlinked = GST_FLOW_NOT_LINKED;
    if (flow_.compare_exchange_strong(unlinked, GST_FLOW_OK)) flow_reported_ = false;
  }
  return gst_pad_event_default(src_, GST_OBJECT(self_), event.release());
}

}  // namespace clinfer
