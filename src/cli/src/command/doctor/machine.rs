//! The machine: whether times that are measured on it mean something.

use super::findings::Findings;

/// Its name and cores, and what makes noise of benchmarks.
pub fn check(report: &mut Findings) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report.ok(format!(
        "machine: {} ({cores} cores)",
        colltune_db::database::machine_here()
    ));
    let limit = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    if limit.trim() == "0" {
        report.warn(
            "real-time scheduling is switched off (kernel.sched_rt_runtime_us is 0): benchmarks with more ranks than \
             cores are noise",
            "`sysctl kernel.sched_rt_runtime_us=950000`, as root, allows it",
        );
    }
    if cores < 4 {
        report.warn(
            format_args!("{cores} cores: with more ranks than cores times are noise"),
            "not so under `chrt -r 1 mpirun --oversubscribe --mca mpi_yield_when_idle 1` (Open MPI), each rank pinned \
             to a core",
        );
    }
}
