//! Whether the library was asked to go on without ranks that die (ULFM: MPIX_Comm_revoke and its like).

/// What asks for it: Open MPI from 5.0 on, by `mpirun --with-ft ulfm` or by itself, and MPICH.
const VARIABLES: [&str; 3] = [
    "OMPI_MCA_mpi_ft_enable",
    "PRTE_MCA_prte_enable_ft",
    "MPIR_CVAR_ENABLE_FT",
];

/// Whether this process's launcher or user asked for it. The library itself has the functions in any case.
#[cold]
pub fn is_asked_for() -> bool {
    VARIABLES.iter().any(|name| {
        std::env::var(name).is_ok_and(|value| {
            let value = value.to_ascii_lowercase();
            !["", "0", "false", "no", "off", "disabled"].contains(&value.trim())
        })
    })
}
