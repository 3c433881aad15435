//! Who is asking: a bearer token, or else a browser's session. Never a token in the address.

use super::{
    problem::{Refusal, Result},
    sessions,
    state::AppState,
};
use axum::{
    extract::{ConnectInfo, FromRequestParts, Request},
    http::{HeaderMap, Uri, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use domain::problem::ProblemKind;
use portal::Caller;
use std::net::{IpAddr, SocketAddr};

/// The header by which a page's script says for whom the page was made.
const PAGE_OF: &str = "keyturn-page-of";

/// The caller of an API call, known for who it is.
#[derive(Debug, Clone)]
pub(crate) struct Known(pub(crate) Caller);

impl FromRequestParts<AppState> for Known {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        caller(state, parts).await.map(Self)
    }
}

/// The caller behind a call. A call that shows a token is judged by that token alone.
pub(crate) async fn caller(state: &AppState, parts: &Parts) -> Result<Caller> {
    let from = peer(parts);
    if let Some(token) = shown_token(&parts.headers)? {
        return Ok(state.portal.authenticate(token, from).await?);
    }
    let session = sessions::of(parts);
    match sessions::caller(state, session, from).await? {
        Some(caller) if is_meant(&parts.headers, &caller) => Ok(caller),
        Some(_) => Err(Refusal::new(
            ProblemKind::NotAuthenticated,
            "Somebody else has logged in since this page was opened. Nothing was sent.",
        )),
        None => Err(Refusal::new(
            ProblemKind::NotAuthenticated,
            "This needs a token, sent as Authorization: Bearer, or a login.",
        )),
    }
}

/// Whether the one who is logged in is the one for whom the page was made: a form that somebody left open is not sent in
/// the name of the next one at the same browser.
fn is_meant(headers: &HeaderMap, caller: &Caller) -> bool {
    headers.get(PAGE_OF).is_none_or(|name| name.as_bytes() == caller.name.as_bytes())
}

/// The network address that the connection came from; what a header says of it is never believed.
pub(crate) fn peer(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip())
}

/// What stands in `Authorization`. Something other than one well-formed bearer token is handed on as it is: it fits no
/// token, and is counted against the address like any other wrong one.
fn shown_token(headers: &HeaderMap) -> Result<Option<&str>> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Refusal::new(
            ProblemKind::NotAuthenticated,
            "Authorization was sent twice; send one token.",
        ));
    }
    let text = value.to_str().unwrap_or(NO_TOKEN);
    Ok(Some(match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        // With its blank it is no token, whatever follows.
        Some(_) => text,
        // A token that is not said to be borne is not looked at.
        None => NO_TOKEN,
    }))
}

/// A text that is no token.
const NO_TOKEN: &str = "\u{fffd}";

/// Query parameters that other systems take tokens by.
const TOKEN_PARAMETERS: &[&str] = &[
    "token",
    "access_token",
    "auth_token",
    "api_token",
    "bearer_token",
    "bearer",
    "authorization",
    "api_key",
    "apikey",
];

/// Refuses a call whose address holds a token. Addresses reach logs, histories and `Referer` headers.
pub(crate) async fn no_token_in_address(request: Request, next: Next) -> Response {
    if holds_token(request.uri()) {
        return Refusal::new(
            ProblemKind::TokenInQuery,
            "Send the token as Authorization: Bearer. What stood in the address may have been recorded on the way; \
             revoke it.",
        )
        .into_response();
    }
    next.run(request).await
}

fn holds_token(uri: &Uri) -> bool {
    super::query::pairs(uri).iter().any(|(name, value)| {
        TOKEN_PARAMETERS.iter().any(|known| name.eq_ignore_ascii_case(known))
            || looks_like_token(name)
            || looks_like_token(value)
    })
}

/// Whether a text holds a token as the portal makes it: the prefix and 32 bytes in base64.
fn looks_like_token(text: &str) -> bool {
    let digits =
        |rest: &str| rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"-_".contains(b)).count();
    text.match_indices("kt_").any(|(at, prefix)| digits(&text[at + prefix.len()..]) >= 43)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn shown(values: &[&str]) -> Result<Option<String>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        shown_token(&headers).map(|token| token.map(str::to_owned))
    }

    #[test]
    fn the_scheme_is_read_in_any_case_and_anything_else_fits_no_token() {
        assert_eq!(shown(&[]).unwrap(), None);
        for spelled in ["Bearer kt_x", "bearer kt_x", "BEARER  kt_x "] {
            assert_eq!(shown(&[spelled]).unwrap().as_deref(), Some("kt_x"), "{spelled}");
        }
        assert_eq!(shown(&["Basic a3Q6eA=="]).unwrap().as_deref(), Some("Basic a3Q6eA=="));
        // A token without its scheme is none.
        assert_eq!(shown(&["kt_x"]).unwrap().as_deref(), Some(NO_TOKEN));
        assert!(shown(&["Bearer \u{e9}"]).unwrap().is_some());
        assert!(shown(&["Bearer a", "Bearer a"]).is_err());
    }

    #[test]
    fn a_token_in_the_address_is_seen_under_any_name() {
        let token = format!("kt_{}", "a".repeat(43));
        for query in [
            "token=x",
            "access_token=x",
            "Access_Token=x",
            "a=1&api%5Fkey=x",
            &format!("key={token}"),
            &token,
            &format!("{token}=1"),
            &format!("x=Bearer%20{token}%20"),
        ] {
            let uri: Uri = format!("/api/v1/requests?{query}").parse().unwrap();
            assert!(holds_token(&uri), "{query}");
        }
        for query in ["", "key=kt_1", "size=50&cursor=abc", "link=abc"] {
            let uri: Uri = format!("/api/v1/requests?{query}").parse().unwrap();
            assert!(!holds_token(&uri), "{query}");
        }
    }
}
