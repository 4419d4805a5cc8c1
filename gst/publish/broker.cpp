// Parses addresses and credentials, and makes brokers.
#include "gst/publish/broker.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>

#include "engine/heads/files/beside_readers.h"
#include "gst/base/extents.h"
#include "gst/publish/brokers.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

const char* name_of(BrokerKind kind) {
  return kind == BrokerKind::mqtt ? "mqtt" : kind == BrokerKind::kafka ? "kafka" : "redis";
}

[[noreturn]] void refuse_address(const std::string& why, SourcePlace place = SourcePlace::here()) {
  throw Error{ErrorCode::bad_argument, "address: " + why, place};
}

// Checks a PEM file here, because the libraries only tell that something failed, and do so at each
// connection.
void check_pem(const char* property, const std::string& path) {
  if (path.empty()) return;
  std::string text;
  try {
    text = file_text(path);
  } catch (const Error& error) {
    throw Error{error.code(), std::string(property) + " " + path + ": " + error.what(),
                error.place()};
  }
  if (text.find("-----BEGIN ") == std::string::npos)
    throw Error{ErrorCode::bad_argument, std::string(property) + " " + path +
                                             ": is no PEM file (it has no -----BEGIN line)"};
}

void check_files(const BrokerSettings& settings) {
  check_pem("ca-file", settings.ca_file);
  check_pem("cert-file", settings.cert_file);
  check_pem("key-file", settings.key_file);
  if (settings.cert_file.empty() != settings.key_file.empty())
    throw Error{ErrorCode::bad_argument,
                settings.cert_file.empty()
                    ? "key-file is set, but cert-file is not: a key is for its certificate"
                    : "cert-file is set, but key-file is not: set it to the file with the "
                      "certificate's private key"};
}

}  // namespace

std::unique_ptr<Broker> make_broker([[maybe_unused]] const BrokerSettings& settings) {
  check_files(settings);
#ifdef CLINFER_HAVE_MQTT
  if (settings.kind == BrokerKind::mqtt) return make_mqtt(settings);
#endif
#ifdef CLINFER_HAVE_KAFKA
  if (settings.kind == BrokerKind::kafka) return make_kafka(settings);
#endif
#ifdef CLINFER_HAVE_REDIS
  if (settings.kind == BrokerKind::redis) return make_redis(settings);
#endif
  const std::string built_in = brokers_built_in();
  throw Error{ErrorCode::unsupported,
              std::string("method=") + name_of(settings.kind) + " is not built in (built in: file" +
                  (built_in.empty() ? "" : ", " + built_in) +
                  "); install libpaho-mqtt-dev, librdkafka-dev or libhiredis-dev and build again"};
}

std::string brokers_built_in() {
  std::string names;
#ifdef CLINFER_HAVE_MQTT
  names += ", mqtt";
#endif
#ifdef CLINFER_HAVE_KAFKA
  names += ", kafka";
#endif
#ifdef CLINFER_HAVE_REDIS
  names += ", redis";
#endif
  return names.empty() ? names : names.substr(2);
}

BrokerAddress parse_address(const std::string& address, int usual_port) {
  BrokerAddress parts;
  std::string rest = address;
  if (const size_t end = rest.find("://"); end != std::string::npos) {
    parts.scheme = rest.substr(0, end);
    rest = rest.substr(end + 3);
  }
  if (rest.find('@') != std::string::npos)
    refuse_address(
        "user and password in an address can be read by others; write them into a file and name it "
        "in credentials-file");
  if (!rest.empty() && rest.back() == '/') rest.pop_back();
  parts.port = usual_port;
  // In [::1]:1883 the last colon separates the port from an IPv6 address.
  const size_t bracket = rest.rfind(']');
  const size_t colon = rest.rfind(':');
  if (colon != std::string::npos && (bracket == std::string::npos || colon > bracket)) {
    const std::optional<double> port = number_in(rest.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535 || *port != static_cast<int>(*port))
      refuse_address(printable(rest) + " has no port from 1 to 65535 after its colon");
    parts.port = static_cast<int>(*port);
    rest = rest.substr(0, colon);
  }
  if (rest.size() > 2 && rest.front() == '[' && rest.back() == ']')
    rest = rest.substr(1, rest.size() - 2);
  const bool plain = std::all_of(rest.begin(), rest.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
  });
  if (rest.empty() || rest.size() > 255 || !plain)
    refuse_address("\"" + printable(address) + "\" is no HOST, HOST:PORT or SCHEME://HOST:PORT");
  parts.host = rest;
  return parts;
}

bool is_encrypted(const BrokerSettings& settings, const BrokerAddress& address,
                  std::initializer_list<const char*> secure,
                  std::initializer_list<const char*> plain) {
  const bool wanted = !settings.ca_file.empty() || !settings.cert_file.empty();
  const auto is_one = [&](const char* scheme) { return address.scheme == scheme; };
  if (address.scheme.empty()) return wanted;
  if (std::any_of(secure.begin(), secure.end(), is_one)) return true;
  const std::string use = std::string("use ") + *secure.begin() + "://HOST:PORT";
  if (std::none_of(plain.begin(), plain.end(), is_one))
    refuse_address(printable(address.scheme) + ":// is not known for method=" +
                   name_of(settings.kind) + "; " + use + " or " + *plain.begin() + "://HOST:PORT");
  if (wanted)
    refuse_address(printable(address.scheme) +
                   ":// is not encrypted, but ca-file or cert-file is set; " + use);
  return false;
}

Credentials read_credentials(const std::string& path) {
  Credentials credentials;
  const auto refuse = [&](const std::string& why) {
    throw Error{ErrorCode::bad_argument, "credentials-file " + path + ": " + why};
  };
  struct stat facts {};
  if (stat(path.c_str(), &facts) == 0) {
    if (!S_ISREG(facts.st_mode)) refuse("is no regular file");
    if (facts.st_size > 65536) refuse("is too large for a user's name and password");
    credentials.others_read = (facts.st_mode & (S_IRGRP | S_IROTH)) != 0;
  }
  std::string text;
  try {
    text = file_text(path);
  } catch (const Error& error) {
    throw Error{error.code(), "credentials-file " + path + ": " + error.what(), error.place()};
  }
  for (const std::string& line : split(text, '\n')) {
    std::string content = line;
    if (!content.empty() && content.back() == '\r') content.pop_back();
    if (content.empty() || content.front() == '#') continue;
    const size_t equals = content.find('=');
    const std::string key = content.substr(0, std::min(equals, content.size()));
    // Does not repeat other contents in the message, since they may be a secret.
    if (equals == std::string::npos || (key != "username" && key != "password"))
      refuse("takes lines of username=NAME and password=SECRET");
    (key == "username" ? credentials.user : credentials.password) = content.substr(equals + 1);
  }
  return credentials;
}

}  // namespace clinfer
