// Turns a frame into the inputs of inferences.
#include <algorithm>

#include "gst/base/log.h"
#include "gst/frames/frame_copy.h"
#include "gst/infer/stream/intake.h"

#define GST_CAT_DEFAULT clinfer_streaming_debug

namespace clinfer {
namespace {

// A batch of frames that are not live is sent after this time without a new frame. The source may
// have no buffers left to send.
constexpr auto kQuiet = std::chrono::milliseconds(100);

// The assumed interval for live sources whose caps have no frame rate.
constexpr auto kUnknownInterval = std::chrono::milliseconds(40);

// The frame intervals that a frame waits for the device at most, whatever target-latency allows:
// the source has few buffers.
constexpr int kMostIntervals = 4;

}  // namespace

std::shared_ptr<FrameInput> Intake::input_for(Job& job, const Session& session,
                                              const Orientation& orientation) {
  if (session.shared == job.session->shared) return job.input;
  std::shared_ptr<FrameInput>& input = job.inputs_of_widths[session.shared->compiled.get()];
  if (input == nullptr) {
    input = make_input(job, *session.shared);
    input->turn(orientation);
  }
  return input;
}

std::unique_ptr<FrameInput> Intake::make_input(Job& job, SharedModel& shared) {
  if (shared.compiled->tier() == Tier::first)  // the host reads what is mapped
    return std::make_unique<FrameInput>(job.buffer.get(), info_, *shared.compiled);
  if (has_surfaces_ && model_.takes_surfaces() && shared.display != nullptr) {
    const std::string problem = shared.surface_problem_of(frame_of_info(info_).format);
    if (problem.empty())
      return std::make_unique<FrameInput>(job.buffer.get(), info_, *shared.display,
                                          shared.compiled);
    shared_.warn_of_copies(problem);
  }
  if (const MemoryKind* kind = shared_.kind; kind != nullptr && model_.takes_imports())
    return import_frame(job, shared, *kind);
  return std::make_unique<FrameInput>(job.buffer.get(), info_, *shared.compiled);
}

std::unique_ptr<FrameInput> Intake::import_frame(Job& job, SharedModel& shared,
                                                 const MemoryKind& kind) {
  MemoryImporter& importer = *shared.importers.at(kind.handle);
  if constexpr (kHaveCudaMemory) {
    if (&kind == &cuda_kind() && !CudaCopier::is_exportable(job.buffer.get()) &&
        importer.problem().empty())
      try {
        const Handle<GstBuffer> copy = cuda_copier_.copy(job.buffer.get(), info_);
        auto input = std::make_unique<FrameInput>(copy.get(), info_, importer);
        job.copied_on_device = input->zero_copy();
        if (job.copied_on_device) tell_of_device_copies();
        return input;
      } catch (const Error& error) {
        shared_.warn_of_copies(error.what());
      }
  }
  return std::make_unique<FrameInput>(job.buffer.get(), info_, importer);
}

void Intake::tell_of_device_copies() {
  if (std::exchange(told_of_device_copies_, true)) return;
  GST_ELEMENT_INFO(self_, RESOURCE, SETTINGS,
                   ("frames in CUDAMemory are copied on the device: the element before allocates "
                    "memory that cannot be exported"),
                   (nullptr));
}

// Returns the time between frames according to the caps.
std::optional<std::chrono::nanoseconds> Intake::frame_interval() const {
  if (GST_VIDEO_INFO_FPS_N(&info_) <= 0 || GST_VIDEO_INFO_FPS_D(&info_) <= 0) return std::nullopt;
  return std::chrono::nanoseconds(
      gst_util_uint64_scale(GST_SECOND, static_cast<guint64>(GST_VIDEO_INFO_FPS_D(&info_)),
                            static_cast<guint64>(GST_VIDEO_INFO_FPS_N(&info_))));
}

ModelBatcher::BatchWait Intake::batch_wait(const Settings& settings,
                                           const TargetStream::Orders& orders) const {
  if (settings.batch_timeout >= 0)
    return {std::chrono::milliseconds(settings.batch_timeout), kQuiet};
  if (orders.batch_wait) return {orders.batch_wait, kQuiet};
  if (shared_.live.load()) return {frame_interval(), kQuiet};
  return {std::nullopt, kQuiet};
}

// Returns the width of a pixel over its height, from the caps.
double Intake::pixel_aspect() const {
  return static_cast<double>(GST_VIDEO_INFO_PAR_N(&info_)) /
         std::max(GST_VIDEO_INFO_PAR_D(&info_), 1);
}

// Returns the regions on a frame that inference-region=roi-list selects.
std::vector<InferenceRegion> Intake::listed_regions(GstBuffer* buffer, const Rect& visible,
                                                    const Settings& settings,
                                                    const ObjectRules& rules) {
  const FrameView frame = read_frame(buffer, visible.width, visible.height);
  roi_notice_.look(GST_ELEMENT(self_), frame);
  std::vector<InferenceRegion> regions = regions_to_infer(frame, visible, settings.object_class);
  const Orientation orientation = orientation_for(settings, buffer);
  for (InferenceRegion& region : regions) rules.place(region, visible, pixel_aspect(), orientation);
  return regions;
}

// Returns whether the last results hold for this frame as well.
bool Intake::is_still(Job& job, GstBuffer* buffer, const Settings& settings) {
  if (settings.inference_when == InferenceWhen::always) return false;
  const Job::Clock::time_point begun = Job::Clock::now();
  MotionGate::Context context{job.rules, job.session, {}};
  if (settings.inference_region == RegionChoice::roi_list) try {
      const Rect visible =
          visible_part(GST_VIDEO_INFO_WIDTH(&info_), GST_VIDEO_INFO_HEIGHT(&info_), buffer);
      context.regions = listed_regions(buffer, visible, settings, *job.rules);
    } catch (const UnreadableFrame&) {
      shared_.renewed = true;
    }
  job.still_regions = context.regions;
  job.still =
      !motion_.opens(buffer, info_, settings, std::move(context), shared_.renewed.exchange(false));
  shared_.statistics.add(
      Statistics::kMotion,
      std::chrono::duration<double, std::milli>(Job::Clock::now() - begun).count());
  return job.still;
}

// Returns the parts of the frame that are to be inferred. Tracked objects that have a result are
// added to the job.
std::vector<InferenceRegion> Intake::regions_of(Job& job, const Settings& settings) {
  const Rect whole = job.input->region();
  std::vector<InferenceRegion> regions{{std::nullopt, whole, std::nullopt, {}}};
  if (settings.inference_region == RegionChoice::roi_list) {
    regions = listed_regions(job.buffer.get(), job.visible, settings, *job.rules);
  }
  if (settings.reclassify_interval != 1) {
    if (classified_with_.lock() != job.session) {
      shared_.track_results.clear();  // another model gives other results
      classified_with_ = job.session;
    }
    shared_.track_results.next_frame();
    std::erase_if(regions, [&](const InferenceRegion& region) {
      if (!region.track ||
          shared_.track_results.is_due(*region.track, settings.reclassify_interval))
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
    regions.push_back({std::nullopt, part, std::nullopt, {}});
  return regions;
}

// Lets a frame pass without inference if the stream has had its part of the device
// (target-latency).
void Intake::take_turn(Job& job, const Settings& settings) {
  if (job.outcome != Outcome::run || !settings.has_targets() || !shared_.live) return;
  job.has_target = shared_.target->admit(job.arrived);
  if (!job.has_target) job.outcome = Outcome::skipped;
}

// Copies what the network gets for the last inference of the job, so that a frame that is
// overwritten before the device reads it is found. A frame that cannot be copied is not verified.
void Intake::take_sample(Job& job, const Clip::Frames& frames, const Orientation& orientation) {
  VerifySample& sample = *job.sample;
  const Job::Inference& inference = job.inferences.back();
  sample.session = inference.session;
  sample.region = inference.region;
  sample.visible = job.visible;
  sample.timestamp = GST_BUFFER_PTS(job.buffer.get());
  sample.decode = job.decode;
  sample.frames = frames;
  if (job.session->network.clip_length > 1) return;  // the frames of clips are copies
  try {
    sample.frames = {copied_input(job.buffer.get(), info_, *sample.session->shared->compiled)};
    sample.frames[0]->turn(orientation);
  } catch (const std::exception& error) {
    GST_DEBUG_OBJECT(self_, "a frame is not verified: %s", error.what());
    job.sample.reset();
  }
}

// Gives the frame's inferences to the batcher. Returns false while flushing, or if the device could
// not begin the frame soon enough and `waits` is false.
bool Intake::submit(Job& job, const Settings& settings, bool waits) {
  const Orientation orientation = orientation_for(settings, job.buffer.get());
  job.input = make_input(job, *job.session->shared);
  job.input->turn(orientation);
  job.visible = job.input->visible();
  const std::vector<InferenceRegion> regions = regions_of(job, settings);
  if (settings.inference_region == RegionChoice::roi_list && !regions.empty()) {
    take_turn(job, settings);
    if (job.outcome != Outcome::run) return true;
  }
  const Clip::Frames clip = job.session->network.clip_length > 1 ? clip_.frames() : Clip::Frames();
  const TargetStream::Orders orders = shared_.target->orders();
  const ModelBatcher::BatchWait wait = batch_wait(settings, orders);
  const ModelBatcher::Clock::duration interval = frame_interval().value_or(kUnknownInterval);
  const ModelBatcher::Clock::duration longest_wait =
      std::min(orders.longest_wait.value_or(interval), interval * kMostIntervals);
  stream_.share = settings.share;
  job.sample = verification_.begin(settings.verify, *job.session, regions.size());
  for (const InferenceRegion& region : regions) {
    Job::Inference& inference = job.inferences.emplace_back();
    inference.region = region;
    int width = region.rect.width, height = region.rect.height;
    if (turned(orientation, inference.region.turn).transpose) std::swap(width, height);
    inference.session = widths_.session_for(job.session, width, height, waits);
    ModelBatcher& batcher = *inference.session->shared->batcher;
    // Holds the input, because the device may need it for longer than the job lives.
    const Clip::Frames frames =
        clip.empty() ? Clip::Frames{input_for(job, *inference.session, orientation)} : clip;
    if (job.sample != nullptr && job.sample->inference == job.inferences.size() - 1)
      take_sample(job, frames, orientation);
    const auto fill = [frames, visible = job.visible, resets = resets_states_, &inference](
                          InferRequest& request, size_t image) {
      if (resets) request.reset_states();
      inference.begun = Job::Clock::now();
      inference.placement =
          give_frames(request, inference.session->network, frames, visible, inference.region.rect,
                      inference.region.turn, inference.region.angle, image);
    };
    if (waits)
      inference.ticket = batcher.submit(stream_, fill, wait);
    else if (job.inferences.size() == 1)
      inference.ticket = batcher.try_submit(stream_, fill, wait, longest_wait);
    else  // all other regions of an admitted frame
      inference.ticket = batcher.submit_more(stream_, fill, wait);
    if (!inference.ticket) {
      job.inferences.pop_back();
      return false;
    }
  }
  if (!regions.empty()) resets_states_ = false;
  shared_.unreadable.count_readable();
  return true;
}

}  // namespace clinfer
