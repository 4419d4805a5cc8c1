// Pipelines of GStreamer in a child process: gst-launch-1.0 with clinfer's own elements, so that what
// the program shows is what pipelines give.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace clinfer {

void append(std::vector<std::string>& words, std::initializer_list<std::string> more);
// "property=value" as gst-launch-1.0 reads it from one word.
std::string assignment(const std::string& property, const std::string& value);
// Source elements and a decoder for a file or a URI.
std::vector<std::string> decoded(const std::string& video);

// A child process with this command line. `out` and `data`, where they are not -1, become its
// standard output and its file descriptor 3. Throws Error{not_found} where it cannot be started.
pid_t start_child(const std::vector<std::string>& words, int out = -1, int data = -1);
// Waits for its end; true where its exit status is 0.
bool ended_well(pid_t child);
// Runs gst-launch-1.0 with these words after its name. Throws Error{device_failed} where it fails,
// with `needs` as advice: the elements that it takes. `out`: as above.
void run_elements(const std::vector<std::string>& words, const std::string& needs, int out = -1);

// A folder for files that are no results, which goes with the object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace clinfer
