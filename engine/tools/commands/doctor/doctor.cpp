// clinfer doctor: finds the way to feed and read a model that frames of a video favour, what f16
// changes, and how fast the model is on each device.
#include "engine/tools/commands/doctor/doctor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>

#include "engine/compile/model_compiler.h"
#include "engine/graph/graph.h"
#include "engine/tools/commands.h"
#include "engine/tools/commands/compare.h"
#include "engine/tools/measure/throughput.h"
#include "engine/tools/output/progress.h"
#include "engine/tools/output/text.h"
#include "engine/tools/video/elements.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kFrames = 32;
constexpr double kSeconds = 25;     // for trying ways
constexpr size_t kShown = 4;        // ways on the contact sheet
constexpr size_t kShownFrames = 3;  // of each way
constexpr size_t kPrecisionFrames = 6;
constexpr double kMostHalf = 65504;                      // the largest number of f16
constexpr auto kCompileTime = std::chrono::seconds(20);  // for each further device
constexpr double kMeasured = 1;                          // on each device

struct Overflow {
  std::string layer;
  double most = 0;
};

struct HalfPrecision {
  std::string problem;  // why the device was not measured, or ""
  Agreement agreement;
  std::vector<Overflow> overflows;
};

struct DeviceTime {
  DeviceInfo device;
  double images_per_second = 0, ms = 0;
  std::string problem;
};

// Finds layers whose values, computed in f32, exceed the range of f16 on some frames.
std::vector<Overflow> find_overflows(const VideoModel& model, Config config,
                                     const std::vector<VideoFrame>& frames) {
  config.precision = Precision::f32;
  config.batch = model.network().model->inputs()[model.network().image_input].shape[0] == 1 ? 0 : 1;
  const auto compiled =
      compile_model(model.network().model, config, {}, {}, {.expose_layers = true});
  const auto request = compiled->create_request();
  for (const auto& [input, value] : model.network().constants) request->set_input(input, value);
  const Graph& graph = *compiled->network().plan().graph;
  std::map<std::string, double> most;
  for (const VideoFrame& frame : frames) {
    end_if_interrupted("nothing is decided");
    request->set_frame(model.network().image_input, frame.frame, model.network().transform);
    request->start();
    request->wait();
    for (size_t i = 0; i < graph.results.size(); ++i) {
      const Tensor& value = request->output(i);
      if (!is_float(value.type())) continue;
      double& largest = most[graph.results[i]->inputs[0].node->name];
      for (const float element : value.to_floats())
        if (std::isfinite(element)) largest = std::max<double>(largest, std::abs(element));
    }
  }
  std::vector<Overflow> overflows;
  for (const auto& [layer, value] : most)
    if (value > kMostHalf) overflows.push_back({layer, value});
  return overflows;
}

HalfPrecision look_at_halves(const VideoModel& model, const ModelOptions& options, Config config,
                             const std::vector<VideoFrame>& frames) {
  HalfPrecision result;
  ProgressLine progress;
  try {
    config.precision = Precision::f32;
    const VideoModel whole(options, config);
    config.precision = Precision::f16;
    const VideoModel half(options, config);
    const double threshold = whole.network().model_defaults.threshold;
    const auto least = static_cast<float>(std::max(threshold - kNear, 0.0));
    for (size_t i = 0; i < frames.size(); ++i) {
      end_if_interrupted("nothing is decided");
      result.agreement.add(agreement(whole.results(frames[i].frame, least),
                                     half.results(frames[i].frame, least), threshold));
      progress("f16 against f32: frame", i + 1, frames.size());
    }
    result.overflows = find_overflows(model, config, frames);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    result.problem = error.what();
  }
  return result;
}

std::vector<DeviceTime> measure_devices(const VideoModel& model, const Config& config) {
  std::vector<DeviceTime> times;
  for (const DeviceInfo& device : list_devices().devices) {
    end_if_interrupted("nothing is decided");
    DeviceTime time{device, 0, 0, {}};
    try {
      Config other = config;
      other.device = device.id;
      ProgressLine progress;
      const auto begin = Clock::now();
      const auto compiled = CompiledModel::compile(
          model.network().model, other, [&](const std::string&, size_t done, size_t of) {
            progress("compiling for " + device.name + ": part", done, of);
            return !interrupted() && Clock::now() - begin < kCompileTime;
          });
      Feed feed(*compiled);
      std::vector<std::unique_ptr<InferRequest>> requests;
      for (unsigned i = 0; i < std::max(compiled->optimal_requests(), 1u); ++i) {
        requests.push_back(compiled->create_request());
        feed.prepare(*requests.back());
      }
      const Measured measured = measure(requests, feed, kMeasured, batch_of(*compiled));
      time.images_per_second = measured.images_per_second;
      time.ms = measured.percentile(50);
    } catch (const Error& error) {
      time.problem = error.code() == ErrorCode::cancelled ? "compiling takes more than 20 s"
                                                          : std::string(error.what());
    }
    times.push_back(time);
  }
  return times;
}

std::string labels_text(const Network& network) {
  if (network.labels.empty()) return "none: classes are numbers (--labels F)";
  return format("%zu names, the first one for class %d", network.labels.size(),
                network.head.first_label);
}

// Returns the gst-launch-1.0 line for this way, with `video` as the source.
std::string launch_line(const std::string& video, const ModelOptions& options, const Way& way,
                        const Diagnosis& diagnosis, bool own, const std::string& device) {
  std::string line = "gst-launch-1.0";
  std::vector<std::string> words = decoded(video);
  append(words, {"!", "videoconvert", "!", "clinfer", assignment("model", options.model)});
  if (device != Config().device) words.push_back(assignment("device", device));
  if (!options.labels_file.empty()) words.push_back(assignment("labels-file", options.labels_file));
  if (!own)
    for (const std::string& property : properties_of(way, diagnosis)) words.push_back(property);
  append(words, {"!", "cloverlay", "!", "videoconvert", "!", "autovideosink"});
  for (const std::string& word : words) {
    const bool plain = word == "!" || word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./:=,+@%^-") == std::string::npos;
    std::string quoted = word;
    for (size_t at = 0; !plain && (at = quoted.find('\'', at)) != std::string::npos; at += 4)
      quoted.replace(at, 1, "'\\''");
    line += " " + (plain ? word : "'" + quoted + "'");
  }
  return line;
}

void draw_best(const Diagnosis& diagnosis, const std::vector<VideoFrame>& frames,
               const ModelOptions& options, const Config& config,
               const std::vector<std::string>& settings, const std::string& file) {
  std::vector<Tile> tiles;
  const size_t columns = std::min(kShownFrames, frames.size());
  for (size_t w = 0; w < std::min(kShown, diagnosis.ways.size()); ++w)
    for (size_t i = 0; i < columns; ++i) {
      tiles.push_back({&frames[(2 * i + 1) * frames.size() / (2 * columns)],
                       element_words(options, config.device, settings)});
      for (const std::string& property : properties_of(diagnosis.ways[w], diagnosis))
        tiles.back().element.push_back(property);
    }
  draw_sheet(tiles, columns, file);
}

struct Report {
  Diagnosis diagnosis;
  HalfPrecision half;
  std::vector<DeviceTime> times;
  std::string labels, line, sheet;
};

std::string verdict(const Diagnosis& diagnosis) {
  const Way& best = diagnosis.ways[0];
  if (best.mean() <= 0)
    return "the data do not decide: no way finds anything on these frames; take a video that shows "
           "what the model finds";
  std::string text = diagnosis.own == 0
                         ? "the elements' own way is right by all that the data say"
                         : "set the properties below: the data speak against what the "
                           "elements take by themselves";
  if (diagnosis.own == 0 && !diagnosis.decided)
    text = "the data do not speak against the elements' own way";
  if (!diagnosis.decided && diagnosis.own != 0) text = "the data favour the first way";
  if (!diagnosis.rivals.empty())
    text += format("; they do not tell it from %zu other ways (marked ~)", diagnosis.rivals.size());
  return text;
}

std::string text_of(const Report& report) {
  const Diagnosis& diagnosis = report.diagnosis;
  std::string text = verdict(diagnosis) + "\n";
  const double most = std::max(diagnosis.ways[0].mean(), 1e-9);
  const size_t shown = std::min<size_t>(diagnosis.ways.size(), 8);
  for (size_t i = 0; i < diagnosis.ways.size(); ++i) {
    if (i >= shown && i != diagnosis.own) continue;
    const Way& way = diagnosis.ways[i];
    const bool rival = std::count(diagnosis.rivals.begin(), diagnosis.rivals.end(), i) > 0;
    text += format("%2zu %s evidence %5.1f %%, %3zu frames  ", i + 1,
                   i == diagnosis.own ? "*"
                   : rival            ? "~"
                                      : " ",
                   100 * way.mean() / most, way.evidence.size()) +
            safe_line(text_of(way, diagnosis)) + "\n";
  }
  text += "     * what the elements take by themselves\n";
  text += "labels   " + report.labels + "\n";
  if (!report.half.problem.empty())
    text += "f16      not compared: " + safe_line(report.half.problem) + "\n";
  else
    text += format(
        "f16      %zu of %zu objects as in f32, confidence differs by %.4f at most, values by "
        "%.3g\n",
        report.half.agreement.both, report.half.agreement.objects(),
        report.half.agreement.confidence.most, report.half.agreement.values.most);
  for (const Overflow& overflow : report.half.overflows)
    text += "         " + safe_line(overflow.layer) +
            format(" reaches %.3g, more than f16 holds\n", overflow.most);
  for (const DeviceTime& time : report.times)
    text += "speed    " + safe_line(time.device.id + " " + time.device.name) +
            (time.problem.empty()
                 ? format(": %.1f images/s, %.2f ms\n", time.images_per_second, time.ms)
                 : ": " + safe_line(time.problem) + "\n");
  if (!report.sheet.empty())
    text += "picture  " + safe_line(report.sheet) + ": a row for each of the first four ways\n";
  return text + "line     " + safe_line(report.line) + "\n";
}

std::string json_half(const HalfPrecision& half) {
  if (!half.problem.empty()) return json_object({{"problem", json_quoted(half.problem)}});
  std::vector<std::string> overflows;
  for (const auto& overflow : half.overflows)
    overflows.push_back(json_object(
        {{"layer", json_quoted(overflow.layer)}, {"most", json_number(overflow.most)}}));
  return json_object({{"objects", std::to_string(half.agreement.objects())},
                      {"lost", std::to_string(half.agreement.objects() - half.agreement.both)},
                      {"confidence_difference", json_number(half.agreement.confidence.most)},
                      {"value_difference", json_number(half.agreement.values.most)},
                      {"overflows", json_array(overflows)}});
}

std::string json_of(const Report& report) {
  const Diagnosis& diagnosis = report.diagnosis;
  std::vector<std::string> ways, devices;
  for (size_t i = 0; i < diagnosis.ways.size(); ++i) {
    const Way& way = diagnosis.ways[i];
    const bool rival = std::count(diagnosis.rivals.begin(), diagnosis.rivals.end(), i) > 0;
    ways.push_back(json_object({{"way", json_quoted(text_of(way, diagnosis))},
                                {"properties", json_strings(properties_of(way, diagnosis))},
                                {"evidence", json_number(way.mean())},
                                {"weight", json_number(way.weight())},
                                {"frames", std::to_string(way.evidence.size())},
                                {"rival", json_flag(rival)}}));
  }
  for (const DeviceTime& time : report.times)
    devices.push_back(json_object({{"id", json_quoted(time.device.id)},
                                   {"name", json_quoted(time.device.name)},
                                   {"images_per_second", json_number(time.images_per_second)},
                                   {"ms", json_number(time.ms)},
                                   {"problem", json_or_null(time.problem)}}));
  return json_object({{"decided", json_flag(diagnosis.decided)},
                      {"verdict", json_quoted(verdict(diagnosis))},
                      {"own", std::to_string(diagnosis.own)},
                      {"inferences", std::to_string(diagnosis.inferences)},
                      {"ways", json_array(ways)},
                      {"labels", json_quoted(report.labels)},
                      {"f16", json_half(report.half)},
                      {"devices", json_array(devices)},
                      {"line", json_quoted(report.line)},
                      {"sheet", json_or_null(report.sheet)}}) +
         "\n";
}

void run(const Arguments& arguments) {
  const std::vector<std::string> videos = arguments.all("--video");
  if (videos.empty())
    throw Error(ErrorCode::bad_argument,
                "--video FILE is needed, which shows what the model finds");
  catch_interrupts();
  ModelOptions options;
  options.model = arguments.positional(0);
  options.labels_file = arguments.value("--labels").value_or("");
  for (const std::string& text : arguments.all("--reshape"))
    options.reshape += (options.reshape.empty() ? "" : ";") + text;
  const Config config = read_config(arguments);
  options.config_file = config.config_files();
  const VideoModel model(options, config);
  const std::vector<VideoFrame> frames =
      sample_frames(videos, arguments.number("--frames", kFrames, 1, 10000));
  Report report;
  report.diagnosis = diagnose(model, options, frames, arguments.seconds("--seconds", kSeconds));
  std::vector<VideoFrame> some;
  for (size_t i = 0; i < std::min(kPrecisionFrames, frames.size()); ++i)
    some.push_back(frames[i * frames.size() / std::min(kPrecisionFrames, frames.size())]);
  if (arguments.has("--only-ways")) {
    report.half.problem = "left out (--only-ways)";
  } else {
    report.half = look_at_halves(model, options, config, some);
    report.times = measure_devices(model, config);
  }
  report.labels = labels_text(model.network());
  report.line = launch_line(videos[0], options, report.diagnosis.ways[0], report.diagnosis,
                            report.diagnosis.own == 0, config.device);
  report.sheet = arguments.value("--sheet").value_or("");
  if (!report.sheet.empty())
    draw_best(report.diagnosis, frames, options, config, arguments.all("--config"), report.sheet);
  std::cout << (arguments.has("--json") ? json_of(report) : text_of(report));
}

}  // namespace

Command doctor_command() {
  return {{"doctor",
           "which way to feed and read a model the frames of a video favour",
           {"MODEL"},
           {{"--video", "FILE|URI", "frames that show what the model finds; may be repeated"},
            {"--labels", "F", "one class name per line"},
            {"--frames", "N", "how many, spread evenly (32)"},
            {"--seconds", "S", "about how long to try ways (25)"},
            {"--only-ways", "", "leave out f16 and the time on each device"},
            {"--sheet", "F.png", "draw what the best four ways find, a row each"},
            {"--json", "", "one line of JSON instead of text"},
            device_option(),
            reshape_option(),
            config_option()}},
          run};
}

}  // namespace clinfer
