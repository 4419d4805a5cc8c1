// Answers HTTP requests on this machine's loopback address.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

namespace clinfer {

class LocalServer {
 public:
  struct Reply {
    int status = 200;
    std::string type;  // MIME type of the content
    std::string body;
  };
  // Calls `answer` with the path of each GET request, on a thread of its own, one request at a
  // time. Throws Error if the port cannot be used.
  LocalServer(unsigned port, std::function<Reply(const std::string& path)> answer);
  // Waits until a request that is being answered is done.
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

 private:
  void serve(unsigned port, std::promise<std::string>& started);

  struct Loop;
  std::function<Reply(const std::string&)> answer_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace clinfer
