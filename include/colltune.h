/* Choices of a program, called levers, that colltune tunes together with the program's collectives.
 *
 * A program gives the arms of each choice by name, asks before each epoch which one to use, and says afterwards how much
 * work it did. An epoch is a stretch of the program between two moments at which it may change its mind, of some tenths of
 * a second at least: from one placement of blocks to the next, say.
 *
 *   static const char *const arms[] = {"contiguous", "knapsack", "space-filling"};
 *   for (;;) {
 *       int arm = colltune_choose(MPI_COMM_WORLD, "placement", 3, arms, blocks_per_rank);
 *       place(arm);
 *       double cells = advance(STEPS); // that this rank computed
 *       colltune_done(MPI_COMM_WORLD, "placement", cells);
 *   }
 *
 * Nothing is linked: the tuner is found at run time if the job was started with it (`colltune run`, `colltune tune`).
 * Without it a choice sends no message and is the first arm, or what the variable COLLTUNE_LEVERS says:
 *
 *   COLLTUNE_LEVERS="placement=knapsack;threads=4"
 *
 * where a `;` or `\` that belongs to an arm has a backslash before it. The variable must be the same on all ranks.
 * C99 or C++; before glibc 2.34 link with -ldl. */
#ifndef colltune_h
#define colltune_h

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The arm of `lever` to use from now on: an index into `arms`. Collective over `comm`: every rank passes the same lever,
 * arms and size, and gets the same answer. `size` is what the best arm may depend on beside nodes and ranks per node, such
 * as blocks per rank; its power of two counts. */
static inline int colltune_choose(MPI_Comm comm, const char *lever, int n_arms, const char *const arms[], double size);

/* The epoch since the last colltune_choose of this lever is over, and this rank did so much work in it, in any unit that does
 * not change, neither with the arm. The ranks' work is added up: 0 is possible on some. Collective over `comm`. */
static inline void colltune_done(MPI_Comm comm, const char *lever, double work);

/* What follows is not for callers. */

/* A function that the job was started with, or NULL. */
static inline void *colltune_h_function(const char *name) {
    void *program = dlopen(NULL, RTLD_LAZY);
    void *function = program ? dlsym(program, name) : NULL;
    if (program) dlclose(program);
    return function;
}

/* Copies the part of `text` before the next `;`, without the backslashes; gives what follows it, or NULL. */
static inline const char *colltune_h_part(const char *text, char *part) {
    for (; *text && *text != ';'; ++text) {
        if (*text == '\\' && (text[1] == ';' || text[1] == '\\')) ++text;
        *part++ = *text;
    }
    *part = '\0';
    return *text ? text + 1 : NULL;
}

/* Says on one rank, once for each lever, that what the variable names is not offered. */
static inline void colltune_h_not_offered(MPI_Comm comm, const char *lever, const char *arm) {
    static unsigned long said;
    unsigned hash = 0;
    const char *letter;
    int rank = 0;
    for (letter = lever; *letter; ++letter) hash = 31 * hash + (unsigned char)*letter;
    if (said >> hash % 32 & 1) return;
    said |= 1ul << hash % 32;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        fprintf(stderr, "colltune: COLLTUNE_LEVERS names %s=%s, which the program does not offer: its first arm is used\n",
                lever, arm);
}

/* The arm that COLLTUNE_LEVERS names, or the first one. */
static inline int colltune_h_named(MPI_Comm comm, const char *lever, int n_arms, const char *const arms[]) {
    const char *text = getenv("COLLTUNE_LEVERS");
    char *part;
    int arm = 0;
    if (!text || !lever || n_arms <= 0 || !arms) return 0;
    part = (char *)malloc(strlen(text) + 1);
    while (part && text) {
        char *name = part, *value, *end;
        text = colltune_h_part(text, part);
        value = strchr(part, '=');
        if (!value) continue;
        for (end = value++; end > name && end[-1] == ' '; --end) {}
        *end = '\0';
        while (*name == ' ') ++name;
        if (strcmp(name, lever)) continue;
        for (arm = 0; arm < n_arms && !(arms[arm] && !strcmp(arms[arm], value)); ++arm) {}
        if (arm == n_arms) {
            arm = 0;
            colltune_h_not_offered(comm, lever, value);
        }
    }
    free(part);
    return arm;
}

static inline int colltune_choose(MPI_Comm comm, const char *lever, int n_arms, const char *const arms[], double size) {
    static int (*choose)(MPI_Comm, const char *, int, const char *const[], double);
    static int is_known;
    if (!is_known) {
        void *function = colltune_h_function("colltune_choose");
        memcpy(&choose, &function, sizeof choose);
        is_known = 1;
    }
    return choose ? choose(comm, lever, n_arms, arms, size) : colltune_h_named(comm, lever, n_arms, arms);
}

static inline void colltune_done(MPI_Comm comm, const char *lever, double work) {
    static void (*done)(MPI_Comm, const char *, double);
    static int is_known;
    if (!is_known) {
        void *function = colltune_h_function("colltune_done");
        memcpy(&done, &function, sizeof done);
        is_known = 1;
    }
    if (done) done(comm, lever, work);
}

#ifdef __cplusplus
}
#endif

#endif
