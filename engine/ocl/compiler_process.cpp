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

}  // namespace

CompilerProcess::CompilerProcess(const std::string& program, const DeviceInfo& device)
    : device_(device), program_(program) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    problem_ = std::string("no socket: ") + std::strerror(errno);
    return;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Files of the application must not stay open for as long as the process lives.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  const Attributes attributes;
  std::string name = "clinfer", command = "--compiler", id = device.id;
  char* const arguments[] = {name.data(), command.data(), id.data(), nullptr};
  const int error =
      posix_spawn(&process_, program.c_str(), &actions, attributes.get(), arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  if (error != 0) {
    process_ = -1;
    problem_ = program + " cannot be started: " + std::strerror(error);
  }
}

CompilerProcess::~CompilerProcess() {
  end();
  if (socket_ >= 0) close(socket_);
}

std::string CompilerProcess::end() {
  if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);  // it ends by itself
  std::string how = "it ended";
  if (process_ > 0) {
    int status = 0;
    pid_t gone = 0;
    for (int i = 0; i < 20 && (gone = waitpid(process_, &status, WNOHANG)) == 0; ++i) usleep(1000);
    if (gone == 0) {
      kill(process_, SIGKILL);
      while ((gone = waitpid(process_, &status, 0)) < 0 && errno == EINTR) {
      }
    }
    if (gone > 0 && WIFSIGNALED(status))
      how = std::string("signal ") + std::to_string(WTERMSIG(status)) + ", " +
            strsignal(WTERMSIG(status));
    else if (gone > 0 && WIFEXITED(status))
      how = "exit status " + std::to_string(WEXITSTATUS(status));
    process_ = -1;
  }
  return how;
}

void CompilerProcess::greet() {
  greeted_ = true;
  if (!problem_.empty()) return;
  pollfd readable{socket_, POLLIN, 0};
  std::string greeting;
  if (poll(&readable, 1, kPatience) <= 0 || !receive_message(socket_, greeting))
    problem_ = program_ + " does not serve as a compiler (" + end() + ")";
  else if (greeting != greeting_of(device_))
    problem_ = program_ + " is of another version, or finds another device as " + device_.id;
}

CompileAnswer CompilerProcess::compile(const CompileRequest& request) {
  using Outcome = CompileAnswer::Outcome;
  const auto failed = [this](Outcome outcome, const std::string& why) {
    return CompileAnswer{stopped_ ? Outcome::stopped : outcome, why, {}};
  };
  if (!greeted_) greet();
  if (!problem_.empty()) return failed(Outcome::none, problem_);
  std::string reply;
  if (stopped_ || !send_message(socket_, pack(request)) || !receive_message(socket_, reply))
    return failed(Outcome::crashed, end());
  CompileAnswer answer;
  if (!unpack(reply, answer)) return failed(Outcome::crashed, "its answer makes no sense");
  return answer;
}

void CompilerProcess::stop() {
  stopped_ = true;
  if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
}

}  // namespace clinfer::ocl
