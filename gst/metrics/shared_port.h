// One server for all elements of a process that want the same port.
#pragma once

#include <map>
#include <memory>
#include <mutex>

namespace clinfer {

// Returns the server at a port, made by the first element that wants it, and ended with the last
// one. Throws Error if the port cannot be used. Thread-safe.
template <typename Server>
std::shared_ptr<Server> shared_at(unsigned port) {
  static std::mutex& mutex = *new std::mutex;
  static auto& servers = *new std::map<unsigned, std::weak_ptr<Server>>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Server> server = servers[port].lock();
  if (server == nullptr) servers[port] = server = std::make_shared<Server>(port);
  return server;
}

}  // namespace clinfer
