// The end of the process while threads of ours work. It waits until they have left drivers and our own static objects
// alone, and only then the handlers and destructors of drivers and libraries run.
#pragma once

#include <functional>

namespace clinfer {

// The process ends: nothing more is to be begun, and what takes long stops.
bool is_leaving();

// The end of the process waits while this lives: some seconds, or `to_the_end` for what must not be cut off, as a
// driver that compiles. Work looks at is_leaving() meanwhile. Once the process ends, the constructor throws
// Error{cancelled} on all threads but the one that ends it. May be nested. With `seconds` it belongs to the thread that
// made it, which may end the process meanwhile; `answered` is the same for what passes from thread to thread, as an
// inference in flight.
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

// Call this whenever a driver may have registered exit handlers, which run in the opposite order of
// their registration: where the process ends on another thread than its first one, the waiting is
// such a handler.
void notice_exit();

// `stop` is called when the process begins to end, before the waiting. One function for all.
void when_leaving(void (*stop)());

}  // namespace clinfer
