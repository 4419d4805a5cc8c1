// Reads tuning files from disk within limits, and replaces them in one step while the old file is
// locked.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "kernels/base/error.h"
#include "kernels/base/system/files.h"
#include "tuning/tuning_cache.h"

namespace clinfer {

namespace {

constexpr size_t kReserve = size_t{1} << 20;  // bytes that a tuning run may add
constexpr auto kLockWait = std::chrono::seconds(20);
constexpr auto kLockPoll = std::chrono::milliseconds(20);

[[noreturn]] void fail(const std::string& path, const std::string& what, int error,
                       ErrorCode code = ErrorCode::io, SourcePlace place = SourcePlace::here()) {
  throw Error(code,
              "tuning file " + path + ": " + what + (error ? ": " + system_reason(error) : ""),
              place);
}

bool is_regular(const Descriptor& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
}

std::optional<std::string> read_text(const std::string& path) {
  // Opens without blocking, so that a pipe does not stop us before we see that it is one.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return {};
    fail(path, "cannot be read", errno, ErrorCode::not_found);
  }
  if (!is_regular(file)) fail(path, "is not a regular file", 0, ErrorCode::not_found);
  std::string text;
  char block[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot be read", errno);
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
    if (text.size() > TuningCache::kLargest)
      fail(path,
           "is larger than " + std::to_string(TuningCache::kLargest >> 20) +
               " MiB, no tuning file is; name another",
           0);
  }
}

// Holds a lock on the file itself, so that processes that tune into it take turns. A missing file
// is created, and removed again unless something replaced it.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : path_(path) {
    const auto give_up = std::chrono::steady_clock::now() + kLockWait;
    for (;;) {
      open_file();
      if (flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
        // The former holder may have replaced the file since we opened it.
        if (is_named()) return;
        continue;
      }
      if (errno != EWOULDBLOCK && errno != EINTR) fail(path, "cannot be locked", errno);
      if (std::chrono::steady_clock::now() > give_up)
        fail(path,
             "another process writes it for too long; stop that one, or tune into another file", 0);
      std::this_thread::sleep_for(kLockPoll);
    }
  }
  ~FileLock() {
    if (made_ && is_named()) unlink(path_.c_str());
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  void open_file() {
    constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    file_ = Descriptor(open(path_.c_str(), kFlags));
    made_ = !file_ && errno == ENOENT;
    if (made_) file_ = Descriptor(open(path_.c_str(), kFlags | O_CREAT | O_EXCL, 0666));
    if (!file_ && errno == EEXIST) return open_file();  // another process was faster
    if (!file_) fail(path_, "cannot be written", errno);
    if (!is_regular(file_)) fail(path_, "is not a regular file", 0);
  }
  bool is_named() const {
    struct stat ours {
    }, named{};
    return fstat(file_.get(), &ours) == 0 && lstat(path_.c_str(), &named) == 0 &&
           ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
  }

  std::string path_;
  Descriptor file_;
  bool made_ = false;
};

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Lets `work` write a file that may replace `path`.
template <typename Work>
void write_beside(const std::string& path, const Work& work) {
  try {
    NewFile file(path);
    work(file);
  } catch (const Error& error) {
    throw Error(error.code(), std::string("tuning file ") + error.what(), error.place());
  }
}

std::string target_of(const std::string& path) {
  try {
    return resolve_links(path);
  } catch (const Error& error) {
    throw Error(error.code(), std::string("tuning file ") + error.what(), error.place());
  }
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
  const std::string target = target_of(path);
  const FileLock lock(target);
  remove_abandoned_files(folder_of(target));
  TuningCache cache = TuningCache::read_or_empty(target);
  change(cache);
  const std::string text = cache.to_text();
  if (text.size() > TuningCache::kLargest)
    fail(path, "has no room for more records; tune into another file", 0);
  write_beside(target, [&](NewFile& file) {
    file.write(text);
    file.flush();
    file.replace();
  });
}

void check_tuning_file(const std::string& path) {
  const std::string target = target_of(path);
  // Reports a malformed file before anything is written beside it.
  TuningCache::read_or_empty(target);
  const FileLock lock(target);
  write_beside(target, [&](NewFile& file) {
    file.write(TuningCache::read_or_empty(target).to_text());
    file.write(std::string(kReserve, ' '));
    file.flush();
  });
}

}  // namespace clinfer
