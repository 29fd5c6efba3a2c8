//! Tables that can be asked: columns by name, and rows in parts that are read one by one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::decoded::{Decoded, Domain};
use crate::pruning::MinMax;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub name: String,
    pub domain: Domain,
}

/// A table.
#[derive(Default)]
pub struct Relation {
    pub attributes: Vec<Attribute>,
    pub fragments: Vec<Box<dyn Fragment>>,
}

/// Rows that are read at once: a row group of a file, or what was learned at one time.
pub trait Fragment: Send + Sync {
    /// How many rows it has, as far as that is known unread.
    fn n_rows(&self) -> u64;

    /// What is known of the values of a column.
    fn bounds(&self, attribute: usize) -> Option<MinMax>;

    /// Reads the columns that are wanted, by their places in the table.
    ///
    /// Errors: a sentence that names the file.
    fn read(&self, wanted: &[usize]) -> Result<Tuples, String>;
}

/// Rows as they were read: a column for each of the table's, where it was wanted.
#[derive(Debug, Default)]
pub struct Tuples {
    pub rows: usize,
    pub columns: Vec<Option<Decoded>>,
}

impl Relation {
    pub fn n_rows(&self) -> u64 {
        let rows = self.fragments.iter().map(|fragment| fragment.n_rows());
        rows.fold(0, u64::saturating_add)
    }

    /// The place of a column, a new one where there is none of that name. To SQLite `Step` and `step` are one.
    pub fn place(&mut self, name: &str, domain: Domain) -> usize {
        let mut attributes = self.attributes.iter();
        let known = attributes.position(|one| one.name.eq_ignore_ascii_case(name));
        known.unwrap_or_else(|| {
            let name = name.to_owned();
            self.attributes.push(Attribute { name, domain });
            self.attributes.len() - 1
        })
    }
}

/// How a table is opened.
type Opening = Box<dyn Fn(&Journal) -> Relation + Send + Sync>;

/// A table that is opened when a query names it.
pub struct Named {
    pub name: String,
    /// What a row is.
    pub about: String,
    open: Opening,
    relation: OnceLock<Relation>,
}

impl Named {
    pub fn new(
        name: &str,
        about: &str,
        open: impl Fn(&Journal) -> Relation + Send + Sync + 'static,
    ) -> Named {
        Named {
            name: name.to_owned(),
            about: about.to_owned(),
            open: Box::new(open),
            relation: OnceLock::new(),
        }
    }

    pub fn relation(&self, journal: &Journal) -> &Relation {
        self.relation.get_or_init(|| (self.open)(journal))
    }
}

/// What happened while tables were read.
#[derive(Debug, Default)]
pub struct Journal {
    warnings: Mutex<Vec<String>>,
    pub fragments_read: AtomicU64,
    pub fragments_left_out: AtomicU64,
    pub columns_read: AtomicU64,
}

impl Journal {
    /// Notes what was left out; each sentence once.
    pub fn warn(&self, sentence: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.contains(&sentence) {
            warnings.push(sentence);
        }
    }

    /// What has been left out since this was last asked.
    pub fn take_warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut warnings)
    }

    pub fn count(counter: &AtomicU64, more: usize) {
        counter.fetch_add(more as u64, Ordering::Relaxed);
    }
}
