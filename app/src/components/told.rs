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

/// The words by which schemas call their rules. Programs that read a refusal may want them; people do not.
const KEYWORDS: [&str; 24] = [
    "required",
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "uniqueItems",
    "pattern",
    "format",
    "items",
    "anyOf",
    "oneOf",
    "not",
    "contains",
    "propertyNames",
];

/// What is wrong with a value, for people: without the schema's word for the rule.
#[must_use]
pub fn plainly(detail: &str) -> &str {
    let split = detail.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    split.filter(|(_, word)| KEYWORDS.contains(word)).map_or(detail, |(plain, _)| plain)
}

/// A field that a problem may be about: the way to it in what was sent, and what and where it is in the page.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The pointer.
    pub pointer: String,
    /// What it is called.
    pub title: String,
    /// The `id` of its input.
    pub id: String,
}

impl Spot {
    /// Whether this pointer leads to the field, or into what it holds.
    fn holds(&self, pointer: &str) -> bool {
        pointer.strip_prefix(&self.pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// A problem, above the form or the list that it is about.
#[component]
pub fn Why(
    /// The problem.
    problem: Problem,
    /// The fields of the form.
    #[prop(optional)]
    spots: Vec<Spot>,
) -> impl IntoView {
    let errors = problem.errors.iter().map(|error| {
        let detail = plainly(&error.detail).to_owned();
        match spots.iter().find(|spot| spot.holds(&error.pointer)) {
            Some(Spot { title, id, .. }) => {
                view! { <li><a href=format!("#{id}") rel="external">{title.clone()}</a> ": " {detail}</li> }
                    .into_any()
            }
            None => {
                view! { <li>{error.pointer.trim_start_matches('/').to_owned()} ": " {detail}</li> }.into_any()
            }
        }
    });
    let errors = errors.collect_view();
    let set_up = problem.slug() == ProblemKind::SetupDone.slug();
    // Reading goes on where it says why.
    let section = NodeRef::<leptos::html::Section>::new();
    Effect::new(move |_| {
        if let Some(section) = section.get() {
            let _ = section.focus();
        }
    });
    view! {
        <section class="note wrong" role="alert" tabindex="-1" autofocus node_ref=section>
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_without_the_words_of_schemas() {
        for (detail, plain) in [
            ("must be at least 1 (minimum)", "must be at least 1"),
            ("must have a time (as 24h)", "must have a time (as 24h)"),
            ("must match the pattern \"^(a|b)$\" (pattern)", "must match the pattern \"^(a|b)$\""),
            ("(minimum)", "(minimum)"),
        ] {
            assert_eq!(plainly(detail), plain);
        }
    }

    #[test]
    fn a_fault_inside_a_field_is_told_at_that_field() {
        let spot = Spot { pointer: "/name".into(), title: "Name".into(), id: "hook-name".into() };
        assert!(spot.holds("/name") && spot.holds("/name/0"));
        assert!(!spot.holds("/names") && !spot.holds("/"));
    }
}
