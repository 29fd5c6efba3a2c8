//! The page of settings and variables: the two tables of the core, as a person reads them.

use colltune_core::environment::{PREFIX, Reader, SetBy, VARIABLES};
use colltune_core::settings::{KEYS, Key, Shown};

const HEAD: &str = "\
# Settings and variables

<!-- Made of src/core/src/settings/keys.rs and src/core/src/environment.rs by docs/check/src/settings.rs. -->

`colltune.toml` in the database holds the settings of all jobs that use it; it is written with all keys explained when
the database is made. Each key below can be set for one job by a variable, as in `COLLTUNE_RECORDS_PER_RUN=1000`, lists
with commas (`COLLTUNE_FAMILIES=native,node`); `[[space]]` cannot. A variable must be the same on all ranks: `colltune run`
passes on what is set where it is started. A mistyped key of the file, or a value that makes no sense, keeps the job untuned
and is named; of a variable that there is not `colltune run` says so, and which was meant.

";

const SPACE: &str = "\
## The tuning space

A `[[space]]` gives a collective other cells than the usual ones: half-open ranges of message bytes, nodes and ranks
per node. Its cells must cover everything once, and those of all collectives together are at most 262,144 (ten times
the usual ones).

```toml
[[space]]
collective = \"allreduce\"
bytes = [0, 64, 4096, 262144, \"inf\"]
nodes = [1, 2, 9, \"inf\"]
ppn = [1, 2, 33, \"inf\"]
exclude = []
```

`exclude` there names variants that are never drawn in this collective's cells.

";

/// The page.
pub fn page() -> String {
    let mut text = HEAD.to_owned();
    for key in KEYS {
        text += &section(key);
    }
    text += SPACE;
    text += "## Variables\n\nBeside those of the settings there are these, and no others.\n\n";
    text += &variables(SetBy::User);
    text += "\nSet by colltune itself, by `colltune run` or its tests:\n\n";
    text + &variables(SetBy::Ourselves)
}

fn section(key: &Key) -> String {
    let (called, value) = match key.shown {
        Shown::Default(text) => ("default", text),
        Shown::Example(text) => ("for example", text),
    };
    let words = key.doc.replace('\n', " ");
    let allowed = key.allowed();
    // Words of a file in the type of code: ["native:linear"], and each of "gp", "xgboost".
    let allowed = match allowed.contains('[') {
        true => allowed.replace('[', "`[").replace(']', "]`"),
        false => allowed.replace('"', "`"),
    };
    format!(
        "## `{}`\n\n{words}\n\nTakes {allowed}; {called} `{value}`. Variable: `{PREFIX}{}`.\n\n",
        key.name,
        key.name.to_ascii_uppercase(),
    )
}

fn variables(set_by: SetBy) -> String {
    let rows = VARIABLES.iter().filter(|one| one.set_by == set_by);
    let rows = rows.map(|one| {
        let readers = one.read_by.iter().map(|reader| match reader {
            Reader::Job => "job",
            Reader::Command => "command",
            Reader::Tables => "tables",
            Reader::Development => "development",
        });
        let readers = readers.collect::<Vec<_>>().join(", ");
        format!("| `{}` | {} | {readers} |\n", one.name, one.takes)
    });
    "| variable | takes | read by |\n|---|---|---|\n".to_owned() + &rows.collect::<String>()
}
