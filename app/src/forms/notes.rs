//! What the form says above its fields: a refusal, a doubt, a choice.

use super::{
    conflict::conflict,
    driver::{Driver, focus_field},
    fields::input_id,
    machine::{Phase, Question},
    outgoing::parameter_field,
};
use crate::components::{moment::When, state::State};
use domain::problem::Problem;
use leptos::prelude::*;

/// What the form says above its fields.
pub(crate) fn note(phase: &Phase, driver: Driver, scripted: RwSignal<bool>) -> AnyView {
    match phase {
        Phase::Ready | Phase::Sending | Phase::Leaving => sent_before(driver),
        Phase::OutcomeUnknown { said } => view! {
            <section class="note caution" aria-labelledby="unknown-title">
                <h2 id="unknown-title">"The outcome is not known yet"</h2>
                <p>
                    "The form was sent, but no answer arrived here. The request may have been taken in or not. "
                    "“Check again” sends it with the same request ID: if it was taken in, you get its first result, "
                    "otherwise it is taken in now. It is never carried out twice."
                </p>
                {said.clone().map(|said| view! { <p>"The portal said last: " {said}</p> })}
            </section>
        }
        .into_any(),
        Phase::Refused { problem, doubtful } => refused(problem, *doubtful, driver),
        Phase::Asked(Question::Reused(problem)) => reused(problem, driver, scripted),
        Phase::Asked(Question::Duplicate(problem)) => duplicate(problem, driver, scripted),
        Phase::Asked(Question::Conflict(problem)) => conflict(problem, driver, scripted),
    }
}

fn sent_before(driver: Driver) -> AnyView {
    let request = driver.machine.read().request().map(str::to_owned);
    // An address of its own: a link to the very same address would lead to this history entry, with this form's ID.
    let path = driver.opened.with_value(|opened| opened.subject.path());
    let fresh = format!("{path}?after={}", driver.machine.read().id());
    request
        .map(|request| {
            view! {
                <section class="note">
                    <p>
                        "This form led to " <a href=format!("/requests/{request}")>"a request"</a>
                        " already. Sending it again shows that one. For another, "
                        <a href=fresh rel="external">"open a fresh form"</a> "."
                    </p>
                </section>
            }
        })
        .into_any()
}

fn refused(problem: &Problem, doubtful: bool, driver: Driver) -> AnyView {
    let errors = problem.errors.iter().map(|error| {
        let detail = error.detail.clone();
        match driver.opened.with_value(|opened| opened.subject.field_of(&error.pointer)) {
            Some(field) => {
                let label = title(&field, driver);
                view! {
                    <li>
                        <a
                            href=format!("#{}", input_id(&field)) rel="external"
                            on:click=move |event| {
                                event.prevent_default();
                                focus_field(&field);
                            }
                        >
                            {label}
                        </a>
                        ": " {detail}
                    </li>
                }
                .into_any()
            }
            None => view! { <li>{error.pointer.clone()} ": " {detail}</li> }.into_any(),
        }
    });
    let errors = errors.collect_view();
    let some = !problem.errors.is_empty();
    // The list below says it all, field by field.
    let what =
        if some { "Nothing was changed. Correct what is marked and send again." } else { &problem.detail };
    let what = what.to_owned();
    view! {
        <section class="note wrong" aria-labelledby="refused-title">
            <h2 id="refused-title">{problem.title.clone()}</h2>
            <p>{what}</p>
            {some.then(|| view! { <ul>{errors}</ul> })}
            {earlier(problem)}
            {doubtful.then(|| view! {
                <p>"An earlier try got no answer and may have arrived. Look at your requests before you open a fresh form."</p>
            })}
        </section>
    }
    .into_any()
}

/// The titles of what differs from what stands already.
fn differing(problem: &Problem, driver: Driver) -> String {
    let titles = problem.differs.iter().map(|part| match part.strip_prefix("parameters.") {
        Some(parameter) => in_a_sentence(title(&parameter_field(parameter), driver)),
        None => in_a_sentence(title(part, driver)),
    });
    titles.collect::<Vec<_>>().join(", ")
}

/// A title inside a sentence: begun with a small letter, unless it begins with an abbreviation.
fn in_a_sentence(title: String) -> String {
    let mut chars = title.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain([second]).chain(chars).collect()
        }
        _ => title,
    }
}

/// A field's title, as it stands above its input.
fn title(field: &str, driver: Driver) -> String {
    match (field, field.strip_prefix("p.")) {
        ("name", _) => "Name".to_owned(),
        ("team", _) => "Team".to_owned(),
        ("labels", _) => "Labels".to_owned(),
        ("correlation_id", _) => "Correlation ID".to_owned(),
        ("confirm", _) => "The resource's name".to_owned(),
        (other, None) => other.to_owned(),
        (_, Some(parameter)) => driver.opened.with_value(|opened| opened.subject.title(parameter)),
    }
}

fn earlier(problem: &Problem) -> Option<impl IntoView + use<>> {
    problem.request.as_ref().map(|link| {
        view! { <p><a href=format!("/requests/{}", link.id)>"Open the earlier request"</a></p> }
    })
}

fn reused(problem: &Problem, driver: Driver, scripted: RwSignal<bool>) -> AnyView {
    let differs = differing(problem, driver);
    let (title, what) = if differs.is_empty() {
        ("This form was sent before", problem.detail.clone())
    } else {
        ("This form was sent before, as something else", format!("What differs: {differs}."))
    };
    view! {
        <section class="note caution" aria-labelledby="reused-title">
            <h2 id="reused-title">{title}</h2>
            <p>{what}</p>
            <p>"Nothing was changed now. Open what was requested first, or send what stands here as a new request."</p>
            <div class="actions">
                {earlier(problem)}
                {move || scripted.get().then(|| view! {
                    <button
                        type="button" disabled=move || !driver.machine.read().is_ready()
                        on:click=move |_| driver.submit_as_new()
                    >
                        "Send as a new request"
                    </button>
                })}
            </div>
        </section>
    }
    .into_any()
}

fn duplicate(problem: &Problem, driver: Driver, scripted: RwSignal<bool>) -> AnyView {
    let reason = RwSignal::new(String::new());
    let able = move || !reason.read().trim().is_empty() && driver.machine.read().is_ready();
    view! {
        <section class="note caution" aria-labelledby="duplicate-title">
            <h2 id="duplicate-title">{problem.title.clone()}</h2>
            <p>
                "Your team asked for the same a short while ago, perhaps under another name. Nothing was changed now. "
                "Open the earlier request, or say why another one is wanted and request it anyway."
            </p>
            {problem.earlier.as_ref().map(|earlier| {
                let (name, by, at) = (earlier.name.to_string(), earlier.requested_by.clone(), earlier.created_at);
                let state = earlier.state;
                view! { <p>"The earlier one: " <strong>{name}</strong> ", by " {by} ", " <When at/> " " <State state/></p> }
            })}
            {earlier(problem)}
            <div class="field">
                <label for="duplicate-reason">"Why another one is wanted"</label>
                <input
                    type="text" id="duplicate-reason" name="duplicate_reason" autocomplete="off" maxlength="500"
                    bind:value=reason
                />
            </div>
            {move || scripted.get().then(|| view! {
                <button
                    type="button" disabled=move || !able() on:click=move |_| driver.submit_anyway(reason.get_untracked())
                >
                    "Request anyway"
                </button>
            })}
        </section>
    }
    .into_any()
}

/// Without script the answers to a question are buttons that send the form. They stand after the main button, so that
/// Enter never means one of them.
pub(crate) fn plain_answers(phase: &Phase, driver: Driver) -> Option<AnyView> {
    let Phase::Asked(question) = phase else { return None };
    match question {
        Question::Reused(_) => {
            let fresh_id = driver.opened.with_value(|opened| opened.fresh_id.clone());
            Some(
                view! { <button type="submit" name="fresh_id" value=fresh_id>"Send as a new request"</button> }
                    .into_any(),
            )
        }
        Question::Duplicate(problem) => problem.request.as_ref().map(|link| {
            let of = link.id.to_string();
            view! { <button type="submit" name="duplicate_of" value=of>"Request anyway"</button> }.into_any()
        }),
        Question::Conflict(problem) => {
            let versions = problem.versions.as_ref().filter(|versions| versions.one_life());
            versions.map(|versions| {
                let now = versions.current.clone();
                view! { <button type="submit" name="on_top_of" value=now>"Send it all the same"</button> }
                    .into_any()
            })
        }
    }
}
