//! HTTP: which address leads where, and what every exchange has in common. What is true of requests and resources is
//! decided behind the portal's door, never here.

pub(crate) mod answer;
pub(crate) mod api;
pub(crate) mod arrive;
pub(crate) mod auth;
mod exchange;
pub(crate) mod export;
mod files;
mod forms;
mod health;
pub(crate) mod hex;
pub(crate) mod listen;
mod metrics;
mod pages;
pub(crate) mod path;
mod people;
pub(crate) mod problem;
pub(crate) mod query;
mod sessions;
pub(crate) mod state;

use axum::{
    Router,
    extract::{Request, State},
    http::header,
    middleware,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use domain::problem::ProblemKind;
use problem::Refusal;
use state::AppState;
use std::path::Path;
use tower::ServiceBuilder;
use tower_http::{
    catch_panic::CatchPanicLayer,
    compression::{
        CompressionLayer,
        predicate::{DefaultPredicate, NotForContentType, Predicate},
    },
    csrf::CsrfLayer,
    csrf::ProtectionError,
    limit::RequestBodyLimitLayer,
};

/// Everything that the server answers to.
pub(crate) fn router(state: AppState, site: &Path) -> Router {
    let detached = middleware::from_fn_with_state(state.clone(), arrive::detached);
    let (api, _) = api::router().layer(detached.clone()).split_for_parts();
    let greeted = middleware::from_fn_with_state(state.clone(), pages::greet);
    let pages = pages::routes(&state)
        .layer(RequestBodyLimitLayer::new(arrive::LONGEST_BODY))
        .merge(forms::routes().layer(detached))
        .layer(greeted.clone());
    let same_origin = CsrfLayer::new().with_rejection_response(|_: ProtectionError| -> Response {
        Refusal::new(
            ProblemKind::CrossSite,
            "A browser sent this for another site, so it was not carried out.",
        )
        .into_response()
    });
    // What every exchange passes, from the outside in. As one layer: each that a router is given by itself is a box that
    // every exchange copies once for each box around it.
    let everywhere = ServiceBuilder::new()
        .layer(middleware::from_fn_with_state(state.clone(), exchange::follow))
        .layer(CatchPanicLayer::custom(problem::panicked))
        .layer(middleware::from_fn(people::readable))
        .layer(middleware::from_fn(auth::no_token_in_address))
        .layer(same_origin)
        .layer(sessions::layer(state.portal.clone(), state.https));
    let all_but_wasm = DefaultPredicate::new().and(NotForContentType::const_new("application/wasm"));
    Router::new()
        .merge(pages.merge(files::routes(site)).layer(CompressionLayer::new().compress_when(all_but_wasm)))
        .merge(api)
        .route("/openapi.json", get(openapi))
        .method_not_allowed_fallback(async || problem::wrong_method())
        .fallback_service(
            Router::new()
                .fallback(nothing)
                .layer(greeted)
                .layer(CompressionLayer::new())
                .with_state(state.clone()),
        )
        .layer(everywhere)
        .with_state(state)
}

/// The OpenAPI document.
async fn openapi(State(state): State<AppState>) -> Response {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], state.openapi.clone())
        .into_response()
}

/// There is nothing at this address: a problem for programs, a page for people.
async fn nothing(state: State<AppState>, request: Request) -> Response {
    let path = request.uri().path();
    if path.starts_with("/api/") || path.starts_with("/rpc/") || path == "/api" {
        return problem::nothing_here().into_response();
    }
    // Some tools end every address with a slash.
    if let Some(page) = path.strip_suffix('/').filter(|page| page.starts_with("/problems/")) {
        return Redirect::permanent(page).into_response();
    }
    pages::not_found(state, request).await
}
