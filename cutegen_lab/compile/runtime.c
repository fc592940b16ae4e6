/* A stand-in for libcute_dsl_runtime.so: it records what a compiled launcher would launch, and launches nothing.
 *
 * The DSL links a launcher against the symbols below (CUTE_DSL_LIBS names the library). Queries are answered with the
 * target GPU's figures; every launch is appended to a text log that the recorder reads; calls that do more than launch
 * kernels are logged as "refused". Nothing here needs a driver or a GPU.
 *
 * Log, one record per line:
 *   launch <kernel> <gx> <gy> <gz> <bx> <by> <bz> <dynamic smem bytes>
 *   attribute <id> <64 bytes as hex>          after its launch
 *   param <bytes as hex>                      after its launch, in order
 *   astray                                    after its launch, if that is not on the stream passed to launch()
 *   refused <symbol>
 *   invalid <symbol> <what>                   a call with an argument that the driver refuses
 *   undeclared <kernel>                       a kernel whose parameter sizes the recorder did not declare
 */
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_KERNELS 64
#define MAX_PARAMS 256
#define MAX_TENSORS 128
#define MAX_LOG (32u << 20)
#define CUDA_SUCCESS 0
#define CUDA_ERROR_INVALID_VALUE 1
#define CUDA_ERROR_NOT_SUPPORTED 801
#define LAUNCH_ATTRIBUTE_BYTES 72 /* cudaLaunchAttribute: id, padding, 64-byte value */

/* The stream passed to launch() while it is recorded; never dereferenced. */
#define STREAM ((void *)0x5EED0)

typedef struct {
    char *name;
    int count;
    uint32_t sizes[MAX_PARAMS];
} declared_kernel;

typedef struct {
    uint64_t first, last;
} guarded_range;

static declared_kernel kernels[MAX_KERNELS];
static int kernel_count;
static char *log_text;
static size_t log_size, log_capacity;
static int log_overflow;
static int figures[256]; /* cudaDeviceAttr -> value */
static guarded_range guarded[MAX_TENSORS];
static int guarded_count;
static int guard_fd = -1;

static void append(const char *format, ...) {
    va_list args;
    va_start(args, format);
    int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (need < 0 || log_size + (size_t)need + 1 > MAX_LOG) {
        log_overflow = 1;
        return;
    }
    if (log_size + (size_t)need + 1 > log_capacity) {
        size_t capacity = (log_size + (size_t)need + 1) * 2;
        char *grown = realloc(log_text, capacity);
        if (!grown) {
            log_overflow = 1;
            return;
        }
        log_text = grown;
        log_capacity = capacity;
    }
    va_start(args, format);
    vsnprintf(log_text + log_size, (size_t)need + 1, format, args);
    va_end(args);
    log_size += (size_t)need;
}

static void append_hex(const char *key, const uint8_t *bytes, size_t count) {
    static const char digits[] = "0123456789abcdef";
    char *hex = malloc(2 * count + 1);
    if (!hex) {
        log_overflow = 1;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    hex[2 * count] = 0;
    append("%s %s\n", key, hex);
    free(hex);
}

static int refused(const char *symbol) {
    append("refused %s\n", symbol);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* --- the recorder's side ------------------------------------------------------------------------------------------ */

/* Parameter sizes of a kernel, from its PTX entry: a launch passes pointers without sizes. */
int cutegen_declare_kernel(const char *name, int count, const uint32_t *sizes) {
    if (kernel_count == MAX_KERNELS || count < 0 || count > MAX_PARAMS) return 1;
    declared_kernel *kernel = &kernels[kernel_count];
    kernel->name = strdup(name);
    if (!kernel->name) return 1;
    kernel->count = count;
    if (count) memcpy(kernel->sizes, sizes, (size_t)count * sizeof *sizes);
    kernel_count++;
    return 0;
}

/* Forget every kernel and every guarded range: another launcher is about to be recorded. */
void cutegen_forget(void) {
    for (int i = 0; i < kernel_count; i++) free(kernels[i].name);
    kernel_count = 0, guarded_count = 0;
}

void *cutegen_stream(void) { return STREAM; }

/* What _cudaDeviceGetAttribute answers for one attribute id. */
void cutegen_set_figure(int attribute, int value) {
    if (attribute >= 0 && attribute < 256) figures[attribute] = value;
}

/* Forget the launches recorded so far. */
void cutegen_reset(void) { log_size = 0, log_overflow = 0; }

/* The log; its size goes to *size, -1 if the log exceeded its limit. */
const char *cutegen_log(int64_t *size) {
    *size = log_overflow ? -1 : (int64_t)log_size;
    return log_text ? log_text : "";
}

/* Addresses of an unbacked tensor. Touching one is reported on the guard's descriptor as a frame of wire.py,
 * {"touched":[tensor, byte offset]}, and ends the process. */
int cutegen_guard(int tensor, uint64_t first, uint64_t last) {
    if (tensor < 0 || tensor >= MAX_TENSORS) return 1;
    guarded[tensor].first = first;
    guarded[tensor].last = last;
    if (tensor >= guarded_count) guarded_count = tensor + 1;
    return 0;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    for (int i = 0; i < guarded_count; i++)
        if (address >= guarded[i].first && address < guarded[i].last) {
            char text[96] = {'T'}; /* snprintf of integers: safe enough in a process that is about to end */
            int n = snprintf(text + 5, sizeof text - 5, "[%d,%lld]", i, (long long)(address - guarded[i].first));
            text[4] = (char)n;
            ssize_t written = write(guard_fd, text, (size_t)n + 5);
            (void)written;
            _exit(99);
        }
    signal(number, SIG_DFL);
    raise(number);
}

int cutegen_install_guard(int fd) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    guard_fd = fd;
    return sigaction(SIGSEGV, &action, NULL) | sigaction(SIGBUS, &action, NULL);
}

/* --- what a launcher calls to load its kernels --------------------------------------------------------------------- */

int _cudaLibraryLoadData(void **library, const void *code, void *a, void *b, int c, void *d, void *e, int f) {
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    *library = (void *)code;
    return CUDA_SUCCESS;
}

/* A kernel's handle is its name. */
int _cudaLibraryGetKernel(void **kernel, void *library, const char *name) {
    (void)library;
    *kernel = strdup(name);
    return *kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int _cudaLibraryUnload(void *library) { return (void)library, CUDA_SUCCESS; }

/* --- queries -------------------------------------------------------------------------------------------------------- */

int _cudaGetDevice(int *device) { return *device = 0, CUDA_SUCCESS; }
int _cudaGetDeviceCount(int *count) { return *count = 1, CUDA_SUCCESS; }
int _cudaSetDevice(int device) { return (void)device, CUDA_SUCCESS; }

int _cudaDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute >= 0 && attribute < 256 ? figures[attribute] : 0;
    return CUDA_SUCCESS;
}

/* Static shared memory and the like of a kernel: the launcher uses it to bound dynamic shared memory; 0 is permissive,
 * the judge checks the real sum. */
int _cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) {
    (void)attribute, (void)kernel, (void)device;
    return *value = 0, CUDA_SUCCESS;
}

int _cudaFuncSetAttribute(void *kernel, int attribute, int value) {
    (void)kernel, (void)attribute, (void)value;
    return CUDA_SUCCESS;
}

/* The opt-in to more than 48 KB of dynamic shared memory; a device does it from the plan. */
int _cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device) {
    (void)kernel, (void)attribute, (void)value, (void)device;
    return CUDA_SUCCESS;
}

/* One resident block per multiprocessor, as a persistent kernel assumes; a grid must not depend on more. */
int _cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *kernel, int threads, size_t smem) {
    (void)kernel, (void)threads, (void)smem;
    return *blocks = 1, CUDA_SUCCESS;
}

/* The launcher's own error checks: errors are returned to the recorder, which reads the log. */
void cuda_dialect_assert_success(int error) { (void)error; }
void cuda_dialect_print_on_error(int error) { (void)error; }
const char *cuda_dialect_get_error_name(int error) { return error ? "refused by the recorder" : "success"; }

/* --- launches ------------------------------------------------------------------------------------------------------- */

typedef struct { /* cudaLaunchConfig_t */
    uint32_t grid[3], block[3];
    size_t dynamic_smem_bytes;
    void *stream;
    const uint8_t *attributes;
    uint32_t attribute_count;
} launch_config;

int _cudaLaunchKernelEx(const launch_config *config, const char *kernel, void **args) {
    append("launch %s %u %u %u %u %u %u %llu\n", kernel, config->grid[0], config->grid[1], config->grid[2],
           config->block[0], config->block[1], config->block[2], (unsigned long long)config->dynamic_smem_bytes);
    if (config->stream != STREAM) append("astray\n");
    for (uint32_t i = 0; i < config->attribute_count; i++) {
        const uint8_t *attribute = config->attributes + (size_t)LAUNCH_ATTRIBUTE_BYTES * i;
        int32_t id;
        char key[32];
        memcpy(&id, attribute, sizeof id);
        snprintf(key, sizeof key, "attribute %d", (int)id);
        append_hex(key, attribute + 8, 64);
    }
    for (int k = 0; k < kernel_count; k++)
        if (!strcmp(kernels[k].name, kernel)) {
            for (int i = 0; i < kernels[k].count; i++) append_hex("param", args[i], kernels[k].sizes[i]);
            return CUDA_SUCCESS;
        }
    append("undeclared %s\n", kernel);
    return CUDA_SUCCESS;
}

/* --- tensor maps ---------------------------------------------------------------------------------------------------- */

static int invalid(const char *symbol, const char *what) {
    append("invalid %s %s\n", symbol, what);
    return CUDA_ERROR_INVALID_VALUE;
}

/* Encodes as an H200's driver does (tests/emulator/tma/tensor_maps.txt): the map is plain data of the launch that takes
 * it. `type`, `interleave`, `swizzle`, `l2_promotion` and `fill` are the driver's enumerations (cuda.h). */
int _cuTensorMapEncodeTiled(uint8_t *map, uint32_t type, uint32_t rank, uint64_t address, const uint64_t *sizes,
                            const uint64_t *strides, const uint32_t *box, const uint32_t *steps, uint32_t interleave,
                            uint32_t swizzle, uint32_t l2_promotion, uint32_t fill) {
    static const uint8_t kinds[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8};
    static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    static const char name[] = "cuTensorMapEncodeTiled";
    uint32_t words[32] = {0};
    uint8_t *at = (uint8_t *)words;
    if (type >= sizeof kinds) return invalid(name, "a data type that sm_90 lacks");
    if (rank < 1 || rank > 5 || (interleave && rank < 3)) return invalid(name, "a rank that is not 1 to 5");
    if (interleave > 2 || swizzle > 3 || l2_promotion > 3 || fill > 1) return invalid(name, "an unknown mode");
    if (address % (interleave == 2 ? 32 : 16)) return invalid(name, "an address that is no multiple of 16 bytes");
    uint64_t row = (uint64_t)box[0] * bytes[type];
    if (!interleave && swizzle && row > (16ull << swizzle)) return invalid(name, "a box wider than its swizzle");
    if (!interleave && steps[0] == 1 && row % 16) return invalid(name, "a box whose rows are no multiple of 16 bytes");
    words[0] = (uint32_t)address, words[1] = (uint32_t)(address >> 32);
    words[2] = (rank - 1) << 4 | (uint32_t)kinds[type] << 7 | interleave << 11 | swizzle << 13 | fill << 15 |
               (uint32_t)(type > 10) << 16 | l2_promotion << 17;
    uint32_t every = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (sizes[i] < 1 || sizes[i] > 1ull << 32) return invalid(name, "a size that is not 1 to 2^32");
        if (box[i] < 1 || box[i] > 256) return invalid(name, "a box dimension that is not 1 to 256");
        if (steps[i] < 1 || steps[i] > 8) return invalid(name, "an element stride that is not 1 to 8");
        if (i + 1 < rank) {
            if (strides[i] % (interleave == 2 ? 32 : 16) || strides[i] >= 1ull << 40)
                return invalid(name, "a stride that is no multiple of 16 bytes below 2^40");
            words[3 + i] = (uint32_t)(strides[i] >> 4);
            words[7] |= (uint32_t)(strides[i] >> 36) << 4 * i;
        }
        words[8 + i] = (uint32_t)(sizes[i] - 1);
        every |= (steps[i] - 1) << 3 * i;
        at[55 + i] = (uint8_t)(box[i] - 1);
    }
    for (int i = 0; i < 3; i++) at[52 + i] = (uint8_t)(every >> 8 * i);
    memcpy(map, words, sizeof words);
    return CUDA_SUCCESS;
}

/* --- calls a plan cannot hold: a launcher may only launch ----------------------------------------------------------- */

int _cudaLaunchKernel(void) { return refused("cudaLaunchKernel"); }
int _cudaMalloc(void) { return refused("cudaMalloc"); }
int _cudaMallocAsync(void) { return refused("cudaMallocAsync"); }
int _cudaMallocHost(void) { return refused("cudaMallocHost"); }
int _cudaMallocManaged(void) { return refused("cudaMallocManaged"); }
int _cudaFree(void) { return refused("cudaFree"); }
int _cudaFreeAsync(void) { return refused("cudaFreeAsync"); }
int _cudaFreeHost(void) { return refused("cudaFreeHost"); }
int _cudaMemcpy(void) { return refused("cudaMemcpy"); }
int _cudaMemcpyAsync(void) { return refused("cudaMemcpyAsync"); }
int _cudaMemset(void) { return refused("cudaMemset"); }
int _cudaMemsetAsync(void) { return refused("cudaMemsetAsync"); }
int _cudaDeviceSynchronize(void) { return refused("cudaDeviceSynchronize"); }
int _cudaStreamCreate(void) { return refused("cudaStreamCreate"); }
int _cudaStreamDestroy(void) { return refused("cudaStreamDestroy"); }
int _cudaStreamSynchronize(void) { return refused("cudaStreamSynchronize"); }
int _cudaStreamWaitEvent(void) { return refused("cudaStreamWaitEvent"); }
int _cudaStreamAddCallback(void) { return refused("cudaStreamAddCallback"); }
int _cudaStreamBeginCapture(void) { return refused("cudaStreamBeginCapture"); }
int _cudaStreamEndCapture(void) { return refused("cudaStreamEndCapture"); }
int _cudaEventCreate(void) { return refused("cudaEventCreate"); }
int _cudaEventDestroy(void) { return refused("cudaEventDestroy"); }
int _cudaEventRecord(void) { return refused("cudaEventRecord"); }
int _cudaEventElapsedTime(void) { return refused("cudaEventElapsedTime"); }
int _cudaGraphInstantiate(void) { return refused("cudaGraphInstantiate"); }
int _cudaGraphLaunch(void) { return refused("cudaGraphLaunch"); }
int _cudaGraphDestroy(void) { return refused("cudaGraphDestroy"); }
int _cudaGraphExecDestroy(void) { return refused("cudaGraphExecDestroy"); }
int _cudaLibraryGetGlobal(void) { return refused("cudaLibraryGetGlobal"); }
int _cudaLibraryGetManaged(void) { return refused("cudaLibraryGetManaged"); }
