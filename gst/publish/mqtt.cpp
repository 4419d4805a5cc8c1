// Implements MQTT 3.1.1 with QoS 1: the broker confirms each message.
#include <MQTTClient.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "gst/base/extents.h"
#include "gst/publish/brokers.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

constexpr int kQos = 1, kMostInFlight = 200;
constexpr int kSeconds = 3;  // for connecting
// Waits for a confirmation in slices, so that stopping takes no longer than one.
constexpr unsigned long kSlice = 250;  // in milliseconds
constexpr int kMostSlices = 40;

// Returns a text for the broker's answer to CONNECT (MQTT 3.1.1, 3.2.2.3), which
// MQTTClient_strerror() does not know.
const char* refusal(int code) {
  switch (code) {
    case 1:
      return "the broker does not speak MQTT 3.1.1";
    case 2:
      return "the broker refuses the client's name";
    case 3:
      return "the broker is not available";
    case 4:
      return "the broker refuses the user name or password (credentials-file)";
    case 5:
      return "not authorised: the broker refuses the user or password (credentials-file)";
    default:
      return nullptr;
  }
}

// Returns OpenSSL's reason in "...:error:0A000086:SSL routines::certificate verify
// failed:file:line:".
std::string reason_in(const std::string& line) {
  const std::vector<std::string> parts = split(line, ':');
  for (size_t i = 0; i + 4 < parts.size(); ++i)
    if (parts[i] == "error") return parts[i + 4];
  return line;
}

class Mqtt final : public Broker {
 public:
  explicit Mqtt(const BrokerSettings& settings) : settings_(settings) {
    const BrokerAddress address = parse_address(settings.address, 0);
    encrypted_ = is_encrypted(settings, address, {"mqtts", "ssl"}, {"mqtt", "tcp"});
    if (settings.topic.find_first_of(std::string("+#\0", 3)) != std::string::npos ||
        settings.topic.size() > 65535)
      throw Error{ErrorCode::bad_argument, "topic " + printable(settings.topic) +
                                               " has + or #, which are not for topics of messages"};
    const int port = address.port != 0 ? address.port : encrypted_ ? 8883 : 1883;
    const bool v6 = address.host.find(':') != std::string::npos;
    uri_ = std::string(encrypted_ ? "ssl://" : "tcp://") +
           (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(port);
    // Makes a unique name, because two clients of one name would disconnect each other.
    std::random_device random;
    const std::string id = "clinfer-" + std::to_string(getpid()) + "-" + std::to_string(random());
    if (MQTTClient_create(&client_, uri_.c_str(), id.c_str(), MQTTCLIENT_PERSISTENCE_NONE,
                          nullptr) != MQTTCLIENT_SUCCESS)
      throw Error{ErrorCode::io, "mqtt: no client for " + uri_};
  }
  ~Mqtt() override {
    MQTTClient_disconnect(client_, 100);
    MQTTClient_destroy(&client_);
  }
  Mqtt(const Mqtt&) = delete;
  Mqtt& operator=(const Mqtt&) = delete;

  void connect() override {
    if (MQTTClient_isConnected(client_)) MQTTClient_disconnect(client_, 0);
    MQTTClient_connectOptions options = MQTTClient_connectOptions_initializer;
    MQTTClient_SSLOptions security = MQTTClient_SSLOptions_initializer;
    options.keepAliveInterval = 20;
    options.cleansession = 1;
    options.connectTimeout = kSeconds;
    options.maxInflightMessages = kMostInFlight;
    options.reliable = 0;
    if (!settings_.user.empty()) options.username = settings_.user.c_str();
    if (!settings_.password.empty()) options.password = settings_.password.c_str();
    if (encrypted_) {
      security.verify = 1;
      security.enableServerCertAuth = 1;
      const auto file = [](const std::string& path) {
        return path.empty() ? nullptr : path.c_str();
      };
      security.trustStore = file(settings_.ca_file);
      security.keyStore = file(settings_.cert_file);
      security.privateKey = file(settings_.key_file);
      security.ssl_error_context = &encryption_problem_;
      security.ssl_error_cb = [](const char* text, size_t size, void* problem) {
        // Keeps the first error, which is the cause.
        auto& known = *static_cast<std::string*>(problem);
        if (known.empty()) known = reason_in(std::string(text, size));
        return 1;
      };
      options.ssl = &security;
    }
    encryption_problem_.clear();
    if (const int code = MQTTClient_connect(client_, &options); code != MQTTCLIENT_SUCCESS)
      fail(code);
  }

  void deliver(std::span<const Message> messages, const std::function<void(uint64_t)>& delivered,
               const std::atomic<bool>& stop) override {
    // Keeps a window of messages in flight, and waits for the oldest one.
    std::vector<MQTTClient_deliveryToken> tokens;
    int slices = 0;
    for (size_t sent = 0, done = 0; done < messages.size() && !stop;) {
      if (sent < messages.size() && sent - done < kMostInFlight) {
        const std::string& text = *messages[sent].text;
        MQTTClient_deliveryToken token = 0;
        if (const int code =
                MQTTClient_publish(client_, settings_.topic.c_str(), static_cast<int>(text.size()),
                                   const_cast<char*>(text.data()), kQos, 0, &token);
            code != MQTTCLIENT_SUCCESS)
          fail(code);
        tokens.push_back(token);
        ++sent;
        continue;
      }
      const int code = MQTTClient_waitForCompletion(client_, tokens[done], kSlice);
      // Checks the connection, because the library forgets the messages of a lost connection and
      // then calls them completed.
      if (code == MQTTCLIENT_SUCCESS && MQTTClient_isConnected(client_)) {
        delivered(messages[done++].number);
        slices = 0;
      } else if (!MQTTClient_isConnected(client_) || ++slices == kMostSlices) {
        fail(code == MQTTCLIENT_SUCCESS ? MQTTCLIENT_DISCONNECTED : code);
      }
    }
  }

 private:
  [[noreturn]] void fail(int code, SourcePlace place = SourcePlace::here()) const {
    const char* why = refusal(code);
    if (why == nullptr) why = MQTTClient_strerror(code);
    std::string text = why != nullptr ? printable(why) : "error " + std::to_string(code);
    if (code == MQTTCLIENT_FAILURE) {
      if (!encryption_problem_.empty())
        text = "TLS: " + printable(encryption_problem_);
      else if (encrypted_)
        text =
            "no TLS connection: nothing answers, the broker's certificate does not name this host, "
            "or the broker refuses cert-file and key-file, or misses them";
      else
        text = "no answer in MQTT";
    }
    throw Error{ErrorCode::io, "mqtt at " + uri_ + ": " + text, place};
  }

  BrokerSettings settings_;
  bool encrypted_ = false;
  std::string uri_;
  std::string encryption_problem_;  // of the last connect()
  MQTTClient client_ = nullptr;
};

}  // namespace

std::unique_ptr<Broker> make_mqtt(const BrokerSettings& settings) {
  return std::make_unique<Mqtt>(settings);
}

}  // namespace clinfer
