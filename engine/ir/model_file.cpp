// Opens files by POSIX functions, checks that they are regular ones, and reads them.
#include "engine/ir/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "kernels/base/error.h"
#include "kernels/base/system/files.h"

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

std::string file_beside(const std::string& model, const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path relative(name);
  if (name.empty() || name.find('\0') != std::string::npos || relative.is_absolute() ||
      std::find(relative.begin(), relative.end(), "..") != relative.end())
    throw Error(ErrorCode::bad_model, "not a file in the model's folder");
  const fs::path folder = fs::absolute(model).parent_path();
  std::error_code problem, no_link;
  const fs::path file = fs::canonical(folder / relative, problem);
  if (problem)
    throw Error(ErrorCode::not_found, "is needed beside the model: " + problem.message());
  for (const fs::path& from : {folder, fs::canonical(model, no_link).parent_path()}) {
    const fs::path allowed = fs::canonical(from, no_link);
    if (no_link) continue;
    if (std::mismatch(allowed.begin(), allowed.end(), file.begin(), file.end()).first ==
        allowed.end())
      return file.string();
  }
  throw Error(ErrorCode::bad_model, "leads out of the model's folder");
}

}  // namespace clinfer
