//! What was learned of the levers that programs ask about, and its words for pages and commands.

use colltune_core::account::JobSummary;
use colltune_core::context::DataKey;
use colltune_core::levers::learned::LearnedLever;
use colltune_db::{Database, levers};
use colltune_statistics::Interval;

use crate::question::Question;

/// Ends of an interval that are so many times apart tell nothing: the arm hardly ran, or never.
const WIDEST: f64 = 1e4;

/// The levers of a library, on communicators of the layout that is asked for. A label leaves the programs that have runs
/// with it. Collectives and message sizes leave all: a lever has neither.
pub(crate) fn learned(
    db: &Database,
    library: Option<&DataKey>,
    question: &Question,
    runs: &[&JobSummary],
    warnings: &mut Vec<String>,
) -> Vec<LearnedLever> {
    let library = library.map(|key| key.library.to_string());
    let is_asked_for = |one: &LearnedLever| {
        let is_labelled = |label: &String| {
            let mut runs = runs.iter();
            runs.any(|run| run.label == *label && run.program == one.program)
        };
        let shape = (question.shape).map(|shape| (shape.nodes.into(), shape.ppn.into()));
        library.as_ref().is_none_or(|key| *key == one.library)
            && shape.is_none_or(|shape| shape == (one.nodes, one.ppn))
            && question.label.as_ref().is_none_or(is_labelled)
    };
    let mut learned = levers::learned(db, warnings);
    learned.retain(is_asked_for);
    learned
}

/// The gain of each arm over the first one; `None` where its interval tells nothing yet.
pub(crate) fn gains(one: &LearnedLever) -> Vec<Option<Interval>> {
    let gain = |(place, gain): (usize, [f64; 3])| {
        let [value, low, high] = if place == 0 { [1.0; 3] } else { gain };
        let is_ordered = 0.0 < low && low <= value && value <= high && high < f64::MAX;
        (is_ordered && high / low <= WIDEST).then_some(Interval { low, value, high })
    };
    let gains = one.arms.iter().map(|arm| arm.gain);
    gains.enumerate().map(gain).collect()
}

/// What is chosen, as a sentence.
pub fn sentence(one: &LearnedLever) -> String {
    format!("Lever {}: {}.", place(one), choice(one))
}

/// The lever, and where it was asked about.
pub(crate) fn place(one: &LearnedLever) -> String {
    format!(
        "{} of {} at {} nodes x {}, size {}",
        one.lever,
        one.program,
        one.nodes,
        one.ppn,
        sizes(one.class)
    )
}

/// What is chosen, after how many epochs.
pub(crate) fn choice(one: &LearnedLever) -> String {
    let first = one.arms.first().map_or("", |arm| &arm.name);
    let [gain, low, high] = one.gain();
    match (one.best != first, one.is_settled) {
        (true, _) => format!(
            "{} is chosen after {} epochs, {gain:.3} times as fast as {first} (95 % interval {low:.3} to {high:.3})",
            one.best, one.epochs
        ),
        (false, true) => format!(
            "after {} epochs no arm is shown to be faster than {first}, which stays",
            one.epochs
        ),
        (false, false) => format!(
            "{} epochs tell no difference yet; {first} stays",
            one.epochs
        ),
    }
}

/// The sizes of a class.
pub fn sizes(class: i32) -> String {
    let power = |exponent: i32| match exponent {
        -10..=40 => 2f64.powi(exponent).to_string(),
        _ => format!("2^{exponent}"),
    };
    format!("{} to {}", power(class), power(class.saturating_add(1)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use colltune_core::levers::learned::{FILE, LearnedLevers, SCHEMA};

    /// The second of three arms is the best one, and nothing is known of the third.
    pub(crate) fn lever() -> LearnedLever {
        let json = r#"{"program":"app","library":"openmpi-4.1.4","lever":"placement","class":3,"nodes":4,"ppn":2,"ranks":8,
            "best":"lpt","epochs":90,"is_settled":false,"arms":[
            {"name":"contiguous","probability":0.25,"gain":[1.0,1.0,1.0]},
            {"name":"lpt","probability":0.5,"gain":[1.2,1.1,1.3]},
            {"name":"cplx:50","probability":0.25,"gain":[1.0,0.0,1.7976931348623157e308]}]}"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_is_chosen_is_told_and_what_stays() {
        let mut one = lever();
        assert_eq!(
            sentence(&one),
            "Lever placement of app at 4 nodes x 2, size 8 to 16: lpt is chosen after 90 epochs, 1.200 times as fast as \
             contiguous (95 % interval 1.100 to 1.300)."
        );
        one.best = "contiguous".to_owned();
        assert!(sentence(&one).ends_with(": 90 epochs tell no difference yet; contiguous stays."));
        one.is_settled = true;
        assert!(sentence(&one).ends_with("to be faster than contiguous, which stays."));
        let all = [-1, -1074, i32::MAX].map(sizes);
        assert_eq!(
            all,
            [
                "0.5 to 1",
                "2^-1074 to 2^-1073",
                "2^2147483647 to 2^2147483647"
            ]
        );
    }

    #[test]
    fn intervals_that_are_unbounded_or_tell_nothing_are_no_gains() {
        let mut one = lever();
        let known = |one: &LearnedLever| gains(one).iter().map(Option::is_some).collect::<Vec<_>>();
        assert_eq!(known(&one), [true, true, false]);
        one.arms[0].gain = [1.0, 0.0, f64::MAX];
        for wrong in [
            [1.2, 1.1, f64::MAX],
            [1.2, 0.0, 1.3],
            [1.2, 1.25, 1.3],
            [1.2, 0.01, 200.0],
        ] {
            one.arms[1].gain = wrong;
            assert_eq!(known(&one), [true, false, false], "{wrong:?}");
        }
    }

    #[test]
    fn library_layout_and_label_narrow_and_a_file_that_is_none_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let file = folder.path().join(FILE);
        let mut levers = vec![lever(); 4];
        levers[1].library = "mpich-4.0.2".to_owned();
        levers[2].nodes = 1;
        levers[3].program = "other".to_owned();
        let all = LearnedLevers {
            schema: SCHEMA,
            levers,
        };
        std::fs::write(&file, all.to_json()).unwrap();
        let mut run = JobSummary::begun(Default::default());
        (run.program, run.label) = ("app".to_owned(), "night".to_owned());
        let found = |library: Option<&str>, question: &Question| {
            let library = library.map(|key| key.parse::<DataKey>().unwrap());
            let mut warnings = Vec::new();
            let found = learned(&db, library.as_ref(), question, &[&run], &mut warnings);
            (found.len(), warnings)
        };
        let all = Question::default();
        assert_eq!(found(None, &all), (4, Vec::new()));
        assert_eq!(found(Some("openmpi-4.1.4"), &all).0, 3);
        let shape = "4x2".parse().ok();
        let label = |name: &str| Some(name.to_owned());
        let of_shape = Question {
            shape,
            ..all.clone()
        };
        assert_eq!(found(Some("openmpi-4.1.4"), &of_shape).0, 2);
        let of_night = Question {
            label: label("night"),
            ..of_shape.clone()
        };
        assert_eq!(found(Some("openmpi-4.1.4"), &of_night).0, 1);
        let of_day = Question {
            label: label("day"),
            ..of_shape
        };
        assert_eq!(found(None, &of_day).0, 0);
        std::fs::write(&file, "{").unwrap();
        let (n, warnings) = found(None, &all);
        assert!(n == 0 && warnings[0].contains(FILE), "{warnings:?}");
    }
}
