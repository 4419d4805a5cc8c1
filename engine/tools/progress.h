// Progress on standard error, and Ctrl-C. Standard output is for results.
#pragma once

#include <chrono>
#include <string>

namespace clinfer {

// From then on SIGINT and SIGTERM only make interrupted() true; a second one ends the program at
// once.
void catch_interrupts();
bool interrupted();
// Throws Error{cancelled} after an interrupt. `lost`: what becomes of the work so far.
void end_if_interrupted(const std::string& lost);

// "what 3 of 100": one line that changes on a terminal, a line now and then elsewhere.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // removes the line from the terminal
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // `of` 0: not known.
  void operator()(const std::string& what, size_t done, size_t of);

 private:
  const bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace clinfer
