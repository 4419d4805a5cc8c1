// Implements the data flow out of the element.
#include "gst/infer/stream/delivery.h"

#include <algorithm>

#include "gst/base/log.h"
#include "gst/infer/motion/motion_gate.h"
#include "gst/infer/stream/latency_tracer.h"
#include "gst/meta/follow.h"
#include "gst/meta/meta.h"
#include "kernels/base/no_answer.h"

#define GST_CAT_DEFAULT clinfer_streaming_debug

namespace clinfer {
namespace {

double milliseconds_between(Job::Clock::time_point from, Job::Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

uint64_t nanoseconds(double milliseconds) { return static_cast<uint64_t>(milliseconds * 1e6); }

// Returns a buffer to which metas may be added: the same one, or a copy that shares its memory and
// keeps it from going back to its pool.
Handle<GstBuffer> writable(Handle<GstBuffer> buffer) {
  if (gst_buffer_is_writable(buffer.get())) return buffer;
  Handle<GstBuffer> copy(gst_buffer_copy(buffer.get()));
  if (gst_buffer_get_parent_buffer_meta(copy.get()) == nullptr)
    gst_buffer_add_parent_buffer_meta(copy.get(), buffer.get());
  return copy;
}

// Adds the fixed regions to the buffer as objects, for the results of each part.
void add_regions(GstBuffer* buffer, const std::vector<Rect>& regions, FrameResult& result) {
  const Rect& visible = result.visible;
  std::vector<RegionView> objects;
  for (const Rect& rect : regions) {
    RegionView& object = objects.emplace_back();
    object.roi_type = "region";
    object.has_roi = result.roi_meta;
    object.x = rect.x - visible.x, object.y = rect.y - visible.y;
    object.width = rect.width, object.height = rect.height;
    const auto share = [](int pixel, int size) {
      return static_cast<float>(pixel) / static_cast<float>(size);
    };
    object.box = {share(object.x, visible.width), share(object.y, visible.height),
                  share(object.x + rect.width, visible.width),
                  share(object.y + rect.height, visible.height)};
  }
  const std::vector<int> ids = attach_objects(buffer, visible, objects);
  const std::vector<RegionView> all = read_regions(buffer, visible.width, visible.height);
  for (size_t i = 0; i < all.size(); ++i)
    if (const auto id = std::find(ids.begin(), ids.end(), all[i].id); id != ids.end())
      result.parts[static_cast<size_t>(id - ids.begin())].region = i;
}

}  // namespace

void Delivery::restart() {
  service_time_.clear();
  warned_of_tiles_ = false;
}

void Delivery::flush() { dropping_ = false; }

void Delivery::note_link() { relinked_ = true; }

void Delivery::round() {
  auto popped = shared_.queue.pop();
  if (!popped) {
    gst_pad_pause_task(shared_.src_pad);
    return;
  }
  QueueItem& item = popped->item;
  if (item.job != nullptr) {
    finish_frame(std::move(item.job), popped->generation);
  } else if (item.event != nullptr) {
    forward_event(std::move(item.event));
  } else {
    GstQuery* query = item.query->query;
    const bool answered = GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION
                              ? answer_allocation(query)
                              : gst_pad_peer_query(shared_.src_pad, query);
    item.query->answer->give(answered);
  }
}

std::optional<Delivery::Finished> Delivery::wait_for(Job& job, uint64_t generation) {
  Finished finished;
  for (Job::Inference& inference : job.inferences) {
    try {
      std::optional<std::vector<Tensor>> outputs = inference.ticket.wait();
      if (!outputs) return std::nullopt;  // a flush has begun
      finished.emplace_back(&inference, std::move(*outputs));
    } catch (const std::exception& error) {
      if (goes_on_without(job, error)) {
        job.outcome = Outcome::skipped;
        shared_.renewed = true;
        finished.clear();
        break;
      }
      if (shared_.queue.is_current(generation) && shared_.flow.is_fine()) throw;
      return std::nullopt;  // frames that fail together give one error
    }
  }
  return finished;
}

void Delivery::finish_frame(std::unique_ptr<Job> job, uint64_t generation) {
  using Clock = Job::Clock;
  // Leaves the queue after the push: a chain function woken earlier could take over this thread's
  // core, and the frame would be pushed a time slice later.
  struct Room {
    FrameQueue<QueueItem>& queue;
    ~Room() { queue.leave(); }
  } room{shared_.queue};

  const std::optional<Finished> waited_for = wait_for(*job, generation);
  if (!waited_for) return;
  const Finished& finished = *waited_for;
  const std::shared_ptr<const Session> session = job->session;  // null: it is not ready
  if (session != nullptr) say_problems(self_, *session->shared->compiled);
  if (!shared_.queue.is_current(generation)) return;
  if (!shared_.flow.is_fine() || dropping_) return;

  FrameResult result;
  const Network& network = session != nullptr ? session->network : model_.network();
  const Outcome outcome = result.outcome = job->outcome;
  result.model = network.name;
  result.visible = job->visible;
  result.roi_meta = session == nullptr || session->settings.roi_meta;
  const Clock::time_point waited = Clock::now();
  if (session != nullptr) {
    decode(*job, result, finished);
    repeat_results(*job, result);
    verify(*job, finished);
  }
  hold_results(result, *job);
  const std::vector<Rect> new_regions =
      job->rules->has_regions() ? job->rules->parts(result.visible) : std::vector<Rect>();
  const bool timed = !finished.empty();
  const auto inferences = static_cast<unsigned>(finished.size());
  if (timed) unanswered_ = false;
  const double queued = timed ? milliseconds_between(job->arrived, finished[0].first->begun) : 0;
  const double inferred = timed ? milliseconds_between(finished[0].first->begun, waited) : 0;
  const Clock::time_point arrived = job->arrived, admitted = job->admitted;
  const bool has_target = job->has_target;
  const bool discont = job->discont;
  Handle<GstBuffer> buffer = std::move(job->buffer);
  count_input(*job);
  job.reset();

  buffer = writable(std::move(buffer));
  if (discont) GST_BUFFER_FLAG_SET(buffer.get(), GST_BUFFER_FLAG_DISCONT);
  if (result.parts.size() == new_regions.size()) add_regions(buffer.get(), new_regions, result);
  attach_result(buffer.get(), result, network.labels);
  if (timed) {
    shared_.statistics.add(Statistics::kQueue, queued);
    shared_.statistics.add(Statistics::kInfer, inferred);
    const Clock::time_point departed = Clock::now();
    shared_.statistics.add(Statistics::kDecode, milliseconds_between(waited, departed));
    if (has_target) shared_.target->finish(milliseconds_between(arrived, departed));
    if (shared_.live.load() && service_time_.add(milliseconds_between(admitted, departed)))
      gst_element_post_message(self_, gst_message_new_latency(GST_OBJECT(self_)));
  }
  if (traces_frames())
    trace_frame(self_, {GST_BUFFER_PTS(buffer.get()), name_of(outcome), network.name, inferences,
                        nanoseconds(queued), nanoseconds(inferred),
                        nanoseconds(milliseconds_between(waited, Clock::now())),
                        nanoseconds(milliseconds_between(arrived, Clock::now()))});
  if (outcome == Outcome::late) shared_.statistics.count_late();
  if (outcome == Outcome::held) shared_.statistics.count_still();
  shared_.statistics.count_out(outcome == Outcome::run);
  GST_LOG_OBJECT(self_, "frame out: %" GST_TIME_FORMAT ", %s",
                 GST_TIME_ARGS(GST_BUFFER_PTS(buffer.get())), name_of(outcome).data());
  push(std::move(buffer), generation);
}

// Counts how the device got the frame.
void Delivery::count_input(const Job& job) {
  if (job.input == nullptr) return;
  Statistics& statistics = shared_.statistics;
  if (job.input->zero_copy())
    job.copied_on_device ? statistics.count_device_copy() : statistics.count_zero_copy();
  if (job.input->in_frame_memory()) statistics.count_fetched();
  if (const std::string& why = job.input->problem(); !why.empty()) shared_.warn_of_copies(why);
}

void Delivery::push(Handle<GstBuffer> buffer, uint64_t generation) {
  if (relinked_.exchange(false)) follow_results(shared_.src_pad);
  const GstFlowReturn flow = gst_pad_push(shared_.src_pad, buffer.release());
  if (flow == GST_FLOW_OK || !shared_.queue.is_current(generation)) return;
  GST_DEBUG_OBJECT(self_, "downstream says %s", gst_flow_get_name(flow));
  if (flow == GST_FLOW_EOS) {
    dropping_ = true;
    if (shared_.pending_starts.load() != 0) return;
  }
  shared_.flow.end(flow);
}

// Turns the tensors of each part into the results that the application wants.
void Delivery::decode(Job& job, FrameResult& result, const Finished& finished) {
  const DecodeSettings relaxed = job.rules->decoding(job.decode);
  std::vector<Rect> rects;
  bool other_results = false;
  for (const auto& [inference, outputs] : finished) {
    PartResult& part = result.parts.emplace_back();
    const Network& network = inference->session->network;
    for (const std::string& warning :
         read_outputs(network, outputs, relaxed, relaxed.attach_tensors, part.results))
      GST_ELEMENT_WARNING(self_, STREAM, DECODE, ("%s: %s", network.name.c_str(), warning.c_str()),
                          (nullptr));
    part.placement = inference->placement;
    part.region = inference->region.index;
    rects.push_back(inference->region.rect);
    if (!job.rules->has_tiles()) continue;
    // Keeps objects only, because results about a tile as a whole do not apply to the picture.
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

// Hands a sample to the background, and tells what was found about earlier ones.
void Delivery::verify(Job& job, const Finished& finished) {
  verification_.report();
  if (job.sample == nullptr || job.sample->inference >= finished.size()) return;
  job.sample->outputs = finished[job.sample->inference].second;
  verification_.verify(std::move(job.sample));
}

// Keeps the results for tracked objects, and repeats them for those that were not inferred again.
void Delivery::repeat_results(const Job& job, FrameResult& result) {
  size_t part = 0;
  for (const Job::Inference& inference : job.inferences) {
    if (part == result.parts.size()) break;
    if (inference.region.track)
      shared_.track_results.store(*inference.region.track, result.parts[part],
                                  RegionPlace(inference.region));
    ++part;
  }
  for (const InferenceRegion& region : job.known_regions)
    if (std::optional<PartResult> last =
            shared_.track_results.last(*region.track, RegionPlace(region))) {
      last->region = region.index;
      result.parts.push_back(std::move(*last));
    }
}

// Returns whether a frame passes without the inference that failed. One that turned out to be
// unreadable does. If the device does not answer, frames of a live source do, provided that they
// would pass if it were busy.
bool Delivery::goes_on_without(const Job& job, const std::exception& error) {
  if (const auto* unreadable = dynamic_cast<const UnreadableFrame*>(&error)) {
    shared_.unreadable.lose(self_, *unreadable);
    return true;
  }
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known == nullptr) return false;
  const bool no_answer = dynamic_cast<const NoAnswer*>(&error) != nullptr;
  if (known->code() == ErrorCode::device_failed) job.session->shared->failed = true;
  if (!no_answer || !shared_.live.load() ||
      shared_.settings.now()->live_policy() == OverloadPolicy::block)
    return false;
  if (!std::exchange(unanswered_, true))
    GST_ELEMENT_WARNING(self_, RESOURCE, BUSY,
                        ("%s; frames go on without inference until it answers", known->what()),
                        (nullptr));
  return true;
}

// Remembers the results of an inferred frame, and repeats them on frames without inference: on
// those on which nothing has changed, and on others as often as hold-results allows. Results on
// regions are repeated on the former only, because the regions of another frame differ.
void Delivery::hold_results(FrameResult& result, const Job& job) {
  if (result.outcome == Outcome::run) {
    held_ = {result, {}, job.hold_results};
    const auto keep_place = [&](const InferenceRegion& region) {
      if (region.index) held_->regions.emplace(*region.index, RegionPlace(region));
    };
    for (const Job::Inference& inference : job.inferences) keep_place(inference.region);
    for (const InferenceRegion& region : job.known_regions) keep_place(region);
    if (!held_->regions.empty() || job.rules->has_regions()) held_->remaining = 0;
  } else if (!held_ || held_->result.model != result.model) {
    if (job.still) result.outcome = Outcome::skipped;
  } else if (job.still) {
    repeat_still(job, result);
  } else if (held_->remaining != 0 && job.hold_results != 0) {
    --held_->remaining;
    result = held_->result;
    result.outcome = Outcome::held;
  }
}

// Repeats the last results, including those on regions where the regions are on this frame.
void Delivery::repeat_still(const Job& job, FrameResult& result) {
  result = held_->result;
  result.outcome = Outcome::held;
  if (held_->regions.empty()) return;
  result.parts.clear();
  for (const InferenceRegion& region : job.still_regions)
    for (const PartResult& known : held_->result.parts) {
      const auto place = known.region ? held_->regions.find(*known.region) : held_->regions.end();
      if (place == held_->regions.end() || !are_alike(place->second.rect, region.rect)) continue;
      PartResult& part = result.parts.emplace_back(known);
      part.region = region.index;
      part.placement = moved(part.placement, place->second, RegionPlace(region));
      part.held = true;
      break;
    }
}

void Delivery::forward_event(Handle<GstEvent> event) {
  switch (GST_EVENT_TYPE(event.get())) {
    case GST_EVENT_CAPS:
      held_.reset();
      relinked_ = true;
      break;
    case GST_EVENT_SEGMENT:
    case GST_EVENT_STREAM_START:
      held_.reset();
      if (shared_.pending_starts.load() != 0) --shared_.pending_starts;
      dropping_ = false;
      break;
    case GST_EVENT_EOS: {
      // Tells the application here, because no later frame will return the failure to upstream.
      if (const std::optional<GstFlowReturn> flow = shared_.flow.claim_report())
        GST_ELEMENT_FLOW_ERROR(self_, *flow);
      verification_.report();
      post_stats(self_, readings_);
      break;
    }
    default:
      break;
  }
  gst_pad_push_event(shared_.src_pad, event.release());
}

bool Delivery::answer_latency(GstQuery* query) {
  if (!gst_pad_peer_query(shared_.sink_pad, query)) return false;
  gboolean live = FALSE;
  GstClockTime least = 0, most = 0;
  gst_query_parse_latency(query, &live, &least, &most);
  shared_.live = live;
  if (!live) return true;
  const GstClockTime own = service_time_.reported_ns();
  GstClockTime room = own;
  if (const auto caps = Handle<GstCaps>(gst_pad_get_current_caps(shared_.sink_pad))) {
    GstVideoInfo info;
    if (read_caps(caps.get(), info) && GST_VIDEO_INFO_FPS_N(&info) > 0)
      room =
          std::max(room, gst_util_uint64_scale(shared_.queue.capacity() * GST_SECOND,
                                               static_cast<guint64>(GST_VIDEO_INFO_FPS_D(&info)),
                                               static_cast<guint64>(GST_VIDEO_INFO_FPS_N(&info))));
  }
  constexpr GstClockTime kMost = GST_CLOCK_TIME_NONE - 1;
  least = std::min(least, kMost - own) + own;
  if (GST_CLOCK_TIME_IS_VALID(most)) most = std::min(most, kMost - room) + room;
  gst_query_set_latency(query, live, least, most);
  return true;
}

void post_stats(GstElement* element, const Readings& readings) {
  gst_element_post_message(element, gst_message_new_element(GST_OBJECT(element), readings.stats()));
}

}  // namespace clinfer
