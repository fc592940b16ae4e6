/* A libcuda for tests: it has no GPU, loads any module, and writes every launch as a line of JSON to FAKE_CUDA_LOG.
   FAKE_CUDA_PARAMS gives the kernels' parameter sizes: "name=8,8;other=128". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int id; int pad; unsigned char value[64]; } Attribute;
typedef struct {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    Attribute *attributes;
    unsigned attribute_count;
} Config;

static char names[64][256];
static unsigned shared_limit[64], non_portable[64];
static int count;

static FILE *log_file(void) { return fopen(getenv("FAKE_CUDA_LOG"), "a"); }

static void hex(FILE *file, const unsigned char *data, size_t size) {
    fputc('"', file);
    for (size_t i = 0; i < size; i++) fprintf(file, "%02x", data[i]);
    fputc('"', file);
}

int cuInit(unsigned flags) { return 0; }
int cuGetErrorString(int code, const char **text) { *text = "a fake error"; return 0; }

int cuModuleLoadData(void **module, const void *image) {
    if (memcmp(image, "\177ELF", 4)) return 200;
    *module = &count;
    FILE *file = log_file();
    fprintf(file, "{\"loaded\": 1}\n");
    fclose(file);
    return 0;
}

int cuModuleUnload(void *module) { return 0; }

int cuModuleGetFunction(void **function, void *module, const char *name) {
    if (!strstr(getenv("FAKE_CUDA_PARAMS"), name)) return 500;
    snprintf(names[count], sizeof names[count], "%s", name);
    *function = names[count++];
    return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
    int at = (int)(((char (*)[256])function) - names);
    if (attribute == 8) shared_limit[at] = value;
    else if (attribute == 14) non_portable[at] = value;
    else return 1;
    return 0;
}

int cuLaunchKernelEx(const Config *config, void *function, void **params, void **extra) {
    int at = (int)(((char (*)[256])function) - names);
    if (config->shared_bytes > shared_limit[at]) return 1;
    FILE *file = log_file();
    fprintf(file, "{\"kernel\": \"%s\", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %u, \"stream\": %llu, "
            "\"non_portable\": %u, \"attributes\": {", names[at], config->grid[0], config->grid[1], config->grid[2],
            config->block[0], config->block[1], config->block[2], config->shared_bytes,
            (unsigned long long)(uintptr_t)config->stream, non_portable[at]);
    for (unsigned i = 0; i < config->attribute_count; i++) {
        fprintf(file, "%s\"%d\": ", i ? ", " : "", config->attributes[i].id);
        hex(file, config->attributes[i].value, 64);
    }
    fprintf(file, "}, \"params\": [");
    const char *sizes = strstr(getenv("FAKE_CUDA_PARAMS"), names[at]) + strlen(names[at]) + 1;
    for (int i = 0; *sizes >= '0' && *sizes <= '9'; i++) {
        size_t size = strtoul(sizes, (char **)&sizes, 10);
        if (i) fprintf(file, ", ");
        hex(file, params[i], size);
        if (*sizes == ',') sizes++;
    }
    fprintf(file, "]}\n");
    fclose(file);
    return 0;
}
