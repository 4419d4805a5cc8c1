// A compiler in a process of its own: the application's end of the socket.
#include "engine/ocl/compiler_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/ocl/compiler_messages.h"

namespace clinfer::ocl {

namespace {

// Drivers of GPUs take a second or two to start.
constexpr int kPatience = 30000;  // ms

// Attributes of a process that hears no signal of the terminal and blocks or ignores none.
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
  std::string name = "clinfer", command = "--compiler", id = device.id;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    hits_limit_ = is_limit(errno);
    problem_ = "no socket for a compiler: " + system_reason(errno);
    return;
  }
  socket_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Files of the application must not stay open for as long as the process lives.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  const Attributes attributes;
  char* const arguments[] = {name.data(), command.data(), id.data(), nullptr};
  const int error =
      posix_spawn(&process_, program.c_str(), &actions, attributes.get(), arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    process_ = -1;
    hits_limit_ = is_limit(error);
    problem_ = program + " cannot be started: " + system_reason(error);
  }
}

CompilerProcess::~CompilerProcess() { end(); }

int CompilerProcess::end() noexcept {
  if (socket_) shutdown(socket_.get(), SHUT_RDWR);  // it ends by itself
  int status = 0;
  if (process_ <= 0) return status;
  pid_t gone = 0;
  for (int i = 0; i < 20 && (gone = waitpid(process_, &status, WNOHANG)) == 0; ++i) usleep(1000);
  if (gone == 0) {
    kill(process_, SIGKILL);
    while ((gone = waitpid(process_, &status, 0)) < 0 && errno == EINTR) {
    }
  }
  process_ = -1;
  return gone > 0 ? status : 0;
}

void CompilerProcess::wait_until_ready() {
  if (std::exchange(greeted_, true)) return;
  if (!problem_.empty()) return;
  pollfd readable{socket_.get(), POLLIN, 0};
  std::string greeting;
  if (poll(&readable, 1, kPatience) <= 0 || !receive_message(socket_.get(), greeting)) {
    const int status = end();
    hits_limit_ = WIFSIGNALED(status);  // drivers abort where they get no threads or memory
    problem_ = program_ + " does not serve as a compiler (" + how_ended(status) + ")";
    if (hits_limit_)
      problem_ +=
          "; drivers end like that where they get no threads or memory (ulimit -u, ulimit -v)";
  } else if (greeting != greeting_of(device_))
    problem_ = program_ + " is of another version, or finds another device as " + device_.id;
}

CompileAnswer CompilerProcess::compile(const CompileRequest& request) {
  using Outcome = CompileAnswer::Outcome;
  const auto failed = [this](Outcome outcome, const std::string& why) {
    return CompileAnswer{stopped_ ? Outcome::stopped : outcome, why, {}};
  };
  wait_until_ready();
  if (!problem_.empty()) return failed(hits_limit_ ? Outcome::crashed : Outcome::none, problem_);
  std::string reply;
  if (stopped_ || !send_message(socket_.get(), pack(request)) ||
      !receive_message(socket_.get(), reply))
    return failed(Outcome::crashed, "the compiler crashed: " + how_ended(end()));
  CompileAnswer answer;
  if (!unpack(reply, answer))
    return failed(Outcome::crashed, "the compiler's answer makes no sense");
  return answer;
}

void CompilerProcess::stop() {
  stopped_ = true;
  if (socket_) shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace clinfer::ocl
