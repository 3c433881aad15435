//! Making and looking after hooks. Each change is guarded by a key, as every change is.

use super::{
    super::{
        Arrival, Inner, Portal,
        keyed::{Wish, members, object, shown_once, spell_span},
    },
    definition::{MEMBERS, spelled_patch, with_defaults},
    page_size, place,
};
use crate::{
    Answer, AnswerKind, Answered, Caller, Error, Result,
    settings::read_span,
    signature::SharedSecret,
    store::{Effect, HookEffect},
};
use bytes::Bytes;
use domain::{
    command::Operation,
    hook::{DeliveryView, HookView},
    id::{DeliveryId, HookId},
    json, merge,
    name::Name,
    problem::ProblemKind,
    role::TeamAct,
    view::{Object, Page},
};
use serde_json::Value;
use std::time::Duration;

/// What a repeat says in the secret's place.
const SHOWN_ONCE: &str =
    "The secret was shown once, in the first answer. If that was lost, end the old secret and rotate.";
/// How long the old secret counts after a rotation when nobody says.
const USUAL_OVERLAP: Duration = Duration::from_hours(24);
/// The longest time that two secrets count.
const LONGEST_OVERLAP: Duration = Duration::from_hours(30 * 24);

/// What is told of a new hook: a member that is null says as little as one that is absent. Inside of a sample a null is a
/// value.
fn told(body: Object) -> Object {
    let told = body.into_iter().filter(|(_, value)| !value.is_null());
    told.map(|(member, value)| {
        let value = if member == "sample" { value } else { json::without_nulls(value) };
        (member, value)
    })
    .collect()
}

/// The version that `If-Match` names, where it names one.
fn version_meant(arrival: &Arrival) -> Result<Option<i64>> {
    let stale = || {
        Error::new(
            ProblemKind::PreconditionFailed,
            "If-Match names no version of a hook; send the one that you looked at, as \"3\".",
        )
    };
    match arrival.if_match.as_slice() {
        [] => Ok(None),
        [one] => match one.trim_ascii() {
            b"*" => Ok(None),
            tag => std::str::from_utf8(tag)
                .ok()
                .and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"')?.parse().ok())
                .map(Some)
                .ok_or_else(stale),
        },
        _ => Err(stale()),
    }
}

/// How long the old secret is to count after a rotation.
fn overlap(body: &Object) -> Result<Duration> {
    const RULE: &str = "a time such as 24h or 0s, at most 30d";
    match body.get("old_secret_ends_after") {
        None => Ok(USUAL_OVERLAP),
        Some(Value::String(text)) => read_span(text)
            .filter(|span| *span <= LONGEST_OVERLAP)
            .ok_or_else(|| Error::field("/old_secret_ends_after", RULE)),
        Some(_) => Err(Error::field("/old_secret_ends_after", RULE)),
    }
}

/// The first answer to what makes a secret, which alone holds it.
fn with_secret(answered: Answered, secret: &SharedSecret) -> Result<Answered> {
    let secret = Some(secret.reveal().to_owned());
    shown_once(answered, |view| HookView { secret, note: None, ..view })
}

impl Portal {
    /// A page of a team's hooks, newest first, without their secrets and samples.
    pub async fn hooks(
        &self,
        caller: &Caller,
        team: &str,
        size: u32,
        cursor: Option<String>,
    ) -> Result<Page<HookView>> {
        let team = self.0.visible_team(caller, team).await?;
        let (after, size, now) = (place(cursor.as_deref())?, page_size(size)?, self.0.clock.now());
        let mut page = self.0.store.hooks(&team, after, size, now).await?;
        for hook in &mut page.results {
            hook.definition.sample = None;
        }
        Ok(page)
    }

    /// One hook, without its secrets; its sample is for owners.
    pub async fn hook(&self, caller: &Caller, team: &str, id: &str) -> Result<HookView> {
        let mut view = self.0.visible_hook(caller, team, id).await?.view;
        if !caller.may(TeamAct::ManageHooks, &view.team) {
            view.definition.sample = None;
        }
        let now = self.0.clock.now();
        view.old_secret_ends_at = view.old_secret_ends_at.filter(|ends| *ends > now);
        Ok(view)
    }

    /// Makes a hook. Only the first answer holds its secret.
    pub async fn create_hook(
        &self,
        caller: &Caller,
        team: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        arrival.key()?;
        let body = told(members(&body, &MEMBERS)?);
        let found = self.0.visible_team(caller, team).await;
        let team = self.0.seen(found, (caller, team), &arrival, Operation::HookCreate).await?;
        let now = self.0.clock.now();
        let (secret, sealed) = self.0.new_hook_secret(now)?;
        let effect = self.0.hook_definition(&body).map_err(Error::fields).and_then(|definition| {
            let id = HookId(self.0.ids.uuid(now));
            let view = HookView {
                id,
                team: team.clone(),
                address: HookView::address_of(id),
                definition,
                version: 1,
                created_by: caller.name.clone(),
                created_at: now,
                updated_at: now,
                old_secret_ends_at: None,
                secret: None,
                note: Some(SHOWN_ONCE.to_owned()),
            };
            let answer = Answer::showing(AnswerKind::Created, Some(view.managed_at()), &view)?;
            Ok(HookEffect::Create { view: Box::new(view), secret: sealed, answer })
        });
        let meant = with_defaults(&body);
        let wish = Wish::new(Operation::HookCreate, format!("hooks of {team}"), body).meaning(meant);
        let answered = self.0.about_hooks(caller, &team, arrival, wish, effect).await?;
        with_secret(answered, &secret)
    }

    /// Changes a hook by a merge patch (RFC 7396) of what it is. `If-Match` names the version that was looked at.
    pub async fn change_hook(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        arrival.key()?;
        let patch = members(&body, &MEMBERS)?;
        let (team, id) = self.0.hook_meant((caller, team, id), &arrival, Operation::HookChange).await?;
        let found = self.0.living_hook(&team, id).await?;
        let changed = || {
            let hook = found.ok_or_else(Error::not_found)?.view;
            let mut before = match serde_json::to_value(&hook.definition).map_err(Error::internal)? {
                Value::Object(before) => before,
                _ => Object::new(),
            };
            if patch.contains_key("sample") {
                // An example is one thing; parts of two are none.
                before.remove("sample");
            }
            let after = self.0.hook_definition(&merge::merged(&before, &patch)).map_err(Error::fields)?;
            // What it comes to is judged before whether it is in time.
            let version = version_meant(&arrival)?.unwrap_or(hook.version);
            Ok(HookEffect::Change { id, definition: Box::new(after), version })
        };
        let effect = changed();
        let meant = spelled_patch(&patch);
        let wish = Wish::new(Operation::HookChange, id.to_string(), patch).meaning(meant);
        self.0.about_hooks(caller, &team, arrival, wish, effect).await
    }

    /// Gives a hook a new secret: `{"old_secret_ends_after": "24h"}`. Only the first answer holds it.
    pub async fn rotate_hook(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        arrival.key()?;
        let body = object(&body, &["old_secret_ends_after"])?;
        let (team, id) = self.0.hook_meant((caller, team, id), &arrival, Operation::HookRotate).await?;
        let now = self.0.clock.now();
        let (secret, sealed) = self.0.new_hook_secret(now)?;
        let effect = overlap(&body).map(|overlap| HookEffect::Rotate {
            id,
            secret: sealed,
            old_ends_at: now.plus(overlap),
            note: SHOWN_ONCE,
        });
        let mut meant = body.clone();
        spell_span(&mut meant, "old_secret_ends_after", USUAL_OVERLAP);
        let wish = Wish::new(Operation::HookRotate, id.to_string(), body).meaning(meant);
        let answered = self.0.about_hooks(caller, &team, arrival, wish, effect).await?;
        with_secret(answered, &secret)
    }

    /// Ends the secret before the current one now; where there is none left that is no error.
    pub async fn end_hook_secret(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        arrival.key()?;
        let body = object(&body, &[])?;
        let (team, id) = self.0.hook_meant((caller, team, id), &arrival, Operation::HookEndSecret).await?;
        let wish = Wish::new(Operation::HookEndSecret, id.to_string(), body);
        self.0.about_hooks(caller, &team, arrival, wish, Ok(HookEffect::EndSecret(id))).await
    }

    /// Removes a hook; events that still come are told so. What its events made stays.
    pub async fn remove_hook(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        arrival: Arrival,
    ) -> Result<Answered> {
        arrival.key()?;
        let (team, id) = self.0.hook_meant((caller, team, id), &arrival, Operation::HookRemove).await?;
        let wish = Wish::new(Operation::HookRemove, id.to_string(), Object::new());
        self.0.about_hooks(caller, &team, arrival, wish, Ok(HookEffect::Remove(id))).await
    }

    /// A page of what was delivered to a hook, newest first, for its owners.
    pub async fn deliveries(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        size: u32,
        cursor: Option<String>,
    ) -> Result<Page<DeliveryView>> {
        let hook = self.0.managed_hook(caller, team, id).await?.view;
        Ok(self.0.store.deliveries(hook.id, place(cursor.as_deref())?, page_size(size)?).await?)
    }

    /// One delivery with its payload, for the hook's owners.
    pub async fn delivery(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        delivery: &str,
    ) -> Result<DeliveryView> {
        let hook = self.0.managed_hook(caller, team, id).await?.view;
        let id: DeliveryId = delivery.parse().map_err(|_| Error::not_found())?;
        let (view, sealed) = self.0.store.delivery(hook.id, id).await?.ok_or_else(Error::not_found)?;
        let kept = self.0.open_event(id, &sealed)?;
        Ok(match kept {
            Some(kept) => DeliveryView { headers: Some(kept.headers), payload: Some(kept.payload), ..view },
            None => view,
        })
    }
}

impl Inner {
    /// Which hook of which team is meant. Whether it is there, or still there, is for what is done to it: after the key,
    /// whose repeat gets the first answer whatever became of the hook.
    async fn hook_meant(
        &self,
        (caller, team, id): (&Caller, &str, &str),
        arrival: &Arrival,
        operation: Operation,
    ) -> Result<(Name, HookId)> {
        let found = self.visible_team(caller, team).await;
        let team = self.seen(found, (caller, team), arrival, operation).await?;
        Ok((team, id.parse().map_err(|_| Error::not_found())?))
    }

    /// Does something to a team's hooks, under a key.
    async fn about_hooks(
        &self,
        caller: &Caller,
        team: &Name,
        arrival: Arrival,
        wish: Wish,
        effect: Result<HookEffect>,
    ) -> Result<Answered> {
        let may = || caller.must(TeamAct::ManageHooks, team);
        self.keyed(caller, team.as_str(), &arrival, wish, may, effect.map(Effect::Hook)).await
    }
}
