/* The small call of turn.c as a function of Python: ctypes alone takes as long as the work itself.
 *
 * Only integers pass, so nothing of torch is needed, and only what every CPython since 3.10 has (the limited API).
 * Built where Python's header is; where it is not, the same function is called through ctypes.
 */

#define Py_LIMITED_API 0x030a0000
#include <Python.h>

#include <stdint.h>

int turn_few(const void *plan, int64_t dtype, void *q_out, const void *q, void *k_out, const void *k,
             const int64_t *positions, int64_t rows, int64_t q_heads, int64_t k_heads, int64_t tokens);

static PyObject *few(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    long long n[11];
    (void)module;
    if (count != 11) {
        PyErr_SetString(PyExc_TypeError, "few: expected 11 integers");
        return NULL;
    }
    for (int i = 0; i < 11; i++) {
        n[i] = PyLong_AsLongLong(given[i]);
        if (n[i] == -1 && PyErr_Occurred()) return NULL;
    }
#define AT(i) ((void *)(intptr_t)n[i])
    return PyLong_FromLong(turn_few(AT(0), n[1], AT(2), AT(3), AT(4), AT(5), AT(6), n[7], n[8], n[9], n[10]));
#undef AT
}

static PyMethodDef functions[] = {
    {"few", (PyCFunction)(void (*)(void))few, METH_FASTCALL, "turn_few, of integers and addresses."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "turn", NULL, 0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_turn(void) { return PyModuleDef_Init(&definition); }
