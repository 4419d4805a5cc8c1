// Crashes and hangs are seen by the parent process, through a page that both share.
#include "tests/faults/runner.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/base/error.h"

namespace clinfer {
namespace {

constexpr auto kPatience = std::chrono::seconds(120);  // for one run; the machine may be busy
constexpr auto kPatienceAtFirst = 5 * kPatience;       // for three, with nothing in the caches
constexpr auto kLetGo = std::chrono::seconds(20);      // for threads that still hold objects
constexpr int kMostFailures = 5;

struct Shared {
  long n = 0;       // the point that fails now
  long total = 0;   // points of a run without faults
  long struck = 0;  // runs in which one failed
  long errors = 0;  // of these, those that ended in an error; the others had the right result
  char wrong[1000] = {};
};

long stride_of(long total, long most) {
  const char* all = std::getenv("CLINFER_TEST_ALL");
  return all && *all == '1' ? 1 : std::max(1L, (total + most - 1) / std::max(1L, most));
}

// CLINFER_TEST_POINTS=FIRST-LAST limits a run to these points, to look at one that failed.
struct Points {
  long first = 0, last = 0;  // 0: all
};
Points points_asked_for() {
  Points asked;
  if (const char* text = std::getenv("CLINFER_TEST_POINTS"))
    if (std::sscanf(text, "%ld-%ld", &asked.first, &asked.last) == 1) asked.last = asked.first;
  return asked;
}

// Result of one run: "" or what was wrong; `failed`: it ended in an error.
std::string outcome(const Scenario& scenario, bool& failed) {
  failed = true;
  try {
    std::string wrong = scenario.run();
    failed = false;
    return wrong;
  } catch (const std::exception& error) {
    return *error.what() ? "" : "an error without a message";
  }
}

long objects_of(const Scenario& scenario) { return fault_live_objects() + scenario.live(); }

// Waits until as many objects are alive as before a run, `live`. Returns how many more there are.
// Fewer were alive already: a thread of an earlier run released some later than `live` was counted,
// which then becomes the lower number.
long objects_left(const Scenario& scenario, long& live) {
  const auto give_up = std::chrono::steady_clock::now() + kLetGo;
  while (objects_of(scenario) != live && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const long now = objects_of(scenario), more = std::max(0L, now - live);
  live = std::min(live, now);
  return more;
}

// The number of objects that stay alive: threads of an earlier run release theirs a little later.
long settled_objects(const Scenario& scenario) {
  long live = objects_of(scenario);
  for (int quiet = 0; quiet < 100; ++quiet) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const long now = objects_of(scenario);
    if (now < live) quiet = 0;
    live = std::min(live, now);
  }
  return live;
}

// One point in the child's process. False: the run passed fewer points.
bool fail_one(FaultKind kind, long in_a_row, const Scenario& scenario, long& live, Shared& shared) {
  bool failed = false;
  fault_arm(kind, shared.n, in_a_row);
  std::string wrong = outcome(scenario, failed);
  const bool struck = fault_struck();
  fault_arm(kNoFault, 0, 1);
  shared.struck += struck;
  shared.errors += struck && failed;
  if (wrong.empty() && failed && !struck) wrong = "an error without a fault";
  if (wrong.empty())
    if (const long left = objects_left(scenario, live); left > 0)
      wrong = std::to_string(left) + " objects are left alive";
  if (wrong.empty() && failed) {
    wrong = outcome(scenario, failed);
    if (wrong.empty() && failed) wrong = "it does not work any more after the failure";
  }
  std::snprintf(shared.wrong, sizeof shared.wrong, "%s", wrong.c_str());
  return struck;
}

[[noreturn]] void child(FaultKind kind, long in_a_row, long most, const Scenario& scenario,
                        Shared& shared) {
  bool failed = false;
  scenario.prepare();
  outcome(scenario, failed);  // what is made once in a process
  if (failed) _exit(3);
  fault_arm(kind, 0, 1);
  const std::string wrong = outcome(scenario, failed);
  shared.total = fault_passed();
  fault_arm(kNoFault, 0, 1);
  if (failed || !wrong.empty()) _exit(3);
  long live = settled_objects(scenario);
  if (const Points asked = points_asked_for(); asked.first > 0) {
    for (shared.n = std::max(shared.n + 1, asked.first); shared.n <= asked.last; ++shared.n) {
      fail_one(kind, in_a_row, scenario, live, shared);
      if (shared.wrong[0] != '\0') _exit(2);
    }
    _exit(0);
  }
  // Threads that wait make the number of points vary: it is over when several in a row are not
  // reached. Where none is, the run that was counted waited much longer than the others.
  for (long stride = stride_of(shared.total, most); stride > 0; stride /= 4) {
    int missed = 0;
    for (shared.n = std::max(1L, shared.n + stride); missed < 3; shared.n += stride) {
      missed = fail_one(kind, in_a_row, scenario, live, shared) ? 0 : missed + 1;
      if (shared.wrong[0] != '\0') _exit(2);
    }
    if (shared.struck > 0) break;
    shared.n = 0;
  }
  _exit(0);
}

// Waits for the child as long as it comes from one point to the next. Its status; -1: it hung.
int watch(pid_t process, const Shared& shared) {
  const long begun = shared.n;
  long seen = -1;
  auto since = std::chrono::steady_clock::now();
  for (int status = 0;;) {
    if (waitpid(process, &status, WNOHANG) == process) return status;
    const auto now = std::chrono::steady_clock::now();
    const long at = const_cast<const volatile long&>(shared.n);
    if (at != seen) {
      seen = at;
      since = now;
    } else if (now - since > (at == begun ? kPatienceAtFirst : kPatience)) {
      kill(process, SIGKILL);
      waitpid(process, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

void fail_each(FaultKind kind, long most, const Scenario& scenario, long in_a_row) {
  static constexpr const char* kNames[] = {
      "", "allocation", "thread", "file operation", "OpenCL call", "VA call"};
  void* page =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto& shared = *new (page) Shared;
  for (int failures = 0; failures < kMostFailures;) {
    std::fflush(nullptr);
    const pid_t process = fork();
    ASSERT_GE(process, 0);
    if (process == 0) child(kind, in_a_row, most, scenario, shared);
    const int status = watch(process, shared);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
      ADD_FAILURE() << "the scenario does not work without faults";
      break;
    }
    ++failures;
    const std::string how = status == -1          ? "it hangs"
                            : WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                                  : shared.wrong;
    ADD_FAILURE() << kNames[kind] << " " << shared.n << " of about " << shared.total
                  << " fails: " << how;
    shared.wrong[0] = '\0';
  }
  std::printf(
      "%ld %ss failed of about %ld: %ld ended in an error, the others in the right result\n",
      shared.struck, kNames[kind], shared.total, shared.errors);
  EXPECT_GT(shared.struck, 0) << "no point of this kind was passed";
  munmap(page, sizeof(Shared));
}

}  // namespace clinfer
