// Tuning files on disk: read with limits, replaced in one step under a lock.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "kernels/base/error.h"
#include "tuning/tuning_cache.h"

namespace clinfer {

namespace {

constexpr size_t kLargest = size_t{256} << 20;  // bytes
constexpr size_t kReserve = size_t{1} << 20;    // bytes that a tuning run may add
constexpr auto kLockWait = std::chrono::seconds(20);
constexpr auto kLockPoll = std::chrono::milliseconds(20);

[[noreturn]] void fail(const std::string& path, const std::string& what, int error,
                       ErrorCode code = ErrorCode::io) {
  throw Error(code, "tuning file " + path + ": " + what +
                        (error ? std::string(": ") + std::strerror(error) : ""));
}

class File {
 public:
  File(const std::string& path, int flags, mode_t mode = 0)
      : fd_(open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::optional<std::string> read_text(const std::string& path) {
  // Not blocking: a pipe must not stop us before we see that it is one.
  const File file(path, O_RDONLY | O_NONBLOCK);
  if (!file) {
    if (errno == ENOENT) return {};
    fail(path, "cannot be read", errno, ErrorCode::not_found);
  }
  struct stat status {};
  if (fstat(file.fd(), &status) != 0) fail(path, "cannot be read", errno, ErrorCode::not_found);
  if (!S_ISREG(status.st_mode)) fail(path, "is not a regular file", 0, ErrorCode::not_found);
  std::string text;
  char block[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.fd(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot be read", errno);
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
    if (text.size() > kLargest)
      fail(path, "is larger than " + std::to_string(kLargest >> 20) + " MiB", 0);
  }
}

// Holds FILE.lock; processes that tune into one file take turns. The lock's file goes with the
// lock.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : path_(path + ".lock") {
    const auto give_up = std::chrono::steady_clock::now() + kLockWait;
    for (;;) {
      file_.emplace(path_, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
      if (!*file_) fail(path, "cannot make " + path_ + " beside it", errno);
      if (flock(file_->fd(), LOCK_EX | LOCK_NB) == 0) {
        // The former holder may have removed the file since we opened it.
        struct stat ours {
        }, named{};
        if (fstat(file_->fd(), &ours) == 0 && stat(path_.c_str(), &named) == 0 &&
            ours.st_ino == named.st_ino && ours.st_dev == named.st_dev)
          return;
        continue;
      }
      if (errno != EWOULDBLOCK && errno != EINTR) fail(path, "cannot lock " + path_, errno);
      if (std::chrono::steady_clock::now() > give_up)
        fail(path,
             "another process holds " + path_ + " for too long; stop it, or tune into another file",
             0);
      std::this_thread::sleep_for(kLockPoll);
    }
  }
  ~FileLock() { unlink(path_.c_str()); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string path_;
  std::optional<File> file_;
};

// A file beside `path` that vanishes unless it is renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path)
      : target_(path),
        name_(path + ".tmp" + std::to_string(getpid())),
        file_(name_, O_WRONLY | O_CREAT | O_TRUNC, 0666) {
    if (!file_) fail(target_, "cannot write beside it", errno);
    struct stat old {};
    if (stat(path.c_str(), &old) == 0) {
      if (access(path.c_str(), W_OK) != 0) {
        const int error = errno;
        unlink(name_.c_str());
        fail(target_, "cannot be written", error);
      }
      (void)!fchown(file_.fd(), static_cast<uid_t>(-1), old.st_gid);
      (void)!fchmod(file_.fd(), old.st_mode & 07777);
    }
  }
  ~TemporaryFile() { unlink(name_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(file_.fd(), text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail(target_, "cannot be written", written < 0 ? errno : EIO);
      text.remove_prefix(static_cast<size_t>(written));
    }
  }
  void flush() {
    if (fsync(file_.fd()) != 0) fail(target_, "cannot be written", errno);
  }
  void replace() {
    if (rename(name_.c_str(), target_.c_str()) != 0) fail(target_, "cannot be replaced", errno);
  }

 private:
  std::string target_, name_;
  File file_;
};

// The file itself where `path` is a link to it, so that the link stays one.
std::string resolve(const std::string& path) {
  std::error_code error;
  const auto resolved = std::filesystem::weakly_canonical(path, error);
  return error ? path : resolved.string();
}

}  // namespace

TuningCache TuningCache::read_or_empty(const std::string& path) {
  const std::optional<std::string> text = read_text(path);
  return text ? parse(*text, path) : TuningCache();
}

TuningCache TuningCache::read(const std::string& path) {
  const std::optional<std::string> text = read_text(path);
  if (!text)
    throw Error(ErrorCode::not_found,
                "tuning file " + path +
                    ": is not there; make it by TUNING_MODE=TUNING_CREATE or clinfer tune");
  return parse(*text, path);
}

void update_tuning_file(const std::string& path, const std::function<void(TuningCache&)>& change) {
  const std::string target = resolve(path);
  const FileLock lock(target);
  TuningCache cache = TuningCache::read_or_empty(target);
  change(cache);
  TemporaryFile file(target);
  file.write(cache.to_text());
  file.flush();
  file.replace();
}

void check_tuning_file(const std::string& path) {
  const std::string target = resolve(path);
  TuningCache::read_or_empty(target);  // malformed: said before anything is written beside it
  const FileLock lock(target);
  TemporaryFile file(target);
  file.write(TuningCache::read_or_empty(target).to_text());
  file.write(std::string(kReserve, ' '));
  file.flush();
}

}  // namespace clinfer
