// Implements file functions by POSIX calls. They use descriptors rather than names wherever the
// name could refer to another file in the meantime.
#include "kernels/base/system/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/hash.h"
#include "kernels/base/system/paths.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

constexpr std::string_view kPrefix = ".clinfer-", kSuffix = ".tmp";
constexpr int kMostNames = 100;

std::string unguessable_name() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    throw Error(ErrorCode::io, "the system gives no random numbers: " + system_reason(errno));
  return std::string(kPrefix) + hex(number) + std::string(kSuffix);
}

// Locks a new temporary file, so that remove_abandoned_files() does not delete it. Returns false if
// that function, in another process, was faster: it has locked the file or deleted it.
bool hold(int file) {
  // Some file systems lack locks; the file then counts as locked.
  if (flock(file, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat status {};
  return fstat(file, &status) == 0 && status.st_nlink > 0;
}

// Gives a file the permissions of `old`, which it replaces, without giving any user more access.
void take_permissions(int file, const struct stat& old) {
  mode_t mode = old.st_mode & 0777;
  if (old.st_uid != geteuid()) mode &= 0644;
  struct stat status {};
  if (fstat(file, &status) != 0) return;
  if (status.st_gid != old.st_gid && fchown(file, static_cast<uid_t>(-1), old.st_gid) != 0)
    mode &= 0707 | (mode & 07) << 3;  // another group: only the permissions that everyone has
  (void)!fchmod(file, mode);
}

int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write_quietly(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

ssize_t write_quietly(int file, const void* data, size_t size) {
  sigset_t mine, before, pending;
  sigemptyset(&mine);
  sigaddset(&mine, SIGPIPE);
  sigaddset(&mine, SIGXFSZ);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &mine, &before);
  const ssize_t written = ::write(file, data, size);
  const int code = errno;
  const int raised = written >= 0 ? 0 : code == EPIPE ? SIGPIPE : code == EFBIG ? SIGXFSZ : 0;
  if (raised != 0 && sigismember(&pending, raised) == 0) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, raised);
    const timespec none{};
    while (sigtimedwait(&one, nullptr, &none) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = code;
  return written;
}

std::string system_reason(int error) {
  const char* advice = "";
  switch (error) {
    case EACCES:
    case EPERM:
      advice = " (check the permissions of it and of its folders)";
      break;
    case ENOENT:
      advice = " (check its name; its folder has to be there)";
      break;
    case ENOTDIR:
      advice = " (a part of its path is a file, not a folder)";
      break;
    case EROFS:
      advice = " (name another folder)";
      break;
    case ENOSPC:
    case EDQUOT:
      advice = " (free some, or name another folder)";
      break;
    case EFBIG:
      advice = " (raise the limit: ulimit -f)";
      break;
    case EMFILE:
      advice = " (raise the limit: ulimit -n)";
      break;
    case ENFILE:
      advice = " (raise the limit: sysctl fs.file-max)";
      break;
    case EAGAIN:
      advice = " (too many threads or processes; end some, or raise the limit: ulimit -u)";
      break;
    case ENOMEM:
      advice = " (end other programs, or raise the limit: ulimit -v)";
      break;
    case ELOOP:
      advice = " (links lead in a circle, or a link stands where none may)";
      break;
    default:
      break;
  }
  char text[256];  // Does not use std::strerror, whose result threads share.
  return strerror_r(error, text, sizeof text) + std::string(advice);
}

std::string explain(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "not enough memory";
  const auto* refused = dynamic_cast<const std::system_error*>(&error);
  if (!refused) return message_line(error.what());
  // If no thread can be started, the system's reason is all that is known.
  const std::string bare = refused->code().message(),
                    reason = system_reason(refused->code().value());
  std::string text = error.what();
  if (const size_t at = text.find(bare); at != std::string::npos)
    text.replace(at, bare.size(), reason);
  return message_line("the system refused what was needed: " + text);
}

NewFile::NewFile(const std::string& path, mode_t mode)
    : NewFile(find_place(path, Last::as_it_is), mode) {}

NewFile::NewFile(FilePlace place, mode_t mode) : place_(std::move(place)) {
  const int folder = place_.folder.get();
  struct stat old {};
  const bool replaces =
      fstatat(folder, place_.name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(old.st_mode);
  for (int names = 0;; ++names) {
    name_ = unguessable_name();
    file_ = Descriptor(openat(folder, name_.c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                              replaces ? 0600 : mode));
    if (!file_ && (errno != EEXIST || names == kMostNames)) fail(errno);
    if (file_ && hold(file_.get())) break;
  }
  if (replaces) take_permissions(file_.get(), old);
}

NewFile::~NewFile() {
  if (!name_.empty()) unlinkat(place_.folder.get(), name_.c_str(), 0);
}

void NewFile::fail(int error, SourcePlace place) const {
  throw Error(ErrorCode::io, place_.path + " cannot be written: " + system_reason(error), place);
}

void NewFile::write(std::string_view bytes) {
  if (const int error = write_all(file_.get(), bytes)) fail(error);
}

void NewFile::flush() {
  // Not every file system supports fsync (EINVAL), and only regular files need it.
  if (fsync(file_.get()) != 0 && errno != EINVAL) fail(errno);
}

void NewFile::replace() {
  const int folder = place_.folder.get();
  if (renameat(folder, name_.c_str(), folder, place_.name.c_str()) != 0) fail(errno);
  name_.clear();
}

namespace {

using Listing = std::unique_ptr<DIR, int (*)(DIR*)>;

Listing list(const std::string& folder) {
  return {opendir(folder.c_str()), [](DIR* d) { return d ? closedir(d) : 0; }};
}

}  // namespace

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const Listing listing = list(folder);
  if (!listing) return names;
  while (const dirent* entry = readdir(listing.get()))
    if (const std::string_view name = entry->d_name; name != "." && name != "..")
      names.emplace_back(name);
  return names;
}

void remove_abandoned_files(const std::string& folder) {
  const Listing listing = list(folder);
  if (!listing) return;
  const int at = dirfd(listing.get());
  while (const dirent* entry = readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const Descriptor file(
        openat(at, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (file && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == geteuid() && flock(file.get(), LOCK_EX | LOCK_NB) == 0)
      unlinkat(at, entry->d_name, 0);
  }
}

void replace_file(const std::string& path, std::span<const std::string_view> parts) {
  NewFile file(path);
  for (const std::string_view part : parts) file.write(part);
  file.replace();
}

void write_named_file(const std::string& path, std::span<const std::string_view> parts) {
  FilePlace place = find_place(path, Last::followed);
  struct stat status {};
  if (place.is_of_proc ||
      (fstatat(place.folder.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
       !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))) {
    const Descriptor file = open_output(path, O_CLOEXEC);
    for (const std::string_view part : parts)
      if (const int error = write_all(file.get(), part))
        throw Error(ErrorCode::io, path + " cannot be written: " + system_reason(error));
    return;
  }
  NewFile file(std::move(place));
  for (const std::string_view part : parts) file.write(part);
  file.replace();
}

}  // namespace clinfer
