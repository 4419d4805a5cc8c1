// Runs a libsoup server on a main loop of its own.
#include "gst/metrics/server.h"

#include <libsoup/soup.h>

#include <string_view>
#include <utility>

#include "gst/base/guard.h"
#include "kernels/base/error.h"
#include "kernels/base/threads.h"

namespace clinfer {

struct LocalServer::Loop {
  GMainContext* context = g_main_context_new();
  GMainLoop* loop = g_main_loop_new(context, FALSE);
  ~Loop() {
    g_main_loop_unref(loop);
    g_main_context_unref(context);
  }
};

LocalServer::LocalServer(unsigned port, std::function<Reply(const std::string& path)> answer)
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
  GSource* source = g_idle_source_new();
  const GSourceFunc quit = [](gpointer loop) -> gboolean {
    g_main_loop_quit(static_cast<GMainLoop*>(loop));
    return G_SOURCE_REMOVE;
  };
  g_source_set_callback(source, quit, loop_->loop, nullptr);
  g_source_attach(source, loop_->context);
  g_source_unref(source);
  thread_.join();
}

void LocalServer::serve(unsigned port, std::promise<std::string>& started) {
  g_main_context_push_thread_default(loop_->context);
  SoupServer* server = soup_server_new(nullptr, nullptr);
  const SoupServerCallback handle = [](SoupServer*, SoupServerMessage* message, const char* path,
                                       GHashTable*, gpointer data) {
    const std::string_view method = soup_server_message_get_method(message);
    if (method != "GET" && method != "HEAD")
      return soup_server_message_set_status(message, SOUP_STATUS_METHOD_NOT_ALLOWED, nullptr);
    const Reply none{SOUP_STATUS_INTERNAL_SERVER_ERROR, "text/plain", ""};
    const Reply reply = guard([](const Failure&) {}, none,
                              [&] { return static_cast<LocalServer*>(data)->answer_(path); });
    soup_server_message_set_status(message, static_cast<guint>(reply.status), nullptr);
    soup_server_message_set_response(message, reply.type.c_str(), SOUP_MEMORY_COPY,
                                     reply.body.data(), reply.body.size());
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
  soup_server_disconnect(server);
  g_object_unref(server);
  g_main_context_pop_thread_default(loop_->context);
}

}  // namespace clinfer
