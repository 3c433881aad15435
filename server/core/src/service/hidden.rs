//! Secret parameters on their way in and out: a command is hashed as it was sent, and from then on everything that is kept,
//! compared or shown holds marks in the place of its secrets. The true values are sealed with the request that brought them.

use super::{Inner, keys::RESEAL_AT_ONCE};
use crate::{
    Error, Result,
    catalog::{Offering, ParameterSchema},
    hidden::{Hidden, Marking, MarkingKey, texts, veil_entry},
    store::StoredRequest,
};
use domain::{
    hidden,
    id::{RequestId, ResourceId},
    name::Name,
    problem::{FieldError, ProblemKind},
    submission::Channel,
    view::{EventEntry, Object},
};
use std::{collections::BTreeSet, time::Duration};

/// The setting that holds the key by which marks are made, sealed.
const MARKING_KEY: &str = "parameter_key";
const MARKING_PURPOSE: &str = "parameter-key";

/// What the secrets of a change are worked out with, under the lock of its resource.
#[derive(Debug, Clone)]
pub(super) struct Secrets {
    marking: Marking,
    /// What is known of the resource's and the change's own.
    known: Hidden,
}

impl Secrets {
    pub(super) fn new(marking: Marking, known: Hidden) -> Self {
        Self { marking, known }
    }

    /// These parameters after defaults, checked by their true values and with marks in the place of those; nothing where they
    /// hold a secret that came meanwhile.
    pub(super) fn normalised(
        &self,
        offering: &Offering,
        mut parameters: Object,
    ) -> Option<Result<Object, Vec<FieldError>>> {
        if offering.id != self.marking.offering {
            return None;
        }
        let names = offering.schema.secrets();
        self.known.reveal(names, &mut parameters).ok()?;
        Some(offering.schema.normalise(parameters).map(|parameters| self.marked(names, parameters)))
    }

    /// The same with marks in the place of what was kept in clear before it was made a secret.
    pub(super) fn marked(&self, names: &BTreeSet<String>, mut parameters: Object) -> Object {
        Hidden::default().take(names, &mut parameters, &self.marking);
        parameters
    }
}

/// The refusal of what met another change at this moment.
pub(super) fn met_another() -> Error {
    Error::new(ProblemKind::Busy, ProblemKind::Busy.help()).after(Duration::from_secs(1))
}

/// Refuses what stands for a secret where the secret itself is meant.
fn refuse_marks(names: &BTreeSet<String>, sent: &Object, pointer: &str) -> Result<()> {
    let errors: Vec<FieldError> = names
        .iter()
        .filter(|name| sent.get(*name).is_some_and(hidden::is_mark))
        .map(|name| FieldError {
            pointer: place(pointer, name),
            detail: "only stands for the secret; send the secret itself, or leave it out to keep it".into(),
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(Error::fields(errors)) }
}

fn place(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl Inner {
    /// What makes marks of the secrets of a team and offering.
    pub(super) async fn marking(&self, team: &Name, offering: &Name) -> Result<Marking> {
        let key = self.marking_key.get_or_try_init(|| self.read_marking_key()).await?;
        Ok(Marking { key: *key, team: team.clone(), offering: offering.clone() })
    }

    /// Has the key of marks at hand where it will be needed, so that not even a dry run has to make it.
    pub(super) async fn prepare_marking(&self) {
        if self.catalog.has_secrets()
            && let Err(error) = self.marking_key.get_or_try_init(|| self.read_marking_key()).await
        {
            tracing::warn!(%error, context = error.context, "the key of secret parameters is not at hand yet");
        }
    }

    async fn read_marking_key(&self) -> Result<MarkingKey> {
        let sealed = if let Some(sealed) = self.store.setting(MARKING_KEY).await? {
            sealed
        } else {
            let mut key = [0; 32];
            self.ids.fill(&mut key);
            let sealed = self.keys.seal(MARKING_PURPOSE, &key, self.ids.as_ref())?;
            self.store.set_once(MARKING_KEY, sealed).await?
        };
        let key = self.keys.unseal(MARKING_PURPOSE, &sealed)?;
        key.and_then(|key| key.try_into().ok())
            .map(MarkingKey)
            .ok_or_else(|| Error::internal("the key of secret parameters does not open"))
    }

    /// Takes the secrets out of the parameters of a create; nothing where it has none.
    pub(super) async fn hide_created(
        &self,
        team: &Name,
        offering: &Offering,
        channel: Channel,
        parameters: &mut Object,
    ) -> Result<Option<Hidden>> {
        let names = offering.schema.secrets();
        if names.is_empty() {
            return Ok(None);
        }
        refuse_marks(names, parameters, "/parameters")?;
        if let Some(name) =
            names.iter().find(|name| channel == Channel::Hook && parameters.contains_key(*name))
        {
            return Err(Error::field(&place("/parameters", name), "is a secret, which no event can give"));
        }
        let mut hidden = Hidden::default();
        hidden.take(names, parameters, &self.marking(team, &offering.id).await?);
        Ok(Some(hidden).filter(|hidden| !hidden.is_empty()))
    }

    /// Takes the secrets out of the patch of an update, and learns what its resource has; nothing where there are none.
    pub(super) async fn hide_patch(
        &self,
        team: &Name,
        (kind, name): (&Name, &Name),
        patch: &mut Object,
    ) -> Result<(Option<Secrets>, Hidden)> {
        if !self.catalog.has_secrets() {
            return Ok((None, Hidden::default()));
        }
        let life = self.store.resource(team, kind.as_str(), name.as_str()).await?;
        let Some(life) = life else { return Ok((None, Hidden::default())) };
        let Some(offering) = self.catalog.get(&life.view.offering) else {
            return Ok((None, Hidden::default()));
        };
        let names = offering.schema.secrets();
        if names.is_empty() {
            return Ok((None, Hidden::default()));
        }
        refuse_marks(names, patch, "")?;
        let marking = self.marking(team, &offering.id).await?;
        let mut brought = Hidden::default();
        brought.take(names, patch, &marking);
        // What was kept in clear before it was made a secret is hidden with the first change.
        brought.take(names, &mut life.view.parameters.clone(), &marking);
        let mut known = self.hidden_of(life.view.id).await?;
        known.extend(brought.clone());
        Ok((Some(Secrets::new(marking, known)), brought))
    }

    /// Takes the secrets out of an action's own parameters, and learns what its resource has.
    pub(super) async fn hide_input(
        &self,
        team: &Name,
        (offering, life): (&Offering, ResourceId),
        schema: &ParameterSchema,
        input: &mut Object,
    ) -> Result<(Option<Secrets>, Hidden)> {
        if schema.secrets().is_empty() && offering.schema.secrets().is_empty() {
            return Ok((None, Hidden::default()));
        }
        refuse_marks(schema.secrets(), input, "")?;
        let marking = self.marking(team, &offering.id).await?;
        let mut brought = Hidden::default();
        brought.take_input(schema.secrets(), input, &marking);
        let mut known = self.hidden_of(life).await?;
        known.extend(brought.clone());
        Ok((Some(Secrets::new(marking, known)), brought))
    }

    /// Puts marks into a command that is only compared with what is kept.
    pub(super) async fn marked_like(
        &self,
        team: &Name,
        offering: &Name,
        schema: &ParameterSchema,
        parameters: &mut Object,
    ) -> Result<()> {
        if !schema.secrets().is_empty() {
            Hidden::default().take(schema.secrets(), parameters, &self.marking(team, offering).await?);
        }
        Ok(())
    }

    /// Seals what a request brought.
    pub(super) fn seal_hidden(&self, request: RequestId, hidden: &Hidden) -> Result<Option<Vec<u8>>> {
        if hidden.is_empty() {
            return Ok(None);
        }
        let plain = serde_json::to_vec(hidden).map_err(Error::internal)?;
        self.keys.seal(&purpose(request), &plain, self.ids.as_ref()).map(Some)
    }

    /// All that requests about a life brought; an error where the key for it is not here.
    pub(crate) async fn hidden_of(&self, life: ResourceId) -> Result<Hidden> {
        let mut all = Hidden::default();
        for (request, sealed) in self.store.hidden_of(life).await? {
            let plain = self.keys.unseal(&purpose(request), &sealed)?;
            let hidden = plain.and_then(|plain| serde_json::from_slice(&plain).ok()).ok_or_else(|| {
                Error::internal(format!("the secret parameters of request {request} do not open"))
            })?;
            all.extend(hidden);
        }
        Ok(all)
    }

    /// Takes secret parameters, and secret outputs that are known, out of what is said elsewhere of a request's work.
    pub(super) async fn veil_entries(
        &self,
        request: &StoredRequest,
        entries: &mut [EventEntry],
    ) -> Result<()> {
        // Whatever this server's catalog says: another's may have known them as secrets.
        if entries.is_empty() {
            return Ok(());
        }
        let hidden = self.hidden_of(request.resource).await?;
        let life = self.store.life(request.resource).await?;
        let outputs = match life.and_then(|life| life.secrets) {
            Some(sealed) => self.open_secrets(request.resource, &sealed)?.unwrap_or_default(),
            None => Object::new(),
        };
        let secrets = texts(hidden.values().chain(outputs.values()));
        for entry in entries {
            veil_entry(entry, &secrets);
        }
        Ok(())
    }

    /// Seals secret parameters, and the key of their marks, with the current version.
    pub(super) async fn reseal_hidden(&self) -> Result<()> {
        if let Some(before) = self.store.setting(MARKING_KEY).await?
            && !before.starts_with(&self.keys.seal_head()?)
        {
            let plain = self.keys.unseal(MARKING_PURPOSE, &before)?;
            let plain = plain.ok_or_else(|| {
                Error::internal(format!("{MARKING_PURPOSE} does not open; nothing was pruned"))
            })?;
            let after = self.keys.seal(MARKING_PURPOSE, &plain, self.ids.as_ref())?;
            self.store.change_setting(MARKING_KEY, before, after).await?;
        }
        self.reseal(
            async |head| self.store.hidden_otherwise(head, RESEAL_AT_ONCE).await,
            |request| purpose(*request),
            async |request, before, after| self.store.reseal_hidden(request, before, after).await,
        )
        .await
    }
}

fn purpose(request: RequestId) -> String {
    format!("parameters:{request}")
}
