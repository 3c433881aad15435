//! The forms about a resource that is there: change it, delete it, do with it what its offering defines. Each carries the
//! version that the resource had when the form was opened, so that nobody's change is lost unseen.

use super::{
    Posted,
    login_between::{Opener, opener},
    order::{key_of, lead_on, take_fresh_id, typed, unfit},
};
use crate::http::{answer::counted, path::PathOf, problem::Result, state::AppState};
use app::forms::subject::{Deed, ETAG, Standing, Subject};
use axum::{extract::State, response::Response};
use bytes::Bytes;
use domain::{
    name::Name,
    problem::ProblemKind,
    view::{ActionView, Object, OfferingGuardView, OfferingView},
};
use portal::{Caller, Error, service::Target};
use serde_json::Value;

/// The button that sends a form although the resource has changed; its value is the version that was shown.
const ON_TOP: &str = "on_top_of";

/// Changes a resource.
pub(super) async fn update(
    State(state): State<AppState>,
    PathOf((team, kind, name)): PathOf<(String, String, String)>,
    posted: Posted,
) -> Result<Response> {
    send(&state, Target { team, kind, name }, &Wish::Change, posted).await
}

/// Deletes a resource.
pub(super) async fn delete(
    State(state): State<AppState>,
    PathOf((team, kind, name)): PathOf<(String, String, String)>,
    posted: Posted,
) -> Result<Response> {
    send(&state, Target { team, kind, name }, &Wish::Delete, posted).await
}

/// Does an action with a resource.
pub(super) async fn act(
    State(state): State<AppState>,
    PathOf((team, kind, name, action)): PathOf<(String, String, String, String)>,
    posted: Posted,
) -> Result<Response> {
    send(&state, Target { team, kind, name }, &Wish::Act(action), posted).await
}

/// What the form asks for.
enum Wish {
    Change,
    Delete,
    Act(String),
}

async fn send(state: &AppState, target: Target, wish: &Wish, mut posted: Posted) -> Result<Response> {
    let key = key_of(&posted);
    let kept =
        async |owner: &Caller| typed(&posted, subject(state, owner, &target, wish, &key).await.ok().as_ref());
    let caller = match opener(state, &posted, kept).await? {
        Opener::Here(caller) => caller,
        Opener::Elsewhere(page) => return Ok(page),
    };
    let subject = subject(state, &caller, &target, wish, &key).await?;
    if let Some(now) = posted.fields.get(ON_TOP).cloned() {
        posted.fields.insert(ETAG.to_owned(), now);
    }
    let body = match subject.body(&posted.fields) {
        Ok(body) => body,
        Err(problem) => return Ok(unfit(state, &posted, &subject, problem).await),
    };
    let body: Bytes = body.map(|body| Value::Object(body).to_string()).unwrap_or_default().into();
    take_fresh_id(&mut posted);
    let mut arrival = std::mem::take(&mut posted.arrival);
    arrival.if_match = vec![posted.field(ETAG).as_bytes().to_vec()];
    let portal = &state.portal;
    let answered = match wish {
        Wish::Change => {
            counted(state, Box::pin(portal.update(&caller, target, arrival, body, Vec::new()))).await
        }
        Wish::Delete => {
            counted(state, Box::pin(portal.delete(&caller, target, arrival, body, Vec::new()))).await
        }
        Wish::Act(action) => {
            counted(state, Box::pin(portal.act(&caller, target, action, arrival, body, Vec::new()))).await
        }
    };
    lead_on(state, &posted, &subject, answered).await
}

/// What the form is about. A form that is sent again finds its meaning also after the resource is gone: by the request
/// that it made the first time.
async fn subject(
    state: &AppState,
    caller: &Caller,
    target: &Target,
    wish: &Wish,
    key: &str,
) -> portal::Result<Subject> {
    let portal = &state.portal;
    let (offering, on) = match portal.resource(caller, &target.team, &target.kind, &target.name).await {
        Ok(found) => (found.resource.offering.clone(), Standing::from(&found.resource)),
        // Deleting what is gone is no error, so the service decides whether it ever was.
        Err(_) if matches!(wish, Wish::Delete) => return nameless(target),
        Err(gone) => {
            let request = portal.look_up(caller, &target.team, key.as_bytes()).await.map_err(|_| gone)?;
            if (request.resource_type.as_str(), request.name.as_str()) != (&*target.kind, &*target.name) {
                return Err(Error::not_found());
            }
            let (team, kind, name) = (request.team, request.resource_type, request.name);
            (request.offering, Standing { team, kind, name, etag: String::new(), parameters: Object::new() })
        }
    };
    let offering = portal.offering(caller, offering.as_str())?;
    let deed = match wish {
        Wish::Change => Deed::Update,
        Wish::Delete => Deed::Delete,
        Wish::Act(id) => {
            let known = offering.actions.iter().find(|action| action.id.as_str() == id).cloned();
            // Typed as at its first, whatever became of the catalog since.
            let first = portal.offering_at_first(caller, &target.team, key.as_bytes()).await?;
            match (known, first) {
                (Some(action), Some(first)) => {
                    Deed::Act(ActionView { parameters: first.parameters, ..action })
                }
                (Some(action), None) => Deed::Act(action),
                (None, _) => {
                    let why = format!("The offering {} has no such action.", offering.id);
                    return Err(Error::new(ProblemKind::NotFound, why));
                }
            }
        }
    };
    Ok(Subject::on(offering, on, deed))
}

/// The form that deletes something of which nothing is known but the address.
fn nameless(target: &Target) -> portal::Result<Subject> {
    let part = |text: &str| Name::parse(text).map_err(|_| Error::not_found());
    let (team, kind, name) = (part(&target.team)?, part(&target.kind)?, part(&target.name)?);
    let offering = OfferingView {
        id: kind.clone(),
        title: kind.to_string(),
        description: String::new(),
        category: String::new(),
        version: String::new(),
        resource_type: kind.clone(),
        parameters: Value::Null,
        updatable: false,
        actions: Vec::new(),
        made_of: Vec::new(),
        approval: None,
        guard: OfferingGuardView { max_tries: 0, timeout_seconds: 0, duplicate_window_seconds: None },
        available: false,
        problem: None,
    };
    let on = Standing { team, kind, name, etag: String::new(), parameters: Object::new() };
    Ok(Subject::on(offering, on, Deed::Delete))
}
