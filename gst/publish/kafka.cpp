// Implements Kafka. All replicas confirm each message (acks=all); librdkafka reconnects and
// retries, and keeps the order. The source is the key, so that its messages are in one partition.
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <vector>

#include "gst/base/extents.h"
#include "gst/publish/brokers.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

// Longer than librdkafka takes to reconnect.
constexpr auto kBrokerPatience = std::chrono::seconds(30);

class Kafka final : public Broker {
 public:
  explicit Kafka(const BrokerSettings& settings) : settings_(settings) {
    for (const std::string& one : split(settings.address, ',')) {
      const BrokerAddress address = parse_address(one, 9092);
      const bool encrypted = is_encrypted(settings, address, {"ssl", "kafkas"}, {"kafka"});
      if (!servers_.empty() && encrypted != encrypted_)
        throw Error{ErrorCode::bad_argument,
                    "address: some of the brokers are encrypted and some are not; give all of them "
                    "the same scheme"};
      encrypted_ = encrypted;
      const bool v6 = address.host.find(':') != std::string::npos;
      servers_ += (servers_.empty() ? "" : ",") + (v6 ? "[" + address.host + "]" : address.host) +
                  ":" + std::to_string(address.port);
    }
    const std::string& topic = settings.topic;
    const bool plain = std::all_of(topic.begin(), topic.end(), [](unsigned char c) {
      return std::isalnum(c) || c == '.' || c == '_' || c == '-';
    });
    if (topic.empty() || topic.size() > 249 || !plain)
      throw Error{ErrorCode::bad_argument,
                  "topic " + printable(topic) +
                      ": Kafka takes up to 249 letters, digits and . _ - (the source is part of it "
                      "where the topic has {source})"};
  }
  ~Kafka() override { close(); }
  Kafka(const Kafka&) = delete;
  Kafka& operator=(const Kafka&) = delete;

  void connect() override {
    close();
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    char why[512] = "";
    const auto set = [&](const char* key, const std::string& value) {
      if (rd_kafka_conf_set(conf, key, value.c_str(), why, sizeof why) == RD_KAFKA_CONF_OK) return;
      rd_kafka_conf_destroy(conf);
      throw Error{ErrorCode::bad_argument, std::string("kafka: ") + printable(why)};
    };
    set("bootstrap.servers", servers_);
    set("client.id", "clinfer");
    set("enable.idempotence", "true");  // each message once and in order, even when retried
    set("acks", "all");
    set("message.timeout.ms", "0");  // retries for ever; deliver() gives up
    set("linger.ms", "5");
    set("reconnect.backoff.ms", "100");
    set("reconnect.backoff.max.ms", "5000");
    set("log_level", "0");  // problems are reported on the bus instead
    const bool known = !settings_.user.empty() || !settings_.password.empty();
    set("security.protocol",
        std::string(known ? "sasl_" : "") + (encrypted_ ? "ssl" : "plaintext"));
    if (known) {
      set("sasl.mechanisms", "PLAIN");
      set("sasl.username", settings_.user);
      set("sasl.password", settings_.password);
    }
    if (encrypted_) {
      if (!settings_.ca_file.empty()) set("ssl.ca.location", settings_.ca_file);
      if (!settings_.cert_file.empty()) set("ssl.certificate.location", settings_.cert_file);
      if (!settings_.key_file.empty()) set("ssl.key.location", settings_.key_file);
    }
    rd_kafka_conf_set_opaque(conf, this);
    rd_kafka_conf_set_dr_msg_cb(conf,
                                [](rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
                                  static_cast<Kafka*>(self)->report(*message);
                                });
    // Reports errors of connections, which callers do not get: a metadata request only sees that no
    // broker answers.
    rd_kafka_conf_set_error_cb(conf, [](rd_kafka_t*, int code, const char* why, void* self) {
      static_cast<Kafka*>(self)->note(static_cast<rd_kafka_resp_err_t>(code), why);
    });
    connection_problem_.clear();
    is_cause_ = false;
    producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (producer_ == nullptr) {
      rd_kafka_conf_destroy(conf);
      fail(why);
    }
    // Asks for the topic's partitions, to see whether the broker answers.
    rd_kafka_topic_t* topic = rd_kafka_topic_new(producer_, settings_.topic.c_str(), nullptr);
    if (topic == nullptr) fail(rd_kafka_err2str(rd_kafka_last_error()));
    const rd_kafka_metadata_t* metadata = nullptr;
    const rd_kafka_resp_err_t code = rd_kafka_metadata(producer_, 0, topic, &metadata, 5000);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(topic);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    rd_kafka_poll(producer_, 0);  // calls note()
    fail(connection_problem_.empty() ? rd_kafka_err2str(code) : connection_problem_);
  }

  void deliver(std::span<const Message> messages, const std::function<void(uint64_t)>& delivered,
               const std::atomic<bool>& stop) override {
    reported_.assign(messages.size(), false);
    problem_.clear();
    size_t sent = 0, done = 0;
    auto last_progress = std::chrono::steady_clock::now();
    while (done < messages.size() && !stop) {
      while (sent < messages.size() && produce(*messages[sent].text, sent)) ++sent;
      rd_kafka_poll(producer_, sent < messages.size() ? 10 : 50);
      if (!problem_.empty()) fail(problem_);
      const size_t before = done;
      while (done < messages.size() && reported_[done]) delivered(messages[done++].number);
      const auto now = std::chrono::steady_clock::now();
      if (done != before) last_progress = now;
      if (now - last_progress > kBrokerPatience) fail("no answer");
    }
  }

 private:
  // Returns false if librdkafka's own queue is full.
  bool produce(const std::string& text, size_t index) {
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        producer_, RD_KAFKA_V_TOPIC(settings_.topic.c_str()),
        RD_KAFKA_V_VALUE(const_cast<char*>(text.data()), text.size()),
        RD_KAFKA_V_KEY(const_cast<char*>(settings_.source.data()), settings_.source.size()),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_OPAQUE(reinterpret_cast<void*>(index)),
        RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) return false;
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) fail(rd_kafka_err2str(code));
    return true;
  }

  void report(const rd_kafka_message_t& message) {
    const auto index = reinterpret_cast<size_t>(message._private);
    if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR)
      problem_ = rd_kafka_err2str(message.err);
    else if (index < reported_.size())
      reported_[index] = true;
  }

  // Among several errors, the first one of authentication or encryption is the cause.
  void note(rd_kafka_resp_err_t code, const char* why) {
    const bool cause = code == RD_KAFKA_RESP_ERR__AUTHENTICATION || code == RD_KAFKA_RESP_ERR__SSL;
    if (connection_problem_.empty() || (cause && !is_cause_)) connection_problem_ = why;
    is_cause_ = is_cause_ || cause;
  }

  void close() {
    if (producer_ == nullptr) return;
    // Discards unconfirmed messages, which the next producer sends again.
    rd_kafka_purge(producer_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(producer_, 100);
    rd_kafka_destroy(producer_);
    producer_ = nullptr;
  }

  [[noreturn]] void fail(const std::string& why, SourcePlace place = SourcePlace::here()) {
    close();
    throw Error{ErrorCode::io, "kafka at " + servers_ + ": " + printable(why), place};
  }

  BrokerSettings settings_;
  std::string servers_;
  bool encrypted_ = false;
  rd_kafka_t* producer_ = nullptr;
  std::vector<bool> reported_;  // by message of deliver()
  std::string problem_;
  std::string connection_problem_;  // since connect()
  bool is_cause_ = false;           // true if the problem is one of authentication or encryption
};

}  // namespace

std::unique_ptr<Broker> make_kafka(const BrokerSettings& settings) {
  return std::make_unique<Kafka>(settings);
}

}  // namespace clinfer
