/* rotate_small of rotary.c as a Python function: a ctypes call takes as long as the work itself.
 *
 * Its arguments are integers and shapes, so it needs nothing of torch and only the limited API of CPython 3.10 or later.
 * Without Python's header at build time, small calls are rotated like others.
 */

#define Py_LIMITED_API 0x030a0000
#include <Python.h>

#include <stdint.h>

int rotate_small(const void *plan, int64_t dtype, void *q_out, const void *q, void *k_out, const void *k,
             const int64_t *positions, const int64_t q_shape[4], const int64_t k_shape[4], int64_t tokens);

enum { NUMBERS = 7, SHAPES = 3, OTHER_SHAPE = 4 };

/* The sizes of a shape. Returns 0 if it has this many, 1 if it has another number, -1 with an error set. */
static int sizes_of(PyObject *shape, Py_ssize_t count, int64_t *sizes) {
    if (!PyTuple_Check(shape)) {
        PyErr_SetString(PyExc_TypeError, "rotate_small: expected a shape");
        return -1;
    }
    if (PyTuple_Size(shape) != count) return 1;
    for (Py_ssize_t i = 0; i < count; i++) {
        sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
        if (sizes[i] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

static PyObject *call_rotate_small(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    long long n[NUMBERS];
    int64_t q_shape[4], k_shape[4], p_shape[1];
    (void)module;
    if (count != NUMBERS + SHAPES) {
        PyErr_SetString(PyExc_TypeError, "rotate_small: expected 7 integers and 3 shapes");
        return NULL;
    }
    for (int i = 0; i < NUMBERS; i++) {
        n[i] = PyLong_AsLongLong(arguments[i]);
        if (n[i] == -1 && PyErr_Occurred()) return NULL;
    }
    int other = sizes_of(arguments[NUMBERS], 4, q_shape);
    if (!other) other = sizes_of(arguments[NUMBERS + 1], 4, k_shape);
    if (!other) other = sizes_of(arguments[NUMBERS + 2], 1, p_shape);
    if (other < 0) return NULL;
    if (other) return PyLong_FromLong(OTHER_SHAPE);
#define AT(i) ((void *)(intptr_t)n[i])
    return PyLong_FromLong(rotate_small(AT(0), n[1], AT(2), AT(3), AT(4), AT(5), AT(6), q_shape, k_shape, p_shape[0]));
#undef AT
}

static PyMethodDef functions[] = {
    {"rotate_small", (PyCFunction)(void (*)(void))call_rotate_small, METH_FASTCALL, "Takes addresses, a dtype and shapes."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rotary", NULL, 0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_rotary(void) { return PyModuleDef_Init(&definition); }
