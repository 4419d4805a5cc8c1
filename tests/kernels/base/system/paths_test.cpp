// Paths that other users can change, as two users: what is followed, made, trusted and refused.
#include "kernels/base/system/paths.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "kernels/base/error.h"
#include "kernels/base/system/files.h"
#include "tests/says.h"
#include "tests/two_users.h"

namespace clinfer {
namespace {

using test::as_user;
using test::kAttacker;
using test::kVictim;
using test::says;
namespace fs = std::filesystem;

class Everyones : public test::TwoUsers {
 protected:
  // "" where all went well.
  static std::string attacker(const std::function<bool()>& work) {
    return as_user(kAttacker, [&] { return work() ? "" : system_reason(errno); });
  }
  static std::string victim(const std::function<void()>& work) {
    return as_user(kVictim, [&] {
      work();
      return std::string();
    });
  }
  static bool put(const std::string& path, const std::string& text, mode_t mode = 0666) {
    std::ofstream(path) << text;
    return chmod(path.c_str(), mode) == 0;
  }
};

TEST_F(Everyones, OutputsFollowLinksOfTheUsersOwnOnly) {
  const std::string target = home_ + "/precious", planted = tmp_ + "/out.json",
                    own = tmp_ + "/own.json";
  ASSERT_EQ(victim([&] { put(target, "kept"); }), "");
  ASSERT_EQ(attacker([&] { return symlink(target.c_str(), planted.c_str()) == 0; }), "");
  for (const int flags : {0, O_TRUNC, O_APPEND, O_TRUNC | O_NONBLOCK, O_RDWR}) {
    EXPECT_TRUE(says(victim([&] { open_output(planted, flags); }),
                     "out.json is a link of user 12345 (name what it leads to"));
    EXPECT_EQ(read_file(target), "kept");
  }
  EXPECT_TRUE(says(victim([&] { write_named_file(planted, std::array{std::string_view("x")}); }),
                   "is a link of user 12345"));
  EXPECT_EQ(read_file(target), "kept");
  // Root is led nowhere either.
  EXPECT_THROW(open_output(planted, O_TRUNC), Error);
  EXPECT_EQ(read_file(target), "kept");
  // One's own, and root's (as /dev/stdout).
  EXPECT_EQ(victim([&] {
              if (symlink(target.c_str(), own.c_str()) != 0) throw Error(ErrorCode::io, "no link");
              open_output(own, O_TRUNC);
            }),
            "");
  EXPECT_EQ(read_file(target), "");
}

TEST_F(Everyones, OutputsDoNotPassThroughLinksOfOthers) {
  const std::string planted = tmp_ + "/results", out = planted + "/out.json";
  ASSERT_EQ(attacker([&] { return symlink(home_.c_str(), planted.c_str()) == 0; }), "");
  const std::string refusal = "results is a link of user 12345";
  EXPECT_TRUE(says(victim([&] { open_output(out, 0); }), refusal));
  EXPECT_TRUE(says(victim([&] { NewFile file(out); }), refusal));
  EXPECT_TRUE(says(victim([&] { make_folders(planted + "/a/b"); }), refusal));
  EXPECT_TRUE(says(victim([&] { resolve_links(out); }), refusal));
  EXPECT_TRUE(fs::is_empty(home_));
}

TEST_F(Everyones, OutputsAreNotFilesThatOthersPut) {
  const std::string planted = tmp_ + "/out.json", fifo = tmp_ + "/fifo", second = tmp_ + "/second",
                    target = home_ + "/precious";
  ASSERT_EQ(attacker([&] {
              return put(planted, "bait") && mkfifo(fifo.c_str(), 0666) == 0 &&
                     chmod(fifo.c_str(), 0666) == 0;
            }),
            "");
  ASSERT_EQ(victim([&] { put(target, "kept"); }), "");
  ASSERT_EQ(link(target.c_str(), second.c_str()), 0);  // as the attacker can, without a sysctl
  for (const std::string& name : {planted, fifo})
    EXPECT_TRUE(says(victim([&] { open_output(name, O_TRUNC); }),
                     "it belongs to user 12345, in a folder where others may make files"));
  EXPECT_EQ(read_file(planted), "bait");
  EXPECT_TRUE(says(victim([&] { open_output(second, O_TRUNC); }), "it has a second name"));
  EXPECT_EQ(read_file(target), "kept");
  // Where only some may write, a file of somebody else's may be meant.
  ASSERT_EQ(chmod(tmp_.c_str(), 0755), 0);
  EXPECT_EQ(victim([&] { open_output(planted, O_TRUNC); }), "");
}

TEST(Paths, OutputsAreMadeEmptiedAndAppendedTo) {
  const TemporaryFolder folder;
  const std::string path = folder / "out";
  const auto write = [&](int flags, std::string_view text) {
    const Descriptor file = open_output(path, flags, 0640);
    return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  };
  EXPECT_TRUE(write(O_EXCL, "one"));
  EXPECT_THROW(open_output(path, O_EXCL), Error);
  EXPECT_TRUE(write(O_APPEND, "two"));
  EXPECT_EQ(read_file(path), "onetwo");
  EXPECT_TRUE(write(O_TRUNC, "3"));
  EXPECT_EQ(read_file(path), "3");
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07137, 0u);
  EXPECT_EQ(fcntl(open_output(path, 0).get(), F_GETFD), FD_CLOEXEC);
  EXPECT_TRUE(open_output("/dev/null", O_TRUNC));
  EXPECT_TRUE(open_output("/dev/stdout", O_APPEND));
  EXPECT_TRUE(open_output("/proc/self/fd/1", O_APPEND));
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(open_output(fifo, O_NONBLOCK)) << "nobody reads yet";
  for (const std::string& wrong : {std::string(), folder / "", folder / "none/out", path + "/out",
                                   folder / "..", std::string("/")})
    EXPECT_THROW(open_output(wrong, 0), Error) << wrong;
  const std::string circle = folder / "circle", other = folder / "other";
  ASSERT_EQ(symlink("other", circle.c_str()), 0);
  ASSERT_EQ(symlink("circle", other.c_str()), 0);
  try {
    open_output(circle, 0);
    ADD_FAILURE() << "a circle has no end";
  } catch (const Error& error) {
    EXPECT_TRUE(says(error.what(), "links lead in a circle"));
  }
}

TEST(Paths, LinksAreResolvedAsTheSystemDoes) {
  const TemporaryFolder folder;
  const std::string real = fs::canonical(folder / "").string();
  make_folders(folder / "a/b/c");
  ASSERT_EQ(symlink("a/b", (folder / "short").c_str()), 0);
  ASSERT_EQ(symlink((real + "/short/../file").c_str(), (folder / "a/link").c_str()), 0);
  EXPECT_EQ(resolve_links(folder / "a/link"), real + "/a/file");
  EXPECT_EQ(resolve_links(folder / "short/c/.././new"), real + "/a/b/new");
  const fs::path before = fs::current_path();
  fs::current_path(folder / "a");
  EXPECT_EQ(resolve_links("../short/c/x"), real + "/a/b/c/x");
  EXPECT_EQ(resolve_links("link"), real + "/a/file");
  EXPECT_EQ(who_else_writes("b"), "");
  fs::current_path(before);
}

// As on a machine where the first user to come made /tmp/clinfer-UID, and renames a folder of his own into it later.
TEST_F(Everyones, FoldersAreTrustedWithAllThatLeadsToThem) {
  const std::string parent = tmp_ + "/clinfer-12346", pocl = parent + "/pocl";
  ASSERT_EQ(attacker([&] {
              return mkdir(parent.c_str(), 0777) == 0 && chmod(parent.c_str(), 0777) == 0;
            }),
            "");
  EXPECT_TRUE(says(as_user(kVictim, [&] { return own_folder_problem(pocl); }),
                   "clinfer-12346 belongs to user 12345"));
  // With the sticky bit and without, in the middle of a longer path as well.
  EXPECT_TRUE(
      says(as_user(kVictim, [&] { return who_else_writes(pocl); }), "belongs to user 12345"));
  ASSERT_EQ(chmod(parent.c_str(), 01777), 0);
  EXPECT_TRUE(says(as_user(kVictim, [&] { return own_folder_problem(pocl + "/a/b"); }),
                   "belongs to user 12345"));
  // A link of another user's, and a folder beside it of one's own.
  const std::string link = tmp_ + "/link";
  ASSERT_EQ(attacker([&] { return symlink(home_.c_str(), link.c_str()) == 0; }), "");
  EXPECT_TRUE(says(as_user(kVictim, [&] { return own_folder_problem(link + "/x"); }),
                   "is a link of user 12345"));
  EXPECT_EQ(as_user(kVictim, [&] { return own_folder_problem(tmp_ + "/own/pocl"); }), "");
  EXPECT_EQ(as_user(kVictim, [&] { return own_folder_problem(home_ + "/pocl"); }), "");
  // A folder without the sticky bit, in which everyone may rename.
  ASSERT_EQ(chmod(tmp_.c_str(), 0777), 0);
  EXPECT_TRUE(says(as_user(kVictim, [&] { return own_folder_problem(tmp_ + "/own/pocl"); }),
                   "tmp can be written by others"));
}

TEST_F(Everyones, ProgramsAreTrustedWithAllThatLeadsToThem) {
  const std::string program = home_ + "/program", other = tmp_ + "/program";
  ASSERT_EQ(victim([&] { put(program, "", 0755); }), "");
  ASSERT_EQ(attacker([&] { return put(other, "", 0755); }), "");
  const auto who = [](const std::string& path) {
    return as_user(kVictim, [&] { return who_else_replaces(path); });
  };
  EXPECT_EQ(who(program), "");
  EXPECT_TRUE(says(who(other), "program belongs to user 12345"));
  EXPECT_TRUE(says(who(tmp_ + "/none"), "No such file"));
  const std::string running = tmp_ + "/plugin.so";
  ASSERT_EQ(attacker([&] { return put(running, "", 0755); }), "");
  EXPECT_EQ(as_user(kVictim, [&] { return who_else_replaces(other, running); }), "")
      << "whose code runs already";
  ASSERT_EQ(chown(running.c_str(), kVictim, kVictim), 0);
  EXPECT_TRUE(says(as_user(kVictim, [&] { return who_else_replaces(other, running); }),
                   "program belongs to user 12345"));
  ASSERT_EQ(chmod(program.c_str(), 0777), 0);
  EXPECT_TRUE(says(who(program), "program can be written by others"));
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  ASSERT_EQ(chown(home_.c_str(), kAttacker, kAttacker), 0);
  ASSERT_EQ(chmod(home_.c_str(), 0755), 0);
  EXPECT_TRUE(says(who(program), "home belongs to user 12345"));
}

TEST_F(Everyones, NamesThatCannotBeGuessed) {
  std::string path = as_user(kVictim, [&] {
    return make_unguessable_folder({"", tmp_ + "/none", tmp_});
  });
  EXPECT_TRUE(path.starts_with(tmp_ + "/clinfer-")) << path;
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_EQ(as_user(kVictim, [&] { return make_unguessable_folder({"/proc"}); }), "");
}

TEST(Paths, FoldersWithoutExecution) {
  const TemporaryFolder folder;
  EXPECT_EQ(no_execution_in(folder / ""), "");
  if (mount("none", (folder / "").c_str(), "tmpfs", MS_NOEXEC, nullptr) != 0)
    GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_TRUE(says(no_execution_in(folder / ""), "is mounted noexec"));
  umount2((folder / "").c_str(), MNT_DETACH);
}

TEST(Paths, FoldersThatOthersCanChange) {
  const TemporaryFolder folder;
  const std::string inner = folder / "a";
  make_folders(inner, 0700);
  const std::string link = folder / "link";
  ASSERT_EQ(symlink("a", link.c_str()), 0);
  for (const std::string& name : {inner, inner + "/", link}) {
    ASSERT_EQ(chmod(inner.c_str(), 0755), 0);
    EXPECT_EQ(who_else_writes(name), "");
    for (const mode_t mode : {0707u, 0777u, 01777u}) {
      ASSERT_EQ(chmod(inner.c_str(), mode), 0);
      EXPECT_NE(who_else_writes(name).find("can be written by others"), std::string::npos) << mode;
    }
  }
  EXPECT_TRUE(says(who_else_writes(folder / "none"), "its folder has to be there"));
  EXPECT_TRUE(says(who_else_writes(folder.write("file", "")), "file is no folder"));
  if (geteuid() != 0) return;
  ASSERT_EQ(chmod(inner.c_str(), 0775), 0);
  ASSERT_EQ(chown(inner.c_str(), 0, 1234), 0);
  EXPECT_TRUE(says(who_else_writes(inner), "a can be written by others")) << "a group";
  ASSERT_EQ(chmod(inner.c_str(), 0755), 0);
  EXPECT_EQ(who_else_writes(inner), "");
  ASSERT_EQ(chown(inner.c_str(), 1234, 0), 0);
  EXPECT_NE(who_else_writes(inner).find("belongs to user 1234"), std::string::npos);
}

TEST(Paths, FilesThatOthersCanChange) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "x");
  const auto who = [&] { return who_else_writes("a", Descriptor(open(path.c_str(), O_RDONLY))); };
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(who(), "");
  ASSERT_EQ(chmod(path.c_str(), 0646), 0);
  EXPECT_TRUE(says(who(), "a can be written by others"));
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 1234, 0), 0);
    EXPECT_TRUE(says(who(), "a belongs to user 1234"));
  }
  EXPECT_TRUE(says(who_else_writes("it", Descriptor(open("/dev/null", O_RDONLY))),
                   "it is no regular file"));
}

}  // namespace
}  // namespace clinfer
