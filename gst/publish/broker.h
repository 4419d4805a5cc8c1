// A connection to a message broker, one implementation for each protocol. Each one's library
// is optional at build.
#pragma once

#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "gst/publish/message_queue.h"

namespace clinfer {

enum class BrokerKind { mqtt, kafka, redis };

struct BrokerSettings {
  BrokerKind kind = BrokerKind::mqtt;
  std::string address;  // as the user has it
  std::string topic;    // of MQTT and Kafka, a stream of Redis; complete
  std::string source;   // the key of Kafka's messages, so that those of a source stay in order
  std::string user, password;
  std::string ca_file, cert_file, key_file;
};

// A connection to a broker, for one thread.
class Broker {
 public:
  virtual ~Broker() = default;
  // Throws Error{io} when the broker does not answer or refuses; then it may be called again.
  virtual void connect() = 0;
  // Sends messages in this order and returns when the broker has them all, or `stop` is set. Tells
  // the number of each that it has, in this order. Throws Error{io} when the connection is lost.
  virtual void deliver(std::span<const Message> messages,
                       const std::function<void(uint64_t)>& delivered,
                       const std::atomic<bool>& stop) = 0;
};

// Throws Error{unsupported} when the library for it was absent at build, Error{bad_argument} when
// the address or the topic is none for this kind, or a file of ca_file, cert_file and key_file cannot
// be used.
std::unique_ptr<Broker> make_broker(const BrokerSettings& settings);

// "mqtt, kafka": those that were built in.
std::string brokers_built_in();

// The parts of "scheme://host:port"; the scheme may be absent. A password in an address, which
// every user of the machine could read, is refused, and so is what does not fit.
struct BrokerAddress {
  std::string scheme, host;
  int port = 0;
};
BrokerAddress parse_address(const std::string& address, int usual_port);

// Returns whether the connection is encrypted: by the address's scheme, which is one of `secure` or
// of `plain`, or, without a scheme, because a file for it is set. Throws Error{bad_argument} when
// the scheme is another one, or a plain one although such a file is set.
bool is_encrypted(const BrokerSettings& settings, const BrokerAddress& address,
                  std::initializer_list<const char*> secure,
                  std::initializer_list<const char*> plain);

// Reads "username=NAME" and "password=SECRET" lines. others_read: whether other users can read it.
struct Credentials {
  std::string user, password;
  bool others_read = false;
};
Credentials read_credentials(const std::string& path);

}  // namespace clinfer
