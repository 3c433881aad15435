//! API tokens of the caller itself.

use super::{
    Arrival, Inner, Portal,
    keyed::{Wish, label, object, shown_once, spell_span, trim},
};
use crate::{
    Answer, AnswerKind, Answered, Caller, Error, Result, secret,
    settings::read_span,
    store::{Effect, NO_TEAM},
};
use bytes::Bytes;
use domain::{
    command::Operation,
    id::TokenId,
    problem::ProblemKind,
    time::Moment,
    view::{Object, TokenView},
};
use serde_json::Value;
use std::time::Duration;

/// What a repeat says in the token's place.
const SHOWN_ONCE: &str =
    "The token was shown once, in the first answer. If that was lost, revoke this token and make another.";
/// How long a token lives when nobody says.
const DEFAULT_LIFE: Duration = Duration::from_hours(90 * 24);
/// The longest life of a token.
const LONGEST_LIFE: Duration = Duration::from_hours(366 * 24);

/// The life of a token in words that were sent.
fn life(expires: Option<&str>) -> Result<Duration> {
    let Some(text) = expires else {
        return Ok(DEFAULT_LIFE);
    };
    read_span(text)
        .filter(|life| (Duration::from_secs(1)..=LONGEST_LIFE).contains(life))
        .ok_or_else(|| Error::field("/expires", "a time such as 90d or 12h, at most 366d"))
}

impl Portal {
    /// The caller's tokens, newest first, without the tokens themselves.
    pub async fn tokens(&self, caller: &Caller) -> Result<Vec<TokenView>> {
        Ok(self.0.store.tokens(caller.id).await?)
    }

    /// Makes a token: `{"label": "…", "expires": "90d"}`. Only the first answer holds the token itself.
    pub async fn create_token(&self, caller: &Caller, arrival: Arrival, body: Bytes) -> Result<Answered> {
        arrival.key()?;
        let body = object(&body, &["label", "expires"])?;
        let made = self.0.new_token(&body, self.0.clock.now());
        let token = made.as_ref().map(|(_, token, _)| token.clone()).unwrap_or_default();
        let effect = made.and_then(|(view, _, digest)| {
            let noted = TokenView { note: Some(SHOWN_ONCE.into()), ..view.clone() };
            let answer = Answer::showing(AnswerKind::Created, Some("/api/v1/tokens".to_owned()), &noted)?;
            Ok(Effect::TokenCreate { token: view, digest, answer })
        });
        let mut meant = body.clone();
        trim(&mut meant, &["label"]);
        spell_span(&mut meant, "expires", DEFAULT_LIFE);
        let wish = Wish::new(Operation::TokenCreate, "tokens".into(), body).meaning(meant);
        let answered = self.0.keyed(caller, NO_TEAM, &arrival, wish, || Ok(()), effect).await?;
        shown_once(answered, |view| TokenView { token: Some(token), note: None, ..view })
    }

    /// Revokes one of the caller's own tokens; works at the next call on every server.
    pub async fn revoke_token(&self, caller: &Caller, id: &str, arrival: Arrival) -> Result<Answered> {
        arrival.key()?;
        let id: TokenId = id.parse().map_err(|_| Error::not_found())?;
        let wish = Wish::new(Operation::TokenRevoke, id.to_string(), Object::new());
        self.0.keyed(caller, NO_TEAM, &arrival, wish, || Ok(()), Ok(Effect::TokenRevoke(id))).await
    }

    /// Makes a token for the named principal, from the machine's own command line.
    pub async fn token_for(&self, user: &str, label: &str, expires: Option<&str>) -> Result<String> {
        let mut body = Object::new();
        body.insert("label".into(), label.into());
        if let Some(expires) = expires {
            body.insert("expires".into(), expires.into());
        }
        let principal = self.0.store.principal_by_name(user).await?.ok_or_else(|| {
            Error::new(
                ProblemKind::NotFound,
                format!("There is no user {user:?}. Make one with: keyturn user add"),
            )
        })?;
        let (view, token, digest) = self.0.new_token(&body, self.0.clock.now())?;
        self.0.store.add_token(principal.id, view, digest).await?;
        Ok(token)
    }
}

impl Inner {
    fn new_token(&self, body: &Object, now: Moment) -> Result<(TokenView, String, [u8; 32])> {
        let expires = match body.get("expires") {
            None => None,
            Some(Value::String(text)) => Some(text.as_str()),
            Some(_) => return Err(Error::field("/expires", "a time such as 90d or 12h")),
        };
        let (label, life) = (label(body.get("label"), "what the token is for")?, life(expires)?);
        let (token, digest) = secret::new_token(self.ids.as_ref());
        let view = TokenView {
            id: TokenId(self.ids.uuid(now)),
            label,
            created_at: now,
            expires_at: now.plus(life),
            last_used_at: None,
            revoked_at: None,
            token: None,
            note: None,
        };
        Ok((view, token, digest))
    }
}
