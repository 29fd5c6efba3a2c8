/* poisson_cg: conjugate gradients for the Poisson equation, in three dimensions, for several right-hand sides at once.
 *
 *     -(u_xx + u_yy + u_zz) = f  in the unit cube,  u = 0 on its surface
 *
 * A plain MPI program (C99, MPI and libm only) that knows nothing of any tuner; it is here to be tuned.
 *
 *     mpicc -O2 -o poisson_cg poisson_cg.c -lm
 *     mpirun -n 8 poisson_cg --n 32 --rhs 8
 *
 * How it works. The 7-point stencil on N cells a side; boxes of points on a Cartesian grid of ranks; halos by
 * nonblocking point-to-point messages. All right-hand sides advance together, so the dot products of one iteration
 * are two short vectors: 8 and 16 bytes a right-hand side, through MPI_Allreduce. The preconditioner has two levels: the
 * diagonal, and the correction from a coarse grid of C cells a side with trilinear interpolation, solved exactly by
 * fast diagonalisation. The coarse residual, (C-1)^3 numbers a right-hand side, is summed over the ranks and solved
 * in one of three ways, each the right one on some machine:
 *     redundant   MPI_Allreduce; every rank solves all right-hand sides
 *     shared      MPI_Reduce_scatter_block; every rank solves its share of them; MPI_Allgather
 *     root        MPI_Reduce; rank 0 solves; MPI_Bcast
 * (Where MPI_Bcast of some 50 KiB is badly chosen, `root` shows it: Open MPI 4.1.4 on 4 nodes x 2 ranks over 1 Gbit/s takes
 * 3.45 s with its own choice, 2.44 s with the pipelined broadcast; medians of 4 alternated runs, default options.)
 * Rank 0 alone reads the options and tabulates the sources (a production code reads them from a file); both are broadcast.
 *
 * How it checks itself. The exact solutions are u = g_a(x) g_b(y) g_c(z) with g_a(t) = t(1-t)exp(at), |a| <= 2, drawn anew
 * for each right-hand side and repetition. Let v be what the solver returned and r its residual, computed afresh:
 * A(u-v) = tau + r, with the truncation error |tau| <= h^2/12 (|u_xxxx| + |u_yyyy| + |u_zzzz|). The discrete maximum
 * principle with w = x(1-x)/2 (Aw = 1 exactly, w <= 1/8) gives |u-v| <= (|tau| + |r|)/8 at every point, and
 * |g_a| <= e^|a|/4, |g_a''''| <= e^|a| (|a|^4/4 + 4|a|^3 + 12 a^2) make that a number: the `bound`.
 * Exit status: 0 when every right-hand side converged and every error is within its bound; 1 when not; 2 for bad options.
 */
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 3, MAX_RHS = 256, MAX_CELLS = 2048, MAX_COARSE = 32, RIGHT = 0, WRONG = 1, BAD_OPTIONS = 2, HELP = 3 };
enum coarse_solver { REDUNDANT, SHARED, ROOT, NONE };
static const char *const coarse_solver_names[] = {"redundant", "shared", "root", "none"};

struct options {
    int cells, rhs, coarse_cells, coarse_solver, max_iterations, repeat;
    unsigned long long seed;
    double tolerance;
    char json[1024];
};

/* One rank's part of the problem. Points 1 .. cells-1 of each dimension are unknowns; `first` and `count` say which are ours.
 * A field holds them with one layer of halo, x fastest; a block of fields is one field after the other. */
struct domain {
    MPI_Comm comm;
    int rank, ranks;
    int grid[DIMS], first[DIMS], count[DIMS];
    int neighbour[DIMS][2];
    int cells, rhs;
    size_t stride_y, stride_z, field; /* distance of neighbours in y, in z, and of two fields */
    double *face_out[DIMS][2], *face_in[DIMS][2];
};

/* The coarse level. `modes` (row: coarse point, column: mode) diagonalises the one-dimensional operators together. */
struct coarse {
    int cells, points; /* a side; points = cells - 1 */
    size_t size;       /* points^3 */
    int shares;        /* right-hand sides that each rank solves under SHARED */
    enum coarse_solver solver;
    double modes[MAX_COARSE][MAX_COARSE], eigenvalues[MAX_COARSE];
    double *residual, *correction, *own, *own_solution, *work[3];
};

static double collectives_s; /* time inside MPI collectives on this rank */

#define COLLECTIVE(call)                                                                                               \
    do {                                                                                                               \
        double collective_start = MPI_Wtime();                                                                         \
        call;                                                                                                          \
        collectives_s += MPI_Wtime() - collective_start;                                                               \
    } while (0)

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "poisson_cg: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, WRONG);
    }
    return memory;
}

static double *numbers(size_t count) { return allocate(count, sizeof(double)); }

/* ------------------------------------------------------------------ options */

static const char usage[] =
    "usage: poisson_cg [--n CELLS] [--rhs K] [--tol T] [--max-iterations M] [--repeat R] [--seed S]\n"
    "                  [--coarse CELLS] [--coarse-solver redundant|shared|root|none] [--json FILE]\n"
    "  --n CELLS           cells per side of the cube (32)\n"
    "  --rhs K             right-hand sides solved at once (8)\n"
    "  --tol T             relative residual to reach (1e-8)\n"
    "  --max-iterations M  give up a solve after these (1000)\n"
    "  --repeat R          solves, each with new right-hand sides (20)\n"
    "  --seed S            of the right-hand sides (1)\n"
    "  --coarse CELLS      cells per side of the coarse grid (10)\n"
    "  --coarse-solver W   how the coarse problem is solved (root)\n"
    "  --json FILE         write the results there as well\n";

static int complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "poisson_cg: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n%s", usage);
    va_end(arguments);
    return BAD_OPTIONS;
}

static int read_integer(const char *name, const char *text, long low, long high, int *value)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || number < low || number > high)
        return complain("%s takes a whole number from %ld to %ld, not '%s'", name, low, high, text);
    *value = (int)number;
    return RIGHT;
}

static int read_options(int argc, char **argv, struct options *options)
{
    *options = (struct options){.cells = 32, .rhs = 8, .coarse_cells = 10, .coarse_solver = ROOT,
                                .max_iterations = 1000, .repeat = 20, .seed = 1, .tolerance = 1e-8};
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        int status = RIGHT;
        char *end;
        if (!strcmp(name, "--help")) {
            fputs(usage, stdout);
            return HELP;
        }
        if (strncmp(name, "--", 2))
            return complain("options start with --, not '%s'", name);
        if (!value)
            return complain("%s needs a value", name);
        if (!strcmp(name, "--n"))
            status = read_integer(name, value, 4, MAX_CELLS, &options->cells);
        else if (!strcmp(name, "--rhs"))
            status = read_integer(name, value, 1, MAX_RHS, &options->rhs);
        else if (!strcmp(name, "--max-iterations"))
            status = read_integer(name, value, 1, 1000000, &options->max_iterations);
        else if (!strcmp(name, "--repeat"))
            status = read_integer(name, value, 1, 1000000, &options->repeat);
        else if (!strcmp(name, "--coarse"))
            status = read_integer(name, value, 2, MAX_COARSE, &options->coarse_cells);
        else if (!strcmp(name, "--seed")) {
            options->seed = strtoull(value, &end, 10);
            if (*value < '0' || *value > '9' || *end)
                status = complain("--seed takes a whole number, not '%s'", value);
        } else if (!strcmp(name, "--tol")) {
            options->tolerance = strtod(value, &end);
            if (*value == '\0' || *end || !(options->tolerance >= 1e-14 && options->tolerance < 1))
                status = complain("--tol takes a number from 1e-14 to below 1, not '%s'", value);
        } else if (!strcmp(name, "--coarse-solver")) {
            for (options->coarse_solver = REDUNDANT; options->coarse_solver <= NONE; options->coarse_solver++)
                if (!strcmp(value, coarse_solver_names[options->coarse_solver]))
                    break;
            if (options->coarse_solver > NONE)
                status = complain("--coarse-solver takes redundant, shared, root or none, not '%s'", value);
        } else if (!strcmp(name, "--json")) {
            if (strlen(value) >= sizeof options->json)
                status = complain("--json: the name is too long");
            else
                strcpy(options->json, value);
        } else
            status = complain("unknown option %s", name);
        if (status != RIGHT)
            return status;
    }
    if (options->coarse_cells > options->cells)
        return complain("--coarse %d is finer than --n %d", options->coarse_cells, options->cells);
    return RIGHT;
}

/* ------------------------------------------------------------------ the domain and its halos */

static int set_up_domain(struct domain *domain, const struct options *options)
{
    int periodic[DIMS] = {0, 0, 0}, coordinates[DIMS];
    int points = options->cells - 1;
    MPI_Comm_size(MPI_COMM_WORLD, &domain->ranks);
    MPI_Dims_create(domain->ranks, DIMS, domain->grid);
    if (domain->grid[0] > points) { /* the largest */
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return rank == 0 ? complain("--n %d is too small for %d ranks in a grid of %d x %d x %d", options->cells, domain->ranks,
                                    domain->grid[0], domain->grid[1], domain->grid[2])
                         : BAD_OPTIONS;
    }
    MPI_Cart_create(MPI_COMM_WORLD, DIMS, domain->grid, periodic, 0, &domain->comm);
    MPI_Comm_rank(domain->comm, &domain->rank);
    MPI_Cart_coords(domain->comm, domain->rank, DIMS, coordinates);
    domain->cells = options->cells;
    domain->rhs = options->rhs;
    for (int d = 0; d < DIMS; d++) {
        int low = (int)((long)points * coordinates[d] / domain->grid[d]);
        int high = (int)((long)points * (coordinates[d] + 1) / domain->grid[d]);
        domain->first[d] = low + 1;
        domain->count[d] = high - low;
        MPI_Cart_shift(domain->comm, d, 1, &domain->neighbour[d][0], &domain->neighbour[d][1]);
    }
    domain->stride_y = (size_t)domain->count[0] + 2;
    domain->stride_z = domain->stride_y * ((size_t)domain->count[1] + 2);
    domain->field = domain->stride_z * ((size_t)domain->count[2] + 2);
    for (int d = 0; d < DIMS; d++)
        for (int side = 0; side < 2; side++) {
            size_t face = (size_t)domain->count[(d + 1) % DIMS] * domain->count[(d + 2) % DIMS] * domain->rhs;
            domain->face_out[d][side] = numbers(face);
            domain->face_in[d][side] = numbers(face);
        }
    return RIGHT;
}

/* Copies layer `layer` of dimension `d` of all fields into `face`, or back. */
static void copy_face(const struct domain *domain, double *fields, int d, int layer, double *face, int back)
{
    const size_t stride[DIMS] = {1, domain->stride_y, domain->stride_z};
    const int inner = d == 0 ? 1 : 0, outer = d == 2 ? 1 : 2;
    for (int k = 0; k < domain->rhs; k++)
        for (int j = 1; j <= domain->count[outer]; j++) {
            double *line = fields + k * domain->field + layer * stride[d] + j * stride[outer];
            for (int i = 1; i <= domain->count[inner]; i++, face++)
                if (back)
                    line[i * stride[inner]] = *face;
                else
                    *face = line[i * stride[inner]];
        }
}

static void exchange_halos(struct domain *domain, double *fields)
{
    MPI_Request requests[DIMS * 4];
    int n_requests = 0;
    for (int d = 0; d < DIMS; d++) {
        int face = domain->count[(d + 1) % DIMS] * domain->count[(d + 2) % DIMS] * domain->rhs;
        for (int side = 0; side < 2; side++)
            MPI_Irecv(domain->face_in[d][side], face, MPI_DOUBLE, domain->neighbour[d][side], d * 2 + 1 - side, domain->comm,
                      &requests[n_requests++]);
        for (int side = 0; side < 2; side++) {
            if (domain->neighbour[d][side] != MPI_PROC_NULL)
                copy_face(domain, fields, d, side ? domain->count[d] : 1, domain->face_out[d][side], 0);
            MPI_Isend(domain->face_out[d][side], face, MPI_DOUBLE, domain->neighbour[d][side], d * 2 + side, domain->comm,
                      &requests[n_requests++]);
        }
    }
    MPI_Waitall(n_requests, requests, MPI_STATUSES_IGNORE);
    for (int d = 0; d < DIMS; d++)
        for (int side = 0; side < 2; side++)
            if (domain->neighbour[d][side] != MPI_PROC_NULL)
                copy_face(domain, fields, d, side ? domain->count[d] + 1 : 0, domain->face_in[d][side], 1);
}

/* Runs the statement behind it for each line of points of field k: `at` is the index of the line's first point. */
#define FOR_LINES(domain, k, at)                                                                                       \
    for (int z_ = 1; z_ <= (domain)->count[2]; z_++)                                                                   \
        for (size_t y_ = 1, at = (k) * (domain)->field + z_ * (domain)->stride_z + (domain)->stride_y + 1;             \
             y_ <= (size_t)(domain)->count[1]; y_++, at += (domain)->stride_y)

/* out = A in, A being h^2 times the 7-point operator. */
static void apply_operator(struct domain *domain, double *in, double *out)
{
    const ptrdiff_t sy = (ptrdiff_t)domain->stride_y, sz = (ptrdiff_t)domain->stride_z;
    exchange_halos(domain, in);
    for (int k = 0; k < domain->rhs; k++)
        FOR_LINES(domain, k, at)
        {
            const double *here = in + at;
            double *there = out + at;
            for (int x = 0; x < domain->count[0]; x++)
                there[x] = 6 * here[x] - here[x - 1] - here[x + 1] - here[x - sy] - here[x + sy] - here[x - sz] -
                           here[x + sz];
        }
}

static double local_dot(const struct domain *domain, int k, const double *a, const double *b)
{
    double sum = 0;
    FOR_LINES(domain, k, at)
        for (int x = 0; x < domain->count[0]; x++)
            sum += a[at + x] * b[at + x];
    return sum;
}

/* ------------------------------------------------------------------ the coarse level */

/* Weight of the coarse hat function `j` at fine point `i`. */
static double hat(int i, int j, int cells, int coarse_cells)
{
    double distance = fabs((double)i / cells * coarse_cells - j);
    return distance < 1 ? 1 - distance : 0;
}

/* All eigenvalues and vectors of S v = lambda B v (symmetric, B positive definite), with V'BV = 1: Cholesky, then Jacobi. */
static void diagonalise(int n, double s[MAX_COARSE][MAX_COARSE], double b[MAX_COARSE][MAX_COARSE],
                        double vectors[MAX_COARSE][MAX_COARSE], double *values)
{
    static double l[MAX_COARSE][MAX_COARSE], q[MAX_COARSE][MAX_COARSE];
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = b[i][j];
            for (int m = 0; m < j; m++)
                sum -= l[i][m] * l[j][m];
            l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
        }
    for (int pass = 0; pass < 2; pass++) { /* S := L^-1 S, transposed; twice: L^-1 S L^-T */
        for (int column = 0; column < n; column++)
            for (int i = 0; i < n; i++) {
                for (int m = 0; m < i; m++)
                    s[i][column] -= l[i][m] * s[m][column];
                s[i][column] /= l[i][i];
            }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++) {
                double swap = s[i][j];
                s[i][j] = s[j][i];
                s[j][i] = swap;
            }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            q[i][j] = i == j;
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0, diagonal = 0;
        for (int i = 0; i < n; i++) {
            diagonal += s[i][i] * s[i][i];
            for (int j = 0; j < i; j++)
                off += s[i][j] * s[i][j];
        }
        if (off <= 1e-30 * diagonal)
            break;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++) {
                if (s[i][j] == 0)
                    continue;
                double theta = (s[j][j] - s[i][i]) / (2 * s[i][j]);
                double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
                double c = 1 / sqrt(t * t + 1), sine = t * c;
                for (int m = 0; m < n; m++) {
                    double a = s[m][i], d = s[m][j];
                    s[m][i] = c * a - sine * d;
                    s[m][j] = sine * a + c * d;
                }
                for (int m = 0; m < n; m++) {
                    double a = s[i][m], d = s[j][m];
                    s[i][m] = c * a - sine * d;
                    s[j][m] = sine * a + c * d;
                    a = q[m][i], d = q[m][j];
                    q[m][i] = c * a - sine * d;
                    q[m][j] = sine * a + c * d;
                }
            }
    }
    for (int j = 0; j < n; j++) {
        values[j] = s[j][j];
        for (int i = n - 1; i >= 0; i--) { /* L^T v = q */
            double sum = q[i][j];
            for (int m = i + 1; m < n; m++)
                sum -= l[m][i] * vectors[m][j];
            vectors[i][j] = sum / l[i][i];
        }
    }
}

/* The coarse operator is P'AP. A is a sum of products of one-dimensional operators and so is P, hence P'AP: with T the
 * second difference, S = p'Tp and B = p'p in one dimension, it is SBB + BSB + BBS; in the modes of (S, B) a diagonal. */
static void set_up_coarse(struct coarse *coarse, const struct domain *domain, const struct options *options)
{
    static double s[MAX_COARSE][MAX_COARSE], b[MAX_COARSE][MAX_COARSE];
    int n = options->cells, c = options->coarse_cells;
    coarse->solver = (enum coarse_solver)options->coarse_solver;
    coarse->cells = c;
    coarse->points = c - 1;
    coarse->size = (size_t)coarse->points * coarse->points * coarse->points;
    coarse->shares = (domain->rhs + domain->ranks - 1) / domain->ranks;
    for (int i = 0; i < c - 1; i++)
        for (int j = 0; j < c - 1; j++) {
            s[i][j] = b[i][j] = 0;
            for (int m = 1; m < n; m++) {
                double left = hat(m, i + 1, n, c);
                b[i][j] += left * hat(m, j + 1, n, c);
                s[i][j] += left * (2 * hat(m, j + 1, n, c) - (m > 1 ? hat(m - 1, j + 1, n, c) : 0) -
                                   (m < n - 1 ? hat(m + 1, j + 1, n, c) : 0));
            }
        }
    diagonalise(c - 1, s, b, coarse->modes, coarse->eigenvalues);
    size_t padded = coarse->size * coarse->shares * domain->ranks; /* SHARED gives every rank as many right-hand sides */
    coarse->residual = numbers(padded);
    coarse->correction = numbers(padded);
    coarse->own = numbers(coarse->size * coarse->shares);
    coarse->own_solution = numbers(coarse->size * coarse->shares);
    size_t longest[DIMS];
    for (int d = 0; d < DIMS; d++)
        longest[d] = (size_t)(domain->count[d] > c + 1 ? domain->count[d] : c + 1);
    for (int i = 0; i < 3; i++)
        coarse->work[i] = numbers(longest[0] * longest[1] * longest[2]);
}

/* Contracts or expands one dimension between `count` fine points from `first` on and the coarse points 0 .. cells (the two
 * on the surface included, where everything is zero): an array of [slow][this dimension][fast]. */
static void restrict_dimension(const struct coarse *coarse, int cells, int first, int count, size_t slow, size_t fast,
                               const double *fine, double *result)
{
    size_t wide = (size_t)coarse->cells + 1;
    memset(result, 0, slow * wide * fast * sizeof *result);
    for (size_t o = 0; o < slow; o++)
        for (int i = 0; i < count; i++) {
            int left = (int)((long)(first + i) * coarse->cells / cells);
            double to_left = hat(first + i, left, cells, coarse->cells), to_right = 1 - to_left;
            const double *from = fine + (o * count + i) * fast;
            double *to = result + (o * wide + left) * fast;
            for (size_t f = 0; f < fast; f++) {
                to[f] += to_left * from[f];
                to[f + fast] += to_right * from[f];
            }
        }
}

static void prolong_dimension(const struct coarse *coarse, int cells, int first, int count, size_t slow, size_t fast,
                              const double *from_coarse, double *result)
{
    size_t wide = (size_t)coarse->cells + 1;
    for (size_t o = 0; o < slow; o++)
        for (int i = 0; i < count; i++) {
            int left = (int)((long)(first + i) * coarse->cells / cells);
            double of_left = hat(first + i, left, cells, coarse->cells), of_right = 1 - of_left;
            const double *from = from_coarse + (o * wide + left) * fast;
            double *to = result + (o * count + i) * fast;
            for (size_t f = 0; f < fast; f++)
                to[f] = of_left * from[f] + of_right * from[f + fast];
        }
}

/* This rank's part of P'r for right-hand side k. */
static void restrict_field(struct coarse *coarse, const struct domain *domain, int k, const double *fields)
{
    const int *first = domain->first, *count = domain->count;
    const size_t wide = (size_t)coarse->cells + 1;
    double *packed = coarse->work[0];
    FOR_LINES(domain, k, at)
    {
        memcpy(packed, fields + at, count[0] * sizeof *packed);
        packed += count[0];
    }
    restrict_dimension(coarse, domain->cells, first[2], count[2], 1, (size_t)count[0] * count[1], coarse->work[0], coarse->work[1]);
    restrict_dimension(coarse, domain->cells, first[1], count[1], wide, (size_t)count[0], coarse->work[1], coarse->work[2]);
    restrict_dimension(coarse, domain->cells, first[0], count[0], wide * wide, 1, coarse->work[2], coarse->work[0]);
    double *to = coarse->residual + k * coarse->size;
    for (size_t z = 1; z < wide - 1; z++)
        for (size_t y = 1; y < wide - 1; y++, to += coarse->points)
            memcpy(to, coarse->work[0] + (z * wide + y) * wide + 1, coarse->points * sizeof *to);
}

/* Adds P c to right-hand side k of `fields`. */
static void add_correction(struct coarse *coarse, const struct domain *domain, int k, double *fields)
{
    const int *first = domain->first, *count = domain->count;
    const size_t wide = (size_t)coarse->cells + 1;
    const double *from = coarse->correction + k * coarse->size;
    memset(coarse->work[0], 0, wide * wide * wide * sizeof(double));
    for (size_t z = 1; z < wide - 1; z++)
        for (size_t y = 1; y < wide - 1; y++, from += coarse->points)
            memcpy(coarse->work[0] + (z * wide + y) * wide + 1, from, coarse->points * sizeof *from);
    prolong_dimension(coarse, domain->cells, first[0], count[0], wide * wide, 1, coarse->work[0], coarse->work[1]);
    prolong_dimension(coarse, domain->cells, first[1], count[1], wide, (size_t)count[0], coarse->work[1], coarse->work[2]);
    prolong_dimension(coarse, domain->cells, first[2], count[2], 1, (size_t)count[0] * count[1], coarse->work[2], coarse->work[0]);
    const double *packed = coarse->work[0];
    FOR_LINES(domain, k, at)
    {
        for (int x = 0; x < count[0]; x++)
            fields[at + x] += packed[x];
        packed += count[0];
    }
}

/* Multiplies all three dimensions of `from` by the modes (or their transpose), result in `to`. The dimensions rotate once round. */
static void transform(const struct coarse *coarse, int transposed, const double *from, double *to)
{
    const int n = coarse->points;
    const size_t plane = (size_t)n * n;
    for (int d = 0; d < DIMS; d++) {
        const double *source = d == 0 ? from : coarse->work[d - 1];
        double *target = d == DIMS - 1 ? to : coarse->work[d];
        memset(target, 0, coarse->size * sizeof *target);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                double weight = transposed ? coarse->modes[j][i] : coarse->modes[i][j];
                for (size_t m = 0; m < plane; m++) /* target[m][i] += weight * source[j][m] */
                    target[m * n + i] += weight * source[j * plane + m];
            }
    }
}

static void solve_coarse(const struct coarse *coarse, int n_fields, const double *residual, double *solution)
{
    for (int k = 0; k < n_fields; k++, residual += coarse->size, solution += coarse->size) {
        double *modal = solution;
        transform(coarse, 1, residual, modal);
        for (int z = 0; z < coarse->points; z++)
            for (int y = 0; y < coarse->points; y++)
                for (int x = 0; x < coarse->points; x++)
                    *modal++ /= coarse->eigenvalues[x] + coarse->eigenvalues[y] + coarse->eigenvalues[z];
        memcpy(coarse->work[2], solution, coarse->size * sizeof *solution);
        transform(coarse, 0, coarse->work[2], solution);
    }
}

/* z = M^-1 r: the diagonal plus the coarse correction. */
static void precondition(struct coarse *coarse, const struct domain *domain, const double *r, double *z)
{
    for (int k = 0; k < domain->rhs; k++)
        FOR_LINES(domain, k, at)
            for (int x = 0; x < domain->count[0]; x++)
                z[at + x] = r[at + x] / 6;
    if (coarse->solver == NONE)
        return;
    for (int k = 0; k < domain->rhs; k++)
        restrict_field(coarse, domain, k, r);
    int all = (int)(coarse->size * domain->rhs), share = (int)(coarse->size * coarse->shares);
    switch (coarse->solver) {
    case REDUNDANT:
        COLLECTIVE(MPI_Allreduce(MPI_IN_PLACE, coarse->residual, all, MPI_DOUBLE, MPI_SUM, domain->comm));
        solve_coarse(coarse, domain->rhs, coarse->residual, coarse->correction);
        break;
    case SHARED:
        COLLECTIVE(MPI_Reduce_scatter_block(coarse->residual, coarse->own, share, MPI_DOUBLE, MPI_SUM, domain->comm));
        solve_coarse(coarse, coarse->shares, coarse->own, coarse->own_solution);
        COLLECTIVE(MPI_Allgather(coarse->own_solution, share, MPI_DOUBLE, coarse->correction, share, MPI_DOUBLE, domain->comm));
        break;
    default:
        /* `correction` is free here, so it can take the sum. */
        COLLECTIVE(MPI_Reduce(coarse->residual, coarse->correction, all, MPI_DOUBLE, MPI_SUM, 0, domain->comm));
        if (domain->rank == 0) {
            memcpy(coarse->residual, coarse->correction, all * sizeof(double));
            solve_coarse(coarse, domain->rhs, coarse->residual, coarse->correction);
        }
        COLLECTIVE(MPI_Bcast(coarse->correction, all, MPI_DOUBLE, 0, domain->comm));
    }
    for (int k = 0; k < domain->rhs; k++)
        add_correction(coarse, domain, k, z);
}

/* ------------------------------------------------------------------ the exact solutions */

/* g_a and its second derivative at every point of one side, for each right-hand side and dimension; and a itself. */
struct sources {
    int points; /* cells + 1 */
    double *table;
};

enum { VALUE, SECOND };

static double *profile(const struct sources *sources, int k, int d, int derivative)
{
    return sources->table + (((size_t)k * DIMS + d) * 2 + derivative) * sources->points;
}

static double *exponent(const struct sources *sources, int rhs, int k, int d)
{
    return profile(sources, rhs, 0, VALUE) + k * DIMS + d;
}

static size_t sources_length(const struct sources *sources, int rhs) { return (size_t)rhs * DIMS * (2 * sources->points + 1); }

/* SplitMix64 (Steele, Lea, Flood 2014): uniform in [-2, 2). */
static double draw(unsigned long long *state)
{
    unsigned long long z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 * 4 - 2;
}

static void tabulate(const struct sources *sources, int rhs, unsigned long long *state)
{
    for (int k = 0; k < rhs; k++)
        for (int d = 0; d < DIMS; d++) {
            double a = *exponent(sources, rhs, k, d) = draw(state);
            for (int i = 0; i < sources->points; i++) {
                double t = (double)i / (sources->points - 1), p = t * (1 - t);
                profile(sources, k, d, VALUE)[i] = p * exp(a * t);
                profile(sources, k, d, SECOND)[i] = (a * a * p + 2 * a * (1 - 2 * t) - 2) * exp(a * t);
            }
        }
}

/* The largest possible |u_xxxx| + |u_yyyy| + |u_zzzz| of right-hand side k. */
static double fourth_derivatives(const struct sources *sources, int rhs, int k)
{
    double value[DIMS], fourth[DIMS];
    for (int d = 0; d < DIMS; d++) {
        double a = fabs(*exponent(sources, rhs, k, d));
        value[d] = exp(a) / 4;
        fourth[d] = exp(a) * (a * a * a * a / 4 + 4 * a * a * a + 12 * a * a);
    }
    return fourth[0] * value[1] * value[2] + value[0] * fourth[1] * value[2] + value[0] * value[1] * fourth[2];
}

static void set_right_hand_sides(const struct domain *domain, const struct sources *sources, double *b)
{
    double h2 = 1.0 / domain->cells / domain->cells;
    for (int k = 0; k < domain->rhs; k++) {
        int line = 0;
        FOR_LINES(domain, k, at)
        {
            int y = domain->first[1] + line % domain->count[1], z = domain->first[2] + line / domain->count[1];
            double gy = profile(sources, k, 1, VALUE)[y], gz = profile(sources, k, 2, VALUE)[z];
            double gyy = profile(sources, k, 1, SECOND)[y], gzz = profile(sources, k, 2, SECOND)[z];
            const double *gx = profile(sources, k, 0, VALUE) + domain->first[0], *gxx = profile(sources, k, 0, SECOND) + domain->first[0];
            for (int x = 0; x < domain->count[0]; x++)
                b[at + x] = -h2 * (gxx[x] * gy * gz + gx[x] * gyy * gz + gx[x] * gy * gzz);
            line++;
        }
    }
}

/* Largest |u - v| and largest |b - Av| (undone h^2) of each right-hand side, on rank 0; `scratch` is overwritten. */
static void measure(struct domain *domain, const struct sources *sources, double *v, const double *b, double *scratch, double *worst)
{
    double mine[2 * MAX_RHS], h2 = 1.0 / domain->cells / domain->cells;
    apply_operator(domain, v, scratch);
    for (int k = 0; k < domain->rhs; k++) {
        double error = 0, residual = 0;
        int line = 0, bad = 0;
        FOR_LINES(domain, k, at)
        {
            int y = domain->first[1] + line % domain->count[1], z = domain->first[2] + line / domain->count[1];
            double gyz = profile(sources, k, 1, VALUE)[y] * profile(sources, k, 2, VALUE)[z];
            const double *gx = profile(sources, k, 0, VALUE) + domain->first[0];
            for (int x = 0; x < domain->count[0]; x++) {
                error = fmax(error, fabs(gx[x] * gyz - v[at + x]));
                residual = fmax(residual, fabs(b[at + x] - scratch[at + x]) / h2);
                bad |= isnan(v[at + x]); /* which fmax would swallow */
            }
            line++;
        }
        mine[2 * k] = bad ? INFINITY : error;
        mine[2 * k + 1] = residual;
    }
    COLLECTIVE(MPI_Reduce(mine, worst, 2 * domain->rhs, MPI_DOUBLE, MPI_MAX, 0, domain->comm));
}

/* ------------------------------------------------------------------ the solver */

struct vectors {
    double *b, *v, *r, *z, *p, *ap;
};

/* Preconditioned conjugate gradients for all right-hand sides together, from zero. Returns the iterations, or -1 if they ran out. */
static int solve(struct domain *domain, struct coarse *coarse, struct vectors *w, double tolerance, int max_iterations)
{
    const int rhs = domain->rhs;
    double target[MAX_RHS], rz[MAX_RHS], mine[2 * MAX_RHS], sums[2 * MAX_RHS];
    memset(w->v, 0, domain->field * rhs * sizeof *w->v);
    memcpy(w->r, w->b, domain->field * rhs * sizeof *w->r);
    memset(w->p, 0, domain->field * rhs * sizeof *w->p);
    for (int k = 0; k < rhs; k++)
        rz[k] = 0;
    for (int iteration = 0;; iteration++) {
        precondition(coarse, domain, w->r, w->z);
        for (int k = 0; k < rhs; k++) {
            mine[2 * k] = local_dot(domain, k, w->r, w->z);
            mine[2 * k + 1] = local_dot(domain, k, w->r, w->r);
        }
        COLLECTIVE(MPI_Allreduce(mine, sums, 2 * rhs, MPI_DOUBLE, MPI_SUM, domain->comm));
        int open = 0;
        for (int k = 0; k < rhs; k++) {
            if (iteration == 0)
                target[k] = tolerance * tolerance * sums[2 * k + 1];
            open += !(sums[2 * k + 1] <= target[k]); /* a NaN stays open */
        }
        if (open == 0)
            return iteration;
        if (iteration == max_iterations)
            return -1;
        for (int k = 0; k < rhs; k++) {
            double beta = rz[k] > 0 ? sums[2 * k] / rz[k] : 0;
            rz[k] = sums[2 * k];
            FOR_LINES(domain, k, at)
                for (int x = 0; x < domain->count[0]; x++)
                    w->p[at + x] = w->z[at + x] + beta * w->p[at + x];
        }
        apply_operator(domain, w->p, w->ap);
        for (int k = 0; k < rhs; k++)
            mine[k] = local_dot(domain, k, w->p, w->ap);
        COLLECTIVE(MPI_Allreduce(mine, sums, rhs, MPI_DOUBLE, MPI_SUM, domain->comm));
        for (int k = 0; k < rhs; k++) {
            double alpha = sums[k] > 0 ? rz[k] / sums[k] : 0;
            FOR_LINES(domain, k, at)
                for (int x = 0; x < domain->count[0]; x++) {
                    w->v[at + x] += alpha * w->p[at + x];
                    w->r[at + x] -= alpha * w->ap[at + x];
                }
        }
    }
}

/* ------------------------------------------------------------------ the run */

struct outcome {
    long iterations;
    double error, bound, time_s; /* error and bound of the solution that came closest to its bound */
    int status;
};

static struct outcome solve_repeatedly(struct domain *domain, struct coarse *coarse, const struct options *options)
{
    struct outcome outcome = {.bound = 1, .status = RIGHT};
    struct sources sources = {.points = options->cells + 1};
    struct vectors w;
    double **const all[] = {&w.b, &w.v, &w.r, &w.z, &w.p, &w.ap};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = numbers(domain->field * domain->rhs);
    size_t length = sources_length(&sources, domain->rhs);
    sources.table = numbers(length);
    double worst[2 * MAX_RHS], h2 = 1.0 / domain->cells / domain->cells;
    unsigned long long state = options->seed;

    for (int repetition = 0; repetition < options->repeat; repetition++) {
        if (domain->rank == 0)
            tabulate(&sources, domain->rhs, &state);
        double start = MPI_Wtime();
        COLLECTIVE(MPI_Bcast(sources.table, (int)length, MPI_DOUBLE, 0, domain->comm));
        set_right_hand_sides(domain, &sources, w.b);
        int iterations = solve(domain, coarse, &w, options->tolerance, options->max_iterations);
        outcome.time_s += MPI_Wtime() - start;
        outcome.iterations += iterations < 0 ? options->max_iterations : iterations;
        measure(domain, &sources, w.v, w.b, w.ap, worst);
        if (domain->rank != 0)
            continue;
        if (iterations < 0) {
            fprintf(stderr, "poisson_cg: WRONG: solve %d did not converge in %d iterations\n", repetition, options->max_iterations);
            outcome.status = WRONG;
        }
        for (int k = 0; k < domain->rhs; k++) {
            double bound = (h2 / 12 * fourth_derivatives(&sources, domain->rhs, k) + worst[2 * k + 1]) / 8;
            if (!(worst[2 * k] <= bound)) {
                fprintf(stderr, "poisson_cg: WRONG: solve %d, right-hand side %d: error %.6e is above the bound %.6e\n", repetition, k,
                        worst[2 * k], bound);
                outcome.status = WRONG;
            }
            if (worst[2 * k] / bound >= outcome.error / outcome.bound) {
                outcome.error = worst[2 * k];
                outcome.bound = bound;
            }
        }
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(*all[i]);
    free(sources.table);
    return outcome;
}

static int report(const struct domain *domain, const struct options *options, const struct outcome *outcome, const double *statistics)
{
    double slowest = 0, mean = 0;
    for (int rank = 0; rank < domain->ranks; rank++) {
        slowest = fmax(slowest, statistics[2 * rank]);
        mean += statistics[2 * rank + 1] / domain->ranks;
    }
    printf("poisson_cg: %d^3 cells, %d right-hand sides, %d solves, on %d ranks (%d x %d x %d)\n", options->cells, options->rhs,
           options->repeat, domain->ranks, domain->grid[0], domain->grid[1], domain->grid[2]);
    printf("coarse grid: %d^3 cells, %s, %zu bytes an iteration\n", options->coarse_cells, coarse_solver_names[options->coarse_solver],
           options->coarse_solver == NONE ? (size_t)0
                                          : (size_t)options->rhs * (options->coarse_cells - 1) * (options->coarse_cells - 1) *
                                                (options->coarse_cells - 1) * sizeof(double));
    printf("iterations:  %ld\nerror:       %.3e (bound %.3e)\n", outcome->iterations, outcome->error, outcome->bound);
    printf("solver:      %.3f s, of which %.3f s in collectives (rank 0; mean of all ranks %.3f s)\n", outcome->time_s, collectives_s, mean);
    printf("slowest:     %.3f s\n%s\n", slowest, outcome->status == RIGHT ? "right" : "WRONG");
    if (!options->json[0])
        return outcome->status;
    FILE *file = fopen(options->json, "w");
    int written = file && fprintf(file,
                                  "{\"ranks\": %d, \"iterations\": %ld, \"error\": %.9e, \"bound\": %.9e, \"time_s\": %.6f, "
                                  "\"collectives_s\": %.6f}\n",
                                  domain->ranks, outcome->iterations, outcome->error, outcome->bound, outcome->time_s, collectives_s) > 0;
    if (!file || fclose(file) || !written) {
        fprintf(stderr, "poisson_cg: cannot write %s\n", options->json);
        return WRONG;
    }
    return outcome->status;
}

int main(int argc, char **argv)
{
    static struct domain domain;
    static struct coarse coarse;
    struct options options;
    int rank, status = RIGHT;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        status = read_options(argc, argv, &options);
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (status == RIGHT) {
        MPI_Bcast(&options, sizeof options, MPI_BYTE, 0, MPI_COMM_WORLD);
        status = set_up_domain(&domain, &options);
    }
    if (status != RIGHT) {
        MPI_Finalize();
        return status == HELP ? 0 : status;
    }
    set_up_coarse(&coarse, &domain, &options);
    struct outcome outcome = solve_repeatedly(&domain, &coarse, &options);
    double mine[2] = {outcome.time_s, collectives_s}, *statistics = numbers(2 * (size_t)domain.ranks);
    MPI_Allgather(mine, 2, MPI_DOUBLE, statistics, 2, MPI_DOUBLE, domain.comm);
    status = outcome.status;
    if (rank == 0)
        status = report(&domain, &options, &outcome, statistics);
    /* All ranks end alike, or mpirun would call the job failed on some launchers only. */
    MPI_Bcast(&status, 1, MPI_INT, 0, domain.comm);
    free(statistics);
    MPI_Comm_free(&domain.comm);
    MPI_Finalize();
    return status;
}
