// The cache of program binaries: what was stored comes back; anything else is as good as absent.
#include "engine/ocl/program_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace clinfer::ocl {
namespace {

namespace fs = std::filesystem;

class ProgramCacheTest : public testing::Test {
 protected:
  ProgramCacheTest() {
    std::string name = (fs::temp_directory_path() / "clinfer-cache-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~ProgramCacheTest() override { fs::remove_all(directory_); }

  fs::path only_file() const { return fs::directory_iterator(directory_)->path(); }

  fs::path directory_;
  std::vector<unsigned char> binary_{1, 2, 3, 0, 255};
};

TEST_F(ProgramCacheTest, GivesBackWhatWasStored) {
  const ProgramCache cache(directory_ / "a" / "b");
  EXPECT_FALSE(cache.load("key"));
  cache.store("key", binary_);
  EXPECT_EQ(cache.load("key"), binary_);
  EXPECT_FALSE(cache.load("another key"));
  cache.store("key", {7});
  EXPECT_EQ(cache.load("key"), std::vector<unsigned char>{7});
}

TEST_F(ProgramCacheTest, IgnoresDamagedFiles) {
  const ProgramCache cache(directory_);
  cache.store("key", binary_);
  const fs::path file = only_file();
  const auto size = fs::file_size(file);
  for (size_t at = 0; at < size; ++at) {
    cache.store("key", binary_);
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get() ^ 0x40);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
    stream.close();
    EXPECT_FALSE(cache.load("key")) << "byte " << at << " was changed";
  }
  for (size_t length = 0; length < size; ++length) {
    cache.store("key", binary_);
    fs::resize_file(file, length);
    EXPECT_FALSE(cache.load("key")) << "cut to " << length << " bytes";
  }
}

TEST_F(ProgramCacheTest, AFolderThatCannotBeWrittenIsNoError) {
  const ProgramCache cache("/proc/nowhere");
  cache.store("key", binary_);
  EXPECT_FALSE(cache.load("key"));
}

TEST_F(ProgramCacheTest, WritersDoNotDisturbReaders) {
  const ProgramCache cache(directory_);
  const std::vector<unsigned char> large(200000, 42);
  cache.store("key", large);
  std::vector<std::thread> writers;
  for (int i = 0; i < 3; ++i)
    writers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) cache.store("key", large);
    });
  for (int k = 0; k < 200; ++k) EXPECT_EQ(cache.load("key"), large);
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 1)
      << "temporary files are left";
}

TEST(Fnv1a, KnownValues) {
  EXPECT_EQ(hex(fnv1a("")), "cbf29ce484222325");
  EXPECT_EQ(hex(fnv1a("a")), "af63dc4c8601ec8c");
}

}  // namespace
}  // namespace clinfer::ocl
