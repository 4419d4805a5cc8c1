/* The C interface, from C: the bundled detector finds a ball by every way in and out; what is wrong is refused. */
#include "engine/library/clinfer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int failures = 0;

#define EXPECT(condition)                                                                 \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      ++failures;                                                                         \
      fprintf(stderr, "%s:%d: %s is false; the last error is \"%s\"\n", __FILE__, __LINE__, \
              #condition, clinfer_last_error());                                          \
    }                                                                                     \
  } while (0)
#define GOOD(call) EXPECT((call) == CLINFER_OK)
#define REFUSED(call, status, text) \
  EXPECT((call) == (status) && strstr(clinfer_last_error(), (text)) != NULL)

enum { kWidth = 256, kHeight = 192, kPixels = kWidth * kHeight };

/* A white ball on black, as [1,3,192,256]. */
static float *ball_at(int x, int y) {
  float *const picture = calloc(3 * kPixels, sizeof *picture);
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < kPixels; ++i) {
      const int dx = i % kWidth - x, dy = i / kWidth - y;
      if (dx * dx + dy * dy < 16 * 16) picture[c * kPixels + i] = 255;
    }
  return picture;
}

/* Whether the best row of [1,1,N,7] is a ball there. */
static int found_at(const clinfer_tensor *rows, int x, int y) {
  if (rows->type != CLINFER_F32 || rows->rank != 4 || rows->shape[3] != 7) return 0;
  const float *const row = rows->data;
  const float got_x = (row[3] + row[5]) / 2 * kWidth, got_y = (row[4] + row[6]) / 2 * kHeight;
  return row[0] == 0 && row[1] == 1 && row[2] > 0.5f && got_x > (float)(x - 6) &&
         got_x < (float)(x + 6) && got_y > (float)(y - 6) && got_y < (float)(y + 6);
}

static clinfer_tensor tensor_of(const float *picture) {
  static const int64_t shape[] = {1, 3, kHeight, kWidth};
  const clinfer_tensor tensor = {picture, 3 * kPixels * sizeof *picture, shape, 4, CLINFER_F32};
  return tensor;
}

static int finds(clinfer_request *request, int x, int y) {
  clinfer_tensor rows;
  return clinfer_request_infer(request) == CLINFER_OK &&
         clinfer_request_output(request, 0, &rows) == CLINFER_OK && found_at(&rows, x, y);
}

/* Counts its calls and starts the request again until there were three. */
struct calls {
  _Atomic int count;
  clinfer_status last;
  int right;
};

static void completed(void *user, clinfer_request *request, clinfer_status status) {
  struct calls *const calls = user;
  clinfer_tensor rows;
  calls->last = status;
  calls->right += status == CLINFER_OK &&
                  clinfer_request_output(request, 0, &rows) == CLINFER_OK && found_at(&rows, 60, 50);
  if (clinfer_request_wait(request, 0, NULL) != CLINFER_BAD_ARGUMENT) calls->right = -100;
  if (++calls->count < 3) clinfer_request_start(request);
}

static void *read_file(const char *folder, const char *name, size_t *size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *const file = fopen(path, "rb");
  if (file == NULL) exit(2);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *const bytes = malloc(*size);
  if (fread(bytes, 1, *size, file) != *size) exit(2);
  fclose(file);
  return bytes;
}

static void test_requests(const clinfer_compiled *compiled) {
  clinfer_request *request = NULL, *other = NULL;
  GOOD(clinfer_request_create(compiled, &request));
  GOOD(clinfer_request_create(compiled, &other));
  float *const picture = ball_at(60, 50), *const elsewhere = ball_at(180, 120);
  clinfer_tensor tensor = tensor_of(picture), rows;
  REFUSED(clinfer_request_output(request, 0, &rows), CLINFER_BAD_ARGUMENT, "before an inference");
  GOOD(clinfer_request_set_input(request, 0, &tensor));
  EXPECT(finds(request, 60, 50));
  EXPECT(finds(request, 60, 50)); /* the input stays */

  int done = -1;
  GOOD(clinfer_request_start(request));
  REFUSED(clinfer_request_start(request), CLINFER_BAD_ARGUMENT, "in flight");
  REFUSED(clinfer_request_set_input(request, 0, &tensor), CLINFER_BAD_ARGUMENT, "in flight");
  GOOD(clinfer_request_wait(request, -1, &done));
  EXPECT(done == 1);

  void *memory = NULL;
  size_t bytes = 0;
  GOOD(clinfer_request_input_memory(request, 0, &memory, &bytes));
  EXPECT(bytes == tensor.bytes);
  memcpy(memory, elsewhere, bytes);
  EXPECT(finds(request, 180, 120));
  memcpy(memory, picture, bytes);
  EXPECT(finds(request, 60, 50));

  /* Twice the network's size, in grey bytes. */
  uint8_t *const pixels = calloc(4, kPixels);
  for (int i = 0; i < 4 * kPixels; ++i) {
    const int dx = i % (2 * kWidth) - 360, dy = i / (2 * kWidth) - 240;
    if (dx * dx + dy * dy < 32 * 32) pixels[i] = 255;
  }
  clinfer_picture frame = {.format = CLINFER_GREY8, .width = 2 * kWidth, .height = 2 * kHeight,
                           .planes = {pixels}, .strides = {2 * kWidth}};
  GOOD(clinfer_request_set_picture(request, 0, 0, &frame));
  EXPECT(finds(request, 180, 120));
  frame.strides[0] = kWidth;
  REFUSED(clinfer_request_set_picture(request, 0, 0, &frame), CLINFER_BAD_ARGUMENT, "stride");
  frame.strides[0] = 2 * kWidth;
  frame.planes[0] = NULL;
  REFUSED(clinfer_request_set_picture(request, 0, 0, &frame), CLINFER_BAD_ARGUMENT, "NULL");
  REFUSED(clinfer_request_set_picture(request, 0, 1, &frame), CLINFER_BAD_ARGUMENT, "");

  /* The output of one request is memory that another one reads. */
  struct _cl_mem *buffer = NULL;
  GOOD(clinfer_request_set_input(request, 0, &tensor));
  GOOD(clinfer_request_output_buffer(request, 0, &buffer));
  EXPECT(buffer != NULL);
  GOOD(clinfer_request_infer(request));
  REFUSED(clinfer_request_output(request, 0, &rows), CLINFER_BAD_ARGUMENT, "memory of the device");
  REFUSED(clinfer_request_set_input_buffer(other, 0, buffer, 0), CLINFER_BAD_ARGUMENT, "needs");
  GOOD(clinfer_request_set_output_buffer(request, 0, NULL, 0));
  EXPECT(finds(request, 60, 50));

  /* Host memory by its address, in and out. */
  clinfer_port port;
  GOOD(clinfer_compiled_port(compiled, CLINFER_OUTPUT, 0, &port));
  size_t elements = 1;
  for (size_t i = 0; i < port.rank; ++i) elements *= (size_t)port.shape[i];
  float *const row = calloc(elements, sizeof *row);
  clinfer_tensor there = {row, elements * sizeof *row, port.shape, port.rank, CLINFER_F32};
  GOOD(clinfer_request_set_input_pointer(request, 0, CLINFER_POINTER_HOST, elsewhere, tensor.bytes));
  GOOD(clinfer_request_set_output_pointer(request, 0, CLINFER_POINTER_HOST, row, there.bytes));
  GOOD(clinfer_request_infer(request));
  EXPECT(found_at(&there, 180, 120));
  EXPECT(clinfer_request_explanation(request, 0) != NULL &&
         clinfer_request_explanation(request, 1) != NULL &&
         clinfer_request_explanation(request, 2) == NULL);
  memcpy(elsewhere, picture, tensor.bytes);
  GOOD(clinfer_request_infer(request));
  EXPECT(found_at(&there, 60, 50)); /* what the memory holds then */
  GOOD(clinfer_request_set_output_pointer(request, 0, CLINFER_POINTER_HOST, NULL, 0));
  REFUSED(clinfer_request_set_input_pointer(request, 0, CLINFER_POINTER_HOST, elsewhere, 4),
          CLINFER_BAD_ARGUMENT, "there are 4");
  REFUSED(clinfer_request_set_output_pointer(request, 0, CLINFER_POINTER_HOST, row, 4),
          CLINFER_BAD_ARGUMENT, "there are 4");
  REFUSED(clinfer_request_set_input_pointer(request, 0, (clinfer_pointer)3, elsewhere, tensor.bytes),
          CLINFER_BAD_ARGUMENT, "no kind of pointer 3");
  REFUSED(clinfer_request_set_input_pointer(NULL, 0, CLINFER_POINTER_HOST, elsewhere, 4),
          CLINFER_BAD_ARGUMENT, "NULL");
  EXPECT(finds(request, 60, 50));
  GOOD(clinfer_request_set_input(request, 0, &tensor));

  struct calls calls = {0, CLINFER_IO, 0};
  GOOD(clinfer_request_set_callback(request, completed, &calls));
  GOOD(clinfer_request_start(request));
  for (int n = 0; n < 1000 && calls.count < 3; ++n) GOOD(clinfer_request_wait(request, 100, NULL));
  GOOD(clinfer_request_wait(request, -1, NULL));
  EXPECT(calls.count == 3 && calls.last == CLINFER_OK && calls.right == 3);
  GOOD(clinfer_request_set_callback(request, NULL, NULL));
  EXPECT(finds(request, 60, 50));
  EXPECT(calls.count == 3);
  GOOD(clinfer_request_cancel(request));
  EXPECT(finds(request, 60, 50));

  tensor.bytes -= 4;
  REFUSED(clinfer_request_set_input(request, 0, &tensor), CLINFER_BAD_ARGUMENT, "no tensor");
  tensor.bytes += 4;
  tensor.type = (clinfer_type)77;
  REFUSED(clinfer_request_set_input(request, 0, &tensor), CLINFER_BAD_ARGUMENT, "type 77");
  const int64_t huge[] = {INT64_MAX, INT64_MAX};
  const clinfer_tensor impossible = {picture, 4, huge, 2, CLINFER_F32};
  REFUSED(clinfer_request_set_input(request, 0, &impossible), CLINFER_BAD_ARGUMENT, "no tensor");
  REFUSED(clinfer_request_set_input(request, 0, NULL), CLINFER_BAD_ARGUMENT, "NULL");
  REFUSED(clinfer_request_set_input(NULL, 0, &tensor), CLINFER_BAD_ARGUMENT, "NULL");
  tensor.type = CLINFER_F32;
  REFUSED(clinfer_request_set_input(request, 5, &tensor), CLINFER_BAD_ARGUMENT, "no input 5");
  EXPECT(finds(request, 60, 50)); /* what was refused has no effect */

  clinfer_request_start(request); /* in flight when it is destroyed */
  clinfer_request_destroy(request);
  clinfer_request_destroy(other);
  clinfer_request_destroy(NULL);
  free(pixels);
  free(picture);
  free(elsewhere);
  free(row);
}

/* Finds a ball at a place of its own by a request of its own, and causes an error of its own. */
struct finder {
  const clinfer_compiled *compiled;
  int number;
};

static void *find_in_thread(void *user) {
  const struct finder *const finder = user;
  const int x = 40 + 45 * finder->number, y = 130 - 20 * finder->number;
  float *const picture = ball_at(x, y);
  const clinfer_tensor tensor = tensor_of(picture);
  char path[100];
  snprintf(path, sizeof path, "/nowhere/%d.xml", finder->number);
  clinfer_request *request = NULL;
  clinfer_model *none = NULL;
  GOOD(clinfer_request_create(finder->compiled, &request));
  GOOD(clinfer_request_set_input(request, 0, &tensor));
  for (int i = 0; i < 5; ++i) {
    EXPECT(clinfer_model_read(path, NULL, &none) == CLINFER_NOT_FOUND);
    GOOD(clinfer_request_start(request));
    EXPECT(strstr(clinfer_last_error(), path) != NULL); /* this thread's, and calls that succeed keep it */
    GOOD(clinfer_request_wait(request, -1, NULL));
    clinfer_tensor rows;
    GOOD(clinfer_request_output(request, 0, &rows));
    EXPECT(found_at(&rows, x, y));
  }
  clinfer_request_destroy(request);
  free(picture);
  return NULL;
}

static void test_threads(const clinfer_compiled *compiled) {
  enum { kThreads = 4 };
  pthread_t threads[kThreads];
  struct finder finders[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    finders[i] = (struct finder){compiled, i};
    if (pthread_create(&threads[i], NULL, find_in_thread, &finders[i]) != 0) exit(2);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

/* [?,2]: max(x, 0), and the sum of all inputs so far of [1,2]. */
#define PORT(id, rows) "<port id='" id "' precision='FP32'><dim>" rows "</dim><dim>2</dim></port>"
#define EDGE(from, from_port, to, to_port) \
  "<edge from-layer='" from "' from-port='" from_port "' to-layer='" to "' to-port='" to_port "'/>"
static const char kOpen[] =
    "<net name='open' version='11'><layers><layer id='0' name='in' type='Parameter' version='opset1'>"
    "<data element_type='f32' shape='?,2'/><output>" PORT("0", "-1") "</output></layer>"
    "<layer id='1' name='relu' type='ReLU' version='opset1'><input>" PORT("0", "-1") "</input><output>"
    PORT("1", "-1") "</output></layer><layer id='2' name='out' type='Result' version='opset1'><input>"
    PORT("0", "-1") "</input></layer></layers><edges>" EDGE("0", "0", "1", "0") EDGE("1", "1", "2", "0")
    "</edges></net>";
static const char kSum[] =
    "<net name='sum' version='11'><layers><layer id='0' name='in' type='Parameter' version='opset1'>"
    "<data element_type='f32' shape='1,2'/><output>" PORT("0", "1") "</output></layer>"
    "<layer id='1' name='before' type='ReadValue' version='opset6'>"
    "<data variable_id='total' variable_type='f32' variable_shape='1,2'/><output>" PORT("0", "1")
    "</output></layer><layer id='2' name='added' type='Add' version='opset1'><input>" PORT("0", "1")
    PORT("1", "1") "</input><output>" PORT("2", "1") "</output></layer>"
    "<layer id='3' name='after' type='Assign' version='opset6'><data variable_id='total'/><input>"
    PORT("0", "1") "</input></layer><layer id='4' name='out' type='Result' version='opset1'><input>"
    PORT("0", "1") "</input></layer></layers><edges>" EDGE("0", "0", "2", "0") EDGE("1", "0", "2", "1")
    EDGE("2", "2", "3", "0") EDGE("2", "2", "4", "0") "</edges></net>";

static clinfer_request *request_of(const char *text) {
  clinfer_model *model = NULL;
  clinfer_compiled *compiled = NULL;
  clinfer_request *request = NULL;
  GOOD(clinfer_model_read_bytes(text, strlen(text), NULL, 0, "text", NULL, &model));
  GOOD(clinfer_compile(model, "CPU", NULL, &compiled));
  GOOD(clinfer_request_create(compiled, &request));
  if (text == kSum) {
    clinfer_port port;
    size_t index = 7;
    EXPECT(clinfer_compiled_count(compiled, CLINFER_STATE) == 1);
    GOOD(clinfer_compiled_port(compiled, CLINFER_STATE, 0, &port));
    EXPECT(strcmp(port.name, "total") == 0 && port.rank == 2 && port.shape[1] == 2);
    GOOD(clinfer_compiled_find(compiled, CLINFER_STATE, "total", &index));
    EXPECT(index == 0);
    REFUSED(clinfer_compiled_port(compiled, CLINFER_STATE, 1, &port), CLINFER_BAD_ARGUMENT, "no state 1");
  }
  clinfer_compiled_destroy(compiled);
  clinfer_model_destroy(model);
  return request;
}

/* The last of the outputs of rows x 2 numbers that begin at `first`. */
static float last_of(clinfer_request *request, int64_t rows, float first) {
  float values[16] = {0};
  const int64_t shape[] = {rows, 2};
  for (int64_t i = 0; i < 2 * rows; ++i) values[i] = first + (float)i;
  const clinfer_tensor input = {values, (size_t)rows * 2 * sizeof *values, shape, 2, CLINFER_F32};
  clinfer_tensor output;
  GOOD(clinfer_request_set_input(request, 0, &input));
  GOOD(clinfer_request_infer(request));
  GOOD(clinfer_request_output(request, 0, &output));
  EXPECT(output.rank == 2 && output.shape[0] == rows && output.shape[1] == 2);
  return ((const float *)output.data)[2 * rows - 1];
}

static void test_states(void) {
  clinfer_request *const request = request_of(kSum);
  clinfer_tensor state;
  GOOD(clinfer_request_state(request, 0, &state));
  EXPECT(((const float *)state.data)[1] == 0);
  EXPECT(last_of(request, 1, 1) == 2);
  EXPECT(last_of(request, 1, 10) == 13);
  GOOD(clinfer_request_state(request, 0, &state));
  EXPECT(state.rank == 2 && state.type == CLINFER_F32 && ((const float *)state.data)[1] == 13);
  GOOD(clinfer_request_reset_states(request));
  EXPECT(last_of(request, 1, 1) == 2);
  const float values[] = {100, 200};
  const int64_t shape[] = {1, 2};
  clinfer_tensor set = {values, sizeof values, shape, 2, CLINFER_F32};
  GOOD(clinfer_request_set_state(request, 0, &set));
  EXPECT(last_of(request, 1, 1) == 202);
  REFUSED(clinfer_request_set_state(request, 1, &set), CLINFER_BAD_ARGUMENT, "no state 1");
  REFUSED(clinfer_request_state(request, 1, &state), CLINFER_BAD_ARGUMENT, "no state 1");
  set.bytes = 3;
  REFUSED(clinfer_request_set_state(request, 0, &set), CLINFER_BAD_ARGUMENT, "3 bytes");
  REFUSED(clinfer_request_reset_states(NULL), CLINFER_BAD_ARGUMENT, "NULL");
  clinfer_request_destroy(request);
}

static void test_open_shapes(void) {
  clinfer_request *const request = request_of(kOpen);
  EXPECT(last_of(request, 1, 3) == 4);
  EXPECT(last_of(request, 5, 3) == 12);
  EXPECT(last_of(request, 2, 3) == 6);
  EXPECT(last_of(request, 5, 1) == 10);
  clinfer_request_destroy(request);
}

static void test_layers(const clinfer_model *model) {
  clinfer_layers *layers = NULL;
  clinfer_layer layer;
  GOOD(clinfer_query(model, "CPU", NULL, &layers));
  const size_t count = clinfer_layers_count(layers);
  EXPECT(count > 5);
  const char *names[1000], *devices[1000];
  for (size_t i = 0; i < count && i < 1000; ++i) {
    GOOD(clinfer_layers_at(layers, i, &layer));
    EXPECT(strcmp(layer.device, "CPU.0") == 0 && layer.name[0] != 0 && layer.type[0] != 0);
    EXPECT(layer.on_host == (layer.reason[0] != 0));
    names[i] = layer.name;
    devices[i] = layer.device;
  }
  REFUSED(clinfer_layers_at(layers, count, &layer), CLINFER_BAD_ARGUMENT, "no layer");
  clinfer_model *placed = NULL, *none = NULL;
  clinfer_compiled *compiled = NULL;
  GOOD(clinfer_model_with_devices(model, names, devices, count, &placed));
  GOOD(clinfer_compile(placed, "HETERO:CPU", NULL, &compiled));
  clinfer_compiled_destroy(compiled);
  clinfer_model_destroy(placed);
  names[0] = "no such layer";
  REFUSED(clinfer_model_with_devices(model, names, devices, 1, &none), CLINFER_BAD_ARGUMENT, "no such layer");
  REFUSED(clinfer_query(model, "GPU.77", NULL, &layers), CLINFER_NO_DEVICE, "GPU.77");
  clinfer_layers_destroy(layers);
  clinfer_layers_destroy(NULL);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  EXPECT(strcmp(clinfer_version(), CLINFER_VERSION) == 0);
  EXPECT(clinfer_api_version() == CLINFER_API_VERSION);
  EXPECT(clinfer_type_size(CLINFER_F16) == 2 && clinfer_type_size((clinfer_type)-1) == 0);
  EXPECT(strcmp(clinfer_type_name(CLINFER_U8), "u8") == 0);
  EXPECT(strcmp(clinfer_type_name(CLINFER_BOOLEAN), "boolean") == 0);

  clinfer_devices *devices = NULL;
  GOOD(clinfer_devices_list(&devices));
  EXPECT(clinfer_devices_count(devices) >= 1);
  EXPECT(clinfer_devices_text(devices, 0, CLINFER_DEVICE_NAME) != NULL);
  EXPECT(clinfer_devices_text(devices, 100, CLINFER_DEVICE_NAME) == NULL);
  EXPECT(clinfer_devices_memory(devices, 0) > 0);
  clinfer_devices_destroy(devices);

  char path[4096];
  snprintf(path, sizeof path, "%s/ball.xml", argv[1]);
  clinfer_model *model = NULL, *same = NULL, *none = NULL;
  GOOD(clinfer_model_read(path, NULL, &model));
  EXPECT(strcmp(clinfer_model_info(model, "model_info/labels"), "background ball") == 0);
  EXPECT(clinfer_model_info(model, "no/such") == NULL);
  REFUSED(clinfer_model_read("/nowhere/model.xml", NULL, &none), CLINFER_NOT_FOUND, "/nowhere/model.xml");
  REFUSED(clinfer_model_read(path, "what", &none), CLINFER_BAD_ARGUMENT, "what");
  REFUSED(clinfer_model_read(NULL, NULL, &none), CLINFER_BAD_ARGUMENT, "NULL");
  EXPECT(none == NULL);

  size_t size = 0, weights_size = 0;
  void *const text = read_file(argv[1], "ball.xml", &size),
             *const weights = read_file(argv[1], "ball.bin", &weights_size);
  GOOD(clinfer_model_read_bytes(text, size, weights, weights_size, "mine", "image=1,3,192,256;", &same));
  REFUSED(clinfer_model_read_bytes(text, size, NULL, 0, "mine", NULL, &none), CLINFER_BAD_MODEL, "mine");
  REFUSED(clinfer_model_read_bytes(NULL, size, NULL, 0, NULL, NULL, &none), CLINFER_BAD_ARGUMENT, "NULL");
  free(text);
  free(weights);

  clinfer_config *config = NULL;
  GOOD(clinfer_config_create(&config));
  GOOD(clinfer_config_set(config, "PERFORMANCE_HINT", "LATENCY"));
  REFUSED(clinfer_config_set(config, "NO_SUCH_KEY", "1"), CLINFER_BAD_ARGUMENT, "NO_SUCH_KEY");
  clinfer_compiled *compiled = NULL, *of_bytes = NULL;
  GOOD(clinfer_compile(model, "CPU", config, &compiled));
  GOOD(clinfer_compile(same, "CPU", NULL, &of_bytes));
  REFUSED(clinfer_compile(model, "TPU", NULL, NULL), CLINFER_BAD_ARGUMENT, "NULL");
  EXPECT(clinfer_compile(model, "GPU.77", NULL, &of_bytes) == CLINFER_NO_DEVICE);
  clinfer_config_destroy(config);
  test_layers(model);
  test_states();
  test_open_shapes();
  clinfer_model_destroy(model);
  clinfer_model_destroy(same);

  EXPECT(strcmp(clinfer_compiled_device(compiled), "CPU.0") == 0);
  EXPECT(clinfer_compiled_optimal_requests(compiled) >= 1);
  EXPECT(clinfer_compiled_warning(compiled, 1000) == NULL);
  EXPECT(clinfer_compiled_count(compiled, CLINFER_INPUT) == 1);
  clinfer_port port;
  GOOD(clinfer_compiled_port(compiled, CLINFER_INPUT, 0, &port));
  EXPECT(strcmp(port.name, "image") == 0 && port.rank == 4 && port.shape[3] == kWidth && port.type == CLINFER_F32);
  REFUSED(clinfer_compiled_port(compiled, CLINFER_OUTPUT, 9, &port), CLINFER_BAD_ARGUMENT, "no output 9");
  size_t index = 77;
  GOOD(clinfer_compiled_find(compiled, CLINFER_INPUT, "image", &index));
  EXPECT(index == 0);
  REFUSED(clinfer_compiled_find(compiled, CLINFER_INPUT, "sound", &index), CLINFER_BAD_ARGUMENT, "image");
  struct _cl_context *context = NULL, *other = NULL;
  GOOD(clinfer_compiled_context(compiled, &context));
  GOOD(clinfer_compiled_context(of_bytes, &other));
  EXPECT(context != NULL && context == other);

  test_requests(compiled);
  test_requests(of_bytes);
  test_threads(compiled);
  clinfer_compiled *shared = NULL;
  GOOD(clinfer_model_read(path, NULL, &model));
  GOOD(clinfer_compile_shared(model, context, NULL, NULL, NULL, &shared));
  clinfer_model_destroy(model);
  test_requests(shared);
  clinfer_compiled_destroy(shared);
  clinfer_compiled_destroy(compiled);
  clinfer_compiled_destroy(of_bytes);
  if (failures == 0) printf("ok   the C interface\n");
  return failures != 0;
}
