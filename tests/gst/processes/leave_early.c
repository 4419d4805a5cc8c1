/* An application in C that plays what its arguments say for a while, and ends without setting it to NULL (but for deinit):
 * leave_early HOW MILLISECONDS PIPELINE..., where the time begins with LIBRARY=NAME loaded if that is set, and HOW is one of
 * return, exit, quick_exit, deinit, dlclose, library, thread, opencl, opencl_thread. `thread` calls exit() on a thread of its own.
 * `opencl` plays nothing: a thread asks for a device and builds a kernel, and main returns, or another thread calls exit()
 * (`opencl_thread`), to see what drivers themselves survive.
 * `dlclose` and `library` play nothing either: a thread compiles the model that CLINFER_MODEL names by the library
 * CLINFER_LIBRARY, which is closed meanwhile, or stays open while main returns. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <gst/gst.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void* leave(void* nothing) {
  (void)nothing;
  exit(0);
}

static void* build(void* nothing) {
  const char* source =
      "__kernel void k(__global float* a) { a[get_global_id(0)] = sin(a[0]) + 1; }";
  cl_platform_id platform;
  cl_device_id device;
  (void)nothing;
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
    return NULL;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  for (;;) {
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    clBuildProgram(program, 1, &device, "", NULL, NULL);
    clReleaseProgram(program);
  }
  return NULL;
}

/* Functions of the library, found before it is closed. */
static struct {
  int (*read)(const char*, const char*, void**);
  int (*compile)(void*, const char*, void*, void**);
} of_library;

static void* compile(void* nothing) {
  void *model = NULL, *compiled = NULL;
  (void)nothing;
  if (of_library.read(g_getenv("CLINFER_MODEL"), NULL, &model) == 0)
    of_library.compile(model, "CPU", NULL, &compiled);
  return NULL;
}

/* Until a library of that name is mapped, but no longer than 20 s. */
static void wait_for(const char* library) {
  for (int i = 0; library != NULL && i < 20000; ++i) {
    gchar* maps = NULL;
    g_file_get_contents("/proc/self/maps", &maps, NULL, NULL);
    const gboolean there = maps != NULL && strstr(maps, library) != NULL;
    g_free(maps);
    if (there) return;
    g_usleep(1000);
  }
}

int main(int argc, char** argv) {
  const char* how = argc > 2 ? argv[1] : "";
  const gulong delay = argc > 2 ? strtoul(argv[2], NULL, 10) * 1000 : 0;
  pthread_t thread;
  if (strcmp(how, "opencl") == 0 || strcmp(how, "opencl_thread") == 0) {
    pthread_create(&thread, NULL, build, NULL);
    wait_for(g_getenv("LIBRARY"));
    g_usleep(delay);
    if (strcmp(how, "opencl_thread") == 0) {
      pthread_create(&thread, NULL, leave, NULL);
      pthread_join(thread, NULL);
    }
    return 0;
  }
  if (strcmp(how, "dlclose") == 0 || strcmp(how, "library") == 0) {
    void* library = dlopen(g_getenv("CLINFER_LIBRARY"), RTLD_NOW);
    if (library == NULL) {
      g_printerr("%s\n", dlerror());
      return 2;
    }
    *(void**)&of_library.read = dlsym(library, "clinfer_model_read");
    *(void**)&of_library.compile = dlsym(library, "clinfer_compile");
    pthread_create(&thread, NULL, compile, NULL);
    wait_for(g_getenv("LIBRARY"));
    g_usleep(delay);
    if (strcmp(how, "library") == 0) return 0;
    dlclose(library);
    g_usleep(delay);
    return 0;
  }
  gst_init(NULL, NULL);
  GError* error = NULL;
  GstElement* pipeline = gst_parse_launchv((const gchar**)argv + 3, &error);
  if (error != NULL) {
    g_printerr("%s\n", error->message);
    return 2;
  }
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  wait_for(g_getenv("LIBRARY"));
  g_usleep(delay);
  if (strcmp(how, "exit") == 0) exit(0);
  if (strcmp(how, "quick_exit") == 0) quick_exit(0);
  if (strcmp(how, "deinit") ==
      0) { /* which waits for streams for ever, of any elements, unless they are stopped */
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
    gst_deinit();
  }
  if (strcmp(how, "thread") == 0) {
    pthread_create(&thread, NULL, leave, NULL);
    pthread_join(thread, NULL);
  }
  return 0;
}
