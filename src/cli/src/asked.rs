//! Levers that a program asks about, as commands tell of them.

use colltune_core::account::JobSummary;
use colltune_core::levers::Arms;
use colltune_core::levers::learned::LearnedLever;
use colltune_db::{Database, levers};
use colltune_output::aligned;
pub use colltune_report::levers::sentence;
use colltune_report::levers::sizes;

/// What is known of a job's program, with its library and on communicators that it can have.
pub fn of_program(db: &Database, job: &JobSummary) -> Vec<LearnedLever> {
    let mut known = levers::learned(db, &mut Vec::new());
    known.retain(|one| {
        let fits = one.nodes <= job.nodes && one.ppn <= job.ppn && one.ranks <= job.ranks;
        one.program == job.program && one.library == job.library && fits
    });
    known
}

/// The arm of each lever that is chosen for most of its epochs, of those that another arm than the first one is for; and
/// the first arms of the same levers. A lever of which programs choose differently is left out.
pub fn changed(known: &[LearnedLever]) -> (Arms, Arms) {
    let (mut first, mut chosen) = (Arms::new(), Arms::new());
    let main = main_places(known);
    for one in &main {
        let differs = |other: &&LearnedLever| other.lever == one.lever && other.best != one.best;
        let without = one.arms.first().filter(|arm| arm.name != one.best);
        let Some(without) = without.filter(|_| !main.iter().any(differs)) else {
            continue;
        };
        first.insert(one.lever.clone(), without.name.clone());
        chosen.insert(one.lever.clone(), one.best.clone());
    }
    (first, chosen)
}

/// Of each program's lever the place with most epochs.
fn main_places(known: &[LearnedLever]) -> Vec<&LearnedLever> {
    let mut main: Vec<&LearnedLever> = Vec::new();
    for one in known {
        match main
            .iter_mut()
            .find(|other| other.lever == one.lever && other.program == one.program)
        {
            Some(other) if other.epochs < one.epochs => *other = one,
            Some(_) => {}
            None => main.push(one),
        }
    }
    main
}

/// Whether nothing worth the trouble is left to learn where most epochs are.
pub fn is_settled(known: &[LearnedLever]) -> bool {
    main_places(known).iter().all(|one| one.is_settled)
}

/// A table of what is known, under a heading; empty where nothing is.
pub fn table(known: &[LearnedLever]) -> String {
    if known.is_empty() {
        return String::new();
    }
    let head = [
        "program",
        "lever",
        "size",
        "nodes",
        "ppn",
        "epochs",
        "best",
        "gain",
        "drawn most",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for one in known {
        let [gain, low, high] = one.gain();
        let mut arms: Vec<_> = one.arms.iter().collect();
        arms.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        let drawn = arms.iter().take(3).filter(|arm| arm.probability > 0.0);
        let drawn: Vec<String> = drawn
            .map(|arm| format!("{} {:.0}%", arm.name, 100.0 * arm.probability))
            .collect();
        let is_first = one.arms.first().is_some_and(|arm| arm.name == one.best);
        rows.push(vec![
            one.program.clone(),
            one.lever.clone(),
            sizes(one.class),
            one.nodes.to_string(),
            one.ppn.to_string(),
            one.epochs.to_string(),
            one.best.clone(),
            match is_first {
                true => "1.00x".to_owned(),
                false => format!("{gain:.2}x ({low:.2} to {high:.2})"),
            },
            drawn.join(", "),
        ]);
    }
    format!(
        "levers that programs ask about:\n{}",
        aligned(&rows, |column| !(3..6).contains(&column))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::levers::learned::LearnedArm;

    fn lever(name: &str, class: i32, epochs: u64, best: &str, is_settled: bool) -> LearnedLever {
        LearnedLever {
            program: "app".to_owned(),
            library: "openmpi-4.1.4".to_owned(),
            lever: name.to_owned(),
            class,
            nodes: 4,
            ppn: 2,
            ranks: 8,
            best: best.to_owned(),
            epochs,
            is_settled,
            arms: ["a", "b"]
                .map(|arm| LearnedArm {
                    name: arm.to_owned(),
                    probability: 0.5,
                    gain: [1.2, 1.1, 1.3],
                })
                .to_vec(),
        }
    }

    #[test]
    fn each_lever_stands_for_the_place_with_most_epochs() {
        let known = [
            lever("placement", 3, 20, "a", false),
            lever("placement", 4, 90, "b", true),
            lever("when", 4, 90, "a", true),
        ];
        let arm = |name: &str, arm: &str| Arms::from([(name.to_owned(), arm.to_owned())]);
        assert_eq!(
            changed(&known),
            (arm("placement", "a"), arm("placement", "b"))
        );
        let mut of_two = known.to_vec();
        of_two[0].program = "other".to_owned();
        assert_eq!(
            changed(&of_two),
            (Arms::new(), Arms::new()),
            "another program keeps its first arm"
        );
        assert!(is_settled(&known) && !is_settled(&known[..1]));
        assert!(is_settled(&[]) && table(&[]).is_empty());
        let table = table(&known);
        assert!(
            table.contains("1.20x (1.10 to 1.30)") && table.contains("a 50%, b 50%"),
            "{table}"
        );
    }
}
