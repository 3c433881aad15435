//! Looking: who sees what, and the rule that what one may not see is told apart from nothing by nobody.

use super::{Inner, Portal};
use crate::{
    Caller, Error, Result,
    catalog::{Broken, Ends},
    store::{AuditEntry, ListScope, RequestList, Scope as KeyScope, StoredRequest, cursor},
};
use domain::{
    change::{Change, Changes},
    expiry::Nearness,
    id::RequestId,
    key::SubmissionKey,
    name::Name,
    problem::{FieldError, ProblemKind},
    role::TeamAct,
    search::{LARGEST_PAGE, Search},
    time::Moment,
    view::{
        EventView, MeView, MembershipView, Object, OfferingGuardView, OfferingView, Page, RequestSummary,
        RequestView, ResourceDetail, ResourceView, SubmissionsView,
    },
};
use std::time::Duration;

/// How many entries of a history one call gives.
const EVENTS_A_CALL: u32 = 500;
/// How long a waiter relies on being woken before it looks by itself.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Which requests a caller wants to see.
#[derive(Debug, Clone, Default)]
pub enum Scope {
    /// All that it may see.
    #[default]
    All,
    /// One team's.
    Team(String),
    /// Those that it asked for itself.
    Mine,
}

/// A search among requests: the one object for list, count, page and export.
#[derive(Debug, Clone, Default)]
pub struct RequestQuery {
    /// Whose.
    pub scope: Scope,
    /// Which of those, and which page of them.
    pub search: Search,
}

impl Inner {
    /// The team, if there is one and the caller may see it.
    pub(crate) async fn visible_team(&self, caller: &Caller, team: &str) -> Result<Name> {
        let team = Name::parse(team).map_err(|_| Error::not_found())?;
        let belongs = caller.teams.iter().any(|(known, _)| *known == team);
        // Administrators see every team, but only those that there are.
        let visible = caller.may(TeamAct::See, &team) && (belongs || self.store.has_team(&team).await?);
        if visible { Ok(team) } else { Err(Error::not_found()) }
    }

    /// What a search is about when this caller makes it: nothing that it may not see.
    pub(crate) async fn seen_by(&self, caller: &Caller, query: RequestQuery) -> Result<RequestList> {
        let scope = match &query.scope {
            Scope::Team(team) => ListScope::Team(self.visible_team(caller, team).await?),
            Scope::Mine => ListScope::RequestedBy(caller.id),
            Scope::All if caller.is_admin() => ListScope::All,
            Scope::All => ListScope::Teams(caller.teams.iter().map(|(team, _)| team.clone()).collect()),
        };
        Ok(RequestList { scope, search: query.search })
    }

    /// The request, whoever may see it.
    pub(crate) async fn any_request(&self, id: &str) -> Result<Option<StoredRequest>> {
        match id.parse::<RequestId>() {
            Ok(id) => Ok(self.store.request(id).await?),
            Err(_) => Ok(None),
        }
    }

    /// The request, if the caller may see it.
    pub(crate) async fn visible_request(&self, caller: &Caller, id: &str) -> Result<StoredRequest> {
        let request = self.any_request(id).await?.ok_or_else(Error::not_found)?;
        if caller.may(TeamAct::See, &request.view.team) { Ok(request) } else { Err(Error::not_found()) }
    }
}

pub(super) fn place(cursor: Option<&str>) -> Result<Option<(Moment, uuid::Uuid)>> {
    cursor
        .map(|text| {
            cursor::read(text).ok_or_else(|| {
                Error::new(ProblemKind::InvalidQuery, "cursor: send what an earlier page gave as next")
            })
        })
        .transpose()
}

pub(super) fn page_size(size: u32) -> Result<u32> {
    if (1..=LARGEST_PAGE).contains(&size) {
        return Ok(size);
    }
    Err(Error::new(ProblemKind::InvalidQuery, "size: from 1 to 1000"))
}

fn shown_broken(broken: &Broken, caller: &Caller) -> Option<OfferingView> {
    let id = Name::parse(&broken.id).ok()?;
    // Where in the catalog, not where on the server.
    let mistakes = broken.mistakes.iter().map(|mistake| {
        let file = std::path::Path::new(&mistake.file).file_name().unwrap_or_default().to_string_lossy();
        format!("{}/{file}:{}:{}: {}", broken.id, mistake.line, mistake.column, mistake.message)
    });
    let mistakes: Vec<String> = mistakes.collect();
    Some(OfferingView {
        resource_type: id.clone(),
        title: id.to_string(),
        id,
        description: "This offering has a mistake in the catalog and cannot be requested at present.".into(),
        category: "Unavailable".into(),
        version: String::new(),
        parameters: serde_json::json!({ "type": "object", "properties": {} }),
        updatable: false,
        actions: Vec::new(),
        made_of: Vec::new(),
        approval: None,
        guard: OfferingGuardView::default(),
        available: false,
        problem: caller.is_admin().then(|| mistakes.join("\n")),
    })
}

impl Portal {
    /// Who is asking, and where they belong.
    #[must_use]
    pub fn me(&self, caller: &Caller) -> MeView {
        MeView {
            id: caller.id,
            name: caller.name.clone(),
            role: caller.role,
            teams: caller
                .teams
                .iter()
                .map(|(team, role)| MembershipView { team: team.clone(), role: *role })
                .collect(),
        }
    }

    /// The catalog.
    #[must_use]
    pub fn offerings(&self, caller: &Caller) -> Vec<OfferingView> {
        let broken = self.0.catalog.broken().iter().filter_map(|broken| shown_broken(broken, caller));
        self.0.catalog.iter().map(|offering| offering.view()).chain(broken).collect()
    }

    /// One catalog entry.
    pub fn offering(&self, caller: &Caller, id: &str) -> Result<OfferingView> {
        self.offerings(caller)
            .into_iter()
            .find(|offering| offering.id.as_str() == id)
            .ok_or_else(Error::not_found)
    }

    /// Which of these parameters do not fit an offering, each at its place in the body of a create. A form that cannot be
    /// sent for another reason asks, so that all that is wrong with it is told at once.
    #[must_use]
    pub fn misfits(&self, offering: &Name, parameters: Object) -> Vec<FieldError> {
        let offering = self.0.catalog.get(offering);
        offering.and_then(|offering| offering.schema.normalise(parameters).err()).unwrap_or_default()
    }

    /// The offering as it stood when the first submission with the caller's own key was accepted, so that a form is typed
    /// then and later alike; nothing where there was no such submission.
    pub async fn offering_at_first(
        &self,
        caller: &Caller,
        team: &str,
        key: &[u8],
    ) -> Result<Option<OfferingView>> {
        let Ok(key) = SubmissionKey::parse(key) else { return Ok(None) };
        let Ok(team) = self.0.visible_team(caller, team).await else { return Ok(None) };
        let store = &self.0.store;
        let scope = KeyScope { team: team.to_string(), principal: caller.id, key };
        let Some((claim, Some(request))) = store.claimed(&scope).await? else { return Ok(None) };
        let Some(digest) = claim.schema_digest else { return Ok(None) };
        let Some(schema) = store.schema(&digest).await? else { return Ok(None) };
        let view = request.view;
        Ok(Some(OfferingView {
            title: view.offering.to_string(),
            id: view.offering,
            description: String::new(),
            category: String::new(),
            version: view.offering_version,
            resource_type: view.resource_type,
            parameters: serde_json::from_str(&schema).map_err(Error::internal)?,
            updatable: false,
            actions: Vec::new(),
            made_of: Vec::new(),
            approval: None,
            guard: OfferingGuardView::default(),
            available: false,
            problem: None,
        }))
    }

    /// One request.
    pub async fn request(&self, caller: &Caller, id: &str) -> Result<RequestView> {
        Ok(self.0.visible_request(caller, id).await?.view)
    }

    /// One request, as soon as it is in a final state or `up_to` is over.
    pub async fn wait_for_end(&self, caller: &Caller, id: &str, up_to: Duration) -> Result<RequestView> {
        let deadline = tokio::time::Instant::now() + up_to;
        let mut listener = self.0.store.changes().listen();
        loop {
            let request = self.request(caller, id).await?;
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            if request.state.is_final() || left.is_zero() {
                return Ok(request);
            }
            listener.change_of(request.id, left.min(LOOK_AGAIN)).await;
        }
    }

    /// A page of requests, newest first.
    pub async fn requests(&self, caller: &Caller, query: RequestQuery) -> Result<Page<RequestView>> {
        let list = self.0.seen_by(caller, query).await?;
        Ok(self.0.store.requests(list).await?)
    }

    /// What happened to a request after entry `after`, oldest first; at most 500 entries a call.
    pub async fn events(&self, caller: &Caller, id: &str, after: i64) -> Result<Vec<EventView>> {
        let request = self.0.visible_request(caller, id).await?;
        Ok(self.0.store.events(request.view.id, after, EVENTS_A_CALL).await?)
    }

    /// Begins to listen for changes of requests.
    #[must_use]
    pub fn listen(&self) -> crate::store::changes::Listener {
        self.0.store.changes().listen()
    }

    /// Every arrival of a request.
    pub async fn submissions(&self, caller: &Caller, id: &str) -> Result<SubmissionsView> {
        let request = self.0.visible_request(caller, id).await?;
        Ok(self.0.store.submissions(request.view.id).await?)
    }

    /// "Did my request happen?": the request of the caller's own key.
    pub async fn look_up(&self, caller: &Caller, team: &str, key: &[u8]) -> Result<RequestView> {
        let key = SubmissionKey::parse(key)?;
        let team = self.0.visible_team(caller, team).await?;
        let scope = KeyScope { team: team.to_string(), principal: caller.id, key };
        match self.0.looked_up(&scope).await? {
            Some((_, Some(request))) if caller.may(TeamAct::See, &request.view.team) => Ok(request.view),
            _ => Err(Error::not_found()),
        }
    }

    /// A page of a team's living resources, newest first.
    pub async fn resources(
        &self,
        caller: &Caller,
        team: &str,
        size: u32,
        cursor: Option<String>,
    ) -> Result<Page<ResourceView>> {
        let team = self.0.visible_team(caller, team).await?;
        Ok(self.0.store.resources(&team, place(cursor.as_deref())?, page_size(size)?).await?)
    }

    /// One living resource, with what was asked of it last.
    pub async fn resource(
        &self,
        caller: &Caller,
        team: &str,
        kind: &str,
        name: &str,
    ) -> Result<ResourceDetail> {
        let team = self.0.visible_team(caller, team).await?;
        let resource = self.0.store.resource(&team, kind, name).await?.ok_or_else(Error::not_found)?;
        let (pending, last) = self.0.store.requests_of(resource.view.id).await?;
        let short = |requests: &[RequestView]| requests.iter().map(RequestSummary::from).collect();
        Ok(ResourceDetail {
            applied: resource.applied.filter(|applied| *applied != resource.view.parameters),
            pending: short(&pending),
            requests: short(&last),
            resource: resource.view,
        })
    }

    /// How near the end of a resource is, and which of its offering's actions put it off; nothing where it has none.
    #[must_use]
    pub fn end_of(&self, resource: &ResourceView) -> Option<(Nearness, Vec<Name>)> {
        let end = resource.expires_at?;
        let offering = self.0.catalog.get(&resource.offering);
        let rule = offering.and_then(|offering| offering.expiry.as_ref());
        let near = Nearness::of(end, rule.map(|rule| rule.warn).unwrap_or_default(), self.0.clock.now());
        let puts_off = |changes: &Changes| match rule.map(|rule| &rule.ends) {
            Some(Ends::Days(days)) => changes.contains_key(days),
            // What adds to something of a thing that says its end itself makes it last longer.
            Some(Ends::Output(_)) => changes.values().any(|change| matches!(change, Change::Add(_))),
            Some(Ends::After(_)) | None => false,
        };
        let actions = offering.map(|offering| offering.view().actions).unwrap_or_default();
        let actions = actions.into_iter().filter(|action| puts_off(&action.changes)).map(|action| action.id);
        Some((near, actions.collect()))
    }

    /// The request that deleted the last thing of this name, if nothing stands there now.
    pub async fn deleted_by(
        &self,
        caller: &Caller,
        team: &str,
        kind: &str,
        name: &str,
    ) -> Result<Option<RequestSummary>> {
        let team = self.0.visible_team(caller, team).await?;
        if self.0.store.resource(&team, kind, name).await?.is_some() {
            return Ok(None);
        }
        let past = self.0.store.last_deleted(&team, kind, name).await?;
        let Some(delete) = past.and_then(|past| past.ended_by) else { return Ok(None) };
        let request = self.0.store.request(delete).await?;
        Ok(request.map(|request| RequestSummary::from(&request.view)))
    }

    /// A secret output, for who may see it; the look is audited before it is shown.
    pub async fn reveal(
        &self,
        caller: &Caller,
        team: &str,
        kind: &str,
        name: &str,
        output: &str,
    ) -> Result<String> {
        let team = self.0.visible_team(caller, team).await?;
        let resource = self.0.store.resource(&team, kind, name).await?.ok_or_else(Error::not_found)?;
        caller.must(TeamAct::Reveal, &team)?;
        let sealed = resource.secrets.as_deref().ok_or_else(Error::not_found)?;
        let secrets = self.0.open_secrets(resource.view.id, sealed)?;
        let value = secrets.and_then(|mut secrets| secrets.remove(output)).ok_or_else(Error::not_found)?;
        let entry = AuditEntry {
            at: self.0.clock.now(),
            actor: caller.name.clone(),
            channel: caller.channel.as_str(),
            act: "secret_reveal",
            team: team.to_string(),
            target: format!("{kind}/{name}"),
            detail: output.to_owned(),
        };
        self.0.store.audit(entry).await?;
        Ok(match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        })
    }
}
