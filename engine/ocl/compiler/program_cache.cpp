// Stores program binaries on disk.
#include "engine/ocl/compiler/program_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "kernels/base/error.h"
#include "kernels/base/log.h"
#include "kernels/base/system/files.h"

namespace clinfer::ocl {

namespace fs = std::filesystem;

namespace {

// A file consists of this header, the key and the binary. The header has a magic number, both
// lengths, and a hash of key and binary. The key is stored in full, so that a hash collision or a
// foreign file is detected.
struct Header {
  char magic[8];
  uint64_t key_length, binary_length, checksum;
};
constexpr char kMagic[8] = {'c', 'l', 'i', 'n', 'f', 'e', 'r', '2'};

constexpr off_t kLargest = off_t{1} << 30;  // limit of a file's bytes

constexpr const char* kAdvice =
    "; programs are compiled at each start. Name a folder of your own (cache-dir, CACHE_DIR), or "
    "\"\" for none";

// Returns false if the file ends early.
bool read_exactly(const Descriptor& file, void* to, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = ::read(file.get(), static_cast<char*>(to) + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

std::string_view view(const std::vector<unsigned char>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr const char* kSuffix = ".clbin";

// Removes the programs that were not used for the longest time, until at most nine tenths of `most`
// bytes are left.
void keep_newest(const std::string& directory, uint64_t most) {
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (const std::string& name : names_in(directory)) {
    const fs::path path = fs::path(directory) / name;
    if (path.extension() != kSuffix) continue;
    const uint64_t bytes = fs::file_size(path, error);
    const fs::file_time_type used = error ? fs::file_time_type() : fs::last_write_time(path, error);
    if (error) continue;
    entries.push_back({used, bytes, path});
    total += bytes;
  }
  if (total <= most) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= most / 10 * 9) break;
    if (fs::remove(entry.path, error)) total -= entry.bytes;
  }
}

uint64_t checksum(std::string_view key, std::string_view binary) {
  return hash_of(binary, hash_of(key));
}

}  // namespace

std::string ProgramCache::default_directory() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg && *xdg == '/') return std::string(xdg) + "/clinfer";
  const char* home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/clinfer" : "";
}

struct ProgramCache::State {
  State(const std::string& folder, uint64_t most) : directory(folder), most_bytes(most) {}

  std::string path(const std::string& key) const {
    return directory + "/" + hex(fnv1a(key)) + kSuffix;
  }

  // Returns whether files of the folder may be read. A missing folder counts as one without files.
  bool may_read() {
    const std::lock_guard lock(mutex);
    if (!trusted) {
      struct stat status {};
      if (stat(directory.c_str(), &status) != 0) return false;
      const std::string who = who_else_writes(directory);
      trusted = who.empty();
      if (!who.empty())
        note("the program cache " + directory + " is not used, because " + who + kAdvice);
    }
    return *trusted;
  }

  bool may_write() {
    {
      const std::lock_guard lock(mutex);
      if (!made) {
        made = true;
        make_folders(directory, 0700);
        remove_abandoned_files(directory);
      }
    }
    return may_read();
  }

  // Counts the files anew, because other processes write as well: at first, and whenever this
  // process has written a tenth of the limit.
  void make_room(uint64_t written) {
    const std::lock_guard lock(mutex);
    since_counted += written;
    if (counted && since_counted <= most_bytes / 10) return;
    counted = true;
    since_counted = 0;
    keep_newest(directory, most_bytes);
  }

  void note_locked(const std::string& what) {
    const std::lock_guard lock(mutex);
    note(what);
  }

  const std::string directory;
  const uint64_t most_bytes;
  std::mutex mutex;  // guards the members below
  std::string problem;

 private:
  void note(const std::string& what) {
    log(LogArea::programs, LogLevel::warning, [&] { return what; });
    if (problem.empty()) problem = what;
  }
  std::optional<bool> trusted;  // nothing: not checked yet
  bool made = false, counted = false;
  uint64_t since_counted = 0;
};

ProgramCache::ProgramCache(const std::string& directory, uint64_t most_bytes)
    : state_(std::make_shared<State>(directory, most_bytes)) {}

std::optional<std::vector<unsigned char>> ProgramCache::load(const std::string& key) const {
  if (!state_->may_read()) return {};
  const std::string path = state_->path(key);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return {};
  if (const std::string who = who_else_writes(path, file); !who.empty()) {
    state_->note_locked("a file of the program cache is not read, because " + who +
                        "; remove it, and look who wrote it");
    return {};
  }
  struct stat status {};
  Header header;
  if (fstat(file.get(), &status) != 0 || status.st_size > kLargest ||
      !read_exactly(file, &header, sizeof header) ||
      std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key_length != key.size() ||
      header.binary_length > static_cast<uint64_t>(kLargest) ||
      static_cast<uint64_t>(status.st_size) !=
          sizeof header + header.key_length + header.binary_length)
    return {};
  std::string kept(key.size(), '\0');
  if (!read_exactly(file, kept.data(), kept.size()) || kept != key) return {};
  std::vector<unsigned char> binary(static_cast<size_t>(header.binary_length));
  if (!read_exactly(file, binary.data(), binary.size()) ||
      checksum(key, view(binary)) != header.checksum)
    return {};
  // Marks the file as used now; failing to do so does no harm.
  (void)!futimens(file.get(), nullptr);
  return binary;
}

void ProgramCache::store(const std::string& key, const std::vector<unsigned char>& binary) const {
  const std::string_view bytes = view(binary);
  Header header{{}, key.size(), binary.size(), checksum(key, bytes)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  try {
    if (sizeof header + key.size() + bytes.size() > size_t{kLargest}) return;
    if (!state_->may_write()) return;
    NewFile file(state_->path(key), 0600);
    for (const std::string_view part :
         {std::string_view(reinterpret_cast<const char*>(&header), sizeof header),
          std::string_view(key), bytes})
      file.write(part);
    file.replace();
    state_->make_room(sizeof header + key.size() + bytes.size());
  } catch (const Error& error) {
    state_->note_locked("the program cache cannot be written: " + std::string(error.what()) +
                        kAdvice);
  }
}

std::string ProgramCache::problem() const {
  const std::lock_guard lock(state_->mutex);
  return state_->problem;
}

}  // namespace clinfer::ocl
