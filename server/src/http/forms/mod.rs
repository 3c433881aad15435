//! Plain form posts: what a browser without script sends, or one whose script is not ready yet. They enter at the same
//! door as the API, with the page's hidden ID as the key, and always lead on to a page that can be loaded again.

mod change;
mod entry;
mod hooks;
mod login_between;
mod notifications;
mod order;
mod steps;
mod views;

use super::{
    arrive, auth,
    pages::Visitor,
    problem::{Refusal, Result},
    sessions,
    state::AppState,
};
use axum::{
    Form, Router,
    body::Body,
    extract::{FromRequest, Request},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use domain::problem::ProblemKind;
use portal::{Caller, service::Arrival};
use std::{collections::BTreeMap, net::IpAddr};
use tower_sessions::Session;

/// The hidden field that holds a form's ID, which is its key.
const KEY: &str = "request_id";
/// The hidden field that says who opened the form.
const OWNER: &str = "sealed";

/// The plain forms' addresses.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/login", post(entry::log_in))
        .route("/logout", post(entry::log_out))
        .route("/setup", post(entry::set_up))
        .route("/offerings/{id}/new", post(order::send))
        .route("/teams/{team}/resources/{type}/{name}/change", post(change::update))
        .route("/teams/{team}/resources/{type}/{name}/delete", post(change::delete))
        .route("/teams/{team}/resources/{type}/{name}/actions/{action}", post(change::act))
        .route("/requests/{id}/cancel", post(steps::cancel))
        .route("/requests/{id}/retry", post(steps::retry))
        .route("/requests/{id}/resolve", post(steps::resolve))
        .route("/requests/{id}/approve", post(steps::approve))
        .route("/requests/{id}/reject", post(steps::reject))
        .route("/teams/{team}/hooks/new", post(hooks::create))
        .route("/teams/{team}/hooks/{id}/edit", post(hooks::change))
        .route("/teams/{team}/hooks/{id}/rotate", post(hooks::rotate))
        .route("/teams/{team}/hooks/{id}/end-old-secret", post(hooks::end_secret))
        .route("/teams/{team}/hooks/{id}/remove", post(hooks::remove))
        .route("/teams/{team}/hooks/{id}/test", post(hooks::test))
        .route("/teams/{team}/notifications", post(notifications::create))
        .route("/teams/{team}/notifications/{id}", post(notifications::change))
        .route("/teams/{team}/notifications/{id}/{step}", post(notifications::act))
        .route("/teams/{team}/notifications/{id}/deliveries/{delivery}/resend", post(notifications::resend))
        .route("/tokens", post(steps::create_token))
        .route("/tokens/{id}/revoke", post(steps::revoke_token))
        .route("/views", post(views::save))
        .route("/views/{id}/remove", post(views::remove))
}

/// One posted form.
struct Posted {
    /// Its fields; of a field sent twice, the last.
    fields: BTreeMap<String, String>,
    /// Every value of the hidden key field.
    arrival: Arrival,
    /// Who is logged in.
    visitor: Option<Caller>,
    /// The browser's session.
    session: Session,
    /// Where it came from.
    from: Option<IpAddr>,
    /// The address it was posted to, with its query.
    address: String,
}

impl FromRequest<AppState> for Posted {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &AppState) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let body = arrive::whole(body).await?;
        let (Some(session), visitor) = (sessions::of(&parts), parts.extensions.get::<Visitor>()) else {
            return Err(Refusal(portal::Error::internal("a form was routed past the session")));
        };
        let mut again = Request::new(Body::from(body));
        *again.method_mut() = parts.method.clone();
        *again.headers_mut() = parts.headers.clone();
        let form = Form::<Vec<(String, String)>>::from_request(again, state).await;
        let Ok(Form(pairs)) = form else {
            let detail = "The form did not come as application/x-www-form-urlencoded.";
            return Err(Refusal::new(ProblemKind::UnsupportedMediaType, detail));
        };
        let keys = pairs
            .iter()
            .filter(|(name, _)| name == KEY)
            .map(|(_, value)| value.clone().into_bytes())
            .collect();
        Ok(Self {
            arrival: Arrival { keys, ..Arrival::default() },
            fields: pairs.into_iter().collect(),
            visitor: visitor.and_then(|visitor| visitor.0.clone()),
            session: session.clone(),
            from: auth::peer(&parts),
            address: parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        })
    }
}

impl Posted {
    /// A field's value; empty where it was not sent.
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }

    /// What was typed: every field that is not the form's own.
    fn typed(&self) -> BTreeMap<String, String> {
        let typed = self.fields.iter().filter(|(name, _)| !matches!(name.as_str(), KEY | OWNER));
        typed.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// These fields, as far as they were sent.
    fn only(&self, names: &[&str]) -> BTreeMap<String, String> {
        let sent = names.iter().filter_map(|name| self.fields.get_key_value(*name));
        sent.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The path it was posted to.
    fn path(&self) -> &str {
        self.address.split('?').next().unwrap_or_default()
    }
}

/// Leads on to a page by a fresh GET, so that reloading it sends nothing again.
fn see_other(place: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(place) else {
        return Refusal(portal::Error::internal("an address that is no header value")).into_response();
    };
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

/// Leads to the login, and from there back to `next`.
fn log_in_first(next: &str) -> Response {
    see_other(&app::address::login(next))
}
