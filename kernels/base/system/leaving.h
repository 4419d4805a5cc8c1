// Handles the end of the process while our threads work. The end waits until they have left drivers
// and our own static objects alone; only then the handlers and destructors of drivers and libraries
// run.
#pragma once

#include <functional>

namespace clinfer {

// Returns true once the process is ending: no work may begin, and long work has to stop.
bool is_leaving();

// Makes the end of the process wait while the object lives: some seconds, or `to_the_end` for work
// that must not be cut off, such as a driver that compiles. Work must check is_leaving() meanwhile.
// Once the process is ending, the constructor throws Error{cancelled} on all threads but the one
// that ends it. May be nested. With `seconds` the object belongs to the thread that made it, which
// may end the process meanwhile; `answered` is the same for work that passes from thread to thread,
// such as an inference in flight. While work of the other two kinds goes on, a thread calls
// notice_exit() again and again, since drivers register handlers when they load and compile.
class ExitWaits {
 public:
  enum class Until { seconds, answered, to_the_end };
  explicit ExitWaits(Until until = Until::seconds);
  ~ExitWaits();
  ExitWaits(const ExitWaits&) = delete;
  ExitWaits& operator=(const ExitWaits&) = delete;

 private:
  struct Process;
  friend bool is_leaving();
  friend void notice_exit();
  friend void when_leaving(void (*stop)());
  Process* const process_;
  const Until until_;
};

// Registers an exit handler that waits. Call this whenever a driver may have registered exit
// handlers, because they run in reverse order. Needed if another thread than the first one ends the
// process.
void notice_exit();

// Sets a function that is called when the process begins to end, before the wait. There is one for
// the whole process.
void when_leaving(void (*stop)());

}  // namespace clinfer
