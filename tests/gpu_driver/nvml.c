/* Answers NVML's questions as the driver of a machine with one Tesla T4 would: a stand-in for libnvidia-ml.so.1 in tests.
 *
 * Names, arguments, structures and error codes are those of NVIDIA's documentation of the NVML API (nvml.h,
 * https://docs.nvidia.com/deploy/nvml-api/). A question that is missing here is one that the driver does not know.
 * STAND_IN_CARD, an environment variable that the tests' device plugin sets, says in which state the card is; see `card`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUCCESS 0
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define NO_PERMISSION 4
#define NOT_FOUND 6
#define GPU_IS_LOST 15

#define MIB (1ULL << 20)
#define NUM_SLICES 7

typedef unsigned long long bytes_t;
typedef const struct device *device_t;
typedef struct { bytes_t total, free, used; } memory_t;
typedef struct { unsigned version; bytes_t total, reserved, free, used; } memory_v2_t;
typedef struct { unsigned pid; bytes_t used_bytes; unsigned gpu_instance, compute_instance; } process_t;
typedef struct { unsigned gpu, memory; } utilization_t;

struct device { const char *name, *uuid; bytes_t total, used; };
/* As an idle T4 answers: 15,360 MiB, of which 450 are the driver's own. */
static const struct device T4 = {"Tesla T4", "GPU-0f0e0d0c-7474-4444-8888-000000000004", 15360 * MIB, 3 * MIB};
static const struct device SLICE = {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "MIG-0f0e0d0c-7474-4444-8888-0000000000a1",
                                    4864 * MIB, 12 * MIB};
#define RESERVED_BYTES (450 * MIB)

/* healthy; lost: off the bus; mig-slice: in MIG mode, with one slice for this container, and the memory of the whole
 * card may not be asked for. */
static int card_is(const char *state) {
    const char *found = getenv("STAND_IN_CARD");
    return strcmp(found ? found : "healthy", state) == 0;
}
static int has_mig(void) { return card_is("mig-slice"); }

static int answer_text(const char *text, char *answer, unsigned size) {
    snprintf(answer, size, "%s", text);
    return SUCCESS;
}
static int answer_number(unsigned value, unsigned *answer) {
    *answer = value;
    return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return SUCCESS; }
int nvmlInit_v2(void) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) {
    switch (code) {
        case NO_PERMISSION: return "Insufficient Permissions";
        case NOT_FOUND: return "Not Found";
        case GPU_IS_LOST: return "GPU is lost";
        default: return "Unknown Error";
    }
}
int nvmlSystemGetDriverVersion(char *answer, unsigned size) { return answer_text("580.95.05", answer, size); }
int nvmlDeviceGetCount_v2(unsigned *answer) { return answer_number(1, answer); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *answer) {
    if (index > 0) return INVALID_ARGUMENT;
    if (card_is("lost")) return GPU_IS_LOST;
    *answer = &T4;
    return SUCCESS;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, device_t *answer) {
    if (strcmp(uuid, T4.uuid) == 0) return nvmlDeviceGetHandleByIndex_v2(0, answer);
    if (strcmp(uuid, SLICE.uuid) || !has_mig()) return NOT_FOUND;
    *answer = &SLICE;
    return SUCCESS;
}
int nvmlDeviceGetName(device_t device, char *answer, unsigned size) { return answer_text(device->name, answer, size); }
int nvmlDeviceGetUUID(device_t device, char *answer, unsigned size) { return answer_text(device->uuid, answer, size); }

int nvmlDeviceGetMigMode(device_t device, unsigned *current, unsigned *pending) {
    if (device == &SLICE) return INVALID_ARGUMENT;
    if (!has_mig()) return NOT_SUPPORTED;
    *current = *pending = 1;
    return SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(device_t device, unsigned *answer) {
    (void)device;
    return answer_number(has_mig() ? NUM_SLICES : 0, answer);
}
int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *answer) {
    (void)device;
    if (index > 0 || !has_mig()) return NOT_FOUND;
    *answer = &SLICE;
    return SUCCESS;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_t slice, device_t *answer) {
    (void)slice;
    *answer = &T4;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(device_t device, memory_t *answer) {
    if (device == &T4 && has_mig()) return NO_PERMISSION;
    answer->total = device->total;
    answer->used = device->used + RESERVED_BYTES;
    answer->free = answer->total - answer->used;
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(device_t device, memory_v2_t *answer) {
    if (device == &T4 && has_mig()) return NO_PERMISSION;
    answer->total = device->total;
    answer->reserved = RESERVED_BYTES;
    answer->used = device->used;
    answer->free = answer->total - answer->used - answer->reserved;
    return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, unsigned *count, process_t *answer) {
    (void)device;
    (void)answer;
    return answer_number(0, count);
}

int nvmlDeviceGetCudaComputeCapability(device_t device, int *major, int *minor) {
    (void)device;
    *major = 7;
    *minor = 5;
    return SUCCESS;
}
int nvmlDeviceGetEccMode(device_t device, unsigned *current, unsigned *pending) {
    (void)device;
    *current = *pending = 1;
    return SUCCESS;
}
#define ANSWER(QUESTION, VALUE) \
    int QUESTION(device_t device, unsigned *answer) { (void)device; return answer_number(VALUE, answer); }
ANSWER(nvmlDeviceGetPowerUsage, 9500) /* mW */
ANSWER(nvmlDeviceGetEnforcedPowerLimit, 70000)
ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, 70000)
ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, 1)
ANSWER(nvmlDeviceGetCurrPcieLinkWidth, 16)
ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, 3)
ANSWER(nvmlDeviceGetMaxPcieLinkWidth, 16)
/* The clocks of the multiprocessors, MHz: NVML's kinds of clocks are told apart by a second argument, which is not read. */
#define CLOCK(QUESTION, MHZ) \
    int QUESTION(device_t device, int kind, unsigned *answer) { (void)device; (void)kind; return answer_number(MHZ, answer); }
CLOCK(nvmlDeviceGetClockInfo, 300)
CLOCK(nvmlDeviceGetMaxClockInfo, 1590)
CLOCK(nvmlDeviceGetApplicationsClock, 585)
CLOCK(nvmlDeviceGetDefaultApplicationsClock, 585)
CLOCK(nvmlDeviceGetTemperature, 41) /* and of its one sensor */
