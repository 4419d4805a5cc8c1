// Runs GStreamer pipelines in a child process (gst-launch-1.0) with clinfer's own elements, so that
// the program shows the same results as pipelines.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace clinfer {

void append(std::vector<std::string>& words, std::initializer_list<std::string> more);
// Returns "property=value" in the form that gst-launch-1.0 reads from one word.
std::string assignment(const std::string& property, const std::string& value);
// Returns source elements and a decoder for a file or a URI.
std::vector<std::string> decoded(const std::string& video);

// Starts a child process with this command line. `out` and `data`, unless -1, become its standard
// output and its file descriptor 3. Throws Error{not_found} if it cannot be started.
pid_t start_child(const std::vector<std::string>& words, int out = -1, int data = -1);
// Waits for the child's end; returns true if its exit status is 0.
bool ended_well(pid_t child);
// Runs gst-launch-1.0 with these words after its name. `out`: as above. Throws Error{device_failed}
// if it fails, with `needs`, the elements required, as advice.
void run_elements(const std::vector<std::string>& words, const std::string& needs, int out = -1);

// Returns whether GStreamer has an element of this name.
bool has_element(const std::string& name);
// Replaces this process by a command line. Throws Error{not_found} if it cannot be started.
[[noreturn]] void become(const std::vector<std::string>& words);

// A folder for temporary files. The destructor removes it.
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
