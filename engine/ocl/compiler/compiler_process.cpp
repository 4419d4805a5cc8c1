// The application's side of a compiler in a separate process.
#include "engine/ocl/compiler/compiler_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include "engine/ocl/compiler/compiler_messages.h"

namespace clinfer::ocl {

namespace {

// After this time without any computation a process is considered stuck. On a loaded machine every
// process gets some processor time within it.
constexpr auto kPatience = std::chrono::seconds(10);
constexpr int kLook = 500;  // in milliseconds
// Times to wait for a process to end by itself: one that was told to stop, and one that has closed
// its socket, whose exit status is wanted.
constexpr int kShortly = 20, kDying = 2000;  // ms
// Limit for one program; the longest take minutes.
constexpr auto kLongest = std::chrono::minutes(15);

// Attributes of a process that gets no signals from the terminal, and that neither blocks nor
// ignores signals.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

bool is_limit(int error) {
  return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

std::string how_ended(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigdescr_np(WTERMSIG(status));
    return "signal " + std::to_string(WTERMSIG(status)) + (name ? std::string(", ") + name : "");
  }
  return status != 0 ? "exit status " + std::to_string(WEXITSTATUS(status)) : "it ended";
}

}  // namespace

CompilerProcess::CompilerProcess(const std::string& program, const DeviceInfo& device)
    : device_(device), program_(program) {
  std::string name = "clinfer-compiler", id = device.id;
  const auto refused = [this](int error, const std::string& what) {
    problem_ = {
        is_limit(error) ? Outcome::limited : Outcome::none, what + ": " + system_reason(error), {}};
  };
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    refused(errno, "no socket for a compiler");
    return;
  }
  socket_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), kCompilerSocket);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Closes files of the application, which must not stay open in the process.
  posix_spawn_file_actions_addclosefrom_np(&actions, kCompilerSocket + 1);
  const Attributes attributes;
  char* const arguments[] = {name.data(), id.data(), nullptr};
  const int error =
      posix_spawn(&process_, program.c_str(), &actions, attributes.get(), arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    process_ = -1;
    refused(error, program + " cannot be started");
  }
}

CompilerProcess::~CompilerProcess() { end(kShortly); }

std::optional<int> CompilerProcess::end(int most_ms) noexcept {
  if (socket_) shutdown(socket_.get(), SHUT_RDWR);  // the process then ends by itself
  int status = 0;
  if (process_ <= 0) return status;
  pid_t gone = 0;
  for (int i = 0; i < most_ms && (gone = waitpid(process_, &status, WNOHANG)) == 0; ++i)
    usleep(1000);
  if (gone == 0) {
    kill(process_, SIGKILL);
    while ((gone = waitpid(process_, &status, 0)) < 0 && errno == EINTR) {
    }
    status = 0;  // we stopped it ourselves
  }
  process_ = -1;
  return gone > 0 ? std::optional(status) : std::nullopt;
}

namespace {

// Returns the processor time that all threads of a process have used, including that of system
// calls.
std::chrono::nanoseconds computed_by(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

bool CompilerProcess::is_patient(short events) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto last_seen = start;
  auto computed = computed_by(process_);
  for (;;) {
    pollfd socket{socket_.get(), events, 0};
    const int ready = poll(&socket, 1, kLook);
    // The caller's own call reports errors.
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    const auto now = Clock::now();
    if (const auto by_now = computed_by(process_); by_now != computed) {
      computed = by_now;
      last_seen = now;
    }
    silent_ = now - last_seen > kPatience || now - start > kLongest;
    if (silent_) return false;
  }
}

CompileAnswer CompilerProcess::what_ended_it() {
  const std::optional<int> status = end(silent_ ? kShortly : kDying);
  if (silent_) return {Outcome::lost, "it does not answer", {}};
  // A process that crashes reports that itself, in an answer.
  if (!status) return {Outcome::lost, "it is gone", {}};
  if (WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL)
    return {Outcome::lost, how_ended(*status) + ", as the system does where memory is short", {}};
  return {Outcome::crashed, how_ended(*status), {}};
}

void CompilerProcess::wait_until_ready() {
  if (std::exchange(greeted_, true)) return;
  if (problem_.outcome != Outcome::built) return;
  const Patience patience = [this](short events) { return is_patient(events); };
  const std::string greeting = new_greeting();
  std::string answer;
  if (!send_message(socket_.get(), greeting, patience) ||
      !receive_message(socket_.get(), answer, patience, kLongestGreeting)) {
    const CompileAnswer ended = what_ended_it();
    problem_.text = program_ + " does not serve as a compiler (" + ended.text + ")";
    problem_.outcome = ended.outcome == Outcome::lost && !silent_ ? Outcome::lost : Outcome::none;
    // Drivers abort if they get no threads or memory.
    if (ended.outcome == Outcome::crashed && ended.text.starts_with("signal")) {
      problem_.outcome = Outcome::limited;
      problem_.text +=
          "; drivers end like that where they get no threads or memory (ulimit -u, ulimit -v)";
    }
  } else if (answer != answer_to(greeting, device_)) {
    problem_ = {Outcome::none,
                program_ + " is of another version, or finds another device as " + device_.id,
                {}};
  }
}

CompileAnswer CompilerProcess::compile(const CompileRequest& request) {
  const auto failed = [this](CompileAnswer why) {
    return stopped_ ? CompileAnswer{Outcome::stopped, "", {}} : why;
  };
  wait_until_ready();
  if (problem_.outcome != Outcome::built) return failed(problem_);
  const Patience patience = [this](short events) { return is_patient(events); };
  std::string reply;
  if (stopped_ || !send_message(socket_.get(), pack(request), patience) ||
      !receive_message(socket_.get(), reply, patience)) {
    CompileAnswer ended = what_ended_it();
    if (ended.outcome == Outcome::crashed) ended.text = "the compiler crashed: " + ended.text;
    return failed(ended);
  }
  CompileAnswer answer;
  if (!unpack(reply, answer))
    return failed({Outcome::crashed, "the compiler's answer makes no sense", {}});
  return answer;
}

void CompilerProcess::stop() {
  stopped_ = true;
  if (socket_) shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace clinfer::ocl
