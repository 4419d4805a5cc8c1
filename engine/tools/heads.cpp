// clinfer heads: how the element reads a model's outputs and why, and what that gives on a picture.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

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
  options.config_file = read_config(arguments).config_file;
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
                "GST_PLUGIN_PATH), pngenc and a decoder of the picture (pngdec, jpegdec ...)"};
}

bool is_picture(const std::string& file) {
  std::string suffix = fs::path(file).extension().string();
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* known : {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"})
    if (suffix == known) return true;
  return false;
}

void append(std::vector<std::string>& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

// As gst-launch-1.0 reads it: a backslash takes the meaning of what follows. It puts one before each
// space by itself, but not after a quotation mark.
std::string assignment(const std::string& property, const std::string& value) {
  std::string text = property + "=";
  bool quoted = false;
  for (const char c : value) {
    quoted |= c == '"';
    if (c == '\\' || c == '"' || (c == ' ' && quoted)) text += '\\';
    text += c;
  }
  return text;
}

// The name as a format of printf(), which the elements of numbered files take.
std::string pattern(const std::string& file) {
  std::string text;
  for (const char c : file) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

void decode(const std::string& file, std::vector<std::string>& words) {
  append(words, {"filesrc", assignment("location", file), "!", "decodebin", "!", "videoconvert",
                 "!", "video/x-raw,format=RGB"});
}

// clinfer with what the options say, to a drawn picture; of several the last one stays.
void infer_and_draw(const ModelOptions& options, const Arguments& arguments,
                    const std::string& drawn, std::vector<std::string>& words) {
  append(words, {"clinfer", assignment("model", arguments.positional(0))});
  for (const auto& [option, property] : {std::pair{"--device", "device"},
                                         {"--model-proc", "model-proc"},
                                         {"--labels-file", "labels-file"},
                                         {"--post-process", "post-process"},
                                         {"--outputs", "outputs"}})
    if (const auto value = arguments.value(option)) words.push_back(assignment(property, *value));
  if (arguments.share("--threshold"))
    words.push_back(assignment("threshold", *arguments.value("--threshold")));
  if (!options.reshape.empty()) words.push_back(assignment("reshape", options.reshape));
  std::string config;
  for (const std::string& setting : arguments.all("--config"))
    config += (config.empty() ? "" : ",") + setting;
  if (!config.empty()) words.push_back(assignment("config", config));
  append(words, {"!", "clpublish", "!", "cloverlay", "!", "videoconvert", "!", "pngenc", "!",
                 "multifilesink", assignment("location", pattern(drawn))});
}

// A folder that goes with the object.
class Folder {
 public:
  Folder() {
    std::string path = (fs::temp_directory_path() / "clinfer-frames-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr)
      throw Error{ErrorCode::not_found, path + " cannot be made: " + std::strerror(errno)};
    path_ = path;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(int number) const {
    return (path_ / (std::to_string(number) + ".png")).string();
  }
  std::string all() const { return pattern(path_.string()) + "/%d.png"; }

 private:
  fs::path path_;
};

// Writes the first `count` frames of a video, numbered from 0. A decoder may give more.
void unpack(const std::string& video, int count, const Folder& folder) {
  std::vector<std::string> words = {"gst-launch-1.0", "-q"};
  decode(video, words);
  append(words,
         {"!", "identity", "eos-after=" + std::to_string(count + 1), "!", "pngenc",
          "compression-level=1", "!", "multifilesink", assignment("location", folder.all())});
  run_elements(words);
  std::error_code error;
  if (!fs::is_regular_file(folder.file(count - 1), error))
    throw Error{ErrorCode::bad_argument, video + " has fewer than " + std::to_string(count) +
                                             " frames, which the network takes at a time"};
}

void show_frames(const Folder& folder, const ModelOptions& options, int count,
                 const std::string& drawn, const Arguments& arguments) {
  std::vector<std::string> words = {"gst-launch-1.0",
                                    "-q",
                                    "multifilesrc",
                                    assignment("location", folder.all()),
                                    "stop-index=" + std::to_string(count - 1),
                                    "caps=image/png,framerate=25/1",
                                    "!",
                                    "pngdec",
                                    "!",
                                    "videoconvert",
                                    "!",
                                    "video/x-raw,format=RGB",
                                    "!"};
  infer_and_draw(options, arguments, drawn, words);
  run_elements(words);
}

// One picture, which stands for all frames of a clip, or the first frames of a video.
void show_file(const std::string& file, const ModelOptions& options, int clip_length,
               const std::string& drawn, const Arguments& arguments) {
  std::vector<std::string> words = {"gst-launch-1.0", "-q"};
  if (is_picture(file) || clip_length == 1) {
    decode(file, words);
    append(words, {"!", "imagefreeze", "num-buffers=" + std::to_string(clip_length), "!"});
    infer_and_draw(options, arguments, drawn, words);
    run_elements(words);
    return;
  }
  const Folder folder;
  unpack(file, clip_length, folder);
  show_frames(folder, options, clip_length, drawn, arguments);
}

// Pictures that are the frames of one clip.
void show_clip(const std::vector<std::string>& files, const ModelOptions& options,
               const std::string& drawn, const Arguments& arguments) {
  const Folder folder;
  int number = 0;
  for (const std::string& file : files) {
    std::vector<std::string> words = {"gst-launch-1.0", "-q"};
    decode(file, words);
    append(words, {"!", "imagefreeze", "num-buffers=1", "!", "pngenc", "compression-level=1", "!",
                   "filesink", assignment("location", folder.file(number++))});
    run_elements(words);
  }
  show_frames(folder, options, number, drawn, arguments);
}

void show_images(const std::vector<std::string>& images, const ModelOptions& options,
                 int clip_length, const Arguments& arguments) {
  for (const std::string& image : images)
    if (std::error_code error; !fs::is_regular_file(image, error))
      throw Error{ErrorCode::not_found, "--image " + image + " is not a file"};
  const auto drawn_name = [](const std::string& image) {
    return fs::path(image).stem().string() + ".heads.png";
  };
  const auto drawn = arguments.value("--drawn");
  const bool clip = clip_length > 1 && images.size() > 1;
  if (clip && images.size() != static_cast<size_t>(clip_length))
    throw Error{ErrorCode::bad_argument,
                "the network takes clips of " + std::to_string(clip_length) +
                    " frames: give as many pictures of one size, or one picture or video"};
  if (!clip && images.size() > 1 && drawn)
    throw Error{ErrorCode::bad_argument, "--drawn names one picture, and there are " +
                                             std::to_string(images.size()) +
                                             "; without it each gets its own name"};
  if (clip) {
    const std::string file = drawn.value_or(drawn_name(images.back()));
    show_clip(images, options, file, arguments);
    std::cout << "drawn: " << file << "\n";
    return;
  }
  std::set<std::string> names;
  for (const std::string& image : images)
    if (!names.insert(drawn_name(image)).second)
      throw Error{ErrorCode::bad_argument, "two pictures would be drawn in " + drawn_name(image) +
                                               ": show them one by one, each with --drawn"};
  for (const std::string& image : images) {
    const std::string file = drawn.value_or(drawn_name(image));
    show_file(image, options, clip_length, file, arguments);
    std::cout << "drawn: " << file << "\n" << std::flush;
  }
}

void run_heads(const Arguments& arguments) {
  const ModelOptions options = options_of(arguments);
  const Network network = describe_network(options);
  say_notes(*network.model);
  std::cout << explain(network) << std::flush;
  if (const auto images = arguments.all("--image"); !images.empty())
    show_images(images, options, network.clip_length, arguments);
}

}  // namespace

Command heads_command() {
  return {{"heads",
           "how a model's outputs are read and why; with pictures, what that gives",
           {"MODEL"},
           {{"--image", "F",
             "run the elements on a picture, or on the first frame (or clip) of a video: JSON "
             "lines and "
             "a drawn PNG; several are several pictures, or the frames of one clip"},
            {"--drawn", "F.png", "where that is written (default: the picture's name .heads.png)"},
            {"--post-process", "HEAD", "the head to use, or none; default: auto"},
            {"--outputs", "NAME,NAME", "the outputs that are read; default: all"},
            {"--model-proc", "F.json", "DL Streamer's description of the model"},
            {"--labels-file", "F", "one class name per line"},
            {"--threshold", "T", "least confidence of an object, with --image"},
            device_option(),
            reshape_option(),
            config_option()}},
          run_heads};
}

}  // namespace clinfer
