//! What the form says above its fields: a refusal, a doubt, a choice.

use super::{
    driver::{Driver, focus_field},
    fields::input_id,
    machine::{Phase, Question},
    outgoing::{field_of, parameter_field},
};
use domain::problem::Problem;
use leptos::prelude::*;

/// What the form says above its fields.
pub(crate) fn note(phase: &Phase, driver: Driver, offering: &str, scripted: RwSignal<bool>) -> AnyView {
    match phase {
        Phase::Ready | Phase::Sending | Phase::Leaving => sent_before(driver, offering),
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
        Phase::Asked(Question::Duplicate(problem)) => duplicate(problem, driver),
    }
}

fn sent_before(driver: Driver, offering: &str) -> AnyView {
    let request = driver.machine.read().request().map(str::to_owned);
    // An address of its own: a link to the very same address would lead to this history entry, with this form's ID.
    let fresh = format!("/offerings/{offering}/new?after={}", driver.machine.read().id());
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
        match field_of(&error.pointer) {
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
        (other, None) => other.to_owned(),
        (_, Some(parameter)) => driver.subject.with_value(|subject| {
            let fields = domain::form::fields(&subject.offering.parameters);
            let known = fields.into_iter().find(|field| field.name == parameter);
            known.map_or_else(|| parameter.to_owned(), |field| field.title)
        }),
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

fn duplicate(problem: &Problem, driver: Driver) -> AnyView {
    let reason = RwSignal::new(String::new());
    view! {
        <section class="note caution" aria-labelledby="duplicate-title">
            <h2 id="duplicate-title">{problem.title.clone()}</h2>
            <p>{problem.detail.clone()}</p>
            {earlier(problem)}
            <div class="field">
                <label for="duplicate-reason">"Why another one is wanted"</label>
                <input type="text" id="duplicate-reason" autocomplete="off" bind:value=reason/>
            </div>
            <button
                type="button" disabled=move || reason.read().trim().is_empty() || !driver.machine.read().is_ready()
                on:click=move |_| driver.submit_anyway(reason.get_untracked())
            >
                "Request anyway"
            </button>
        </section>
    }
    .into_any()
}
