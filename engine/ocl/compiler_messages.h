// Messages between the application and its compiler processes: bytes, preceded by their number.
#pragma once

#include <string>

#include "engine/ocl/compiler_process.h"

namespace clinfer::ocl {

// Block until all is sent or received; false where the other side has gone.
bool send_message(int socket, const std::string& message);
bool receive_message(int socket, std::string& message);

// The first message of a process. Both sides must have the same one.
std::string greeting_of(const DeviceInfo& device);

// unpack() returns false for what pack() did not make.
std::string pack(const CompileRequest& request);
bool unpack(const std::string& message, CompileRequest& request);
std::string pack(const CompileAnswer& answer);
bool unpack(const std::string& message, CompileAnswer& answer);

}  // namespace clinfer::ocl
