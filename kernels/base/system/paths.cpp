// Follows paths by descriptors of folders (O_PATH), one part at a time.
#include "kernels/base/system/paths.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/system/files.h"

namespace clinfer {

namespace {

constexpr int kMostLinks = 40;  // the same as the system's limit
constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;

// The owners whose files are trusted: this user, root, and one more if code of that user runs in
// this process already.
struct Trusted {
  std::optional<uid_t> also;
  bool operator()(uid_t owner) const { return owner == geteuid() || owner == 0 || owner == also; }
};

// Returns whether the owner is the number that stands for all outside users in a user namespace
// without root (unprivileged containers), which includes root. Such a folder is judged by its mode;
// files of everyone's folders do not get here.
bool stands_for_root(uid_t owner) {
  static const std::optional<uid_t> outside = []() -> std::optional<uid_t> {
    std::ifstream map("/proc/self/uid_map");
    unsigned long inside = 0, beyond = 0, count = 0;
    while (map >> inside >> beyond >> count)
      if (inside == 0) return std::nullopt;
    unsigned long overflow = 0;
    if (!(std::ifstream("/proc/sys/kernel/overflowuid") >> overflow)) return std::nullopt;
    return static_cast<uid_t>(overflow);
  }();
  return outside && owner == *outside;
}

std::string belongs(const std::string& name, uid_t owner) {
  return name + " belongs to user " + std::to_string(owner);
}

// Returns whether other users may write. The user's own group (with the user's number) does not
// count as another user.
bool others_write(const struct stat& status) {
  const bool own_group = status.st_gid == 0 || status.st_gid == geteuid();
  return (status.st_mode & S_IWOTH) || ((status.st_mode & S_IWGRP) && !own_group);
}

// Checks the permissions of one file or folder.
std::string who_else_writes(const std::string& name, const struct stat& status, Trusted trusted) {
  if (!trusted(status.st_uid)) return belongs(name, status.st_uid);
  return others_write(status) ? name + " can be written by others (chmod go-w changes that)" : "";
}

// Checks a folder above. In a sticky folder, others cannot touch what belongs to this user.
std::string who_else_exchanges(const std::string& name, const struct stat& folder,
                               const std::string& entry_name, const struct stat& entry,
                               Trusted trusted) {
  if (!trusted(folder.st_uid) && !stands_for_root(folder.st_uid))
    return belongs(name, folder.st_uid);
  if (!others_write(folder)) return "";
  if ((folder.st_mode & S_ISVTX) == 0)
    return name + " can be written by others (chmod go-w changes that)";
  return trusted(entry.st_uid) ? "" : belongs(entry_name, entry.st_uid);
}

[[noreturn]] void refuse(const std::string& path, const std::string& what, const std::string& why) {
  throw Error(ErrorCode::io, path + " " + what + ": " + why);
}

// Follows a path. Throws Error{io}: PATH, `what` and the reason.
class PathWalk {
 public:
  PathWalk(const std::string& path, std::string what, Trusted trusted = {})
      : path_(path), what_(std::move(what)), trusted_(trusted) {
    add(path);
    if (path.empty()) fail(ENOENT);
    if (path[0] == '/') {
      to_root();
      return;
    }
    folder_ = Descriptor(open(".", kFolder));
    char here[PATH_MAX];
    at_ = getcwd(here, sizeof here) != nullptr ? here : ".";
    if (!folder_) fail(errno);
  }

  // Called with each folder, and with the entry in it that is followed next.
  using Look = std::function<void(const std::string& folder_name, const struct stat& folder,
                                  const std::string& name, const struct stat& entry)>;
  Look look;

  // Follows the path to its end, which is a name in a folder.
  FilePlace to_place(Last last) {
    if (path_.back() == '/') fail(EISDIR);
    while (!pending_.empty()) {
      std::string name = take();
      if (name == "." || name == "..") {
        if (pending_.empty()) fail(EISDIR);
        enter(name, {});
        continue;
      }
      if (pending_.empty()) {
        const std::string path = child(name);
        if (last == Last::as_it_is) return {std::move(folder_), std::move(name), path};
        const Descriptor entry(
            openat(folder_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        if (!entry && errno != ENOENT) fail(errno);
        struct stat status {};
        if (!entry || (fstat(entry.get(), &status) == 0 && !S_ISLNK(status.st_mode)))
          return {std::move(folder_), std::move(name), path};
        if (is_of_proc(entry)) return {std::move(folder_), std::move(name), path, true};
        follow(name, entry, status);
        if (pending_.empty()) fail(EISDIR);  // the path leads to the root
        continue;
      }
      enter(name, {});
    }
    fail(EISDIR);
  }

  // Follows the whole path. With a mode, creates missing folders.
  void to_folder(std::optional<mode_t> make) {
    while (!pending_.empty()) enter(take(), make);
  }

  const Descriptor& folder() const { return folder_; }
  const std::string& at() const { return at_; }

 private:
  [[noreturn]] void fail(int error) const { refuse(path_, what_, system_reason(error)); }

  std::string child(const std::string& name) const {
    return at_ == "/" ? at_ + name : at_ + "/" + name;
  }

  std::string take() {
    std::string name = std::move(pending_.back());
    pending_.pop_back();
    return name;
  }

  void add(const std::string& path) {
    std::vector<std::string> parts;
    for (size_t start = 0; start < path.size();) {
      const size_t end = std::min(path.find('/', start), path.size());
      if (end > start) parts.push_back(path.substr(start, end - start));
      start = end + 1;
    }
    pending_.insert(pending_.end(), parts.rbegin(), parts.rend());
  }

  void to_root() {
    folder_ = Descriptor(open("/", kFolder));
    at_ = "/";
    if (!folder_) fail(errno);
  }

  static bool is_of_proc(const Descriptor& entry) {
    struct statfs system {};
    return fstatfs(entry.get(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
  }

  void follow(const std::string& name, const Descriptor& link, const struct stat& status) {
    if (!trusted_(status.st_uid))
      refuse(path_, what_,
             child(name) + " is a link of user " + std::to_string(status.st_uid) +
                 " (name what it leads to, if that is right)");
    if (++links_ > kMostLinks) fail(ELOOP);
    std::string target(PATH_MAX, '\0');
    const ssize_t length = readlinkat(link.get(), "", target.data(), target.size());
    if (length <= 0) fail(length < 0 ? errno : ENOENT);
    target.resize(static_cast<size_t>(length));
    add(target);
    if (target[0] == '/') to_root();
  }

  void enter(const std::string& name, std::optional<mode_t> make) {
    if (name == ".") return;
    if (name == "..") {
      folder_ = Descriptor(openat(folder_.get(), "..", kFolder));
      if (!folder_) fail(errno);
      at_.resize(std::max<size_t>(at_.rfind('/'), 1));
      return;
    }
    Descriptor entry = open_entry(name, make);
    struct stat status {
    }, around{};
    if (fstat(entry.get(), &status) != 0 || fstat(folder_.get(), &around) != 0) fail(errno);
    if (look) look(at_, around, child(name), status);
    if (S_ISLNK(status.st_mode)) {
      if (!is_of_proc(entry)) return follow(name, entry, status);
      entry = Descriptor(openat(folder_.get(), name.c_str(), kFolder));
      if (!entry) fail(errno);
    } else if (!S_ISDIR(status.st_mode)) {
      if (pending_.empty()) throw Error(ErrorCode::io, path_ + " is no folder");
      fail(ENOTDIR);
    }
    at_ = child(name);
    folder_ = std::move(entry);
  }

  Descriptor open_entry(const std::string& name, std::optional<mode_t> make) {
    constexpr int kEntry = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    Descriptor entry(openat(folder_.get(), name.c_str(), kEntry));
    if (!entry && errno == ENOENT && make) {
      if (mkdirat(folder_.get(), name.c_str(), *make) != 0 && errno != EEXIST)
        throw Error(ErrorCode::io,
                    "the folder " + child(name) + " cannot be made: " + system_reason(errno));
      entry = Descriptor(openat(folder_.get(), name.c_str(), kEntry));
    }
    if (!entry) fail(errno);
    return entry;
  }

  const std::string path_, what_;
  const Trusted trusted_;
  std::vector<std::string> pending_;  // parts left to follow, the next part last
  Descriptor folder_;
  std::string at_;  // the folder reached so far, without links
  int links_ = 0;
};

// Returns a reason if an open file was put by another user into a folder where everyone may make
// files, else "".
std::string planted(const FilePlace& place, const struct stat& file) {
  struct stat folder {};
  if (fstat(place.folder.get(), &folder) != 0) return system_reason(errno);
  const bool everyone =
      (folder.st_mode & S_IWOTH) || ((folder.st_mode & S_ISVTX) && others_write(folder));
  if (!everyone || !(S_ISREG(file.st_mode) || S_ISFIFO(file.st_mode))) return "";
  const std::string advice = ", in a folder where others may make files (name another folder)";
  if (!Trusted{}(file.st_uid) && file.st_uid != folder.st_uid)
    return "it belongs to user " + std::to_string(file.st_uid) + advice;
  return file.st_nlink > 1 ? "it has a second name" + advice : "";
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

FilePlace find_place(const std::string& path, Last last) {
  return PathWalk(path, "cannot be written").to_place(last);
}

Descriptor open_output(const std::string& path, int flags, mode_t mode) {
  const std::string what = "cannot be written";
  constexpr int kMostTries = 100;
  const int access = (flags & O_ACCMODE) == O_RDWR ? O_RDWR : O_WRONLY;
  const int open_flags = access | O_CLOEXEC | O_NOCTTY | (flags & (O_APPEND | O_NONBLOCK));
  for (int tries = 0;; ++tries) {
    const FilePlace place = find_place(path, Last::followed);
    const char* name = place.name.c_str();
    if (place.is_of_proc) {
      Descriptor file(openat(place.folder.get(), name, open_flags | (flags & O_TRUNC)));
      if (!file) refuse(path, what, system_reason(errno));
      return file;
    }
    Descriptor file(openat(place.folder.get(), name, open_flags | O_CREAT | O_EXCL, mode));
    if (file) return file;
    if (errno != EEXIST || (flags & O_EXCL)) refuse(path, what, system_reason(errno));
    struct stat status {};
    // Checks before opening, because opening another user's FIFO would block.
    if (fstatat(place.folder.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0)
      if (const std::string why = planted(place, status); !why.empty()) refuse(path, what, why);
    file = Descriptor(openat(place.folder.get(), name, open_flags | O_NOFOLLOW));
    // Tries again: the entry may have been replaced meanwhile.
    if (!file && (errno == ENOENT || errno == ELOOP) && tries < kMostTries) continue;
    if (!file && errno == ENXIO && S_ISFIFO(status.st_mode)) return file;
    if (!file || fstat(file.get(), &status) != 0) refuse(path, what, system_reason(errno));
    if (const std::string why = planted(place, status); !why.empty()) refuse(path, what, why);
    if ((flags & O_TRUNC) && S_ISREG(status.st_mode) && ftruncate(file.get(), 0) != 0)
      refuse(path, what, system_reason(errno));
    return file;
  }
}

void make_folders(const std::string& path, mode_t mode) {
  PathWalk(path, "cannot be made or entered").to_folder(mode);
}

std::string resolve_links(const std::string& path) {
  const FilePlace place = find_place(path, Last::followed);
  return place.is_of_proc ? path : place.path;
}

namespace {

// Returns "" or the first place on the path of `walk` that others could exchange.
std::string who_else_exchanges_on(PathWalk& walk, Trusted trusted,
                                  const std::function<void()>& go) {
  std::string who;
  walk.look = [&who, trusted](const std::string& folder_name, const struct stat& folder,
                              const std::string& name, const struct stat& entry) {
    if (who.empty()) who = who_else_exchanges(folder_name, folder, name, entry, trusted);
  };
  try {
    go();
  } catch (const Error& error) {
    return error.what();
  }
  return who;
}

// Returns an absolute path, so that the folders above a relative one are checked, too.
std::string absolute(const std::string& path) {
  char here[PATH_MAX];
  if (path.starts_with('/') || getcwd(here, sizeof here) == nullptr) return path;
  return std::string(here) + "/" + path;
}

std::string who_else_changes(const std::string& folder, Trusted trusted) {
  PathWalk walk(absolute(folder), "cannot be trusted", trusted);
  if (std::string who = who_else_exchanges_on(walk, trusted, [&] { walk.to_folder({}); });
      !who.empty())
    return who;
  struct stat status {};
  if (fstat(walk.folder().get(), &status) != 0) return folder + ": " + system_reason(errno);
  return who_else_writes(walk.at(), status, trusted);
}

}  // namespace

std::string who_else_writes(const std::string& folder) { return who_else_changes(folder, {}); }

std::string who_else_writes(const std::string& name, const Descriptor& file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return name + ": " + system_reason(errno);
  if (!S_ISREG(status.st_mode)) return name + " is no regular file";
  return who_else_writes(name, status, {});
}

std::string who_else_replaces(const std::string& file, const std::string& running) {
  struct stat status {};
  Trusted trusted;
  if (stat(running.c_str(), &status) == 0) trusted.also = status.st_uid;
  PathWalk walk(absolute(file), "cannot be trusted", trusted);
  FilePlace place;
  if (std::string who =
          who_else_exchanges_on(walk, trusted, [&] { place = walk.to_place(Last::followed); });
      !who.empty())
    return who;
  struct stat folder {};
  if (fstat(place.folder.get(), &folder) != 0 ||
      fstatat(place.folder.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return file + ": " + system_reason(errno);
  const std::string who = who_else_writes(place.path, status, trusted);
  const std::string around = place.path.substr(0, std::max<size_t>(place.path.rfind('/'), 1));
  return who.empty() ? who_else_exchanges(around, folder, place.path, status, trusted) : who;
}

std::string own_folder_problem(const std::string& path) {
  try {
    make_folders(path, 0700);
  } catch (const Error& error) {
    return error.what();
  }
  if (access(path.c_str(), W_OK | X_OK) != 0)
    return path + " cannot be written: " + system_reason(errno);
  return who_else_writes(path);
}

std::string no_execution_in(const std::string& folder) {
  const Descriptor file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0700));
  struct statfs system {};
  constexpr unsigned long kNoExecution = 8;  // MS_NOEXEC, which statfs(2) reports
  if (statfs(folder.c_str(), &system) == 0 &&
      (static_cast<unsigned long>(system.f_flags) & kNoExecution))
    return folder + " is mounted noexec";
  if (!file) return "";  // the file system does not support such files
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const page = mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  if (page == MAP_FAILED) return "code in " + folder + " cannot be run: " + system_reason(errno);
  munmap(page, size);
  return "";
}

std::string make_unguessable_folder(const std::vector<std::string>& parents) {
  for (const std::string& parent : parents) {
    if (parent.empty()) continue;
    std::string path = parent + "/clinfer-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) continue;
    if (who_else_writes(path).empty()) return path;
    rmdir(path.c_str());
  }
  return "";
}

}  // namespace clinfer
