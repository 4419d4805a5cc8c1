// Answers HTTP requests on this machine's loopback address.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace clinfer {

class LocalServer {
 public:
  struct Reply {
    int status = 200;
    std::string type;  // MIME type of the content
    std::string body;
    // If set, the reply goes on after the body, without end: each call returns the next part, or
    // nothing if there is none yet. It is called on the server's thread whenever the client has
    // taken the last part, and after wake().
    std::function<std::optional<std::string>()> next;
  };
  // Calls `answer` with the path of each GET request, on a thread of its own, one request at a
  // time. Requests for another host's name are refused. Throws Error if the port cannot be used.
  LocalServer(unsigned port, std::function<Reply(const std::string& path)> answer);
  // Waits until a request that is being answered is done, and ends the replies that go on.
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  // Asks replies that wait for a next part again. To be called from any thread; does not block.
  void wake();

 private:
  struct Loop;
  struct Stream;
  void serve(unsigned port, std::promise<std::string>& started);

  std::function<Reply(const std::string&)> answer_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace clinfer
