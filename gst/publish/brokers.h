// Makers of the brokers that may be built in; make_broker() chooses among them.
#pragma once

#include "gst/publish/broker.h"

namespace clinfer {

std::unique_ptr<Broker> make_mqtt(const BrokerSettings& settings);
std::unique_ptr<Broker> make_kafka(const BrokerSettings& settings);
std::unique_ptr<Broker> make_redis(const BrokerSettings& settings);

}  // namespace clinfer
