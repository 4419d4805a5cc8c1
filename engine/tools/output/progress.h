// Progress on standard error, and Ctrl-C. Standard output is for results.
#pragma once

#include <chrono>
#include <string>

namespace clinfer {

// From the first call on, SIGINT and SIGTERM only make interrupted() return true; a second signal
// ends the program at once.
void catch_interrupts();
bool interrupted();
// Throws Error{cancelled} after an interrupt. `lost` tells what becomes of the work so far.
void end_if_interrupted(const std::string& lost);

// Shows "what 3 of 100": a line that changes on a terminal, or a line now and then elsewhere.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // removes the line from the terminal
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // `of` is 0 if the total is not known.
  void operator()(const std::string& what, size_t done, size_t of);

 private:
  const bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace clinfer
