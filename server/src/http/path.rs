//! Parts of an address. What cannot be decoded names nothing.

use super::{problem::Refusal, state::AppState};
use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

/// The variable parts of a call's path, decoded.
#[derive(Debug)]
pub(crate) struct PathOf<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<AppState> for PathOf<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refusal> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(parts)) => Ok(Self(parts)),
            Err(_) => Err(Refusal(portal::Error::not_found())),
        }
    }
}
