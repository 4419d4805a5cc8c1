// POSIX files: open, check that it is a regular one, map or read.
#include "engine/ir/model_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/error.h"

namespace clinfer {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::not_found, path + ": " + what);
}

// An open regular file; closed by the destructor.
class File {
 public:
  explicit File(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail(path, std::strerror(errno));
    struct stat info {};
    std::string wrong;
    if (fstat(fd_, &info) != 0)
      wrong = std::strerror(errno);
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

  int fd() const { return fd_; }
  size_t size() const { return size_; }

 private:
  int fd_;
  size_t size_ = 0;
};

}  // namespace

MappedFile map_file(const std::string& path) {
  const File file(path);
  if (file.size() == 0) return {path, {}, nullptr};
  const size_t size = file.size();
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (data == MAP_FAILED) fail(path, std::strerror(errno));
  std::shared_ptr<const void> owner(data,
                                    [size](const void* p) { munmap(const_cast<void*>(p), size); });
  return {path, {static_cast<const std::byte*>(data), size}, std::move(owner)};
}

std::string read_text_file(const std::string& path) {
  const File file(path);
  std::string text(file.size(), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = read(file.fd(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

}  // namespace clinfer
