//! How the guarded form looks.

use super::{
    driver::{Driver, Subject},
    fields::{Around, Labelled, Misfits, as_content, described_by, input_id, invalid, parameter},
    machine::{Machine, Phase, Question},
    notes::note,
    outgoing::{self, Values, field_of},
};
use crate::rpc::form::Opening;
use domain::{
    form::{Field, shown},
    name::MAX_NAME_LENGTH,
    problem::ProblemKind,
    view::OfferingView,
};
use leptos::prelude::*;

/// The form that requests an offering.
#[component]
pub fn RequestForm(
    /// The opened form.
    opening: Opening,
    /// The team chosen by the address.
    team: Option<String>,
) -> impl IntoView {
    let Opening { offering, teams, user, sealed, fresh_id, state } = opening;
    let brought_back = state.problem.is_some() || !state.values.is_empty();
    let mut machine = Machine::open(state.request_id.clone(), false, None);
    if let Some(problem) = state.problem {
        machine = machine.refused(problem);
    }
    let offering_id = offering.id.to_string();
    let subject = Subject { offering: offering.clone(), user: user.clone(), fresh_id, brought_back };
    let driver = Driver::new(subject, machine, state.values.clone());
    let scripted = RwSignal::new(false);
    Effect::new(move |_| {
        scripted.set(true);
        driver.take_over();
    });

    let machine = driver.machine;
    let phase = Memo::new(move |_| machine.read().phase().clone());
    let misfits = Signal::derive(move || phase.with(misfits));
    let around = Around { values: state.values.clone(), misfits };
    let fields = domain::form::fields(&offering.parameters);
    let inputs = fields.iter().map(|field| {
        let secret = outgoing::is_secret(&offering, &field.name);
        let hidden = hidden(field, &fields, offering.clone(), driver.values, scripted);
        parameter(field, &around, secret, condition(field, &fields), hidden)
    });
    let inputs = inputs.collect_view();
    let value = |field: &str| state.values.get(field).cloned().unwrap_or_default();
    let chosen = state.values.get("team").cloned().or(team);
    let name = value("name");
    let action = format!("/offerings/{offering_id}/new");

    view! {
        <form
            id="request-form" class="stack" method="post" action=action
            node_ref=driver.form data-scripted=move || scripted.get().then_some("true") aria-busy=move || (!machine.read().is_ready()).then_some("true")
            on:input=move |_| driver.typed() on:change=move |_| driver.typed()
            on:submit=move |event| {
                event.prevent_default();
                driver.submit();
            }
        >
            <input
                type="hidden" id="request_id" name="request_id" value=state.request_id
                data-user=user data-offering=offering.id.to_string() data-fixed=brought_back.then_some("true")
            />
            <input type="hidden" name="sealed" value=sealed/>
            {state.notice.map(|notice| view! { <p class="note">{notice}</p> })}
            <div id="form-summary" tabindex="-1" node_ref=driver.summary>
                {move || phase.with(|phase| note(phase, driver, &offering_id, scripted))}
            </div>
            <Team teams=teams chosen=chosen/>
            <Labelled
                field="name".to_owned() title="Name".to_owned() required=true misfits=misfits
                help=Some("Lower-case letters, digits and hyphens, at most 63. It names the resource in the team.".to_owned())
            >
                <input
                    type="text" id=input_id("name") name="name" value=name required
                    spellcheck="false" autocapitalize="none" pattern=name_pattern()
                    title="Lower-case letters, digits and hyphens; begins and ends with a letter or a digit"
                    aria-invalid=invalid(misfits, "name") aria-describedby=described_by("name", true)
                />
            </Labelled>
            {inputs}
            <Extras values=state.values misfits=misfits/>
            <div class="actions">
                <button type="submit" class="primary" disabled=move || !machine.read().is_ready()>
                    {move || phase.with(button)}
                </button>
                // Without script, after the main button, so that Enter never means it; its value is the fresh ID.
                {move || (!scripted.get() && matches!(*phase.read(), Phase::Asked(Question::Reused(_)))).then(|| {
                    let fresh_id = driver.subject.with_value(|subject| subject.fresh_id.clone());
                    view! { <button type="submit" name="fresh_id" value=fresh_id>"Send as a new request"</button> }
                })}
                <p role="status" class="status">{move || status(&machine.read())}</p>
            </div>
            <p class="quiet">
                "Send it as often as you like: this form carries one request ID, so it makes one request at most."
            </p>
        </form>
    }
}

/// What a request may carry beside its parameters.
#[component]
fn Extras(values: Values, misfits: Signal<Misfits>) -> impl IntoView {
    let value = |field: &str| values.get(field).cloned().unwrap_or_default();
    let (labels, correlation) = (value("labels"), value("correlation_id"));
    let open_extras = !labels.is_empty() || !correlation.is_empty();
    view! {
        <details class="extras" open=open_extras>
            <summary>"Labels and correlation ID"</summary>
            <Labelled
                field="labels".to_owned() title="Labels".to_owned() misfits=misfits
                help=Some("One key:value on each line, to find the request by.".to_owned())
            >
                <textarea
                    id=input_id("labels") name="labels" rows="2" spellcheck="false"
                    aria-invalid=invalid(misfits, "labels") aria-describedby=described_by("labels", true)
                    inner_html=as_content(&labels)
                ></textarea>
            </Labelled>
            <Labelled
                field="correlation_id".to_owned() title="Correlation ID".to_owned() misfits=misfits
                help=Some("An identifier of your own that groups this request with others, as an order number.".to_owned())
            >
                <input
                    type="text" id=input_id("correlation_id") name="correlation_id" value=correlation
                    spellcheck="false" aria-invalid=invalid(misfits, "correlation_id")
                    aria-describedby=described_by("correlation_id", true)
                />
            </Labelled>
        </details>
    }
}

/// The team to request for: a choice only where there is one.
#[component]
fn Team(teams: Vec<domain::name::Name>, chosen: Option<String>) -> impl IntoView {
    let chosen = chosen.unwrap_or_default();
    match teams.as_slice() {
        [only] => view! {
            <input type="hidden" name="team" value=only.to_string()/>
            <p class="field">"For team " <strong>{only.to_string()}</strong></p>
        }
        .into_any(),
        [] => view! { <p class="field-error">"You belong to no team that may request this. Ask an administrator."</p> }.into_any(),
        many => {
            let options = many.iter().map(|team| {
                let team = team.to_string();
                view! { <option value=team.clone() selected=team == chosen>{team.clone()}</option> }
            });
            let options = options.collect_view();
            view! {
                <div class="field">
                    <label for=input_id("team")>"Team"</label>
                    <select id=input_id("team") name="team" required>{options}</select>
                </div>
            }
            .into_any()
        }
    }
}

fn name_pattern() -> String {
    format!(r"[a-z0-9]([\-a-z0-9]{{0,{}}}[a-z0-9])?", MAX_NAME_LENGTH - 2)
}

fn hidden(
    field: &Field,
    fields: &[Field],
    offering: OfferingView,
    values: RwSignal<Values>,
    scripted: RwSignal<bool>,
) -> Signal<bool> {
    let Some((other, wanted)) = field.visible_when.clone() else {
        return Signal::stored(false);
    };
    let default = fields.iter().find(|field| field.name == other).and_then(|field| field.default.clone());
    let applies = Memo::new(move |_| {
        values.with(|values| {
            let parameters = outgoing::parameters(&offering, values);
            parameters.get(&other).or(default.as_ref()) == Some(&wanted)
        })
    });
    // Without script every field is shown, with the condition under which it is used.
    Signal::derive(move || scripted.get() && !applies.get())
}

fn condition(field: &Field, fields: &[Field]) -> Option<String> {
    let (other, value) = field.visible_when.as_ref()?;
    let title =
        fields.iter().find(|field| field.name == *other).map_or(other.as_str(), |field| field.title.as_str());
    Some(match value {
        serde_json::Value::Bool(true) => format!("Only used with “{title}” ticked."),
        serde_json::Value::Bool(false) => format!("Only used with “{title}” not ticked."),
        other => format!("Only used while “{title}” is {}.", shown(other)),
    })
}

fn misfits(phase: &Phase) -> Misfits {
    let Phase::Refused { problem, .. } = phase else {
        return Misfits::new();
    };
    let mut misfits = Misfits::new();
    for error in &problem.errors {
        if let Some(field) = field_of(&error.pointer) {
            let message: &mut String = misfits.entry(field).or_default();
            if !message.is_empty() {
                message.push(' ');
            }
            message.push_str(&error.detail);
        }
    }
    let about_the_name = [ProblemKind::NameTaken, ProblemKind::DeletionInProgress];
    if about_the_name.iter().any(|kind| kind.slug() == problem.slug()) {
        misfits.entry("name".to_owned()).or_insert_with(|| format!("{}.", problem.title));
    }
    misfits
}

fn button(phase: &Phase) -> &'static str {
    match phase {
        Phase::Sending => "Sending…",
        Phase::Leaving => "Opening…",
        Phase::OutcomeUnknown { .. } => "Check again",
        _ => "Request",
    }
}

fn status(machine: &Machine) -> &'static str {
    match machine.phase() {
        Phase::Sending if machine.is_trying_again() => {
            "No answer yet. Trying again with the same request ID; nothing is made twice."
        }
        Phase::Sending => "Sending the request.",
        Phase::Leaving => "Answered. Opening the page.",
        Phase::OutcomeUnknown { .. } => "The outcome is not known yet.",
        Phase::Refused { .. } => "Not accepted. The reasons are listed above the form.",
        Phase::Asked(_) => "A choice is needed. It stands above the form.",
        Phase::Ready => "",
    }
}
