//! What a machine is called: one rule for the jobs that record there and for the database that takes their traces.

/// The name of the machine: what Slurm calls it, else the host's name up to its first dot without trailing digits.
///
/// A host whose name is nothing but digits keeps them; one without a name is `unnamed`.
pub fn name(slurm_cluster: Option<&str>, host: &str) -> String {
    if let Some(name) = slurm_cluster.filter(|name| !name.is_empty()) {
        return name.to_owned();
    }
    let short = host.split('.').next().unwrap_or("");
    let bare = short.trim_end_matches(|c: char| c.is_ascii_digit());
    let named = [bare, short, "unnamed"]
        .into_iter()
        .find(|name| !name.is_empty());
    named.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn nodes_of_one_machine_have_one_name() {
        for (slurm, host, expected) in [
            (Some("hydra"), "hydra17.example.org", "hydra"),
            (Some(""), "hydra17.example.org", "hydra"),
            (None, "login", "login"),
            (None, "0123", "0123"),
            (None, "", "unnamed"),
        ] {
            assert_eq!(name(slurm, host), expected, "{host}");
        }
    }
}
