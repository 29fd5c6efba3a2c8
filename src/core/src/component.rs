//! Whose the library's own choice is, where a library has several components that run collectives: Open MPI.

/// The column of a context that says it.
pub const COLUMN: &str = "component";

/// A component that runs collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component<'a> {
    pub name: &'a str,
    pub priority: i32,
    /// Some run only where a user enables them.
    pub enabled: bool,
}

/// The component that runs most collectives on MPI_COMM_WORLD: of those that may run, the one with the highest priority.
pub fn chosen<'a>(all: &[Component<'a>]) -> Option<&'a str> {
    let may_run = all.iter().filter(|one| one.enabled && one.priority > 0);
    may_run.max_by_key(|one| one.priority).map(|one| one.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_component_with_the_highest_priority_is_the_librarys_choice() {
        let one = |name, priority, enabled| Component {
            name,
            priority,
            enabled,
        };
        // Open MPI 4.1, 5.0, and one with Mellanox's hcoll, which may be switched off.
        let (tuned, han) = (one("tuned", 30, true), one("han", 35, true));
        assert_eq!(chosen(&[tuned, one("han", 0, true)]), Some("tuned"));
        assert_eq!(chosen(&[tuned, han, one("ucc", 10, false)]), Some("han"));
        let hcoll = |enabled| one("hcoll", 90, enabled);
        assert_eq!(chosen(&[tuned, han, hcoll(true)]), Some("hcoll"));
        assert_eq!(chosen(&[tuned, han, hcoll(false)]), Some("han"));
        assert_eq!(chosen(&[]), None);
    }
}
