//! What launchers leave in the environment of the ranks: how many of them are on this node, and what the job is called.

use std::fmt;

use crate::library::Product;

/// What PALS and Flux call a job; of no use where it could be that of a job around this one.
const JOBS: [&str; 2] = ["PALS_APID", "FLUX_JOB_ID"];
const LOCAL_SIZES: [&str; 4] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PMI_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",
];
const LOCAL_RANKS: [&str; 4] = [
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "PMI_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
];
const RANKS: [&str; 6] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
];
/// What Open MPI's launcher sets, and what those that speak PMI do.
const OPEN_MPIS: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"];
const PMIS: [&str; 4] = ["PMI_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT"];

/// What no other job at the same name server has, or nothing: `own` is what this job's own launcher calls it.
pub fn world(own: String, read: impl Fn(&str) -> Option<String>) -> String {
    match own.is_empty() {
        true => JOBS.into_iter().find_map(read).unwrap_or_default(),
        false => own,
    }
}

/// A process's rank; `None` without any launcher.
pub fn rank(read: impl Fn(&str) -> Option<String>) -> Option<u32> {
    first_number(&RANKS, read)
}

/// How many processes the launcher started for this job, where none of them can find the others: each is a world of one,
/// because the library does not speak with another library's launcher. `None` for a job of one process, and wherever the
/// library's own launcher, or none, is seen: a rank of the one may start a job of the other, which inherits its variables.
pub fn strangers(
    product: Product,
    n_ranks: u32,
    read: impl Fn(&str) -> Option<String>,
) -> Option<Strangers> {
    let size = |name: &str| read(name)?.parse().ok().filter(|n: &u32| *n > 1);
    let rank = |name: &str| read(name)?.parse().ok();
    let is_seen = |names: &[&str]| names.iter().any(|name| read(name).is_some());
    let (launcher, own, [size_of, rank_of]) = match product {
        Product::OpenMpi => (
            "Hydra or Slurm's PMI, as of MPICH",
            &OPEN_MPIS[..],
            ["PMI_SIZE", "PMI_RANK"],
        ),
        _ => ("Open MPI's", &PMIS[..], OPEN_MPIS),
    };
    let n_processes = size(size_of).filter(|_| n_ranks == 1 && !is_seen(own))?;
    Some(Strangers {
        n_processes,
        place: rank(rank_of).unwrap_or(0),
        product,
        launcher,
    })
}

/// Processes of one job that are worlds of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strangers {
    n_processes: u32,
    /// Which of them this is, as the launcher counts.
    pub place: u32,
    product: Product,
    launcher: &'static str,
}

impl fmt::Display for Strangers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = self.product.title();
        write!(
            f,
            "{} processes each started as a world of one: the program was built for {title}, the launcher is {}; start it \
             with the mpiexec of {title}",
            self.n_processes, self.launcher
        )
    }
}

/// How many ranks but rank 0 the launcher says it started on the node of `rank`; `None` where it does not say.
pub fn followers_on_node(rank: u32, read: impl Fn(&str) -> Option<String>) -> Option<u32> {
    let number = |names: &[&str]| first_number(names, &read);
    if let (Some(size), Some(place)) = (number(&LOCAL_SIZES), number(&LOCAL_RANKS)) {
        // Where ranks fill one node after the other, rank 0 is on the node whose places are the ranks.
        return Some(size - u32::from(place == rank && size > 0));
    }
    let tasks = read("SLURM_GTIDS")?;
    Some(tasks.split(',').filter(|task| *task != "0").count() as u32)
}

/// How many ranks the launcher says it started on this node.
pub fn ranks_on_node(read: impl Fn(&str) -> Option<String>) -> Option<u32> {
    let number = |names: &[&str]| first_number(names, &read);
    let tasks = || Some(read("SLURM_GTIDS")?.split(',').count() as u32);
    // Flux says it where there is one node.
    let of_flux = || number(&["FLUX_JOB_SIZE"]).filter(|_| number(&["FLUX_JOB_NNODES"]) == Some(1));
    number(&LOCAL_SIZES).or_else(of_flux).or_else(tasks)
}

fn first_number(names: &[&str], read: impl Fn(&str) -> Option<String>) -> Option<u32> {
    names.iter().find_map(|name| read(name)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn processes_that_another_librarys_launcher_started_are_strangers() {
        let open_mpis = |n: &'static str| {
            move |name: &str| (name == "OMPI_COMM_WORLD_SIZE").then(|| n.to_owned())
        };
        let found = strangers(Product::Mpich, 1, open_mpis("4")).unwrap();
        assert_eq!(
            found.to_string(),
            "4 processes each started as a world of one: the program was built for MPICH, the launcher is Open MPI's; \
             start it with the mpiexec of MPICH"
        );
        let hydras = among(&[("PMI_SIZE", "2"), ("PMI_RANK", "1")]);
        assert_eq!(strangers(Product::OpenMpi, 1, &hydras).unwrap().place, 1);
        // Their own launchers, a launcher that both understand, a job of one process, and none at all.
        assert_eq!(strangers(Product::Mpich, 1, &hydras), None);
        assert_eq!(strangers(Product::OpenMpi, 1, open_mpis("2")), None);
        assert_eq!(strangers(Product::Mpich, 2, open_mpis("2")), None);
        assert_eq!(strangers(Product::Mpich, 1, open_mpis("1")), None);
        assert_eq!(strangers(Product::Intel, 1, among(&[])), None);
        // A job of one process that a rank of the other library's job starts.
        let within = among(&[
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_RANK", "2"),
            ("PMI_SIZE", "1"),
        ]);
        assert_eq!(strangers(Product::Mpich, 1, within), None);
        let within = among(&[("PMI_SIZE", "4"), ("OMPI_COMM_WORLD_SIZE", "1")]);
        assert_eq!(strangers(Product::OpenMpi, 1, within), None);
    }

    #[test]
    fn a_world_is_named_by_its_own_launcher_before_that_of_a_job_around_it() {
        let around = among(&[("FLUX_JOB_ID", "f1"), ("PALS_APID", "p1")]);
        assert_eq!(world("kvsh:1".to_owned(), &around), "kvsh:1");
        assert_eq!(world(String::new(), &around), "p1");
        assert_eq!(world(String::new(), among(&[("FLUX_JOB_ID", "f1")])), "f1");
        assert_eq!(world(String::new(), among(&[])), "");
    }

    #[test]
    fn launchers_say_how_many_ranks_they_started_on_a_node() {
        for (variables, ranks) in [
            (
                &[("PALS_LOCAL_SIZE", "4"), ("SLURM_GTIDS", "0,1")][..],
                Some(4),
            ),
            (&[("FLUX_JOB_SIZE", "8"), ("FLUX_JOB_NNODES", "1")], Some(8)),
            (&[("FLUX_JOB_SIZE", "8"), ("FLUX_JOB_NNODES", "2")], None),
            // A job of Flux around one of Hydra's.
            (
                &[
                    ("FLUX_JOB_SIZE", "8"),
                    ("FLUX_JOB_NNODES", "1"),
                    ("MPI_LOCALNRANKS", "2"),
                ],
                Some(2),
            ),
            (&[("SLURM_GTIDS", "0,1,2")], Some(3)),
            (&[], None),
        ] {
            assert_eq!(ranks_on_node(among(variables)), ranks, "{variables:?}");
        }
    }

    #[test]
    fn rank_0_is_nobodys_follower() {
        let slurm = among(&[("SLURM_GTIDS", "0,1,2")]);
        assert_eq!(followers_on_node(1, slurm), Some(2));
        let first = [("PALS_LOCAL_SIZE", "2"), ("PALS_LOCAL_RANKID", "1")];
        assert_eq!(followers_on_node(1, among(&first)), Some(1));
        assert_eq!(followers_on_node(3, among(&first)), Some(2));
        assert_eq!(followers_on_node(1, among(&[])), None);
    }

    #[test]
    fn a_launcher_inside_another_ones_job_gives_the_rank() {
        let variables = [
            ("SLURM_PROCID", "7"),
            ("FLUX_TASK_RANK", "3"),
            ("PMI_RANK", "1"),
        ];
        assert_eq!(rank(among(&variables)), Some(1));
        assert_eq!(rank(among(&variables[..2])), Some(3));
        assert_eq!(rank(among(&[("PALS_RANKID", "2")])), Some(2));
        assert_eq!(rank(among(&[("PALS_RANKID", "x")])), None);
    }
}
