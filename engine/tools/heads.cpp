// clinfer heads: how the element reads a model's outputs and why, and what that gives on a picture.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "engine/heads/network.h"
#include "engine/tools/commands.h"

extern char** environ;

namespace clinfer {
namespace {

namespace fs = std::filesystem;

ModelOptions options_of(const Arguments& arguments) {
  ModelOptions options;
  options.model = arguments.positional(0);
  options.model_proc = arguments.value("--model-proc").value_or("");
  options.labels_file = arguments.value("--labels-file").value_or("");
  options.post_process = arguments.value("--post-process").value_or("auto");
  options.outputs = arguments.value("--outputs").value_or("");
  for (const std::string& text : arguments.all("--reshape"))
    options.reshape += (options.reshape.empty() ? "" : ";") + text;
  return options;
}

// In a build folder the plug-in lies beside the program's folder, where GStreamer does not look.
void find_built_plugin() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path() / ".." / ".." / "gst";
  if (error || !fs::exists(folder / "libgstclinfer.so", error)) return;
  const char* known = std::getenv("GST_PLUGIN_PATH");
  const std::string path =
      fs::weakly_canonical(folder).string() + (known != nullptr ? std::string(":") + known : "");
  setenv("GST_PLUGIN_PATH", path.c_str(), 1);
}

// Runs the elements on one picture, so that what is shown is what pipelines give. Returns once they
// have ended.
void run_elements(const std::vector<std::string>& words) {
  find_built_plugin();
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  pid_t child = 0;
  if (const int problem =
          posix_spawnp(&child, pointers[0], nullptr, nullptr, pointers.data(), environ))
    throw Error{ErrorCode::not_found, "--image needs gst-launch-1.0, which cannot be started: " +
                                          std::string(std::strerror(problem))};
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw Error{ErrorCode::device_failed, "gst-launch-1.0 was lost"};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error{ErrorCode::device_failed,
                "the pipeline failed; it needs the elements clinfer, clpublish and cloverlay (set "
                "GST_PLUGIN_PATH), pngdec and pngenc"};
}

// A network of clips gets the picture as each of its frames; the last result is drawn.
void show_image(const std::string& image, const ModelOptions& options, int clip_length,
                const Arguments& arguments) {
  std::error_code error;
  if (!fs::is_regular_file(image, error))
    throw Error{ErrorCode::not_found, "--image " + image + " is not a file"};
  const std::string drawn =
      arguments.value("--drawn").value_or(fs::path(image).stem().string() + ".heads.png");
  std::vector<std::string> words = {"gst-launch-1.0",
                                    "-q",
                                    "filesrc",
                                    "location=" + image,
                                    "!",
                                    "pngdec",
                                    "!",
                                    "videoconvert",
                                    "!",
                                    "video/x-raw,format=RGB"};
  const bool clip = clip_length > 1;
  if (clip)
    for (const std::string& word : {std::string("!"), std::string("imagefreeze"),
                                    "num-buffers=" + std::to_string(clip_length)})
      words.push_back(word);
  for (const std::string& word :
       {std::string("!"), std::string("clinfer"), "model=" + arguments.positional(0)})
    words.push_back(word);
  for (const auto& [option, property] : {std::pair{"--device", "device"},
                                         {"--model-proc", "model-proc"},
                                         {"--labels-file", "labels-file"},
                                         {"--post-process", "post-process"},
                                         {"--outputs", "outputs"},
                                         {"--threshold", "threshold"}})
    if (const auto value = arguments.value(option))
      words.push_back(std::string(property) + "=" + *value);
  if (!options.reshape.empty()) words.push_back("reshape=" + options.reshape);
  for (const char* word : {"!", "clpublish", "!", "cloverlay", "!", "videoconvert", "!", "pngenc",
                           "!", clip ? "multifilesink" : "filesink"})
    words.push_back(word);
  words.push_back("location=" + drawn);
  run_elements(words);
  std::cout << "drawn: " << drawn << "\n";
}

void run_heads(const Arguments& arguments) {
  const ModelOptions options = options_of(arguments);
  const Network network = describe_network(options);
  say_notes(*network.model);
  std::cout << explain(network) << std::flush;
  if (const auto image = arguments.value("--image"))
    show_image(*image, options, network.clip_length, arguments);
}

}  // namespace

Command heads_command() {
  return {
      {"heads",
       "how a model's outputs are read and why; with a picture, what that gives",
       {"MODEL"},
       {{"--image", "F.png", "run the elements on this picture: its JSON line, and a drawn PNG"},
        {"--drawn", "F.png", "where that is written (default: the picture's name .heads.png)"},
        {"--post-process", "HEAD", "the head to use, or none; default: auto"},
        {"--outputs", "NAME,NAME", "the outputs that are read; default: all"},
        {"--model-proc", "F.json", "DL Streamer's description of the model"},
        {"--labels-file", "F", "one class name per line"},
        {"--threshold", "T", "least confidence of an object, with --image"},
        device_option(),
        reshape_option()}},
      run_heads};
}

}  // namespace clinfer
