// Exchanges messages between the application and its compiler processes.
#include "engine/ocl/compiler/compiler_messages.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/ocl/compiler/source_id.h"
#include "kernels/base/error.h"
#include "kernels/base/hash.h"
#include "kernels/base/system/files.h"

namespace clinfer::ocl {

namespace {

constexpr std::string_view kProtocol = "clinfer compiler 5|";  // increased when messages change
constexpr uint64_t kMostItems = 4096;                          // limit of launches and of arguments

// Waits with poll() for the flags that `transfer` needs, and calls it until all `size` bytes are
// transferred.
template <typename Byte, typename Transfer>
bool transfer_all(Byte* at, size_t size, const Patience& patience, short events,
                  const Transfer& transfer) {
  while (size > 0) {
    const ssize_t n = transfer(at, size, patience ? MSG_DONTWAIT : 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && patience && patience(events)) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool send_all(int socket, const void* data, size_t size, const Patience& patience) {
  return transfer_all(static_cast<const char*>(data), size, patience, POLLOUT,
                      [socket](const char* at, size_t bytes, int flags) {
                        return send(socket, at, bytes, flags | MSG_NOSIGNAL);
                      });
}

bool receive_all(int socket, void* data, size_t size, const Patience& patience) {
  return transfer_all(
      static_cast<char*>(data), size, patience, POLLIN,
      [socket](char* at, size_t bytes, int flags) { return recv(socket, at, bytes, flags); });
}

class Writer {
 public:
  void number(uint64_t value) {
    message_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void bytes(const void* data, size_t size) {
    number(size);
    message_.append(static_cast<const char*>(data), size);
  }
  void text(const std::string& value) { bytes(value.data(), value.size()); }
  std::string take() { return std::move(message_); }

 private:
  std::string message_;
};

// Reads values. From the first missing one on it returns zeros and empty texts.
class Reader {
 public:
  explicit Reader(const std::string& message) : message_(message) {}
  uint64_t number() {
    uint64_t value = 0;
    if (take(sizeof value)) std::memcpy(&value, message_.data() + at_ - sizeof value, sizeof value);
    return value;
  }
  std::string text() {
    const uint64_t size = number();
    return take(size) ? message_.substr(at_ - size, size) : "";
  }
  uint64_t items() {
    const uint64_t count = number();
    right_ = right_ && count <= kMostItems;
    return right_ ? count : 0;
  }
  bool at_end() const { return right_ && at_ == message_.size(); }

 private:
  bool take(uint64_t size) {
    right_ = right_ && size <= message_.size() - at_;
    if (right_) at_ += size;
    return right_;
  }
  const std::string& message_;
  size_t at_ = 0;
  bool right_ = true;
};

}  // namespace

bool send_message(int socket, const std::string& message, const Patience& patience) {
  const uint64_t length = message.size();
  return send_all(socket, &length, sizeof length, patience) &&
         send_all(socket, message.data(), message.size(), patience);
}

bool receive_message(int socket, std::string& message, const Patience& patience, uint64_t longest) {
  uint64_t length = 0;
  if (!receive_all(socket, &length, sizeof length, patience) || length > longest) return false;
  message.resize(length);
  return receive_all(socket, message.data(), message.size(), patience);
}

namespace {

std::string build_text() { return std::string(kProtocol) + kSourceId + "|"; }

}  // namespace

std::string new_greeting() {
  std::array<uint64_t, 4> secret{};
  if (getrandom(secret.data(), sizeof secret, 0) != sizeof secret)
    throw Error(ErrorCode::io, "the system gives no random numbers: " + system_reason(errno));
  std::string text = build_text();
  for (const uint64_t part : secret) text += hex(part);
  return text;
}

bool is_of_this_build(const std::string& greeting) { return greeting.starts_with(build_text()); }

std::string answer_to(const std::string& greeting, const DeviceInfo& device) {
  return greeting + "|" + device.platform + "|" + device.name + "|" + device.driver + "|" +
         device.version;
}

std::string pack(const CompileRequest& request) {
  Writer out;
  for (const std::string* text : {&request.options, &request.source, &request.kernel_name})
    out.text(*text);
  out.number(request.wants_binary);
  out.number(request.launches.size());
  for (const TrialLaunch& launch : request.launches) {
    for (size_t d = 0; d < 3; ++d) {
      out.number(launch.global[d]);
      out.number(launch.local[d]);
      out.number(launch.offset[d]);
    }
    out.number(launch.arguments.size());
    for (const Argument& argument : launch.arguments) {
      out.number(static_cast<uint64_t>(argument.kind));
      out.bytes(argument.bytes.data(), argument.bytes.size());
      out.number(argument.address_bytes);
    }
  }
  return out.take();
}

bool unpack(const std::string& message, CompileRequest& request) {
  Reader in(message);
  for (std::string* text : {&request.options, &request.source, &request.kernel_name})
    *text = in.text();
  request.wants_binary = in.number() != 0;
  request.launches.resize(in.items());
  for (TrialLaunch& launch : request.launches) {
    for (size_t d = 0; d < 3; ++d) {
      launch.global[d] = in.number();
      launch.local[d] = in.number();
      launch.offset[d] = in.number();
    }
    launch.arguments.resize(in.items());
    for (Argument& argument : launch.arguments) {
      argument.kind = static_cast<Argument::Kind>(in.number());
      const std::string bytes = in.text();
      argument.bytes.resize(bytes.size());
      if (!bytes.empty()) std::memcpy(argument.bytes.data(), bytes.data(), bytes.size());
      argument.address_bytes = in.number();
    }
  }
  return in.at_end();
}

std::string pack(const CompileAnswer& answer) {
  Writer out;
  out.number(static_cast<uint64_t>(answer.outcome));
  out.text(answer.text);
  out.bytes(answer.binary.data(), answer.binary.size());
  return out.take();
}

bool unpack(const std::string& message, CompileAnswer& answer) {
  Reader in(message);
  answer.outcome = static_cast<CompileAnswer::Outcome>(in.number());
  answer.text = in.text();
  const std::string binary = in.text();
  answer.binary.assign(binary.begin(), binary.end());
  using Outcome = CompileAnswer::Outcome;
  return in.at_end() && (answer.outcome == Outcome::built || answer.outcome == Outcome::refused ||
                         answer.outcome == Outcome::crashed);
}

}  // namespace clinfer::ocl
