// clinfer quantize: makes a model with weights and activations of 8 bits, calibrated by NNCF on
// frames of videos, and measures how far it agrees with the original on other frames.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "engine/tools/commands.h"
#include "engine/tools/commands/compare.h"
#include "engine/tools/output/npy.h"
#include "engine/tools/output/progress.h"
#include "engine/tools/output/text.h"
#include "engine/tools/video/elements.h"
#include "kernels/base/system/files.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

namespace fs = std::filesystem;

constexpr size_t kFrames = 200;
constexpr size_t kHeldOut = 3;  // every third frame is used for the comparison only
constexpr double kSeconds = 4;  // of measuring the speed
constexpr const char* kNothing = "nothing is written";

std::string helper() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& file : {folder / "quantize.py", folder / ".." / "share/clinfer/quantize.py"})
    if (fs::exists(file, error)) return file.string();
  throw Error(ErrorCode::not_found,
              "quantize.py is neither beside the program nor in "
              "../share/clinfer: install clinfer as a whole");
}

std::string numbers(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) text += (text.empty() ? "" : " ") + format("%.9g", value);
  return text;
}

// Writes how the original is fed and read, as model_info states it.
std::string json_info(const Network& network) {
  const FrameTransform& transform = network.transform;
  JsonMembers members{
      {"mean_values", json_quoted(numbers(transform.mean))},
      {"scale_values", json_quoted(numbers(transform.scale))},
      {"resize_type", json_quoted(transform.resize == ResizeMode::stretch ? "standard"
                                  : transform.resize == ResizeMode::crop  ? "crop"
                                  : transform.centered ? "fit_to_window_letterbox"
                                                       : "fit_to_window")}};
  if (transform.resize == ResizeMode::letterbox)
    members.emplace_back("pad_value", json_quoted(numbers(transform.pad_value)));
  if (transform.color != ColorOrder::gray)
    members.emplace_back("color_space",
                         json_quoted(transform.color == ColorOrder::rgb ? "RGB" : "BGR"));
  const bool plain =
      std::none_of(network.labels.begin(), network.labels.end(), [](const auto& name) {
        return name.empty() || name.find_first_of(" ,") != std::string::npos;
      });
  std::string labels;
  for (const std::string& name : network.labels) labels += (labels.empty() ? "" : " ") + name;
  if (plain && !labels.empty() && network.head.first_label == 0)
    members.emplace_back("labels", json_quoted(labels));
  return json_object(members);
}

// Writes the inputs that the Python helper reads.
void write_inputs(const Network& network, const std::vector<const VideoFrame*>& frames,
                  const Folder& folder) {
  ProgressLine progress;
  std::vector<std::string> names;
  for (const Port& port : network.model->inputs()) names.push_back(port.name);
  for (size_t s = 0; s < frames.size(); ++s) {
    end_if_interrupted(kNothing);
    Frame frame = frames[s]->frame;
    if (network.crop_share < 1) frame.region = fed_part({0, 0, frame.width, frame.height}, network);
    const auto file = [&](size_t input) {
      return folder.file(std::to_string(s) + "." + std::to_string(input) + ".npy");
    };
    write_npy(file(network.image_input),
              evaluate_preprocess(frame, network.transform, network.width, network.height,
                                  network.channels));
    for (const auto& [input, value] : network.constants) write_npy(file(input), value);
    progress("preparing: frame", s + 1, frames.size());
  }
  const std::string json = json_object({{"inputs", json_strings(names)},
                                        {"samples", std::to_string(frames.size())},
                                        {"info", json_info(network)}});
  write_named_file(folder.file("inputs.json"), std::array{std::string_view(json)});
}

void run_helper(const Arguments& arguments, const std::string& model, const Folder& folder,
                const std::string& out) {
  const char* python = std::getenv("CLINFER_PYTHON");
  std::vector<std::string> words = {python != nullptr && *python ? python : "python3", helper(),
                                    model, folder.file(""), out};
  for (const char* option : {"--preset", "--seed"})
    if (const auto value = arguments.value(option)) append(words, {option, *value});
  for (const std::string& layer : arguments.all("--keep")) append(words, {"--keep", layer});
  const bool well = ended_well(start_child(words, STDERR_FILENO));
  end_if_interrupted(kNothing);
  if (!well)
    throw Error(ErrorCode::unsupported,
                "the model could not be quantised; what is said above is of "
                "NNCF, or of the Python that ran it");
}

void copy_file(const std::string& from, const std::string& to) {
  std::ifstream file(from, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw Error(ErrorCode::io, from + " cannot be read");
  write_named_file(to, std::array{std::string_view(bytes)});
}

void run(const Arguments& arguments) {
  const std::vector<std::string> videos = arguments.all("--video");
  const std::string out = arguments.value("-o").value_or("");
  if (videos.empty())
    throw Error(ErrorCode::bad_argument, "--video FILE is needed: frames to calibrate on");
  if (!out.ends_with(".xml"))
    throw Error(ErrorCode::bad_argument, "-o OUT.xml is needed: where the model is written");
  const std::optional<double> most = arguments.share("--max-drop");
  arguments.number("--seed", 0);
  catch_interrupts();
  Side original;
  original.options.model = arguments.positional(0);
  original.options.labels_file = arguments.value("--labels-file").value_or("");
  original.config = read_config(arguments);
  original.options.config_file = original.config.config_files();
  original.element =
      element_words(original.options, original.config.device, arguments.all("--config"));
  const Network network = describe_network(original.options);
  if (network.clip_length > 1)
    throw Error(ErrorCode::unsupported, network.model->path() + " takes clips of frames");
  const std::vector<VideoFrame> all =
      sample_frames(videos, arguments.number("--frames", kFrames, 2, 100000));
  std::vector<const VideoFrame*> calibration;
  std::vector<VideoFrame> held_out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % kHeldOut == kHeldOut - 1 || all.size() == 1) held_out.push_back(all[i]);
    if (i % kHeldOut != kHeldOut - 1) calibration.push_back(&all[i]);
  }
  if (held_out.empty()) held_out.push_back(all.back());
  const Folder folder;
  write_inputs(network, calibration, folder);
  Side quantised = original;
  const std::string made = folder.file(fs::path(out).filename().string());
  run_helper(arguments, network.model->path(), folder, made);
  quantised.options.model = made;
  quantised.element =
      element_words(quantised.options, quantised.config.device, arguments.all("--config"));
  Comparison comparison =
      compare_on_frames(original, quantised, held_out, arguments.share("--threshold"), kSeconds);
  comparison.b.model = out;
  const std::string sheet = arguments.value("--sheet").value_or("");
  if (!sheet.empty()) draw_worst(comparison, original, quantised, sheet);
  std::cout << (arguments.has("--json") ? json_of(comparison, sheet) + "\n" : text_of(comparison));
  const double drop = 1 - comparison.all.share();
  if (most && drop > *most)
    throw Error(
        ErrorCode::unsupported,
        out + " is not written: " + format("%.2f %%", 100 * drop) +
            " do not agree with the original, more than --max-drop allows; take more frames "
            "(--frames), or keep the layers before the outputs as they are (--keep LAYER)");
  copy_file(fs::path(made).replace_extension(".bin").string(),
            fs::path(out).replace_extension(".bin").string());
  copy_file(made, out);
  if (!arguments.has("--json")) std::cout << "written  " << safe_line(out) << "\n";
}

}  // namespace

Command quantize_command() {
  return {{"quantize",
           "a model of 8 bits, calibrated on frames of a video by NNCF",
           {"MODEL"},
           {{"--video", "FILE|URI", "frames as the model will see them; may be repeated"},
            {"-o", "OUT.xml", "the quantised model, with its .bin"},
            {"--frames", "N", "how many (200): two thirds to calibrate, one third to compare"},
            {"--max-drop", "SHARE", "write nothing where more than this share does not agree"},
            {"--keep", "LAYER", "a layer that stays as it is; may be repeated"},
            {"--preset", "P", "mixed (the default) or performance: NNCF's presets"},
            {"--seed", "N", "of random numbers (0)"},
            {"--threshold", "T", "least confidence of an object (as the model states, else 0.5)"},
            {"--sheet", "F.png", "draw the frames that agree least, the original left"},
            {"--labels-file", "F", "one class name per line"},
            {"--json", "", "the report as one line of JSON"},
            device_option(),
            config_option()}},
          run};
}

}  // namespace clinfer
