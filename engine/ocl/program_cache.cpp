// Program binaries on disk.
#include "engine/ocl/program_cache.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace clinfer::ocl {

namespace fs = std::filesystem;

namespace {

// File: magic, length of the key, FNV-1a of key and binary, length of the binary; then key and
// binary. The whole key is kept, so that a hash collision or a foreign file is seen.
struct Header {
  char magic[8];
  uint64_t key_length, binary_length, checksum;
};
constexpr char kMagic[8] = {'c', 'l', 'i', 'n', 'f', 'e', 'r', '1'};

uint64_t checksum(std::string_view key, std::string_view binary) {
  return fnv1a(binary, fnv1a(key));
}

}  // namespace

std::string ProgramCache::default_directory() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg && *xdg == '/') return std::string(xdg) + "/clinfer";
  const char* home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/clinfer" : "";
}

std::string ProgramCache::path(const std::string& key) const {
  return directory_ + "/" + hex(fnv1a(key)) + ".clbin";
}

std::optional<std::vector<unsigned char>> ProgramCache::load(const std::string& key) const {
  std::error_code error;
  const std::string file = path(key);
  const auto size = fs::file_size(file, error);
  Header header;
  if (error || size < sizeof header) return {};
  std::ifstream in(file, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) return {};
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key_length != key.size() ||
      size - sizeof header < key.size() ||
      header.binary_length != size - sizeof header - key.size())
    return {};
  std::string stored(key.size(), '\0');
  std::vector<unsigned char> binary(header.binary_length);
  if (!in.read(stored.data(), static_cast<std::streamsize>(stored.size())) ||
      !in.read(reinterpret_cast<char*>(binary.data()), static_cast<std::streamsize>(binary.size())))
    return {};
  const std::string_view bytes(reinterpret_cast<const char*>(binary.data()), binary.size());
  if (stored != key || checksum(key, bytes) != header.checksum) return {};
  return binary;
}

void ProgramCache::store(const std::string& key, const std::vector<unsigned char>& binary) const {
  std::error_code error;
  fs::create_directories(directory_, error);
  std::string temporary = directory_ + "/.program-XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return;
  const std::string_view bytes(reinterpret_cast<const char*>(binary.data()), binary.size());
  Header header{{}, key.size(), binary.size(), checksum(key, bytes)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file += key;
  file += bytes;
  size_t done = 0;
  while (done < file.size()) {
    const ssize_t n = write(fd, file.data() + done, file.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  if (close(fd) != 0 || done != file.size() ||
      std::rename(temporary.c_str(), path(key).c_str()) != 0)
    unlink(temporary.c_str());
}

}  // namespace clinfer::ocl
