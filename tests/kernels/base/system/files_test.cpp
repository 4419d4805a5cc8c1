// Files that are written atomically.
#include "kernels/base/system/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "kernels/base/error.h"
#include "tests/says.h"
#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

using test::says;
namespace fs = std::filesystem;

void replace(const std::string& path, std::string_view text) {
  replace_file(path, std::array{text});
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

size_t files_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    return error.what();
  }
  return "";
}

TEST(Files, NamesOfAFolder) {
  const TemporaryFolder folder;
  EXPECT_TRUE(names_in(folder / "none").empty());
  for (const char* name : {"b", "a", ".c"}) replace(folder / name, "");
  std::vector<std::string> names = names_in(folder / "");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{".c", "a", "b"}));
}

TEST(Files, AreThereWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.txt";
  {
    NewFile file(path);
    file.write("half");
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_EQ(files_in(folder / ""), 0u) << "what is not finished goes away";
  const std::array<std::string_view, 3> parts{"one ", "", "two"};
  replace_file(path, parts);
  EXPECT_EQ(read_file(path), "one two");
  replace(path, "three");
  EXPECT_EQ(read_file(path), "three");
  EXPECT_EQ(files_in(folder / ""), 1u);
}

TEST(Files, AreNotWrittenThroughPlantedLinks) {
  const TemporaryFolder folder;
  const std::string victim = folder.write("victim", "precious"), path = folder / "a.txt";
  ASSERT_EQ(symlink(victim.c_str(), path.c_str()), 0);
  replace(path, "text");
  EXPECT_EQ(read_file(victim), "precious");
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_EQ(read_file(path), "text");
  // A link that the user named is followed.
  const std::string link = folder / "link";
  ASSERT_EQ(symlink("victim", link.c_str()), 0);
  write_named_file(link, std::array{std::string_view("new")});
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_file(victim), "new");
}

TEST(Files, NobodyGainsPermissions) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.txt";
  const mode_t mask = umask(022);
  replace(path, "text");
  EXPECT_EQ(mode_of(path), 0644u);
  for (const mode_t mode : {0600u, 0640u, 0666u, 0444u, 0755u}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    replace(path, "again");
    EXPECT_EQ(mode_of(path), mode);
  }
  ASSERT_EQ(chmod(path.c_str(), 04755), 0);
  replace(path, "again");
  EXPECT_EQ(mode_of(path), 0755u) << "set-user-ID is not taken over";
  umask(0);
  NewFile secret(folder / "secret", 0600);
  secret.replace();
  EXPECT_EQ(mode_of(folder / "secret"), 0600u);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 1234, 1234), 0);
    ASSERT_EQ(chmod(path.c_str(), 0666), 0);
    replace(path, "ours");
    EXPECT_EQ(mode_of(path), 0644u) << "somebody else's file does not say who may write ours";
  }
  umask(mask);
}

TEST(Files, PipesAndDevicesAreWrittenAsTheyAre) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Descriptor reader(open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  write_named_file(pipe, std::array{std::string_view("through")});
  char got[16] = {};
  EXPECT_EQ(read(reader.get(), got, sizeof got), 7);
  EXPECT_STREQ(got, "through");
  EXPECT_EQ(refusal([] { write_named_file("/dev/null", std::array{std::string_view("x")}); }), "");
  EXPECT_NE(refusal([] {
              write_named_file("/dev/full", std::array{std::string_view("x")});
            }).find("No space left on device (free some"),
            std::string::npos);
}

TEST(Files, RefusalsSayWhatToDo) {
  const TemporaryFolder folder;
  const auto why = [&](const std::string& path) { return refusal([&] { replace(path, "x"); }); };
  EXPECT_NE(why(folder / "no/such/a.txt").find("its folder has to be there"), std::string::npos);
  EXPECT_NE(why("/proc/nowhere").find("/proc/nowhere cannot be written"), std::string::npos);
  ASSERT_EQ(mkdir((folder / "folder").c_str(), 0700), 0);
  EXPECT_NE(why(folder / "folder").find("folder cannot be written"), std::string::npos);
  EXPECT_EQ(files_in(folder / ""), 1u) << "nothing is left";
  const std::string file = folder.write("file", "");
  EXPECT_TRUE(says(refusal([&] { make_folders(file + "/below"); }),
                   "a part of its path is a file, not a folder"));
  EXPECT_NE(refusal([&] { make_folders(file); }).find("is no folder"), std::string::npos);
  EXPECT_EQ(refusal([&] { make_folders(folder / "a/b//c/"); }), "");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
}

// A limit of file sizes simulates a full disk.
TEST(Files, AFullDiskLeavesTheOldFile) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.txt", "old");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{10, 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      replace(path, std::string(1000, 'x'));
    } catch (const Error&) {
      _exit(files_in(folder / "") == 1 ? 0 : 2);
    }
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(path), "old");
}

TEST(Files, WhatDeadProcessesLeftIsRemoved) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.txt";
  int to_parent[2];
  ASSERT_EQ(pipe(to_parent), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    NewFile file(path);
    file.write("half");
    (void)!write(to_parent[1], "x", 1);
    pause();
  }
  char ready = 0;
  ASSERT_EQ(read(to_parent[0], &ready, 1), 1);
  const std::string foreign = folder.write(".clinfer-mine", "a user's own file");
  remove_abandoned_files(folder / "");
  EXPECT_EQ(files_in(folder / ""), 2u) << "its process lives";
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(files_in(folder / ""), 2u);
  remove_abandoned_files(folder / "");
  EXPECT_EQ(files_in(folder / ""), 1u);
  EXPECT_EQ(read_file(foreign), "a user's own file");
  close(to_parent[0]);
  close(to_parent[1]);
}

}  // namespace
}  // namespace clinfer
