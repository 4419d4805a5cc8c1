// Runs GStreamer's elements in child processes.
#include "engine/tools/video/elements.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "kernels/base/error.h"

extern char** environ;

namespace clinfer {

namespace fs = std::filesystem;

namespace {

// Adds the plug-in's folder in a build folder, where GStreamer does not look.
void find_built_plugin() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path() / ".." / ".." / "gst";
  if (error || !fs::exists(folder / "libgstclinfer.so", error)) return;
  const char* known = std::getenv("GST_PLUGIN_PATH");
  const std::string path = fs::weakly_canonical(folder).string();
  if (known != nullptr && std::string(known).starts_with(path)) return;
  setenv("GST_PLUGIN_PATH", (path + (known != nullptr ? std::string(":") + known : "")).c_str(), 1);
}

// Returns the words as exec() takes them; they must outlive the result.
std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

void append(std::vector<std::string>& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

// Adds backslashes, because a backslash keeps gst-launch-1.0 from interpreting the next character.
// It adds them before spaces by itself, but not after a quotation mark.
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

std::vector<std::string> decoded(const std::string& video) {
  if (video.find("://") != std::string::npos) return {"uridecodebin", assignment("uri", video)};
  return {"filesrc", assignment("location", video), "!", "decodebin"};
}

pid_t start_child(const std::vector<std::string>& words, int out, int data) {
  find_built_plugin();
  std::vector<char*> pointers = pointers_to(words);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  if (data >= 0) posix_spawn_file_actions_adddup2(&actions, data, 3);
  pid_t child = 0;
  const int problem =
      posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem)
    throw Error{ErrorCode::not_found,
                words[0] + " cannot be started: " + std::string(std::strerror(problem))};
  return child;
}

bool ended_well(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void run_elements(const std::vector<std::string>& words, const std::string& needs, int out) {
  std::vector<std::string> all = {"gst-launch-1.0", "-q"};
  all.insert(all.end(), words.begin(), words.end());
  if (!ended_well(start_child(all, out)))
    throw Error{ErrorCode::device_failed, "the pipeline failed; it needs " + needs};
}

bool has_element(const std::string& name) {
  // Without a version, gst-inspect asks for that of GStreamer itself.
  return ended_well(start_child({"gst-inspect-1.0", "--atleast-version=0.0", "--exists", name}));
}

void become(const std::vector<std::string>& words) {
  find_built_plugin();
  execvp(words[0].c_str(), pointers_to(words).data());
  throw Error{ErrorCode::not_found,
              words[0] + " cannot be started: " + std::string(std::strerror(errno))};
}

Folder::Folder() {
  std::string path = (fs::temp_directory_path() / "clinfer-frames-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr)
    throw Error{ErrorCode::not_found, path + " cannot be made: " + std::strerror(errno)};
  path_ = path;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace clinfer
