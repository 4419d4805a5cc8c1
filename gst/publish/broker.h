// A connection to a message broker, with one implementation for each protocol. The library for each
// is optional at build time.
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
  std::string address;  // as the user wrote it
  std::string topic;    // topic of MQTT and Kafka, or stream of Redis; complete
  std::string source;   // key of Kafka's messages, which keeps those of a source in order
  std::string user, password;
  std::string ca_file, cert_file, key_file;
};

// A connection to a broker. Not thread-safe.
class Broker {
 public:
  virtual ~Broker() = default;
  // Connects. Throws Error{io} if the broker does not answer or refuses; it may then be called
  // again.
  virtual void connect() = 0;
  // Sends messages in order. Returns when the broker has confirmed all, or `stop` is set. Calls
  // `delivered` with the number of each confirmed message, in order. Throws Error{io} if the
  // connection is lost.
  virtual void deliver(std::span<const Message> messages,
                       const std::function<void(uint64_t)>& delivered,
                       const std::atomic<bool>& stop) = 0;
};

// Makes the broker. Throws Error{unsupported} if its library was missing at build time, and
// Error{bad_argument} if the address or the topic does not fit this kind, or a file in ca_file,
// cert_file or key_file cannot be used.
std::unique_ptr<Broker> make_broker(const BrokerSettings& settings);

// Returns the brokers that were built in: "mqtt, kafka".
std::string brokers_built_in();

// The parts of "scheme://host:port"; the scheme is optional. Parsing refuses a password in an
// address, which every user of the machine could read, and everything that does not fit.
struct BrokerAddress {
  std::string scheme, host;
  int port = 0;
};
BrokerAddress parse_address(const std::string& address, int usual_port);

// Returns whether the connection is encrypted: according to the address's scheme, which must be in
// `secure` or `plain`, or, without a scheme, because a file for encryption is set. Throws
// Error{bad_argument} for another scheme, and for a plain one if such a file is set.
bool is_encrypted(const BrokerSettings& settings, const BrokerAddress& address,
                  std::initializer_list<const char*> secure,
                  std::initializer_list<const char*> plain);

// The name and the password from a file's "username=NAME" and "password=SECRET" lines.
// `others_read`: other users can read the file.
struct Credentials {
  std::string user, password;
  bool others_read = false;
};
Credentials read_credentials(const std::string& path);

}  // namespace clinfer
