//! What a training published, as the exports write it.

use std::path::Path;

use anyhow::bail;
use colltune_core::levers::Arms;
use colltune_core::library::Product;
use colltune_core::model::Source;
use colltune_db::{DataKey, Database, Generation, generation, levers};
use colltune_models::statistics::CellStatistics;

use crate::asked;
use colltune_output::failure::{usage, wrong};

/// A generation of one library.
#[derive(Clone, Debug)]
pub struct Published {
    pub library: String,
    pub machine: String,
    pub generation: u64,
    pub cells: Vec<CellStatistics>,
    /// What programs that ask get in place of their first arms.
    pub levers: Arms,
}

/// Loads the generation in force, for tables that `product` reads: of the library `key`, else of the only trained one of
/// the product that itself chose its algorithms.
///
/// Errors: no trained library, several of them and none named, a generation that cannot be read.
pub fn load(db: &Path, key: Option<&str>, product: Product) -> anyhow::Result<Published> {
    let db = colltune_launch::database::open(db)?;
    let generation = Generation::load(&db, choose_library(&db, key, product)?)?;
    if generation.number == 0 {
        bail!(
            "export {}: it is not trained yet, run `colltune train --db {}`",
            generation.key,
            db.in_shell()
        );
    }
    let library = generation.library.to_string();
    let mut levers = levers::learned(&db, &mut Vec::new());
    levers.retain(|one| one.library == library);
    Ok(Published {
        library,
        machine: generation.model.machine,
        generation: generation.number,
        cells: generation.cells,
        levers: asked::changed(&levers).1,
    })
}

/// Whether anything is known about a cell: a measurement, or a prediction from others.
pub fn is_known(cell: &CellStatistics) -> bool {
    cell.source != Source::Prior
}

fn choose_library(db: &Database, key: Option<&str>, product: Product) -> anyhow::Result<DataKey> {
    let found = db.keys()?;
    let listed = |list: &[DataKey]| match list {
        [] => "no library yet".to_owned(),
        list => list
            .iter()
            .map(DataKey::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    };
    if let Some(key) = key {
        let library: DataKey = key.parse().map_err(usage)?;
        if product != library.library.product {
            return Err(usage(format!(
                "export {library} in the format of {}",
                product.title()
            )));
        }
        if library.told.is_some() {
            return Err(usage(format!(
                "export {library} in the format of {}: in its jobs the library was told which algorithms to run, or \
                 reductions kept a fixed order, and a table made of them would lose that; tune in jobs without such settings",
                product.title()
            )));
        }
        if !found.contains(&library) {
            return Err(wrong(format!(
                "{} holds no {key}: it holds {}",
                db.root().display(),
                listed(&found)
            )));
        }
        return Ok(library);
    }
    let trained = generation::trained(db)?;
    let candidates = if trained.is_empty() { &found } else { &trained };
    let fits = |key: &&DataKey| product == key.library.product;
    let mut fitting = DataKey::usual(candidates.iter().filter(fits).cloned().collect());
    // A table made of the others would lose the settings that their users made.
    fitting.retain(|key| key.told.is_none());
    match &fitting[..] {
        [key] => Ok(key.clone()),
        [] => bail!(
            "export {0}: nothing is trained of {1} with algorithms of its own choice (it holds {2}); run some jobs, then \
             `colltune train --db {0}`",
            db.root().display(),
            product.title(),
            listed(&found)
        ),
        _ => Err(usage(format!(
            "choose a library: the database holds {}; name one with --library",
            listed(&fitting)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::settings::Settings;

    #[test]
    fn a_cell_is_known_by_a_measurement_or_a_prediction() {
        let settings = Settings::default();
        let (any, _) = settings.space.cells().next().expect("the space has cells");
        for (source, known) in [
            (Source::Measured, true),
            // Of a prediction there need be no time, only how the variants compare.
            (Source::Predicted, true),
            (Source::Prior, false),
        ] {
            let cell = CellStatistics {
                source,
                ..CellStatistics::unknown(any)
            };
            assert_eq!(is_known(&cell), known, "{source:?}");
        }
    }
}
