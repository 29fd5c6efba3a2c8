//! Whose traces are learned from, and what they may claim: `DB/owners.toml`, which only trainings read.
//!
//! ```toml
//! [default]            # who has no table below
//! ranks_max = 4096     # of a job; more is not believed
//! nodes_max = 64
//! [owner.alice]        # by name or number
//! ranks_max = 65536
//! [owner.bob]
//! weight = 0.25        # a quarter of his runs, drawn by their names, is learned from
//! [owner.1003]
//! trust = false        # none of his; new traces go to quarantine
//! ```
//! It is no part of `colltune.toml`, which jobs read: none of their variables can say whom to trust. Whose a trace is
//! its file says, not what stands in it.

use std::collections::BTreeMap;

use colltune_core::select::mix;
use colltune_files::{SETTINGS_BYTES_MAX, read_text};
use serde::Deserialize;

use crate::check_word::check_word;
use crate::database::{Database, DbError, at};
use crate::trace::Trace;
use crate::users;

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    trust: Option<bool>,
    ranks_max: Option<u32>,
    nodes_max: Option<u32>,
    /// The share of the runs that is learned from.
    weight: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(default)]
    default: Rule,
    #[serde(default)]
    owner: BTreeMap<String, Rule>,
}

/// The rules of a database; without a file everybody's traces are believed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owners {
    default: Rule,
    /// By number; what a table does not say, `default` says.
    by_owner: BTreeMap<u32, Rule>,
}

impl Owners {
    /// Reads the rules. A name that this host does not know gets a warning.
    ///
    /// Errors: `Io` and `Owners` for a file that cannot be used: who is not to be trusted may stand in it.
    pub fn of(db: &Database, warnings: &mut Vec<String>) -> Result<Owners, DbError> {
        let path = db.owners();
        let text = match read_text(&path, SETTINGS_BYTES_MAX) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(at("read", &path))?,
        };
        Owners::read(&text, warnings).map_err(|problem| DbError::Owners { path, problem })
    }

    fn read(text: &str, warnings: &mut Vec<String>) -> Result<Owners, String> {
        let tables: Tables = toml::from_str(text).map_err(|error| error.to_string())?;
        let default = tables.default;
        let mut by_owner = BTreeMap::new();
        for (name, rule) in [("default".to_owned(), default)]
            .into_iter()
            .chain(tables.owner.clone())
        {
            if rule
                .weight
                .is_some_and(|weight| !(0.0..=1.0).contains(&weight))
            {
                return Err(format!("the weight of {name} is no share from 0 to 1"));
            }
        }
        for (name, rule) in tables.owner {
            let Some(uid) = users::uid(&name) else {
                warnings.push(format!(
                    "owners.toml: no user {name} on this host, so [owner.{name}] is ignored; name the user by number"
                ));
                continue;
            };
            let whole = Rule {
                trust: rule.trust.or(default.trust),
                ranks_max: rule.ranks_max.or(default.ranks_max),
                nodes_max: rule.nodes_max.or(default.nodes_max),
                weight: rule.weight.or(default.weight),
            };
            by_owner.insert(uid, whole);
        }
        Ok(Owners { default, by_owner })
    }

    /// The rule for an owner; that of traces which earlier versions took is unknown.
    fn rule(&self, owner: Option<u32>) -> Rule {
        let found = owner.and_then(|owner| self.by_owner.get(&owner));
        found.copied().unwrap_or(self.default)
    }

    /// Whether a trace is believed.
    ///
    /// Errors: why not, as in a file's reason in quarantine.
    pub fn judge(&self, trace: &Trace) -> Result<(), String> {
        // Jobs that were merged have communicators of more ranks than either.
        let widest = trace.records.iter().map(|record| record.n_ranks).max();
        let ranks = trace.header.world_ranks.max(widest.unwrap_or(0));
        let nodes = trace.records.iter().map(|record| record.nodes).max();
        self.judge_claim(trace.owner, ranks.into(), nodes.unwrap_or(1).into())
    }

    /// Whether it is believed that a user had a job of so many ranks and nodes.
    ///
    /// Errors: why not.
    pub fn judge_claim(&self, owner: u32, ranks: u64, nodes: u64) -> Result<(), String> {
        let rule = self.rule(Some(owner));
        let user = users::user(owner);
        if rule.trust == Some(false) {
            return Err(format!(
                "{user} is not trusted (see `trust` in owners.toml)"
            ));
        }
        if let Some(most) = rule.ranks_max.filter(|most| ranks > u64::from(*most)) {
            return Err(format!(
                "it claims {ranks} ranks, {user} has {most} at most (see `ranks_max` in owners.toml)"
            ));
        }
        match rule.nodes_max.filter(|most| nodes > u64::from(*most)) {
            None => Ok(()),
            Some(most) => Err(format!(
                "it claims {nodes} nodes, {user} has {most} at most (see `nodes_max` in owners.toml)"
            )),
        }
    }

    /// Whether a run is one of the share of its owner's that is learned from.
    pub fn counts(&self, owner: Option<u32>, job: &str) -> bool {
        let rule = self.rule(owner);
        let weight = rule.weight.unwrap_or(1.0);
        // 53 bits of a hash are a number from 0 to 1.
        let drawn = mix(check_word(job.as_bytes()), 1) >> 11;
        rule.trust != Some(false) && (drawn as f64 / (1u64 << 53) as f64) < weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_differs_from_the_default_and_names_are_found() {
        let text = "[default]\nranks_max = 16\nweight = 0.5\n[owner.root]\nranks_max = 32\n\
                    [owner.1003]\ntrust = false\n[owner.no-such-user-here]\ntrust = false\n";
        let mut warnings = Vec::new();
        let owners = Owners::read(text, &mut warnings).unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("no-such-user-here"), "{warnings:?}");
        let root = owners.rule(Some(0));
        assert_eq!((root.ranks_max, root.weight), (Some(32), Some(0.5)));
        assert_eq!(owners.rule(Some(77)).ranks_max, Some(16));
        assert!(!owners.counts(Some(1003), "any"));
        for wrong in [
            "[default]\nweight = 2.0",
            "[owner.a]\nrank_max = 1",
            "x = 1",
        ] {
            assert!(Owners::read(wrong, &mut warnings).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_weight_is_the_share_of_the_runs_that_counts_and_the_same_each_time() {
        let owners = |text: &str| Owners::read(text, &mut Vec::new()).unwrap();
        let counted = |text: &str| {
            let owners = owners(text);
            let jobs = (0..4000).map(|job| format!("job-{job}"));
            jobs.filter(|job| owners.counts(Some(7), job)).count()
        };
        assert_eq!(counted(""), 4000);
        assert_eq!(counted("[default]\nweight = 0"), 0);
        let quarter = counted("[owner.7]\nweight = 0.25");
        // Four standard deviations of a binomial distribution.
        assert!((890..=1110).contains(&quarter), "{quarter}");
        assert_eq!(counted("[owner.8]\nweight = 0.25"), 4000);
    }
}
