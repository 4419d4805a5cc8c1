// Runs a libsoup server on a main loop of its own.
#include "gst/metrics/server.h"

#include <libsoup/soup.h>

#include <atomic>
#include <list>
#include <string_view>
#include <utility>

#include "gst/base/guard.h"
#include "kernels/base/error.h"
#include "kernels/base/threads.h"

namespace clinfer {

// A reply that goes on.
struct LocalServer::Stream {
  Loop* loop;
  SoupServerMessage* message;
  std::function<std::optional<std::string>()> next;
  bool waits = false;  // the client has taken all parts, and libsoup has paused the message

  // Sends the next part, if there is one.
  void pump();
};

struct LocalServer::Loop {
  GMainContext* context = g_main_context_new();
  GMainLoop* loop = g_main_loop_new(context, FALSE);
  std::list<Stream> streams;  // used on the server's thread only
  std::atomic<bool> woken = false;

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
};

namespace {

std::string host_of(SoupServerMessage* message) {
  const char* text =
      soup_message_headers_get_one(soup_server_message_get_request_headers(message), "Host");
  const std::string host = text != nullptr ? text : "";
  const size_t colon = host.rfind(':');
  return colon == std::string::npos || host.ends_with(']') ? host : host.substr(0, colon);
}

}  // namespace

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

LocalServer::LocalServer(unsigned port, std::function<Reply(const Request&)> answer)
    : answer_(std::move(answer)), loop_(std::make_unique<Loop>()) {
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
        for (Stream& stream : loop->streams)
          if (stream.waits) stream.pump();
        return G_SOURCE_REMOVE;
      },
      loop_.get());
}

void LocalServer::serve(unsigned port, std::promise<std::string>& started) {
  g_main_context_push_thread_default(loop_->context);
  SoupServer* server = soup_server_new(nullptr, nullptr);
  const SoupServerCallback handle = [](SoupServer*, SoupServerMessage* message, const char* path,
                                       GHashTable*, gpointer data) {
    const std::string_view method = soup_server_message_get_method(message);
    if (method != "GET" && method != "HEAD")
      return soup_server_message_set_status(message, SOUP_STATUS_METHOD_NOT_ALLOWED, nullptr);
    auto* self = static_cast<LocalServer*>(data);
    const Reply none{SOUP_STATUS_INTERNAL_SERVER_ERROR, "text/plain", "", nullptr};
    Reply reply = guard([](const Failure&) {}, none,
                        [&] {
                          return self->answer_({path, host_of(message)});
                        });
    soup_server_message_set_status(message, static_cast<guint>(reply.status), nullptr);
    SoupMessageHeaders* headers = soup_server_message_get_response_headers(message);
    // No page of another origin may show what is served here.
    soup_message_headers_append(headers, "Cross-Origin-Resource-Policy", "same-origin");
    soup_message_headers_append(headers, "Cache-Control", "no-store");
    if (reply.next == nullptr || method == "HEAD")
      return soup_server_message_set_response(message, reply.type.c_str(), SOUP_MEMORY_COPY,
                                              reply.body.data(), reply.body.size());
    soup_message_headers_set_content_type(headers, reply.type.c_str(), nullptr);
    soup_message_headers_set_encoding(headers, SOUP_ENCODING_CHUNKED);
    SoupMessageBody* body = soup_server_message_get_response_body(message);
    soup_message_body_set_accumulate(body, FALSE);
    soup_message_body_append(body, SOUP_MEMORY_COPY, reply.body.data(), reply.body.size());
    Loop* loop = self->loop_.get();
    loop->streams.push_back({loop, message, std::move(reply.next)});
    Stream* stream = &loop->streams.back();
    g_signal_connect(message, "wrote-chunk", G_CALLBACK(+[](SoupServerMessage*, gpointer pumped) {
                       static_cast<Stream*>(pumped)->pump();
                     }),
                     stream);
    g_signal_connect(message, "finished", G_CALLBACK(+[](SoupServerMessage*, gpointer ended) {
                       Loop* of = static_cast<Stream*>(ended)->loop;
                       of->streams.remove_if([&](const Stream& known) { return &known == ended; });
                     }),
                     stream);
  };
  soup_server_add_handler(server, nullptr, handle, this, nullptr);
  GError* error = nullptr;
  if (soup_server_listen_local(server, port, SOUP_SERVER_LISTEN_IPV4_ONLY, &error)) {
    started.set_value("");
    g_main_loop_run(loop_->loop);
  } else {
    started.set_value(error->message);
    g_error_free(error);
  }
  for (const Stream& stream : loop_->streams)
    g_signal_handlers_disconnect_by_data(stream.message, const_cast<Stream*>(&stream));
  loop_->streams.clear();
  soup_server_disconnect(server);
  g_object_unref(server);
  g_main_context_pop_thread_default(loop_->context);
}

}  // namespace clinfer
