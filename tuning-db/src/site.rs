//! A site folder as its administrator sees it: versions are published, tried by a share of the jobs, put in force,
//! taken back and switched off. How it is laid out says [`colltune_core::site`].
//!
//! A version is written under another name, synced and moved to `versions/NNNNNN`; only then `site.json` names it. So a
//! publisher that ends anywhere leaves the site as it was, and jobs see a whole version or the one before. A version is
//! laid out as a database, never changes, and is whatever its publisher's umask readable by whoever may read the site's
//! own folder.

mod folder;
pub use folder::{About, Contained, MODULES, SiteFolder, VersionListed};

mod publish;
pub use publish::{ForJobs, Tables, publish};

#[cfg(test)]
mod tests;
