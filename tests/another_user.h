// Two users: work that another user does, in a process of its own. Only root can become another user.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace clinfer::test {

inline constexpr uid_t kAttacker = 12345, kVictim = 12346;

// Does `work` as that user, without root's groups. Gives the text that it returns or throws.
inline std::string as_user(uid_t user, const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string text = "cannot become another user";
    if (setgroups(0, nullptr) == 0 && setresgid(user, user, user) == 0 &&
        setresuid(user, user, user) == 0) {
      try {
        text = work();
      } catch (const std::exception& error) {
        text = error.what();
      }
    }
    _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? text : "the other user's process ended with " + std::to_string(status);
}

}  // namespace clinfer::test

// The first line of a test with two users.
#define NEEDS_ANOTHER_USER() \
  if (geteuid() != 0) GTEST_SKIP() << "only root can do as another user"
