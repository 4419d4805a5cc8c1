// Answers HTTP requests on this machine's loopback address.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

typedef struct _SoupServerMessage SoupServerMessage;

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
    std::string location;  // path of what the request has made; "" if that is nothing
  };
  // The server calls these on a thread of its own, one at a time. That thread has a GMainContext of
  // its own as its default.
  struct Handlers {
    std::function<Reply(const std::string& path)> get;
    // Those below may be null; the server then refuses such requests.
    // `content` is of the type application/sdp and has at most 64 KiB. `reply` is to be called
    // once, now or later, on the server's thread; it does nothing if the client has left.
    std::function<void(const std::string& path, const std::string& content,
                       std::function<void(const Reply&)> reply)>
        post;
    std::function<Reply(const std::string& path)> remove;  // DELETE
    std::function<void()> look;                            // is called each second and after wake()
    std::function<void()> end;                             // is called when no more requests come
  };
  // Requests for another host's name are refused. Throws Error if the port cannot be used.
  LocalServer(unsigned port, Handlers handlers);
  // Waits until a request that is being answered is done, and ends the replies that go on.
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  // Asks replies that wait for a next part again, and calls `look`. To be called from any thread;
  // does not block.
  void wake();

 private:
  struct Loop;
  struct Question;
  struct Stream;
  void serve(unsigned port, std::promise<std::string>& started);
  void answer(SoupServerMessage* message, const std::string& path);
  void begin(SoupServerMessage* message, Reply reply);  // of a reply that goes on

  const Handlers handlers_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace clinfer
