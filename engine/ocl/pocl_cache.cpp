// Finds PoCL a folder for its cache. Follows the order in which PoCL itself chooses one
// (pocl_cache.c, versions 1 to 6).
#include "engine/ocl/pocl_cache.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/system/files.h"

namespace clinfer::ocl {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string own_choice() {
  if (const std::string named = variable("POCL_CACHE_DIR"); !named.empty()) return named;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/pocl/kcache";
  const char* home = std::getenv("HOME");
  return home ? std::string(home) + "/.cache/pocl/kcache" : "/tmp/pocl/kcache";
}

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLeastRoom = 32 * kMiB;    // what networks of some hundred kernels need
constexpr uint64_t kLargestFile = 16 * kMiB;  // more than any of PoCL's files

std::string no_room_in(const std::string& folder, uint64_t least) {
  struct statvfs system {};
  if (statvfs(folder.c_str(), &system) != 0) return "";
  const uint64_t room = uint64_t{system.f_bavail} * system.f_frsize;
  const bool lacks_files = system.f_files != 0 && system.f_favail == 0;
  if (room >= least && !lacks_files) return "";
  return "the file system of " + folder + " has " +
         (lacks_files ? "no file" : std::to_string(room / kMiB) + " MiB") + " left";
}

// Returns a message if this process may not write files as large as PoCL's, in any folder; else "".
std::string no_large_files() {
  rlimit most{};
  if (getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur >= kLargestFile) return "";
  return "no file may be larger than " + std::to_string(most.rlim_cur) +
         " bytes (ulimit -f, RLIMIT_FSIZE)";
}

// Returns a message if this process may start no program, as in some sandboxes; else "". PoCL starts
// a linker for each kernel and ends the process if it cannot.
std::string no_programs() {
  char* const nothing[] = {nullptr};
  execve("", nothing, nothing);  // fails always: with ENOENT where programs may be started
  if (errno != EPERM && errno != EACCES) return "";
  return "this process may start no program (execve() is forbidden)";
}

// Returns why a folder cannot be PoCL's cache, or "". Creates it if it is missing, as PoCL would.
// Code from it is loaded into this process, so nobody else may be able to change it, and the system
// must allow to execute it.
std::string problem_of(const std::string& folder, bool named_by_user) {
  try {
    make_folders(folder, 0700);
  } catch (const Error& error) {
    return error.what();
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return folder + " cannot be written: " + system_reason(errno);
  if (std::string others = named_by_user ? "" : who_else_writes(folder); !others.empty())
    return others;
  if (std::string why = no_execution_in(folder); !why.empty()) return why;
  return no_room_in(folder, kLeastRoom);
}

// Makes a folder that lasts as long as this process and its compilers.
std::string provide_unguessable(const std::vector<std::string>& parents) {
  static auto& folder = *new std::string;
  std::vector<std::string> fitting;
  for (const std::string& parent : parents)
    if (!parent.empty() && no_execution_in(parent).empty() &&
        no_room_in(parent, kLeastRoom).empty())
      fitting.push_back(parent);
  folder = make_unguessable_folder(fitting);
  if (folder.empty()) return "";
  static const pid_t owner = getpid();
  std::atexit([] {
    std::error_code ignored;
    if (owner == getpid()) std::filesystem::remove_all(folder, ignored);
  });
  return folder;
}

}  // namespace

PoclCache provide_pocl_cache(const std::string& preferred) {
  if (const std::string limit = no_large_files(); !limit.empty())
    return {"PoCL cannot write what it compiles, because " + limit, false};
  if (const std::string ban = no_programs(); !ban.empty())
    return {"PoCL cannot link what it compiles, because " + ban, false};
  const std::string problem = problem_of(own_choice(), !variable("POCL_CACHE_DIR").empty());
  if (problem.empty()) return {};
  const auto use = [&](const std::string& folder) {
    setenv("POCL_CACHE_DIR", folder.c_str(), 1);
    return PoclCache{"PoCL keeps what it compiles in " + folder + ", because " + problem +
                         "; POCL_CACHE_DIR names another folder",
                     true};
  };
  if (!preferred.empty() && problem_of(preferred + "/pocl", false).empty())
    return use(preferred + "/pocl");
  const std::vector<std::string> parents = {variable("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm",
                                            variable("XDG_RUNTIME_DIR")};
  for (const std::string& parent : parents) {
    const std::string folder = parent + "/clinfer-" + std::to_string(geteuid()) + "/pocl";
    if (!parent.empty() && problem_of(folder, false).empty()) return use(folder);
  }
  // Other users already own the predictable names everywhere.
  if (const std::string folder = provide_unguessable(parents); !folder.empty()) return use(folder);
  return {"PoCL has no folder for what it compiles, because " + problem +
              "; name one in POCL_CACHE_DIR that can be written and from which code may be run",
          false};
}

std::string full_pocl_cache() { return no_room_in(own_choice(), kMiB); }

}  // namespace clinfer::ocl
