//! What a page says when it cannot show what it was asked for, and what the last form post had to say.

use crate::{address, context::Flash, rpc::Refusal};
use domain::problem::{Problem, ProblemKind};
use leptos::prelude::*;
use leptos_meta::Title;

/// A refusal in the place of a page. Who is not logged in is led to the login page and back to `here`.
#[component]
pub fn Refused(
    /// The refusal.
    refusal: Refusal,
    /// The address of the page that was refused.
    here: String,
) -> impl IntoView {
    let login = refusal.asks_for_login().then(|| address::login(&here));
    if let Some(login) = login.clone() {
        #[cfg(feature = "ssr")]
        lead_to(&login);
        Effect::new(move |_| {
            let _ = window().location().assign(&login);
        });
    }
    let (title, detail) = refusal.words();
    view! {
        <Title text=title.clone()/>
        <h1>{title}</h1>
        <p>{detail}</p>
        <p>
            <a href=login.clone().unwrap_or_else(|| "/".to_owned()) rel="external">
                {if login.is_some() { "Log in" } else { "Back to the catalog" }}
            </a>
        </p>
    }
}

/// Answers the page with a redirect.
#[cfg(feature = "ssr")]
pub(crate) fn lead_to(address: &str) {
    use leptos::server_fn::axum_export::http::{HeaderValue, StatusCode, header};

    let response = use_context::<leptos_axum::ResponseOptions>();
    if let (Some(response), Ok(location)) = (response, HeaderValue::from_str(address)) {
        response.set_status(StatusCode::SEE_OTHER);
        response.insert_header(header::LOCATION, location);
    }
}

/// A problem, above the form or the list that it is about.
#[component]
pub fn Why(
    /// The problem.
    problem: Problem,
) -> impl IntoView {
    let errors = problem.errors.iter().map(|error| {
        view! { <li>{error.pointer.trim_start_matches('/').to_owned()} ": " {error.detail.clone()}</li> }
    });
    let errors = errors.collect_view();
    let set_up = problem.slug() == ProblemKind::SetupDone.slug();
    view! {
        <section class="note wrong" role="alert">
            <h2>{problem.title}</h2>
            {problem.errors.is_empty().then(|| view! { <p>{problem.detail}</p> })}
            {(!problem.errors.is_empty()).then(|| view! { <ul>{errors}</ul> })}
            {set_up.then(|| view! { <p><a href="/login" rel="external">"Log in"</a></p> })}
        </section>
    }
}

/// What the last form post had to say.
#[component]
pub fn Said(
    /// It.
    flash: Flash,
) -> impl IntoView {
    view! {
        {flash.problem.map(|problem| view! { <Why problem/> })}
        {flash.notice.map(|notice| view! { <p class="note" role="status">{notice}</p> })}
    }
}
