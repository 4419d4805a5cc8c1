// Keeps the receiver of the log.
#include "kernels/base/log.h"

#include <atomic>

namespace clinfer {
namespace {

std::atomic<LogReceiver*> the_receiver{nullptr};

}  // namespace

void receive_log(LogReceiver* receiver) noexcept { the_receiver = receiver; }

LogReceiver* log_receiver() noexcept { return the_receiver.load(std::memory_order_acquire); }

}  // namespace clinfer
