// Where PoCL keeps its code, as two users and on file systems that execute nothing.
#include "engine/ocl/pocl_cache.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>

#include "kernels/base/system/files.h"
#include "tests/says.h"
#include "tests/two_users.h"

namespace clinfer::ocl {
namespace {

using test::as_user;
using test::kAttacker;
using test::kVictim;
using test::says;

// POCL_CACHE_DIR and the note of a user's process with such a home and temporary folder.
std::string provided(uid_t user, const std::string& home, const std::string& temporary,
                     const std::string& preferred = "") {
  return as_user(user, [&] {
    for (const char* name : {"POCL_CACHE_DIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"}) unsetenv(name);
    setenv("HOME", home.c_str(), 1);
    setenv("TMPDIR", temporary.c_str(), 1);
    const PoclCache cache = provide_pocl_cache(preferred);
    const char* folder = std::getenv("POCL_CACHE_DIR");
    const std::string where = folder != nullptr ? folder : "";
    if (!where.empty() && !who_else_writes(where).empty()) return "not safe: " + where;
    return where + "|" + cache.note + "|" + (cache.usable ? "usable" : "not usable");
  });
}

class PoclCacheOf : public test::TwoUsers {};

TEST_F(PoclCacheOf, AUserWithAHomeStaysThere) {
  EXPECT_EQ(provided(kVictim, home_, tmp_), "||usable");
}

TEST_F(PoclCacheOf, AUserWithoutAHomeGetsAFolderOfTheOwn) {
  EXPECT_TRUE(says(provided(kVictim, "/proc", tmp_), tmp_ + "/clinfer-12346/pocl|"));
}

// The first to come makes the folder that everyone can guess, and may rename what lies in it at any time.
TEST_F(PoclCacheOf, AFolderOfAnotherUsersIsNotUsed) {
  const std::string parent = tmp_ + "/clinfer-12346";
  ASSERT_EQ(as_user(kAttacker,
                    [&] {
                      const bool made =
                          mkdir(parent.c_str(), 0777) == 0 && chmod(parent.c_str(), 0777) == 0;
                      return made ? "" : "not made";
                    }),
            "");
  // Even where the victim's own folder is in it already.
  ASSERT_EQ(mkdir((parent + "/pocl").c_str(), 0700), 0);
  ASSERT_EQ(chown((parent + "/pocl").c_str(), kVictim, kVictim), 0);
  const std::string got = provided(kVictim, "/proc", tmp_);
  EXPECT_FALSE(got.starts_with(parent)) << got;
  EXPECT_FALSE(got.starts_with("|")) << got;
  EXPECT_TRUE(got.ends_with("|usable")) << got;
}

TEST_F(PoclCacheOf, AHomeThatExecutesNothingIsNotUsed) {
  if (mount("none", home_.c_str(), "tmpfs", MS_NOEXEC, nullptr) != 0)
    GTEST_SKIP() << "nothing can be mounted here";
  ASSERT_EQ(chown(home_.c_str(), kVictim, kVictim), 0);
  const std::string got = provided(kVictim, home_, tmp_, home_ + "/cache");
  EXPECT_TRUE(got.starts_with(tmp_ + "/clinfer-12346/pocl|")) << got;
  EXPECT_TRUE(says(got, "is mounted noexec"));
  umount2(home_.c_str(), MNT_DETACH);
}

TEST_F(PoclCacheOf, AHomeThatIsFullIsNotUsed) {
  if (mount("none", home_.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "nothing can be mounted here";
  ASSERT_EQ(chown(home_.c_str(), kVictim, kVictim), 0);
  const std::string got = provided(kVictim, home_, tmp_, home_ + "/cache");
  EXPECT_TRUE(got.starts_with(tmp_ + "/clinfer-12346/pocl|")) << got;
  EXPECT_TRUE(says(got, "MiB left; POCL_CACHE_DIR names another folder"));
  umount2(home_.c_str(), MNT_DETACH);
}

TEST_F(PoclCacheOf, FilesMustBeAllowedToBeLarge) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string got = provided(kVictim, home_, tmp_);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(says(got, "no file may be larger than 4096 bytes (ulimit -f, RLIMIT_FSIZE)"));
  EXPECT_TRUE(got.ends_with("|not usable")) << got;
}

// Lets the kernel refuse execve() to this process from now on, as sandboxes do.
bool forbid_programs() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(PoclCacheOf, ALinkerMustBeAllowedToStart) {
  const std::string got = as_user(kVictim, [&] {
    if (!forbid_programs()) return std::string("no seccomp");
    setenv("HOME", home_.c_str(), 1);
    const PoclCache cache = provide_pocl_cache("");
    return cache.note + "|" + (cache.usable ? "usable" : "not usable");
  });
  if (got == "no seccomp") GTEST_SKIP() << "the system has no filters of system calls";
  EXPECT_TRUE(says(got, "this process may start no program (execve() is forbidden)"));
  EXPECT_TRUE(got.ends_with("|not usable")) << got;
}

}  // namespace
}  // namespace clinfer::ocl
