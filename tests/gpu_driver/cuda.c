/* Starts CUDA, or fails to, as STAND_IN_CUDA says: a stand-in for libcuda.so.1 in tests, which can run nothing.
 *
 * Names and codes are those of NVIDIA's documentation of the driver API (cuda.h,
 * https://docs.nvidia.com/cuda/cuda-driver-api/). Everything that a framework asks for after these is missing.
 */
#include <stdlib.h>

#define SUCCESS 0
#define INVALID_VALUE 1

int cuInit(unsigned flags) {
    const char *code = getenv("STAND_IN_CUDA");
    (void)flags;
    return code ? atoi(code) : SUCCESS;
}
int cuDriverGetVersion(int *answer) { *answer = 13000; return SUCCESS; }
int cuDeviceGetCount(int *answer) { *answer = 1; return SUCCESS; }
int cuDeviceGet(int *device, int number) {
    *device = number;
    return number == 0 ? SUCCESS : INVALID_VALUE;
}
#define MPS_ENABLED 133 /* CU_DEVICE_ATTRIBUTE_MPS_ENABLED: the card has no MPS server */
int cuDeviceGetAttribute(int *answer, int attribute, int device) {
    (void)device;
    *answer = 0;
    return attribute == MPS_ENABLED ? SUCCESS : INVALID_VALUE;
}

/* Codes that cuInit gives where CUDA cannot start (CUresult in cuda.h), with their texts. */
static const struct { int code; const char *name, *text; } ERRORS[] = {
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
static int describe(int code, const char **name, const char **text) {
    for (unsigned index = 0; index < sizeof ERRORS / sizeof *ERRORS; index++)
        if (ERRORS[index].code == code) {
            *name = ERRORS[index].name;
            *text = ERRORS[index].text;
            return SUCCESS;
        }
    return INVALID_VALUE;
}
int cuGetErrorName(int code, const char **answer) { const char *text; return describe(code, answer, &text); }
int cuGetErrorString(int code, const char **answer) { const char *name; return describe(code, &name, answer); }
