// Shows the order that GLib's locks, queues and threads make to the thread sanitizer. GLib builds them on futexes and is not
// instrumented, so without this file each state that one thread fills and another reads under a GLib lock would be reported as a
// race. The functions replace GLib's in test programs built with the thread sanitizer: each calls GLib's own and adds what GLib
// documents, that everything before an unlock (push, start) happens before the next lock (pop, thread function) returns.
#include <dlfcn.h>
#include <glib.h>
#include <sanitizer/tsan_interface.h>

namespace {

// The function that this one stands in front of.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

#define NEXT(name) static const auto name##_next = next<decltype(name)>(#name)

void acquire(void* lock) { __tsan_acquire(lock); }
void release(void* lock) { __tsan_release(lock); }

// A thread's function, which begins after g_thread_new was called and ends before g_thread_join returns.
struct Start {
  GThreadFunc function;
  gpointer data;
};

gpointer run(gpointer given) {
  acquire(given);
  const Start start = *static_cast<Start*>(given);
  delete static_cast<Start*>(given);
  gpointer result = start.function(start.data);
  release(g_thread_self());
  return result;
}

}  // namespace

#define LOCK(name, Type)  \
  void name(Type* lock) { \
    NEXT(name);           \
    name##_next(lock);    \
    acquire(lock);        \
  }
#define TRY_LOCK(name, Type)                   \
  gboolean name(Type* lock) {                  \
    NEXT(name);                                \
    const gboolean locked = name##_next(lock); \
    if (locked) acquire(lock);                 \
    return locked;                             \
  }
#define UNLOCK(name, Type) \
  void name(Type* lock) {  \
    NEXT(name);            \
    release(lock);         \
    name##_next(lock);     \
  }

extern "C" {

LOCK(g_mutex_lock, GMutex)
TRY_LOCK(g_mutex_trylock, GMutex)
UNLOCK(g_mutex_unlock, GMutex)

LOCK(g_rec_mutex_lock, GRecMutex)
TRY_LOCK(g_rec_mutex_trylock, GRecMutex)
UNLOCK(g_rec_mutex_unlock, GRecMutex)

LOCK(g_rw_lock_writer_lock, GRWLock)
TRY_LOCK(g_rw_lock_writer_trylock, GRWLock)
UNLOCK(g_rw_lock_writer_unlock, GRWLock)
LOCK(g_rw_lock_reader_lock, GRWLock)
TRY_LOCK(g_rw_lock_reader_trylock, GRWLock)
UNLOCK(g_rw_lock_reader_unlock, GRWLock)

void g_cond_wait(GCond* condition, GMutex* mutex) {
  NEXT(g_cond_wait);
  release(mutex);
  g_cond_wait_next(condition, mutex);
  acquire(mutex);
}

gboolean g_cond_wait_until(GCond* condition, GMutex* mutex, gint64 end) {
  NEXT(g_cond_wait_until);
  release(mutex);
  const gboolean signalled = g_cond_wait_until_next(condition, mutex, end);
  acquire(mutex);
  return signalled;
}

void g_async_queue_push(GAsyncQueue* queue, gpointer data) {
  NEXT(g_async_queue_push);
  release(queue);
  g_async_queue_push_next(queue, data);
}

gpointer g_async_queue_pop(GAsyncQueue* queue) {
  NEXT(g_async_queue_pop);
  gpointer data = g_async_queue_pop_next(queue);
  acquire(queue);
  return data;
}

gpointer g_async_queue_try_pop(GAsyncQueue* queue) {
  NEXT(g_async_queue_try_pop);
  gpointer data = g_async_queue_try_pop_next(queue);
  acquire(queue);
  return data;
}

gpointer g_async_queue_timeout_pop(GAsyncQueue* queue, guint64 microseconds) {
  NEXT(g_async_queue_timeout_pop);
  gpointer data = g_async_queue_timeout_pop_next(queue, microseconds);
  acquire(queue);
  return data;
}

gint g_async_queue_length(GAsyncQueue* queue) {
  NEXT(g_async_queue_length);
  const gint length = g_async_queue_length_next(queue);
  acquire(queue);
  return length;
}

void g_async_queue_lock(GAsyncQueue* queue) {
  NEXT(g_async_queue_lock);
  g_async_queue_lock_next(queue);
  acquire(queue);
}

void g_async_queue_unlock(GAsyncQueue* queue) {
  NEXT(g_async_queue_unlock);
  release(queue);
  g_async_queue_unlock_next(queue);
}

GThread* g_thread_new(const gchar* name, GThreadFunc function, gpointer data) {
  NEXT(g_thread_new);
  auto* start = new Start{function, data};
  release(start);
  return g_thread_new_next(name, run, start);
}

GThread* g_thread_try_new(const gchar* name, GThreadFunc function, gpointer data, GError** error) {
  NEXT(g_thread_try_new);
  auto* start = new Start{function, data};
  release(start);
  GThread* thread = g_thread_try_new_next(name, run, start, error);
  if (thread == nullptr) delete start;
  return thread;
}

gpointer g_thread_join(GThread* thread) {
  NEXT(g_thread_join);
  gpointer result = g_thread_join_next(thread);
  acquire(thread);
  return result;
}
}
