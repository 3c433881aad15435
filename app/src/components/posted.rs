//! Forms that are posted as they are, each under the ID that its page holds.

use super::told::{Spot, Why, plainly};
use crate::{address, context::FormState, forms::fields::as_content};
use domain::problem::Problem;
use leptos::prelude::*;

/// A form with something typed into it. It says above itself what is to be said of it, and who opened it goes along, so
/// that it comes back from a login in between.
#[component]
pub fn Typed(
    /// The form as it was sent, or as it begins.
    state: FormState,
    /// The address of the page that it stands on.
    page: String,
    /// The fields that a problem may be about.
    #[prop(optional)]
    spots: Vec<Spot>,
    /// Its fields.
    children: Children,
) -> impl IntoView {
    view! {
        {state.problem.map(|problem| view! { <Why problem spots/> })}
        {state.notice.map(|notice| view! { <p class="note" role="status">{notice}</p> })}
        <form class="stack" method="post" action=address::sent(&page)>
            <input type="hidden" name="request_id" value=state.request_id/>
            <input type="hidden" name="sealed" value=state.sealed/>
            {children()}
        </form>
    }
}

/// One step as a form of its own.
#[component]
pub fn Step(
    /// Where it is posted to.
    action: String,
    /// Its ID.
    key: String,
    /// What the button says.
    text: &'static str,
    /// What the button is called where that is not enough.
    #[prop(optional)]
    name: Option<String>,
    /// Whether something ends by it.
    #[prop(optional)]
    danger: bool,
) -> impl IntoView {
    view! {
        <form method="post" action=action>
            <input type="hidden" name="request_id" value=key/>
            <button type="submit" class:danger=danger aria-label=name>{text}</button>
        </form>
    }
}

/// The end of something, which nobody comes to by one slip: what it comes to is said before there is a button.
#[component]
pub fn Removal(
    /// Where it is posted to.
    action: String,
    /// Its ID.
    key: String,
    /// What it comes to.
    means: &'static str,
    /// What the button says.
    text: &'static str,
) -> impl IntoView {
    view! {
        <details class="removal">
            <summary>"Remove…"</summary>
            <p>{means}</p>
            <Step action key text danger=true/>
        </details>
    }
}

/// A secret that was just made.
#[component]
pub fn ShownOnce(
    /// What it is.
    title: &'static str,
    /// What is to be done with it.
    then: &'static str,
    /// It.
    secret: String,
    /// The `id` by which it is found.
    #[prop(default = "secret")]
    id: &'static str,
) -> impl IntoView {
    view! {
        <section class="note good" aria-labelledby=format!("new-{id}")>
            <h2 id=format!("new-{id}")>{title}</h2>
            <p>"It is shown this once. " {then}</p>
            <p><code class="key" id=id>{secret}</code></p>
        </section>
    }
}

/// What is wrong with one part of what was sent.
#[must_use]
pub fn wrong(problem: Option<&Problem>, pointer: &str) -> String {
    let errors = problem.into_iter().flat_map(|problem| &problem.errors);
    let here = errors.filter(|error| {
        error.pointer.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    here.map(|error| plainly(&error.detail)).collect::<Vec<_>>().join(" ")
}

/// A field of a form that is posted as it is, with the pointer to it.
#[must_use]
pub fn spot(of: &str, name: &str, pointer: String, title: String) -> Spot {
    Spot { pointer, title, id: format!("{of}-{}", name.replace('.', "-")) }
}

/// One line or several of a form, with their label, hint and message.
#[component]
pub fn Part(
    /// The field.
    #[prop(into)]
    name: String,
    /// How the field's `id` begins.
    of: &'static str,
    /// What it is called.
    #[prop(into)]
    title: String,
    /// What goes into it.
    #[prop(optional, into)]
    hint: String,
    /// What is typed.
    value: String,
    /// What is wrong with it.
    wrong: String,
    /// How many lines it has.
    #[prop(default = 1)]
    rows: u32,
    /// What is typed into a single line, as HTML calls it.
    #[prop(default = "text")]
    kind: &'static str,
    /// How long it may be.
    #[prop(optional, into)]
    longest: Option<u32>,
    /// Whether it must be given.
    #[prop(optional)]
    required: bool,
) -> impl IntoView {
    let id = format!("{of}-{}", name.replace('.', "-"));
    let (hint_id, error_id) = (format!("{id}-hint"), format!("{id}-error"));
    let described = if hint.is_empty() { error_id.clone() } else { format!("{hint_id} {error_id}") };
    let invalid = (!wrong.is_empty()).then_some("true");
    view! {
        <div class="field">
            <label for=id.clone()>{title}</label>
            {(!hint.is_empty()).then(|| view! { <p class="hint" id=hint_id>{hint}</p> })}
            {if rows > 1 {
                view! {
                    <textarea
                        id=id name=name rows=rows.to_string() spellcheck="false" autocomplete="off"
                        aria-describedby=described aria-invalid=invalid inner_html=as_content(&value)
                    ></textarea>
                }
                .into_any()
            } else {
                view! {
                    <input
                        type=kind id=id name=name value=value required=required maxlength=longest spellcheck="false"
                        autocomplete="off" autocapitalize="none" aria-describedby=described aria-invalid=invalid
                    />
                }
                .into_any()
            }}
            <p class="field-error" id=error_id>{wrong}</p>
        </div>
    }
}
