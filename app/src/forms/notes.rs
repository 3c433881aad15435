//! What the form says above its fields: a refusal, a doubt, a choice.

use super::{
    browser,
    conflict::{all_the_same, conflict},
    driver::{Driver, focus_field},
    fields::input_id,
    machine::{Machine, Phase, Question, is_about_the_reason},
    outgoing::parameter_field,
    subject::Deed,
};
use crate::components::{moment::When, state::State, told::plainly};
use domain::{
    form::{self, FieldKind},
    problem::{FieldError, Problem},
};
use leptos::prelude::*;

/// What is said of a secret that was typed and is not kept.
pub(crate) const TYPE_AGAIN: &str = "Type it again: it was not kept.";

/// What the form says above its fields.
pub(crate) fn note(phase: &Phase, driver: Driver, scripted: RwSignal<bool>) -> AnyView {
    match phase {
        Phase::Ready | Phase::Sending | Phase::Leaving => sent_before(driver),
        Phase::OutcomeUnknown { said } => view! {
            <section class="note caution" aria-labelledby="unknown-title">
                <h2 id="unknown-title">"The outcome is not known yet"</h2>
                <p>
                    {if said.is_some() {
                        "The form was sent, but what came back does not tell whether the request was taken in. "
                    } else {
                        "The form was sent, but no answer arrived here. The request may have been taken in or not. "
                    }}
                    "“Check again” sends it with the same request ID: if it was taken in, you get its first result, "
                    "otherwise it is taken in now. It is never carried out twice."
                </p>
                {said.clone().map(|said| view! { <p>"The last answer: " {said}</p> {when_again(driver)} })}
            </section>
        }
        .into_any(),
        Phase::NotNow { said } => view! {
            <section class="note caution" aria-labelledby="not-now-title">
                <h2 id="not-now-title">"The portal cannot take this in now"</h2>
                <p>"It answered, and nothing was requested by this form so far. It said: " {said.clone()}</p>
                {when_again(driver)}
                <p>
                    "The form stays as it is. “Check again” sends it with the same request ID, so it is never carried "
                    "out twice."
                </p>
            </section>
        }
        .into_any(),
        Phase::Refused { problem, doubtful } => refused(problem, *doubtful, driver),
        Phase::Asked(Question::Reused(problem)) => reused(problem, driver, scripted),
        Phase::Asked(Question::Duplicate(problem)) => duplicate(problem, driver, scripted),
        Phase::Asked(Question::Conflict(problem)) => conflict(problem, driver, scripted),
    }
}

/// When the portal asked to come again, if it did.
fn when_again(driver: Driver) -> Option<AnyView> {
    let at = driver.machine.with_untracked(Machine::not_before).map(browser::moment)?;
    Some(view! { <p>"Check again after " <strong><When at/></strong> "."</p> }.into_any())
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

/// What is wrong with a field, for people. A form that is described there need not be spelled as schemas do.
pub(crate) fn said(field: &str, error: &FieldError, driver: Driver) -> String {
    let described = |parameter: &str| {
        driver.opened.with_value(|opened| {
            let property = opened.subject.schema().get("properties").and_then(|known| known.get(parameter));
            property.is_some_and(|property| property.get("description").is_some())
        })
    };
    let detail = plainly(&error.detail);
    if detail.starts_with("must match the pattern ") && field.strip_prefix("p.").is_some_and(described) {
        return "does not have the form described above".to_owned();
    }
    let is_json = |parameter: &str| {
        driver.opened.with_value(|opened| {
            let fields = form::fields(opened.subject.schema());
            fields.iter().any(|field| field.name == parameter && field.kind == FieldKind::Json)
        })
    };
    if let Some(kind) = detail.strip_prefix("must be of the type ")
        && field.strip_prefix("p.").is_some_and(is_json)
    {
        return format!("must be JSON of the type {kind}");
    }
    detail.to_owned()
}

/// The title of a field that leads to it.
fn way_to(field: String, driver: Driver) -> impl IntoView {
    let label = title(&field, driver);
    view! {
        <a
            href=format!("#{}", input_id(&field)) rel="external"
            on:click=move |event| {
                event.prevent_default();
                focus_field(&field);
            }
        >
            {label}
        </a>
    }
}

/// What was typed and is not kept: each secret, until it is typed again.
pub(crate) fn lost(driver: Driver) -> impl IntoView {
    move || {
        let lost = driver.lost.get();
        (!lost.is_empty()).then(|| {
            let secrets =
                lost.into_iter().map(|field| view! { <li>{way_to(field, driver)} ": " {TYPE_AGAIN}</li> });
            view! {
                <section class="note caution" id="lost" aria-labelledby="lost-title">
                    <h2 id="lost-title">"Secrets are not kept"</h2>
                    <ul>{secrets.collect_view()}</ul>
                </section>
            }
        })
    }
}

fn refused(problem: &Problem, doubtful: bool, driver: Driver) -> AnyView {
    let mut errors: Vec<_> = problem
        .errors
        .iter()
        .map(|error| (driver.opened.with_value(|opened| opened.subject.field_of(&error.pointer)), error))
        .collect();
    errors.sort_by_key(|(field, _)| place(field.as_deref(), driver));
    let errors = errors.into_iter().map(|(field, error)| {
        let detail = plainly(&error.detail).to_owned();
        match field {
            Some(field) => {
                let detail = said(&field, error, driver).replace(" above", "");
                view! { <li>{way_to(field, driver)} ": " {detail}</li> }.into_any()
            }
            None => {
                view! { <li>{error.pointer.trim_start_matches('/').to_owned()} ": " {detail}</li> }.into_any()
            }
        }
    });
    let errors = errors.collect_view();
    let some = !problem.errors.is_empty();
    // The list below says it all, field by field.
    let differs = differing(problem, driver);
    let what = if some {
        "Nothing was changed. Correct what is marked and send again.".to_owned()
    } else if differs.is_empty() {
        problem.detail.clone()
    } else {
        format!(
            "Something of this name exists, and differs in: {differs}. Choose another name. Nothing was changed."
        )
    };
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

/// Where a field stands in the form; what is no field of it comes last.
fn place(field: Option<&str>, driver: Driver) -> usize {
    let parameter = |name: &str| {
        driver.opened.with_value(|opened| {
            form::fields(opened.subject.schema()).iter().position(|field| field.name == name)
        })
    };
    match field.map(|field| (field, field.strip_prefix("p."))) {
        Some(("team", _)) => 0,
        Some(("name" | "confirm", _)) => 1,
        Some((_, Some(name))) => parameter(name).map_or(usize::MAX, |place| place + 2),
        Some(("labels", _)) => usize::MAX - 2,
        Some(_) => usize::MAX - 1,
        None => usize::MAX,
    }
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
    let misfit: Vec<String> = problem
        .errors
        .iter()
        .filter(|error| is_about_the_reason(error))
        .map(|error| error.detail.clone())
        .collect();
    let wrong = (!misfit.is_empty()).then_some("true");
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
                <p class="field-error" id="duplicate-reason-error">
                    {(!misfit.is_empty()).then(|| format!("The reason {}.", misfit.join(" ")))}
                </p>
                <input
                    type="text" id="duplicate-reason" name="duplicate_reason" autocomplete="off" maxlength="500"
                    aria-describedby="duplicate-reason-error" aria-invalid=wrong bind:value=reason
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
                let deletes = driver.opened.with_value(|opened| opened.subject.deed == Deed::Delete);
                let text = driver.opened.with_value(|opened| all_the_same(&opened.subject.deed));
                view! { <button type="submit" name="on_top_of" value=now class:danger=deletes>{text}</button> }
                    .into_any()
            })
        }
    }
}
