/* Runs collectives and ends in a chosen way.
 *
 * usage: ends exit CODE | abort CODE | kill CALLS [launcher | group] | fill FILE | limit BYTES [late] | shell COMMAND |
 *             reuse FILE | forget VARIABLE
 * kill: rank 1 dies of SIGKILL after so many allreduces, or its launcher does, or the launcher's process
 * group, while all other ranks are in a long collective or on their way to one. fill: rank 0 first fills the disk with
 * FILE until no byte fits. limit: no file may become longer than that, from before MPI_Init on
 * or from behind it. shell: rank 0 runs
 * COMMAND in the middle. reuse: rank 0 then closes the descriptors of traces and call logs and has FILE, of four bytes,
 * in their places. forget: rank 0 then takes a variable out of its environment. Rank 0 prints the sum that it computed. */
#include "step.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static void fill(const char *path) {
    static const char block[4096];
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    for (size_t size = sizeof block; file >= 0 && size > 0;)
        if (write(file, block, size) <= 0) size /= 2;
    if (file >= 0) close(file);
}

static void reuse(const char *path) {
    DIR *folder = opendir("/proc/self/fd");
    int mine = open(path, O_CREAT | O_RDWR, 0600);
    if (mine < 0 || write(mine, "mine", 4) != 4) abort();
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char link[300], target[4096] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%s", entry->d_name);
        if (readlink(link, target, sizeof target - 1) <= 0) continue;
        if (strstr(target, ".trace.open") || strstr(target, ".jsonl")) dup2(mine, atoi(entry->d_name));
    }
}

static void limit_files(const char *bytes) {
    struct rlimit limit = {strtoul(bytes, NULL, 10), strtoul(bytes, NULL, 10)};
    if (setrlimit(RLIMIT_FSIZE, &limit)) abort();
}

static void in_the_middle(const char *how, const char *what) {
    if (!strcmp(how, "shell") && system(what)) abort();
    if (!strcmp(how, "reuse")) reuse(what);
    if (!strcmp(how, "forget")) unsetenv(what);
}

/* The process that was started as mpirun or mpiexec, above this one. */
static pid_t launcher(void) {
    pid_t found = 0;
    for (pid_t process = getppid(), parent; process > 1; process = parent) {
        char path[64], name[64] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
        FILE *file = fopen(path, "r");
        if (!file || fscanf(file, "%*d (%63[^)]) %*c %d", name, &parent) != 2) abort();
        fclose(file);
        if (!strncmp(name, "mpirun", 6) || !strncmp(name, "mpiexec", 7) || !strncmp(name, "orterun", 7)) found = process;
    }
    return found;
}

static void kill_somebody(const char *who) {
    pid_t process = strcmp(who, "rank") ? launcher() : getpid();
    if (process) kill(strcmp(who, "group") ? process : -getpgid(process), SIGKILL);
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "limit")) limit_files(argv[2]);
    MPI_Init(&argc, &argv);
    if (argc == 4 && !strcmp(argv[1], "limit")) limit_files(argv[2]);
    const char *how = argc > 1 ? argv[1] : "exit";
    int value = argc > 2 ? atoi(argv[2]) : 0, rank, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(how, "fill") && rank == 0) fill(argv[2]);
    int calls = strcmp(how, "kill") ? 60 : value;
    long one = 1, sum = 0;
    for (int k = 0; k < calls; k++) {
        if (rank == 0 && k == calls / 2) in_the_middle(how, argv[2]);
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        right &= step(MPI_COMM_WORLD, k, 3);
    }
    if (!strcmp(how, "kill") && rank == 1) kill_somebody(argc > 3 ? argv[3] : "rank");
    if (!strcmp(how, "kill"))
        for (int k = 0; k < 1 << 30; k++) {
            /* Without its launcher no rank may come to an end by itself. */
            step(MPI_COMM_WORLD, 0, STEP_MAX);
            step(MPI_COMM_WORLD, 1, STEP_MAX);
        }
    if (rank == 0) printf("sum %ld%s\n", sum, right ? "" : ", wrong");
    fflush(stdout);
    if (!strcmp(how, "abort") && rank == 0) MPI_Abort(MPI_COMM_WORLD, value);
    if (!strcmp(how, "abort")) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return strcmp(how, "exit") ? 0 : value;
}
