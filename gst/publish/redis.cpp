// Implements Redis: each message is an entry of a stream (XADD), in the field "json".
#include <hiredis/hiredis.h>
#ifdef CLINFER_HAVE_REDIS_TLS
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#endif

#include <memory>

#include "gst/publish/brokers.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

constexpr timeval kServerPatience{3, 0};

struct Free {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, Free>;

class Redis final : public Broker {
 public:
  explicit Redis(const BrokerSettings& settings) : settings_(settings) {
    const BrokerAddress address = parse_address(settings.address, 6379);
    encrypted_ = is_encrypted(settings, address, {"rediss"}, {"redis", "tcp"});
#ifndef CLINFER_HAVE_REDIS_TLS
    if (encrypted_)
      throw Error{ErrorCode::unsupported,
                  "method=redis is built without TLS, which hiredis has from 1.0 on; use redis:// "
                  "without ca-file and cert-file, and let a tunnel (stunnel) encrypt"};
#endif
    host_ = address.host;
    port_ = address.port;
  }

  void connect() override {
    context_.reset(redisConnectWithTimeout(host_.c_str(), port_, kServerPatience));
    if (context_ == nullptr) fail("no memory");
    if (context_->err != 0) fail(context_->errstr);
    redisSetTimeout(context_.get(), kServerPatience);
    if (encrypted_) encrypt();
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
  void encrypt() {
#ifdef CLINFER_HAVE_REDIS_TLS
    // Makes an OpenSSL context of its own, because hiredis' context does not compare the
    // certificate's name with the host.
    if (tls_ == nullptr) {
      redisInitOpenSSL();
      tls_.reset(SSL_CTX_new(TLS_client_method()));
      const auto must = [&](int done) {
        if (done == 1) return;
        tls_.reset();
        fail_tls();
      };
      must(tls_ != nullptr);
      SSL_CTX_set_verify(tls_.get(), SSL_VERIFY_PEER, nullptr);
      must(settings_.ca_file.empty()
               ? SSL_CTX_set_default_verify_paths(tls_.get())
               : SSL_CTX_load_verify_locations(tls_.get(), settings_.ca_file.c_str(), nullptr));
      if (!settings_.cert_file.empty()) {
        must(SSL_CTX_use_certificate_chain_file(tls_.get(), settings_.cert_file.c_str()));
        must(SSL_CTX_use_PrivateKey_file(tls_.get(), settings_.key_file.c_str(), SSL_FILETYPE_PEM));
      }
    }
    SSL* const session = SSL_new(tls_.get());
    if (session == nullptr) fail_tls();
    X509_VERIFY_PARAM* const checks = SSL_get0_param(session);
    if (X509_VERIFY_PARAM_set1_ip_asc(checks, host_.c_str()) != 1) {
      X509_VERIFY_PARAM_set1_host(checks, host_.c_str(), host_.size());
      SSL_set_tlsext_host_name(session, host_.c_str());
    }
    if (redisInitiateSSL(context_.get(), session) != REDIS_OK)  // owns the session on success
      fail(std::string("TLS: ") + context_->errstr);
#endif
  }

#ifdef CLINFER_HAVE_REDIS_TLS
  [[noreturn]] void fail_tls(SourcePlace place = SourcePlace::here()) {
    const char* const why = ERR_reason_error_string(ERR_get_error());
    fail(std::string("TLS: ") + (why != nullptr ? why : "OpenSSL cannot be used"), place);
  }
#endif

  [[noreturn]] void fail(const std::string& why, SourcePlace place = SourcePlace::here()) {
    const std::string what =
        "redis at " + host_ + ":" + std::to_string(port_) + ": " + printable(why);
    context_.reset();
    throw Error{ErrorCode::io, what, place};
  }
  void check(const redisReply* reply) {
    if (reply == nullptr) fail(context_->errstr);
    if (reply->type == REDIS_REPLY_ERROR) fail(std::string(reply->str, reply->len));
  }

  BrokerSettings settings_;
  std::string host_;
  int port_ = 0;
  bool encrypted_ = false;
#ifdef CLINFER_HAVE_REDIS_TLS
  struct FreeTls {
    void operator()(SSL_CTX* tls) const { SSL_CTX_free(tls); }
  };
  std::unique_ptr<SSL_CTX, FreeTls> tls_;
#endif
  std::unique_ptr<redisContext, Free> context_;
};

}  // namespace

std::unique_ptr<Broker> make_redis(const BrokerSettings& settings) {
  return std::make_unique<Redis>(settings);
}

}  // namespace clinfer
