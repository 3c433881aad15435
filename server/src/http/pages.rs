//! Pages: Leptos renders them, with the portal and the caller in their context. Nothing here decides anything.

use super::{
    problem::{Refusal, Result},
    sessions,
    state::AppState,
};
use app::context::{Asking, EntryState, Flash, FormState};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use domain::hook::HookTrial;
use leptos::prelude::{provide_context, use_context};
use leptos_axum::{LeptosRoutes, ResponseOptions, generate_route_list};
use portal::Caller;
use tower_sessions::Session;

/// What a page's context holds. The server puts it into the request, and from there it goes into the page.
#[derive(Clone, Default)]
pub(crate) struct Context {
    /// A form as it was sent.
    pub(crate) form: Option<FormState>,
    /// The login or set-up form as it was sent.
    pub(crate) entry: Option<EntryState>,
    /// What a test event would do.
    pub(crate) trial: Option<HookTrial>,
    /// What the last form post has to say.
    pub(crate) flash: Option<Flash>,
}

/// Who asks for a page.
#[derive(Clone)]
pub(crate) struct Visitor(pub(crate) Option<Caller>);

/// The pages and their server functions.
pub(super) fn routes(state: &AppState) -> Router<AppState> {
    let options = state.leptos.clone();
    Router::new().leptos_routes_with_context(
        state,
        generate_route_list(app::App),
        provide(state),
        move || app::shell(options.clone()),
    )
}

/// Finds out who asks, and what waits for the page that is asked for.
pub(crate) async fn greet(State(state): State<AppState>, request: Request, next: Next) -> Response {
    match greeted(&state, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn greeted(state: &AppState, request: Request) -> Result<Request> {
    let (mut parts, body) = request.into_parts();
    let from = super::auth::peer(&parts);
    let session = sessions::of(&parts).cloned();
    let visitor = sessions::caller(state, session.as_ref(), from).await?;
    let path = parts.uri.path().to_owned();
    if let Some(session) = session.filter(|_| parts.method == Method::GET && !path.starts_with("/rpc/")) {
        let context = Context {
            form: sessions::take(state, &session, &path).await?,
            entry: entry(state, &session, &path).await?,
            flash: sessions::take(state, &session, &path).await?,
            trial: None,
        };
        parts.extensions.insert(context);
    }
    parts.extensions.insert(Visitor(visitor));
    Ok(Request::from_parts(parts, body))
}

/// What waits for the login page. A form that waits there is not lost by loading the page again: it stays until somebody
/// logs in, or until the session of nobody ends in which it is kept.
async fn entry(state: &AppState, session: &Session, path: &str) -> Result<Option<EntryState>> {
    match sessions::look::<EntryState>(state, session, path).await? {
        Some(entry) if entry.sealed.is_some() => Ok(Some(entry)),
        _ => sessions::take(state, session, path).await,
    }
}

/// Puts into a page's context what stands in its request.
fn provide(state: &AppState) -> impl Fn() + Clone + Send + Sync + 'static + use<> {
    let state = state.clone();
    move || {
        let parts = use_context::<Parts>();
        let extensions = parts.as_ref().map(|parts| &parts.extensions);
        let caller = extensions.and_then(|all| all.get::<Visitor>()).and_then(|visitor| visitor.0.clone());
        provide_context(Asking {
            portal: state.portal.clone(),
            caller,
            problem: |error| Refusal(error).problem(),
        });
        let context = extensions.and_then(|all| all.get::<Context>()).cloned().unwrap_or_default();
        if let Some(form) = context.form {
            provide_context(form);
        }
        if let Some(entry) = context.entry {
            provide_context(entry);
        }
        if let Some(trial) = context.trial {
            provide_context(trial);
        }
        if let Some(flash) = context.flash {
            provide_context(flash);
        }
        if let (Some(response), Some(policy)) = (use_context::<ResponseOptions>(), policy()) {
            response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
            // A page shows one person's view of this moment. Back shows it again from the browser's memory.
            response.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        }
    }
}

/// What a page may do in a browser: run our own files, and the lines of script that carry this page's nonce.
fn policy() -> Option<HeaderValue> {
    let nonce = leptos::nonce::use_nonce()?;
    HeaderValue::from_str(&format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; \
         img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'"
    ))
    .ok()
}

/// Renders the page at `path` as the answer to a form post.
pub(crate) async fn render(
    state: &AppState,
    visitor: Option<Caller>,
    path: &str,
    context: Context,
    status: StatusCode,
) -> Response {
    let mut request = Request::new(Body::empty());
    match path.parse() {
        Ok(uri) => *request.uri_mut() = uri,
        Err(error) => return Refusal(portal::Error::internal(error)).into_response(),
    }
    request.extensions_mut().insert(Visitor(visitor));
    request.extensions_mut().insert(context);
    let mut response = rendered(state, request).await;
    if response.status() == StatusCode::OK {
        *response.status_mut() = status;
    }
    response
}

async fn rendered(state: &AppState, request: Request) -> Response {
    let options = state.leptos.clone();
    let page =
        leptos_axum::render_app_async_with_context(provide(state), move || app::shell(options.clone()));
    page(request).await
}

/// The page that says that there is no such page.
pub(crate) async fn not_found(State(state): State<AppState>, request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return super::problem::nothing_here().into_response();
    }
    let mut response = rendered(&state, request).await;
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}
