// The cache of program binaries: what was stored comes back; anything else is as good as absent.
#include "engine/ocl/compiler/program_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/temporary_folder.h"

namespace clinfer::ocl {
namespace {

namespace fs = std::filesystem;

class ProgramCacheTest : public testing::Test {
 protected:
  fs::path only_file() const { return fs::directory_iterator(directory_)->path(); }

  const TemporaryFolder folder_;
  const fs::path directory_ = folder_ / "";
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

TEST_F(ProgramCacheTest, AFolderThatCannotBeWrittenIsAProblemAndNoError) {
  const ProgramCache cache("/proc/nowhere");
  EXPECT_FALSE(cache.load("key"));
  EXPECT_EQ(cache.problem(), "") << "what is not there has to hold nothing";
  cache.store("key", binary_);
  EXPECT_FALSE(cache.load("key"));
  EXPECT_NE(cache.problem().find("/proc/nowhere cannot be made"), std::string::npos)
      << cache.problem();
  EXPECT_NE(cache.problem().find("cache-dir"), std::string::npos);
}

TEST_F(ProgramCacheTest, IsMadeForThisUserAlone) {
  const fs::path folder = directory_ / "a" / "b";
  const mode_t mask = umask(0);
  ProgramCache(folder).store("key", binary_);
  umask(mask);
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(folder.parent_path()).permissions(), fs::perms::owner_all);
  const fs::path file = fs::directory_iterator(folder)->path();
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// Programs from the cache are run, so only trusted ones are read.
TEST_F(ProgramCacheTest, NeitherReadsNorWritesWhereOthersCanWrite) {
  ProgramCache(directory_).store("key", binary_);
  fs::permissions(directory_, fs::perms::others_write, fs::perm_options::add);
  const ProgramCache cache(directory_);
  EXPECT_FALSE(cache.load("key"));
  cache.store("another", binary_);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 1);
  EXPECT_NE(cache.problem().find("can be written by others"), std::string::npos) << cache.problem();
  fs::permissions(directory_, fs::perms::others_write, fs::perm_options::remove);
  EXPECT_TRUE(ProgramCache(directory_).load("key"));
}

TEST_F(ProgramCacheTest, DoesNotReadFilesOfOthers) {
  const ProgramCache cache(directory_);
  cache.store("key", binary_);
  const fs::path file = only_file();
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(cache.load("key"));
  EXPECT_NE(cache.problem().find("can be written by others"), std::string::npos);
  fs::permissions(file, fs::perms::others_write, fs::perm_options::remove);
  EXPECT_TRUE(cache.load("key"));
  const fs::path moved = directory_ / "moved";
  fs::rename(file, moved);
  fs::create_symlink(moved, file);
  EXPECT_FALSE(cache.load("key")) << "nor what a link leads to";
  if (geteuid() != 0) return;
  fs::rename(moved, file);
  ASSERT_EQ(chown(file.c_str(), 1234, 1234), 0);
  const ProgramCache planted(directory_);
  EXPECT_FALSE(planted.load("key"));
  EXPECT_NE(planted.problem().find("belongs to user 1234"), std::string::npos);
}

TEST_F(ProgramCacheTest, ForgetsWhatWasUnusedLongest) {
  const std::vector<unsigned char> large(10000, 42);
  const ProgramCache cache(directory_, 100000);
  for (int i = 0; i < 9; ++i) {
    cache.store("key " + std::to_string(i), large);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // times of files are coarse
  }
  EXPECT_TRUE(cache.load("key 0"));  // used again, so key 1 is the oldest
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (int i = 9; i < 12; ++i) cache.store("key " + std::to_string(i), large);
  uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(directory_)) bytes += entry.file_size();
  EXPECT_LE(bytes, 110000u) << "a tenth more at most";
  EXPECT_TRUE(cache.load("key 0"));
  EXPECT_FALSE(cache.load("key 1"));
  EXPECT_TRUE(cache.load("key 11"));
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
