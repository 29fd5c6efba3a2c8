/* Every predefined datatype of the library, moved and combined: a line for each with a hash of the results.
 *
 * usage: types right [NAME]    what the standard allows and the library has; with NAME only that type
 *        types wrong           operations that the library refuses: the class of its error
 * The values are small whole numbers, so that no sum depends on its order: Open MPI adds short integers saturated. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* C's and Fortran's integers, floating point, complex, logical, bytes, characters, pairs. */
enum kind { C_INT, F_INT, REAL, COMPLEX, LOGICAL, BYTE, TEXT, PAIR };
static const char *const ops_of[] = {"<>+*abolxy", "<>+*boy", "<>+*", "+*", "alx", "boy", "", "mM"};

struct type {
    const char *name;
    MPI_Datatype type;
    enum kind kind;
    int extended; /* floating point of 80 bits in 16 bytes */
};
enum { MOST = 700, RANKS = 16, BYTES = 32 };
static int rank, size;
static char send[MOST * RANKS * BYTES], recv[MOST * RANKS * BYTES], packed[MOST * RANKS * BYTES];

static MPI_Op operation(char letter) {
    switch (letter) {
    case '<': return MPI_MIN;
    case '>': return MPI_MAX;
    case '+': return MPI_SUM;
    case '*': return MPI_PROD;
    case 'a': return MPI_LAND;
    case 'l': return MPI_LOR;
    case 'x': return MPI_LXOR;
    case 'b': return MPI_BAND;
    case 'o': return MPI_BOR;
    case 'y': return MPI_BXOR;
    case 'm': return MPI_MINLOC;
    default: return MPI_MAXLOC;
    }
}

static void put_real(char *at, int bytes, int value) {
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    float f = (float)value;
    double d = value;
    __float128 q = value;
    if (bytes == 2) memcpy(at, &halves[value], 2);
    if (bytes == 4) memcpy(at, &f, 4);
    if (bytes == 8) memcpy(at, &d, 8);
    if (bytes == 16) memcpy(at, &q, 16);
}

static void put_int(char *at, int bytes, uint64_t value) { memcpy(at, &value, (size_t)(bytes < 8 ? bytes : 8)); }

/* Element i of rank `of`. `bytes` is the size of the type without its holes. */
static void put(const struct type *t, char *at, int bytes, int i, int of) {
    int value = 1 + (i * 7 + of * 3) % 4;
    long double l = value;
    switch (t->kind) {
    case REAL:
        if (t->extended) memcpy(at, &l, 10);
        else put_real(at, bytes, value);
        break;
    case COMPLEX:
        for (int part = 0; part < 2; part++, l = 0, value = 0) {
            if (t->extended) memcpy(at + part * bytes / 2, &l, 10);
            else put_real(at + part * bytes / 2, bytes / 2, value);
        }
        break;
    case LOGICAL: put_int(at, bytes, (uint64_t)(value & 1)); break;
    case PAIR:
        if (!strncmp(t->name, "MPI_2", 5)) {
            for (int part = 0; part < 2; part++) {
                if (strstr(t->name, "INT")) put_int(at + part * bytes / 2, bytes / 2, (uint64_t)(part ? of : value));
                else put_real(at + part * bytes / 2, bytes / 2, part ? of % 5 : value);
            }
            break;
        }
        if (t->extended) memcpy(at, &l, 10);
        else if (strstr(t->name, "FLOAT") || strstr(t->name, "DOUBLE")) put_real(at, bytes - 4, value);
        else put_int(at, bytes - 4, (uint64_t)value);
        put_int(at + (bytes - 4 < 4 ? 4 : bytes - 4), 4, (uint64_t)of);
        break;
    case BYTE:
    case TEXT: put_int(at, bytes, 0x9e3779b97f4a7c15u * (uint64_t)(i * 31 + of + 1)); break;
    default: put_int(at, bytes, (uint64_t)value * (bytes < 8 ? 1 : 100003)); break;
    }
}

static void fill(const struct type *t, int bytes, MPI_Aint extent, int count) {
    memset(send, 0, sizeof send), memset(recv, 0, sizeof recv);
    for (int i = 0; i < count; i++) put(t, send + i * extent, bytes, i, rank);
}

static uint64_t hash_of(const struct type *t, int bytes, int count, uint64_t hash) {
    int position = 0;
    MPI_Pack(recv, count, t->type, packed, (int)sizeof packed, &position, MPI_COMM_WORLD);
    /* The last six of the 16 bytes are anything. */
    int unit = !t->extended ? 0 : t->kind == PAIR ? bytes : 16;
    for (int i = 0; i < position; i++)
        if (!unit || i % unit < 10 || i % unit >= 16) hash = (hash ^ (unsigned char)packed[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t combined(const struct type *t, int bytes, MPI_Aint extent, int count, MPI_Op op, uint64_t hash) {
    MPI_Comm comm = MPI_COMM_WORLD;
    fill(t, bytes, extent, count * size);
    MPI_Allreduce(send, recv, count, t->type, op, comm);
    hash = hash_of(t, bytes, count, hash);
    fill(t, bytes, extent, count * size);
    MPI_Reduce(send, recv, count, t->type, op, size - 1, comm);
    if (rank == size - 1) hash = hash_of(t, bytes, count, hash);
    fill(t, bytes, extent, count * size);
    MPI_Reduce_scatter_block(send, recv, count, t->type, op, comm);
    hash = hash_of(t, bytes, count, hash);
    fill(t, bytes, extent, count * size);
    MPI_Scan(send, recv, count, t->type, op, comm);
    return hash_of(t, bytes, count, hash);
}

static uint64_t moved(const struct type *t, int bytes, MPI_Aint extent, int count, uint64_t hash) {
    MPI_Comm comm = MPI_COMM_WORLD;
    fill(t, bytes, extent, count * size);
    MPI_Allgather(send, count, t->type, recv, count, t->type, comm);
    hash = hash_of(t, bytes, count * size, hash);
    MPI_Alltoall(send, count, t->type, recv, count, t->type, comm);
    hash = hash_of(t, bytes, count * size, hash);
    memcpy(recv, send, sizeof recv);
    MPI_Bcast(recv, count, t->type, 0, comm);
    return hash_of(t, bytes, count, hash);
}

/* Whether the library itself lets an operation combine such elements. */
static int takes(MPI_Datatype type, MPI_Op op) { return PMPI_Reduce_local(send, recv, 0, type, op) == MPI_SUCCESS; }

/* Libraries take a long double for Fortran's real of 16 bytes where their compiler has nothing better. */
static int is_extended(const struct type *t, int bytes) {
    if (strstr(t->name, "LONG_DOUBLE")) return 1;
    if (bytes / (t->kind == COMPLEX ? 2 : 1) != 16 || (t->kind != REAL && t->kind != COMPLEX)) return 0;
    long double one[2] = {1, 0}, two[2] = {1, 0};
    return takes(t->type, MPI_SUM) && !PMPI_Reduce_local(one, two, 1, t->type, MPI_SUM) && two[0] == 2;
}

static void right(const struct type *t, int bytes, MPI_Aint extent) {
    uint64_t hash = 0xcbf29ce484222325u + (uint64_t)rank, all = 0;
    int n_ops = 0;
    for (int count = 3; count <= MOST; count += MOST - 3) {
        for (const char *op = ops_of[t->kind]; *op; op++) {
            if (!takes(t->type, operation(*op))) continue;
            hash = combined(t, bytes, extent, count, operation(*op), hash);
            n_ops++;
        }
        hash = moved(t, bytes, extent, count, hash);
    }
    PMPI_Reduce(&hash, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s of %d bytes, %d operations: %016llx\n", t->name, bytes, n_ops / 2, (unsigned long long)all);
}

static void wrong(const struct type *t) {
    for (const char *op = "<>+*abolxymM"; *op; op++) {
        if (takes(t->type, operation(*op))) continue;
        int class, codes[2] = {MPI_Allreduce(send, recv, 5, t->type, operation(*op), MPI_COMM_WORLD),
                               MPI_Reduce(send, recv, 5, t->type, operation(*op), 0, MPI_COMM_WORLD)};
        for (int i = 0; i < 2; i++) {
            MPI_Error_class(codes[i], &class);
            if (rank == 0) printf("%s %c: %d\n", t->name, *op, class);
        }
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    struct type all[] = {
#define T(name, kind) {#name, name, kind, 0},
        T(MPI_SIGNED_CHAR, C_INT) T(MPI_UNSIGNED_CHAR, C_INT) T(MPI_SHORT, C_INT) T(MPI_UNSIGNED_SHORT, C_INT)
        T(MPI_INT, C_INT) T(MPI_UNSIGNED, C_INT) T(MPI_LONG, C_INT) T(MPI_UNSIGNED_LONG, C_INT)
        T(MPI_LONG_LONG_INT, C_INT) T(MPI_LONG_LONG, C_INT) T(MPI_UNSIGNED_LONG_LONG, C_INT)
        T(MPI_INT8_T, C_INT) T(MPI_INT16_T, C_INT) T(MPI_INT32_T, C_INT) T(MPI_INT64_T, C_INT)
        T(MPI_UINT8_T, C_INT) T(MPI_UINT16_T, C_INT) T(MPI_UINT32_T, C_INT) T(MPI_UINT64_T, C_INT)
        T(MPI_AINT, F_INT) T(MPI_OFFSET, F_INT) T(MPI_COUNT, F_INT)
        T(MPI_FLOAT, REAL) T(MPI_DOUBLE, REAL) T(MPI_LONG_DOUBLE, REAL)
        T(MPI_C_COMPLEX, COMPLEX) T(MPI_C_FLOAT_COMPLEX, COMPLEX) T(MPI_C_DOUBLE_COMPLEX, COMPLEX)
        T(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX) T(MPI_C_BOOL, LOGICAL) T(MPI_BYTE, BYTE)
        T(MPI_CHAR, TEXT) T(MPI_WCHAR, TEXT) T(MPI_PACKED, TEXT)
        T(MPI_FLOAT_INT, PAIR) T(MPI_DOUBLE_INT, PAIR) T(MPI_LONG_INT, PAIR) T(MPI_2INT, PAIR)
        T(MPI_SHORT_INT, PAIR) T(MPI_LONG_DOUBLE_INT, PAIR)
        T(MPI_CXX_BOOL, LOGICAL) T(MPI_CXX_FLOAT_COMPLEX, COMPLEX) T(MPI_CXX_DOUBLE_COMPLEX, COMPLEX)
        T(MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEX)
        T(MPI_INTEGER, F_INT) T(MPI_INTEGER1, F_INT) T(MPI_INTEGER2, F_INT) T(MPI_INTEGER4, F_INT)
        T(MPI_INTEGER8, F_INT)
        T(MPI_REAL, REAL) T(MPI_DOUBLE_PRECISION, REAL) T(MPI_REAL4, REAL) T(MPI_REAL8, REAL) T(MPI_REAL16, REAL)
        T(MPI_COMPLEX, COMPLEX) T(MPI_DOUBLE_COMPLEX, COMPLEX) T(MPI_COMPLEX8, COMPLEX) T(MPI_COMPLEX16, COMPLEX)
        T(MPI_COMPLEX32, COMPLEX) T(MPI_LOGICAL, LOGICAL) T(MPI_CHARACTER, TEXT)
        T(MPI_2REAL, PAIR) T(MPI_2DOUBLE_PRECISION, PAIR) T(MPI_2INTEGER, PAIR)
#ifdef MPI_INTEGER16
        T(MPI_INTEGER16, F_INT)
#endif
#ifdef MPI_REAL2
        T(MPI_REAL2, REAL)
#endif
#ifdef MPI_LOGICAL8
        T(MPI_LOGICAL1, LOGICAL) T(MPI_LOGICAL2, LOGICAL) T(MPI_LOGICAL4, LOGICAL) T(MPI_LOGICAL8, LOGICAL)
#endif
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int bytes = 0;
        MPI_Aint lower, extent;
        if (all[i].type == MPI_DATATYPE_NULL || MPI_Type_size(all[i].type, &bytes) || bytes <= 0) continue;
        MPI_Type_get_extent(all[i].type, &lower, &extent);
        all[i].extended = is_extended(&all[i], bytes);
        if (argc > 2 && strcmp(argv[2], all[i].name)) continue;
        if (!strcmp(argv[1], "right")) right(&all[i], bytes, extent);
        else wrong(&all[i]);
    }
    MPI_Finalize();
    return 0;
}
