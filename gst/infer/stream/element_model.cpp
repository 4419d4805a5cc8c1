// Reads, describes and compiles the model of the element.
#include "gst/infer/stream/element_model.h"

#include <algorithm>
#include <filesystem>

#include "gst/base/guard.h"
#include "gst/infer/settings/network.h"
#include "gst/infer/settings/properties.h"

namespace clinfer {
namespace {

// Places in the queue, for each inferred frame, for frames that pass without inference. To stay in
// order, they wait until the inferred frame before them is finished.
constexpr unsigned kMostPassing = 8;

// Frames that pools upstream allocate at once where a policy lets frames pass: those of three
// requests for one frame each. A source that runs out of them allocates further ones, or drops
// frames, as live sources do; with batches, the whole queue would be seconds of pictures for each
// of many cameras.
constexpr size_t kPooledPassing = 3 * kMostPassing;

bool may_come_as_surfaces(GstPad* sink) {
  if constexpr (kHaveSurfaces) return may_send_surfaces(sink);
  return false;
}

// Returns the settings that reading a model depends on.
std::string shape_wishes(const Settings& settings) {
  return settings.reshape + "/" + std::to_string(settings.clip_length) + "/" + settings.config_file;
}

// Returns the size for a network that follows the frame: whole cells of the coarsest level that
// networks have.
std::string size_for(const GstVideoInfo& info) {
  const auto whole = [](int side) { return std::to_string((side + 31) / 32 * 32); };
  return whole(GST_VIDEO_INFO_WIDTH(&info)) + "x" + whole(GST_VIDEO_INFO_HEIGHT(&info));
}

// Returns whether frames pass without inference when the device is busy or nothing happens.
bool lets_frames_pass(const Settings& settings) {
  return settings.live_policy() == OverloadPolicy::skip_inference ||
         settings.inference_when == InferenceWhen::motion;
}

// Returns the number of frames that are inferred at a time, or wait for that in whole batches.
size_t images_in_flight_for(const Settings& settings, const Session* session) {
  const size_t streams = session != nullptr ? session->shared->batcher->device_streams()
                                            : std::max(settings.throughput_streams.value_or(1), 1u);
  const size_t requests = session != nullptr    ? session->shared->batcher->requests()
                          : settings.nireq != 0 ? settings.nireq
                                                : 2 * streams;
  const size_t batch = session != nullptr ? session->shared->batcher->batch_size()
                                          : std::max(settings.batch_size, 1u);
  // Counts batches beyond the requests, one for each stream of the device: the thread that takes a
  // finished one's results launches the next at once, whichever stream was faster.
  return (requests + streams) * batch;
}

}  // namespace

size_t frames_in_flight_for(const Settings& settings, const Session* session) {
  const unsigned passing = lets_frames_pass(settings)
                               ? kMostPassing
                               : std::clamp(settings.inference_interval, 1u, kMostPassing);
  return images_in_flight_for(settings, session) * passing;
}

size_t pooled_frames_for(const Settings& settings, const Session* session) {
  const size_t all = frames_in_flight_for(settings, session);
  if (!lets_frames_pass(settings)) return all;
  return std::min(all, std::max(images_in_flight_for(settings, session), kPooledPassing));
}

void warn_of_unknown_classes(GstElement* element, const Network& network,
                             const ObjectRules& rules) {
  for (const std::string& name : rules.unknown_names(network.labels))
    GST_ELEMENT_WARNING(element, RESOURCE, SETTINGS,
                        ("%s in classes or thresholds is none of the %zu labels of %s",
                         name.c_str(), network.labels.size(), network.name.c_str()),
                        ("the first labels are %s, %s", network.labels[0].c_str(),
                         network.labels[network.labels.size() > 1 ? 1 : 0].c_str()));
}

// Compiles another model beside the one that runs.
void ElementModel::change(Settings settings) {
  ask_for_model(settings);
  if (const auto session = loader_.session(); follows_frame(settings) && session != nullptr)
    settings.reshape = session->settings.reshape;
  if (guard(shared_.element, true, [&] { return loader_.replace(settings); })) return;
  GST_ELEMENT_WARNING(shared_.element, RESOURCE, SETTINGS,
                      ("model cannot change before the first frame; in force until the element "
                       "starts again: %s",
                       model_path_.c_str()),
                      (nullptr));
}

// Returns the settings. Throws Error if one of them could not be set.
Settings ElementModel::checked_settings() {
  Settings settings = *shared_.settings.checked();
  settle_config_file(settings.config, settings);
  if (settings.data != nullptr) return settings;
  if (!asked_ || answered_.model != settings.model) {
    answered_ = settings;
    ask_for_model(answered_);
    asked_ = true;
  }
  settings.data = answered_.data;
  settings.weights = answered_.weights;
  return settings;
}

void ElementModel::ask_for_model(Settings& settings) const {
  const guint signal = g_signal_lookup(kLoadModel, G_OBJECT_TYPE(shared_.element));
  if (settings.data != nullptr || !g_signal_has_handler_pending(shared_.element, signal, 0, FALSE))
    return;
  const auto answer = [&](const std::string& path) {
    GBytes* bytes = nullptr;
    g_signal_emit(shared_.element, signal, 0, path.c_str(), &bytes);
    auto copy = copy_of(bytes);
    if (bytes != nullptr) g_bytes_unref(bytes);
    return copy;
  };
  settings.data = answer(settings.model);
  if (settings.data == nullptr || settings.weights != nullptr) return;
  if (const size_t first = settings.data->find_first_not_of("\xef\xbb\xbf \t\r\n");
      first != std::string::npos && (*settings.data)[first] == '<')
    settings.weights = answer(std::filesystem::path(settings.model).replace_extension(".bin"));
}

// Reads the model and returns the settings, unless the network's size follows the frame's. It also
// does if the model leaves the size open and nothing, or only an example, states it: reshape=frame
// is then the only choice.
Settings ElementModel::settings_with_model() {
  Settings current = checked_settings();
  if (follows_frame(current)) return current;
  if (model_ != nullptr && model_path_ == current.model && model_data_ == current.data &&
      model_reshape_ == shape_wishes(current))
    return current;
  const bool whole = current.inference_region == RegionChoice::full_frame &&
                     current.regions.empty() && current.tiles.empty();
  try {
    model_ = read_model(current);
    model_path_ = current.model;
    model_data_ = current.data;
    model_reshape_ = shape_wishes(current);
    if (!whole || !states_example_size(model_, current)) return current;
    model_.reset();
  } catch (const Error&) {
    if (!whole || !leaves_size_open(current)) throw;
  }
  current.reshape = kFollowsFrame;
  return current;
}

void ElementModel::open() {
  const Settings current = settings_with_model();
  if (follows_frame(current)) {
    if (current.data == nullptr) model_file(current.model);  // throws if the file does not exist
    return;
  }
  engine_config(describe_network(model_, current), current);  // throws before data flows
}

Settings ElementModel::read() {
  const Settings current = settings_with_model();
  Network network;
  auto rules = std::make_shared<const ObjectRules>(current);
  follows_frame_ = follows_frame(current);
  if (follows_frame_) {
    model_.reset();
    if (checked_settings().reshape.empty())
      GST_ELEMENT_WARNING(
          shared_.element, STREAM, FORMAT,
          ("%s: the model leaves the size of its picture open, or states an example of it; it gets "
           "the frame's, rounded up to multiples of 32; set reshape=WIDTHxHEIGHT where it is "
           "another",
           current.model.c_str()),
          (nullptr));
  } else {
    network = describe_network(model_, current);
    say_what_was_settled(shared_.element, network, current);
    warn_of_unknown_classes(shared_.element, network, *rules);
  }
  takes_imports_ =
      follows_frame_ ? current.nv12_two_inputs : engine_config(network, current).nv12_two_inputs;
  network_ = std::move(network);
  shared_.settings.set_rules(std::move(rules));
  return current;
}

void ElementModel::prepare(const Settings& current) {
  std::shared_ptr<const Session> session = loader_.session();
  if (session != nullptr && (session->network.model != model_ || session->shared->failed ||
                             session->shared->is_interim || session->shared->is_on_trial ||
                             !engine_difference(session->shared->compiled_for, current).empty()))
    session.reset();
  if (session != nullptr) {
    // The compiled model is still usable, but properties of its inputs and outputs may have
    // changed.
    session = std::make_shared<const Session>(Session{network_, session->shared, current});
    shared_.queue.set_capacity(frames_in_flight_for(current, session.get()));
    shared_.statistics.watch(session->shared->compiled->devices());
    return loader_.use(std::move(session));
  }
  loader_.reset();
  compile_settings_ = current;
  if (follows_frame_) return;
  // Waits for surfaces, because the OpenCL context for them is made on their display, which comes
  // with the first caps or the first frame.
  if (!takes_surfaces() || !may_come_as_surfaces(shared_.sink_pad)) compile_for(nullptr);
}

void ElementModel::compile_for(std::shared_ptr<const SurfaceDisplay> display) {
  const auto known = loader_.display();
  if (loader_.is_started() &&
      (display == nullptr ||
       (known != nullptr && known->display.handle == display->display.handle)))
    return;
  const std::shared_ptr<const Session> session = loader_.session();
  if (session != nullptr)  // perhaps for a model that was set while playing
    loader_.start({session->settings, session->network, std::move(display)});
  else
    loader_.start({compile_settings_, network_, std::move(display)});
}

// Drops what was compiled if the network follows the frame and the frame's size is new.
void ElementModel::follow_frame(const GstVideoInfo& info) {
  if (!follows_frame_) return;
  const std::string size = size_for(info);
  if (loader_.is_started() && compile_settings_.reshape == size) return;
  loader_.reset();
  compile_settings_.reshape = size;
}

void ElementModel::close() {
  loader_.reset();
  model_.reset();
  model_path_.clear();
  model_data_.reset();
  answered_ = {};
  asked_ = false;
}

}  // namespace clinfer
