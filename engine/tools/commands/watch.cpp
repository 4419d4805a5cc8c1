// clinfer watch: a page on this machine with pictures of cameras and what a model finds in them.
#include <filesystem>
#include <iostream>
#include <utility>

#include "engine/tools/commands.h"
#include "engine/tools/video/elements.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostPorts = 65535;

// Returns what the page calls a source: a file's name, or host and path of a URI without user,
// password and query.
std::string name_of_source(const std::string& uri) {
  const size_t scheme = uri.find("://");
  if (scheme == std::string::npos) return fs::path(uri).filename().string();
  std::string rest = uri.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("?#"));
  const size_t user = rest.substr(0, rest.find('/')).rfind('@');
  if (user != std::string::npos) rest = rest.substr(user + 1);
  return rest.empty() ? uri.substr(0, scheme) : rest;
}

void add_camera(const Arguments& arguments, const std::string& uri, const std::string& port,
                std::vector<std::string>& words) {
  append(words, {"clcamera", assignment("uri", uri)});
  append(words, {"!", "queue", "max-size-buffers=4", "!", "videoconvert", "!", "clinfer",
                 assignment("model", arguments.positional(arguments.positionals() - 1)),
                 "model-instance-id=watch", "overload-policy=skip-inference"});
  for (const auto& [option, property] : {std::pair{"--device", "device"},
                                         {"--labels", "labels-file"},
                                         {"--every", "inference-interval"},
                                         {"--batch", "batch-size"}})
    if (const auto value = arguments.value(option)) words.push_back(assignment(property, *value));
  if (arguments.share("--threshold"))
    words.push_back(assignment("threshold", *arguments.value("--threshold")));
  std::string config;
  for (const std::string& setting : arguments.all("--config"))
    config += (config.empty() ? "" : ",") + setting;
  if (!config.empty()) words.push_back(assignment("config", config));
  append(words, {"!", "cltrack"});
  bool counts = false;
  for (const auto& [option, property] :
       {std::pair{"--lines", "lines"}, {"--zones", "zones"}, {"--zones-file", "zones-file"}}) {
    const auto value = arguments.value(option);
    if (!value) continue;
    if (!std::exchange(counts, true)) append(words, {"!", "clzones"});
    words.push_back(assignment(property, *value));
  }
  // Drawn after scaling, so that lines and labels keep their size on small screens.
  append(
      words,
      {"!", "videoscale", "!", "video/x-raw,width=[1,1280],height=[1,1280],pixel-aspect-ratio=1/1",
       "!", "videoconvert", "!", "cloverlay", "!", "videoconvert", "!", "jpegenc", "quality=80",
       "!", "clwatch", "async=false", "port=" + port, assignment("source", name_of_source(uri))});
  if (arguments.has("--mjpeg")) words.push_back("webrtc=false");
}

void run(const Arguments& arguments) {
  const std::string port = std::to_string(arguments.number("--port", 8080, 1, kMostPorts));
  arguments.number("--every", 1, 1);
  arguments.number("--batch", 1, 1);
  if (!has_element("clwatch"))
    throw Error(ErrorCode::not_found,
                "GStreamer has no element clwatch: it is built where libsoup 3 and GStreamer's "
                "library for WebRTC are (libsoup-3.0-dev, libgstreamer-plugins-bad1.0-dev); "
                "GST_PLUGIN_PATH names the folder of libgstclmetrics.so");
  for (size_t i = 0; i + 1 < arguments.positionals(); ++i)
    if (const std::string& path = arguments.positional(i);
        path.find("://") == std::string::npos && !fs::exists(path))
      throw Error(ErrorCode::not_found, path + " is not there: name a file or a URI");
  std::vector<std::string> words = {"gst-launch-1.0", "-q"};
  for (size_t i = 0; i + 1 < arguments.positionals(); ++i)
    add_camera(arguments, arguments.positional(i), port, words);
  std::cerr << "clinfer: http://localhost:" << port << "/ shows " << arguments.positionals() - 1
            << (arguments.positionals() == 2 ? " camera" : " cameras")
            << ", from this machine only; Ctrl-C ends" << std::endl;
  become(words);
}

}  // namespace

Command watch_command() {
  return {{"watch",
           "a page on this machine with pictures, counts and times of cameras",
           {"URI...", "MODEL"},
           {{"--port", "N", "port of the page (8080)"},
            {"--mjpeg", "", "pictures by MJPEG alone, also where WebRTC is there"},
            {"--lines", "NAME:X1,Y1,X2,Y2;...", "count who crosses, as clzones' lines"},
            {"--zones", "NAME:X1,Y1,X2,Y2,X3,Y3;...", "count who is inside, as clzones' zones"},
            {"--zones-file", "F", "both, from a file"},
            {"--labels", "F", "one class name per line"},
            {"--threshold", "S", "least confidence of an object, from 0 to 1"},
            {"--every", "N", "infer every Nth frame (1)"},
            {"--batch", "N", "frames of all cameras per inference (1)"},
            device_option(),
            config_option()}},
          run};
}

}  // namespace clinfer
