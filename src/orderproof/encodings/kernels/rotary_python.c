/* rotate_small of rotary.c as a Python function: a ctypes call takes as long as the work itself.
 *
 * All arguments are integers, so it needs nothing of torch and only the limited API of CPython 3.10 or later.
 * Without Python's header at build time, the same function is called through ctypes.
 */

#define Py_LIMITED_API 0x030a0000
#include <Python.h>

#include <stdint.h>

int rotate_small(const void *plan, int64_t dtype, void *q_out, const void *q, void *k_out, const void *k,
             const int64_t *positions, int64_t rows, int64_t q_heads, int64_t k_heads, int64_t tokens);

static PyObject *call_rotate_small(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    long long n[11];
    (void)module;
    if (count != 11) {
        PyErr_SetString(PyExc_TypeError, "rotate_small: expected 11 integers");
        return NULL;
    }
    for (int i = 0; i < 11; i++) {
        n[i] = PyLong_AsLongLong(arguments[i]);
        if (n[i] == -1 && PyErr_Occurred()) return NULL;
    }
#define AT(i) ((void *)(intptr_t)n[i])
    return PyLong_FromLong(rotate_small(AT(0), n[1], AT(2), AT(3), AT(4), AT(5), AT(6), n[7], n[8], n[9], n[10]));
#undef AT
}

static PyMethodDef functions[] = {
    {"rotate_small", (PyCFunction)(void (*)(void))call_rotate_small, METH_FASTCALL, "Takes integers and addresses."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rotary", NULL, 0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_rotary(void) { return PyModuleDef_Init(&definition); }
