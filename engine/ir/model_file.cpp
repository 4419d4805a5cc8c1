// POSIX files: open, check that it is a regular one, read.
#include "engine/ir/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "kernels/base/error.h"
#include "kernels/base/files.h"

namespace clinfer {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what,
                       SourcePlace place = SourcePlace::here()) {
  throw Error(ErrorCode::not_found, path + ": " + what, place);
}

// An open regular file; closed by the destructor.
class File {
 public:
  explicit File(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail(path, system_reason(errno));
    struct stat info {};
    std::string wrong;
    if (fstat(fd_, &info) != 0)
      wrong = system_reason(errno);
    else if (S_ISDIR(info.st_mode))
      wrong = "is a folder, not a file";
    else if (!S_ISREG(info.st_mode))
      wrong = "is not a regular file";
    if (!wrong.empty()) {
      close(fd_);
      fail(path, wrong);
    }
    size_ = static_cast<size_t>(info.st_size);
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  size_t size() const { return size_; }
  // Reads up to `count` bytes; fewer where the file ends before.
  size_t read(size_t offset, void* to, size_t count) const {
    size_t done = 0;
    while (done < count) {
      const ssize_t n = pread(fd_, static_cast<char*>(to) + done, count - done,
                              static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(path_, system_reason(errno));
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

 private:
  std::string path_;
  int fd_;
  size_t size_ = 0;
};

}  // namespace

ByteSource open_file(const std::string& path) {
  const auto file = std::make_shared<const File>(path);
  return {path, file->size(), [path, file](size_t offset, std::span<std::byte> to) {
            if (file->read(offset, to.data(), to.size()) < to.size())
              throw Error(ErrorCode::bad_model, path + " became shorter while it was read");
          }};
}

std::string read_text_file(const std::string& path) {
  const File file(path);
  std::string text(file.size(), '\0');
  text.resize(file.read(0, text.data(), text.size()));
  return text;
}

}  // namespace clinfer
