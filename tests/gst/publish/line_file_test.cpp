// Files of lines: several writers, FIFOs, rotation, flushing.
#include "gst/publish/line_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/error.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class LineFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "lines" + std::to_string(getpid());
    fs::create_directories(folder_);
    path_ = folder_ + "/out.jsonl";
  }
  void TearDown() override { fs::remove_all(folder_); }

  LineFileSettings settings() const {
    LineFileSettings s;
    s.path = path_;
    return s;
  }
  LineFile::Notice notice() {
    return [this](const std::string& text) { notices_ += text + "\n"; };
  }
  static std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  std::string folder_, path_, notices_;
};

TEST_F(LineFiles, AreEmptiedUnlessTheyAreAppendedTo) {
  for (const bool append : {false, false, true}) {
    LineFileSettings s = settings();
    s.append = append;
    LineFile file(s, notice());
    EXPECT_TRUE(file.write("a"));
    EXPECT_EQ(lines_of(path_).size(), append ? 2u : 1u);  // written at once
  }
  EXPECT_EQ(notices_, "");
}

// As two users: root is led nowhere either, whatever the system's own protection is.
TEST_F(LineFiles, AreNotWrittenThroughLinksOfOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make links of another user";
  const std::string victim = folder_ + "/precious", own = folder_ + "/own.jsonl";
  std::ofstream(victim) << "kept\n";
  fs::create_symlink(victim, path_);
  ASSERT_EQ(lchown(path_.c_str(), 12345, 12345), 0);
  try {
    LineFile file(settings(), notice());
    ADD_FAILURE() << "it was opened";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("is a link of user 12345"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(lines_of(victim), std::vector<std::string>{"kept"});
  fs::create_symlink(victim, own);  // one's own is followed
  LineFileSettings s = settings();
  s.path = own;
  EXPECT_TRUE(LineFile(s, notice()).write("a"));
  EXPECT_EQ(lines_of(victim), std::vector<std::string>{"a"});
}

TEST_F(LineFiles, OfSeveralWritersLoseNothing) {
  constexpr int kLines = 300;
  {
    LineFile first(settings(), notice());
    first.write("first");
    LineFile second(settings(), notice());  // does not empty what the first one wrote
    const auto write = [&](LineFile& file, char letter) {
      for (int i = 0; i < kLines; ++i)
        file.write(std::string(5000 + static_cast<size_t>(i), letter));
    };
    std::thread other([&] { write(second, 'b'); });
    write(first, 'a');
    other.join();
  }
  EXPECT_NE(notices_.find(path_), std::string::npos);
  const auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 2u * kLines + 1);
  for (const std::string& line : lines)
    EXPECT_TRUE(line == "first" ||
                (line.size() >= 5000 && line.find_first_not_of(line[0]) == std::string::npos));
}

TEST_F(LineFiles, AReaderThatLeavesIsAnError) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  LineFile file(settings(), notice());
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE(file.write("seen"));
  char text[16] = {};
  EXPECT_EQ(read(reader, text, sizeof text), 5);
  close(reader);
  try {
    file.write("unseen");
    FAIL() << "written to nobody";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(std::string(error.what()).find("no reader"), std::string::npos) << error.what();
  }
}

TEST_F(LineFiles, OpeningAFifoDoesNotWaitForItsReader) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  std::vector<std::string> lines;
  std::thread reader;
  {
    LineFile file(settings(), notice());
    auto writing = std::async(std::launch::async, [&] { return file.write("a"); });
    EXPECT_EQ(writing.wait_for(200ms), std::future_status::timeout);
    file.interrupt();
    ASSERT_EQ(writing.wait_for(10s), std::future_status::ready);
    EXPECT_FALSE(writing.get());
    EXPECT_NE(notices_.find("nobody reads"), std::string::npos) << notices_;
    file.resume();
    reader = std::thread([&] { lines = lines_of(path_); });
    EXPECT_TRUE(file.write("b"));
    EXPECT_TRUE(file.write(std::string(100000, 'c')));  // more than the pipe holds
  }
  reader.join();
  EXPECT_EQ(lines, (std::vector<std::string>{"a", "b", std::string(100000, 'c')}));
}

TEST_F(LineFiles, AreSetAsideBySize) {
  LineFileSettings s = settings();
  s.rotate_size = 100;
  {
    LineFile file(s, notice());
    for (int i = 0; i < 10; ++i)
      EXPECT_TRUE(file.write(std::string(39, static_cast<char>('0' + i))));
    EXPECT_TRUE(file.write(std::string(500, 'x')));  // longer than the limit: a file of its own
    EXPECT_TRUE(file.write("y"));
  }
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder_)) files.push_back(entry.path());
  EXPECT_EQ(files.size(), 7u);
  size_t lines = 0;
  for (const std::string& file : files) {
    lines += lines_of(file).size();
    EXPECT_TRUE(fs::file_size(file) <= 100 || fs::file_size(file) == 501u) << file;
  }
  EXPECT_EQ(lines, 12u);
  EXPECT_EQ(lines_of(path_), (std::vector<std::string>{"y"}));
}

TEST_F(LineFiles, AreSetAsideByTime) {
  LineFileSettings s = settings();
  s.rotate_interval = 1s;
  LineFile file(s, notice());
  EXPECT_TRUE(file.write("a"));
  EXPECT_TRUE(file.write("b"));
  std::this_thread::sleep_for(1100ms);
  EXPECT_TRUE(file.write("c"));
  EXPECT_EQ(lines_of(path_), (std::vector<std::string>{"c"}));
}

// As logrotate and people do, with and without a rotation of our own.
TEST_F(LineFiles, ThatAreMovedOrRemovedBeginAnew) {
  for (const bool rotated : {false, true})
    for (const bool moved : {false, true}) {
      fs::remove_all(folder_);
      fs::create_directories(folder_);
      notices_.clear();
      LineFileSettings s = settings();
      if (rotated) s.rotate_interval = 1s;
      LineFile file(s, notice());
      EXPECT_TRUE(file.write("a"));
      if (moved)
        fs::rename(path_, folder_ + "/old");
      else
        fs::remove(path_);
      std::this_thread::sleep_for(1100ms);
      EXPECT_TRUE(file.write("b"));
      EXPECT_TRUE(file.write("c"));
      EXPECT_EQ(lines_of(path_), (std::vector<std::string>{"b", "c"})) << rotated << moved;
      if (moved) {
        EXPECT_EQ(lines_of(folder_ + "/old"), (std::vector<std::string>{"a"}));
      }
      EXPECT_EQ(notices_.find("was moved or removed") != std::string::npos, !rotated) << notices_;
    }
}

TEST_F(LineFiles, HalfALineIsMendedBeforeAppending) {
  const std::pair<std::string, std::string> cases[] = {
      {"{\"a\":1}\n{\"b\":", "{\"a\":1}\n"},
      {"{\"a\":\"}", ""},
      {"{\"a\":\"{\\\"\"}", "{\"a\":\"{\\\"\"}\n"},
      {"{\"a\":{}}\n{\"b\":{}}", "{\"a\":{}}\n{\"b\":{}}\n"},
      {"a note", "a note\n"},
      {"", ""},
      {"{\"a\":1}\n{\"b\":\"" + std::string(10000, 'x'), "{\"a\":1}\n"}};
  for (const auto& [before, kept] : cases) {
    std::ofstream(path_, std::ios::trunc) << before;
    LineFileSettings s = settings();
    s.append = true;
    {
      LineFile file(s, notice());
      EXPECT_TRUE(file.write("{}"));
    }
    std::ifstream file(path_);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), kept + "{}\n") << before;
  }
}

TEST_F(LineFiles, AFullDiskLeavesWholeLines) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  {
    LineFile file(settings(), notice());
    const rlimit small{1000, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    int good = 0;
    try {
      while (good < 100 && file.write("{\"n\":\"" + std::string(63, 'x') + "\"}")) ++good;
      ADD_FAILURE() << "nothing was full";
    } catch (const Error&) {
    }
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(good, 13);
  }
  EXPECT_EQ(fs::file_size(path_), 13u * 72);
}

TEST_F(LineFiles, ThatAreRotatedHaveOneWriter) {
  LineFileSettings rotated = settings();
  rotated.rotate_size = 100;
  {
    LineFile first(settings(), notice());
    EXPECT_THROW(LineFile(rotated, notice()), Error);
  }
  LineFile first(rotated, notice());
  EXPECT_THROW(LineFile(settings(), notice()), Error);
  rotated.path = "/dev/null";
  EXPECT_THROW(LineFile(rotated, notice()), Error);
}

TEST_F(LineFiles, LinesMayWait) {
  LineFileSettings s = settings();
  s.flush_interval = 300ms;
  LineFile file(s, notice());
  EXPECT_TRUE(file.write("a"));
  EXPECT_EQ(lines_of(path_).size(), 0u);
  // They come without a further line.
  for (int i = 0; i < 100 && lines_of(path_).empty(); ++i) std::this_thread::sleep_for(50ms);
  EXPECT_EQ(lines_of(path_).size(), 1u);
  EXPECT_TRUE(file.write("b"));
  EXPECT_TRUE(file.flush());
  EXPECT_EQ(lines_of(path_).size(), 2u);
}

// Lines that waited when the element was stopped within the stream.
TEST_F(LineFiles, TheLastLinesReachTheirReaderOrAreSaid) {
  constexpr size_t kLines = 3000;
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  for (const bool reads : {true, false}) {
    notices_.clear();
    const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
    std::atomic<bool> over{false};
    size_t got = 0;
    const auto read_all = [&] {
      char text[1000];
      for (ssize_t size = 0; (size = read(reader, text, sizeof text)) > 0;)
        got += static_cast<size_t>(std::count(text, text + size, '\n'));
    };
    std::thread other;
    {
      LineFileSettings s = settings();
      s.flush_interval = 1h;
      LineFile file(s, notice());
      EXPECT_TRUE(file.write("opens"));
      EXPECT_TRUE(file.flush());
      for (size_t i = 1; i < kLines; ++i) EXPECT_TRUE(file.write(std::string(100, 'x')));
      if (reads)
        other = std::thread([&] {
          while (!over) read_all();
        });
    }
    over = true;
    if (other.joinable()) other.join();
    read_all();
    close(reader);
    size_t lost = 0;
    if (const size_t at = notices_.find("at the end: "); at != std::string::npos)
      lost = std::stoul(notices_.substr(at + 12));
    EXPECT_EQ(got + lost, kLines) << notices_;
    EXPECT_GT(got, reads ? 0u : 100u);
    EXPECT_TRUE(reads || lost > 0) << "the pipe holds less";
  }
}

TEST_F(LineFiles, LinesThatTheFlushLostAreSaid) {
  LineFileSettings s;
  s.path = "/dev/full";
  s.flush_interval = 1ms;
  {
    LineFile full(s, notice());
    EXPECT_TRUE(full.write("a"));
    std::this_thread::sleep_for(200ms);  // the flush, or else the end, fails
  }
  EXPECT_NE(notices_.find("not written at the end: 1 (no space"), std::string::npos) << notices_;
}

TEST_F(LineFiles, FullDisksAndBadPathsAreErrors) {
  LineFileSettings s;
  s.path = "/dev/full";
  LineFile full(s, notice());
  EXPECT_THROW(full.write("a"), Error);
  for (const std::string& path : {folder_, folder_ + "/none/out", std::string("/proc/none")}) {
    s.path = path;
    try {
      LineFile file(s, notice());
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace clinfer
