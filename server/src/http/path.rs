//! Parts of an address. What cannot be decoded names nothing.

use super::{problem::Refusal, state::AppState};
use axum::{
    extract::{FromRequestParts, Path},
    http::{Uri, request::Parts},
};
use serde::de::DeserializeOwned;
use std::fmt::Write;

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

/// Lets parts of a path that are no text stand for a name that nothing has, so that whoever sends them is judged in the
/// order in which every call is.
pub(crate) fn made_readable(uri: &mut Uri) {
    if !uri.path().contains('%') {
        return;
    }
    let mut ill = false;
    let parts = uri.path().split('/').map(|part| {
        let bytes = decoded(part);
        if std::str::from_utf8(&bytes).is_ok() {
            return part.to_owned();
        }
        ill = true;
        String::from_utf8_lossy(&bytes).bytes().fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "%{byte:02X}");
            text
        })
    });
    let mut path = parts.collect::<Vec<_>>().join("/");
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    let mut changed = uri.clone().into_parts();
    if ill && let Ok(path) = path.parse::<axum::http::uri::PathAndQuery>() {
        changed.path_and_query = Some(path);
        if let Ok(readable) = Uri::from_parts(changed) {
            *uri = readable;
        }
    }
}

/// A part of a path, decoded; a percent sign without two digits is itself.
fn decoded(part: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digit = |place: usize| after.get(place).and_then(|digit| char::from(*digit).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (byte, digit(0), digit(1)) {
            bytes.extend(u8::try_from(high * 16 + low));
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_that_are_no_text_are_changed() {
        for (sent, read) in [
            ("/teams/%FF/requests?labels=a:%ff", "/teams/%EF%BF%BD/requests?labels=a:%ff"),
            ("/a/%ff%2F/b", "/a/%EF%BF%BD%2F/b"),
            ("/a/%C3%A4/%/%zz/%2e%2e?x", "/a/%C3%A4/%/%zz/%2e%2e?x"),
            ("/", "/"),
        ] {
            let mut uri: Uri = sent.parse().unwrap();
            made_readable(&mut uri);
            assert_eq!(uri.to_string(), read);
        }
    }
}
