// Attention, forward and backward, for all heads of a batch or for the components of a ragged batch.

#include "attention.hpp"

#include "registration.hpp"

namespace retrograd {
FOR_VECTORS(attend, float, Items<float>)
FOR_VECTORS(attend, double, Items<double>)
FOR_VECTORS(attend_grad, float, Items<float>)
FOR_VECTORS(attend_grad, double, Items<double>)

namespace {

constexpr npy_intp WORK = 1 << 20;  // multiplications for which waking a thread pays

// --------------------------------------------------------------------------------------------- a call's operands

// The expected operand: its size in rows and columns, and whether it is written to.
struct OperandSpec {
    Role role;
    npy_intp rows, columns;
    bool written = false;
};

class Reader {
public:
    Call call;
    int type = NPY_NOTYPE;

    ~Reader() {
        for (PyObject* array : owned) Py_XDECREF(array);
    }

    // Leading dimensions and dtype are those of the queries.
    bool begin(PyObject* q, PyObject* k, PyObject* v, PyObject* queries, PyObject* keys) {
        for (PyObject* array : {q, k, v})
            if (!PyArray_Check(array) || PyArray_NDIM(as_array(array)) < 2) return refuse("arrays of rows expected");
        PyArrayObject* of = as_array(q);
        type = PyArray_TYPE(of);
        if (type != NPY_FLOAT && type != NPY_DOUBLE) return refuse("float32 or float64 expected");
        call.front.assign(PyArray_DIMS(of), PyArray_DIMS(of) + PyArray_NDIM(of) - 2);
        call.fronts = 1;
        for (npy_intp size : call.front) call.fronts *= size;
        call.e = last_of(q, 1), call.d = last_of(v, 1);
        npy_intp rows = last_of(q, 2), rows_of_keys = last_of(k, 2);
        return offsets(queries, rows, call.queries, call.longest_queries) &&
               offsets(keys, rows_of_keys, call.keys, call.longest_keys) && count_pairs(queries, keys) &&
               operand(q, {Q, rows, call.e}) && operand(k, {K, rows_of_keys, call.e}) && operand(v, {V, rows_of_keys, call.d});
    }

    bool masks(PyObject* attn_mask, PyObject* attn_bias) {
        return mask(attn_mask, ATTN_MASK, NPY_BOOL, false) && mask(attn_bias, ATTN_BIAS, type, false);
    }

    bool mask(PyObject* array, Role role, int expected, bool written) {
        if (array == Py_None) return true;
        if (!PyArray_Check(array)) return refuse("a mask is an array");
        bool flat = PyArray_NDIM(as_array(array)) == static_cast<int>(call.front.size()) + 1;
        if (!flat && call.components != 1) return refuse("a mask of pairs expected");
        OperandSpec spec{role, flat ? -1 : last_of(q(), 2), flat ? call.pairs.back() : call.longest_keys, written};
        call.operands[role].pairs = flat;
        return operand(array, spec, expected);
    }

    // Reads an operand with rows of values, or of one value each if `columns` is -1; None: a derivative not needed.
    bool operand(PyObject* object, OperandSpec spec, int expected = NPY_NOTYPE) {
        if (object == Py_None && spec.role >= DQ) return true;
        expected = expected == NPY_NOTYPE ? type : expected;
        if (!PyArray_Check(object) || PyArray_TYPE(as_array(object)) != expected) return refuse("an array of another type");
        PyArrayObject* array = own_array(object, spec.written);
        if (!array) return false;
        Operand& operand = call.operands[spec.role];
        std::vector<npy_intp> core;
        if (spec.rows >= 0) core.push_back(spec.rows);
        if (spec.columns >= 0) core.push_back(spec.columns);
        int front = static_cast<int>(call.front.size()), ndim = PyArray_NDIM(array);
        if (ndim != front + static_cast<int>(core.size())) return refuse("another number of dimensions expected");
        for (int k = 0; k < ndim; k++) {
            npy_intp size = PyArray_DIM(array, k), step = PyArray_STRIDE(array, k);
            bool one = k < front && size == 1 && !spec.written;
            if (!one && size != (k < front ? call.front[k] : core[k - front])) return refuse("sizes do not fit");
            if (k < front) operand.front.push_back(one ? 0 : step);
        }
        operand.at = PyArray_BYTES(array);
        if (spec.rows >= 0) operand.row = PyArray_STRIDE(array, front);
        if (spec.columns >= 0) operand.column = PyArray_STRIDE(array, ndim - 1);
        return true;
    }

    PyObject* q() const { return owned[2]; }

private:
    std::vector<PyObject*> owned;

    static PyArrayObject* as_array(PyObject* array) { return reinterpret_cast<PyArrayObject*>(array); }
    static npy_intp last_of(PyObject* array, int from_end) {
        return PyArray_DIM(as_array(array), PyArray_NDIM(as_array(array)) - from_end);
    }
    static bool refuse(const char* why) {
        PyErr_Format(PyExc_ValueError, "attend: %s", why);
        return false;
    }

    // Returns the array, or a copy if it is not aligned or not in native byte order.
    PyArrayObject* own_array(PyObject* object, bool written) {
        PyArrayObject* array = as_array(object);
        if (written && !PyArray_ISBEHAVED(array)) {
            refuse("results need an aligned array that can be written to");
            return nullptr;
        }
        PyObject* found = PyArray_FromArray(array, nullptr, NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED);
        if (found) owned.push_back(found);
        return as_array(found);
    }

    bool offsets(PyObject* object, npy_intp rows, const npy_int64*& at, npy_intp& longest) {
        if (!PyArray_Check(object) || PyArray_TYPE(as_array(object)) != NPY_INT64 || PyArray_NDIM(as_array(object)) != 1 ||
            !PyArray_ISCARRAY_RO(as_array(object)) || PyArray_SIZE(as_array(object)) < 1)
            return refuse("offsets are int64");
        Py_INCREF(object);
        owned.push_back(object);
        at = static_cast<const npy_int64*>(PyArray_DATA(as_array(object)));
        npy_intp count = PyArray_SIZE(as_array(object)) - 1;
        longest = 0;
        for (npy_intp i = 0; i < count; i++) {
            if (at[i + 1] < at[i]) return refuse("offsets must not decrease");
            longest = std::max<npy_intp>(longest, at[i + 1] - at[i]);
        }
        return (at[0] == 0 && at[count] == rows) || refuse("offsets are not those of the rows");
    }

    bool count_pairs(PyObject* queries, PyObject* keys) {
        call.components = PyArray_SIZE(as_array(queries)) - 1;
        if (PyArray_SIZE(as_array(keys)) - 1 != call.components) return refuse("as many components of keys expected");
        call.pairs.assign(1, 0);
        for (npy_intp i = 0; i < call.components; i++)
            call.pairs.push_back(call.pairs.back() + (call.queries[i + 1] - call.queries[i]) * (call.keys[i + 1] - call.keys[i]));
        return true;
    }
};

// ---------------------------------------------------------------------------------------------------- execution

// Runs the items of a call on several threads.
template <class T, void (*work)(const Items<T>&)>
void do_items(const Call& call, T* partial) {
    npy_intp each = std::min(call.chunk, call.longest_queries) * call.longest_keys * (call.e + call.d) + 1;
    parallel_for(call.items(), 1 + WORK / each, [&](npy_intp begin, npy_intp end) { work({&call, begin, end, partial}); });
}

// Adds the partial sums of a unit's chunks for its keys, in the order of the chunks.
template <class T>
void join(const Call& call, const T* partial) {
    npy_intp size = room_for_sums(call), units = call.items() / call.chunks;
    parallel_for(units, 1, [&](npy_intp begin, npy_intp end) {
        const AlignedArray<T> room = aligned_array<T>(size);
        for (npy_intp i = begin; i < end; i++) {
            const T* first = partial + i * call.chunks * size;
            std::copy(first, first + size, room.get());
            for (npy_intp part = 1; part < call.chunks; part++)
                for (npy_intp j = 0; j < size; j++) room[j] += first[part * size + j];
            put_sums<T, 16>(call, call.unit(i * call.chunks), room.get());
        }
    });
}

template <class T>
void forward(const Call& call) {
    do_items<T, attend>(call, nullptr);
}

template <class T>
void backward(const Call& call) {
    if (call.chunks == 1) return do_items<T, attend_grad>(call, nullptr);
    const AlignedArray<T> partial = aligned_zeros<T>(call.items() * room_for_sums(call));
    do_items<T, attend_grad>(call, partial.get());
    join(call, partial.get());
}

PyObject* run(Reader& reader, void (*of_floats)(const Call&), void (*of_doubles)(const Call&)) {
    reader.call.plan();
    const bool done = without_gil([&] {
        if (reader.call.items() > 0) (reader.type == NPY_FLOAT ? of_floats : of_doubles)(reader.call);
    });
    if (!done) return nullptr;
    Py_RETURN_NONE;
}

}  // namespace

PyObject* attend_call(PyObject*, PyObject* args) {
    PyObject *q, *k, *v, *attn_mask, *attn_bias, *queries, *keys, *out, *sums;
    Reader reader;
    int causal;
    if (!PyArg_ParseTuple(args, "OOOOOOOdpOO:attend", &q, &k, &v, &attn_mask, &attn_bias, &queries, &keys, &reader.call.scale,
                          &causal, &out, &sums))
        return nullptr;
    reader.call.causal = causal;
    if (!reader.begin(q, k, v, queries, keys) || !reader.masks(attn_mask, attn_bias)) return nullptr;
    npy_intp rows = PyArray_DIM(reinterpret_cast<PyArrayObject*>(q), static_cast<int>(reader.call.front.size()));
    if (!reader.operand(out, {OUT, rows, reader.call.d, true}) || !reader.operand(sums, {SUMS, rows, -1, true})) return nullptr;
    return run(reader, forward<float>, forward<double>);
}

PyObject* attend_grad_call(PyObject*, PyObject* args) {
    PyObject *g, *of_sums, *out, *sums, *q, *k, *v, *attn_mask, *attn_bias, *queries, *keys, *dq, *dk, *dv, *dscores;
    Reader reader;
    int causal;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOOdpOOOO:attend_grad", &g, &of_sums, &out, &sums, &q, &k, &v, &attn_mask, &attn_bias,
                          &queries, &keys, &reader.call.scale, &causal, &dq, &dk, &dv, &dscores))
        return nullptr;
    reader.call.causal = causal;
    if (!reader.begin(q, k, v, queries, keys) || !reader.masks(attn_mask, attn_bias)) return nullptr;
    Call& call = reader.call;
    npy_intp rows = call.queries[call.components], of_keys = call.keys[call.components];
    bool fits = reader.operand(g, {G, rows, call.d}) && reader.operand(of_sums, {OF_SUMS, rows, -1}) &&
                reader.operand(out, {OUT, rows, call.d}) && reader.operand(sums, {SUMS, rows, -1}) &&
                reader.operand(dq, {DQ, rows, call.e, true}) && reader.operand(dk, {DK, of_keys, call.e, true}) &&
                reader.operand(dv, {DV, of_keys, call.d, true}) && reader.mask(dscores, DSCORES, reader.type, true);
    return fits ? run(reader, backward<float>, backward<double>) : nullptr;
}

namespace {

PyMethodDef methods[] = {
    {"attend", separate<attend_call, 2>, METH_VARARGS, "Attention of queries to keys and values."},
    {"attend_grad", separate<attend_grad_call, 4>, METH_VARARGS, "The gradients of attention."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_attention{methods};

}  // namespace retrograd
