// The order of PoCL's own choice is that of its pocl_cache.c, versions 1 to 6.
#include "engine/ocl/pocl_cache.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "kernels/base/error.h"
#include "kernels/base/files.h"

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

// Why a folder cannot be PoCL's; makes it where it is not there, as PoCL would.
std::string problem_of(const std::string& folder, bool named_by_user) {
  try {
    make_folders(folder, 0700);
  } catch (const Error& error) {
    return error.what();
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return folder + " cannot be written: " + system_reason(errno);
  return named_by_user ? "" : who_else_writes(folder);
}

}  // namespace

std::string provide_pocl_cache(const std::string& preferred) {
  const std::string problem = problem_of(own_choice(), !variable("POCL_CACHE_DIR").empty());
  if (problem.empty()) return "";
  const std::string mine = "/clinfer-" + std::to_string(geteuid()) + "/pocl";
  std::string folders[] = {preferred,  variable("TMPDIR"), "/tmp",
                           "/var/tmp", "/dev/shm",         variable("XDG_RUNTIME_DIR")};
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    const std::string candidate = folder + (&folder == folders ? "/pocl" : mine);
    if (!problem_of(candidate, false).empty()) continue;
    setenv("POCL_CACHE_DIR", candidate.c_str(), 1);
    return "PoCL keeps what it compiles in " + candidate + ", because " + problem +
           "; POCL_CACHE_DIR names another folder";
  }
  return "PoCL has no folder for what it compiles, because " + problem +
         "; name one that can be written in POCL_CACHE_DIR";
}

}  // namespace clinfer::ocl
