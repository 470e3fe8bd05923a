/* Launches of prepared kernels: addresses and numbers go into a buffer of parameters, and one call of the driver follows.
 * Knows no kernel and no array library: tensors come by DLPack's exchange functions, and everything unusual is left to
 * Python. Threads may run it at the same time, also without the GIL: launchers and calls do not change once they exist,
 * except for a dictionary, which has a lock of its own. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

enum { VERSION = 2 }; /* as extension.py has it */
enum { MOST_PARAMETERS = 64, MOST_VALUES = 64, MOST_BYTES = 4096, MOST_ATTRIBUTES = 4, MOST_DIMS = 8, MOST_MAPS = 1024,
       MOST_TYPES = 8 };

/* The driver. */

typedef struct {
    unsigned int grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned int attribute_count;
} Config;

typedef struct {
    unsigned int id;
    _Alignas(8) char value[64];
} Attribute;

static int (*launch_kernel)(const Config *, void *function, void **parameters, void **extra);
static int (*get_current)(void **context);
static int (*get_identity)(void *context, unsigned long long *identity);
static int (*get_stream_device)(void *stream, int *device); /* NULL in drivers before CUDA 12.8 */
static int (*is_capturing)(void *stream, int *status);

/* Finds the driver, which is loaded already. Threads that do so at the same time find the same functions. */
static int connect_driver(void) {
    if (__atomic_load_n(&launch_kernel, __ATOMIC_ACQUIRE))
        return 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *launch = library ? dlsym(library, "cuLaunchKernelEx") : NULL;
    if (launch) {
        *(void **)&get_current = dlsym(library, "cuCtxGetCurrent");
        *(void **)&get_identity = dlsym(library, "cuCtxGetId");
        *(void **)&get_stream_device = dlsym(library, "cuStreamGetDevice");
        *(void **)&is_capturing = dlsym(library, "cuStreamIsCapturing");
    }
    if (!launch || !get_current || !get_identity || !is_capturing) {
        PyErr_SetString(PyExc_ImportError, "the CUDA driver lacks functions of CUDA 12");
        return -1;
    }
    __atomic_store_n((void **)&launch_kernel, launch, __ATOMIC_RELEASE);
    return 0;
}

/* DLPack, as version 1 of its interface lays it out. */

typedef struct {
    void *data;
    int32_t device_type, device;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t offset;
} Tensor;

typedef struct Managed {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct Managed *);
    uint64_t flags;
    Tensor tensor;
} Managed;

typedef struct {
    uint32_t major, minor;
    void *previous;
    int (*allocate)(Tensor *prototype, Managed **result, void *context, void (*fail)(void *, const char *, const char *));
    int (*export)(PyObject *, Managed **);
    int (*import)(Managed *, PyObject **);
    int (*borrow)(PyObject *, Tensor *);
    int (*current_stream)(int32_t device_type, int32_t device, void **stream);
} Exchange;

/* The exchange functions of types of tensors, which live as long as this process: the references are kept. An entry is
 * never changed. */
typedef struct {
    PyTypeObject *type;
    const Exchange *exchange;
} Known;

static Known *known[MOST_TYPES];

static const Exchange *read_exchange(PyTypeObject *type) {
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const Exchange *exchange = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    Py_XDECREF(capsule);
    PyErr_Clear();
    int is_usable = exchange && exchange->major == 1 && exchange->borrow && exchange->allocate && exchange->import &&
                    exchange->current_stream;
    return is_usable ? exchange : NULL;
}

static const Exchange *find_exchange(PyTypeObject *type) {
    int at = 0;
    for (Known *entry; at < MOST_TYPES && (entry = __atomic_load_n(&known[at], __ATOMIC_ACQUIRE)); at++)
        if (entry->type == type)
            return entry->exchange;
    const Exchange *exchange = read_exchange(type);
    Known *entry = at < MOST_TYPES ? PyMem_RawMalloc(sizeof *entry) : NULL, *expected = NULL;
    if (!entry)
        return exchange;
    *entry = (Known){(PyTypeObject *)Py_NewRef(type), exchange};
    if (!__atomic_compare_exchange_n(&known[at], &expected, entry, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        /* Another thread was faster; a later call tries again. */
        Py_DECREF(type);
        PyMem_RawFree(entry);
    }
    return exchange;
}

/* Launchers. */

typedef struct {
    unsigned int offset, size, source;
    char kind; /* p: address, m: tensor map, i: signed, u: unsigned, f: float */
} Slot;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    void *function;
    unsigned long long context; /* its identity: handles are used again */
    Config config;
    Attribute attributes[MOST_ATTRIBUTES];
    unsigned int offsets[MOST_PARAMETERS];
    Slot slots[MOST_VALUES];
    int parameter_count, slot_count, value_count;
    Py_ssize_t size;
    PyObject *encode; /* (source, address) -> bytes of a tensor map */
    PyObject *fail;   /* (code) raises */
    PyObject *maps;   /* the tensor maps by (source, address) */
    char data[MOST_BYTES];
} Launcher;

static int put_number(const Slot *slot, PyObject *value, char *data) {
    if (slot->kind == 'f') {
        double number = PyFloat_AsDouble(value);
        if (number == -1.0 && PyErr_Occurred())
            return -1;
        if (slot->size == 8) {
            memcpy(data + slot->offset, &number, 8);
            return 0;
        }
        float single = (float)number;
        memcpy(data + slot->offset, &single, 4);
        return 0;
    }
    if (!PyLong_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "expected an integer");
        return -1;
    }
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    unsigned long long bits = (unsigned long long)number;
    if (overflow > 0 && slot->size == 8 && slot->kind == 'u') {
        bits = PyLong_AsUnsignedLongLong(value);
        overflow = PyErr_Occurred() ? 1 : 0;
    } else if (!overflow && slot->size < 8) {
        long long wide = 1LL << (8 * slot->size);
        overflow = number < -wide / 2 || number >= (slot->kind == 'i' ? wide / 2 : wide);
    }
    if (overflow) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_OverflowError, "the number does not fit its parameter");
        return -1;
    }
    memcpy(data + slot->offset, &bits, slot->size);
    return 0;
}

#if PY_VERSION_HEX >= 0x030D0000
#define BEGIN_CRITICAL_SECTION Py_BEGIN_CRITICAL_SECTION
#define END_CRITICAL_SECTION Py_END_CRITICAL_SECTION
#else
#define BEGIN_CRITICAL_SECTION(object)
#define END_CRITICAL_SECTION()
#endif

/* Returns a new reference to an item of a dictionary or of a view of one, NULL for none or an error. */
static PyObject *get_item(PyObject *dictionary, PyObject *key) {
    if (!PyDict_Check(dictionary)) {
        PyObject *value = PyObject_GetItem(dictionary, key);
        if (!value && PyErr_ExceptionMatches(PyExc_KeyError))
            PyErr_Clear();
        return value;
    }
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *item;
    PyDict_GetItemRef(dictionary, key, &item);
    return item;
#else
    return Py_XNewRef(PyDict_GetItemWithError(dictionary, key));
#endif
}

static int put_map(Launcher *self, const Slot *slot, uint64_t address, char *data) {
    PyObject *key = Py_BuildValue("IK", slot->source, (unsigned long long)address);
    if (!key)
        return -1;
    PyObject *map = get_item(self->maps, key);
    if (!map && !PyErr_Occurred()) {
        map = PyObject_Call(self->encode, key, NULL);
        if (map && (!PyBytes_Check(map) || PyBytes_GET_SIZE(map) != slot->size)) {
            PyErr_SetString(PyExc_TypeError, "a tensor map has another size");
            Py_CLEAR(map);
        }
        if (map && PyDict_GET_SIZE(self->maps) >= MOST_MAPS)
            PyDict_Clear(self->maps);
        if (map && PyDict_SetItem(self->maps, key, map) < 0)
            Py_CLEAR(map);
    }
    Py_DECREF(key);
    if (!map)
        return -1;
    memcpy(data + slot->offset, PyBytes_AS_STRING(map), slot->size);
    Py_DECREF(map);
    return 0;
}

static int put_address(Launcher *self, const Slot *slot, uint64_t address, char *data) {
    if (slot->kind == 'm')
        return put_map(self, slot, address, data);
    memcpy(data + slot->offset, &address, 8);
    return 0;
}

static int submit(Launcher *self, char *data, void *stream) {
    void *parameters[MOST_PARAMETERS];
    for (int at = 0; at < self->parameter_count; at++)
        parameters[at] = data + self->offsets[at];
    Config config = self->config;
    config.stream = stream;
    config.attributes = self->attributes;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = launch_kernel(&config, self->function, parameters, NULL);
    Py_END_ALLOW_THREADS
    if (!code)
        return 0;
    PyObject *result = PyObject_CallFunction(self->fail, "i", code);
    if (result)
        PyErr_SetString(PyExc_RuntimeError, "the driver refused a launch");
    Py_XDECREF(result);
    return -1;
}

/* Writes the address of a tensor, or of an integer that is one. Returns 0 for any other object, -1 for an error. */
static int read_address(PyObject *value, uint64_t *address) {
    if (PyLong_CheckExact(value)) {
        *address = PyLong_AsUnsignedLongLong(value);
        return *address == (uint64_t)-1 && PyErr_Occurred() ? -1 : 1;
    }
    const Exchange *exchange = find_exchange(Py_TYPE(value));
    if (exchange) {
        Tensor tensor;
        if (exchange->borrow(value, &tensor) < 0)
            return -1;
        *address = (uint64_t)(uintptr_t)tensor.data + tensor.offset;
        return 1;
    }
    PyObject *result = PyObject_CallMethod(value, "data_ptr", NULL);
    if (!result)
        return -1;
    *address = PyLong_AsUnsignedLongLong(result);
    Py_DECREF(result);
    return *address == (uint64_t)-1 && PyErr_Occurred() ? -1 : 1;
}

static PyObject *call_launcher(PyObject *object, PyObject *const *values, size_t flags, PyObject *names) {
    Launcher *self = (Launcher *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    Py_ssize_t extra = names ? PyTuple_GET_SIZE(names) : 0;
    if (count != self->value_count || extra > 1)
        return PyErr_Format(PyExc_TypeError, "expected %d values and stream=", self->value_count);
    void *stream = NULL;
    if (extra) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "stream"))
            return PyErr_Format(PyExc_TypeError, "unexpected keyword %R", PyTuple_GET_ITEM(names, 0));
        stream = PyLong_AsVoidPtr(values[count]);
        if (!stream && PyErr_Occurred())
            return NULL;
    }
    _Alignas(64) char data[MOST_BYTES];
    memcpy(data, self->data, self->size);
    for (int at = 0; at < self->slot_count; at++) {
        const Slot *slot = &self->slots[at];
        PyObject *value = values[slot->source];
        if (slot->kind == 'p' || slot->kind == 'm') {
            uint64_t address;
            if (read_address(value, &address) < 0 || put_address(self, slot, address, data) < 0)
                return NULL;
        } else if (put_number(slot, value, data) < 0) {
            return NULL;
        }
    }
    if (submit(self, data, stream) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static int read_extents(PyObject *tuple, unsigned int *extents) {
    return PyArg_ParseTuple(tuple, "III", &extents[0], &extents[1], &extents[2]) ? 0 : -1;
}

static int read_attributes(Launcher *self, PyObject *list) {
    Py_ssize_t count = PyList_GET_SIZE(list);
    if (count > MOST_ATTRIBUTES) {
        PyErr_SetString(PyExc_ValueError, "too many attributes");
        return -1;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        Attribute *attribute = &self->attributes[at];
        const char *value;
        Py_ssize_t size;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, at), "Iy#", &attribute->id, &value, &size))
            return -1;
        memcpy(attribute->value, value, size < 64 ? size : 64);
    }
    self->config.attribute_count = (unsigned int)count;
    return 0;
}

static int read_slots(Launcher *self, PyObject *list) {
    self->slot_count = (int)PyList_GET_SIZE(list);
    if (self->slot_count > MOST_VALUES) {
        PyErr_SetString(PyExc_ValueError, "too many values");
        return -1;
    }
    for (int at = 0; at < self->slot_count; at++) {
        Slot *slot = &self->slots[at];
        int kind;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, at), "CIII", &kind, &slot->offset, &slot->size, &slot->source))
            return -1;
        slot->kind = (char)kind;
        if (slot->offset + slot->size > self->size || slot->source >= (unsigned int)self->value_count ||
            (slot->kind != 'm' && slot->size > 8) || (slot->kind == 'p' && slot->size != 8)) {
            PyErr_SetString(PyExc_ValueError, "a value outside of the parameters");
            return -1;
        }
    }
    return 0;
}

static PyObject *new_launcher(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"function", "context", "grid", "block", "shared", "attributes", "parameters", "offsets",
                            "slots", "values", "encode", "fail", NULL};
    unsigned long long function, context;
    PyObject *grid, *block, *attributes, *offsets, *slots, *encode, *fail;
    const char *data;
    Py_ssize_t size;
    unsigned int shared;
    int values;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "KKO!O!IO!y#O!O!iOO", names, &function, &context,
                                     &PyTuple_Type, &grid, &PyTuple_Type, &block, &shared, &PyList_Type, &attributes,
                                     &data, &size, &PyList_Type, &offsets, &PyList_Type, &slots, &values, &encode,
                                     &fail) ||
        connect_driver() < 0)
        return NULL;
    if (size > MOST_BYTES || PyList_GET_SIZE(offsets) > MOST_PARAMETERS || values > MOST_VALUES)
        return PyErr_Format(PyExc_ValueError, "too many parameters");
    Launcher *self = (Launcher *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = call_launcher;
    self->function = (void *)(uintptr_t)function;
    self->context = context;
    self->size = size;
    self->value_count = values;
    self->config.shared = shared;
    self->encode = Py_NewRef(encode);
    self->fail = Py_NewRef(fail);
    self->maps = PyDict_New();
    memcpy(self->data, data, size);
    self->parameter_count = (int)PyList_GET_SIZE(offsets);
    for (int at = 0; at < self->parameter_count; at++)
        self->offsets[at] = (unsigned int)PyLong_AsUnsignedLong(PyList_GET_ITEM(offsets, at));
    if (PyErr_Occurred() || !self->maps || read_extents(grid, self->config.grid) < 0 ||
        read_extents(block, self->config.block) < 0 || read_attributes(self, attributes) < 0 ||
        read_slots(self, slots) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int traverse_launcher(Launcher *self, visitproc visit, void *arg) {
    Py_VISIT(self->encode);
    Py_VISIT(self->fail);
    Py_VISIT(self->maps);
    return 0;
}

static int clear_launcher(Launcher *self) {
    Py_CLEAR(self->encode);
    Py_CLEAR(self->fail);
    Py_CLEAR(self->maps);
    return 0;
}

static void free_launcher(Launcher *self) {
    PyObject_GC_UnTrack(self);
    clear_launcher(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject LauncherType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyptx.runtime._launch.Launcher",
    .tp_doc = "A kernel with its grid; a call with the values of its parameters launches it.",
    .tp_basicsize = sizeof(Launcher),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = new_launcher,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Launcher, vectorcall),
    .tp_traverse = (traverseproc)traverse_launcher,
    .tp_clear = (inquiry)clear_launcher,
    .tp_dealloc = (destructor)free_launcher,
};

/* Calls: a launcher for tensors of one description, which allocates the outputs. */

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
    int32_t ndim;
    int64_t shape[MOST_DIMS], strides[MOST_DIMS], count;
    uint64_t alignment;
} Description;

typedef struct {
    PyObject_HEAD
    Launcher *launcher;
    int32_t device_type, device;
    int input_count, output_count;
    Description descriptions[MOST_VALUES]; /* of the inputs, then of the outputs */
    PyObject *kinds;                       /* the types of tensors that it takes */
    PyObject *guards;                      /* (owner, key, value): what the kernel depends on besides: entries of
                                              dictionaries, ... for a missing one; with the key ... all items of a
                                              list or a dictionary; cells; functions, whose code is meant, or with the
                                              key None the defaults */
    PyObject *checks;                      /* (function, condition): for each tensor, the function must return False, or
                                              the condition, if it is not None */
    PyObject *states;                      /* (function, result): what functions must return */
    PyObject *busy;                        /* a context variable that must be None */
    PyObject *before, *after;              /* called with (inputs, outputs, stream), or None */
    PyObject *enter, *leave;               /* the same, for a stream that is not the current one */
} Call;

/* Returns whether the items of a list, or the keys and values of a dictionary, are those of a tuple. */
static int has_items(PyObject *owner, PyObject *items) {
    Py_ssize_t count = PyTuple_GET_SIZE(items), at = 0, position = 0;
    if (PyList_Check(owner)) {
        for (; at < count && at < PyList_GET_SIZE(owner); at++)
            if (PyList_GET_ITEM(owner, at) != PyTuple_GET_ITEM(items, at))
                return 0;
        return at == count && at == PyList_GET_SIZE(owner);
    }
    PyObject *key, *value;
    int is_same = 1;
    BEGIN_CRITICAL_SECTION(owner);
    for (; is_same && PyDict_Next(owner, &position, &key, &value); at += 2)
        is_same = at < count && key == PyTuple_GET_ITEM(items, at) && value == PyTuple_GET_ITEM(items, at + 1);
    END_CRITICAL_SECTION();
    return is_same && at == count;
}

/* Returns whether nothing has changed that guards name; -1 for an error. A value is only compared with what a guard keeps
 * alive, so it may be gone. */
static int are_kept(PyObject *guards) {
    PyObject *value;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(guards); at++) {
        PyObject *guard = PyTuple_GET_ITEM(guards, at), *owner = PyTuple_GET_ITEM(guard, 0);
        PyObject *key = PyTuple_GET_ITEM(guard, 1), *expected = PyTuple_GET_ITEM(guard, 2);
        if (key == Py_Ellipsis) {
            if (!has_items(owner, expected))
                return 0;
            continue;
        }
        if (PyCell_Check(owner)) {
            value = PyCell_Get(owner);
            Py_XDECREF(value);
        } else if (PyFunction_Check(owner)) {
            value = key == Py_None ? PyFunction_GetDefaults(owner) : PyFunction_GetCode(owner);
            expected = !value && expected == Py_None ? NULL : expected;
        } else {
            value = get_item(owner, key);
            if (!value && PyErr_Occurred())
                return -1;
            Py_XDECREF(value);
        }
        if (value != expected && !(value == NULL && expected == Py_Ellipsis))
            return 0;
    }
    return 1;
}

static PyObject *check_guards(PyObject *module, PyObject *guards) {
    (void)module;
    if (!PyTuple_CheckExact(guards))
        return PyErr_Format(PyExc_TypeError, "expected a tuple of guards");
    int kept = are_kept(guards);
    return kept < 0 ? NULL : PyBool_FromLong(kept);
}

/* Returns whether no kernel is being traced and nothing has changed that this one depends on; -1 for an error. */
static int is_valid(const Call *self) {
    PyObject *value;
    if (PyContextVar_Get(self->busy, Py_None, &value) < 0)
        return -1;
    Py_DECREF(value);
    return value == Py_None ? are_kept(self->guards) : 0;
}

static int fits(const Tensor *tensor, const Description *description, const Call *call) {
    if (tensor->device_type != call->device_type || tensor->device != call->device ||
        tensor->code != description->code || tensor->bits != description->bits ||
        tensor->lanes != description->lanes || tensor->ndim != description->ndim)
        return 0;
    for (int at = 0; at < tensor->ndim; at++) {
        if (tensor->shape[at] != description->shape[at])
            return 0;
        if (tensor->strides && tensor->strides[at] != description->strides[at])
            return 0;
    }
    return ((uintptr_t)tensor->data + tensor->offset) % description->alignment == 0;
}

/* Returns whether all checks of a tensor return False; -1 for an error. */
static int passes(const Call *self, PyObject *value) {
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(self->checks); at++) {
        PyObject *check = PyTuple_GET_ITEM(self->checks, at), *condition = PyTuple_GET_ITEM(check, 1);
        PyObject *answer = PyObject_Vectorcall(PyTuple_GET_ITEM(check, 0), &value, 1, NULL);
        if (answer && answer != Py_False && condition != Py_None) {
            Py_DECREF(answer);
            answer = PyObject_CallNoArgs(condition);
        }
        if (!answer)
            return -1;
        Py_DECREF(answer);
        if (answer != Py_False)
            return 0;
    }
    return 1;
}

/* Returns whether all functions of the state return what they should; -1 for an error. */
static int are_states_usual(const Call *self) {
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(self->states); at++) {
        PyObject *state = PyTuple_GET_ITEM(self->states, at);
        PyObject *answer = PyObject_CallNoArgs(PyTuple_GET_ITEM(state, 0));
        if (!answer)
            return -1;
        Py_DECREF(answer);
        if (answer != PyTuple_GET_ITEM(state, 1))
            return 0;
    }
    return 1;
}

static void set_error(void *context, const char *kind, const char *message) {
    (void)context;
    (void)kind;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_MemoryError, message);
}

/* Returns a new tensor and writes its address. */
static PyObject *allocate(const Call *self, const Exchange *exchange, Description *description, uint64_t *address) {
    Tensor prototype = {NULL, self->device_type, self->device, description->ndim, description->code,
                        description->bits, description->lanes, description->shape, description->strides, 0};
    Managed *managed;
    if (exchange->allocate(&prototype, &managed, NULL, set_error) < 0) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return NULL;
    }
    *address = (uint64_t)(uintptr_t)managed->tensor.data + managed->tensor.offset;
    PyObject *result;
    if (exchange->import(managed, &result) < 0)
        return NULL;
    return result;
}

static int notify(PyObject *function, PyObject *inputs, PyObject *const *outputs, int count, void *stream) {
    if (function == Py_None)
        return 0;
    PyObject *results = PyTuple_New(count);
    for (int at = 0; results && at < count; at++)
        PyTuple_SET_ITEM(results, at, Py_NewRef(outputs[at]));
    PyObject *done = results ? PyObject_CallFunction(function, "OOK", inputs, results,
                                                     (unsigned long long)(uintptr_t)stream) : NULL;
    Py_XDECREF(results);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *finish(Call *self, PyObject *inputs, PyObject **outputs, uint64_t *addresses, void *stream,
                        int is_current) {
    Launcher *launcher = self->launcher;
    _Alignas(64) char data[MOST_BYTES];
    memcpy(data, launcher->data, launcher->size);
    for (int at = 0; at < launcher->slot_count; at++) {
        const Slot *slot = &launcher->slots[at];
        if (put_address(launcher, slot, addresses[slot->source], data) < 0)
            return NULL;
    }
    PyObject *enter = is_current ? Py_None : self->enter, *leave = is_current ? Py_None : self->leave;
    if (notify(self->before, inputs, outputs, self->output_count, stream) < 0 ||
        notify(enter, inputs, outputs, self->output_count, stream) < 0 || submit(launcher, data, stream) < 0 ||
        notify(self->after, inputs, outputs, self->output_count, stream) < 0 ||
        notify(leave, inputs, outputs, self->output_count, stream) < 0)
        return NULL;
    if (self->output_count == 1)
        return Py_NewRef(outputs[0]);
    PyObject *results = PyTuple_New(self->output_count);
    for (int at = 0; results && at < self->output_count; at++)
        PyTuple_SET_ITEM(results, at, Py_NewRef(outputs[at]));
    return results;
}

enum { LEGACY = 1, PER_THREAD = 2 };

/* Returns whether a handle is of a stream of a device; both default streams are of each. */
static int is_stream_of(uintptr_t stream, int device) {
    int other;
    return stream <= PER_THREAD ||
           (get_stream_device && !get_stream_device((void *)stream, &other) && other == device);
}

/* Returns whether the context of the launcher is current. */
static int is_context_current(const Launcher *launcher) {
    void *context;
    unsigned long long identity;
    return !get_current(&context) && context && !get_identity(context, &identity) && identity == launcher->context;
}

/* Runs the kernel on tensors, in the current stream or one that is passed by its handle, and returns its outputs, or
 * NotImplemented if they, or anything else, are unusual. */
static PyObject *run_call(Call *self, PyObject *const *values, Py_ssize_t count_of_values) {
    PyObject *inputs = count_of_values ? values[0] : Py_None;
    if (!PyTuple_CheckExact(inputs) || PyTuple_GET_SIZE(inputs) != self->input_count)
        Py_RETURN_NOTIMPLEMENTED;
    uint64_t addresses[MOST_VALUES];
    const Exchange *exchange = NULL;
    for (int at = 0; at < self->input_count; at++) {
        PyObject *value = PyTuple_GET_ITEM(inputs, at);
        PyTypeObject *type = Py_TYPE(value);
        int is_known = 0;
        for (Py_ssize_t kind = 0; kind < PyTuple_GET_SIZE(self->kinds); kind++)
            is_known |= PyTuple_GET_ITEM(self->kinds, kind) == (PyObject *)type;
        Tensor tensor;
        if (!is_known || !(exchange = find_exchange(type)))
            Py_RETURN_NOTIMPLEMENTED;
        if (exchange->borrow(value, &tensor) < 0) {
            PyErr_Clear();
            Py_RETURN_NOTIMPLEMENTED;
        }
        if (!fits(&tensor, &self->descriptions[at], self))
            Py_RETURN_NOTIMPLEMENTED;
        int passed = passes(self, value);
        if (passed < 0)
            return NULL;
        if (!passed)
            Py_RETURN_NOTIMPLEMENTED;
        addresses[at] = (uint64_t)(uintptr_t)tensor.data + tensor.offset;
    }
    int kept = is_valid(self);
    if (kept > 0)
        kept = are_states_usual(self);
    if (kept < 0)
        return NULL;
    void *current = NULL;
    int status = 0;
    if (!kept || !is_context_current(self->launcher) ||
        exchange->current_stream(self->device_type, self->device, &current) < 0) {
        PyErr_Clear();
        Py_RETURN_NOTIMPLEMENTED;
    }
    void *stream = count_of_values > 1 ? PyLong_AsVoidPtr(values[1]) : current;
    if (!stream && PyErr_Occurred())
        return NULL;
    if (count_of_values > 1 && !is_stream_of((uintptr_t)stream, self->device))
        Py_RETURN_NOTIMPLEMENTED;
    int is_current = (stream ? (uintptr_t)stream : LEGACY) == (current ? (uintptr_t)current : LEGACY);
    /* A stream that waits for a captured one becomes part of the capture. */
    if (is_capturing(stream, &status) || status || (!is_current && (is_capturing(current, &status) || status)))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *outputs[MOST_VALUES] = {NULL}, *result = NULL;
    int count = 0;
    for (; count < self->output_count; count++) {
        int place = self->input_count + count;
        outputs[count] = allocate(self, exchange, &self->descriptions[place], &addresses[place]);
        if (!outputs[count])
            break;
    }
    if (count == self->output_count)
        result = finish(self, inputs, outputs, addresses, stream, is_current);
    for (int at = 0; at < count; at++)
        Py_DECREF(outputs[at]);
    return result;
}

static int read_description(PyObject *tuple, Description *description) {
    int code, bits, lanes;
    PyObject *shape;
    unsigned long long alignment;
    if (!PyArg_ParseTuple(tuple, "iiiO!K", &code, &bits, &lanes, &PyTuple_Type, &shape, &alignment))
        return -1;
    if (PyTuple_GET_SIZE(shape) > MOST_DIMS || !alignment) {
        PyErr_SetString(PyExc_ValueError, "too many dimensions");
        return -1;
    }
    description->code = (uint8_t)code;
    description->bits = (uint8_t)bits;
    description->lanes = (uint16_t)lanes;
    description->alignment = alignment;
    description->ndim = (int32_t)PyTuple_GET_SIZE(shape);
    description->count = 1;
    for (int at = description->ndim - 1; at >= 0; at--) {
        description->strides[at] = description->count;
        description->shape[at] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, at));
        description->count *= description->shape[at];
    }
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *new_call(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"launcher", "device", "inputs", "outputs", "kinds", "checks", "states", "guards",
                            "busy", "before", "after", "enter", "leave", NULL};
    PyObject *launcher, *inputs, *outputs, *kinds, *checks, *states, *guards, *busy, *before, *after, *enter, *leave;
    int device_type, device;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!(ii)O!O!O!O!O!O!OOOOO", names, &LauncherType, &launcher,
                                     &device_type, &device, &PyList_Type, &inputs, &PyList_Type, &outputs,
                                     &PyTuple_Type, &kinds, &PyTuple_Type, &checks, &PyTuple_Type, &states,
                                     &PyTuple_Type, &guards, &busy, &before, &after, &enter, &leave))
        return NULL;
    Py_ssize_t input_count = PyList_GET_SIZE(inputs), count = input_count + PyList_GET_SIZE(outputs);
    if (count > MOST_VALUES || count != ((Launcher *)launcher)->value_count)
        return PyErr_Format(PyExc_ValueError, "the launcher takes another number of tensors");
    Call *self = (Call *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->device_type = device_type;
    self->device = device;
    self->input_count = (int)input_count;
    self->output_count = (int)(count - input_count);
    self->launcher = (Launcher *)Py_NewRef(launcher);
    self->kinds = Py_NewRef(kinds);
    self->checks = Py_NewRef(checks);
    self->states = Py_NewRef(states);
    self->guards = Py_NewRef(guards);
    self->busy = Py_NewRef(busy);
    self->before = Py_NewRef(before);
    self->after = Py_NewRef(after);
    self->enter = Py_NewRef(enter);
    self->leave = Py_NewRef(leave);
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *item = at < input_count ? PyList_GET_ITEM(inputs, at) : PyList_GET_ITEM(outputs, at - input_count);
        if (read_description(item, &self->descriptions[at]) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

static int traverse_call(Call *self, visitproc visit, void *arg) {
    Py_VISIT(self->launcher);
    Py_VISIT(self->kinds);
    Py_VISIT(self->checks);
    Py_VISIT(self->states);
    Py_VISIT(self->guards);
    Py_VISIT(self->busy);
    Py_VISIT(self->before);
    Py_VISIT(self->after);
    Py_VISIT(self->enter);
    Py_VISIT(self->leave);
    return 0;
}

static int clear_call(Call *self) {
    Py_CLEAR(self->launcher);
    Py_CLEAR(self->kinds);
    Py_CLEAR(self->checks);
    Py_CLEAR(self->states);
    Py_CLEAR(self->guards);
    Py_CLEAR(self->busy);
    Py_CLEAR(self->before);
    Py_CLEAR(self->after);
    Py_CLEAR(self->enter);
    Py_CLEAR(self->leave);
    return 0;
}

static void free_call(Call *self) {
    PyObject_GC_UnTrack(self);
    clear_call(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef call_methods[] = {
    {"run", (PyCFunction)(void (*)(void))run_call, METH_FASTCALL,
     "Run the kernel on a tuple of tensors; NotImplemented if they are unusual."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject CallType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyptx.runtime._launch.Call",
    .tp_doc = "A launcher for tensors of one description, which allocates the outputs.",
    .tp_basicsize = sizeof(Call),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = new_call,
    .tp_methods = call_methods,
    .tp_traverse = (traverseproc)traverse_call,
    .tp_clear = (inquiry)clear_call,
    .tp_dealloc = (destructor)free_call,
};

static PyMethodDef functions[] = {
    {"check_guards", check_guards, METH_O, "Tell whether nothing has changed that guards name."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_launch", "Launches of prepared kernels.", -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__launch(void) {
    if (PyType_Ready(&LauncherType) < 0 || PyType_Ready(&CallType) < 0)
        return NULL;
    PyObject *result = PyModule_Create(&module);
    if (!result || PyModule_AddIntConstant(result, "VERSION", VERSION) < 0 ||
        PyModule_AddObjectRef(result, "Launcher", (PyObject *)&LauncherType) < 0 ||
        PyModule_AddObjectRef(result, "Call", (PyObject *)&CallType) < 0) {
        Py_XDECREF(result);
        return NULL;
    }
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(result, Py_MOD_GIL_NOT_USED);
#endif
    return result;
}
