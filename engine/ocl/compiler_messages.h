// Messages between the application and its compiler processes: bytes, preceded by their number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/ocl/compiler_process.h"

namespace clinfer::ocl {

// The descriptor by which a compiler's process has the socket.
inline constexpr int kCompilerSocket = 3;

// Waits until the socket can be read or written (POLLIN, POLLOUT); false gives up.
using Patience = std::function<bool(short events)>;

// Block until all is sent or received, with `patience` only while it lasts; false where the other side has gone,
// wants to send more than `longest` bytes, or is given up.
bool send_message(int socket, const std::string& message, const Patience& patience = {});
bool receive_message(int socket, std::string& message, const Patience& patience = {},
                     uint64_t longest = uint64_t{1} << 30);

// The owner speaks first: the protocol, the build that it is of, and a number that nobody else knows. A process of
// the same build answers with that and its device. Another program that was started in its place knows neither.
inline constexpr uint64_t kLongestGreeting = 4096;
std::string new_greeting();
bool is_of_this_build(const std::string& greeting);
std::string answer_to(const std::string& greeting, const DeviceInfo& device);

// unpack() returns false for what pack() did not make.
std::string pack(const CompileRequest& request);
bool unpack(const std::string& message, CompileRequest& request);
std::string pack(const CompileAnswer& answer);
bool unpack(const std::string& message, CompileAnswer& answer);

}  // namespace clinfer::ocl
