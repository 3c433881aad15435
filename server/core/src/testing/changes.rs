//! Changing things in a house.

use super::{House, key};
use crate::{Answered, Caller, Error, provisioner::Job, service::Target, store::StoredResource};
use bytes::Bytes;
use domain::{
    id::RequestId,
    name::Name,
    state::RequestState::{self, Succeeded},
    view::{Object, RequestView},
};
use serde_json::Value;

/// The resource `vm/<name>` of team alpha.
pub(crate) fn target(name: &str) -> Target {
    Target { team: "alpha".into(), kind: "vm".into(), name: name.into() }
}

impl House {
    /// A machine that is there; needs workers.
    pub(crate) async fn standing(&self, name: &str) -> RequestId {
        let id = self.create(name).await;
        self.reaches(id, Succeeded).await;
        id
    }

    pub(crate) async fn resource(&self, name: &str) -> StoredResource {
        self.store.resource(&Name::parse("alpha").unwrap(), "vm", name).await.unwrap().unwrap()
    }

    pub(crate) async fn etag(&self, name: &str) -> String {
        self.resource(name).await.view.etag().to_string()
    }

    pub(crate) async fn parameter(&self, name: &str, parameter: &str) -> Value {
        self.resource(name).await.view.parameters.get(parameter).cloned().unwrap_or_default()
    }

    /// Sends a patch, with these values of If-Match.
    pub(crate) async fn patch(
        &self,
        by: &Caller,
        with: &str,
        name: &str,
        patch: &Value,
        if_match: &[&str],
    ) -> Result<Answered, Error> {
        let mut arrival = key(with);
        arrival.if_match = if_match.iter().map(|tag| tag.as_bytes().to_vec()).collect();
        self.portal.update(by, target(name), arrival, patch.to_string().into(), Vec::new()).await
    }

    /// A patch of what is there now; its request.
    pub(crate) async fn updated(&self, name: &str, patch: &Value) -> RequestId {
        let (fresh, etag) = (self.portal.new_submission_key(), self.etag(name).await);
        self.patch(&self.ann, &fresh, name, patch, &[&etag]).await.unwrap().request_id.unwrap()
    }

    pub(crate) async fn act(
        &self,
        with: &str,
        name: &str,
        action: &str,
        input: &Value,
    ) -> Result<Answered, Error> {
        let (arrival, body) = (key(with), Bytes::from(input.to_string()));
        self.portal.act(&self.ann, target(name), action, arrival, body, Vec::new()).await
    }

    pub(crate) async fn delete(&self, with: &str, name: &str) -> Result<Answered, Error> {
        self.portal.delete(&self.ann, target(name), key(with), Bytes::new(), Vec::new()).await
    }

    /// A delete; its request.
    pub(crate) async fn deleted(&self, name: &str) -> RequestId {
        let fresh = self.portal.new_submission_key();
        self.delete(&fresh, name).await.unwrap().request_id.unwrap()
    }

    pub(crate) async fn retry(&self, id: RequestId) -> Result<Answered, Error> {
        let fresh = self.portal.new_submission_key();
        self.portal.retry(&self.ann, &id.to_string(), key(&fresh), Bytes::new()).await
    }

    /// The request at its end.
    pub(crate) async fn ends(&self, id: RequestId) -> RequestView {
        super::eventually(async || Some(self.view(id).await).filter(|view| view.state.is_final())).await
    }

    pub(crate) async fn ended_as(&self, id: RequestId, state: RequestState) -> RequestView {
        let view = self.ends(id).await;
        assert_eq!(view.state, state, "{:?} {:?}", view.reason, self.history(id).await);
        view
    }

    /// The job that a provisioner is given for a change.
    pub(crate) async fn job_of(&self, id: RequestId) -> Job {
        let (view, resource) = (self.view(id).await, self.resource(self.view(id).await.name.as_str()).await);
        Job {
            made_by: resource.view.created_by.id,
            previous: resource.applied.unwrap_or_default(),
            parameters: view.desired.unwrap_or_default(),
            input: if view.action == "update" { Object::new() } else { view.parameters },
            ..self.job(id).await
        }
    }
}
