//! What keeps a training from its end.

use colltune_core::collective::Collective;
use thiserror::Error;

use crate::baseline::regress::RegressError;

#[derive(Clone, Debug, Error)]
pub enum LearnError {
    #[error("learn {collective} {variant}: {error}")]
    Regress {
        collective: Collective,
        variant: String,
        error: RegressError,
    },
}
