//! Where teams want to be told of what happens to their requests. Owners manage their team's; administrators also those
//! of the whole portal.

use super::{
    Arrival, Inner, Portal,
    keyed::{Wish, label, object, shown_once, trim},
    keys::RESEAL_AT_ONCE,
    read::{page_size, place},
};
use crate::{
    Answer, AnswerKind, Answered, Caller, Error, Result,
    signature::SharedSecret,
    store::{
        Effect,
        notifications::{NotificationChange, NotificationEffect},
    },
};
use bytes::Bytes;
use domain::{
    command::Operation,
    id::{NotificationDeliveryId, NotificationId},
    name::Name,
    notification::{NotificationDeliveryView, NotificationEvent, NotificationView, WHOLE_PORTAL},
    role::TeamAct,
    time::Moment,
    view::{Object, Page},
};
use serde_json::Value;
use std::time::Duration;

/// What a repeat says in the secret's place.
pub(crate) const SECRET_SHOWN_ONCE: &str =
    "The signing secret was shown once, in the first answer. If that was lost, rotate it.";
/// What a label says.
const WHO: &str = "who is told";
/// How long the secret before a rotation signs as well.
const OLD_SECRET: Duration = Duration::from_hours(24);

/// A team, or the whole portal, whose notifications the caller may see something of.
struct Told {
    team: String,
    /// Why the caller may not manage them.
    refusal: Option<Error>,
}

impl Told {
    fn must(&self) -> Result<()> {
        self.refusal.clone().map_or(Ok(()), Err)
    }
}

impl Inner {
    async fn told(&self, caller: &Caller, team: &str) -> Result<Told> {
        if team == WHOLE_PORTAL {
            // Whoever is no administrator is not told that it is there.
            let refusal = None;
            return if caller.is_admin() {
                Ok(Told { team: team.to_owned(), refusal })
            } else {
                Err(Error::not_found())
            };
        }
        let team: Name = self.visible_team(caller, team).await?;
        let refusal = caller.must(TeamAct::ManageNotifications, &team).err();
        Ok(Told { team: team.to_string(), refusal })
    }

    /// Does something to where a team is told, under a key.
    async fn change_told(
        &self,
        caller: &Caller,
        told: &Told,
        arrival: &Arrival,
        wish: Wish,
        effect: Result<NotificationEffect>,
    ) -> Result<Answered> {
        if let Err(error) = told.must() {
            // Who may not see it gets no repeat of what was said of it either.
            let now = self.clock.now();
            let arrived = self.arrived(caller, &told.team, arrival.key()?, wish.operation(), now);
            self.record(arrived, &Err(error.clone()), false);
            return Err(error);
        }
        let effect = effect.map(|effect| Effect::Notification(Box::new(effect)));
        self.keyed(caller, &told.team, arrival, wish, || Ok(()), effect).await
    }

    fn seal_notification(&self, id: NotificationId, secrets: &[&SharedSecret]) -> Result<Vec<u8>> {
        let texts: Vec<&str> = secrets.iter().map(|secret| secret.reveal()).collect();
        let plain = serde_json::to_vec(&texts).map_err(Error::internal)?;
        self.keys.seal(&purpose(id), &plain, self.ids.as_ref())
    }

    /// The signing secrets, the newest first.
    pub(crate) fn notification_secrets(
        &self,
        id: NotificationId,
        sealed: &[u8],
    ) -> Result<Vec<SharedSecret>> {
        let plain = self.keys.unseal(&purpose(id), sealed)?;
        let texts: Option<Vec<String>> = plain.and_then(|plain| serde_json::from_slice(&plain).ok());
        let secrets: Vec<SharedSecret> =
            texts.unwrap_or_default().into_iter().filter_map(SharedSecret::kept).collect();
        if secrets.is_empty() {
            return Err(Error::internal(format!("the secrets of notification {id} do not open")));
        }
        Ok(secrets)
    }

    /// Seals the secrets of all notifications with the current version, a few at a time.
    pub(super) async fn reseal_notifications(&self) -> Result<()> {
        self.reseal(
            async |head| self.store.notifications_sealed_otherwise(head, RESEAL_AT_ONCE).await,
            |id| purpose(*id),
            async |id, before, after| self.store.reseal_notification(id, before, after).await,
        )
        .await
    }

    fn checked_url(&self, text: &str) -> Result<String> {
        let text = text.trim();
        self.outbound.check(text).map_err(|why| Error::field("/url", why))?;
        Ok(text.to_owned())
    }
}

fn purpose(id: NotificationId) -> String {
    format!("notification:{id}")
}

fn known(id: &str) -> Result<NotificationId> {
    id.parse().map_err(|_| Error::not_found())
}

fn events(value: &Value) -> Result<Vec<NotificationEvent>> {
    let known = || NotificationEvent::CHOICES.map(NotificationEvent::as_str).join(", ");
    let wrong = || Error::field("/events", format!("one or more of: {}", known()));
    let words = value.as_array().ok_or_else(wrong)?;
    let mut events = words
        .iter()
        .map(|word| {
            let event = word.as_str().and_then(|word| word.parse().ok());
            event.filter(|event| NotificationEvent::CHOICES.contains(event)).ok_or_else(wrong)
        })
        .collect::<Result<Vec<NotificationEvent>>>()?;
    events.sort_unstable();
    events.dedup();
    if events.is_empty() { Err(wrong()) } else { Ok(events) }
}

/// What is said of one, in one spelling.
fn spelled(body: &Object) -> Object {
    let mut spelled = body.clone();
    trim(&mut spelled, &["label", "url"]);
    spelled
}

/// The first answer to what makes a secret, which alone holds it.
fn with_secret(answered: Answered, secret: &SharedSecret) -> Result<Answered> {
    let secret = Some(secret.reveal().to_owned());
    shown_once(answered, |view| NotificationView { secret, note: None, ..view })
}

impl Portal {
    /// Where a team is told, newest first.
    pub async fn notifications(&self, caller: &Caller, team: &str) -> Result<Vec<NotificationView>> {
        let told = self.0.told(caller, team).await?;
        told.must()?;
        let mut all = self.0.store.notifications(&told.team).await?;
        let now = self.0.clock.now();
        for one in &mut all {
            one.old_secret_until = one.old_secret_until.filter(|until| *until > now);
        }
        Ok(all)
    }

    /// One of them.
    pub async fn notification(&self, caller: &Caller, team: &str, id: &str) -> Result<NotificationView> {
        let told = self.0.told(caller, team).await?;
        told.must()?;
        let found = self.0.store.notification(&told.team, known(id)?).await?;
        let (view, _) = found.ok_or_else(Error::not_found)?;
        let old_secret_until = view.old_secret_until.filter(|until| *until > self.0.clock.now());
        Ok(NotificationView { old_secret_until, ..view })
    }

    /// What was and is to be sent there, newest first.
    pub async fn notification_deliveries(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        size: u32,
        cursor: Option<&str>,
    ) -> Result<Page<NotificationDeliveryView>> {
        let one = self.notification(caller, team, id).await?;
        Ok(self.0.store.notification_deliveries(one.id, place(cursor)?, page_size(size)?).await?)
    }

    /// Makes one: `{"label": "…", "url": "https://…", "events": ["request.failed"]}`. Only the first answer holds the
    /// signing secret.
    pub async fn create_notification(
        &self,
        caller: &Caller,
        team: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        let portal = &self.0;
        arrival.key()?;
        let body = object(&body, &["label", "url", "events"])?;
        let found = portal.told(caller, team).await;
        let told = portal.seen(found, (caller, team), &arrival, Operation::NotificationCreate).await?;
        let now = portal.clock.now();
        let id = NotificationId(portal.ids.uuid(now));
        let secret = SharedSecret::generate(portal.ids.as_ref());
        let made = || -> Result<NotificationView> {
            Ok(NotificationView {
                id,
                team: told.team.clone(),
                label: label(body.get("label"), WHO)?,
                url: portal.checked_url(body.get("url").and_then(Value::as_str).unwrap_or_default())?,
                events: events(body.get("events").unwrap_or(&Value::Null))?,
                created_by: caller.name.clone(),
                created_at: now,
                updated_at: now,
                disabled_at: None,
                disabled_reason: None,
                old_secret_until: None,
                secret: None,
                note: Some(SECRET_SHOWN_ONCE.to_owned()),
            })
        };
        let effect = made().and_then(|view| {
            let answer = Answer::showing(AnswerKind::Created, Some(view.managed_at()), &view)?;
            let secrets = portal.seal_notification(id, &[&secret])?;
            Ok(NotificationEffect::Create { view: Box::new(view), secrets, answer })
        });
        let meant = spelled(&body);
        let wish = Wish::new(Operation::NotificationCreate, told.team.clone(), body).meaning(meant);
        let answered = portal.change_told(caller, &told, &arrival, wish, effect).await?;
        with_secret(answered, &secret)
    }

    /// Changes one: any of `label`, `url`, `events`, and `enabled`.
    pub async fn change_notification(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        let portal = &self.0;
        arrival.key()?;
        let body = object(&body, &["label", "url", "events", "enabled"])?;
        let found = portal.told(caller, team).await;
        let told = portal.seen(found, (caller, team), &arrival, Operation::NotificationChange).await?;
        let id = known(id)?;
        let change = || {
            let enabled = match body.get("enabled") {
                None => None,
                Some(Value::Bool(enabled)) => Some(*enabled),
                Some(_) => return Err(Error::field("/enabled", "must be true or false")),
            };
            let url = match body.get("url") {
                None => None,
                Some(value) => Some(portal.checked_url(value.as_str().unwrap_or_default())?),
            };
            Ok(NotificationEffect::Change {
                id,
                change: Box::new(NotificationChange {
                    label: body.get("label").map(|sent| label(Some(sent), WHO)).transpose()?,
                    url,
                    events: body.get("events").map(events).transpose()?,
                    enabled,
                }),
            })
        };
        let effect = change();
        let meant = spelled(&body);
        let wish =
            Wish::new(Operation::NotificationChange, format!("{}/{id}", told.team), body).meaning(meant);
        portal.change_told(caller, &told, &arrival, wish, effect).await
    }

    /// Gives one another signing secret; the one before signs as well for a day. Only the first answer holds it.
    pub async fn rotate_notification(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        let portal = &self.0;
        arrival.key()?;
        let body = object(&body, &[])?;
        let found = portal.told(caller, team).await;
        let told = portal.seen(found, (caller, team), &arrival, Operation::NotificationRotate).await?;
        let id = known(id)?;
        let old_until = portal.clock.now().plus(OLD_SECRET);
        let secret = SharedSecret::generate(portal.ids.as_ref());
        let found = portal.store.notification(&told.team, id).await?;
        let effect = found.ok_or_else(Error::not_found).and_then(|(_, before)| {
            let known = portal.notification_secrets(id, &before)?;
            // Two sign at the most: the one before the last is over now.
            let both: Vec<&SharedSecret> = std::iter::once(&secret).chain(known.first()).collect();
            let after = portal.seal_notification(id, &both)?;
            Ok(NotificationEffect::Rotate { id, before, after, old_until })
        });
        let wish = Wish::new(Operation::NotificationRotate, format!("{}/{id}", told.team), body);
        let answered = portal.change_told(caller, &told, &arrival, wish, effect).await?;
        with_secret(answered, &secret)
    }

    /// Removes one, and what is on its way there.
    pub async fn remove_notification(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        arrival: Arrival,
    ) -> Result<Answered> {
        arrival.key()?;
        let found = self.0.told(caller, team).await;
        let told = self.0.seen(found, (caller, team), &arrival, Operation::NotificationRemove).await?;
        let id = known(id)?;
        let wish = Wish::new(Operation::NotificationRemove, format!("{}/{id}", told.team), Object::new());
        self.0.change_told(caller, &told, &arrival, wish, Ok(NotificationEffect::Remove(id))).await
    }

    /// Sends a notification that tells of nothing, to see whether it arrives.
    pub async fn ping_notification(
        &self,
        caller: &Caller,
        team: &str,
        id: &str,
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        let portal = &self.0;
        arrival.key()?;
        let body = object(&body, &[])?;
        let found = portal.told(caller, team).await;
        let told = portal.seen(found, (caller, team), &arrival, Operation::NotificationPing).await?;
        let id = known(id)?;
        let mut data = Object::new();
        data.insert("notification".into(), serde_json::json!({ "id": id, "team": told.team }));
        data.insert("sent_by".into(), caller.name.clone().into());
        let delivery = NotificationDeliveryId(portal.ids.uuid(portal.clock.now()));
        let effect = Ok(NotificationEffect::Ping { id, delivery, data });
        let wish = Wish::new(Operation::NotificationPing, format!("{}/{id}", told.team), body);
        portal.change_told(caller, &told, &arrival, wish, effect).await
    }

    /// Sends a delivery again, under its own ID.
    pub async fn resend_notification(
        &self,
        caller: &Caller,
        team: &str,
        (id, delivery): (&str, &str),
        arrival: Arrival,
        body: Bytes,
    ) -> Result<Answered> {
        arrival.key()?;
        let body = object(&body, &[])?;
        let found = self.0.told(caller, team).await;
        let told = self.0.seen(found, (caller, team), &arrival, Operation::NotificationResend).await?;
        let id = known(id)?;
        let delivery: NotificationDeliveryId = delivery.parse().map_err(|_| Error::not_found())?;
        let effect = Ok(NotificationEffect::Resend { id, delivery });
        let wish = Wish::new(Operation::NotificationResend, format!("{}/{id}/{delivery}", told.team), body);
        self.0.change_told(caller, &told, &arrival, wish, effect).await
    }
}

/// Whether a secret that signs besides the newest is over.
pub(crate) fn old_is_over(old_until: Option<Moment>, now: Moment) -> bool {
    old_until.is_none_or(|until| until <= now)
}
