// Redis: each message is an entry of a stream (XADD), in the field "json".
#include <hiredis/hiredis.h>

#include <memory>

#include "gst/publish/brokers.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

constexpr timeval kPatience{3, 0};

struct Free {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, Free>;

class Redis final : public Broker {
 public:
  explicit Redis(const BrokerSettings& settings) : settings_(settings) {
    const BrokerAddress address = parse_address(settings.address, 6379);
    if (!address.scheme.empty() && address.scheme != "redis" && address.scheme != "tcp")
      throw Error{ErrorCode::bad_argument, "address: " + printable(address.scheme) +
                                               ":// is not known for redis; use redis://HOST:PORT"};
    if (!settings.ca_file.empty() || !settings.cert_file.empty() || !settings.key_file.empty())
      throw Error{
          ErrorCode::unsupported,
          "method=redis has no TLS: unset ca-file, cert-file and key-file, and let a tunnel "
          "(stunnel) encrypt"};
    host_ = address.host;
    port_ = address.port;
  }

  void connect() override {
    context_.reset(redisConnectWithTimeout(host_.c_str(), port_, kPatience));
    if (context_ == nullptr) fail("no memory");
    if (context_->err != 0) fail(context_->errstr);
    redisSetTimeout(context_.get(), kPatience);
    if (!settings_.password.empty()) {
      const bool named = !settings_.user.empty();
      std::vector<const char*> words{"AUTH"};
      std::vector<size_t> sizes{4};
      if (named) words.push_back(settings_.user.c_str()), sizes.push_back(settings_.user.size());
      words.push_back(settings_.password.c_str());
      sizes.push_back(settings_.password.size());
      const Reply reply(static_cast<redisReply*>(redisCommandArgv(
          context_.get(), static_cast<int>(words.size()), words.data(), sizes.data())));
      check(reply.get());
    }
    const Reply reply(static_cast<redisReply*>(redisCommand(context_.get(), "PING")));
    check(reply.get());
  }

  void deliver(std::span<const Message> messages, const std::function<void(uint64_t)>& delivered,
               const std::atomic<bool>&) override {
    for (const Message& message : messages) {
      const char* words[] = {"XADD", settings_.topic.c_str(), "*", "json", message.text->data()};
      const size_t sizes[] = {4, settings_.topic.size(), 1, 4, message.text->size()};
      redisAppendCommandArgv(context_.get(), 5, words, sizes);
    }
    for (const Message& message : messages) {
      void* answer = nullptr;
      if (redisGetReply(context_.get(), &answer) != REDIS_OK) fail(context_->errstr);
      const Reply reply(static_cast<redisReply*>(answer));
      check(reply.get());
      delivered(message.number);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& why) {
    const std::string what =
        "redis at " + host_ + ":" + std::to_string(port_) + ": " + printable(why);
    context_.reset();
    throw Error{ErrorCode::io, what};
  }
  void check(const redisReply* reply) {
    if (reply == nullptr) fail(context_->errstr);
    if (reply->type == REDIS_REPLY_ERROR) fail(std::string(reply->str, reply->len));
  }

  BrokerSettings settings_;
  std::string host_;
  int port_ = 0;
  std::unique_ptr<redisContext, Free> context_;
};

}  // namespace

std::unique_ptr<Broker> make_redis(const BrokerSettings& settings) {
  return std::make_unique<Redis>(settings);
}

}  // namespace clinfer
