// clinfer compare: compares two models, or one in two ways, on frames of videos.
#include "engine/tools/commands/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "engine/measure/ab_comparison.h"
#include "engine/measure/noise.h"
#include "engine/tools/commands.h"
#include "engine/tools/output/progress.h"
#include "engine/tools/output/text.h"
#include "engine/tools/video/elements.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

constexpr size_t kFrames = 100;
constexpr size_t kWorst = 6;
constexpr double kSeconds = 4;  // of measuring the speed
// A frame whose objects agree is shown as one of the worst if its confidences differ by more than
// this.
constexpr double kWorthShowing = 0.02;

void measure_speed(const VideoModel& a, const VideoModel& b, double seconds, Comparison& result) {
  Requests requests[2];
  for (const auto& [model, of] : {std::pair{&a, &requests[0]}, {&b, &requests[1]}})
    for (unsigned i = 0; i < 2 * model->compiled().streams(); ++i) {
      of->push_back(model->compiled().create_request());
      set_noise(*of->back(), model->compiled().inputs());
      for (const auto& [input, value] : model->network().constants)
        of->back()->set_input(input, value);
    }
  const ABComparison speed =
      compare_alternately(requests[0], requests[1], seconds, [] { return !interrupted(); });
  end_if_interrupted("nothing is written");
  result.a.ms = speed.first_ms;
  result.b.ms = speed.second_ms;
  result.gain = speed.gain;
  result.gain_low = speed.low;
  result.gain_high = speed.high;
}

SideFacts facts_of(const VideoModel& model) {
  return {model.network().model->path(), model.compiled().device().name,
          name_of(model.compiled().precision()), model.file_bytes(), 0};
}

// Returns how badly a frame's results agree; frames are shown in this order.
double badness(const Agreement& frame) {
  return 1 - frame.share() + 0.1 * std::min(1.0, frame.confidence.most) +
         0.1 * std::min(1.0, frame.values.most);
}

std::string size_text(size_t bytes) { return format("%.2f MB", static_cast<double>(bytes) / 1e6); }

std::string percent(double share) { return format("%.2f %%", 100 * share); }

std::string side_text(const char* letter, const SideFacts& side) {
  return std::string(letter) + "  " + safe_line(side.model) + " on " + safe_line(side.device) +
         ", " + side.precision + ", " + size_text(side.file_bytes) +
         format(", %.3f ms an inference\n", side.ms);
}

std::string json_side(const SideFacts& side) {
  return json_object({{"model", json_quoted(side.model)},
                      {"device", json_quoted(side.device)},
                      {"precision", json_quoted(side.precision)},
                      {"bytes", std::to_string(side.file_bytes)},
                      {"ms", json_number(side.ms)}});
}

std::string json_difference(const Difference& difference) {
  return json_object(
      {{"mean", json_number(difference.mean())}, {"most", json_number(difference.most)}});
}

JsonMembers json_agreement(const Agreement& all) {
  JsonMembers members{{"agree", json_number(all.share())}};
  if (all.objects() > 0)
    members.emplace_back(
        "objects", json_object({{"a", std::to_string(all.objects_a)},
                                {"b", std::to_string(all.objects_b)},
                                {"both", std::to_string(all.both)},
                                {"near", std::to_string(all.near)},
                                {"only_a", std::to_string(all.only_a)},
                                {"only_b", std::to_string(all.only_b)},
                                {"agree", json_number(all.share_of_objects())},
                                {"agree_or_near", json_number(all.share_of_objects_or_near())}}));
  const auto counted = [](size_t number, size_t same) {
    return json_object({{"all", std::to_string(number)}, {"same", std::to_string(same)}});
  };
  if (all.answers > 0) members.emplace_back("answers", counted(all.answers, all.same_answers));
  if (all.cells > 0) members.emplace_back("map_points", counted(all.cells, all.same_cells));
  if (all.confidence.count > 0)
    members.emplace_back("confidence_difference", json_difference(all.confidence));
  if (all.values.count > 0) members.emplace_back("value_difference", json_difference(all.values));
  return members;
}

Side side_of(const Arguments& arguments, bool second) {
  Side side;
  ModelOptions& options = side.options;
  options.model = arguments.positional(second && arguments.positionals() > 1 ? 1 : 0);
  options.labels_file = arguments.value("--labels-file").value_or("");
  options.post_process = arguments.value("--post-process").value_or("auto");
  for (const std::string& text : arguments.all("--reshape"))
    options.reshape += (options.reshape.empty() ? "" : ";") + text;
  side.config = read_config(arguments);
  std::vector<std::string> settings = arguments.all("--config");
  if (second) {
    for (const std::string& text : arguments.all("--config-b")) {
      side.config.set_all(text);
      settings.push_back(text);
    }
    side.config.device = arguments.value("--device-b").value_or(side.config.device);
  }
  options.config_file = side.config.config_files();
  side.element = element_words(options, side.config.device, settings);
  return side;
}

void run(const Arguments& arguments) {
  const std::vector<std::string> videos = arguments.all("--video");
  if (videos.empty())
    throw Error(ErrorCode::bad_argument, "--video FILE is needed: frames to compare on");
  if (arguments.positionals() == 1 && !arguments.has("--device-b") && !arguments.has("--config-b"))
    throw Error(ErrorCode::bad_argument,
                "say with what to compare: a second model, --device-b D, or --config-b KEY=VALUE "
                "(INFERENCE_PRECISION=f32)");
  catch_interrupts();
  const std::optional<double> threshold = arguments.share("--threshold");
  const Side a = side_of(arguments, false), b = side_of(arguments, true);
  const std::vector<VideoFrame> frames =
      sample_frames(videos, arguments.number("--frames", kFrames, 1, 100000));
  const Comparison result =
      compare_on_frames(a, b, frames, threshold, arguments.seconds("--seconds", kSeconds));
  const std::string sheet = arguments.value("--sheet").value_or("");
  if (!sheet.empty()) draw_worst(result, a, b, sheet);
  std::cout << (arguments.has("--json") ? json_of(result, sheet) + "\n" : text_of(result));
  if (!arguments.has("--json") && !sheet.empty())
    std::cout << "the frames that agree least, A left and B right: " << safe_line(sheet) << "\n";
}

}  // namespace

Comparison compare_on_frames(const Side& a, const Side& b, const std::vector<VideoFrame>& frames,
                             std::optional<double> threshold, double seconds) {
  const VideoModel left(a.options, a.config), right(b.options, b.config);
  Comparison result;
  result.threshold = threshold.value_or(left.network().model_defaults.threshold);
  const auto least = static_cast<float>(std::max(result.threshold - kNear, 0.0));
  {
    ProgressLine progress;
    for (const VideoFrame& frame : frames) {
      end_if_interrupted("nothing is written");
      const Agreement agreed = agreement(left.results(frame.frame, least),
                                         right.results(frame.frame, least), result.threshold);
      result.all.add(agreed);
      result.frames.push_back({&frame, agreed});
      progress("comparing: frame", result.frames.size(), frames.size());
    }
  }
  std::stable_sort(result.frames.begin(), result.frames.end(),
                   [](const FrameComparison& x, const FrameComparison& y) {
                     return badness(x.agreement) > badness(y.agreement);
                   });
  result.a = facts_of(left);
  result.b = facts_of(right);
  measure_speed(left, right, seconds, result);
  return result;
}

void draw_worst(const Comparison& comparison, const Side& a, const Side& b,
                const std::string& file) {
  std::vector<Tile> tiles;
  const std::string threshold = "threshold=" + format("%g", comparison.threshold);
  for (const FrameComparison& frame : comparison.frames) {
    if (tiles.size() == 2 * kWorst) break;
    for (const Side* side : {&a, &b}) {
      tiles.push_back({frame.frame, side->element});
      tiles.back().element.push_back(threshold);
    }
  }
  draw_sheet(tiles, 2, file);
}

std::string text_of(const Comparison& comparison) {
  const Agreement& all = comparison.all;
  std::string text = side_text("A", comparison.a) + side_text("B", comparison.b);
  text += format("speed    B is %.3f times as fast as A (quartiles %.3f to %.3f)\n",
                 comparison.gain, comparison.gain_low, comparison.gain_high);
  text += format("frames   %zu\n", comparison.frames.size());
  if (all.objects() > 0) {
    text += format("objects  %zu of A, %zu of B with a confidence of %.2f or more\n", all.objects_a,
                   all.objects_b, comparison.threshold);
    text += "         " + percent(all.share_of_objects()) +
            format(" agree (same class, boxes overlap by %.1f); %zu only of A, %zu only of B\n",
                   kSameBox, all.only_a, all.only_b);
    text +=
        "         " + percent(all.share_of_objects_or_near()) +
        format(" with those that one model sees just below the threshold (by up to %.1f): %zu\n",
               kNear, all.near);
  }
  if (all.answers > 0)
    text += format("classes  %zu of %zu answers are the same: ", all.same_answers, all.answers) +
            percent(static_cast<double>(all.same_answers) / static_cast<double>(all.answers)) +
            "\n";
  if (all.cells > 0)
    text += "maps     " +
            percent(static_cast<double>(all.same_cells) / static_cast<double>(all.cells)) +
            " of the points have the same class\n";
  if (all.confidence.count > 0)
    text += format("confidence differs by %.4f in the mean, %.4f at most\n", all.confidence.mean(),
                   all.confidence.most);
  if (all.values.count > 0)
    text += format(
        "values differ by %.3g in the mean, %.3g at most (vectors: 1 - cosine; others: of "
        "the largest)\n",
        all.values.mean(), all.values.most);
  if (all.objects() + all.answers + all.cells + all.values.count == 0)
    text += "neither found anything: a lower --threshold, or a video that shows what it finds\n";
  size_t shown = 0;
  for (const FrameComparison& frame : comparison.frames) {
    const Agreement& agreed = frame.agreement;
    if (shown++ == kWorst || badness(agreed) < 0.1 * kWorthShowing) break;
    text += format("%s frame %zu of %s: ", shown == 1 ? "worst   " : "        ",
                   frame.frame->number, safe_line(frame.frame->video).c_str()) +
            percent(agreed.share()) +
            format(" agree, confidence differs by %.3f at most\n", agreed.confidence.most);
  }
  return text;
}

std::string json_of(const Comparison& comparison, const std::string& sheet) {
  std::vector<std::string> worst;
  for (size_t i = 0; i < std::min(kWorst, comparison.frames.size()); ++i) {
    const FrameComparison& frame = comparison.frames[i];
    JsonMembers members{{"video", json_quoted(frame.frame->video)},
                        {"frame", std::to_string(frame.frame->number)}};
    const JsonMembers agreement = json_agreement(frame.agreement);
    members.insert(members.end(), agreement.begin(), agreement.end());
    worst.push_back(json_object(members));
  }
  JsonMembers members{{"a", json_side(comparison.a)},
                      {"b", json_side(comparison.b)},
                      {"speed", json_object({{"gain", json_number(comparison.gain)},
                                             {"low", json_number(comparison.gain_low)},
                                             {"high", json_number(comparison.gain_high)}})},
                      {"frames", std::to_string(comparison.frames.size())},
                      {"threshold", json_number(comparison.threshold)}};
  const JsonMembers agreement = json_agreement(comparison.all);
  members.insert(members.end(), agreement.begin(), agreement.end());
  members.emplace_back("worst", json_array(worst));
  members.emplace_back("sheet", json_or_null(sheet));
  return json_object(members);
}

std::vector<std::string> element_words(const ModelOptions& options, const std::string& device,
                                       const std::vector<std::string>& settings) {
  std::vector<std::string> words = {"clinfer", assignment("model", options.model),
                                    assignment("device", device)};
  if (!options.labels_file.empty()) words.push_back(assignment("labels-file", options.labels_file));
  if (options.post_process != "auto")
    words.push_back(assignment("post-process", options.post_process));
  if (!options.reshape.empty()) words.push_back(assignment("reshape", options.reshape));
  std::string config;
  for (const std::string& setting : settings) config += (config.empty() ? "" : ",") + setting;
  if (!config.empty()) words.push_back(assignment("config", config));
  return words;
}

Command compare_command() {
  return {{"compare",
           "two models, or one in two precisions or on two devices, on the frames of a video",
           {"A", "[B]"},
           {{"--video", "FILE|URI", "where the frames come from; may be repeated"},
            {"--frames", "N", "how many, spread evenly (100)"},
            {"--threshold", "T", "least confidence of an object (as the model states, else 0.5)"},
            {"--sheet", "F.png", "draw the frames that agree least, A left and B right"},
            {"--seconds", "S", "how long to measure the speed (4)"},
            {"--json", "", "one line of JSON instead of text"},
            device_option(),
            {"--device-b", "D", "the device of B; unless given, that of A"},
            {"--config-b", "KEY=VALUE,...", "settings of B besides --config"},
            {"--labels-file", "F", "one class name per line"},
            {"--post-process", "HEAD", "the head that reads the outputs; default: auto"},
            reshape_option(),
            config_option()}},
          run};
}

}  // namespace clinfer
