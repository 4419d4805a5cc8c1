// Makes command queues.
#include "engine/ocl/queue.h"

#include <map>
#include <mutex>

namespace clinfer::ocl {

namespace {

bool contains_word(const std::string& list, const std::string& word) {
  return (" " + list + " ").find(" " + word + " ") != std::string::npos;
}

// Returns the bit of a hint. Both extensions use 1, 2 and 4 for high, medium and low.
cl_queue_properties bit_of(QueueHint hint) {
  return hint == QueueHint::high     ? CL_QUEUE_PRIORITY_HIGH_KHR
         : hint == QueueHint::medium ? CL_QUEUE_PRIORITY_MED_KHR
                                     : CL_QUEUE_PRIORITY_LOW_KHR;
}

}  // namespace

QueueHints applicable_hints(const QueueHints& wanted, const std::string& device_name,
                            const std::string& extensions, std::vector<std::string>& warnings) {
  const auto checked = [&](QueueHint hint, const char* name, const char* extension) {
    if (hint == QueueHint::automatic || contains_word(extensions, extension)) return hint;
    warnings.push_back(std::string(name) + " has no effect on the queues: " + device_name +
                       " does not offer " + extension);
    return QueueHint::automatic;
  };
  return {checked(wanted.priority, "priority", "cl_khr_priority_hints"),
          checked(wanted.throttle, "throttle", "cl_khr_throttle_hints")};
}

std::vector<cl_queue_properties> queue_properties(const QueueHints& hints, bool profiling) {
  std::vector<cl_queue_properties> properties;
  const auto add = [&](cl_queue_properties name, cl_queue_properties value) {
    properties.push_back(name);
    properties.push_back(value);
  };
  if (profiling) add(CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE);
  if (hints.priority != QueueHint::automatic) add(CL_QUEUE_PRIORITY_KHR, bit_of(hints.priority));
  if (hints.throttle != QueueHint::automatic) add(CL_QUEUE_THROTTLE_KHR, bit_of(hints.throttle));
  properties.push_back(0);
  return properties;
}

cl::CommandQueue create_queue(const Context& context, const cl::Device& device,
                              const QueueHints& hints, bool profiling) {
  // Avoids the call that takes hints where none is set: drivers of OpenCL 1.2 lack it, unless they
  // support hints.
  if (hints.priority == QueueHint::automatic && hints.throttle == QueueHint::automatic)
    return cl::CommandQueue(context.context, device, profiling ? CL_QUEUE_PROFILING_ENABLE : 0);
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = clCreateCommandQueueWithProperties(
      context.context(), device(), queue_properties(hints, profiling).data(), &code);
  if (code != CL_SUCCESS) throw cl::Error(code, "clCreateCommandQueueWithProperties");
  return cl::CommandQueue(queue);
}

std::shared_ptr<const ExclusiveQueue> ExclusiveQueue::of(const DisplayMatch& match,
                                                         const QueueHints& hints) {
  static std::mutex mutex;
  // By device id and VA display.
  static auto& all =
      *new std::map<std::pair<std::string, void*>, std::weak_ptr<const ExclusiveQueue>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const ExclusiveQueue>& known = all[{match.device->info.id, match.display}];
  if (auto queue = known.lock()) return queue;
  auto made = std::make_shared<ExclusiveQueue>();
  made->context = create_context(match);
  made->queue = create_queue(*made->context, match.device->device, hints, true);
  made->hints = hints;
  known = made;
  return made;
}

}  // namespace clinfer::ocl
