// Log messages for finding faults, by area. A program that embeds the engine may receive them (the
// elements pass them on to GStreamer's debug log); without a receiver a message costs the load of a
// pointer.
#pragma once

#include <exception>
#include <string>

#include "kernels/base/error.h"

namespace clinfer {

enum class LogArea {
  model,     // reading model files
  heads,     // how outputs are read
  graph,     // passes
  plan,      // the kernel of each layer
  device,    // devices, contexts and queues
  programs,  // compiling, compiler processes and the program cache
  tuning,    // tuning files and measurements
};
inline constexpr int kLogAreas = 7;
enum class LogLevel { warning, info, debug };

class LogReceiver {
 public:
  virtual ~LogReceiver() = default;
  virtual bool wants(LogArea area, LogLevel level) const noexcept = 0;
  // Receives a message. Any thread may call this, several at a time.
  virtual void take(LogArea area, LogLevel level, const SourcePlace& place,
                    const std::string& text) noexcept = 0;
};

// Sets the receiver, which is used until the end of the process or until another one is set; null:
// none.
void receive_log(LogReceiver* receiver) noexcept;
LogReceiver* log_receiver() noexcept;

// Calls text(), which returns a std::string, only if there is a receiver for the message. Never
// throws: without memory, the message is lost.
template <typename Text>
void log(LogArea area, LogLevel level, Text&& text,
         SourcePlace place = SourcePlace::here()) noexcept {
  LogReceiver* const receiver = log_receiver();
  if (receiver == nullptr || !receiver->wants(area, level)) return;
  try {
    receiver->take(area, level, place, text());
  } catch (const std::exception&) {
    // Errors must not disturb the work that is logged.
  }
}

}  // namespace clinfer
