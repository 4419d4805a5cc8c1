// Runs a libsoup server on a main loop of its own.
#include "gst/metrics/server.h"

#include <libsoup/soup.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <string>
#include <string_view>
#include <utility>

#include "gst/base/guard.h"
#include "kernels/base/error.h"
#include "kernels/base/system/threads.h"

namespace clinfer {

// A reply that goes on.
struct LocalServer::Stream {
  Stream(Loop* of, SoupServerMessage* about, std::function<std::optional<std::string>()> parts)
      : loop(of), message(about), next(std::move(parts)) {}
  ~Stream() {
    if (source == nullptr) return;
    g_source_destroy(source);
    g_source_unref(source);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Loop* const loop;
  SoupServerMessage* const message;
  const std::function<std::optional<std::string>()> next;
  GSource* source = nullptr;  // of what the client does
  bool waits = false;         // the client has taken all parts, and libsoup has paused the message

  // Ends this when the client leaves, which libsoup would not notice before the next part.
  void watch_client();
  // Sends the next part, if there is one.
  void pump();
  void end();
};

// A request whose reply comes later. libsoup has paused its message, and may end it meanwhile.
struct LocalServer::Question {
  explicit Question(SoupServerMessage* about) : message(about) {
    g_object_ref(message);
    g_signal_connect(message, "finished", G_CALLBACK(+[](SoupServerMessage*, gpointer self) {
                       static_cast<Question*>(self)->is_over = true;
                     }),
                     this);
    soup_server_message_pause(message);
  }
  ~Question() {
    g_signal_handlers_disconnect_by_data(message, this);
    g_object_unref(message);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  SoupServerMessage* const message;
  bool is_over = false;
};

struct LocalServer::Loop {
  GMainContext* context = g_main_context_new();
  GMainLoop* loop = g_main_loop_new(context, FALSE);
  std::list<Stream> streams;  // used on the server's thread only
  std::atomic<bool> woken = false;
  std::function<void()> look;

  ~Loop() {
    g_main_loop_unref(loop);
    g_main_context_unref(context);
  }
  void call(GSourceFunc function, gpointer data) {
    GSource* source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, function, data, nullptr);
    g_source_attach(source, context);
    g_source_unref(source);
  }
  // Asks all who wait whether there is something new.
  void ask() {
    for (Stream& stream : streams)
      if (stream.waits) stream.pump();
    if (look != nullptr) guard([](const Failure&) {}, false, [&] { return look(), true; });
  }
};

namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kOffer[] = "application/sdp";
constexpr goffset kMostContent = 64 << 10;
constexpr guint kLookMs = 1000;

// The key of an address under which it has its socket, which libsoup does not give.
constexpr char kSocketKey[] = "clinfer-socket";

GSocket* socket_of(SoupServerMessage* message) {
  GSocketAddress* client = soup_server_message_get_remote_address(message);
  return static_cast<GSocket*>(g_object_get_data(G_OBJECT(client), kSocketKey));
}

// Returns whether a request asks for `localhost`, an address, or nothing. A page of another site
// could make its own name lead here, and would then read what this server says.
bool is_asked_by_address(SoupServerMessage* message) {
  const char* text =
      soup_message_headers_get_one(soup_server_message_get_request_headers(message), "Host");
  std::string host = text != nullptr ? text : "";
  const size_t colon = host.rfind(':');
  if (colon != std::string::npos && !host.ends_with(']')) host.resize(colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host.empty() || g_ascii_strcasecmp(host.c_str(), "localhost") == 0 ||
         g_hostname_is_ip_address(host.c_str());
}

// Returns whether a request tells that its content is short enough to be kept.
bool has_small_content(SoupServerMessage* message) {
  SoupMessageHeaders* headers = soup_server_message_get_request_headers(message);
  return soup_message_headers_get_encoding(headers) == SOUP_ENCODING_CONTENT_LENGTH &&
         soup_message_headers_get_content_length(headers) <= kMostContent;
}

// Sets what is sent in answer to a request, but for parts that come later.
void respond(SoupServerMessage* message, const LocalServer::Reply& reply) {
  soup_server_message_set_status(message, static_cast<guint>(reply.status), nullptr);
  SoupMessageHeaders* headers = soup_server_message_get_response_headers(message);
  // No page of another origin may show what is served here.
  soup_message_headers_append(headers, "Cross-Origin-Resource-Policy", "same-origin");
  soup_message_headers_append(headers, "Cache-Control", "no-store");
  // Connections that wait for a next request would count among those that are kept.
  soup_message_headers_append(headers, "Connection", "close");
  if (!reply.location.empty())
    soup_message_headers_append(headers, "Location", reply.location.c_str());
  if (reply.next != nullptr)
    return soup_message_headers_set_content_type(headers, reply.type.c_str(), nullptr);
  soup_server_message_set_response(message, reply.type.c_str(), SOUP_MEMORY_COPY, reply.body.data(),
                                   reply.body.size());
}

// Accepts connections for a server. libsoup alone would keep any number of them, until the
// application had no file descriptor left, and would never accept again after that. Used on the
// server's thread only.
class Listener {
 public:
  Listener(SoupServer* server, GMainContext* context) : server_(server), context_(context) {}
  // To be called when the server has dropped its connections.
  ~Listener() {
    for (GSocketConnection* connection : connections_)
      g_object_weak_unref(G_OBJECT(connection), forget, this);
    for (GSource* source : {source_, pause_})
      if (source != nullptr) {
        g_source_destroy(source);
        g_source_unref(source);
      }
    g_clear_object(&socket_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Listens on 127.0.0.1. Returns why that is impossible, or "".
  std::string listen(unsigned port) {
    GError* error = nullptr;
    GInetAddress* loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    GSocketAddress* address = g_inet_socket_address_new(loopback, static_cast<guint16>(port));
    socket_ =
        g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &error);
    if (socket_ != nullptr) g_socket_set_listen_backlog(socket_, kMost);
    const bool listens = socket_ != nullptr && g_socket_bind(socket_, address, TRUE, &error) &&
                         g_socket_listen(socket_, &error);
    g_object_unref(address);
    g_object_unref(loopback);
    if (!listens) {
      std::string why = error->message;
      g_error_free(error);
      return why;
    }
    g_socket_set_blocking(socket_, FALSE);
    watch();
    return "";
  }

 private:
  // From kMany on, each connection ends the oldest one; at kMost none is accepted, since some do
  // not end at once.
  static constexpr size_t kMany = 64, kMost = 128;
  static constexpr guint kPauseMs = 200;

  void watch() {
    source_ = g_socket_create_source(socket_, G_IO_IN, nullptr);
    const GSocketSourceFunc ready = [](GSocket*, GIOCondition, gpointer self) -> gboolean {
      return guard([](const Failure&) {}, G_SOURCE_CONTINUE,
                   [&] { return static_cast<Listener*>(self)->accept(); });
    };
    g_source_set_callback(source_, G_SOURCE_FUNC(ready), this, nullptr);
    g_source_attach(source_, context_);
  }

  // Returns whether to go on.
  gboolean accept() {
    GError* error = nullptr;
    GSocket* socket = g_socket_accept(socket_, nullptr, &error);
    if (socket == nullptr) {
      const bool is_gone = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK);
      g_error_free(error);
      if (is_gone) return G_SOURCE_CONTINUE;
      // The application has no file descriptor or memory left for it now.
      end_oldest();
      return pause();
    }
    if (connections_.size() >= kMany) end_oldest();
    if (connections_.size() < kMost) serve(socket);
    g_object_unref(socket);
    return G_SOURCE_CONTINUE;
  }

  void serve(GSocket* socket) {
    GSocketAddress* here = g_socket_get_local_address(socket, nullptr);
    GSocketAddress* there = g_socket_get_remote_address(socket, nullptr);
    GSocketConnection* connection = g_socket_connection_factory_create_connection(socket);
    connections_.push_back(connection);
    g_object_weak_ref(G_OBJECT(connection), forget, this);
    // A client that has left already has no address.
    if (here != nullptr && there != nullptr) {
      g_object_set_data_full(G_OBJECT(there), kSocketKey, g_object_ref(socket), g_object_unref);
      soup_server_accept_iostream(server_, G_IO_STREAM(connection), here, there, nullptr);
    }
    g_object_unref(connection);
    g_clear_object(&there);
    g_clear_object(&here);
  }

  // Ends the oldest connection that has not been told to end.
  void end_oldest() {
    const auto oldest = std::find_if(
        connections_.begin(), connections_.end(),
        [](GSocketConnection* connection) { return g_socket_connection_is_connected(connection); });
    if (oldest != connections_.end())
      g_socket_shutdown(g_socket_connection_get_socket(*oldest), TRUE, TRUE, nullptr);
  }

  gboolean pause() {
    g_clear_pointer(&source_, g_source_unref);
    g_clear_pointer(&pause_, g_source_unref);
    pause_ = g_timeout_source_new(kPauseMs);
    const GSourceFunc over = [](gpointer self) -> gboolean {
      static_cast<Listener*>(self)->watch();
      return G_SOURCE_REMOVE;
    };
    g_source_set_callback(pause_, over, this, nullptr);
    g_source_attach(pause_, context_);
    return G_SOURCE_REMOVE;
  }

  static void forget(gpointer self, GObject* connection) {
    static_cast<Listener*>(self)->connections_.remove(
        reinterpret_cast<GSocketConnection*>(connection));
  }

  SoupServer* const server_;
  GMainContext* const context_;
  GSocket* socket_ = nullptr;
  GSource *source_ = nullptr, *pause_ = nullptr;
  std::list<GSocketConnection*> connections_;  // not owned, the oldest first
};

}  // namespace

void LocalServer::Stream::watch_client() {
  // A client has nothing more to say: either it has left, or it breaks the rules.
  source = g_socket_create_source(socket_of(message), G_IO_IN, nullptr);
  const GSocketSourceFunc over = [](GSocket*, GIOCondition, gpointer self) -> gboolean {
    static_cast<Stream*>(self)->end();
    return G_SOURCE_REMOVE;
  };
  g_source_set_callback(source, G_SOURCE_FUNC(over), this, nullptr);
  g_source_attach(source, loop->context);
}

void LocalServer::Stream::end() {
  g_socket_shutdown(socket_of(message), TRUE, TRUE, nullptr);
  if (!std::exchange(waits, false)) return;  // libsoup notices when it writes
  soup_message_body_complete(soup_server_message_get_response_body(message));
  soup_server_message_unpause(message);
}

void LocalServer::Stream::pump() {
  const std::optional<std::string> part =
      guard([](const Failure&) {}, std::optional<std::string>(), [&] { return next(); });
  if (!part) {
    waits = true;
    return;
  }
  soup_message_body_append(soup_server_message_get_response_body(message), SOUP_MEMORY_COPY,
                           part->data(), part->size());
  if (std::exchange(waits, false)) soup_server_message_unpause(message);
}

LocalServer::LocalServer(unsigned port, Handlers handlers)
    : handlers_(std::move(handlers)), loop_(std::make_unique<Loop>()) {
  loop_->look = handlers_.look;
  std::promise<std::string> started;
  std::future<std::string> problem = started.get_future();
  thread_ =
      start_thread([this, port, started = std::move(started)]() mutable { serve(port, started); });
  const std::string why = problem.get();
  if (why.empty()) return;
  thread_.join();
  throw Error{ErrorCode::bad_argument, "port " + std::to_string(port) +
                                           " cannot be used on 127.0.0.1: " + why +
                                           "; set port to a free one"};
}

LocalServer::~LocalServer() {
  // Quits from inside the loop, which is then certain to run.
  loop_->call(
      [](gpointer loop) -> gboolean {
        g_main_loop_quit(static_cast<GMainLoop*>(loop));
        return G_SOURCE_REMOVE;
      },
      loop_->loop);
  thread_.join();
}

void LocalServer::wake() {
  if (loop_->woken.exchange(true)) return;
  loop_->call(
      [](gpointer data) -> gboolean {
        auto* loop = static_cast<Loop*>(data);
        loop->woken = false;
        loop->ask();
        return G_SOURCE_REMOVE;
      },
      loop_.get());
}

void LocalServer::begin(SoupServerMessage* message, Reply reply) {
  soup_message_headers_set_encoding(soup_server_message_get_response_headers(message),
                                    SOUP_ENCODING_CHUNKED);
  SoupMessageBody* body = soup_server_message_get_response_body(message);
  soup_message_body_set_accumulate(body, FALSE);
  soup_message_body_append(body, SOUP_MEMORY_COPY, reply.body.data(), reply.body.size());
  Stream* stream = &loop_->streams.emplace_back(loop_.get(), message, std::move(reply.next));
  g_signal_connect(message, "wrote-chunk", G_CALLBACK(+[](SoupServerMessage*, gpointer pumped) {
                     static_cast<Stream*>(pumped)->pump();
                   }),
                   stream);
  g_signal_connect(message, "finished", G_CALLBACK(+[](SoupServerMessage*, gpointer ended) {
                     Loop* of = static_cast<Stream*>(ended)->loop;
                     of->streams.remove_if([&](const Stream& known) { return &known == ended; });
                   }),
                   stream);
  stream->watch_client();
}

void LocalServer::answer(SoupServerMessage* message, const std::string& path) {
  const std::string_view method = soup_server_message_get_method(message);
  const auto refuse = [&](int status, const char* why) {
    respond(message, {status, kText, why, nullptr, ""});
  };
  if (!is_asked_by_address(message))
    return refuse(SOUP_STATUS_FORBIDDEN,
                  "Ask for localhost or an address, not for another name.\n");
  if (method == "GET" || method == "HEAD") {
    Reply reply = handlers_.get(path);
    respond(message, reply);
    if (reply.next != nullptr && method == "GET") begin(message, std::move(reply));
  } else if (method == "DELETE" && handlers_.remove != nullptr) {
    respond(message, handlers_.remove(path));
  } else if (method == "POST" && handlers_.post != nullptr) {
    // Browsers send this type for a page of another origin only if the server allows it.
    SoupMessageHeaders* headers = soup_server_message_get_request_headers(message);
    if (g_strcmp0(soup_message_headers_get_content_type(headers, nullptr), kOffer) != 0)
      return refuse(SOUP_STATUS_UNSUPPORTED_MEDIA_TYPE, "Send an offer as application/sdp.\n");
    if (!has_small_content(message))
      return refuse(SOUP_STATUS_REQUEST_ENTITY_TOO_LARGE,
                    "Send at most 64 KiB, and their number as Content-Length.\n");
    GBytes* content = soup_message_body_flatten(soup_server_message_get_request_body(message));
    gsize size = 0;
    const auto* data = static_cast<const char*>(g_bytes_get_data(content, &size));
    const std::string offer(data != nullptr ? data : "", size);
    g_bytes_unref(content);
    handlers_.post(path, offer,
                   [question = std::make_shared<Question>(message)](const Reply& reply) {
                     if (question->is_over) return;
                     respond(question->message, reply);
                     soup_server_message_unpause(question->message);
                   });
  } else {
    soup_server_message_set_status(message, SOUP_STATUS_METHOD_NOT_ALLOWED, nullptr);
  }
}

void LocalServer::serve(unsigned port, std::promise<std::string>& started) {
  g_main_context_push_thread_default(loop_->context);
  SoupServer* server = soup_server_new(nullptr, nullptr);
  const SoupServerCallback handle = [](SoupServer*, SoupServerMessage* message, const char* path,
                                       GHashTable*, gpointer self) {
    const auto fail = [&](const Failure&) {
      soup_server_message_set_status(message, SOUP_STATUS_INTERNAL_SERVER_ERROR, nullptr);
    };
    guard(fail, false,
          [&] { return static_cast<LocalServer*>(self)->answer(message, path), true; });
  };
  soup_server_add_handler(server, nullptr, handle, this, nullptr);
  // Nobody reads the content of other requests, and it may be without end.
  g_signal_connect(
      server, "request-started", G_CALLBACK(+[](SoupServer*, SoupServerMessage* message, gpointer) {
        soup_message_body_set_accumulate(soup_server_message_get_request_body(message), FALSE);
        g_signal_connect(message, "got-headers", G_CALLBACK(+[](SoupServerMessage* of, gpointer) {
                           soup_message_body_set_accumulate(
                               soup_server_message_get_request_body(of), has_small_content(of));
                         }),
                         nullptr);
      }),
      nullptr);
  GSource* each_second = g_timeout_source_new(kLookMs);
  g_source_set_callback(
      each_second,
      [](gpointer loop) -> gboolean {
        static_cast<Loop*>(loop)->ask();
        return G_SOURCE_CONTINUE;
      },
      loop_.get(), nullptr);
  g_source_attach(each_second, loop_->context);
  std::optional<Listener> listener(std::in_place, server, loop_->context);
  const std::string problem = listener->listen(port);
  started.set_value(problem);
  if (problem.empty()) g_main_loop_run(loop_->loop);
  if (handlers_.end != nullptr)
    guard([](const Failure&) {}, false, [&] { return handlers_.end(), true; });
  g_source_destroy(each_second);
  g_source_unref(each_second);
  for (const Stream& stream : loop_->streams)
    g_signal_handlers_disconnect_by_data(stream.message, const_cast<Stream*>(&stream));
  loop_->streams.clear();
  soup_server_disconnect(server);
  listener.reset();
  g_object_unref(server);
  g_main_context_pop_thread_default(loop_->context);
}

}  // namespace clinfer
