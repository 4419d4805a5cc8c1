// Messages between the application and its compiler processes: a length, followed by bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/ocl/compiler/compiler_process.h"

namespace clinfer::ocl {

// The descriptor of the socket in a compiler process.
inline constexpr int kCompilerSocket = 3;

// Waits until the socket can be read or written (POLLIN, POLLOUT). Returns false to give up.
using Patience = std::function<bool(short events)>;

// Block until everything is sent or received, for as long as `patience` returns true. Return false
// if the other side has gone, wants to send more than `longest` bytes, or was given up.
bool send_message(int socket, const std::string& message, const Patience& patience = {});
bool receive_message(int socket, std::string& message, const Patience& patience = {},
                     uint64_t longest = uint64_t{1} << 30);

// The owner greets first, with the protocol, its build and a secret number. A process of the same
// build answers with the same and its device. Another program, started in its place, knows neither.
inline constexpr uint64_t kLongestGreeting = 4096;
std::string new_greeting();
bool is_of_this_build(const std::string& greeting);
std::string answer_to(const std::string& greeting, const DeviceInfo& device);

// unpack() returns false for bytes that pack() did not make.
std::string pack(const CompileRequest& request);
bool unpack(const std::string& message, CompileRequest& request);
std::string pack(const CompileAnswer& answer);
bool unpack(const std::string& message, CompileAnswer& answer);

}  // namespace clinfer::ocl
