// Shows progress and catches interrupts.
#include "engine/tools/output/progress.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kRedraw = std::chrono::milliseconds(200);  // on a terminal
constexpr auto kLine = std::chrono::seconds(5);           // between lines elsewhere

volatile std::sig_atomic_t signalled = 0;

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { signalled = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return signalled != 0; }

void end_if_interrupted(const std::string& lost) {
  if (interrupted()) throw Error(ErrorCode::cancelled, "stopped; " + lost);
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0), last_(Clock::now()) {}

ProgressLine::~ProgressLine() {
  if (drawn_ && terminal_) std::fprintf(stderr, "\r\033[K");
}

void ProgressLine::operator()(const std::string& what, size_t done, size_t of) {
  if (Clock::now() - last_ < (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kLine)))
    return;
  last_ = Clock::now();
  drawn_ = true;
  std::fprintf(stderr, "%s%s %zu", terminal_ ? "\r\033[K" : "", safe_line(what).c_str(), done);
  if (of > 0) std::fprintf(stderr, " of %zu", of);
  if (!terminal_) std::fprintf(stderr, "\n");
  std::fflush(stderr);
}

}  // namespace clinfer
